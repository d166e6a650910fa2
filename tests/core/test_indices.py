"""Indices of 64 bits where NumPy takes those of the machine."""

import re
from pathlib import Path

import numpy as np
import pytest

import howsure
from howsure._core.indices import count_values, repeat_values, sum_runs

SOURCE = Path(howsure.__file__).parent
NARROW = r"np\.(bincount|repeat|add\.reduceat)\("


@pytest.mark.parametrize("width", [np.uint8, np.int32, np.int64, np.uint64])
def test_indices_of_any_width(width: type[np.integer]):
    at = np.array([0, 4], dtype=width)
    assert sum_runs(np.arange(6), at).tolist() == [6, 9]
    assert repeat_values([7, 8], at).tolist() == [8] * 4
    assert count_values(at).tolist() == [1, 0, 0, 0, 1]
    assert count_values(at, [0.5, 2.0], 6).tolist() == [0.5, 0, 0, 0, 2, 0]
    assert count_values(at).dtype == np.int64


def test_the_package_calls_no_function_that_refuses_them_in_the_browser():
    found: list[str] = []
    for path in SOURCE.rglob("*.py"):
        if path.name == "indices.py":
            continue
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            if re.search(NARROW, line) and not line.strip().startswith((">>>", "...")):
                found.append(f"{path.relative_to(SOURCE)}:{number}")
    assert found == [], "use howsure._core.indices"
