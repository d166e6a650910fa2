"""Every sentence of a verdict says what plain NumPy says, and no row of its own report disagrees.

Worlds whose data are made here, and real sets cut to sizes from 30 to 20,000. A sentence that no
pattern knows fails, so that a new one comes with its check.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import betaincinv
from tests.conftest import shared_or_skip
from tests.real_sets import SETS

import howsure as hs
from howsure import Predictions
from howsure.predictions.read_options import ReadOptions

NUMBER = r"(-?[\d,]*\.?\d+)"
BETWEEN = rf"{NUMBER}(?: %)?(?:,? \(?{NUMBER}(?:–| to ){NUMBER}\)?)?"
ECE = rf"(?:\(ECE {NUMBER}(?:; {NUMBER} would be chance)?\))"
REAL_SETS = {
    "ak_resnet20_c10": 30,
    "ak_resnet32_c10": 300,
    "cleanlab_imdb": 2000,
    "cleanlab_mnist": 20_000,
    "eurosat_rgb": 1000,
    "f538_mlb": 5000,
    "f538_nfl": 500,
    "hollance_snacks": 200,
    "in1k_tv_resnext101_32x8d": 3000,
    "llm_mmlu_gpt_35_turbo": 8000,
    "netcal_densenet_bc_100_c100": 100,
    "nn_resnet110_c100_top": 4000,
}
UNSPLIT_FILES = {
    "data2/clinical_dcurves/df_binary.csv": ReadOptions(
        names={"probs": "cancerpredmarker", "labels": "cancer"}
    ),
    "data2/clinical_dcurves/df_cancer_dx2.csv": ReadOptions(
        names={"probs": "cancerpredmarker", "labels": "cancer"}
    ),
    "data2/multilabel_chexnet/chexnet_nih14.npz": ReadOptions(multilabel=True),
}
IMAGENET_FILES = (
    "timm_densenetblur121d",
    "timm_efficientnet_b1",
    "timm_mobilenetv3_large_100",
    "timm_resnet34",
    "tv_densenet161",
    "tv_resnet101",
)
REAL_FILES = [
    *(f"data/{name}.npz" for name in SETS if name != "seg_unet_membrane"),
    *(f"imagenet_models/{name}.npz" for name in IMAGENET_FILES),
    *UNSPLIT_FILES,
]


class World(NamedTuple):
    """A report with the arrays that it is about."""

    preds: Predictions
    report: dict[str, Any]
    claim: Any
    right: Any
    weight: Any

    @property
    def tested(self) -> tuple[Any, Any]:
        """The claims that a test of calibration looks at: of two classes P(positive)."""
        if self.report["k"] == 2:
            return self.preds.probs[:, 1], self.preds.labels == 1
        return self.claim, self.right


def make_world(preds: Predictions) -> World:
    weight = np.ones(preds.n) if preds.weight is None else preds.weight
    report: Any = hs.evaluate(preds, ["max_prob"]).data
    return World(preds, report, preds.confidence, preds.correct, weight)


def to_float(text: str) -> float:
    return float(text.replace(",", ""))


def agrees(text: str, value: float, scale: float = 1) -> bool:
    """Whether a printed number is this value, rounded to its digits."""
    digits = len(text.partition(".")[2])
    return abs(to_float(text) - scale * value) <= 0.5000001 * 10.0**-digits


def check_limits(row: Any, low: str | None, high: str | None, scale: float = 1) -> None:
    if low is None or high is None:
        assert row.get("low") is None
    else:
        assert agrees(low, row["low"], scale)
        assert agrees(high, row["high"], scale)


# What each sentence must mean


def check_accuracy(w: World, right: str, n: str, share: str, low: str, high: str) -> None:
    assert (to_float(right), to_float(n)) == (w.right.sum(), len(w.right))
    assert agrees(share, w.right.mean(), 100)
    check_limits(w.report["metrics"]["accuracy"], low, high, 100)
    if w.preds.group is None:
        k, m = int(w.right.sum()), len(w.right)
        exact_low = betaincinv(k, m - k + 1, 0.025) if k else 0.0
        exact_high = betaincinv(k + 1, m - k, 0.975) if k < m else 1.0
        assert agrees(low, exact_low, 100)
        assert agrees(high, exact_high, 100)


def check_weighted_accuracy(w: World, share: str, low: str, high: str) -> None:
    assert w.preds.weight is not None
    assert agrees(share, float(np.average(w.right, weights=w.weight)), 100)
    check_limits(w.report["metrics"]["accuracy"], low, high, 100)


def get_constant(w: World) -> tuple[str, Any]:
    """The constant answer, and where it is right."""
    labels = np.asarray(w.preds.labels)
    if "labels" in w.report:
        return "absent", labels == 0
    values, counts = np.unique(labels, return_counts=True)
    common = values[np.argmax(counts)]
    names = w.preds.class_names
    return str(common) if names is None else names[int(common)], labels == common


def check_constant(w: World, answer: str, share: str, beside: str | None) -> None:
    name, right = get_constant(w)
    assert answer == name
    assert agrees(share, right.mean(), 100)
    ours, theirs = (w.right & ~right).sum(), (right & ~w.right).sum()
    n = len(right)
    a, b = (ours + 1) / (n + 2), (theirs + 1) / (n + 2)
    reach = 1.959964 * sqrt((a + b - (a - b) ** 2) / (n + 2))
    if w.preds.group is None:
        assert (beside == "clearly more") == (a - b + reach < 0)
        assert (beside == "not clearly less") == (a - b - reach <= 0 <= a - b + reach)
    else:
        assert (beside == "clearly more") <= (a < b)


def check_groups(w: World, groups: str) -> None:
    assert int(groups) == len(np.unique(w.preds.group)) < 10


def compute_auc(score: Any, positive: Any) -> float:
    order = np.concatenate([score[positive], score[~positive]])
    _, place, count = np.unique(order, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place.reshape(-1)]
    m, k = int(positive.sum()), int((~positive).sum())
    return float((rank[:m].sum() - m * (m + 1) / 2) / (m * k))


def check_class_auc(w: World, auc: str, low: str, high: str, missed: str, of: str, s: str) -> None:
    positive = w.preds.labels == 1
    assert agrees(auc, compute_auc(w.preds.probs[:, 1], positive))
    check_limits(w.report["binary"]["numbers"]["class_auroc"], low, high)
    check_missed(w, missed, of, s)


def check_label_auc(w: World, auc: str, low: str, high: str, missed: str, of: str, s: str) -> None:
    names = len(w.report["labels"]["rows"])
    p = w.preds.probs[:, 1].reshape(-1, names)
    y = np.asarray(w.preds.labels).reshape(-1, names) == 1
    each = [compute_auc(p[:, i], y[:, i]) for i in range(names) if 0 < y[:, i].sum() < len(y)]
    assert agrees(auc, float(np.mean(each)))
    check_limits(w.report["metrics"]["macro_auroc"], low, high)
    check_missed(w, missed, of, s)


def check_missed(w: World, missed: str, positives: str, share: str) -> None:
    positive = w.preds.labels == 1
    assert to_float(positives) == positive.sum()
    assert to_float(missed) == (positive & (w.preds.prediction != 1)).sum()
    assert agrees(share, (positive & (w.preds.prediction != 1)).sum() / positive.sum(), 100)


def check_none_positive(w: World) -> None:
    assert not (w.preds.labels == 1).any()


def find_offer(w: World, risk: str) -> Any:
    offers = [g for g in w.report["guarantees"] if agrees(risk, g["risk"], 100)]
    assert len(offers) == 1
    assert "empty" not in offers[0]
    return offers[0]


def check_automation(w: World, share: str | None, risk: str) -> None:
    offer = find_offer(w, risk)
    kept = w.claim >= offer["threshold"]
    assert agrees(share or "100", kept.mean(), 100)
    assert (share is None) == bool(kept.all())
    assert 1 - w.right[kept].mean() <= offer["risk"] or w.preds.group is not None
    # At this threshold alone the exact upper limit keeps the risk too.
    if w.preds.group is None:
        n, wrong = int(kept.sum()), int((~w.right[kept]).sum())
        assert wrong == n or betaincinv(wrong + 1, n - wrong, 0.95) <= offer["risk"] + 1e-9


def check_saying_no(w: World, share: str | None, risk: str) -> None:
    check_automation(w, share, risk)
    kept = w.claim >= find_offer(w, risk)["threshold"]
    assert not (w.preds.prediction[kept] == 1).any()


def check_empty(w: World, risk: str, answer: str) -> None:
    name, right = get_constant(w)
    assert answer == name
    assert 100 * (1 - right.mean()) < to_float(risk)
    assert all("empty" in g for g in w.report["guarantees"])


def check_no_guarantee(w: World) -> None:
    few = w.preds.group is not None and len(np.unique(w.preds.group)) < 10
    assert few or w.preds.weight is not None


def check_out_of_reach(w: World, risk: str) -> None:
    order = np.argsort(-w.claim, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(w.claim[order]) != 0, True))
    error = np.cumsum(~w.right[order])[ends] / (ends + 1)
    assert (100 * error > to_float(risk)).all()


def check_labels_needed(w: World, unit: str, needed: str | None) -> None:
    assert not any(g["feasible"] for g in w.report["guarantees"] if "empty" not in g)
    have = w.preds.n
    if unit != "labels":
        have = (
            len(np.unique(w.preds.group))
            if "labels" not in w.report
            else w.report["labels"]["cases"]
        )
    assert needed is None or to_float(needed) > have


def check_useless_score(w: World) -> None:
    auroc = w.report["metrics"]["auroc"]
    value = compute_auc(w.claim, w.right)
    assert value < 0.6
    assert auroc["low"] is None or auroc["low"] <= 0.5


def check_unclear_score(w: World) -> None:
    auroc = w.report["metrics"]["auroc"]
    assert auroc["low"] <= 0.5 <= auroc["high"]


def compute_ece(claim: Any, right: Any, weight: Any) -> float:
    place = np.clip(np.ceil(claim * 15 - 1e-12).astype(int) - 1, 0, 14)
    gap = np.bincount(place, weight * (claim - right), 15)
    return float(np.abs(gap).sum() / weight.sum())


def check_ece(w: World, ece: str | None) -> None:
    if ece is not None:
        assert agrees(ece, w.report["metrics"]["ece"]["value"])
        assert abs(to_float(ece) - compute_ece(w.claim, w.right, w.weight)) < 2e-3


def check_shift(w: World, way: str, points: str, ece: str) -> None:
    gap = float(w.claim.mean() - w.right.mean())
    assert (way == "over") == (gap > 0)
    assert agrees(points, abs(gap), 100)
    signed = w.report["metrics"]["signed_calibration_error"]
    if signed.get("low") is not None:
        assert signed["high"] > 0 if way == "over" else signed["low"] < 0
    check_ece(w, ece)


def check_tilt(w: World, way: str, move: str, ece: str) -> None:
    assert (way, move) in {("extreme", "closer to"), ("timid", "further from")}
    step = 1e-6 if way == "extreme" else -1e-6
    moved = w.claim + step * (1 - 2 * w.claim)
    assert ((w.right - moved) ** 2).sum() < ((w.right - w.claim) ** 2).sum()
    check_ece(w, ece)


def check_places(w: World, points: str, ece: str) -> None:
    assert w.report["calibration_test"]["p"] <= 0.05
    assert abs(to_float(points) / 100 - compute_ece(w.claim, w.right, w.weight)) < 2e-3
    check_ece(w, ece)


def check_found_places(w: World, ece: str) -> None:
    assert w.report["findings"] or w.report["binary"]["calibration_test"]["p"] <= 0.05
    check_ece(w, ece)


def check_class_defects(w: World, text: str) -> None:
    """Slope, calibration in the large and ratio as they are said, with limits that leave out the
    perfect value.
    """
    p, y = w.preds.probs[:, 1], w.preds.labels == 1
    said = 0
    for way, value, low, high in re.findall(
        rf"too (extreme|timid) \(calibration slope {BETWEEN}\)", text
    ):
        row = w.report["binary"]["calibration_slope"]
        assert agrees(value, row["value"])
        check_limits(row, low, high)
        assert row["high"] < 1 if way == "extreme" else row["low"] > 1
        said += 1
    for way, value, low, high in re.findall(
        rf"too (high|low) on average \(calibration in the large {BETWEEN}\)", text
    ):
        row = w.report["binary"]["numbers"]["calibration_in_the_large"]
        assert agrees(value, row["value"])
        check_limits(row, low, high)
        # The sum of the probabilities is too high where the fitted line lies below them.
        assert (row["high"] < 0 and p.sum() > y.sum()) if way == "high" else row["low"] > 0
        said += 1
    for way, value, low, high in re.findall(
        rf"too (high|low) on average \(observed / expected {BETWEEN}\)", text
    ):
        row = w.report["binary"]["numbers"]["observed_expected"]
        assert agrees(value, y.sum() / p.sum())
        check_limits(row, low, high)
        assert row["high"] < 1 if way == "high" else row["low"] > 1
        said += 1
    assert said


def check_hint(w: World, text: str, ece: str) -> None:
    test = w.report.get("calibration_test")
    if w.report["k"] == 2:
        test = w.report["binary"].get("calibration_test")
    assert test is None or test["p"] > 0.05
    if "probability of" in text:
        check_class_defects(w, text)
    elif "confidence − accuracy" in text:
        row = w.report["metrics"]["signed_calibration_error"]
        assert row["low"] > 0 if "overconfident" in text else row["high"] < 0
    else:
        assert any(
            (w.report["metrics"][name].get("low") or 0) > 0
            for name in ("ece", "aece", "debiased_ece")
            if name in w.report["metrics"]
        )
    check_ece(w, ece)


def check_same_confidence(w: World, claim: str, right: str) -> None:
    assert len(np.unique(w.claim)) == 1
    assert to_float(claim) == pytest.approx(100 * w.claim[0], abs=0.06)
    assert to_float(right) == pytest.approx(100 * w.right.mean(), abs=0.06)


def check_no_error(w: World, under: str, expected: str, chance: str, ece: str) -> None:
    assert w.right.all()
    assert agrees(expected, float((1 - w.claim).sum()))
    product = float(np.exp(np.log(w.claim).sum()))
    if chance.startswith("less"):
        assert product < 0.001
    elif chance.startswith("more"):
        assert product > 0.99
    else:
        assert to_float(chance.removesuffix(" %")) == pytest.approx(100 * product, rel=0.06)
    assert bool(under) == (w.report["calibration_test"]["p"] <= 0.05)
    check_ece(w, ece)


def check_no_error_expected(w: World, ece: str) -> None:
    assert w.right.all()
    assert (w.claim == 1).all()
    check_ece(w, ece)


def check_hardly_any(w: World, most: str, risk: str) -> None:
    """The upper limit of the coverage at this risk, which no share of these answers exceeds."""
    row = w.report["metrics"][f"coverage_at_risk_{to_float(risk) / 100:g}"]
    assert agrees(most, row["high"], 100)
    assert row["value"] <= row["high"] < 0.05
    assert not any(g["feasible"] for g in w.report["guarantees"])


def compute_gap(w: World) -> float:
    claim, _ = w.tested
    return (3.2 * sqrt(float((claim * (1 - claim)).sum())) + 2) / len(claim)


def check_rows_hold_perfect_values(w: World) -> None:
    """No row that is shown leaves out the value of a perfect confidence."""
    metrics, binary = w.report["metrics"], w.report["binary"]
    signed = metrics["signed_calibration_error"]
    assert signed.get("low") is None or signed["low"] <= 0 <= signed["high"]
    for name in ("ece", "aece", "debiased_ece"):
        assert (metrics.get(name, {}).get("low") or 0) <= 0, name
    if w.report["k"] == 2:
        for row in (binary["calibration_slope"], binary["numbers"]["observed_expected"]):
            assert row.get("low") is None or row["low"] <= 1 <= row["high"]
        row = binary["numbers"]["calibration_in_the_large"]
        assert row.get("low") is None or row["low"] <= 0 <= row["high"]


def check_nothing(w: World, points: str, ece: str) -> None:
    check_rows_hold_perfect_values(w)
    if w.preds.group is None:
        assert to_float(points) == pytest.approx(100 * compute_gap(w), rel=0.03, abs=0.06)
    assert to_float(points) <= 10
    check_ece(w, ece)


def check_too_few(w: World, points: str | None) -> None:
    check_rows_hold_perfect_values(w)
    if points is None:
        assert compute_gap(w) >= 1
        return
    assert to_float(points) >= 10
    if w.preds.group is None:
        assert to_float(points) == pytest.approx(100 * compute_gap(w), rel=0.03, abs=0.6)


def check_untested(w: World, ece: str) -> None:
    assert w.preds.weight is not None
    check_ece(w, ece)


OF_CLASS = r"[Ii]ts probability of (?:a label|class 1|\w+)"
WHAT = rf"(?:its confidence as a probability|{OF_CLASS})"
TRUSTED = rf"(?:its confidence can be trusted as a probability|{OF_CLASS} can be trusted)"
PROMISE = rf"guaranteed at most {NUMBER} % wrong among such answers \(95 % confidence\)\."
SHARE = rf"(?:all answers|the most confident {NUMBER} %)"
DEFECTS = r"too (?:extreme|timid|high|low)[^;]*?\)"
SENTENCES: list[tuple[str, Callable[..., None]]] = [
    (rf"It got {NUMBER} of {NUMBER}(?: labels)? right: {BETWEEN}\.", check_accuracy),
    (rf"It got {NUMBER} % right(?: \({NUMBER}–{NUMBER}\))?\.", check_weighted_accuracy),
    (
        rf'Always answering "(.*?)" would get {NUMBER} %'
        r"(?:, which is (clearly more|not clearly less))?\.",
        check_constant,
    ),
    (r"The limits are for these (\d+) groups in this mix\.", check_groups),
    (
        rf"AUC of class 1: {BETWEEN}; it misses {NUMBER} of {NUMBER} cases? of class 1 "
        rf"\({NUMBER} %\)\.",
        check_class_auc,
    ),
    (
        rf"Mean AUC of the labels: {BETWEEN}; it misses {NUMBER} of {NUMBER} labels that are "
        rf"present \({NUMBER} %\)\.",
        check_label_auc,
    ),
    (
        r"(?:AUC of class 1|Mean AUC of the labels) does not exist here; there is no "
        r"(?:case of class 1|label that is present)\.",
        check_none_positive,
    ),
    (
        rf"AUC of class 1 does not exist here; it misses {NUMBER} of {NUMBER} cases? of class 1 "
        rf"\({NUMBER} %\)\.",
        check_missed,
    ),
    (rf"Automate {SHARE}: {PROMISE}", check_automation),
    (
        rf"It may be left to say no to {SHARE}, among which it makes no positive call: {PROMISE}",
        check_saying_no,
    ),
    (
        rf"A guarantee of at most {NUMBER} % errors would be empty: always answering "
        r'"(.*?)" keeps it\.',
        check_empty,
    ),
    (r"No guarantee: [^.]*\.", check_no_guarantee),
    (
        rf"Even the most confident answers are wrong more than {NUMBER} % of the time\.",
        check_out_of_reach,
    ),
    (
        r"Not enough (labels|groups|cases) to guarantee at most (?:1|5) % errors"
        rf"(?:; about {NUMBER} would usually be enough|, or to tell how many would be)\.",
        check_labels_needed,
    ),
    (
        r"Its confidence does not tell right answers from wrong ones, so deferring by it would "
        r"not help\.",
        check_useless_score,
    ),
    (
        r"Too few answers to tell whether its confidence separates right answers from wrong ones\.",
        check_unclear_score,
    ),
    (
        rf"It is (over|under)confident by {NUMBER} points on average {ECE}\.(?: Group .*? is "
        r"furthest off\.)?",
        lambda w, way, points, ece, _floor: check_shift(w, way, points, ece),
    ),
    (
        rf"Its confidence is too (extreme|timid): values (closer to|further from) 50 % would fit better {ECE}\."
        r"(?: Group .*? is furthest off\.)?",
        lambda w, way, move, ece, _floor: check_tilt(w, way, move, ece),
    ),
    (
        rf"Its confidence is off in places, by {NUMBER} points on average {ECE}\."
        r"(?: Group .*? is furthest off\.)?",
        lambda w, points, ece, _floor: check_places(w, points, ece),
    ),
    (
        rf"(?:Its confidence|{OF_CLASS}) is off in places {ECE}(?:; see the findings)?\.",
        lambda w, ece, _floor: check_found_places(w, ece),
    ),
    (rf"{OF_CLASS} is ({DEFECTS})\.", check_class_defects),
    (
        r"Its confidence is the same for every answer, so it cannot rank them: it claims "
        rf"{NUMBER} % where {NUMBER} % are right\.",
        check_same_confidence,
    ),
    (
        r"There is a hint that (.*?); (?:it was not tested|the test does not confirm it, "
        rf"p [=<] [\d.]+) {ECE}\.",
        lambda w, text, ece, _floor: check_hint(w, text, ece),
    ),
    (
        rf"(?:(It is underconfident: no)|No) answer is wrong, where its confidence expects "
        rf"{NUMBER} wrong ones; if that is true, it happens (less than 0.1 %|more than 99 %|[\d.]+ %) of "
        rf"the time {ECE}\.",
        lambda w, under, expected, chance, ece, _floor: check_no_error(
            w, under, expected, chance, ece
        ),
    ),
    (
        rf"No answer is wrong, and its confidence expects no error {ECE}\.",
        lambda w, ece, _floor: check_no_error_expected(w, ece),
    ),
    (
        rf"No more than {NUMBER} % of such answers could be automated with at most {NUMBER} % "
        r"errors\.",
        check_hardly_any,
    ),
    (
        rf"Nothing contradicts {WHAT}; a gap of {NUMBER} points would probably "
        rf"have shown {ECE}\.",
        lambda w, points, ece, _floor: check_nothing(w, points, ece),
    ),
    (
        rf"Too few answers to tell whether {TRUSTED}(?:: only a gap of "
        rf"about {NUMBER} points would probably show)?\.",
        check_too_few,
    ),
    (
        rf"Whether {TRUSTED} was not tested: the samples carry weights "
        rf"{ECE}\.",
        lambda w, ece, _floor: check_untested(w, ece),
    ),
]


def check_verdict(w: World) -> int:
    """Every sentence of the verdict; how many there were."""
    count = 0
    for text in w.report["verdict"]:
        rest = text
        while rest:
            for pattern, check in SENTENCES:
                found = re.match(rf"{pattern}(?: |$)", rest)
                if found:
                    check(w, *found.groups())
                    rest, count = rest[found.end() :], count + 1
                    break
            else:
                pytest.fail(f"no check knows this sentence: {rest}")
    names = "Always answering" in " ".join(w.report["verdict"])
    if w.preds.group is None and w.preds.weight is None and "base_rate" in w.report:
        _, right = get_constant(w)
        two = w.report["k"] == 2
        assert names >= (two or right.mean() >= 0.5 or w.right.mean() <= right.mean())
    return count


# What each finding must mean; `evidence` has the ends of ranges, which sentences round


def check_sure_and_wrong(
    w: World, wrong: str, of: str, expected: str, least: float
) -> tuple[Any, Any]:
    """Answers at least this sure; of the claims, and where they are right."""
    # A claim that is 0.9 but for the last bit counts.
    top = w.claim >= least - 1e-9
    claim, right = w.claim[top], w.right[top]
    assert to_float(wrong) == (~right).sum() > (1 - claim).sum()
    assert of is None or to_float(of) == top.sum()
    assert agrees(expected, float((1 - claim).sum()))
    return claim, right


def check_sure_end(
    w: World, _e: Any, cut: str, wrong: str, of: str, expected: str, right: str, claim: str
) -> None:
    claims, rights = check_sure_and_wrong(w, wrong, of, expected, to_float(cut))
    assert agrees(right, rights.mean(), 100)
    assert agrees(claim, claims.mean(), 100)


def check_doubtful_labels(w: World, _e: Any, wrong: str, cut: str, expected: str) -> None:
    check_sure_and_wrong(w, wrong, None, expected, to_float(cut) / 100)


def check_mean_claim(w: World, _e: Any, way: str, claim: str, right: str) -> None:
    assert (way == "Over") == (w.claim.mean() > w.right.mean())
    assert agrees(claim, w.claim.mean(), 100)
    assert agrees(right, w.right.mean(), 100)


def get_gap(w: World, low: float, high: float) -> float:
    inside = (w.claim >= low) & (w.claim <= high)
    return float((w.claim[inside] - w.right[inside]).mean())


def check_hidden_error(w: World, e: Any, *said: str | None) -> None:
    bin_low, bin_high, gap, of_piece, low, high, at = said
    pairs = zip((bin_low, bin_high, low or at, high or at), (*e["bin"], *e["piece"]), strict=True)
    for text, end in pairs:
        assert text is not None
        assert to_float(text) == pytest.approx(end, rel=1e-2)
    assert (at is not None) == (e["piece"][0] == e["piece"][1])
    assert gap is not None
    assert agrees(gap, get_gap(w, *e["bin"]))
    assert of_piece is not None
    assert agrees(of_piece, get_gap(w, *e["piece"]))
    assert abs(get_gap(w, *e["piece"])) > 2 * abs(get_gap(w, *e["bin"])) - 1e-9


def check_cancelling_errors(w: World, e: Any, low: str, high: str, gap: str, *_: str) -> None:
    assert to_float(low) == pytest.approx(e["bin"][0], rel=1e-2)
    assert to_float(high) == pytest.approx(e["bin"][1], rel=1e-2)
    assert agrees(gap, get_gap(w, *e["bin"]))
    assert min(e["gaps"]) < 0 < max(e["gaps"])


def check_saturation(w: World, _e: Any, share: str, wrong: str) -> None:
    assert agrees(share, (w.claim == 1).mean(), 100)
    assert to_float(wrong) == (~w.right[w.claim == 1]).sum()


def check_worse_class(w: World, _e: Any, name: str, right: str, claim: str, n: str) -> None:
    names = w.preds.class_names or ("absent", "present")
    if w.preds.class_names is None and "labels" not in w.report:
        names = tuple(map(str, range(w.preds.k or 0)))
    here = w.preds.prediction == names.index(name)
    assert to_float(n) == here.sum()
    assert agrees(right, w.right[here].mean(), 100)
    assert agrees(claim, w.claim[here].mean(), 100)


def check_worse_group(w: World, e: Any, name: str, error: str, others: str) -> None:
    here = np.asarray(w.preds.group).astype(str) == name
    assert agrees(error, 1 - w.right[here].mean(), 100)
    assert agrees(others, 1 - w.right[~here].mean(), 100)
    assert e["error"] == pytest.approx(1 - w.right[here].mean())


def check_unsafe_top(w: World, _e: Any, *said: str) -> None:
    share, wrong, n, next_share, next_wrong, next_n = said
    top, last = int(to_float(n)), int(to_float(n) + to_float(next_n))
    order = np.argsort(-w.claim, kind="stable")
    claim, right = w.claim[order], w.right[order]
    for end in (top, last):  # ties stay together
        assert end == len(claim) or claim[end - 1] > claim[end]
    assert to_float(wrong) == (~right[:top]).sum()
    assert to_float(next_wrong) == (~right[top:last]).sum()
    assert agrees(share, top / len(claim), 100)
    assert agrees(next_share, (last - top) / len(claim), 100)


def check_one_thin_bin(w: World, _e: Any, gap: str, n: str, claim: str, solid: str) -> None:
    place = np.clip(np.ceil(w.claim * 15 - 1e-12).astype(int) - 1, 0, 14)
    count = np.bincount(place, minlength=15)
    sums = np.bincount(place, w.claim - w.right, 15)
    gaps = np.abs(sums) / np.maximum(count, 1)
    worst = int(np.argmax(gaps))
    assert to_float(gap) == pytest.approx(gaps[worst], rel=1e-2)
    assert to_float(n) == count[worst] < 30
    assert to_float(claim) == pytest.approx(w.claim[place == worst].mean(), rel=1e-2)
    assert to_float(solid) == pytest.approx(gaps[count >= 30].max(), rel=1e-2)


def check_no_ranking(w: World, _e: Any, pairs: str | None = None) -> None:
    low = w.report["metrics"]["auroc"].get("low")
    assert low is None or low <= 0.5
    assert (pairs is None) == (len(np.unique(w.claim)) == 1)
    assert pairs is None or agrees(pairs, compute_auc(w.claim, w.right), 100)


def check_thin_bins(w: World, e: Any, *_: str) -> None:
    assert e["share"] > 0.5


SIGNED = r"([+-][\d.]+)"
PIECE = rf"{SIGNED} (?:from {NUMBER} to {NUMBER}|at {NUMBER})"
FINDINGS: list[tuple[str, Callable[..., None]]] = [
    (
        rf"Overconfident above {NUMBER}: {NUMBER} of {NUMBER} such answers (?:is|are) wrong where the "
        rf"confidences imply {NUMBER}\. They are right {NUMBER} % of the time and claim {NUMBER} %\.",
        check_sure_end,
    ),
    (
        rf"Sure and wrong: {NUMBER} answers are wrong although the model is at least {NUMBER} % "
        rf"sure, where {NUMBER} would be expected\. .*",
        check_doubtful_labels,
    ),
    (
        rf"(Over|Under)confident: it claims to be right {NUMBER} % of the time and is right "
        rf"{NUMBER} %\.",
        check_mean_claim,
    ),
    (
        rf"An error hides in a wide bin: between {NUMBER} and {NUMBER} confidence and accuracy "
        rf"differ by {SIGNED} on the whole, but by {PIECE}\. Adaptive bins show it\.",
        check_hidden_error,
    ),
    (
        rf"Errors cancel inside a bin: between {NUMBER} and {NUMBER} the gap is only {SIGNED}, but "
        rf"{PIECE} and {PIECE}\. The ECE does not see this\.",
        check_cancelling_errors,
    ),
    (
        rf"{NUMBER} % of the confidences are exactly 1, {NUMBER} of these answers (?:is|are) wrong\. .*",
        check_saturation,
    ),
    (
        rf"Answers of class (.*?) are right {NUMBER} % of the time and claim {NUMBER} %: "
        rf"overconfident beyond the rest \({NUMBER} answers\)\.",
        check_worse_class,
    ),
    (
        rf"Group (.*?) is answered wrongly {NUMBER} % of the time, the others {NUMBER} %\.",
        check_worse_group,
    ),
    (
        rf"The most confident {NUMBER} % are wrong more often \({NUMBER} of {NUMBER}\) than the "
        rf"next {NUMBER} % \({NUMBER} of {NUMBER}\): .*",
        check_unsafe_top,
    ),
    (
        rf"The MCE of {NUMBER} comes from {NUMBER} samples? around {NUMBER}; among bins of 30 "
        rf"samples and more the largest gap is {NUMBER}\. .*",
        check_one_thin_bin,
    ),
    (r"The score is the same for every answer, so it cannot rank them\.", check_no_ranking),
    (
        r"(?:The score ranks the wrong way round|The score does not tell right answers from wrong "
        r"ones|Too few answers to tell whether the score separates right from wrong): a right "
        rf"answer outranks a wrong one in {NUMBER} % of pairs\.",
        check_no_ranking,
    ),
    (
        r"(?:[\d.]+ % of the bins behind the expected odds ratio are too thin|The expected odds "
        r"ratio cannot be read, in any number of bins).*",
        check_thin_bins,
    ),
]


def check_findings(w: World) -> int:
    """Every finding, all its numbers; how many there were. A finding that no pattern knows fails."""
    for finding in w.report["findings"]:
        if w.preds.weight is not None:
            continue  # weighted sums are those of the verdict
        for pattern, check in FINDINGS:
            found = re.fullmatch(pattern, finding["text"])
            if found:
                check(w, finding["evidence"], *found.groups())
                break
        else:
            pytest.fail(f"no check knows this finding: {finding['text']}")
    return len(w.report["findings"])


def make_claims(n: int, f: Callable[[Any], Any], seed: int, **columns: Any) -> Predictions:
    rng = np.random.default_rng(seed)
    claim = rng.beta(5, 1, n)
    return Predictions.from_confidence(claim, rng.random(n) < f(claim), **columns)


def make_two_classes(n: int, share: float, strength: float, bend: float, seed: int) -> Predictions:
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    x = rng.normal(size=n) + strength * y
    z = strength * x - strength**2 / 2 + np.log(share / (1 - share))
    return Predictions.from_probs(1 / (1 + np.exp(-bend * z)), y)


def make_in_groups(n: int, groups: int, seed: int) -> Predictions:
    alone = make_two_classes(n, 0.3, 1.5, 1.4, seed)
    return Predictions.from_probs(alone.probs, alone.labels, group=np.arange(n) % groups)


def make_many_classes(n: int, k: int, scale: float, seed: int) -> Predictions:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    return Predictions.from_logits(scale * np.eye(k)[y] + rng.normal(size=(n, k)), y)


def make_labels(n: int, labels: int, share: float, seed: int) -> Predictions:
    rng = np.random.default_rng(seed)
    y = (rng.random((n, labels)) < share).astype(int)
    z = rng.normal(size=(n, labels)) + 1.5 * y - 3
    return Predictions.from_multilabel(1 / (1 + np.exp(-z)), y)


def honest(c: Any) -> Any:
    return c


GROUPS_OF_4 = np.arange(1200) % 4
WORLDS: dict[str, Callable[[], Predictions]] = {
    "honest, 30": lambda: make_claims(30, honest, 0),
    "honest, 300": lambda: make_claims(300, honest, 1),
    "honest, 3,000": lambda: make_claims(3000, honest, 2),
    "honest, 20,000": lambda: make_claims(20_000, honest, 3),
    "overconfident": lambda: make_claims(2000, lambda c: c**1.5, 4),
    "slightly overconfident": lambda: make_claims(600, lambda c: c**1.15, 5),
    "underconfident": lambda: make_claims(2000, lambda c: c**0.5, 6),
    "too extreme": lambda: make_claims(4000, lambda c: 0.5 + 0.8 * (c - 0.62), 7),
    "no errors, few": lambda: Predictions.from_confidence(np.full(40, 0.99), np.ones(40)),
    "no errors, many": lambda: Predictions.from_confidence(np.full(900, 0.98), np.ones(900)),
    "one confidence": lambda: Predictions.from_confidence(np.ones(200), np.arange(200) % 10 > 0),
    "all wrong": lambda: Predictions.from_confidence(np.linspace(0.5, 0.9, 60), np.zeros(60)),
    "no errors, none expected": lambda: Predictions.from_confidence(np.ones(50), np.ones(50)),
    "all wrong, many": lambda: Predictions.from_confidence(
        np.linspace(0.5, 0.9, 3000), np.zeros(3000)
    ),
    "a wrong answer": lambda: Predictions.from_confidence([0.9], [0]),
    "labels that never occur": lambda: Predictions.from_multilabel(
        np.random.default_rng(0).uniform(0, 0.3, (300, 5)), np.zeros((300, 5))
    ),
    "one answer": lambda: Predictions.from_confidence([0.9], [1]),
    "ties": lambda: Predictions.from_confidence(
        np.repeat([0.95, 0.8, 0.6], 300), np.arange(900) % 10 < np.repeat([9, 8, 6], 300)
    ),
    "useless score": lambda: make_claims(3000, lambda c: 0.8 + 0 * c, 8),
    "hopeless": lambda: make_claims(4000, lambda c: 0.6 * c, 9),
    "four groups": lambda: make_claims(1200, honest, 10, group=GROUPS_OF_4),
    "one bad group of four": lambda: make_claims(
        1200, lambda c: np.where(GROUPS_OF_4 == 1, 0.57, c), 11, group=GROUPS_OF_4
    ),
    "forty groups": lambda: make_claims(1200, honest, 12, group=np.arange(1200) % 40),
    "weights": lambda: make_claims(
        900, honest, 13, weight=np.random.default_rng(0).uniform(0.5, 2, 900)
    ),
    "two classes": lambda: make_two_classes(1500, 0.45, 1.5, 1.0, 14),
    "two classes, too extreme": lambda: make_two_classes(1500, 0.45, 1.5, 2.0, 15),
    "a rare class": lambda: make_two_classes(2500, 0.06, 1.5, 1.0, 16),
    "a very rare class": lambda: make_two_classes(3000, 0.004, 1.0, 1.0, 17),
    "two classes, 60": lambda: make_two_classes(60, 0.5, 1.0, 1.3, 18),
    "no positive case": lambda: make_two_classes(300, 1e-9, 0.5, 1.0, 24),
    "positive cases only": lambda: make_two_classes(300, 1 - 1e-9, 0.5, 1.0, 25),
    "two classes, two hospitals": lambda: make_in_groups(1200, 2, 26),
    "two classes, forty hospitals": lambda: make_in_groups(1200, 40, 27),
    "many labels": lambda: make_labels(600, 6, 0.08, 19),
    "few labels present": lambda: make_labels(900, 4, 0.02, 20),
    "ten classes": lambda: make_many_classes(2000, 10, 3.0, 21),
    "1,000 classes": lambda: make_many_classes(1500, 1000, 6.0, 22),
    "guessing": lambda: make_many_classes(400, 4, 0.0, 23),
}


@pytest.mark.parametrize("name", WORLDS)
def test_every_sentence_of_a_world_is_true(name: str) -> None:
    w = make_world(WORLDS[name]())
    assert check_verdict(w) >= 3
    check_findings(w)


@pytest.mark.parametrize("name", REAL_SETS)
def test_every_sentence_of_a_real_set_is_true(name: str) -> None:
    whole = hs.read(shared_or_skip(f"data/{name}.npz"), split="test")
    n = min(REAL_SETS[name], whole.n)
    rows = np.sort(np.random.default_rng(0).permutation(whole.n)[:n])
    w = make_world(whole[rows])
    assert check_verdict(w) >= 3
    check_findings(w)


@pytest.mark.parametrize("name", REAL_FILES)
def test_every_sentence_of_a_whole_real_file_is_true(name: str) -> None:
    """Nothing is cut here: what the commands print of these files, with every number of it."""
    options = ReadOptions(split="test")
    if name in UNSPLIT_FILES:
        options = UNSPLIT_FILES[name]
    w = make_world(hs.read(shared_or_skip(name), options=options))
    assert check_verdict(w) >= 3
    check_findings(w)
