"""Set losses: Dice of the kept pixels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import howsure as hs


def dice(p: np.ndarray, t: np.ndarray) -> float:
    size = p.sum() + t.sum()
    return 1.0 if size == 0 else 2 * (p & t).sum() / size


@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([None, [1], [1, 2], [2, 5]]))
def test_risk_is_one_minus_mean_dice_of_the_kept(
    seed: int, n: int, classes: list[int] | None
) -> None:
    rng = np.random.default_rng(seed)
    score, p, y = rng.integers(0, 6, n) / 5, rng.integers(0, 3, n), rng.integers(0, 3, n)
    t = hs.dice_tally(score, p, y, classes)
    for threshold, risk in zip(t.score, t.risk, strict=True):
        kept = score >= threshold
        parts = [(p != 0, y != 0)] if classes is None else [(p == c, y == c) for c in classes]
        assert risk == pytest.approx(
            1 - np.mean([dice(a[kept], b[kept]) for a, b in parts]), abs=1e-12
        )
    width = np.diff(np.cumsum(t.count) / n, prepend=0)
    assert hs.aurc(t) == hs.aurc(t, "step") == pytest.approx(np.dot(width, t.risk))


def test_merging_images() -> None:
    rng = np.random.default_rng(0)
    score, p, y = (
        rng.integers(0, 9, (2, 30)) / 8,
        rng.integers(0, 2, (2, 30)),
        rng.integers(0, 2, (2, 30)),
    )
    parts = sum(hs.dice_tally(*arrays) for arrays in zip(score, p, y, strict=True))
    whole = hs.dice_tally(score, p, y)
    np.testing.assert_array_equal(parts.risk, whole.risk)
    assert hs.aurc(parts) == hs.aurc(whole)
    assert hs.risk_at_coverage(parts, 0.5) == hs.risk_at_coverage(whole, 0.5)


def test_images_of_any_shape_are_flattened() -> None:
    score = np.linspace(0, 1, 12).reshape(3, 4)
    mask = (score > 0.5).astype(np.uint8)
    assert hs.dice_tally(score, mask, mask).n == 12
    assert (hs.dice_tally(score, mask, mask).risk == 0).all()


def test_both_empty_is_perfect() -> None:
    assert hs.dice_tally([0.9, 0.1], [0, 0], [0, 0]).risk.tolist() == [0, 0]


def test_expected_variant_is_refused() -> None:
    with pytest.raises(
        hs.InputError, match="not defined for a set loss; use 'step' or 'trapezoid'"
    ):
        hs.aurc(hs.dice_tally([0.9], [1], [1]), "expected")


def test_set_tallies_of_different_losses_do_not_add_up() -> None:
    with pytest.raises(hs.InputError, match="different set losses"):
        hs.dice_tally([0.9], [1], [1]) + hs.set_tally([0.9], [[1, 1]], lambda s: s[:, 0])
