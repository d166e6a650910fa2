"""The examples of docs/networks.md."""

import doctest
from pathlib import Path

import pytest


@pytest.mark.usefixtures("digits")  # leaves the test out where a package is missing
def test_examples_run():
    page = Path(__file__).parents[2] / "docs/networks.md"
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    found = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert found.attempted > 40
    assert found.failed == 0
