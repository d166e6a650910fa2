"""Ding 2019 and 2020, section 5: selective prediction improves with size, calibration does not
change.
"""

import numpy as np

import howsure as hs

from ..plans import runs_of
from ..provided import HUNDRED, here
from ..runs import Run
from ..store import Store
from ..tables.complexity import AS_PRINTED, CALIBRATION, SELECTIVE, size
from ..tables.results import by_network, finished, predictions, tally, temperature_scaled
from ..tables.table import percent
from . import estimates
from .binning import (
    above_chance,
    choice_of_bins,
    choice_of_bins_hundred,
    equal_size_defects,
    hidden_gap,
    hundred_against_ten,
    insensitive,
    number_of_bins,
    over_bins,
    over_levels,
    steady_as_printed,
)
from .claim import OPEN, OURS, Claim, Evidence
from .growth import Grown, above, flat, trend, unsteady
from .paired import Metric, on_average
from .published_sizes import (
    SURE,
    concentrated,
    errors_concentrate,
    flat_published,
    grow_published,
    more_samples_do_not_help,
    published_above,
    scaled_gets_more_bins,
    sure_errors,
)

POINT = 0.01
FLAT = {"AECE": 0.01, "AMCE": 0.05}
FEW = "There are few networks, so that the interval is wide."


def complexity(store: Store, scale: str) -> list[Claim]:
    """What is said of size is judged on our networks, of many sizes; the published ones span a
    factor of three."""
    groups = by_network(finished(store, runs_of(["complexity"], scale)))
    raw = Grown.of(groups, lambda run: measures(predictions(store, run)))
    scaled = Grown.of(groups, lambda run: measures(temperature_scaled(store, run)))
    return [
        Claim("AUPR of finding errors falls as networks grow", "falls (figures 4a, 4b)",
              [trend(raw, "AUPR", "-"), *extremes(store, groups, hs.aupr), *grow_published(hs.aupr, "-")],
              {OPEN: f"{unlike(raw, 'AUPR')} {FEW}"}, telling=OURS),
        Claim("AURC falls as networks grow", "falls (figures 4c, 4d)",
              [trend(raw, "AURC", "-"), *extremes(store, groups, hs.aurc), *grow_published(hs.aurc, "-")],
              telling=OURS),
        errors_concentrate(raw),
        Claim("Calibration after temperature scaling does not depend on size", "almost flat (figures 5a to 5d)",
              [*(flat(scaled, name, margin) for name, margin in FLAT.items()), *flat_published(FLAT)],
              {OPEN: FEW}, telling=OURS),
        Claim("AECE is a little above ECE", "by a small margin", [above(scaled, "AECE", "ECE")]),
        Claim("MCE is unstable, AMCE is not", "MCE unstable and higher on CIFAR-10 (figure 5d)",
              instability(raw, scaled), {OPEN: FEW}),
        Claim("MCE is higher than AMCE on CIFAR-10 (after scaling; by a point or more)",
              "significantly higher (figure 5d)",
              [above(scaled, "MCE", "AMCE", POINT), *published_above(POINT)], {OPEN: FEW}, telling=OURS),
        concentrated(scaled),
        *equal_size_defects(),
        steady_as_printed(raw),
        *number_of_bins(),
        hidden_gap(),
        more_samples_do_not_help(),
        scaled_gets_more_bins(),
        above_chance(store, groups),
        Claim("CIFAR-100 gets more adaptive bins than CIFAR-10", "21.2 against 12.6", hundred_against_ten()),
        insensitive(store, groups, "AECE"),
        insensitive(store, groups, "AMCE"),
    ]  # fmt: skip


def unlike(grown: Grown, name: str) -> str:
    spread = estimates.pooled_spread(grown.values.get(name, []))
    return f"Between trainings of one network {name} has a standard deviation of {percent(spread)} points."


def measures(preds: hs.Predictions) -> dict[str, float]:
    t = tally(preds)
    found = {name: metric(t) for name, metric in {**SELECTIVE, **CALIBRATION}.items()}
    found["AMCE as printed"] = hs.amce(t, AS_PRINTED)
    found["sure errors"] = sure_errors(preds, np.arange(preds.n))
    found["sure"] = float((preds.confidence > SURE).mean())
    return found | {"choice of MCE": over_bins(t), "choice of AMCE": over_levels(t)}


def extremes(store: Store, groups: dict[str, list[Run]], metric: Metric) -> list[Evidence]:
    """The largest against the smallest network of each family, training by training."""
    pairs = {
        f"{large.settings.network} against {small.settings.network}, seed {small.settings.seed}": (
            predictions(store, large),
            predictions(store, small),
        )
        for small, large in pairs_of_families(groups)
    }
    return on_average("largest against smallest", metric, pairs, "-", of="pairs of trainings")


def pairs_of_families(groups: dict[str, list[Run]]) -> list[tuple[Run, Run]]:
    """Of each family and seed the smallest and the largest network that is trained."""
    runs = sorted((run for group in groups.values() for run in group), key=size)
    found: dict[tuple[str, int], list[Run]] = {}
    for run in runs:
        found.setdefault((run.settings.network.split("-")[0], run.settings.seed), []).append(run)
    return [(some[0], some[-1]) for _, some in sorted(found.items()) if len(some) > 1]


def instability(raw: Grown, scaled: Grown) -> list[Evidence]:
    return [
        unsteady(raw, "MCE", "AMCE", "as trained"),
        unsteady(scaled, "MCE", "AMCE", "after temperature scaling"),
        choice_of_bins(scaled),
        *(choice_of_bins_hundred(name) for name in HUNDRED if here(name)),
    ]
