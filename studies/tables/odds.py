"""Finlay & Oberman, tables 1 to 5: what each uncertainty method is worth to a bettor."""

import numpy as np

import howsure as hs

from ..plans import runs_of
from ..runs import Run
from ..store import Store
from .results import arrays, finished, predictions, progress
from .table import Table, percent

LEVELS = (0.99, 0.95)
PAPER = {"entropy": "4.29", "U1": "4.22", "dropout 0.002": "10.39", "dropout 0.01": "4.67",
         "dropout 0.05": "1.69", "ensemble": "16.66"}  # fmt: skip
PAPER_BRIER = {"entropy": "0.033", "U1": "0.033", "dropout 0.002": "0.036"}


def odds(store: Store, scale: str) -> list[Table]:
    """All methods rank the answers of the first network, so that they are compared on the same predictions."""
    runs = runs_of(["odds"], scale)
    done = finished(store, runs)
    note = f"{progress(store, runs)} Ensemble of {len(done)}; 100 bins of equal size."
    if not done:
        return [Table("Expected odds ratio", ["method"], [], note)]
    correct = predictions(store, done[0]).correct
    found = {name: hs.tally(score, correct=correct) for name, score in methods(store, done).items()}
    return [odds_table(found, note), bands_table(found, note)]


def methods(store: Store, runs: list[Run]) -> dict[str, np.ndarray]:
    preds = predictions(store, runs[0])
    variance = arrays(store, runs[0], "dropout_variance")
    scores = {
        "entropy": hs.scores.neg_entropy(preds),
        "U1": hs.scores.log_max_prob(preds),
        "U5": np.log(hs.scores.top_k_mass(preds, k=5)),
        **{f"dropout {name.rsplit('_', 1)[1]}": -values for name, values in variance.items()},
        "loss (not available in use)": -hs.losses.nll(preds),
    }
    if len(runs) > 1:
        scores["ensemble"] = hs.scores.variance(ensemble(store, runs))
    return scores


def ensemble(store: Store, runs: list[Run]) -> hs.Predictions:
    logits = np.stack([arrays(store, run)["test_logits"] for run in runs])
    return hs.Predictions.from_samples(logits=logits, labels=arrays(store, runs[0])["test_labels"])


def odds_table(found: dict[str, hs.Tally], note: str) -> Table:
    header = ["method", "EOR smoothed", "EOR merged", "paper EOR", "Brier", "paper Brier", "AUROC", "AURC", "bits left"]
    rows = [odds_row(name, t) for name, t in found.items()]
    title = "Expected odds ratio and Brier score (tables 1 and 2)"
    return Table(title, header, rows, note + " Bins without errors make the plain EOR infinite.")


def odds_row(name: str, t: hs.Tally) -> list[str]:
    h = hs.histogram(t, hs.equal_size(100))
    values = [f"{hs.eor(h, degenerate=how):.2f}" for how in ("smooth", "merge")]
    brier = f"{hs.histogram_brier(h):.4f}"
    rest = [percent(hs.auroc(t)), percent(hs.aurc(t)), f"{hs.conditional_entropy(h):.3f}"]
    return [name, *values, PAPER.get(name, ""), brier, PAPER_BRIER.get(name, ""), *rest]


def bands_table(found: dict[str, hs.Tally], note: str) -> Table:
    header = ["method", *(f"share at {level:.0%}" for level in LEVELS), "share of the rest", "accuracy of the rest"]
    return Table("Bands of certainty (tables 3 to 5)", header, [bands_row(n, t) for n, t in found.items()], note)


def bands_row(name: str, t: hs.Tally) -> list[str]:
    found = hs.bands(t, LEVELS)
    return [name, *(percent(w, 1) for w in found.weight), percent(found.accuracy[-1], 1)]
