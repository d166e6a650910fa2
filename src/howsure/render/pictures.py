"""The pictures of a report, each from its part of the JSON."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import Any, NamedTuple

from markupsafe import Markup

from howsure.render import svg
from howsure.render.svg import Frame, percent, plain

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


def risk_coverage(report: dict[str, Any]) -> Picture:
    """Risk against coverage with the operating point."""
    c, at = report["curves"]["risk_coverage"], opening(report)
    f = svg.frame(UNIT, (0, _top(c["y"])), ("share accepted", "wrong among the accepted"))
    marks = [svg.line(f, c["x"], c["y"], "main"), _marker(f, at.coverage, 1 - at.accuracy)]
    return Picture(
        "Risk and coverage",
        "Accept fewer, and fewer of them are wrong. A lower curve is better.",
        svg.svg(f, marks, title=_said(c, "Risk"), name="risk"),
    )


def threshold_diagram(report: dict[str, Any]) -> Picture:
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


def reliability(report: dict[str, Any], bins: str) -> Markup | None:
    """Accuracy against confidence with consistency bars and counts."""
    c = report["curves"].get(f"reliability_{bins}")
    if c is None:
        return None
    f = svg.frame(UNIT, UNIT, ("confidence", "accuracy"))
    share = _shares(c["weight"])
    count = svg.Frame(f.x, svg.Scale(0, 16, f.y.start, f.y.end, root=True), f.labels)  # a quarter of the height
    marks = [
        _shade(f, opening(report).threshold),
        svg.whiskers(count, c["x"], [0.0] * len(share), share).replace("whiskers", "counts"),
        svg.line(f, UNIT, UNIT, "ideal"),
        svg.whiskers(f, c["x"], c["low"], c["high"]),
        svg.line(f, c["x"], c["y"], "thin"),
        svg.dots(f, c["x"], c["y"], "main"),
    ]
    return svg.svg(f, [Markup(m) for m in marks], title=_said(c, "Accuracy"), name="reliability")


def confidence_histogram(report: dict[str, Any]) -> Picture:
    """Counts of right, top-5 and wrong answers, stacked."""
    h = report["views"]["histogram"]
    edges = _edges(h["low"], h["high"], len(h["right"]))
    wrong = h["wrong"]
    near, all_ = _stack(wrong, h["top_5"]), _stack(wrong, h["top_5"], h["right"])
    write = (percent if (h["low"], h["high"]) == UNIT else plain, plain)
    f = svg.frame(
        (h["low"], h["high"]), (0, max([1, *all_])), (report["score"], "answers (square-root scale)"), write, root=True
    )
    marks = [
        _shade(f, opening(report).threshold),
        svg.bars(f, edges, near, all_, "right"),
        svg.bars(f, edges, wrong, near, "near"),
        svg.bars(f, edges, [0] * len(wrong), wrong, "wrong"),
    ]
    errors = sum(h["top_5"]) + sum(wrong)
    title = f"Histogram of {report['score']}: {sum(h['right']):,.0f} right, {errors:,.0f} wrong answers"
    read = "How often each confidence is given. Shaded: what is deferred."
    return Picture("Confidence histogram", read, svg.svg(f, marks, title=title, name="histogram"), _fates(report))


def scatter(report: dict[str, Any]) -> Picture | None:
    """Loss against score, coloured by outcome."""
    s = report["views"]["scatter"]
    if s is None or not s["score"]:
        return None
    h = report["views"]["histogram"]
    write = (percent if (h["low"], h["high"]) == UNIT else plain, plain)
    f = svg.frame((h["low"], h["high"]), (0, _top(s["loss"])), (report["score"], "loss (NLL)"), write)
    marks = [svg.dots(f, *_chosen(s, fate), kind) for fate, kind in ((0, "right"), (1, "near"), (2, "wrong"))]
    title = f"Scatter of loss against {report['score']} for {len(s['score']):,} of {s['of']:,} samples"
    read = f"{len(s['score']):,} of {s['of']:,} samples. In the upper right corner: sure and wrong."
    return Picture("Loss and score", read, svg.svg(f, marks, title=title), _fates(report))


def uncertainty_reliability(report: dict[str, Any]) -> Picture | None:
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


def rejection(report: dict[str, Any]) -> Picture | None:
    """Error of the kept against the entropy kept; before calibration too where the report knows it."""
    c = report["curves"].get("rejection")
    if c is None:
        return None
    before = report["curves"].get("rejection_before")
    high = _top([*c["y"], *(before["y"] if before else [])])
    f = svg.frame(UNIT, (0, high), ("largest normalised entropy kept", "error of the kept"))
    marks = [svg.line(f, c["x"], c["y"], "main")]
    if before:
        marks.insert(0, svg.line(f, before["x"], before["y"], "before"))
    read = "Reject what is less sure than this."
    legend = (("after calibration", "main"), ("before", "before")) if before else ()
    return Picture("Rejection by entropy", read, svg.svg(f, marks, title=_said(c, "Error of the kept")), legend)


def odds(report: dict[str, Any]) -> Picture | None:
    """Odds ratio of each quantile, of every score; infinite ones at the top."""
    others = {name: s["odds_by_quantile"] for name, s in report["scores"].items()}
    curves = {report["score"]: report["curves"]["odds_by_quantile"], **others}
    known = [y for c in curves.values() for y in c["y"] if y is not None]
    if not known:
        return None
    f = svg.frame(UNIT, (0, _top(known)), ("quantile, most trusted first", "odds ratio"), (percent, plain))
    marks = [_odds(f, c, f"c{i % LINES}") for i, c in enumerate(curves.values())]
    c = curves[report["score"]]
    lost = c["y"].count(None)
    note = f" {lost} of {len(c['y'])} bins are all right or all wrong: infinite, drawn at the top." if lost else ""
    read = "How much better a bet becomes when the score is known: one dot per hundredth of the answers." + note
    legend = tuple((name, f"c{i % LINES}") for i, name in enumerate(curves)) if others else ()
    return Picture("Odds by quantile", read, svg.svg(f, marks[::-1], title=_said(c, "Odds ratio")), legend)


def _odds(f: Frame, c: dict[str, Any], kind: str) -> Markup:
    infinite = [x for x, y in zip(c["x"], c["y"], strict=True) if y is None]
    top = svg.dots(f, infinite, [f.y.high] * len(infinite), f"small hollow {kind}")
    return top + svg.dots(f, c["x"], c["y"], f"small {kind}")


def rate(report: dict[str, Any], name: str, title: str) -> Picture | None:
    """ROC or precision-recall."""
    c = report["curves"].get(name)
    if c is None or not any(v is not None for v in c["y"]) or None in (c["x"][-1], c["y"][-1]):
        return None
    f = svg.frame(UNIT, UNIT, tuple(c["labels"]))
    marks = [svg.line(f, c["x"], c["y"], "main")]
    if name == "roc":
        marks.insert(0, svg.line(f, UNIT, UNIT, "ideal"))
    read = "Finding errors by low confidence. Compare scores of one model with it, never two models."
    return Picture(title, read, svg.svg(f, marks, title=_said(c, c["labels"][1])))


def _fates(report: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Right, top-5 and wrong; top-5 only where it is told apart."""
    return FATES if any(report["views"]["histogram"]["top_5"]) else (FATES[0], FATES[2])


