"""scipy.special as a command needs it: its functions of NumPy arrays, loaded in 25 ms instead of
160.

The package spends its import on other array libraries, which it wraps its functions for, and with
that on all of NumPy's own development tools. The functions themselves are one compiled module. Only
a command does this, in a process of its own; any other name loads the whole package into the same
module.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

PACKAGE = "scipy.special"
SPECIAL_FUNCTIONS = (
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


class LeanSpecialLoader(Loader):
    """Fills the module with the functions alone, and with everything once another name is asked
    for.
    """

    def __init__(self, whole: Loader) -> None:
        self.whole = whole

    def exec_module(self, module: ModuleType) -> None:
        try:
            compiled = import_module(f"{PACKAGE}._ufuncs")
            functions = {name: getattr(compiled, name) for name in SPECIAL_FUNCTIONS}
        except (ImportError, AttributeError):  # a scipy that is built otherwise
            self.whole.exec_module(module)
            return

        def load_missing(name: str) -> object:
            if name.startswith("__"):
                raise AttributeError(name)
            # Taken away first: the package's own import must not come back here.
            if vars(module).pop("__getattr__", None) is not None:
                self.whole.exec_module(module)
            try:
                return vars(module)[name]
            except KeyError:
                raise AttributeError(f"module {PACKAGE!r} has no attribute {name!r}") from None

        vars(module).update(functions, __getattr__=load_missing)


class LeanSpecialFinder(MetaPathFinder):
    """Finds scipy.special and nothing else."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != PACKAGE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LeanSpecialLoader(spec.loader)
        return spec


def load_special_lean() -> None:
    """From here on scipy.special is loaded this way, unless it is loaded already."""
    if not any(isinstance(finder, LeanSpecialFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, LeanSpecialFinder())
