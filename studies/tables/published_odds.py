"""Finlay & Oberman, table 1, on published ResNets for CIFAR-10: one network, dropout switched on when
it is asked, three rates, 30 passes, and an ensemble of four.
"""

from functools import cache

import numpy as np

import howsure as hs

from ..kept import DEPTHS, is_kept, read_kept, read_logits
from .table import Table, percent

NETWORK = 20  # the depth whose dropout passes are kept
RATES = ("0.002", "0.01", "0.05")
BINS = hs.equal_size(100)
HEADER = [
    "method",
    "EOR pooled",
    "EOR smoothed",
    "EOR without error-free bins",
    "paper EOR",
    "Brier",
    "AUROC",
]
PAPER_EOR = {"entropy": "4.29", "U1": "4.22", "ensemble of four": "16.66",
             "dropout 0.002": "10.39", "dropout 0.01": "4.67", "dropout 0.05": "1.69"}  # fmt: skip


def pool_bins(p: np.ndarray) -> np.ndarray:
    """The authors' rule for bins without an error, the most trusted bin first: their accuracies,
    up to one bin past the last of them, become the mean of all these; those from the first bin
    without a right answer to the last become their sum over one more than their number."""
    pooled = p.copy()
    perfect = np.flatnonzero(pooled == 1)
    if len(perfect):
        end = min(perfect[-1] + 2, len(pooled))
        pooled[:end] = pooled[:end].mean()
    hopeless = np.flatnonzero(pooled == 0)
    if len(hopeless):
        rest = pooled[hopeless[0] :]
        pooled[hopeless[0] :] = rest.sum() / (len(rest) + 1)
    return pooled


def pooled_eor(score: np.ndarray, correct: np.ndarray) -> float:
    """`hs.eor` with that rule; the base odds stay those of all samples."""
    h = hs.histogram(hs.tally(score, correct=correct), BINS)
    return hs.eor(hs.Histogram(weight=h.weight, p=pool_bins(h.p)), base=h.base)


def published_rows() -> np.ndarray:
    """The images whose passes are kept; all, where no passes are."""
    if is_kept("dropout"):
        return read_kept("dropout")["rows"].astype(np.intp)
    return np.arange(read_logits(NETWORK).n)


def published_answers() -> np.ndarray:
    """Whether the published ResNet-20 is right about these images."""
    return read_logits(NETWORK).correct[published_rows()]


@cache
def published_without_passes() -> dict[str, np.ndarray]:
    """Trust in the answers of the published ResNet-20 about all test images; empty where nothing is
    kept."""
    if not is_kept("logits"):
        return {}
    preds = read_logits(NETWORK)
    kept = read_kept("logits")
    members = np.stack([kept[f"resnet{depth}_logits"] for depth in DEPTHS])
    ensemble = hs.Predictions.from_samples(logits=members, labels=preds.labels)
    return {
        "entropy": hs.scores.neg_entropy(preds),
        "U1": hs.scores.log_max_prob(preds),
        "ensemble of four": hs.scores.variance(ensemble),
    }


@cache
def published_methods() -> dict[str, np.ndarray]:
    """These and the dropout variances, on the images whose passes are kept."""
    rows = published_rows() if is_kept("logits") else np.arange(0)
    scores = {name: score[rows] for name, score in published_without_passes().items()}
    if scores and is_kept("dropout"):
        found = read_kept("dropout")
        scores |= {f"dropout {rate}": -found[f"frobenius_{rate}"] for rate in RATES}
    return scores


def published_table() -> list[Table]:
    scores = published_methods()
    if not scores:
        return []
    correct = published_answers()
    rows = [published_row(name, score, correct) for name, score in scores.items()]
    note = (
        f"{len(correct):,} of 10,000 test images, {percent(correct.mean(), 1)} % right (paper 95 %); 100 bins. One network "
        "that was trained without dropout; it is switched on when asked, before and after every convolution of a block, 30 "
        "passes. Dropout scores are minus the Frobenius norm of the passes' covariance. Pooled is the authors' rule "
        "for error-free bins."
    )
    return [Table("Published ResNet-20, CIFAR-10 (tables 1 and 2)", HEADER, rows, note)]


def published_row(name: str, score: np.ndarray, correct: np.ndarray) -> list[str]:
    t = hs.tally(score, correct=correct)
    h = hs.histogram(t, BINS)
    others = [f"{hs.eor(h, degenerate=how):.2f}" for how in ("smooth", "drop")]
    rest = [f"{hs.histogram_brier(h):.4f}", percent(hs.auroc(t))]
    return [name, f"{pooled_eor(score, correct):.2f}", *others, PAPER_EOR[name], *rest]
