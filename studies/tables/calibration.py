"""Vemuri 2020, figures 6.1 to 6.3: calibrators and scores on one over-confident network."""

import warnings
from dataclasses import dataclass
from functools import cache

import numpy as np

import howsure as hs

from ..plans import runs_of
from ..provided import NAMES, here, provided
from ..runs import Run
from ..store import Store
from .results import arrays, finished, predictions, progress
from .table import Table, percent

HEADER = ["method", "val ECE", "val AAC", "test ECE", "test AAC", "test accuracy", "paper: val ECE", "val AAC",
          "test ECE", "test AAC"]  # fmt: skip
CHOICE = ["method", "fit ECE", "judge ECE", "test ECE", "fit AAC", "judge AAC", "test AAC", "paper: fit ECE",
          "judge ECE", "test ECE", "fit AAC", "judge AAC", "test AAC"]  # fmt: skip
PAPER = {
    "none": ("", "", "16.8", "6.6"), "histogram binning": ("0.2", "1.4", "17.1", "22.4"),
    "matrix scaling": ("0.6", "0.1", "11.6", "6.5"), "temperature": ("1.3", "0.1", "13.9", "6.1"),
    "entropy": ("1.8", "0.1", "19.7", "6.4"), "boundary distance": ("", "0.1", "", "6.2"),
}  # fmt: skip
PAPER_CHOICE = {
    "histogram binning": ("0.4", "0.6", "16.3", "1.3", "2.2", "23.5"),
    "matrix scaling": ("0.7", "0.4", "12.9", "0.1", "0.2", "7.1"),
    "temperature": ("1.4", "1.1", "13.8", "0.1", "0.1", "6.2"),
    "entropy": ("2.1", "1.5", "19.7", "0.1", "0.2", "6.4"),
    "boundary distance": ("", "", "", "0.1", "0.2", "6.2"),
}  # fmt: skip
CALIBRATORS = {
    "none": hs.calibrators.Identity,
    "histogram binning": hs.calibrators.HistogramBinning,
    "isotonic": hs.calibrators.Isotonic,
    "Platt": hs.calibrators.Platt,
    "beta": hs.calibrators.Beta,
    "matrix scaling": hs.calibrators.MatrixScaling,
    "vector scaling": hs.calibrators.VectorScaling,
    "Dirichlet": hs.calibrators.Dirichlet,
    "temperature": hs.calibrators.Temperature,
}
NOT_A_PROBABILITY = ("boundary distance",)
FULLY_TRAINED = ("nn_resnet110_c10", "netcal_densenet_bc_100_c100")
HALF_SEED = 0
ByMethod = dict[str, tuple[hs.Outcomes, ...]]


@dataclass(frozen=True)
class Parts:
    """The images on which a method is fitted, then those on which it is looked at; distances where they are known."""

    fit: hs.Predictions
    shown: tuple[hs.Predictions, ...]
    distances: tuple[np.ndarray, ...] = ()


def calibration(store: Store, scale: str) -> list[Table]:
    runs = runs_of(["calibration"], scale)
    note = f"{progress(store, runs)} In per cent, 15 bins; the paper's values are those of ResNet-44 after 300 epochs."
    done = finished(store, runs)
    tables = [method_table(f"{r.settings.network} (figures 6.1 and 6.2)", on_whole(store, r), note) for r in done]
    tables += [choice_table(f"{r.settings.network}: choosing a calibrator (figure 6.3)", store, r) for r in done]
    others = [name for name in FULLY_TRAINED if here(name)]
    tables += [method_table(f"{NAMES[name]}, fully trained", on_provided(name), "In per cent.") for name in others]
    return tables or [Table("Calibrators (figures 6.1 and 6.2)", HEADER, [], note)]


def method_table(title: str, found: ByMethod, note: str) -> Table:
    return Table(title, HEADER, [method_row(name, *found[name]) for name in found], note)


def method_row(name: str, val: hs.Outcomes, test: hs.Outcomes) -> list[str]:
    cells = [cell for o in (val, test) for cell in (ece(name, o), percent(hs.aac(o.tally())))]
    return [name, *cells, percent(float(test.correct.mean())), *PAPER.get(name, ("",) * 4)]


def choice_table(title: str, store: Store, run: Run) -> Table:
    """Fitted on one half of the validation images and judged on the other: does the choice hold on the test?"""
    found = on_halves(store, run)
    rows = [choice_row(name, list(found[name])) for name in found]
    return Table(title, CHOICE, rows, "In per cent. Each method is fitted on half of the validation images.")


def choice_row(name: str, parts: list[hs.Outcomes]) -> list[str]:
    aacs = [percent(hs.aac(o.tally())) for o in parts]
    return [name, *(ece(name, o) for o in parts), *aacs, *PAPER_CHOICE.get(name, ("",) * 6)]


def ece(name: str, o: hs.Outcomes) -> str:
    return "" if name in NOT_A_PROBABILITY else percent(hs.ece(o.tally()))


def whole(store: Store, run: Run) -> Parts:
    val, test = predictions(store, run, "val"), predictions(store, run)
    far = arrays(store, run, "boundary")
    return Parts(val, (val, test), (far["val_boundary_distance"], far["test_boundary_distance"]))


def halves(store: Store, run: Run) -> Parts:
    all_of_it = whole(store, run)
    val, test = all_of_it.shown
    order = np.random.default_rng(HALF_SEED).permutation(val.n)
    fit, judge = np.sort(order[: val.n // 2]), np.sort(order[val.n // 2 :])
    far = all_of_it.distances
    return Parts(val[fit], (val[fit], val[judge], test), (far[0][fit], far[0][judge], far[1]))


@cache
def on_whole(store: Store, run: Run) -> ByMethod:
    return outcomes(whole(store, run))


@cache
def on_provided(name: str) -> ByMethod:
    val = provided(name, "val")
    return outcomes(Parts(val, (val, provided(name))))


@cache
def on_halves(store: Store, run: Run) -> ByMethod:
    return outcomes(halves(store, run))


def outcomes(parts: Parts) -> ByMethod:
    """Score and correctness by method; entropy and distance only rank, the answers stay those of the network."""
    found = {name: calibrated(name, parts) for name in CALIBRATORS if name not in too_large(parts.fit)}
    found["entropy"] = tuple(hs.Outcomes.of(p, hs.scores.entropy(p)) for p in parts.shown)
    if parts.distances:
        pairs = zip(parts.shown, parts.distances, strict=True)
        found["boundary distance"] = tuple(hs.Outcomes.of(p, score) for p, score in pairs)
    return found


def too_large(fit: hs.Predictions) -> tuple[str, ...]:
    """A matrix with more entries than there are images fits all of them and nothing else."""
    return ("matrix scaling", "Dirichlet") if fit.k * (fit.k + 1) > fit.n else ()


def calibrated(name: str, parts: Parts) -> tuple[hs.Outcomes, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that is too sure shows on the images it has not seen
        calibrator = CALIBRATORS[name].fit(parts.fit)
    return tuple(hs.Outcomes.of(calibrator(p)) for p in parts.shown)
