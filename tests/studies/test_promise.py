"""Promises, hidden gaps and what chance adds: by hand where a hand can do it."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")
hs = pytest.importorskip("howsure")

from studies.claims.binning import bins_of, hidden_gap, number_of_bins  # noqa: E402
from studies.claims.claim import AGREES, MISSING, NOT, OPEN, Claim, Evidence  # noqa: E402
from studies.claims.growth import Grown  # noqa: E402
from studies.claims.promise import held, kept, missed, share  # noqa: E402
from studies.claims.regularisation import seed_by_seed  # noqa: E402
from studies.claims.segmentation import follows_dice, mostly_sure  # noqa: E402
from studies.figures.drawing import STEP, apart  # noqa: E402
from studies.pages.overview import left_open  # noqa: E402
from studies.runs import Run  # noqa: E402
from studies.settings import Settings  # noqa: E402
from studies.store import Store  # noqa: E402
from studies.tables.complexity import by_chance, inside  # noqa: E402
from studies.tables.promise import Kept, Promised, promised, row_of  # noqa: E402

NAN = float("nan")


def two_levels(n, *, high=0.95, low=0.55, seed=0):
    """Half of the answers stated with `high`, half with `low`, and right just as often."""
    rng = np.random.default_rng(seed)
    stated = np.where(np.arange(n) % 2, high, low)
    return hs.Predictions.from_confidence(stated, rng.random(n) < stated)


def test_a_promise_by_hand():
    """Error 25 % on validation, so that 12.5 % is promised: only the surer half has less."""
    val, test = two_levels(4_000), two_levels(4_000, seed=1)
    p = promised("x", val, test)
    assert p.risk == pytest.approx((1 - val.correct.mean()) / 2)
    assert (p.plain.count, p.plain.n) == (2_000, 4_000)
    assert p.plain.wrong == int((~test.correct.astype(bool))[1::2].sum())
    assert p.low < p.plain.risk < p.high
    assert p.inside
    assert p.guaranteed.risk < p.risk


def test_a_promise_that_test_images_break():
    val, test = two_levels(4_000), two_levels(4_000, high=0.7, seed=1)
    broken = hs.Predictions.from_confidence(val.confidence, test.correct)
    p = promised("x", val, broken)
    assert not p.inside
    assert p.guaranteed.shown_above(p.risk)


def test_shown_above_is_the_exact_limit():
    """5 wrong of 10: the lower 95 % limit is 0.2224."""
    assert Kept(10, 5, 10).shown_above(0.222)
    assert not Kept(10, 5, 10).shown_above(0.223)
    assert not Kept(10, 0, 10).shown_above(0.0)


def set_of(*, plain, guaranteed, low=0.0, high=1.0):
    return Promised("x", 0.1, low, high, Kept(100, plain, 200), Kept(100, guaranteed, 200))


def test_a_set_of_which_nothing_can_be_kept():
    """Every answer is stated with the same probability: no threshold halves the error."""
    preds = hs.Predictions.from_confidence([0.6] * 200, [1, 0] * 100)
    p = promised("x", preds, preds)
    assert p.plain.count == p.guaranteed.count == 0
    assert row_of(p)[2:] == ["none", "none", "0.0", "none", "0.0"]


def test_verdicts_about_promises():
    good, bad = set_of(plain=10, guaranteed=5), set_of(plain=30, guaranteed=30, high=0.2)
    assert share((good,) * 10, lambda p: True)[0] == 10
    assert held("x", (good,) * 20).word == AGREES
    assert held("x", (bad,) * 20).word == NOT
    assert missed("x", (bad,) * 20).word == AGREES
    assert kept("x", (good,) * 20).word == AGREES
    assert kept("x", (bad,) * 20).word == NOT


def test_a_stretch_of_confidences():
    preds = hs.Predictions.from_confidence([0.91, 0.95, 0.97, 0.9, 0.99], [0, 1, 1, 0, 1])
    part = inside(preds, (0.9, 0.96))
    assert (part.count, part.accuracy, part.gap) == (2, 0.5, pytest.approx(0.43))
    assert np.isnan(inside(preds, (0.1, 0.2)).gap)


def test_chance_alone_makes_calibration_errors():
    """A calibrated network has the errors of chance; one that claims too much has more."""
    honest = two_levels(2_000)
    seen, chance = by_chance(honest)
    assert chance["ECE"] > 0
    assert seen["ECE"] < 3 * chance["ECE"]
    boasting = hs.Predictions.from_confidence(
        np.minimum(honest.confidence + 0.04, 1), honest.correct
    )
    assert by_chance(boasting)[0]["ECE"] > 0.03


def test_the_bins_of_published_networks(shared, monkeypatch):
    """The numbers of an audit: 15 and 17, 17, 16 bins as printed; those of the paper with its
    code's z.
    """
    monkeypatch.setenv("HOWSURE_SHARED", str(shared))
    assert [claim.word for claim in number_of_bins()] == [NOT, AGREES]
    assert bins_of(hs.adaptive())[0].found.startswith("15, 17, 17, 16 bins")
    hidden = hidden_gap()
    assert hidden.word == AGREES
    shares = [e.found.split("accuracy ")[1].split(" %")[0] for e in hidden.evidence]
    assert shares == ["66.8", "72.5", "66.5", "67.7"]


def widths(dice, aupr, sure, aurc=None):
    aurc = [1 - d for d in dice] if aurc is None else aurc
    columns = {
        "1 - Dice": [1 - d for d in dice],
        "AURC of 1 - Dice": aurc,
        "AUPR": aupr,
        "sure": sure,
    }
    repeats = {name: [[v] for v in values] for name, values in columns.items()}
    return Grown(["unet"] * len(dice), list(map(float, range(len(dice)))), repeats)


def test_aupr_against_dice():
    """AURC that follows Dice and AUPR that does not, then the contrary, then both alike."""
    dice = [0.6, 0.7, 0.75, 0.8, 0.85, 0.9]
    wild = [0.3, 0.5, 0.2, 0.4, 0.35, 0.25]
    assert follows_dice(widths(dice, wild, [0.9] * 6)).word == AGREES
    assert follows_dice(widths(dice, dice, [0.9] * 6, dice)).word == NOT
    assert follows_dice(widths(dice, dice, [0.9] * 6)).word == OPEN
    assert mostly_sure(widths(dice, dice, [0.9, 0.91] * 3)).word == AGREES
    assert mostly_sure(widths(dice, dice, [0.2, 0.21] * 3)).word == NOT


def test_seeds_are_compared_one_by_one(tmp_path):
    """Three seeds; the first side is right ten points less often in each. Student's interval has no
    width; the images alone decide how sure that is."""
    store, runs = Store(tmp_path), {}
    for value, right in ((0.0, 70), (0.1, 80)):
        for seed in range(3):
            run = Run("x", Settings("digits", "resnet-8", 300, 3, label_smoothing=value, seed=seed))
            write_run(store, run, right + seed)
            runs.setdefault(value, []).append(run)
    ece, accuracy = seed_by_seed(store, runs[0.0], runs[0.1], "x")
    assert accuracy.found == "-10.00 points, one by one -10.00 to -10.00"
    assert accuracy.high - accuracy.low == pytest.approx(
        2 * 1.96 * np.sqrt(0.1 * 0.9 / 100), rel=0.2
    )
    assert accuracy.word == AGREES
    assert (ece.word, accuracy.counts) == (NOT, False)
    assert seed_by_seed(store, runs[0.0], runs[0.0], "x")[0].found == "one setting has both"


def write_run(store, run, right):
    logits = np.tile([2.0, 0.0], (100, 1)).astype(np.float16)
    path = store.predictions(run.settings)
    path.parent.mkdir(exist_ok=True)
    np.savez(path, test_logits=logits, test_labels=(np.arange(100) >= right).astype(int))


def test_names_of_lines_do_not_overlap():
    found = apart([0.5, 0.5, 0.51, 0.99, 0.99])
    assert found == sorted(found)
    assert min(np.diff(found)) >= STEP - 1e-12
    assert max(found) <= 1
    assert apart([]) == []
    assert apart([-1.0, 0.99, 0.99])[0] == 0  # names below stay where they are


def test_open_claims_say_what_they_would_take(tmp_path):
    claims = {"odds": [Claim("a", "", []), Claim("b", "", [Evidence("x", "", NAN, NAN, AGREES)])]}
    table = left_open(Store(tmp_path), "smoke", claims)
    assert [row[1:3] for row in table.rows] == [["a", MISSING]]
    assert table.rows[0][3] == "its networks"
    assert "networks" not in table.rows[0][4]
    assert "hours on one core" in table.rows[0][4]
