"""What kind of network a verdict rests on: accuracy and ECE of ours and of the paper's."""

from collections.abc import Sequence
from functools import cache

import howsure as hs

from ..claims import Claim
from ..claims.claim import FULL, PUBLISHED
from ..kept import DEPTHS, is_kept, read_logits
from ..plans import runs_of
from ..plans.full import is_full
from ..provided import HUNDRED, TEN, here, provided
from ..store import Store
from ..tables.promise import SETS
from ..tables.results import finished, predictions
from ..tables.segmentation import measures

MASKS = ("segmentation", "nuclei")
# As far as a paper prints them. Vemuri's accuracy follows from the ideal area of figure 4.1.
PAPER_NETWORKS = {
    "complexity": "DenseNet, WideResNet to the end; not printed",
    "densenet_m": "DenseNet-100: 95.3 % right, ECE not printed",
    "segmentation": "U-Nets; not printed",
    "nuclei": "U-Nets; not printed",
    "selective": "none",
    "regularisation": "ResNet-44: 79.3 % right, ECE 16.8",
    "calibration": "ResNet-44: 79.3 % right, ECE 16.8",
    "shift": "ResNet-44: 79.3 % right, ECE 16.8",
    "promise": "ResNet-44: 79.3 % right, ECE 16.8",
    "odds": "CIFAR-10: 95 % right, ECE not printed",
    "mc_temperature": "ECE 8.95, 29.6 and 30.6 in one pass; accuracy not printed",
    "precision": "none",
}
PUBLISHED_SETS = {
    "complexity": (*TEN, *HUNDRED),
    "calibration": TEN,
    "densenet_m": ("nn_resnet110_c10",),
    "promise": SETS,
}


def describe_ranges(accuracies: Sequence[float], eces: Sequence[float]) -> str:
    if not accuracies:
        return "none"
    return f"{join_ends(accuracies)} % right, ECE {join_ends(eces)}"


def join_ends(values: Sequence[float]) -> str:
    """In per cent; one number where all are alike."""
    ends = list(dict.fromkeys(f"{100 * v:.1f}" for v in (min(values), max(values))))
    return " to ".join(ends)


def describe_predictions(found: Sequence[hs.Predictions]) -> str:
    tallies = [hs.tally(p.confidence, correct=p.correct) for p in found]
    return describe_ranges([1 - t.total / t.n for t in tallies], [hs.ece(t) for t in tallies])


@cache
def describe_own(name: str, store: Store, scale: str, *, full: bool = False) -> str:
    """Our small networks, or our full-size ones."""
    everything = finished(store, runs_of([name], scale))
    runs = [run for run in everything if is_full(run.settings) == full]
    if name in MASKS:
        found = [measures(store, run) for run in runs]
        return describe_ranges([1 - m["pixel error"] for m in found], [m["ECE"] for m in found])
    return describe_predictions([predictions(store, run) for run in runs])


@cache
def describe_published(name: str) -> str:
    found = [provided(one) for one in PUBLISHED_SETS.get(name, ()) if here(one)]
    if name == "complexity" and is_kept("logits"):
        found += [read_logits(depth) for depth in DEPTHS]
    if name == "odds":
        found = [read_logits(DEPTHS[0])] if is_kept("logits") else []
    return describe_predictions(found)


def describe_networks(name: str, claim: Claim, store: Store, scale: str) -> str:
    """Of the networks that decide."""
    if claim.regime == PUBLISHED:
        return describe_published(name)
    if claim.regime == FULL:
        return describe_own(name, store, scale, full=True)
    if not claim.regime:
        return "none"
    return (
        describe_predictions(claim.networks) if claim.networks else describe_own(name, store, scale)
    )
