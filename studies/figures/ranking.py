"""Ding 2020, figure 1, and Finlay & Oberman, figures 1 to 5: what scores know about errors."""

import numpy as np
from matplotlib.figure import Figure

import howsure as hs

from ..pictures import kept_pictures
from ..plans import runs_of
from ..runs import Run
from ..store import Store
from ..tables.densenet_m import CHANGED, worsened
from ..tables.odds import in_blocks, members_of, methods
from ..tables.results import finished, predictions
from .drawing import draw, name_lines, panels

QUANTILES, SHOWN, COLUMNS = 20, 2_000, 5


def densenet_m(store: Store, scale: str) -> dict[str, Figure]:
    """ROC and PR curves get better as the network gets worse; the risk-coverage curve does not."""
    curves = {"ROC": hs.roc, "PR": hs.precision_recall, "risk and coverage": hs.risk_coverage}
    figure, axes = panels(
        list(curves), [("FPR", "TPR"), ("recall", "precision"), ("coverage", "risk")]
    )
    for run in finished(store, runs_of(["densenet_m"], scale))[-1:]:
        preds = predictions(store, run)
        for m in CHANGED:
            for ax, curve in zip(axes, curves.values(), strict=True):
                draw(ax, curve(worsened(preds, m).tally()), f"m = {m}")
        axes[0].legend(fontsize=7)
    return {"densenet_m": figure}


def odds(store: Store, scale: str) -> dict[str, Figure]:
    found = {"ratio": ratio(), "sure_and_wrong": pictures(store)}
    runs = members_of(finished(store, runs_of(["odds"], scale)))
    found |= {"odds": by_quantile(store, runs, scale), "loss": against_loss(store, runs, scale)}
    return {name: figure for name, figure in found.items() if figure is not None}


def by_quantile(store: Store, runs: list[Run], scale: str) -> Figure:
    """Figure 3: the odds ratio of each twentieth of the test images; twentieths, for hundredths
    jump from one to the next. Infinite ones are left out of the line."""
    figure, (ax,) = panels(
        ["Odds ratio by quantile"], [("share, most trusted first", "odds ratio")]
    )
    figure.set_size_inches(7.5, 4.5)
    if runs:
        correct = predictions(store, runs[0]).correct
        for name, score in methods(store, runs, scale).items():
            draw(ax, hs.odds_by_quantile(hs.tally(score, correct=correct), QUANTILES), name)
        ax.set_yscale("log")
        name_lines(ax, size=7)
    return figure


def ratio() -> Figure:
    """Figure 2: what a bin is worth that is right with probability p, at three accuracies a."""
    figure, (ax,) = panels(["What a bin is worth"], [("p, right in the bin", "odds ratio S(p, a)")])
    p = np.linspace(0.01, 0.99, 197)
    for a in (0.5, 0.75, 0.94):
        ax.plot(p, hs.odds_ratio(p, a), label=f"a = {a}", linewidth=1.2)
    ax.set_yscale("log")
    name_lines(ax, size=7)
    return figure


def against_loss(store: Store, runs: list[Run], scale: str) -> Figure | None:
    """Figures 1 and 4: what is known beforehand, against the loss that is known only afterwards."""
    if not runs:
        return None
    preds = predictions(store, runs[0])
    scores = {
        "entropy": (preds, -hs.scores.neg_entropy(preds)),
        "U1 = -log of the top probability": (preds, -hs.scores.log_max_prob(preds)),
        **{f"variance, dropout {rate} in every block": (b.preds, -b.variance)
           for rate, b in in_blocks(store, scale).items()},
    }  # fmt: skip
    figure, axes = panels(
        list(scores), [(name.split(" ")[0].strip(","), "loss") for name in scores]
    )
    for ax, (preds, score) in zip(axes, scores.values(), strict=True):
        some, loss = slice(None, None, max(1, preds.n // SHOWN)), hs.losses.nll(preds)
        for right, label in ((True, "right"), (False, "wrong")):
            rows = preds.correct[some] == right
            ax.plot(
                score[some][rows],
                loss[some][rows],
                ".",
                markersize=2,
                alpha=0.5,
                label=label,
                rasterized=True,
            )
        ax.legend(fontsize=7)
    return figure


def pictures(store: Store) -> Figure | None:
    """Figure 5: the test images of which the mean of all our networks is surest, and wrong."""
    found = kept_pictures(store)
    if found is None:
        return None
    names = [
        f"said {a}, label {b}\n{c:.1%} sure"
        for a, b, c in zip(found.said, found.label, found.confidence, strict=True)
    ]
    figure, axes = panels(names, [("", "")] * len(names), columns=COLUMNS)
    figure.set_size_inches(1.7 * COLUMNS, 2.1 * (-(-len(names) // COLUMNS)))
    for ax, image in zip(axes, found.images, strict=True):
        ax.imshow(image.transpose(1, 2, 0), interpolation="nearest")
        ax.set_axis_off()
        ax.title.set_fontsize(7)
    return figure
