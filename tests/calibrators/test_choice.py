"""choose_calibrator and the report before and after: honest where calibration helps, does nothing
or harms.
"""

import json
from functools import partial

import numpy as np
import pytest

import howsure as hs
from howsure import InputError, Predictions
from howsure.calibrators import (
    Beta,
    Isotonic,
    MatrixScaling,
    Platt,
    StructuredScaling,
    Temperature,
    VectorScaling,
    choice,
)
from howsure.calibrators.choice import list_contenders


def answers(n=1500, scale=1.0, seed=0, k=4):
    """Labels drawn from softmax(z), logits scale · z: calibrated at scale 1, overconfident above."""
    rng = np.random.default_rng(seed)
    z = 2 * rng.normal(size=(n, k))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return Predictions.from_logits(scale * z, np.minimum(y, k - 1))


def test_over_confidence_is_found():
    few = {"temperature": Temperature.fit, "histogram": hs.calibrators.HistogramBinning.fit}
    choice = hs.choose_calibrator(answers(scale=3.0), calibrators=few, folds=3)
    assert choice.winner == "temperature"
    assert choice.calibrator.temperature == pytest.approx(3.0, rel=0.15)
    row = {row.name: row for row in choice.table}["temperature"]
    assert row.real
    assert row.gain_high < 0


@pytest.mark.parametrize("criterion", [hs.nll, hs.ece, hs.aurc])
def test_calibrated_answers_are_left_alone(criterion):
    choice = hs.choose_calibrator(answers(), criterion=criterion, folds=3)
    assert choice.winner == "none"
    assert choice.criterion == criterion.__name__


def test_fits_never_see_what_they_are_judged_on():
    val, seen = answers(120), []

    def fit(preds):
        seen.append(set(preds.ids.tolist()))
        return Recorder(seen[-1])

    class Recorder:
        fitted = None

        def __init__(self, known):
            self.known = known

        def __call__(self, preds):
            assert not self.known & set(preds.ids.tolist())
            return preds

    hs.choose_calibrator(
        Predictions.from_logits(val.values, val.labels, ids=np.arange(120)),
        calibrators={"recorder": fit},
        folds=4,
    )
    assert [len(s) for s in seen] == [120] + [90] * 4  # all samples, then all folds but one


