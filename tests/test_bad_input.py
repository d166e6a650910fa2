"""Bad input to each public function: one clear sentence that says what we got, where, and what to
do.
"""

import re
from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure import Predictions, losses, scores

good = hs.tally([0.9, 0.6], correct=[1, 0])
loss = hs.tally([0.9, 0.6], loss=[0.1, 0.2])
costs = hs.tally([0.9, 0.6], loss=[0.1, 2.0])
high = hs.tally([3.0, 0.6], correct=[1, 0])
negative = hs.tally([-0.1, 0.6], correct=[1, 0])
dice = hs.dice_tally([0.9], [1], [1])
probs = Predictions.from_probs([[0.9, 0.1], [0.4, 0.6]], [0, 0])
logits = Predictions.from_logits([[1.0, 0.0]], [0])
samples = Predictions.from_samples(np.zeros((2, 1, 2)), [0])
top = Predictions.from_confidence([0.9, 0.4], [1, 0])
unlabelled = Predictions.from_probs([[0.9, 0.1]])
bins = hs.Histogram([1, 1], [0.5, 0.9])

NAN = "has 1 nan (first: row 1); a nan is not a number to score. Remove these rows or repair them."
NAN_0 = (
    "has 1 nan (first: row 0); a nan is not a number to score. Remove these rows or repair them."
)
EITHER = "give either correct= (0/1 per sample) or loss= (a number per sample), exactly one"
RIGHT = "each value must be 0 (wrong) or 1 (right). Pass prediction == label, or loss= for other losses."
RANGE = "Read it with a ranking metric such as aurc, or calibrate it first."
LOSS = "needs right or wrong, this tally was made with loss=. Use tally(score, correct=...)."
TOP = "only the top label is known, too little for"
RENORMALISE = "Pass renormalise=True (--renormalise) to divide each row by its sum, or Predictions.from_logits for logits."
WEIGHTS = "weights must be finite and not negative."
FRACTION = "a number above 0 and at most 1 is needed."
WHOLE = "a whole number of at least 1 is needed."
rows = lambda a, m, b, n: f"{a} has {m} rows, {b} has {n}; they must belong to the same samples."

