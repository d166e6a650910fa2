"""Every kind of tally gives the same numbers, whatever the magnitude of its scores.

Kinds pack, number and count the bits of scores, and sum claims in chunks. What is right for
confidences may be wrong for scores of 1e30, of 1e-20, below the least normal number, or of both
signs; so all kinds are held against the plainest one, whose rows are columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from howsure import InputError, Tally, adaptive, curves, tally
from howsure.curves import bin_table
from howsure.tallies import counted, packed_keys
from howsure.tallies.building import from_columns, to_columns
from howsure.tallies.row_tally import count_rows
from laws.test_metrics import METRICS, close, versions

LEAST = {np.float32: 1e-45, np.float64: 5e-324}
# Scores of one magnitude and their like; `least` is the smallest number of the width above 0.
MAGNITUDES: dict[str, Callable[[float], list[float]]] = {
    "huge": lambda least: [1e30, 1.0000001e30, 3e37, 1.5],
    "tiny": lambda least: [1e-20, 1.0000001e-20, 3e-38, 0.75],
    "denormal": lambda least: [0.0, least, 3 * least, 1e-39],
    "mixed": lambda least: [1e30, 1e-20, least, 0.5, 0.0],
    "near one": lambda least: [1.0, 1 - 2**-24, 0.999, 0.0],
    "infinite": lambda least: [math.inf, 1e30, 0.5],
    "negative": lambda least: [-1e30, -1.0000001e30, -0.5, -1e-20],
    "both signs": lambda least: [-1e30, -least, -0.0, least, 1e-20, 1e30],
    "signs of one size": lambda least: [-3.0, -1.5, 0.25, 2.0],
}


@st.composite
def samples(draw: Any) -> tuple[Any, Any]:
    """Scores of one magnitude, some tied and some apart by a factor, with outcomes."""
    width = draw(st.sampled_from([np.float32, np.float64]))
    values = MAGNITUDES[draw(st.sampled_from(sorted(MAGNITUDES)))](LEAST[width])
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 60))
    score = rng.choice(values, n).astype(width)
    spread = rng.choice([1.0, 1.0, 0.5, 0.9], n).astype(width)
    return score * spread, rng.random(n) < 0.6


def kinds(score: Any, correct: Any) -> Iterator[tuple[str, Tally]]:
    """The same samples as every kind of tally that can hold them, in one piece and merged."""
    wide = score.astype(np.float64) + 0.0
    whole = tally(score, correct)
    third = len(score) // 3
    parts = [rows for rows in (slice(third), slice(third, None)) if len(score[rows])]
    tallies = [tally(score[rows], correct[rows]) for rows in parts]
    yield "tally", whole
    yield "tally of float64", tally(wide, correct)
    yield "sum", sum(tallies)
    yield "merged", counted.merge_tallies(tallies)
    yield "of a file", from_columns(to_columns(whole))
    yield "of counts", tally(wide, correct, count=np.ones(len(score), dtype=np.int64))
    if score.min() < 0:
        return
    pieces = [counted.count_scores(score[rows], ~correct[rows]) for rows in parts]
    yield "counted", counted.count_scores(score, ~correct)
    yield "counted float64", counted.count_scores(wide, ~correct)
    yield "counted sum", sum(pieces)
    yield "counted and packed", counted.merge_tallies([pieces[0], *tallies[1:]])
    yield "counted of a file", sum(from_columns(to_columns(piece)) for piece in pieces)


def plainest(score: Any, correct: Any) -> Tally:
    return count_rows(score.astype(np.float64) + 0.0, ~correct)


@pytest.fixture(autouse=True, scope="module")
def chunks_of_a_few_rows() -> Iterator[None]:
    """Sums are made over several chunks already for these few samples."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_keys, "KEY_CHUNK", 8)
        patch.setattr(packed_keys, "BLOCK_CHUNK", 4)
        patch.setattr(packed_keys, "PIECE_ROWS", 5)
        patch.setattr(counted, "PIECE_ROWS", 5)
        patch.setattr(counted, "MERGE_ROWS", 8)
        yield


def try_metric(version: Callable[[Tally], float], t: Tally) -> float | str:
    """Its value, or that it refuses such scores."""
    try:
        return version(t)
    except InputError as e:
        return type(e).__name__


