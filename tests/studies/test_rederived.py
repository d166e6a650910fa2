"""Verdicts of the committed pages derived again in plain NumPy, from the prediction files alone.

Nothing of howsure and nothing of the claims is used: each test computes the two numbers that a
verdict compares, with formulas written out here, and looks for them on the committed page.
"""

import csv
import os
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
DOCS, KEPT, FILES = (
    ROOT / "docs" / "studies",
    ROOT / "studies" / "kept",
    ROOT / "studies" / "predictions",
)
SHARED = Path(os.environ.get("HOWSURE_SHARED", ROOT.parent / "shared"))


def softmax(z):
    z = z.astype(np.float64)
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def ece(confidence, correct, bins=15):
    """Bins closed above, as in Guo et al."""
    which = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    gaps = [abs(confidence[which == b].sum() - correct[which == b].sum()) for b in range(bins)]
    return sum(gaps) / len(confidence)


def aurc(confidence, correct):
    """Mean over coverages of the error of what is kept; tied answers come in one by one at their
    mean error."""
    order = np.argsort(-confidence, kind="stable")
    score, wrong = confidence[order], 1.0 - correct[order]
    edges = np.flatnonzero(np.diff(score)) + 1
    for block in np.split(np.arange(len(score)), edges):
        wrong[block] = wrong[block].mean()
    return float((np.cumsum(wrong) / np.arange(1, len(wrong) + 1)).mean())


