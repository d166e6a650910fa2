"""Laves 2019, table 1 and figures 1 to 5: one pass against MC dropout, as trained and after
temperature scaling.
"""

import warnings
from functools import cache

import numpy as np

import howsure as hs

from ..plans import runs_of
from ..plans.full import is_full
from ..runs import Run
from ..store import Store
from .results import arrays, finished, progress, tally
from .table import Table, percent

HEADER = ["network", "accuracy", "one-pass ECE", "MC ECE", "MC UCE",
          "T", "scaled one-pass ECE", "MC T", "scaled MC ECE", "scaled MC UCE",
          "per-pass T", "its MC ECE", "its MC UCE"]  # fmt: skip
PAPER = [
    [
        "paper: ResNet-18, CIFAR-10",
        "",
        "8.95",
        "8.41",
        "7.60",
        "",
        "1.40",
        "",
        "0.47",
        "5.27",
        "",
        "",
        "",
    ],
    [
        "paper: ResNet-101, CIFAR-100",
        "",
        "29.63",
        "24.62",
        "30.33",
        "",
        "3.50",
        "",
        "1.92",
        "2.41",
        "",
        "",
        "",
    ],
    [
        "paper: DenseNet-169, CIFAR-100",
        "",
        "30.62",
        "23.98",
        "29.62",
        "",
        "6.10",
        "",
        "2.89",
        "2.69",
        "",
        "",
        "",
    ],
]
USUAL, SWEPT_NETWORK, DRAWN = (0.5, 0.01), "cnn", 25
OBJECTIVES = ("averaged", "per_pass")
PASSES = (1, 2, 5, 10, 15, 20, 25)
THRESHOLDS = np.arange(0.1, 1.01, 0.1)


def mc_temperature(store: Store, scale: str) -> list[Table]:
    runs = runs_of(["mc_temperature"], scale)
    everything = finished(store, runs)
    done = [run for run in everything if not swept(run)]
    note = f"{progress(store, runs)} In per cent, 15 bins, 25 passes; 2,000 test images, and all 10,000 after 60 epochs."
    rows = [*(row(store, r) for r in done), *PAPER]
    return [
        Table("Confidence and uncertainty (table 1, figure 2)", HEADER, rows, note),
        sweep_table(store, [run for run in everything if is_point(run)]),
        passes_table(store, done),
        rejection_table(store, done),
    ]


def name_of(run: Run) -> str:
    """What tells this network from the others: its settings where they are not the usual ones."""
    s = run.settings
    long = "features" in run.extras
    parts = [f"{s.network} {s.data}", *([f"{s.epochs} epochs"] if long else [])]
    parts += ["all images"] if is_full(s) else []
    parts += [f"penalty {s.confidence_penalty}"] if s.confidence_penalty else []
    parts += [f"dropout {s.dropout} decay {s.weight_decay}"] if swept(run) else []
    return " ".join([*parts, *([f"seed {s.seed}"] if long and not swept(run) else [])])


def swept(run: Run) -> bool:
    """A point of the sweep that is not the recipe of the others."""
    return "features" in run.extras and (run.settings.dropout, run.settings.weight_decay) != USUAL


def is_point(run: Run) -> bool:
    """The sweep holds the recipe of the others as its middle."""
    s, usual = run.settings, USUAL
    return swept(run) or ("features" in run.extras and not s.confidence_penalty and s.seed == 0 and (
        s.network == SWEPT_NETWORK and (s.dropout, s.weight_decay) == usual))  # fmt: skip


def sweep_table(store: Store, runs: list[Run]) -> Table:
    """Dropout rate against weight decay, which the paper leaves to future work."""
    header = [
        "dropout",
        "weight decay",
        "accuracy",
        "MC ECE",
        "MC UCE",
        "T",
        "scaled MC ECE",
        "scaled MC UCE",
    ]
    order = sorted(runs, key=lambda run: (run.settings.dropout, run.settings.weight_decay))
    note = (
        "In per cent, one seed for each pair, 25 passes drawn from the features of all test images."
    )
    return Table(
        "Dropout rate and weight decay (future work)",
        header,
        [sweep_row(store, r) for r in order],
        note,
    )


def sweep_row(store: Store, run: Run) -> list[str]:
    many, after = passes(store, run), scaled(store, run)
    s, t = run.settings, f"{scaling(store, run).temperature:.2f}"
    before = [percent(v) for v in (hs.accuracy(many), hs.ece(tally(many)), hs.uce(many))]
    return [
        f"{s.dropout:g}",
        f"{s.weight_decay:g}",
        *before,
        t,
        percent(hs.ece(tally(after))),
        percent(hs.uce(after)),
    ]


