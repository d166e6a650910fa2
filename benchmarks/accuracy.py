"""ECE of 10^8 float32 samples: the same as in float64, with the peers' values beside it.

Each peer gets the float32 numbers that a network gives. Libraries that sum in float32 lose what
each further sample adds once a sum is a few million; that is an error of the sum and not of the
definition.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

import howsure as hs

from .peers import available
from .rows import Row
from .workloads import large

N = 10**8


def rows() -> Iterator[Row]:
    data = large(N)
    ours = hs.ece(hs.tally(data.score, correct=data.correct))
    wide = hs.ece(hs.tally(data.score.astype(np.float64), correct=data.correct))
    detail = f"float32 {ours:.15f}, float64 {wide:.15f}"
    yield Row(
        f"ECE of {N:,} float32 samples against float64",
        abs(ours - wide),
        "apart",
        1e-12,
        detail=detail,
    )
    jobs, absent = available(data)
    for peer, of in jobs.items():
        if "ece" in of:
            yield peer_row(peer, of["ece"], ours)
    for peer, why in absent.items():
        yield Row(f"  ECE of {peer}", None, "", detail=f"left out, cannot be used here: {why}")


def peer_row(peer: str, job: object, ours: float) -> Row:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = float(job())  # type: ignore[operator]
    return Row(
        f"  ECE of {peer}", value, "", detail=f"{abs(value - ours):.1e} from ours, {ours:.6f}"
    )
