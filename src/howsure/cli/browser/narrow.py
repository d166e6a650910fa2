"""NumPy where a pointer has 32 bits, as in the browser: indices of 64 bits are taken, counts come
back with 64 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class _Add:
    """`np.add` whose `reduceat` takes indices of any width."""

    def __init__(self, real: Any):
        self._real = real

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._real(*args, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def reduceat(self, array: Any, indices: Any, **options: Any) -> Any:
        return self._real.reduceat(array, np.asarray(indices, dtype=np.intp), **options)


def widen() -> None:
    """Replace the three functions of NumPy that refuse indices of 64 bits on a machine of 32;
    nothing on others.
    """
    if np.intp().itemsize == 8:
        return
    count, again = np.bincount, np.repeat

    def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
        found = count(np.asarray(x).astype(np.intp), weights, minlength)
        return found.astype(np.int64) if weights is None else found

    def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
        return again(a, np.asarray(repeats).astype(np.intp), axis)

    np.__dict__.update(bincount=bincount, repeat=repeat, add=_Add(np.add))