@cache
def mc_arrays(store: Store, run: Run) -> dict[str, np.ndarray]:
    """Logits of one pass and of 25 with dropout: as they were kept, or drawn from features and last
    layer.
    """
    return (
        drawn_passes(arrays(store, run, "features"), run)
        if "features" in run.extras
        else arrays(store, run, "mc")
    )


def drawn_passes(found: dict[str, np.ndarray], run: Run) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(run.settings.seed)
    weight, bias = found["weight"].T, found["bias"]
    kept: dict[str, np.ndarray] = {}
    for split in ("val", "test"):
        features = found[f"{split}_features"].astype(np.float32)
        last = lambda x: (x @ weight + bias).astype(np.float16)
        kept[f"{split}_logits"], kept[f"{split}_labels"] = last(features), found[f"{split}_labels"]
        masks = (
            rng.random(features.shape, np.float32) >= run.settings.dropout for _ in range(DRAWN)
        )
        kept[f"mc_{split}_logits"] = np.stack(
            [last(features * m / (1 - run.settings.dropout)) for m in masks]
        )
    return kept


@cache
def one_pass(store: Store, run: Run, split: str = "test") -> hs.Predictions:
    found = mc_arrays(store, run)
    return hs.Predictions.from_logits(found[f"{split}_logits"], found[f"{split}_labels"])


@cache
def passes(store: Store, run: Run, split: str = "test", count: int | None = None) -> hs.Predictions:
    found = mc_arrays(store, run)
    return hs.Predictions.from_samples(
        logits=found[f"mc_{split}_logits"][:count], labels=found[f"{split}_labels"]
    )


def row(store: Store, run: Run) -> list[str]:
    single, many = one_pass(store, run), passes(store, run)
    plain = [
        percent(v)
        for v in (hs.accuracy(single), hs.ece(tally(single)), hs.ece(tally(many)), hs.uce(many))
    ]
    return [name_of(run), *plain, *scaled_cells(store, run)]


def scaled_cells(store: Store, run: Run) -> list[str]:
    """One temperature for the single pass; inside the average over passes that of the averaged
    likelihood, and that of the mean likelihood of the passes, which the paper's released code
    fits."""
    cells = [
        f"{one_pass_scaling(store, run).temperature:.2f}",
        percent(hs.ece(tally(one_pass_scaled(store, run)))),
    ]
    for objective in OBJECTIVES:
        many = scaled(store, run, objective)
        cells += [f"{scaling(store, run, objective).temperature:.2f}", percent(hs.ece(tally(many)))]
        cells += [percent(hs.uce(many))]
    return cells


def passes_table(store: Store, runs: list[Run]) -> Table:
    rows = [
        [name_of(run), *(percent(hs.uce(passes(store, run, count=n))) for n in PASSES)]
        for run in runs
    ]
    return Table(
        "UCE against the number of passes",
        ["network", *map(str, PASSES)],
        rows,
        "As trained, in per cent.",
    )


def rejection_table(store: Store, runs: list[Run]) -> Table:
    """Figure 3: the error among what is kept when the normalised entropy may be at most this."""
    rows = [[name_of(run), *kept_errors(passes(store, run))] for run in runs]
    rows += [[f"{name_of(run)}, scaled", *kept_errors(scaled(store, run))] for run in runs]
    header = ["network", *(f"{h:.1f}" for h in THRESHOLDS)]
    return Table(
        "Error after rejection by entropy (figure 3)",
        header,
        rows,
        "In per cent of the kept images.",
    )


def one_pass_scaling(store: Store, run: Run) -> hs.calibrators.Temperature:
    return hs.calibrators.Temperature.fit(one_pass(store, run, "val"))


def one_pass_scaled(store: Store, run: Run) -> hs.Predictions:
    return one_pass_scaling(store, run)(one_pass(store, run))


@cache
def scaling(store: Store, run: Run, objective: str = "averaged") -> hs.calibrators.Temperature:
    """Fitted on the validation passes. That some answers change is counted on the test images, so
    no warning.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return hs.calibrators.Temperature.fit(passes(store, run, "val"), objective=objective)


@cache
def scaled(store: Store, run: Run, objective: str = "averaged") -> hs.Predictions:
    return scaling(store, run, objective)(passes(store, run))


def kept_errors(preds: hs.Predictions) -> list[str]:
    return [percent(float(y)) for y in hs.rejection(preds, THRESHOLDS).y]
