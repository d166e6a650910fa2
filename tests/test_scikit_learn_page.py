"""The examples of docs/scikit_learn.md."""

import doctest
from pathlib import Path

import pytest

pytest.importorskip("sklearn", reason="left out: scikit-learn is not installed")
pytest.importorskip("pandas", reason="left out: pandas is not installed")


def test_examples_run() -> None:
    page = Path(__file__).parents[1] / "docs/scikit_learn.md"
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    found = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert found.attempted > 20
    assert found.failed == 0
