"""The examples of Ding et al. 2019 and 2020, and their network that looks better and is worse."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import howsure as hs


def toy() -> hs.Tally:
    """Half the samples at r = .4 with accuracy .43, half at r = .5 with accuracy .47."""
    correct = np.concatenate([np.arange(100) < right for right in (43, 47)])
    return hs.tally(np.repeat([0.4, 0.5], 100), correct=correct)


@pytest.mark.parametrize(("bins", "ece"), [(1, 0.0), (2, 0.0), (3, 0.0), (10, 0.03), (15, 0.03)])
def test_toy_ece_is_0_only_where_a_bin_holds_both(bins: int, ece: float) -> None:
    """Both values lie on edges of ten bins, so there nothing is compensated."""
    together = len(hs.bin_table(toy(), hs.equal_range(bins)).count) == 1
    assert together == (ece == 0.0)
    assert hs.ece(toy(), hs.equal_range(bins)) == pytest.approx(ece, abs=1e-12)


def test_toy_true_ece() -> None:
    assert hs.ece(toy(), hs.unique()) == pytest.approx(0.03)


def test_perfect_for_calibration_bad_for_selection() -> None:
    """r = .5 everywhere, half right: ECE 0, and no threshold helps."""
    t = hs.tally([0.5] * 10, correct=[1, 0] * 5)
    assert hs.ece(t, hs.unique()) == 0
    assert hs.auroc(t) == 0.5
    assert hs.risk_coverage(t).y.tolist() == [0.5]


def test_perfect_for_selection_bad_for_calibration() -> None:
    """r = 1 where right, .9 where wrong. MCE is .9; ECE is .9 times the share of the wrong, not
    ".9".
    """
    t = hs.tally([1.0] * 6 + [0.9] * 4, correct=[1] * 6 + [0] * 4)
    assert hs.e_aurc(t) == 0
    assert hs.auroc(t) == 1
    assert hs.mce(t, hs.unique()) == pytest.approx(0.9)
    assert hs.ece(t, hs.unique()) == pytest.approx(0.9 * 0.4)


def test_two_samples_in_a_bin_show_a_gap_that_means_nothing() -> None:
    """2 of 10,000 samples in [.1, .2], one right: MCE above 30 %, while the adaptive bins do not
    believe it.
    """
    rng = np.random.default_rng(0)
    score = np.concatenate(([0.12, 0.18], rng.uniform(0.2, 0.9, 9998)))
    correct = np.concatenate(([1, 0], rng.random(9998) < score[2:]))
    t = hs.tally(score, correct=correct)
    assert hs.mce(t, hs.equal_range(10)) > 0.3
    assert hs.amce(t) < 0.1


@pytest.fixture(scope="module")
def network(arrays: Callable[[str], dict[str, Any]]) -> tuple[Any, Any]:
    a = arrays("nn_resnet110_c10")
    preds = hs.Predictions.from_logits(a["test_logits"], a["test_labels"])
    return hs.scores.max_prob(preds), preds.correct


def worse(score: Any, correct: Any, m: int) -> hs.Tally:
    """The same network with its m least sure right answers turned wrong."""
    right = np.flatnonzero(correct)
    turned = correct.copy()
    turned[right[np.argsort(score[right], kind="stable")[:m]]] = False
    return hs.tally(score, correct=turned)


def test_turning_unsure_answers_wrong_fools_auroc_and_aupr_but_not_aurc(
    network: tuple[Any, Any],
) -> None:
    """Ding 2020, table 1: DenseNet-m for m = 20, 100, 300."""
    made = [worse(*network, m) for m in (0, 20, 100, 300)]
    auroc, aupr, aurc = ([metric(t) for t in made] for metric in (hs.auroc, hs.aupr, hs.aurc))
    assert auroc == sorted(auroc)
    assert aupr == sorted(aupr)
    assert aurc == sorted(aurc)
    assert all(len(set(values)) == 4 for values in (auroc, aupr, aurc))
    assert auroc[-1] > auroc[0] + 0.02  # "better"
    assert aurc[-1] > aurc[0]  # worse: it is never better at any threshold
    base, bad = hs.risk_coverage(made[0]).y, hs.risk_coverage(made[-1]).y
    assert (bad >= base).all()


def test_auroc_of_the_construction_has_a_ceiling() -> None:
    """Why table 1's AUROC column cannot be right: from 93.71 at 471 errors of 10,000 (95.3 %, less
    20: 95.1 %) the best case ranks every new error below all right answers that remain."""
    n, wrong, auroc = 10_000, 471, 0.9371
    for m, ceiling, printed in ((20, 0.9416, 0.9417), (100, 0.9564, 0.9580), (300, 0.9802, 0.9808)):
        lost = (1 - auroc) * wrong * (n - wrong)  # pairs in the wrong order stay so at best
        gone = min(lost, m * wrong)  # except those with the m answers that changed sides
        best = 1 - (lost - gone) / (wrong + m) / (n - wrong - m)
        assert best == pytest.approx(ceiling, abs=2e-4)
        assert printed > best
