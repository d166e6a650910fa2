"""Doctests of a module that needs an optional package are left out where the package is not there."""

from importlib.util import find_spec

NEEDS = {"src/howsure/sklearn.py": "sklearn"}
collect_ignore = [path for path, package in NEEDS.items() if find_spec(package) is None]
