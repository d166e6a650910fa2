"""Vemuri 2020, figures 6.1 to 6.3: calibrators and scores on one over-confident network."""

import numpy as np

import howsure as hs

from ..plans import runs_of
from ..runs import Run
from ..store import Store
from .results import arrays, available, finished, predictions, progress
from .table import Table, percent

HEADER = ["method", "val ECE", "val AAC", "test ECE", "test AAC", "test accuracy", "paper test ECE", "paper test AAC"]
PAPER = {"none": ("16.8", "6.6"), "HistogramBinning": ("17.1", "22.4"), "entropy": ("19.7", "6.4"),
         "MatrixScaling": ("11.6", "6.5"), "Temperature": ("13.9", "6.1"),
         "boundary distance": ("", "6.2")}  # fmt: skip
CALIBRATORS = ("HistogramBinning", "MatrixScaling", "Temperature")
HALF_SEED = 0
Parts = tuple[hs.Predictions, hs.Predictions]


def calibration(store: Store, scale: str) -> list[Table]:
    runs = runs_of(["calibration"], scale)
    note = progress(store, runs) + " In per cent, 15 bins. Entropy and distance rank; they are not probabilities."
    done = finished(store, runs)
    tables = [Table(f"{run.settings.network} (figures 6.1 and 6.2)", HEADER, rows(store, run), note) for run in done]
    return tables + [choice(store, run) for run in done]


def rows(store: Store, run: Run) -> list[list[str]]:
    parts = (predictions(store, run, "val"), predictions(store, run))
    found = [row("none", parts, [hs.scores.max_prob(p) for p in parts])]
    found += [calibrated_row(name, parts) for name in available(CALIBRATORS)]
    far = arrays(store, run, "boundary")
    distances = [far[f"{split}_boundary_distance"] for split in ("val", "test")]
    return [
        *found,
        row("entropy", parts, [hs.scores.entropy(p) for p in parts], probability=False),
        row("boundary distance", parts, distances, probability=False),
    ]


def calibrated_row(name: str, parts: Parts) -> list[str]:
    calibrator = getattr(hs.calibrators, name).fit(parts[0])
    changed = (calibrator(parts[0]), calibrator(parts[1]))
    return row(name, changed, [hs.scores.max_prob(p) for p in changed])


def row(name: str, parts: Parts, scores: list[np.ndarray], *, probability: bool = True) -> list[str]:
    val, test = (hs.tally(score, correct=p.correct) for score, p in zip(scores, parts, strict=True))
    eces = [percent(hs.ece(t)) if probability else "" for t in (val, test)]
    aacs = [percent(hs.aac(t)) for t in (val, test)]
    paper = PAPER.get(name, ("", ""))
    return [name, eces[0], aacs[0], eces[1], aacs[1], percent(hs.accuracy(parts[1])), *paper]


def choice(store: Store, run: Run) -> Table:
    """Figure 6.3: calibrators fitted on one half of the validation images and judged on the other."""
    val, test = predictions(store, run, "val"), predictions(store, run)
    order = np.random.default_rng(HALF_SEED).permutation(val.n)
    fit, judge = val[np.sort(order[: val.n // 2])], val[np.sort(order[val.n // 2 :])]
    header = ["method", "fit ECE", "judge ECE", "test ECE", "fit AAC", "judge AAC", "test AAC"]
    found = [choice_row(name, fit, judge, test) for name in available(CALIBRATORS)]
    return Table(f"{run.settings.network}: choosing a calibrator (figure 6.3)", header, found, "In per cent.")


def choice_row(name: str, fit: hs.Predictions, judge: hs.Predictions, test: hs.Predictions) -> list[str]:
    calibrator = getattr(hs.calibrators, name).fit(fit)
    changed = [calibrator(p) for p in (fit, judge, test)]
    found = [hs.tally(hs.scores.max_prob(p), correct=p.correct) for p in changed]
    return [name, *(percent(hs.ece(t)) for t in found), *(percent(hs.aac(t)) for t in found)]