def auroc(confidence, correct):
    _, inverse, counts = np.unique(confidence, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    right = correct.astype(bool)
    n, m = right.sum(), (~right).sum()
    return float((ranks[right].sum() - n * (n + 1) / 2) / (n * m))


def evidence(page, claim, case):
    """What the page says was found: the row of the evidence table whose first cells begin so."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8").split("## Evidence")[1]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    found = [row for row in rows if row[0].startswith(claim) and row[1].startswith(case)]
    found = [row for row in found if row[1] == case] or found
    assert len(found) == 1, f"{len(found)} rows of {page} for {claim!r}, {case!r}"
    return found[0][3], found[0][-1].strip("()")


def numbers(text):
    return [float(v) for v in re.findall(r"[-+]?\d+\.\d+", text)]


def load(name):
    return np.load(FILES / f"{name}.npz")


def of_split(name, split="test"):
    """Confidence and correctness of one of our networks."""
    found = load(name if split == "test" else f"{name}.{split}")
    p = softmax(found[f"{split}_logits"])
    return p.max(1), (p.argmax(1) == found[f"{split}_labels"]).astype(float)


@pytest.fixture(scope="module")
def logits():
    return np.load(KEPT / "published_logits.npz")


def answers(logits, depth):
    p = softmax(logits[f"resnet{depth}_logits"])
    return p.max(1), (p.argmax(1) == logits["labels"]).astype(float)


def test_aurc_falls_from_the_shallowest_to_the_deepest_published_resnet(logits):
    found, word = evidence("complexity", "AURC falls", "published ResNet-56 against ResNet-20")
    large, small = (100 * aurc(*answers(logits, depth)) for depth in (56, 20))
    assert numbers(found)[:2] == pytest.approx([large, small], abs=0.0051)
    assert word == "agrees"
    assert large < small


def test_errors_of_the_deepest_are_surer(logits):
    found, word = evidence("complexity", "The errors of larger", "published ResNet-56")
    shares = []
    for depth in (56, 20):
        confidence, correct = answers(logits, depth)
        shares.append(100 * (confidence[correct == 0] > 0.9).mean())
    assert numbers(found)[:2] == pytest.approx(shares, abs=0.051)
    assert (word, shares[0] > shares[1]) == ("agrees", True)


@pytest.mark.parametrize("depth", [20, 32, 44, 56])
def test_the_gap_that_the_last_bin_hides(logits, depth):
    found, _ = evidence("complexity", "More samples do not show", f"published ResNet-{depth}")
    confidence, correct = answers(logits, depth)

    def gap(low, high, rows):
        some = (confidence[rows] > low) & (confidence[rows] <= high)
        return abs(confidence[rows][some].mean() - correct[rows][some].mean())

    hidden = [gap(0.9, 0.96, rows) - gap(0.9, 1.0, rows) for rows in (slice(None), slice(2_500))]
    assert [v for v in numbers(found) if v < 1] == pytest.approx(hidden, abs=0.00051)


def test_people_doubt_some_of_the_surest_errors_and_not_all(logits):
    path = SHARED / "weights" / "cifar10_label_errors.csv"
    if not path.exists():
        pytest.skip("people's votes are not at hand")
    found, word = evidence("odds", "The sure and wrong answers", "mean of four")
    mean = np.mean([softmax(logits[f"resnet{d}_logits"]) for d in (20, 32, 44, 56)], axis=0)
    wrong = np.flatnonzero(mean.argmax(1) != logits["labels"])
    surest = wrong[np.argsort(-mean.max(1)[wrong], kind="stable")][:20]
    with path.open(newline="") as file:
        doubted = {int(r["test_index"]) for r in csv.DictReader(file) if int(r["votes_given"]) < 3}
    count = len(doubted & set(surest.tolist()))
    assert found.startswith(f"{count} of the 20 surest wrong answers")
    assert (word, count < 20) == ("does not agree", True)


def test_odds_by_quantile_of_the_entropy(logits):
    """Ten times the average, or a tenth of it, in the first ten and last three of 100 bins."""
    found, word = evidence("odds", "In the first ten", "published ResNet-20, entropy")
    p = softmax(logits["resnet20_logits"])
    correct = (p.argmax(1) == logits["labels"]).astype(float)
    entropy = -(p * np.log(np.maximum(p, 1e-300))).sum(1)
    order = np.argsort(entropy, kind="stable")
    accuracy = np.array([correct[part].mean() for part in np.array_split(order, 100)])
    base = correct.mean()
    with np.errstate(divide="ignore"):
        ratio = (accuracy / (1 - accuracy)) / (base / (1 - base))
    ratio = np.maximum(ratio, 1 / np.maximum(ratio, 1e-300))
    first, last = (ratio[:10] >= 10).sum(), (ratio[-3:] >= 10).sum()
    assert found == f"{first} of the first 10 and {last} of the last 3 bins"
    assert word == ("agrees" if (first, last) == (10, 3) else "does not agree")


def test_dropout_rates_of_one_published_network(logits):
    path = KEPT / "published_dropout.npz"
    if not path.exists():
        pytest.skip("no passes are kept")
    case = "published ResNet-20, 10,000 images, dropout 0.002 against dropout 0.05, error-free bins pooled"
    found, word = evidence("odds", "The smallest dropout rate", case)
    passes = np.load(path)
    _, correct = answers(logits, 20)
    eor = [
        pooled_eor(passes[f"frobenius_{rate}"], correct[passes["rows"]])
        for rate in ("0.002", "0.05")
    ]
    assert numbers(found) == pytest.approx([*eor, eor[0] / eor[1]], rel=0.01)
    assert (word == "agrees") <= (eor[0] > 1.5 * eor[1])


def pooled_eor(uncertainty, correct):
    """Finlay & Oberman with the rule of their code for bins without an error; 100 bins of equal
    size."""
    order = np.argsort(uncertainty, kind="stable")
    p = np.array([correct[part].mean() for part in np.array_split(order, 100)])
    if (p == 1).any():
        end = min(np.flatnonzero(p == 1)[-1] + 2, len(p))
        p[:end] = p[:end].mean()
    if (p == 0).any():
        start = np.flatnonzero(p == 0)[0]
        p[start:] = p[start:].sum() / (len(p) - start + 1)
    base = correct.mean()
    ratio = (p / (1 - p)) / (base / (1 - base))
    return float(np.maximum(ratio, 1 / ratio).mean())


# The trainings that the pages name, by the hash of their settings.
PLAIN, AUGMENTED, SMOOTHED, LONG, LONG_20, DENSE, FULL_SIZE = (
    "resnet-14_cifar10_a3e4636e",
    "resnet-14_cifar10_9295021e",
    "resnet-14_cifar10_38899338",
    "resnet-14_cifar10_9b680c01",
    "resnet-20_cifar10_1f94fa2a",
    "densenet-10_cifar10_95b78b23",
    "resnet-20_cifar10_86860a4b",
)


def test_augmentation_lowers_the_ece():
    found, word = evidence("regularisation", "Regularisation lowers", "resnet-14, augmentation")
    values = [100 * ece(*of_split(name)) for name in (AUGMENTED, PLAIN)]
    assert numbers(found)[:2] == pytest.approx(values, abs=0.0051)
    assert (word, values[0] < values[1]) == ("agrees", True)


def test_label_smoothing_raises_the_training_ece():
    found, word = evidence("regularisation", "Label smoothing raises", "resnet-14, label")
    values = [100 * ece(*of_split(name, "train")) for name in (SMOOTHED, PLAIN)]
    assert numbers(found)[:2] == pytest.approx(values, abs=0.0051)
    assert (word, values[0] > values[1]) == ("agrees", True)


def test_a_long_training_is_over_confident_on_test_images():
    confidence, correct = of_split(LONG)
    gap = confidence - correct
    found, word = evidence(
        "regularisation", "The network is over-confident on test", "resnet-14, standard, 100 epochs"
    )
    assert numbers(found) == pytest.approx([100 * gap.mean()], abs=0.0051)
    low = gap.mean() - 1.96 * gap.std(ddof=1) / np.sqrt(len(gap))
    assert (word, low > 0) == ("agrees", True)


@pytest.mark.parametrize(
    ("name", "case"),
    [(LONG, "resnet-14, standard, 100 epochs"), (FULL_SIZE, "resnet-20, full size")],
)
def test_the_test_ece_is_many_times_that_on_training_images(name, case):
    found, word = evidence("regularisation", "The test ECE is much higher", case)
    values = [100 * ece(*of_split(name, split)) for split in ("test", "train")]
    assert numbers(found)[:2] == pytest.approx(values, abs=0.0051)
    assert (word, values[0] > 3 * values[1]) == ("agrees", True)


def test_early_stopping_leaves_the_ece():
    found, word = evidence("regularisation", "Early stopping", "resnet-14: epoch 68 against 100")
    course = load(f"{LONG}.long_course")
    rows = [int(np.flatnonzero(course["epochs"] == epoch)[0]) for epoch in (68, 100)]
    values = [
        100 * ece(course["test_confidence"][r].astype(float), course["test_correct"][r])
        for r in rows
    ]
    assert numbers(found)[:2] == pytest.approx(values, abs=0.0051)
    assert (word, abs(values[0] - values[1]) < 1) == ("agrees", True)


def test_one_course_overfits_the_nll_and_not_the_error():
    """The epoch of the least NLL on every second image, against the last epoch on the others."""
    found, word = evidence("regularisation", "Networks can overfit", "resnet-20: epoch 100 against")
    course = load(f"{LONG_20}.long_course")
    loss, wrong = course["test_nll"].astype(float), 1.0 - course["test_correct"]
    best = loss[:, ::2].mean(1).argmin()
    rise = (loss[-1] - loss[best])[1::2].mean()
    error = 100 * (wrong[-1] - wrong[best])[1::2].mean()
    assert numbers(found)[:2] == pytest.approx([rise, error], abs=0.0051)
    assert (word, rise > 0, error < 1) == ("agrees", True, True)


@pytest.mark.parametrize(
    ("claim", "metric"),
    [("AUROC of finding errors rises", auroc), ("AURC gets worse", aurc)],
)
def test_densenet_m(claim, metric):
    """The 300 least trusted right answers count as wrong."""
    found, word = evidence("densenet_m", claim, "densenet-10, m = 300")
    confidence, correct = of_split(DENSE)
    worse = correct.copy()
    right = np.flatnonzero(correct)
    worse[right[np.argsort(confidence[right], kind="stable")[:300]]] = 0
    values = [100 * metric(confidence, c) for c in (worse, correct)]
    assert numbers(found)[:2] == pytest.approx(values, abs=0.0051)
    assert (word, values[0] > values[1]) == ("agrees", True)


def test_boundary_distance_of_the_published_resnet_44(logits):
    """AAC is the area above the diagram of accuracy against coverage: AURC."""
    path = KEPT / "published_distance.npz"
    if not path.exists():
        pytest.skip("no distances are kept")
    found, _ = evidence("calibration", "Boundary distance on the softmax ranks better", "published")
    confidence, correct = answers(logits, 44)
    distance = np.load(path)["softmax"].astype(float)
    values = [100 * aurc(score, correct) for score in (distance, confidence)]
    assert numbers(found)[:2] == pytest.approx(values, abs=0.0051)