CASES: dict[str, list[tuple[Callable[[], Any], str]]] = {
    "tally": [
        (lambda: hs.tally([0.1, nan], correct=[1, 0]), f"score {NAN}"),
        (lambda: hs.tally([0.1, 0.2], correct=[1, nan]), f"correct {NAN}"),
        (lambda: hs.tally([0.1, 0.2], loss=[1, nan]), f"loss {NAN}"),
        (
            lambda: hs.tally([0.1, 0.2], loss=[1, inf]),
            "loss has 1 infinite values (first: row 1); finite numbers are",
        ),
        (lambda: hs.tally([0.1, 0.2], correct=[1]), rows("correct", 1, "score", 2)),
        (lambda: hs.tally([0.1, 0.2], loss=[1.0]), rows("loss", 1, "score", 2)),
        (lambda: hs.tally([0.1, 0.2], correct=[1, 0], weight=[1]), rows("weight", 1, "score", 2)),
        (
            lambda: hs.tally([0.1, 0.2], correct=[1, 0], weight=[1, -1]),
            f"weight[1] is -1; {WEIGHTS}",
        ),
        (
            lambda: hs.tally([0.1, 0.2], correct=[1, 0], weight=[1, inf]),
            f"weight[1] is inf; {WEIGHTS}",
        ),
        (lambda: hs.tally([0.1, 0.2], correct=[1, 0], weight=[1, nan]), f"weight {NAN}"),
        (
            lambda: hs.tally([0.1, 0.2], correct=[1, 0], weight=[0, 0]),
            "weight is 0 everywhere; at least one sample",
        ),
        (lambda: hs.tally([], correct=[]), "score is empty; at least one sample is needed."),
        (
            lambda: hs.tally([[0.1, 0.2]], correct=[1, 0]),
            "score has shape (1, 2); one value per sample, shape (n,), is",
        ),
        (lambda: hs.tally(0.1, correct=[1]), "score has shape (); one value per sample"),
        (lambda: hs.tally([0.1, 0.2], correct=[1, 2]), f"correct[1] is 2; {RIGHT}"),
        (lambda: hs.tally([0.1, 0.2], correct=[1, 0.5]), f"correct[1] is 0.5; {RIGHT}"),
        (
            lambda: hs.tally([0.1], correct=["yes"]),
            "correct has dtype <U3; numbers are needed. Convert it first.",
        ),
        (
            lambda: hs.tally([0.1, None], correct=[1, 0]),
            "score has dtype object; numbers are needed.",
        ),
        (lambda: hs.tally([[0.1], [0.2, 0.3]], correct=[1, 0]), "score is not an array:"),
        (lambda: hs.tally([0.1]), EITHER),
        (lambda: hs.tally([0.1], correct=[1], loss=[1]), EITHER),
    ],
    "Outcomes": [
        (lambda: hs.Outcomes([0.1, nan], correct=[1, 0]), f"score {NAN}"),
        (lambda: hs.Outcomes([0.1, 0.2], correct=[1]), rows("correct", 1, "score", 2)),
        (lambda: hs.Outcomes([0.1, 0.2], correct=[1, 7]), f"correct[1] is 7; {RIGHT}"),
        (
            lambda: hs.Outcomes([0.1, 0.2], loss=[1, inf]),
            "loss has 1 infinite values (first: row 1)",
        ),
        (
            lambda: hs.Outcomes([0.1, 0.2], correct=[1, 0], weight=[-1, 1]),
            f"weight[0] is -1; {WEIGHTS}",
        ),
        (lambda: hs.Outcomes([0.1, 0.2], correct=[1, 0], id=[1]), rows("id", 1, "score", 2)),
        (lambda: hs.Outcomes([0.1, 0.2], correct=[1, 0], group=[1]), rows("group", 1, "score", 2)),
        (lambda: hs.Outcomes([0.1]), EITHER),
        (lambda: hs.Outcomes([], correct=[]), "score is empty; at least one sample is needed."),
    ],
    "from_logits": [
        (lambda: Predictions.from_logits([[1.0, nan]], [0]), f"logits {NAN_0}"),
        (
            lambda: Predictions.from_logits([[1.0, 0], [inf, 0]], [0, 0]),
            "logits has 1 infinite values (first: row 1)",
        ),
        (lambda: Predictions.from_logits([[1.0, 0.0]], [0, 1]), rows("labels", 2, "logits", 1)),
        (
            lambda: Predictions.from_logits([[1.0, 0.0]] * 2, [0, 2]),
            "labels[1] is 2; with 2 classes labels run from 0 to 1.",
        ),
        (
            lambda: Predictions.from_logits([[1.0, 0.0]], [-1]),
            "labels[0] is -1; with 2 classes labels run from 0 to 1.",
        ),
        (
            lambda: Predictions.from_logits([[1.0, 0.0]], [0.5]),
            "labels[0] is 0.5; whole class numbers 0 to 1 are needed.",
        ),
        (
            lambda: Predictions.from_logits([[1.0, 0.0]], ["cat"]),
            "labels[0] is 'cat'; texts need class_names=, in the order of the columns; labels are 'cat'.",
        ),
        (
            lambda: Predictions.from_logits([[1.0, 0.0]], ["cow"], class_names=["cat", "dog"]),
            "labels[0] is 'cow', which is none of the classes 'cat', 'dog'; correct the name.",
        ),
        (
            lambda: Predictions.from_logits(
                [[1.0, 0.0]] * 2, ["cat", None], class_names=["cat", "dog"]
            ),
            "labels has 1 missing values (first: row 1); every sample needs its label.",
        ),
        (
            lambda: Predictions.from_logits([[1.0, 0.0]] * 2, [[1, 0], [1, 1]]),
            "labels[1] has 2 numbers that are not a single 1 among 0 (1 such rows); one class per row is needed.",
        ),
        (
            lambda: Predictions.from_logits([[1.0, 0.0, 0.0]], [True]),
            "labels holds true and false for 3 classes",
        ),
        (
            lambda: Predictions.from_logits([[1.0, 0.0]], [[0, 1, 0]]),
            "labels has shape (1, 3); one value per sample",
        ),
        (
            lambda: Predictions.from_logits(np.zeros((0, 3)), []),
            "logits is empty; at least one sample is needed.",
        ),
        (
            lambda: Predictions.from_logits(np.zeros((2, 0)), [0, 0]),
            "logits has shape (2, 0); at least one class is",
        ),
        (
            lambda: Predictions.from_logits(np.zeros((2, 3, 4, 5))),
            "logits has shape (2, 3, 4, 5); one row per sample and one",
        ),
        (
            lambda: Predictions.from_logits([[1.0, 0.0]], class_names=["a"]),
            "class_names has 1 names for 2 classes.",
        ),
        (lambda: Predictions.from_logits([[1.0, 0.0]], weight=[-1]), f"weight[0] is -1; {WEIGHTS}"),
    ],
    "from_probs": [
        (
            lambda: Predictions.from_probs([[0.9, 0.1], [0.9, 0.3]], [0, 0]),
            f"probs[1] sums to 1.2, expected 1 (1 such rows). {RENORMALISE}",
        ),
        (
            lambda: Predictions.from_probs([[5.0, -1.0, 2.0]], [0]),
            "probs[0] lies outside [0, 1] (1 such rows). Are these logits? "
            "Use Predictions.from_logits, or call them logits in the file.",
        ),
        (lambda: Predictions.from_probs([0.2, 1.4], [0, 1]), "probs[1] lies outside [0, 1]"),
        (lambda: Predictions.from_probs([[0.5, nan]], [0]), f"probs {NAN_0}"),
        (lambda: Predictions.from_probs([[inf, 1.0]], [0]), "probs[0] lies outside [0, 1]"),
        (
            lambda: Predictions.from_probs([[0.0, 0.0]], renormalise=True),
            "probs[0] cannot be renormalised: it sums to 0",
        ),
        (
            lambda: Predictions.from_probs([[0.5, -0.1]], renormalise=True),
            "probs[0] cannot be renormalised",
        ),
        (lambda: Predictions.from_probs([]), "probs is empty; at least one sample is needed."),
        (
            lambda: Predictions.from_probs(np.zeros((2, 2, 2))),
            "probs has shape (2, 2, 2); one row per sample",
        ),
    ],
    "from_samples": [
        (
            lambda: Predictions.from_samples(np.zeros((2, 3))),
            "logits has shape (2, 3); samples need (samples, n, k).",
        ),
        (
            lambda: Predictions.from_samples(np.zeros((0, 2, 3))),
            "logits has shape (0, 2, 3); samples need",
        ),
        (
            lambda: Predictions.from_samples(np.zeros((2, 0, 3))),
            "logits is empty; at least one sample is needed.",
        ),
        (
            lambda: Predictions.from_samples(),
            "give either logits= or probs= of shape (samples, n, k), exactly one",
        ),
        (
            lambda: Predictions.from_samples(probs=np.full((2, 1, 2), 0.4)),
            "probs[0] sums to 0.8, expected 1",
        ),
        (lambda: Predictions.from_samples(np.full((1, 1, 2), nan)), "logits has 2 nan"),
        (
            lambda: Predictions.from_samples(np.zeros((2, 1, 2)), [5]),
            "labels[0] is 5; with 2 classes",
        ),
    ],
    "from_confidence": [
        (
            lambda: Predictions.from_confidence([0.9, 1.2], [1, 0]),
            "confidence[1] is 1.2; a confidence lies in [0, 1]. Repair or leave out such rows "
            "(--drop-outside). A score that is no probability: --name score=… (Predictions.from_score).",
        ),
        (
            lambda: Predictions.from_confidence([90, 0.5, 80], [1, 0, 1]),
            "Divide percentages by 100 (--percent)",
        ),
        (lambda: Predictions.from_confidence([0.9, nan], [1, 0]), f"confidence {NAN}"),
        (lambda: Predictions.from_confidence([0.9], [1, 0]), "correct has 2 rows"),
        (lambda: Predictions.from_confidence([0.9], [3]), f"correct[0] is 3; {RIGHT}"),
        (
            lambda: Predictions.from_confidence([], []),
            "confidence is empty; at least one sample is needed.",
        ),
    ],
    "what predictions know": [
        (lambda: top.probs, f"{TOP} probs; give logits or probabilities of all classes."),
        (lambda: top.logits, f"{TOP} logits"),
        (lambda: top.labels, f"{TOP} labels"),
        (
            lambda: top.prediction,
            "these predictions hold a confidence and right or wrong, not the predicted class.",
        ),
        (lambda: probs.logits, "only probabilities are known, not logits."),
        (lambda: unlabelled.labels, "these predictions have no labels."),
        (
            lambda: Predictions.from_confidence([0.9]).correct,
            "these predictions do not say which answers are right: add correct (0 or 1), or label and prediction. "
            "A score that is the probability of class 1 is read with --name probs=score (names={'probs': 'score'}).",
        ),
        (lambda: probs[[]], "no sample is selected; at least one is needed."),
    ],
    "scores": [
        (lambda: scores.entropy(top), TOP),
        (lambda: scores.neg_entropy(top), TOP),
        (lambda: scores.margin(top), TOP),
        (lambda: scores.top_k_mass(top), f"{TOP} top_k_mass"),
        (lambda: scores.top_k_mass(probs, k=0), f"k is 0; {WHOLE}"),
        (lambda: scores.max_logit(probs), "only probabilities are known, not logits."),
        (
            lambda: scores.energy(samples),
            "energy is a score of one pass; these predictions hold 2 samples.",
        ),
        (
            lambda: scores.variance(probs),
            "variance needs several answers per sample. Use Predictions.from_samples.",
        ),
        (
            lambda: scores.variance(samples, over="max"),
            "over='max'; variance knows 'sum', 'mean' and 'predicted'.",
        ),
        (
            lambda: scores.mutual_information(logits),
            "mutual_information needs several answers per sample.",
        ),
        (
            lambda: scores.predictive_entropy(top),
            "predictive_entropy needs several answers per sample.",
        ),
        (
            lambda: scores.expected_entropy(top),
            "expected_entropy needs several answers per sample.",
        ),
    ],
    "losses": [
        (lambda: losses.nll(top), TOP),
        (lambda: losses.brier(top), TOP),
        (lambda: losses.nll(unlabelled), "these predictions have no labels."),
        (lambda: losses.zero_one(unlabelled), "these predictions have no labels."),
        (lambda: losses.top_k(0), f"k is 0; {WHOLE}"),
        (lambda: losses.top_k(1.5), f"k is 1.5; {WHOLE}"),
        (lambda: losses.top_k(2)(top), f"{TOP} top-k loss"),
    ],
    "metrics of predictions": [
        (lambda: hs.nll(top), TOP),
        (lambda: hs.nll(probs, eps=0), "eps is 0; a small number between 0 and 1 is needed."),
        (lambda: hs.brier(unlabelled), "these predictions have no labels."),
        (lambda: hs.accuracy(unlabelled), "these predictions have no labels."),
        (lambda: hs.top_k_accuracy(probs, 0), f"k is 0; {WHOLE}"),
        (lambda: hs.uce(top), TOP),
        (lambda: hs.uce(probs, bins=0), f"the number of bins is 0; {WHOLE}"),
        (lambda: hs.muce(unlabelled), "these predictions have no labels."),
        (lambda: hs.classwise_ece(top), f"{TOP} classwise_ece"),
        (lambda: hs.classwise_ece(probs, bins=0), f"the number of bins is 0; {WHOLE}"),
    ],
    "ranking metrics": [
        (lambda: hs.augrc(dice), "augrc needs a tally, this is a SetTally."),
        (lambda: hs.auroc([0.9]), "auroc needs a tally, this is a list."),
        (lambda: hs.risk_coverage(probs), "risk_coverage needs a tally, this is a Predictions."),
        (
            lambda: hs.aurc(good, variant="x"),
            "variant='x'; aurc knows 'expected', 'trapezoid' and 'step'.",
        ),
        (
            lambda: hs.aurc(dice, "expected"),
            "variant='expected' is not defined for a set loss; use 'step' or",
        ),
        (lambda: hs.aac(loss), f"aac {LOSS}"),
        (lambda: hs.auroc(loss), f"auroc {LOSS}"),
        (lambda: hs.aupr(loss), f"aupr {LOSS}"),
        (lambda: hs.aupr(good, positive="x"), "positive='x'; 'error' or 'success' is needed."),
        (
            lambda: hs.aupr(good, method="x"),
            "method='x'; aupr knows 'step', 'trapezoid', 'davis_goadrich'.",
        ),
        (
            lambda: hs.coverage_at_risk(good, 1.0),
            "risk is 1; a number from 0 to below 1 is needed.",
        ),
        (
            lambda: hs.coverage_at_risk(good, nan),
            "risk is nan; a number from 0 to below 1 is needed.",
        ),
        (lambda: hs.coverage_at_risk(loss, 0.1), f"a target accuracy {LOSS}"),
        (lambda: hs.risk_at_coverage(good, 0), f"coverage is 0; {FRACTION}"),
        (lambda: hs.dominates(loss, good), f"dominates {LOSS}"),
        (
            lambda: hs.dominates(good, hs.tally([0.1], correct=[1])),
            "dominance compares equal numbers of samples and errors; got n=2, 1 wrong and n=1, 0 wrong. Compare aurc",
        ),
        (lambda: hs.optimal_aurc_asymptotic(1.2), "error is 1.2; an error rate lies in [0, 1]."),
        (lambda: hs.bands(loss), f"bands {LOSS}"),
        (lambda: hs.bands(good, levels=(1.2,)), f"a level of bands is 1.2; {FRACTION}"),
    ],
    "curves": [
        (lambda: hs.roc(loss), f"roc {LOSS}"),
        (lambda: hs.roc(good, positive="x"), "positive='x'; 'error' or 'success' is needed."),
        (lambda: hs.precision_recall(loss), f"precision_recall {LOSS}"),
        (lambda: hs.threshold_diagram(loss), f"threshold_diagram {LOSS}"),
        (
            lambda: hs.reliability(high),
            f"calibration needs scores in [0, 1], this tally has 3. {RANGE}",
        ),
        (
            lambda: hs.bin_table(negative),
            f"calibration needs scores in [0, 1], this tally has -0.1. {RANGE}",
        ),
        (lambda: hs.rejection(top), TOP),
        (lambda: hs.rejection(probs, thresholds=[0.5, nan]), f"thresholds {NAN}"),
        (lambda: hs.uncertainty_reliability(unlabelled), "these predictions have no labels."),
        (lambda: hs.odds_by_quantile(loss), f"histogram {LOSS}"),
    ],
    "histograms": [
        (lambda: hs.Histogram([1, 1], [0.5]), "p has 1 rows, weight has 2"),
        (lambda: hs.Histogram([1, 1], [0.5, 1.5]), "p[1] is 1.5; a probability lies in [0, 1]."),
        (lambda: hs.Histogram([1, -1], [0.5, 0.5]), f"weight[1] is -1; {WEIGHTS}"),
        (lambda: hs.Histogram([1, 1], [0.5, nan]), f"p {NAN}"),
        (lambda: hs.Histogram([], []), "weight is empty; at least one sample is needed."),
        (
            lambda: hs.Histogram.from_counts([5, 5], [1, 6]),
            "bin 1 has 6 right of 5; that is impossible.",
        ),
        (lambda: hs.Histogram.from_counts([5, 5], [1]), "right has 1 rows, count has 2"),
        (lambda: hs.Histogram.from_bins([1, 2], [1]), "bins has 2 rows, correct has 1"),
        (
            lambda: bins.relative_variance,
            "the relative variance needs counts; make the histogram from data.",
        ),
        (lambda: hs.refine(bins, 5, [1], [0.5]), "bin 5 does not exist; the histogram has 2 bins."),
        (
            lambda: hs.refine(bins, 0, [0.5, 0.4], [0.5, 0.5]),
            "b must be positive and sum to 1; it sums to 0.9.",
        ),
        (
            lambda: hs.refine(bins, 0, [0.5, 0.5], [0.5, 0.9]),
            "the parts average to 0.7, the bin has 0.5; refinement",
        ),
        (lambda: hs.refine(bins, 0, [0.5, 0.5], [0.5]), "q has 1 rows, b has 2"),
        (lambda: hs.histogram(loss), f"histogram {LOSS}"),
        (
            lambda: hs.eor(good, "x"),
            "degenerate='x'; eor knows 'inf', 'smooth', 'drop', 'cap', 'merge' and 'pool'.",
        ),
        (lambda: hs.eor(good, "cap"), "degenerate='cap' needs cap=, a number of at least 1."),
        (
            lambda: hs.eor(bins, "smooth"),
            "degenerate='smooth' needs counts; make the histogram from data.",
        ),
        (lambda: hs.eor(bins, base=2.0), "odds_ratio needs probabilities in [0, 1]."),
        (lambda: hs.odds_ratio(nan, 0.5), "odds_ratio needs probabilities in [0, 1]."),
    ],
    "binnings": [
        (lambda: hs.equal_range(0), f"the number of bins is 0; {WHOLE}"),
        (lambda: hs.equal_range("a"), f"the number of bins is a; {WHOLE}"),
        (lambda: hs.equal_size(1.5), f"the number of bins is 1.5; {WHOLE}"),
        (lambda: hs.adaptive(level=1), "level is 1; a number between 0 and 1 is needed."),
        (lambda: hs.adaptive(z=0), "z is 0; a positive number is needed."),
        (lambda: hs.adaptive(tail=-1), "tail is -1; a whole number of at least 0 is needed."),
        (
            lambda: hs.adaptive(margin=-0.1),
            "margin is -0.1; a number that is not negative is needed.",
        ),
        (lambda: hs.adaptive_reference([0.5, nan], [1, 0]), f"score {NAN}"),
        (
            lambda: hs.ece(good, bins="10"),
            "bins='10'; a binning is needed, such as equal_range(15).",
        ),
        (lambda: hs.histogram(good, 10), "bins=10; a binning is needed, such as equal_range(15)."),
    ],
    "set losses": [
        (lambda: hs.dice_tally([0.9, 0.1], [1, 0], [1]), rows("truth", 1, "score", 2)),
        (lambda: hs.dice_tally([0.9, nan], [1, 0], [1, 0]), f"score {NAN}"),
        (
            lambda: hs.dice_tally([0.9], [1.0], [1]),
            "prediction has dtype float64; whole class numbers are needed.",
        ),
        (
            lambda: hs.dice_tally([0.9], [1], [1], classes=[]),
            "classes is empty; name at least one foreground class.",
        ),
        (
            lambda: hs.set_tally([0.9], [1], np.sum),
            "parts has shape (1,); one row per unit and one column per sum is",
        ),
        (lambda: hs.set_tally([0.9], [[1], [2]], np.sum), rows("parts", 2, "score", 1)),
        (lambda: hs.ece(dice), "calibration needs a tally, this is a SetTally."),
    ],
}
CLAIMS = [
    "ece",
    "mce",
    "aece",
    "amce",
    "over_confidence",
    "under_confidence",
    "debiased_ece",
    "smooth_ece",
]
CLAIMS += ["signed_calibration_error", "correctness_brier", "correctness_nll"]
for name in CLAIMS:
    metric = getattr(hs, name)
    CASES[name] = [
        (lambda metric=metric: metric(costs), "needs right or wrong, or losses in [0, 1]"),
        (lambda metric=metric: metric(high), f"needs scores in [0, 1], this tally has 3. {RANGE}"),
        (
            lambda metric=metric: metric(negative),
            f"needs scores in [0, 1], this tally has -0.1. {RANGE}",
        ),
        (lambda metric=metric: metric("0.9"), "needs a tally, this is a str."),
    ]

