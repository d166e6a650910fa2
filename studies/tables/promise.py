"""A threshold is set on validation images: is what it promised true of the test images?

The promise is half the error of the validation images. Three ways to make it: the threshold that
kept it on validation; the same with a prediction interval from cross-fitting; and the guaranteed
threshold.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import stats

import howsure as hs

from ..plans import runs_of
from ..provided import here, provided
from ..store import Store
from .results import finished, predictions, progress, tally, title
from .table import Table, percent

SETS = (
    "nn_resnet110_c10", "nn_resnet110_c100_top", "netcal_wideresnet_16_4_c10", "netcal_densenet_bc_100_c100",
    "ak_resnet20_c10", "ak_resnet32_c10", "in1k_tv_resnext101_32x8d", "in1k_timm_efficientnet_b3a", "cleanlab_imdb",
    "cleanlab_mnist", "eurosat_rgb", "f538_mlb", "f538_nfl", "f538_worldcup_ingame", "hollance_snacks",
    "llm_mmlu_gpt_35_turbo", "mc_fashion_cnn",
)  # fmt: skip
DELTA = 0.05
JEFFREYS = 0.5
DRAWS, DRAW_SEED = 60, 0
SUMMARY = ["sets", "threshold", "number", "promised error", "error on test", "kept", "error above the promise",
           "shown to be above", "nothing could be promised"]  # fmt: skip
HEADER = ["set", "promised error", "predicted interval on test", "error on test", "kept", "guaranteed: error on test",
          "kept"]  # fmt: skip


@dataclass(frozen=True)
class Kept:
    """What a threshold keeps of the test images."""

    count: int
    wrong: int
    n: int

    @property
    def risk(self) -> float:
        return self.wrong / self.count if self.count else float("nan")

    @property
    def coverage(self) -> float:
        return self.count / self.n

    def shown_above(self, risk: float) -> bool:
        """The exact lower limit of the error, at 95 %, lies above the promise."""
        return 1 - hs.bounds.clopper_pearson(self.count - self.wrong, self.count, DELTA) > risk


@dataclass(frozen=True)
class Promised:
    """One set: the promise, the interval predicted for the error on the test images, and what came
    of it.
    """

    name: str
    risk: float
    low: float
    high: float
    plain: Kept
    guaranteed: Kept

    @property
    def inside(self) -> bool:
        return self.low <= self.plain.risk <= self.high


@dataclass(frozen=True)
class DrawnAgain:
    """One pair of samples: whether a threshold was found, and whether the error lay above the
    promise, in truth and on the test sample."""

    made: bool
    true_above: bool
    test_above: bool


def promise(store: Store, scale: str) -> list[Table]:
    runs = runs_of(["promise"], scale)
    groups = {"published": published(), "our networks": own(store, scale)}
    rows = [row for name, found in groups.items() if found for row in summary_rows(name, found)]
    note = (
        f"{progress(store, runs)} In per cent. The promise is half the error of the validation images. Our networks "
        "share their images, so that they stand or fall together."
    )
    tables = [Table("Promises made on validation, judged on test", SUMMARY, rows, note)]
    detail = "In per cent. The interval holds the noise of both samples: beta-binomial after cross-fitting, 95 %."
    return [
        *tables,
        *(
            Table(f"Set by set: {n}", HEADER, [row_of(p) for p in f], detail)
            for n, f in groups.items()
        ),
    ]


@cache
def published() -> tuple[Promised, ...]:
    return tuple(
        promised(name, provided(name, "val"), provided(name)) for name in SETS if here(name)
    )


@cache
def drawn_again() -> dict[str, tuple[DrawnAgain, ...]]:
    """All rows of a published set are taken for all there is. Validation and test samples of the
    usual sizes are drawn from them with replacement: independent, and their truth is known."""
    found: dict[str, tuple[DrawnAgain, ...]] = {}
    for name in SETS:
        if here(name):
            parts = [provided(name, split) for split in ("val", "test")]
            score = np.concatenate([part.confidence for part in parts])
            wrong = ~np.concatenate([part.correct.astype(bool) for part in parts])
            rng = np.random.default_rng(DRAW_SEED)
            sizes = (parts[0].n, parts[1].n)
            found[name] = tuple(draw_once(score, wrong, sizes, rng) for _ in range(DRAWS))
    return found


def draw_once(
    score: np.ndarray, wrong: np.ndarray, sizes: tuple[int, int], rng: np.random.Generator
) -> DrawnAgain:
    val, test = (rng.integers(len(score), size=size) for size in sizes)
    risk = float(wrong[val].mean()) / 2
    t = hs.tally(score[val], correct=~wrong[val])
    if not risk:
        return DrawnAgain(made=False, true_above=False, test_above=False)
    sure = hs.policies.guaranteed_threshold(t, risk=risk, delta=DELTA, method="fixed_sequence")
    accepted, seen = score >= sure.threshold, score[test] >= sure.threshold
    if not accepted.any():
        return DrawnAgain(made=False, true_above=False, test_above=False)
    test_risk = float(wrong[test][seen].mean()) if seen.any() else 0.0
    return DrawnAgain(
        made=True,
        true_above=bool(wrong[accepted].mean() > risk),
        test_above=test_risk > risk,
    )


@cache
def own(store: Store, scale: str) -> tuple[Promised, ...]:
    done = finished(store, runs_of(["promise"], scale))
    return tuple(
        promised(
            f"{title(r)}, seed {r.settings.seed}",
            predictions(store, r, "val"),
            predictions(store, r),
        )
        for r in done
    )


def promised(name: str, val: hs.Predictions, test: hs.Predictions) -> Promised:
    t = tally_of(val)
    risk = t.total / t.n / 2
    plain = kept(test, hs.policies.threshold_for_accuracy(t, 1 - risk).threshold)
    sure = hs.policies.guaranteed_threshold(t, risk=risk, delta=DELTA, method="fixed_sequence")
    low, high = predicted(val, risk, plain.count)
    return Promised(name, risk, low, high, plain, kept(test, sure.threshold))


def tally_of(preds: hs.Predictions) -> hs.Tally:
    """Ranked by the top probability; where only that is known it is the confidence."""
    return (
        tally(preds)
        if preds.kind != "confidence"
        else hs.tally(preds.confidence, correct=preds.correct)
    )


def predicted(val: hs.Predictions, risk: float, count: int) -> tuple[float, float]:
    """Middle 95 % of the error among `count` kept test images, given the cross-fitted errors of
    validation.
    """
    outcomes = hs.Outcomes(val.confidence, correct=val.correct)
    choose = lambda t: hs.policies.threshold_for_accuracy(t, 1 - risk)
    expected = hs.policies.expected_on_new_data(outcomes, choose)
    wrong = round((1 - expected.accuracy.value) * expected.kept) if expected.kept else 0
    if not count:
        return 0.0, 1.0
    law = stats.betabinom(count, wrong + JEFFREYS, expected.kept - wrong + JEFFREYS)
    return float(law.ppf(DELTA / 2)) / count, float(law.ppf(1 - DELTA / 2)) / count


def kept(test: hs.Predictions, threshold: float) -> Kept:
    some = test.confidence >= threshold
    return Kept(int(some.sum()), int((~test.correct.astype(bool)[some]).sum()), test.n)


def summary_rows(name: str, found: tuple[Promised, ...]) -> list[list[str]]:
    ways = {"that kept it on validation": "plain", "guaranteed": "guaranteed"}
    return [
        summary_row(name, way, found, [getattr(p, field) for p in found])
        for way, field in ways.items()
    ]


def summary_row(name: str, way: str, found: tuple[Promised, ...], parts: list[Kept]) -> list[str]:
    made = [(p, k) for p, k in zip(found, parts, strict=True) if k.count]
    means = (
        [np.mean([p.risk for p, _ in made]), np.mean([k.risk for _, k in made])]
        if made
        else [np.nan, np.nan]
    )
    above = sum(k.risk > p.risk for p, k in made), sum(k.shown_above(p.risk) for p, k in made)
    coverage = percent(float(np.mean([k.coverage for _, k in made])), 1) if made else ""
    numbers = [
        *(percent(float(m)) for m in means),
        coverage,
        *(f"{a} of {len(made)}" for a in above),
    ]
    return [name, way, str(len(found)), *numbers, str(len(found) - len(made))]


def row_of(p: Promised) -> list[str]:
    limits = (
        f"{percent(p.low)} to {percent(p.high)}{'' if p.inside else ' (missed)'}"
        if p.plain.count
        else "none"
    )
    return [p.name, percent(p.risk), limits, *cells(p.plain), *cells(p.guaranteed)]


def cells(found: Kept) -> list[str]:
    return [percent(found.risk) if found.count else "none", percent(found.coverage, 1)]
