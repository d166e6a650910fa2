"""What becomes of confidence and of a threshold when the images change after the threshold was set,
and who sees it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

import howsure as hs

from ..plans import runs_of
from ..runs import Run
from ..shifts import NAMES, STRENGTHS
from ..store import Store
from .results import arrays, finished, predictions, progress, tally
from .table import Table, percent

HEADER = [
    "images",
    "accuracy",
    "mean confidence",
    "ECE",
    "AUROC",
    "AURC",
    "accepted",
    "error of the accepted",
]
PROMISED = 0.10
SEEN = ["images", "accuracy", "estimated", "limits", "expected error of the accepted", "limits", "true error",
        "images until the watch", "labels until the promise"]  # fmt: skip
RATE, ORDERS, STREAM = (
    0.01,
    20,
    3_000,
)  # lifetime false alarms; orders of each stream, and its length


@dataclass(frozen=True)
class Accepted:
    """Which test answers the threshold of the validation images keeps, and which of them are wrong."""

    kept: np.ndarray
    wrong: np.ndarray

    @property
    def risk(self) -> float:
        return float(self.wrong[self.kept].mean()) if self.kept.any() else float("nan")


def shift(store: Store, scale: str) -> list[Table]:
    runs = runs_of(["shift"], scale)
    note = (
        f"{progress(store, runs)} In per cent; AUROC of finding errors. "
        "Accepted are answers above the temperature-scaled confidence at which "
        f"{percent(PROMISED, 0)} % of the validation images that are kept are wrong. Strength 1 to 5: {strengths()}."
    )
    done = finished(store, runs)
    tables = [table_of(store, run, note) for run in done] or [
        Table("Changed images", HEADER, [], note)
    ]
    return tables + [without_labels(store, run) for run in done]


def strengths() -> str:
    units = {
        "blur": "Gaussian of {} pixels",
        "dark": "{} of the light",
        "noise": "noise of {} grey levels",
    }
    return "; ".join(
        units[kind].format(", ".join(f"{v:g}" for v in values))
        for kind, values in STRENGTHS.items()
    )


def table_of(store: Store, run: Run, note: str) -> Table:
    rows = [
        row("as they are", store, run),
        *(row(name.replace("_", " "), store, run, name) for name in NAMES),
    ]
    return Table(f"{run.settings.network}: changed images", HEADER, rows, note)


@cache
def changed(store: Store, run: Run, name: str = "") -> hs.Predictions:
    """Temperature-scaled test predictions, after one of the changes where it is named."""
    scaling = hs.calibrators.Temperature.fit(predictions(store, run, "val"))
    if not name:
        return scaling(predictions(store, run))
    found = arrays(store, run, name)
    return scaling(hs.Predictions.from_logits(found["test_logits"], found["test_labels"]))


@cache
def threshold(store: Store, run: Run) -> float:
    val = predictions(store, run, "val")
    scaled = hs.calibrators.Temperature.fit(val)(val)
    return hs.policies.threshold_for_accuracy(tally(scaled), 1 - PROMISED).threshold


def accepted(store: Store, run: Run, name: str = "") -> Accepted:
    preds = changed(store, run, name)
    return Accepted(preds.confidence >= threshold(store, run), ~preds.correct.astype(bool))


def row(title: str, store: Store, run: Run, name: str = "") -> list[str]:
    preds, kept = changed(store, run, name), accepted(store, run, name)
    t = tally(preds)
    values = (
        hs.accuracy(preds),
        preds.confidence.mean(),
        hs.ece(t),
        hs.auroc(t),
        hs.aurc(t),
        kept.kept.mean(),
        kept.risk,
    )
    return [title, *(percent(float(v)) for v in values)]


@dataclass(frozen=True)
class Seen:
    """What monitoring says of one kind of images, and when: median delays over the orders, None for
    never.
    """

    estimate: hs.Estimate
    accuracy: float
    risk: float
    watch: int | None
    promise: int | None


def deployed(store: Store, run: Run) -> hs.policies.Policy:
    """The temperature and the threshold of the validation images, as they would go into service."""
    scaling = hs.calibrators.Temperature.fit(predictions(store, run, "val"))
    return hs.policies.Policy("max_prob", threshold(store, run), scaling)


@cache
def seen(store: Store, run: Run, name: str = "") -> Seen:
    """The estimate from all images without their labels; the alarms from streams in random order."""
    policy, val = deployed(store, run), predictions(store, run, "val")
    found = arrays(store, run, name)
    new = hs.Predictions.from_logits(found["test_logits"], found["test_labels"])
    begun = hs.policies.DriftMonitor.start(policy.decide(val), false_alarms=RATE)
    promised = hs.serving.GuaranteeMonitor.start(risk=PROMISED, false_alarms=RATE)

    def watched(rows: np.ndarray) -> int | None:
        return min(begun.see(policy.decide(new[rows])).alarms.values(), default=None)

    def labelled(rows: np.ndarray) -> int | None:
        kept = rows[policy.decide(new[rows]).accept]
        return promised.see(new.correct[kept]).broken if len(kept) else None

    return Seen(
        hs.estimate(val, hs.Predictions.from_logits(found["test_logits"]), policy=policy),
        float(new.correct.mean()),
        accepted(store, run, name).risk,
        middle(orders(new.n, watched)),
        middle(orders(new.n, labelled)),
    )


def orders(n: int, first: Callable[[np.ndarray], int | None]) -> list[int | None]:
    """When the alarm came, in each random order of the images."""
    return [first(np.random.default_rng(seed).permutation(n)[:STREAM]) for seed in range(ORDERS)]


def middle(delays: list[int | None]) -> int | None:
    """The median delay; None where fewer than half of the streams raise an alarm."""
    raised = sorted(at for at in delays if at is not None)
    half = (len(delays) + 1) // 2
    return raised[half - 1] if len(raised) >= half else None


def without_labels(store: Store, run: Run) -> Table:
    note = (
        "In per cent. `hs.estimate` with the validation images as its labelled reference: accuracy of all, and error "
        f"of what the policy accepts ({percent(PROMISED, 0)} % promised), both with 95 % limits, without labels; "
        "yes where they hold the truth. Alarms: the median over "
        f"{ORDERS} random orders of {STREAM:,} images of the number until `DriftMonitor`, which sees no labels, and of "
        f"labels of accepted images until `GuaranteeMonitor` say so, each with a lifetime rate of false alarms of "
        f"{RATE:.0%}."
    )
    rows = [
        seen_row(name.replace("_", " ") or "as they are", seen(store, run, name))
        for name in ("", *NAMES)
    ]
    return Table(f"{run.settings.network}: what is seen without labels", SEEN, rows, note)


def seen_row(title: str, s: Seen) -> list[str]:
    e = s.estimate
    accuracy = [percent(s.accuracy), percent(e.accuracy), limits(e.low, s.accuracy, e.high)]
    none = np.isnan(s.risk)
    risk = (
        ["none accepted", "", ""]
        if none
        else [percent(e.risk), limits(e.risk_low, s.risk, e.risk_high), percent(s.risk)]
    )
    return [
        title,
        *accuracy,
        *risk,
        *("never" if at is None else f"{at:,}" for at in (s.watch, s.promise)),
    ]


def limits(low: float, truth: float, high: float) -> str:
    return f"{percent(low)}–{percent(high)} {'yes' if low <= truth <= high else 'no'}"
