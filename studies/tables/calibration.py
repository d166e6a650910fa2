"""Vemuri 2020, figures 6.1 to 6.3: calibrators and scores on one over-confident network."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

import numpy as np

import howsure as hs

from ..plans import runs_of
from ..plans.full import is_full
from ..provided import NAMES, TEN, here, provided
from ..runs import Run
from ..store import Store
from .results import again, arrays, finished, predictions, progress
from .table import Table, percent

HEADER = ["method", "val ECE", "val AAC", "test ECE", "test AAC", "test accuracy", "paper: val ECE", "val AAC",
          "test ECE", "test AAC"]  # fmt: skip
CHOICE = ["method", "fit ECE", "judge ECE", "test ECE", "fit AAC", "judge AAC", "test AAC", "paper: fit ECE",
          "judge ECE", "test ECE", "fit AAC", "judge AAC", "test AAC"]  # fmt: skip
PAPER = {
    "none": ("", "", "16.8", "6.6"), "histogram binning": ("0.2", "1.4", "17.1", "22.4"),
    "matrix scaling": ("0.6", "0.1", "11.6", "6.5"), "temperature": ("1.3", "0.1", "13.9", "6.1"),
    "entropy": ("1.8", "0.1", "19.7", "6.4"), "boundary distance, softmax": ("", "0.1", "", "6.2"),
}  # fmt: skip
PAPER_CHOICE = {
    "histogram binning": ("0.4", "0.6", "16.3", "1.3", "2.2", "23.5"),
    "matrix scaling": ("0.7", "0.4", "12.9", "0.1", "0.2", "7.1"),
    "temperature": ("1.4", "1.1", "13.8", "0.1", "0.1", "6.2"),
    "entropy": ("2.1", "1.5", "19.7", "0.1", "0.2", "6.4"),
    "boundary distance, softmax": ("", "", "", "0.1", "0.2", "6.2"),
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
DISTANCES = {"boundary": "boundary distance", "boundary_softmax": "boundary distance, softmax"}
NOT_A_PROBABILITY = tuple(DISTANCES.values())
PUBLISHED_SETS = (TEN, ("netcal_densenet_bc_100_c100",))  # fully trained, by data set
KNOWN = 0.02  # training error below which a network knows its images by heart
PAPER_IDEAL = 0.023  # area above the ideal threshold diagram of the test images (figure 4.1)
HALF_SEED = 0
ByMethod = dict[str, tuple[hs.Outcomes, ...]]


@dataclass(frozen=True)
class Parts:
    """The images on which a method is fitted, then those on which it is looked at; distances where
    they are known.
    """

    fit: hs.Predictions
    shown: tuple[hs.Predictions, ...]
    distances: Mapping[str, tuple[np.ndarray, ...]] = field(
        default_factory=dict[str, tuple[np.ndarray, ...]]
    )


def calibration(store: Store, scale: str) -> list[Table]:
    runs = runs_of(["calibration"], scale)
    note = f"{progress(store, runs)} In per cent, 15 bins; the paper's values are those of ResNet-44 after 300 epochs."
    done = finished(store, runs)
    tables = [
        method_table(f"{name_of(r)} (figures 6.1 and 6.2)", on_whole(store, r), note) for r in done
    ]
    tables += [
        choice_table(f"{name_of(r)}: choosing a calibrator (figure 6.3)", store, r) for r in done
    ]
    tables += [learnt_table(store, r) for r in done if fits(store, r)]
    tables += [provided_table(name) for names in PUBLISHED_SETS for name in names if here(name)]
    return tables or [Table("Calibrators (figures 6.1 and 6.2)", HEADER, [], note)]


def name_of(run: Run) -> str:
    """The network, how long it was trained, and which training it is where there are several."""
    size = ", all images" if is_full(run.settings) else ""
    return f"{run.settings.network}, {run.settings.epochs} epochs{size}{again(run)}"


def provided_table(name: str) -> Table:
    fit = provided(name, "val")
    left_out = too_large(fit)
    why = (
        f" {' and '.join(left_out)} are left out: {fit.k * (fit.k + 1):,} parameters cannot be fitted to {fit.n:,} "
        "validation images."
    )
    note = f"In per cent.{why if left_out else ''}"
    return method_table(f"{NAMES[name]}, fully trained", on_provided(name), note)


def fits(store: Store, run: Run) -> bool:
    """Whether the network knows its training images by heart, as the paper's does."""
    return 1 - hs.accuracy(predictions(store, run, "train")) < KNOWN