@pytest.mark.parametrize(
    "metric", [m for m in METRICS if m.takes == "tally"], ids=lambda m: m.__name__
)
@given(data=samples())
def test_a_metric_is_the_same_for_every_kind(metric: Any, data: tuple[Any, Any]) -> None:
    plain = plainest(*data)
    for version in versions(metric):
        expected = try_metric(version, plain)
        for name, t in kinds(*data):
            value = try_metric(version, t)
            if isinstance(value, str) or isinstance(expected, str):
                assert value == expected, f"{version} of {name}: {value}, not {expected}"
            else:
                assert close(value, expected, 1e-12), (
                    f"{version} of {name}: {value!r}, not {expected!r}"
                )


@given(data=samples(), seed=st.integers(0, 2**32 - 1))
def test_a_question_has_the_same_answer_for_every_kind(data: tuple[Any, Any], seed: int) -> None:
    plain = plainest(*data)
    rng = np.random.default_rng(seed)
    asked = rng.choice(plain.score, 8) * rng.choice([1.0, 0.5, 1.5, -1.0], 8)
    asked = asked[~np.isnan(asked)]
    ranks = rng.integers(0, int(plain.n) + 1, 8)
    cuts = np.unique(np.concatenate(([0], plain.cut_at(ranks), [plain.n]))).astype(np.int64)
    for name, t in kinds(*data):
        assert (t.n, t.total, t.distinct) == (plain.n, plain.total, plain.distinct), name
        for column in ("score", "count", "loss", "ends"):
            assert getattr(t, column).tolist() == getattr(plain, column).tolist(), (name, column)
        assert t.score_range() == plain.score_range(), name
        assert t.above(asked).tolist() == plain.above(asked).tolist(), name
        assert t.cut_at(ranks).tolist() == plain.cut_at(ranks).tolist(), name
        at = [t.score_at(int(rank)) for rank in range(int(plain.n))]
        assert at == [plain.score_at(int(rank)) for rank in range(int(plain.n))], name
        for blocks in ("blocks", "tied"):
            for column in ("before", "after", "loss"):
                mine, theirs = (getattr(getattr(x, blocks)(), column) for x in (t, plain))
                assert mine.tolist() == theirs.tolist(), (name, blocks, column)
        pieces = [np.concatenate(column).tolist() for column in zip(*t.pieces(), strict=True)]
        assert pieces == [plain.score.tolist(), plain.count.tolist(), plain.loss.tolist()], name
        sums, plain_sums = t.between(cuts), plain.between(cuts)
        for column in ("count", "loss", "high", "low"):
            assert getattr(sums, column).tolist() == getattr(plain_sums, column).tolist(), name
        for i, (claim, exact, size) in enumerate(sum_exactly(plain, cuts)):
            assert abs(Fraction(float(sums.claim[i])) - exact) <= size * Fraction(1, 10**13), (
                f"{name}: claims {sums.claim[i]!r} between {cuts[i]} and {cuts[i + 1]}, not {claim!r}"
            )


def sum_exactly(plain: Tally, cuts: Any) -> Iterator[tuple[float, Fraction, Fraction]]:
    """The summed scores between cuts as fractions, and summed without their signs; nothing where
    scores are infinite, whose claims are never read.
    """
    if not np.isfinite(plain.score).all():
        return
    rows = np.searchsorted(plain.ends, cuts, side="right")
    for first, last in zip(rows[:-1], rows[1:], strict=True):
        claims = [
            Fraction(float(s)) * int(c)
            for s, c in zip(plain.score[first:last], plain.count[first:last], strict=True)
        ]
        exact = sum(claims, Fraction(0))
        yield float(exact), exact, sum(map(abs, claims), Fraction(0))


def test_bins_of_claims_that_hardly_differ() -> None:
    """A last bin as narrow as this wants more samples than an integer holds."""
    for least in (1e-21, 5e-324):
        score = np.repeat([0.75, 0.375, 2 * least, least], [19, 1, 40, 40])
        correct = np.arange(100) % 3 > 0
        for name, t in kinds(score, correct):
            assert bin_table(t, adaptive()).count.tolist() == [80, 20], name


CURVES = [curves.risk_coverage, curves.roc, curves.precision_recall]


@pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.__name__)
@given(data=samples())
def test_a_curve_is_the_same_for_every_kind(curve: Any, data: tuple[Any, Any]) -> None:
    expected = curve(plainest(*data))
    for name, t in kinds(*data):
        made = curve(t)
        for column in ("x", "y", "threshold"):
            mine, theirs = getattr(made, column), getattr(expected, column)
            if theirs is None:
                assert mine is None, name
            else:
                np.testing.assert_allclose(mine, theirs, rtol=1e-12, err_msg=f"{name} {column}")
