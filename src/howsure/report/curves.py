"""The curves of a report, thinned before they are computed: a drawn curve needs few of the rows of
a tally.
"""

from __future__ import annotations

import numpy as np

from howsure import curves
from howsure._core.check import Ints
from howsure.binning import adaptive, equal_range, equal_size
from howsure.curves import Curve
from howsure.curves.ranking import ideal_at
from howsure.render.model import POINTS, CurveData, curve_json
from howsure.report.catalogue import is_claim
from howsure.report.summary import Summary
from howsure.tallies.rows import from_rows
from howsure.tallies.tally import Tally

BINS = {"equal_range": equal_range(15), "equal_size": equal_size(15), "adaptive": adaptive()}


def drawn(s: Summary) -> dict[str, CurveData]:
    """Every curve of a data set, by name."""
    t = s.tally
    rows = t.distinct
    top, bottom = thinned(t, shown(rows)), thinned(t, shown(rows), bottom_up=True)
    found = {
        "risk_coverage": (curves.risk_coverage(top), rows),
        "threshold_diagram": (curves.threshold_diagram(top), rows),
        "ideal_threshold_diagram": _ideal(t),
        "roc": (curves.roc(thinned(t, shown(rows + 1)[1:] - 1, bottom_up=True)), rows + 1),
        "precision_recall": (curves.precision_recall(bottom), rows),
        "odds_by_quantile": _whole(curves.odds_by_quantile(t)),
    }
    if is_claim(t):
        usable = {name: bins for name, bins in BINS.items() if name != "adaptive" or not t.weighted}
        for name, bins in usable.items():
            found[f"reliability_{name}"] = _whole(curves.reliability(t, bins, consistency=True))
    if s.uncertainty is not None:
        found |= {
            "uncertainty_reliability": _uncertainty(s.uncertainty),
            "rejection": rejection(s.uncertainty),
        }
    return {name: written(*pair) for name, pair in found.items()}


def written(c: Curve, points: int) -> CurveData:
    """A curve of so many points as it stands in a report."""
    return {**curve_json(c), "points": points}


def _whole(c: Curve) -> tuple[Curve, int]:
    return c, len(c)


def shown(points: int) -> Ints:
    """Which points of a curve are drawn; the same as `curve_json` picks."""
    return np.unique(np.linspace(0, points - 1, min(points, POINTS)).round().astype(int))


def thinned(t: Tally, rows: Ints, *, bottom_up: bool = False) -> Tally:
    """A tally whose curve is that of `t` at these rows: each row with all before it, counted from
    the top or bottom.
    """
    step = -1 if bottom_up else 1
    score, kept, lost = t.running(rows, bottom_up=bottom_up)
    count, loss = (np.diff(column, prepend=0)[::step] for column in (kept, lost))
    with np.errstate(
        invalid="ignore", over="ignore"
    ):  # infinite scores rank; their claim is never read
        return from_rows(score[::step], count, loss)


def _ideal(t: Tally) -> tuple[Curve, int]:
    right, wrong = int(t.n - t.total), int(t.total)
    points = right + wrong + 1 - max(right, 1)
    return ideal_at(max(right, 1) + shown(points).astype(np.float64), right, wrong), points


def _uncertainty(t: Tally) -> tuple[Curve, int]:
    """Error against normalised entropy, from the tally that claims to be wrong by the entropy."""
    c = curves.reliability(t, equal_range(15))
    return _whole(Curve(c.x, c.y, c.weight, c.threshold, labels=("normalised entropy", "error")))


def rejection(t: Tally) -> tuple[Curve, int]:
    """Error of the kept against the largest entropy that is kept, from the same tally, and how many
    points it has.
    """
    kept = thinned(t, shown(t.distinct), bottom_up=True)  # small entropies are kept first
    wrong = (kept.count - kept.loss)[::-1]
    cumulated = np.cumsum(kept.count[::-1])
    entropy = kept.score[::-1]
    labels = ("largest normalised entropy kept", "error of the kept")
    curve = Curve(
        entropy,
        np.cumsum(wrong) / cumulated,
        cumulated.astype(np.float64),
        0.0 - entropy,
        labels=labels,
    )
    return curve, t.distinct
