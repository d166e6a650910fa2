"""Ding 2020, figure 1, and Finlay & Oberman, figure 3: curves of one network's scores."""

from matplotlib.figure import Figure

import howsure as hs

from ..plans import runs_of
from ..store import Store
from ..tables.densenet_m import CHANGED, worsened
from ..tables.odds import methods
from ..tables.results import finished, predictions
from .drawing import draw, panels


def densenet_m(store: Store, scale: str) -> dict[str, Figure]:
    """ROC and PR curves get better as the network gets worse; the risk-coverage curve does not."""
    curves = {"ROC": hs.roc, "PR": hs.precision_recall, "risk and coverage": hs.risk_coverage}
    figure, axes = panels(list(curves), [("FPR", "TPR"), ("recall", "precision"), ("coverage", "risk")])
    for run in finished(store, runs_of(["densenet_m"], scale))[-1:]:
        preds = predictions(store, run)
        for m in CHANGED:
            for ax, curve in zip(axes, curves.values(), strict=True):
                draw(ax, curve(worsened(preds, m).tally()), f"m = {m}")
        axes[0].legend(fontsize=7)
    return {"densenet_m": figure}


def odds(store: Store, scale: str) -> dict[str, Figure]:
    """The odds ratio of each hundredth of the test images; infinite ones are left out of the line."""
    figure, (ax,) = panels(["Odds ratio by quantile"], [("share, most trusted first", "odds ratio")])
    runs = finished(store, runs_of(["odds"], scale))
    if runs:
        correct = predictions(store, runs[0]).correct
        for name, score in methods(store, runs, scale).items():
            draw(ax, hs.odds_by_quantile(hs.tally(score, correct=correct)), name)
        ax.set_yscale("log")
        ax.legend(fontsize=6)
    return {"odds": figure}
