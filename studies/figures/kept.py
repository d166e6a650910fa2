"""Promises, shifts and the selective loss: what is kept and how much of it is wrong."""

from collections.abc import Sequence

from matplotlib.figure import Figure

import howsure as hs

from ..plans import runs_of
from ..runs import Run
from ..shifts import STRENGTHS
from ..store import Store
from ..tables.precision import pairs as precision_pairs
from ..tables.promise import own, published
from ..tables.results import finished, predictions, tally
from ..tables.selective import pairs as selective_pairs
from ..tables.shift import accepted, changed, seen
from .drawing import draw, panels

ENDS = ("low", "high")


def promise(store: Store, scale: str) -> dict[str, Figure]:
    """Each set as a point: what was promised, and what came of it."""
    titles = ["threshold that kept it on validation", "guaranteed threshold"]
    figure, axes = panels(titles, [("promised error", "error on test")] * 2)
    for ax, field in zip(axes, ("plain", "guaranteed"), strict=True):
        for name, found in (("published", published()), ("our networks", own(store, scale))):
            points = [(p.risk, getattr(p, field).risk) for p in found if getattr(p, field).count]
            ax.plot([x for x, _ in points], [y for _, y in points], "o", markersize=3, label=name)
        ax.axline((0, 0), slope=1, color="grey", linestyle="--", linewidth=0.8)
        ax.legend(fontsize=7)
    return {"promise": figure}


def shift(store: Store, scale: str) -> dict[str, Figure]:
    """Accuracy and confidence part as images change, the error of the accepted rises; what is seen
    of it.
    """
    titles = ["accuracy (solid) and confidence", "error of the accepted", "estimate without labels"]
    figure, axes = panels(
        titles, [("strength", "share"), ("strength", "error"), ("true accuracy", "estimated")]
    )
    for run in finished(store, runs_of(["shift"], scale)):
        for i, kind in enumerate(STRENGTHS):
            names = ["", *(f"{kind}_{level}" for level in range(1, 6))]
            found = [changed(store, run, name) for name in names]
            axes[0].plot(
                [hs.accuracy(p) for p in found], "o-", color=f"C{i}", markersize=3, label=kind
            )
            axes[0].plot([p.confidence.mean() for p in found], "--", color=f"C{i}")
            axes[1].plot(
                [accepted(store, run, name).risk for name in names],
                "o-",
                color=f"C{i}",
                markersize=3,
                label=kind,
            )
            told = [seen(store, run, name) for name in names]
            middle = [s.estimate.accuracy for s in told]
            ends = [
                [abs(m - getattr(s.estimate, end)) for m, s in zip(middle, told, strict=True)]
                for end in ENDS
            ]
            axes[2].errorbar([s.accuracy for s in told], middle, yerr=ends, fmt="o", color=f"C{i}", markersize=3,
                             linewidth=1, label=kind)  # fmt: skip
        axes[2].axline((0.5, 0.5), slope=1, color="grey", linestyle="--", linewidth=0.8)
        for ax, place in zip(axes, ("lower left", "upper left", "lower right"), strict=True):
            ax.legend(fontsize=7, loc=place)
    return {"shift": figure}


def selective(store: Store, scale: str) -> dict[str, Figure]:
    forms = {"selective": "selective", "selective_late": "late_selective"}
    return {
        name: trainings(store, selective_pairs(store, scale, loss)) for name, loss in forms.items()
    }


def precision(store: Store, scale: str) -> dict[str, Figure]:
    return {"precision": trainings(store, list(precision_pairs(store, scale).values()))}


def trainings(store: Store, pairs: Sequence[tuple[Run, Run]]) -> Figure:
    """Risk and coverage of each pair of trainings, the changed one solid, its partner dashed."""
    figure, (ax,) = panels(["risk and coverage"], [("coverage", "risk")])
    for i, both in enumerate(pairs):
        for run, style in zip(both, ("-", "--"), strict=True):
            label = f"{run.label}, seed {run.settings.seed}"
            draw(
                ax,
                hs.risk_coverage(tally(predictions(store, run))),
                label,
                color=f"C{i}",
                linestyle=style,
            )
        ax.legend(fontsize=6)
    return figure
