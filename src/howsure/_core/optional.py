"""Optional packages, imported where they are needed."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def need(package: str, *, for_: str, extra: str) -> ModuleType:
    """Import `package`, or say which extra brings it.

    >>> need("json", for_="an example", extra="files").__name__
    'json'
    """
    try:
        return import_module(package)
    except ModuleNotFoundError as e:
        if e.name is None or not package.startswith(e.name):
            raise  # the package is there, something that it needs is not
        raise ModuleNotFoundError(
            f"{for_} needs {package}: pip install 'howsure[{extra}]'", name=package
        ) from None