FLAT = [
    pytest.param(call, message, id=f"{name} {i}")
    for name, table in CASES.items()
    for i, (call, message) in enumerate(table)
]


@pytest.mark.parametrize(("call", "message"), FLAT)
def test_says_what_where_and_what_to_do(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(hs.InputError, match=re.escape(message)) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 250
    assert caught.value.__cause__ is None


def test_a_users_mistake_is_a_value_error() -> None:
    assert issubclass(hs.InputError, ValueError)


def test_renormalising_is_the_users_choice() -> None:
    p = [[0.9, 0.3], [2.0, 2.0]]
    np.testing.assert_allclose(
        Predictions.from_probs(p, renormalise=True).probs, [[0.75, 0.25], [0.5, 0.5]]
    )


@pytest.mark.parametrize(
    ("dtype", "off"), [(np.float64, 5e-7), (np.float32, 5e-4), (np.float16, 5e-3)]
)
def test_rows_may_miss_1_by_the_precision_they_came_in(dtype: Any, off: float) -> None:
    p = np.array([[0.5 + off, 0.5]]).astype(dtype)
    assert Predictions.from_probs(p).n == 1
    with pytest.raises(hs.InputError, match="expected 1"):
        Predictions.from_probs(np.array([[0.5 + 8 * off, 0.5]]).astype(dtype))


def test_a_hair_outside_is_clipped_for_scores() -> None:
    preds = Predictions.from_probs([[1.0 + 5e-7, -5e-7]], [0])
    assert scores.max_prob(preds).tolist() == [1.0]
    assert hs.nll(preds) == 0.0


def test_the_first_bad_row_is_named_among_many() -> None:
    score = np.linspace(0, 1, 5000)
    score[[1234, 4000]] = nan
    with pytest.raises(hs.InputError, match=r"score has 2 nan \(first: row 1234\)"):
        hs.tally(score, correct=np.ones(5000))
