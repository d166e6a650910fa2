"""scipy.special as a command needs it: its functions of NumPy arrays, loaded in 25 ms instead of
160.

The package spends its import on other array libraries, which it dresses its functions for, and with
that on all of NumPy's own development tools. The functions themselves are one compiled module. Only
a command does this, in a process of its own; whoever asks for any other name gets the whole
package, in the same module.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

PACKAGE = "scipy.special"
FUNCTIONS = (
    "bdtr",
    "betainc",
    "betaincc",
    "betaincinv",
    "betaln",
    "chdtrc",
    "expit",
    "gammaincinv",
    "gammaln",
    "kolmogorov",
    "logit",
    "ndtr",
    "ndtri",
    "stdtrit",
    "xlogy",
)


class Functions(Loader):
    """Fills the module with the functions alone, and with everything when that is asked for."""

    def __init__(self, whole: Loader) -> None:
        self.whole = whole

    def exec_module(self, module: ModuleType) -> None:
        try:
            compiled = import_module(f"{PACKAGE}._ufuncs")
            found = {name: getattr(compiled, name) for name in FUNCTIONS}
        except (ImportError, AttributeError):  # a scipy that is built otherwise
            self.whole.exec_module(module)
            return

        def missing(name: str) -> object:
            if name.startswith("__"):
                raise AttributeError(name)
            if vars(module).pop("__getattr__", None) is not None:
                self.whole.exec_module(module)
            try:
                return vars(module)[name]
            except KeyError:
                raise AttributeError(f"module {PACKAGE!r} has no attribute {name!r}") from None

        vars(module).update(found, __getattr__=missing)


class Finder(MetaPathFinder):
    """Finds scipy.special alone."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != PACKAGE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = Functions(spec.loader)
        return spec


def functions_alone() -> None:
    """From here on scipy.special is loaded this way, unless it is loaded already."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