class Opening(NamedTuple):
    """The operating point at which the page opens: all that is seen without script and in print."""

    row: int
    coverage: float
    accuracy: float
    threshold: float


def opening(report: dict[str, Any]) -> Opening:
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


def _said(c: dict[str, Any], what: str) -> str:
    known = [(x, y) for x, y in zip(c["x"], c["y"], strict=True) if x is not None and y is not None]
    if not known:
        return f"{what}: no values"
    (x0, y0), (x1, y1) = known[0], known[-1]
    return f"{what} against {c['labels'][0]}: {y0:.3g} at {x0:.3g}, {y1:.3g} at {x1:.3g}"


def _top(values: Iterable[float | None]) -> float:
    """The highest value with some air, so that the line does not touch the frame."""
    return max([v for v in values if v is not None], default=0.0) * 1.05 or 1.0


def _bottom(values: Iterable[float | None]) -> float:
    low = min([v for v in values if v is not None], default=0.0)
    return max(0.0, low - 0.08 * (1 - low)) if low < 1 else 0.0


def _shares(weight: list[float | None]) -> list[float]:
    high = max([w or 0.0 for w in weight], default=1.0) or 1.0
    return [(w or 0.0) / high for w in weight]


def _edges(low: float, high: float, bars: int) -> list[float]:
    return [low + (high - low) * i / bars for i in range(bars + 1)]


def _stack(*columns: list[float]) -> list[float]:
    return [list(accumulate(row))[-1] for row in zip(*columns, strict=True)]


def _chosen(s: dict[str, Any], fate: int) -> tuple[list[float], list[float]]:
    rows = [i for i, f in enumerate(s["fate"]) if f == fate]
    return [s["score"][i] for i in rows], [s["loss"][i] for i in rows]