def test_groups_stay_together():
    val = answers(90)
    grouped = Predictions.from_logits(val.values, val.labels, group=np.arange(90) // 3)

    def fit(preds):
        groups = preds.group.tolist()
        assert all(groups.count(g) == 3 for g in set(groups))
        return Temperature.fit(preds)

    hs.choose_calibrator(grouped, calibrators={"temperature": fit}, folds=3)


def test_folds_give_every_sample_its_own_place():
    choice = hs.choose_calibrator(
        answers(200), calibrators={"same": lambda p: Temperature(1.0)}, folds=4
    )
    none, same = choice.table
    assert same.value == pytest.approx(none.value, abs=1e-12)
    assert same.gain == pytest.approx(0, abs=1e-12)


def test_an_infinite_loss_never_wins():
    plain = {"isotonic": Isotonic.fit}
    rows = {
        row.name: row
        for row in hs.choose_calibrator(answers(300, 3.0), calibrators=plain, folds=3).table
    }
    assert rows["isotonic"].value == np.inf
    assert not rows["isotonic"].real


def test_maps_with_steps_are_kept_away_from_certainty():
    rows = {row.name: row for row in hs.choose_calibrator(answers(300, 3.0), folds=3).table}
    assert np.isfinite(rows["isotonic"].value)


def test_the_simplest_of_equals_wins():
    """Over-confidence that a temperature cures: nothing with more parameters is clearly better."""
    choice = hs.choose_calibrator(answers(1500, 3.0), folds=3)
    rows = {row.name: row for row in choice.table}
    assert choice.winner == "temperature"
    assert rows["temperature"].changed == 0 < rows["diagonal"].changed


def test_what_is_clearly_worse_than_the_best_does_not_win():
    half = {"half": lambda p: Temperature(1.7), "whole": lambda p: Temperature(3.0)}
    choice = hs.choose_calibrator(answers(1500, 3.0), calibrators=half, folds=3)
    assert choice.winner == "whole"
    assert {row.name: (row.real, row.behind) for row in choice.table}["half"] == (True, True)


@pytest.mark.parametrize(
    "fit",
    [
        Temperature.fit,
        VectorScaling.fit,
        MatrixScaling.fit,
        StructuredScaling.fit,
        Platt.fit,
        Beta.fit,
    ],
)
def test_a_start_changes_the_way_and_not_the_end(fit):
    val = answers(1000, 2.0)
    warm, cold = fit(val[:800], start=fit(val)), fit(val[:800])
    assert warm.fitted.nll == pytest.approx(cold.fitted.nll, abs=1e-9)


@pytest.mark.parametrize(
    "fit", [partial(Temperature.fit, mixed=True), Platt.fit, Beta.fit, Isotonic.fit]
)
def test_a_loss_that_is_not_measured_is_not_made_up(fit):
    val = answers(300, 2.0)
    made, quick = fit(val), fit(val, measured=False)
    assert np.isfinite(made.fitted.nll)
    assert np.isnan(quick.fitted.nll)
    assert np.array_equal(made(val).values, quick(val).values)


def test_folds_are_fitted_without_a_loss_that_nobody_reads(monkeypatch):
    """Each sample is mapped twice: by the fit of all for its record, by that of the other folds."""
    mapped = []
    call = Isotonic.__call__
    monkeypatch.setattr(Isotonic, "__call__", lambda self, p: mapped.append(p.n) or call(self, p))
    hs.choose_calibrator(answers(300), calibrators={"isotonic": Isotonic.fit}, folds=3)
    assert mapped == [300, 100, 100, 100]


def test_where_there_is_no_minimum_nothing_of_the_left_out_fold_stays():
    """Classes that a plane separates: a start would decide where the fit ends."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(60, 3)) + 6 * np.eye(3)[np.arange(60) % 3]
    val = Predictions.from_logits(z, np.arange(60) % 3)
    starts = []

    def fit(preds, *, start=None):
        starts.append(start)
        return VectorScaling.fit(preds, start=start)

    hs.choose_calibrator(val, calibrators={"vector": fit}, folds=3)
    assert [start is None for start in starts] == [True] + [False, True] * 3


def test_what_is_left_out_is_said():
    choice = hs.choose_calibrator(answers(100, k=10), folds=2)
    rows = {row.name: row for row in choice.table}
    assert rows["full"].note == "left out: 100 samples, at least 250 are needed"
    assert "full" not in choice.fitted
    assert "left out: 100 samples" in str(choice)


def test_groups_widen_the_limits_of_a_mean():
    val = answers(400, 3.0)
    twice = [
        Predictions.from_logits(np.repeat(val.values, 4, 0), np.repeat(val.labels, 4), group=g)
        for g in (None, np.repeat(np.arange(400), 4))
    ]
    alone, grouped = (
        hs.choose_calibrator(p, calibrators={"t": lambda p: Temperature(2.0)}).table[1]
        for p in twice
    )
    single = hs.choose_calibrator(val, calibrators={"t": lambda p: Temperature(2.0)}).table[1]
    assert grouped.gain_high == pytest.approx(single.gain_high)
    assert alone.gain_high < grouped.gain_high


def test_weights_that_are_equal_change_nothing():
    val = answers(400, 3.0)
    same = Predictions.from_logits(val.values, val.labels, weight=np.full(400, 7.0))
    a, b = (
        hs.choose_calibrator(p, calibrators={"t": Temperature.fit}).table[1] for p in (val, same)
    )
    assert (a.gain, a.gain_low) == pytest.approx((b.gain, b.gain_low))


def test_a_full_matrix_is_tried_from_250_samples_of_3_to_100_classes():
    for n, k, tried in ((249, 3, False), (250, 3, True), (250, 2, False), (250, 101, False)):
        assert ("full" in list_contenders(answers(n, k=k))) is tried


def test_the_field():
    every = ["none", "temperature", "diagonal", "platt", "beta", "full", "isotonic"]
    assert list(list_contenders(answers(300))) == every


def answers_without_error(n=500, k=10):
    """As a network that has learned its samples by heart says it."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, k, n)
    return Predictions.from_logits(rng.normal(size=(n, k)) + 9 * np.eye(k)[y], y)


def test_a_temperature_at_its_bound_never_wins():
    """Without an error the likelihood grows until T is at its bound, and a new error would cost an
    infinite loss.
    """
    val = answers_without_error()
    choice = hs.choose_calibrator(val)
    rows = {row.name: row for row in choice.table}
    for name in ("temperature", "diagonal", "full"):
        assert rows[name].note.startswith("not fitted: its temperature is at a bound (1e-06)")
    wrong = Predictions.from_logits(val.values, (val.labels + 1) % 10)
    assert np.isfinite(hs.nll(choice.calibrator(wrong)))


def test_a_mixed_temperature_claims_nothing_for_certain():
    val = answers(300, 3.0)
    plain, mixed = Temperature.fit(val), Temperature.fit(val, mixed=True)
    assert (mixed.temperature, mixed.samples) == (plain.temperature, 300)
    expected = (300 * plain(val).probs + 1 / 4) / 301
    assert mixed(val).probs == pytest.approx(expected, abs=1e-12)
    as_probs = Predictions.from_probs(val.probs, val.labels)
    assert mixed(as_probs).probs == pytest.approx(expected, abs=1e-4)  # clipped at 1e-12
    assert mixed.fitted.nll == pytest.approx(hs.nll(mixed(val)), abs=1e-12)
    ruled_out = Predictions.from_logits([[0.0, -np.inf, -1.0, -2.0]], [0])
    assert mixed(ruled_out).probs[0, 1] == pytest.approx(1 / 4 / 301)


def test_a_mixed_temperature_mixes_the_average_of_passes():
    rng = np.random.default_rng(0)
    val = Predictions.from_samples(3 * rng.normal(size=(5, 200, 3)), rng.integers(0, 3, 200))
    scaled = Temperature(2.0)(val).probs
    assert Temperature(2.0, samples=9)(val).probs == pytest.approx((9 * scaled + 1 / 3) / 10)


def test_top_labels():
    a = answers(600, 3.0)
    choice = hs.choose_calibrator(Predictions.from_confidence(a.confidence, a.correct), folds=3)
    assert choice.winner in ("platt", "beta")
    assert choice.criterion == "correctness_nll"


def test_text_marks_the_winner():
    text = str(
        hs.choose_calibrator(
            answers(300, 3.0), calibrators={"temperature": Temperature.fit}, folds=3
        )
    )
    assert "temperature" in text
    assert text.count("<- chosen") == 1


def test_too_few_samples_for_the_folds():
    with pytest.raises(InputError, match="3 samples cannot be dealt into 5 folds"):
        hs.choose_calibrator(answers(3))


def test_report_says_better():
    report = hs.calibration_report(answers(scale=3.0), answers(scale=3.0, seed=1), "temperature")
    verdicts = {c.metric: c.verdict for c in report.changes}
    assert verdicts["nll"] == verdicts["ece"] == "better"
    assert verdicts["accuracy"] == "unchanged"
    assert all(
        "made UCE worse" in note for note in report.notes
    )  # honest confidence and honest entropy differ
    assert [row[0] for row in report.rows()] == ["metric", *verdicts]
    json.dumps(report.to_dict(), allow_nan=False)


def test_an_order_that_stays_is_not_called_worse():
    """Draws are made on a coarse table, which may differ between two scales of one order."""
    rng = np.random.default_rng(0)
    c = rng.beta(8, 1, 5000)
    before = Predictions.from_confidence(c, rng.random(5000) < c**2)
    report = hs.calibration_report(before, before, "platt")
    assert {x.metric: x.verdict for x in report.changes}["aurc"] == "unchanged"
    assert "ranking_unchanged" in [f["name"] for f in report.findings]


def test_many_samples_have_normal_limits_of_their_mean_loss(monkeypatch):
    before, after = answers(2000, scale=3.0), answers(2000, scale=1.0)
    drawn = {c.metric: c.difference for c in choice.compare_before_after(before, after)}["nll"]
    monkeypatch.setattr(choice, "NORMAL_MEAN_SAMPLES", 1000)
    normal = {c.metric: c.difference for c in choice.compare_before_after(before, after)}["nll"]
    assert normal[0] == pytest.approx(drawn[0])
    assert normal[1:] == pytest.approx(drawn[1:], abs=0.15 * (drawn[2] - drawn[1]))


def test_report_says_when_it_does_harm():
    """A validation set that is overconfident, a test set that is not."""
    report = hs.calibration_report(answers(scale=3.0), answers(seed=1), "temperature")
    assert {c.metric: c.verdict for c in report.changes}["nll"] == "worse"
    assert "calibration_made_it_worse" in [f["name"] for f in report.findings]
    assert not any("made NLL worse" in note for note in report.notes)  # the finding says so
    assert any("temperature made ECE worse on the test set" in note for note in report.notes)
    assert "the two sets are not alike" in report.notes[-1]


def test_report_of_calibrated_answers_does_nothing():
    report = hs.calibration_report(answers(600), answers(600, seed=1), folds=2)
    assert report.method == "none"
    assert {c.verdict for c in report.changes} == {"unchanged"}
    assert report.findings == ()
    assert "doing nothing" in report.notes[0]
    assert list(report.methods)[:2] == ["none", "temperature"]


def rank_in_numpy(score, correct):
    """AURC of a score without ties: the mean error of the most trusted 1, 2, …, n."""
    wrong = 1.0 - correct[np.argsort(-score)]
    return (np.cumsum(wrong) / np.arange(1, len(wrong) + 1)).mean()


def test_scores_that_only_rank_stand_beside_the_calibrators():
    test = answers(400, scale=3.0, seed=1)
    distance = np.random.default_rng(2).random(400) + test.correct
    report = hs.calibration_report(
        answers(400, scale=3.0),
        test.with_attributes({"boundary_distance": distance}),
        "temperature",
    )
    assert list(report.methods) == ["none", "temperature", "entropy", "boundary distance"]
    assert list(report.diagrams) == list(report.methods)
    entropy = -(test.probs * np.log(test.probs)).sum(axis=1)
    assert report.methods["entropy"] == {
        "aurc": pytest.approx(rank_in_numpy(-entropy, test.correct))
    }
    assert report.methods["boundary distance"]["aurc"] == pytest.approx(
        rank_in_numpy(distance, test.correct)
    )
    rows = report.to_text().partition("All methods on the same data")[2].splitlines()
    assert "AAC (AURC)" in rows[1]
    ranked = [row.split() for row in rows if row.startswith(("entropy", "boundary"))]
    assert [len(row) for row in ranked] == [2, 3]  # a name and one number


def test_entropy_of_two_classes_is_no_other_order():
    two = hs.Predictions.from_probs(np.linspace(0.1, 0.9, 40), [0, 1] * 20)
    assert list(hs.calibration_report(two, two, "temperature").methods) == ["none", "temperature"]


def test_a_distance_that_is_no_number_is_refused():
    test = answers(50).with_attributes({"boundary_distance": [np.nan] + [1.0] * 49})
    with pytest.raises(InputError, match="boundary_distance"):
        hs.calibration_report(answers(50), test, "temperature")


def test_report_of_an_unknown_method():
    with pytest.raises(
        InputError, match="there is no calibrator 'temprature'; known: all, none, temperature"
    ):
        hs.calibration_report(answers(50), answers(50), "temprature")


def test_world_cup_harm_is_reported(arrays):
    """Temperature lowers the loss on validation games and raises the calibration error on test
    games.
    """
    a = arrays("f538_worldcup_ingame")
    val, test = (Predictions.from_probs(a[f"{s}_probs"], a[f"{s}_labels"]) for s in ("val", "test"))
    report = hs.calibration_report(val, test, "temperature")
    ece = next(c for c in report.changes if c.metric == "ece")
    assert ece.after[0] > ece.before[0]
    assert any(
        "temperature did not lower ECE on the test set: 0.041" in note for note in report.notes
    )


def test_identical_predictions_are_unchanged() -> None:
    before = answers(200)
    for change in choice.compare_before_after(before, Temperature(1.0)(before)):
        assert change.verdict == "unchanged", change.metric
        assert change.difference == (0.0, 0.0, 0.0)


@pytest.mark.long
@pytest.mark.parametrize("name", ["ak_resnet20_c10", "eurosat_rgb"])
@pytest.mark.parametrize("errors", [True, False])
def test_no_draw_is_calibrated_to_an_infinite_loss(name, errors, arrays):
    """75 draws of 60 to 500 rows for each: the loss of the whole test set stays finite."""
    a = arrays(name)
    val, test = (
        Predictions.from_logits(a[f"{s}_logits"], a[f"{s}_labels"]) for s in ("val", "test")
    )
    pool = np.arange(val.n) if errors else np.flatnonzero(val.correct)
    rng = np.random.default_rng(0)
    for _ in range(75):
        rows = rng.choice(pool, rng.integers(60, 501), replace=False)
        choice = hs.choose_calibrator(val[rows])
        for candidate in choice.fitted.values():
            assert np.isfinite(hs.nll(candidate(test)))


def test_text_needs_no_diagrams():
    val, test = answers(300, 3.0), answers(300, 3.0, seed=1)
    page, text = (hs.calibration_report(val, test, "temperature", page=p) for p in (True, False))
    assert set(page.to_dict()["diagrams"]) >= {"none", "temperature"}
    assert "diagrams" not in text.to_dict()
    assert text.to_text() == page.to_text()