def learnt_table(store: Store, run: Run) -> Table:
    note = f"In per cent. Fitted on {predictions(store, run, 'train').n:,} training images, here in the place of val."
    title = f"{name_of(run)}: fitted on images that the network has learnt (figure 6.1)"
    return method_table(title, on_learnt(store, run), note)


def method_table(title: str, found: ByMethod, note: str) -> Table:
    return Table(title, HEADER, [method_row(name, *found[name]) for name in found], note)


def method_row(name: str, val: hs.Outcomes, test: hs.Outcomes) -> list[str]:
    cells = [cell for o in (val, test) for cell in (ece(name, o), percent(hs.aac(o.tally())))]
    return [name, *cells, percent(float(test.correct.mean())), *PAPER.get(name, ("",) * 4)]


def choice_table(title: str, store: Store, run: Run) -> Table:
    """Fitted on one half of the validation images and judged on the other: does the choice hold on
    the test?
    """
    found = on_halves(store, run)
    rows = [choice_row(name, list(found[name])) for name in found]
    return Table(
        title, CHOICE, rows, "In per cent. Each method is fitted on half of the validation images."
    )


def choice_row(name: str, parts: list[hs.Outcomes]) -> list[str]:
    aacs = [percent(hs.aac(o.tally())) for o in parts]
    return [name, *(ece(name, o) for o in parts), *aacs, *PAPER_CHOICE.get(name, ("",) * 6)]


def ece(name: str, o: hs.Outcomes) -> str:
    return "" if name in NOT_A_PROBABILITY else percent(hs.ece(o.tally()))


def whole(store: Store, run: Run) -> Parts:
    val, test = predictions(store, run, "val"), predictions(store, run)
    kept = {
        name: arrays(store, run, extra) for extra, name in DISTANCES.items() if extra in run.extras
    }
    far = {
        name: tuple(found[f"{s}_boundary_distance"] for s in ("val", "test"))
        for name, found in kept.items()
    }
    return Parts(val, (val, test), far)


def halves(all_of_it: Parts) -> Parts:
    """Fitted on one half of validation, judged on the other."""
    val, test = all_of_it.shown
    order = np.random.default_rng(HALF_SEED).permutation(val.n)
    fit, judge = np.sort(order[: val.n // 2]), np.sort(order[val.n // 2 :])
    far = {name: (v[fit], v[judge], t) for name, (v, t) in all_of_it.distances.items()}
    return Parts(val[fit], (val[fit], val[judge], test), far)


@cache
def on_whole(store: Store, run: Run) -> ByMethod:
    return outcomes(whole(store, run))


@cache
def on_learnt(store: Store, run: Run) -> ByMethod:
    """What comes of it where the images for the fit are not held out."""
    train = predictions(store, run, "train")
    return outcomes(Parts(train, (train, predictions(store, run))))


@cache
def on_provided(name: str) -> ByMethod:
    val = provided(name, "val")
    return outcomes(Parts(val, (val, provided(name))))


@cache
def on_halves(store: Store, run: Run) -> ByMethod:
    return outcomes(halves(whole(store, run)))


@cache
def on_provided_halves(name: str) -> ByMethod:
    val = provided(name, "val")
    return outcomes(halves(Parts(val, (val, provided(name)))))


def outcomes(parts: Parts) -> ByMethod:
    """Score and correctness by method; entropy and distance only rank, the answers stay those of
    the network.
    """
    found = {
        name: calibrated(name, parts) for name in CALIBRATORS if name not in too_large(parts.fit)
    }
    found["entropy"] = tuple(hs.Outcomes.of(p, hs.scores.entropy(p)) for p in parts.shown)
    for name, scores in parts.distances.items():
        found[name] = tuple(
            hs.Outcomes.of(p, score) for p, score in zip(parts.shown, scores, strict=True)
        )
    return found


def too_large(fit: hs.Predictions) -> tuple[str, ...]:
    """A matrix with more entries than there are images fits all of them and nothing else."""
    return ("matrix scaling", "Dirichlet") if fit.k * (fit.k + 1) > fit.n else ()


def calibrated(name: str, parts: Parts) -> tuple[hs.Outcomes, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # a fit that is too sure shows on the images it has not seen
        calibrator = CALIBRATORS[name].fit(parts.fit)
    return tuple(hs.Outcomes.of(calibrator(p)) for p in parts.shown)
