"""The pictures of a report, each from its part of the JSON."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

from markupsafe import Markup

from howsure.render import svg
from howsure.render.model import Column, CurveData, ReportData, Scatter
from howsure.render.svg import Frame

UNIT = (0.0, 1.0)
START = 0.9  # the coverage at which the page opens
LINES = 6  # colours of curves; they repeat after that
FATES = (("right", "right"), ("label among the top 5", "near"), ("wrong", "wrong"))


class Picture(NamedTuple):
    """A heading, how to read it, the drawing, and what its colours mean."""

    title: str
    read: str
    svg: Markup
    legend: tuple[tuple[str, str], ...] = ()


def more(report: ReportData) -> list[Picture]:
    """The pictures that do not follow the operating point, those that the data allow."""
    found = (
        scatter(report),
        uncertainty_reliability(report),
        rejection(report),
        odds(report),
        rate(report, "roc", "ROC of finding errors"),
        rate(report, "precision_recall", "Precision and recall of finding errors"),
    )
    return [picture for picture in found if picture is not None]


def risk_coverage(report: ReportData) -> Picture:
    """Risk against coverage with the operating point."""
    c, at = report["curves"]["risk_coverage"], opening(report)
    f = svg.frame(UNIT, (0, top(c["y"])), ("share accepted", "wrong among the accepted"))
    marks = [svg.line(f, c["x"], c["y"], "main"), _marker(f, at.coverage, 1 - at.accuracy)]
    return Picture(
        "Risk and coverage",
        "Accept fewer, and fewer of them are wrong. A lower curve is better.",
        svg.svg(f, marks, title=_said(c, "Risk"), name="risk"),
    )


def threshold_diagram(report: ReportData) -> Picture:
    """Accuracy of the kept against the share deferred, with the ideal curve."""
    c, ideal = report["curves"]["threshold_diagram"], report["curves"]["ideal_threshold_diagram"]
    at = opening(report)
    f = svg.frame(UNIT, (_bottom(c["y"]), 1.0), ("share deferred", "right among the kept"))
    marks = [
        svg.line(f, [1.0, *ideal["x"]], [1.0, *ideal["y"]], "ideal"),
        svg.line(f, c["x"], c["y"], "main"),
        _marker(f, 1 - at.coverage, at.accuracy),
    ]
    return Picture(
        "Threshold diagram",
        "Defer more, and more of the rest is right. Dashed: a score that knows every error.",
        svg.svg(f, marks, title=_said(c, "Accuracy of the kept"), name="threshold"),
    )


def reliability(report: ReportData, c: CurveData) -> Markup:
    """Accuracy against confidence with consistency bars and counts."""
    f = svg.frame(UNIT, UNIT, ("confidence", "accuracy"))
    none: Column = [None] * len(c["x"])
    share = _shares(c.get("weight", none))
    count = svg.Frame(f.x, svg.Scale(0, 16, f.y.start, f.y.end, root=True), f.labels)  # a quarter of the height
    marks = [
        _shade(f, opening(report).threshold),
        svg.whiskers(count, c["x"], [0.0] * len(share), share, "counts"),
        svg.line(f, UNIT, UNIT, "ideal"),
        svg.whiskers(f, c["x"], c.get("low", none), c.get("high", none)),
        svg.line(f, c["x"], c["y"], "thin"),
        svg.dots(f, c["x"], c["y"], "main"),
    ]
    return svg.svg(f, marks, title=_said(c, "Accuracy"), name="reliability")


def histogram(report: ReportData) -> Picture:
    """Counts of right, top-5 and wrong answers, stacked."""
    h = report["views"]["histogram"]
    cuts = edges(h["low"], h["high"], len(h["right"]))
    wrong = h["wrong"]
    near, all_ = _stack(wrong, h["top_5"]), _stack(wrong, h["top_5"], h["right"])
    write = (svg.percent if (h["low"], h["high"]) == UNIT else svg.plain, svg.plain)
    f = svg.frame(
        (h["low"], h["high"]), (0, max([1, *all_])), (report["score"], "answers (square-root scale)"), write, root=True
    )
    marks = [
        _shade(f, opening(report).threshold),
        svg.bars(f, cuts, near, all_, "right"),
        svg.bars(f, cuts, wrong, near, "near"),
        svg.bars(f, cuts, [0] * len(wrong), wrong, "wrong"),
    ]
    title = f"Histogram of {report['score']}: right and wrong among {report['n']:,} answers"
    read = "How often each confidence is given. Shaded: what is deferred."
    return Picture("Confidence histogram", read, svg.svg(f, marks, title=title, name="histogram"), _fates(report))


def scatter(report: ReportData) -> Picture | None:
    """Loss against score, coloured by outcome."""
    s = report["views"]["scatter"]
    if s is None or not s["score"]:
        return None
    h = report["views"]["histogram"]
    write = (svg.percent if (h["low"], h["high"]) == UNIT else svg.plain, svg.plain)
    f = svg.frame((h["low"], h["high"]), (0, top(s["loss"])), (report["score"], "loss (NLL)"), write)
    marks = [svg.dots(f, *_chosen(s, fate), kind) for fate, kind in ((0, "right"), (1, "near"), (2, "wrong"))]
    title = f"Scatter of loss against {report['score']} for {len(s['score']):,} of {s['of']:,} samples"
    read = f"{len(s['score']):,} of {s['of']:,} samples. In the upper right corner: sure and wrong."
    return Picture("Loss and score", read, svg.svg(f, marks, title=title), _fates(report))


def uncertainty_reliability(report: ReportData) -> Picture | None:
    """Error rate against normalised entropy."""
    c = report["curves"].get("uncertainty_reliability")
    if c is None:
        return None
    f = svg.frame(UNIT, UNIT, ("normalised entropy", "error rate"))
    marks = [
        svg.line(f, UNIT, UNIT, "ideal"),
        svg.line(f, c["x"], c["y"], "thin"),
        svg.dots(f, c["x"], c["y"], "main"),
    ]
    read = "On the dashed line the entropy is the error rate, which UCE asks for and calibration does not."
    return Picture("Uncertainty reliability", read, svg.svg(f, marks, title=_said(c, "Error rate")))


def rejection(report: ReportData) -> Picture | None:
    """Error of the kept against the entropy kept; before calibration too where the report knows it."""
    c = report["curves"].get("rejection")
    if c is None:
        return None
    before = report["curves"].get("rejection_before")
    high = top([*c["y"], *(before["y"] if before else [])])
    f = svg.frame(UNIT, (0, high), ("largest normalised entropy kept", "error of the kept"))
    marks = [svg.line(f, c["x"], c["y"], "main")]
    if before:
        marks.insert(0, svg.line(f, before["x"], before["y"], "before"))
    read = "Reject what is less sure than this."
    legend = (("after calibration", "main"), ("before", "before")) if before else ()
    return Picture("Rejection by entropy", read, svg.svg(f, marks, title=_said(c, "Error of the kept")), legend)


def odds(report: ReportData) -> Picture | None:
    """Odds ratio of each quantile, of every score; infinite ones at the top."""
    others = {name: s["odds_by_quantile"] for name, s in report["scores"].items()}
    curves = {report["score"]: report["curves"]["odds_by_quantile"], **others}
    known = [y for c in curves.values() for y in c["y"] if y is not None]
    if not known:
        return None
    f = svg.frame(UNIT, (0, top(known)), ("quantile, most trusted first", "odds ratio"), (svg.percent, svg.plain))
    marks = [_odds(f, c, f"c{i % LINES}") for i, c in enumerate(curves.values())]
    c = curves[report["score"]]
    lost = c["y"].count(None)
    note = f" {lost} of {len(c['y'])} bins are all right or all wrong: infinite, drawn at the top." if lost else ""
    read = "How much better a bet becomes when the score is known: one dot per hundredth of the answers." + note
    legend = tuple((name, f"c{i % LINES}") for i, name in enumerate(curves)) if others else ()
    return Picture("Odds by quantile", read, svg.svg(f, marks[::-1], title=_said(c, "Odds ratio")), legend)


def _odds(f: Frame, c: CurveData, kind: str) -> Markup:
    infinite = [x for x, y in zip(c["x"], c["y"], strict=True) if y is None]
    top = svg.dots(f, infinite, [f.y.high] * len(infinite), f"small hollow {kind}")
    return top + svg.dots(f, c["x"], c["y"], f"small {kind}")


def rate(report: ReportData, name: str, title: str) -> Picture | None:
    """ROC or precision-recall."""
    c = report["curves"].get(name)
    if c is None or not any(v is not None for v in c["y"]) or None in (c["x"][-1], c["y"][-1]):
        return None
    f = svg.frame(UNIT, UNIT, (c["labels"][0], c["labels"][1]))
    marks = [svg.line(f, c["x"], c["y"], "main")]
    if name == "roc":
        marks.insert(0, svg.line(f, UNIT, UNIT, "ideal"))
    read = "Finding errors by low confidence. Compare scores of one model with it, never two models."
    return Picture(title, read, svg.svg(f, marks, title=_said(c, c["labels"][1])))


def _fates(report: ReportData) -> tuple[tuple[str, str], ...]:
    """Right, top-5 and wrong; top-5 only where it is told apart."""
    return FATES if any(report["views"]["histogram"]["top_5"]) else (FATES[0], FATES[2])


class Opening(NamedTuple):
    """The operating point at which the page opens: all that is seen without script and in print."""

    row: int
    coverage: float
    accuracy: float
    threshold: float


def opening(report: ReportData) -> Opening:
    """The one nearest to the coverage at which pages open."""
    o = report["views"]["operating"]
    i = min(range(len(o["coverage"])), key=lambda i: abs(o["coverage"][i] - START))
    return Opening(i, o["coverage"][i], o["accuracy"][i], o["threshold"][i] or 0.0)


def _marker(f: Frame, x: float, y: float) -> Markup:
    """The operating point; the script moves it."""
    low, high, across, up = (svg.number(v) for v in (f.y.start, f.y.end, f.x(x), f.y(y)))
    line = f'<path d="M0 {low}V{high}"/>'
    return Markup(f'<g class="point" transform="translate({across} 0)">{line}<circle cy="{up}" r="6"/></g>')


def _shade(f: Frame, threshold: float) -> Markup:
    """What is deferred; the script changes its width."""
    width, height = svg.number(f.x(threshold) - f.x.start), svg.number(f.y.start - f.y.end)
    return Markup(f'<rect class="deferred" x="{f.x.start}" y="{f.y.end}" width="{width}" height="{height}"/>')


def _said(c: CurveData, what: str) -> str:
    known = [(x, y) for x, y in zip(c["x"], c["y"], strict=True) if x is not None and y is not None]
    if not known:
        return f"{what}: no values"
    (x0, y0), (x1, y1) = known[0], known[-1]
    return f"{what} against {c['labels'][0]}: {y0:.3g} at {x0:.3g}, {y1:.3g} at {x1:.3g}"


def top(values: Iterable[float | None]) -> float:
    """The highest value with some air, so that the line does not touch the frame."""
    return max([v for v in values if v is not None], default=0.0) * 1.05 or 1.0


def _bottom(values: Iterable[float | None]) -> float:
    low = min([v for v in values if v is not None], default=0.0)
    return max(0.0, low - 0.08 * (1 - low)) if low < 1 else 0.0


def _shares(weight: Column) -> list[float]:
    high = max([w or 0.0 for w in weight], default=1.0) or 1.0
    return [(w or 0.0) / high for w in weight]


def edges(low: float, high: float, bars: int) -> list[float]:
    """Edges of bars of equal width."""
    return [low + (high - low) * i / bars for i in range(bars + 1)]


def _stack(*columns: list[float]) -> list[float]:
    return [list(accumulate(row))[-1] for row in zip(*columns, strict=True)]


def _chosen(s: Scatter, fate: int) -> tuple[list[float], list[float]]:
    rows = [i for i, f in enumerate(s["fate"]) if f == fate]
    return [s["score"][i] for i in rows], [s["loss"][i] for i in rows]
