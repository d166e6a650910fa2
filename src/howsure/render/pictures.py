"""The pictures of a report, each from its part of the JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple, TypedDict

from markupsafe import Markup

from howsure.render import svg
from howsure.render.model import Column, CorpData, CurveData, ReportData, Scatter
from howsure.render.svg import Frame
from howsure.render.words import number

UNIT = (0.0, 1.0)
START = 0.9  # the coverage at which the page opens
COLOURS = 8  # of curves; further ones have dashes
CHANGED = (("after calibration", "main"), ("before", "before"))
FATES = (("right", "right"), ("label among the top 5", "near"), ("wrong", "wrong"))
UNITS: dict[svg.Format, str] = {svg.percent: "percent", svg.plain: "plain", svg.short: "short"}


class Series(TypedDict):
    """A line or a set of points: columns by name; `x` and `y` are drawn."""

    name: str
    columns: dict[str, Column]


class Data(TypedDict):
    """What is drawn, for the pointer and for the file: names and units of both axes, and the series."""

    labels: list[str]
    units: list[str]
    series: list[Series]


class Picture(NamedTuple):
    """A heading, how to read it, the drawing, what is drawn, and what its colours mean."""

    name: str
    title: str
    read: str
    svg: Markup
    data: Data
    legend: tuple[tuple[str, str], ...] = ()


def drawn(
    name: str,
    title: str,
    read: str,
    f: Frame,
    marks: Sequence[Markup],
    series: Mapping[str, Mapping[str, Sequence[float | None]]],
    *,
    said: str,
    legend: tuple[tuple[str, str], ...] = (),
    more: Sequence[Frame] = (),
) -> Picture:
    """A picture with what is drawn; `said` is for screen readers."""
    data: Data = {
        "labels": list(f.labels),
        "units": [UNITS.get(write, "plain") for write in f.write],
        "series": [
            {"name": who, "columns": {key: short(c) for key, c in found.items()}} for who, found in series.items()
        ],
    }
    return Picture(name, title, read, svg.svg(f, marks, title=said, name=name, more=more), data, legend)


def short(column: Sequence[float | None]) -> Column:
    """Numbers with four digits, which is more than a picture shows."""
    return [None if v is None else v if isinstance(v, int) else float(f"{v:.4g}") for v in column]


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
    before = report["curves"].get("risk_coverage_before")
    marks = [*_before(f, before), svg.line(f, c["x"], c["y"], "main"), _marker(f, at.coverage, 1 - at.accuracy)]
    return drawn(
        "risk",
        "Risk and coverage",
        "Accept fewer, and fewer of them are wrong. A lower curve is better.",
        f,
        marks,
        {report["score"]: _columns(c), **({"before": _columns(before)} if before else {})},
        said=_said(c, "Risk"),
        legend=CHANGED if before else (),
    )


def threshold_diagram(report: ReportData) -> Picture:
    """Accuracy of the kept against the share deferred, with the ideal curve."""
    c, ideal = report["curves"]["threshold_diagram"], report["curves"]["ideal_threshold_diagram"]
    at = opening(report)
    f = svg.frame(UNIT, (_bottom(c["y"]), 1.0), ("share deferred", "right among the kept"))
    before = report["curves"].get("threshold_diagram_before")
    marks = [
        svg.line(f, [1.0, *ideal["x"]], [1.0, *ideal["y"]], "ideal"),
        *_before(f, before),
        svg.line(f, c["x"], c["y"], "main"),
        _marker(f, 1 - at.coverage, at.accuracy),
    ]
    return drawn(
        "threshold",
        "Threshold diagram",
        "Defer more, and more of the rest is right. Dashed: a score that knows every error.",
        f,
        marks,
        {
            report["score"]: _columns(c),
            "ideal": {"x": ideal["x"], "y": ideal["y"]},
            **({"before": _columns(before)} if before else {}),
        },
        said=_said(c, "Accuracy of the kept"),
        legend=CHANGED if before else (),
    )


def _before(f: Frame, c: CurveData | None) -> list[Markup]:
    return [] if c is None else [svg.line(f, c["x"], c["y"], "before")]


def _columns(c: CurveData) -> dict[str, Column]:
    """The columns of a curve that a file should hold."""
    found: dict[str, Column] = {"x": c["x"], "y": c["y"]}
    if "threshold" in c:
        found["threshold"] = c["threshold"]
    if "low" in c and "high" in c:
        found |= {"low": c["low"], "high": c["high"]}
    return found


def reliability(report: ReportData, c: CurveData, name: str) -> Picture:
    """Accuracy against confidence with consistency bars and counts."""
    f = svg.frame(UNIT, UNIT, ("confidence", "accuracy"))
    none: Column = [None] * len(c["x"])
    share = _shares(c.get("weight", none))
    count = svg.Frame(f.x, svg.Scale(0, 4, f.y.start, f.y.end), f.labels)  # a quarter of the height
    marks = [
        _shade(f, opening(report).threshold),
        svg.whiskers(count, c["x"], [0.0] * len(share), share, "counts"),
        svg.line(f, UNIT, UNIT, "ideal"),
        svg.whiskers(f, c["x"], c.get("low", none), c.get("high", none)),
        svg.line(f, c["x"], c["y"], "thin"),
        svg.dots(f, c["x"], c["y"], "main"),
    ]
    columns = {**_columns(c), "answers": c.get("weight", none)}
    return drawn(f"reliability-{name}", "Reliability", "", f, marks, {name: columns}, said=_said(c, "Accuracy"))


def corp(report: ReportData, found: CorpData) -> Picture:
    """The isotonic reliability curve with its band; before calibration too where the report knows it."""
    c = found["curve"]
    f = svg.frame(UNIT, UNIT, ("confidence", "accuracy"))
    none: Column = [None] * len(c["x"])
    before = report["curves"].get("reliability_before")
    marks = [
        _shade(f, opening(report).threshold),
        svg.band(f, c["x"], c.get("low", none), c.get("high", none)),
        svg.line(f, UNIT, UNIT, "ideal"),
        *([svg.line(f, before["x"], before["y"], "before")] if before else []),
        svg.line(f, c["x"], c["y"], "main"),
    ]
    series: dict[str, Mapping[str, Column]] = {"after" if before else "isotonic": _columns(c)}
    if before:
        series["before"] = _columns(before)
    legend = CHANGED if before else ()
    return drawn(
        "corp", "Reliability without bins", "", f, marks, series, said=_said(c, "Isotonic accuracy"), legend=legend
    )


def histogram(report: ReportData) -> Picture:
    """How often each score is given, right answers above and wrong ones below, each on a scale of its own."""
    h = report["views"]["histogram"]
    cuts = edges(h["low"], h["high"], len(h["right"]))
    wrong = _stack(h["wrong"], h["top_5"])
    write = (svg.plain, svg.short)
    span, name = (h["low"], h["high"]), report["score"]
    f = svg.frame(span, (0, max([1, *h["right"]])), (name, "right answers"), write, rows=(98, 28))
    g = svg.frame(span, (0, max([1, *wrong])), (name, "wrong answers"), write, rows=(208, 142))
    at = opening(report).threshold
    marks = [
        _shade(f, at),
        _shade(g, at),
        svg.bars(f, cuts, [0] * len(wrong), h["right"], "right"),
        svg.bars(g, cuts, h["wrong"], wrong, "near"),
        svg.bars(g, cuts, [0] * len(wrong), h["wrong"], "wrong"),
    ]
    middle = middles(cuts)
    fates = {"right": h["right"], "label among the top 5": h["top_5"], "wrong": h["wrong"]}
    shown = {who: {"x": middle, "y": c} for who, c in fates.items() if any(c) or who != "label among the top 5"}
    return drawn(
        "histogram",
        "Confidence histogram",
        "How often each score is given; both panels have a scale of their own. Shaded: what is deferred.",
        f,
        marks,
        shown,
        said=f"Histogram of {report['score']}: right and wrong among {report['n']:,} answers",
        legend=_fates(report),
        more=(g,),
    )


def scatter(report: ReportData) -> Picture | None:
    """Loss against score, coloured by outcome."""
    s = report["views"]["scatter"]
    if s is None or not s["score"]:
        return None
    h = report["views"]["histogram"]
    f = svg.frame((h["low"], h["high"]), (0, top(s["loss"])), (report["score"], "loss (NLL)"), (svg.plain, svg.plain))
    chosen = {FATES[fate][0]: _chosen(s, fate) for fate in range(3)}
    marks = [svg.dots(f, *chosen[what], kind) for what, kind in FATES]
    title = f"Scatter of loss against {report['score']} for {len(s['score']):,} of {s['of']:,} samples"
    read = f"{len(s['score']):,} of {s['of']:,} samples. In the upper right corner: sure and wrong."
    series = {what: {"x": x, "y": y} for what, (x, y) in chosen.items() if x}
    return drawn("scatter", "Loss and score", read, f, marks, series, said=title, legend=_fates(report))


def uncertainty_reliability(report: ReportData) -> Picture | None:
    """Error rate against normalised entropy."""
    c = report["curves"].get("uncertainty_reliability")
    if c is None:
        return None
    f = svg.frame(UNIT, UNIT, ("normalised entropy", "error rate"), (svg.plain, svg.percent))
    marks = [
        svg.line(f, UNIT, UNIT, "ideal"),
        svg.line(f, c["x"], c["y"], "thin"),
        svg.dots(f, c["x"], c["y"], "main"),
    ]
    read = "On the dashed line the entropy is the error rate, which UCE asks for and calibration does not."
    series = {"15 bins": _columns(c)}
    return drawn("uncertainty", "Uncertainty reliability", read, f, marks, series, said=_said(c, "Error rate"))


def rejection(report: ReportData) -> Picture | None:
    """Error of the kept against the entropy kept; before calibration too where the report knows it."""
    c = report["curves"].get("rejection")
    if c is None:
        return None
    before = report["curves"].get("rejection_before")
    high = top([*c["y"], *(before["y"] if before else [])])
    f = svg.frame(UNIT, (0, high), ("largest normalised entropy kept", "error of the kept"), (svg.plain, svg.percent))
    marks = [svg.line(f, c["x"], c["y"], "main")]
    series = {"after calibration" if before else report["score"]: {"x": c["x"], "y": c["y"]}}
    if before:
        marks.insert(0, svg.line(f, before["x"], before["y"], "before"))
        series["before"] = {"x": before["x"], "y": before["y"]}
    read = "Reject what is less sure than this."
    legend = CHANGED if before else ()
    said = _said(c, "Error of the kept")
    return drawn("rejection", "Rejection by entropy", read, f, marks, series, said=said, legend=legend)


def odds(report: ReportData) -> Picture | None:
    """Odds ratio of each quantile of the first score on a log axis; infinite ones at the top."""
    c = report["curves"]["odds_by_quantile"]
    known = [y for y in c["y"] if y is not None and y > 0]
    if not known:
        return None
    low, high = min(known) / 1.3, max(known) * 2
    labels = ("quantile, most trusted first", "odds ratio (log scale)")
    f = svg.frame(UNIT, (low, high), labels, (svg.percent, svg.short), log=(False, True))
    infinite = [x for x, y in zip(c["x"], c["y"], strict=True) if y is None]
    marks = [
        svg.line(f, UNIT, (1.0, 1.0), "ideal") if low < 1 < high else Markup(""),
        svg.dots(f, infinite, [high] * len(infinite), "small hollow c0"),
        svg.dots(f, c["x"], c["y"], "small c0"),
    ]
    lost = f" Hollow, at the top: {len(infinite)} that are infinite, all right or all wrong." if infinite else ""
    read = f"How much better a bet becomes when the score is known: one dot per hundredth of the answers.{lost}"
    series = {report["score"]: {"x": c["x"], "y": c["y"]}}
    return drawn("odds", "Odds by quantile", read, f, marks, series, said=_said(c, "Odds ratio"))


def decision_curve(report: ReportData) -> Picture | None:
    """Net benefit against the threshold probability, beside treating all and treating none."""
    found = report["binary"]
    if found is None:
        return None
    c = found["net_benefit"]
    everyone = c.get("low", [None] * len(c["x"]))
    high = top([*c["y"], found["prevalence"]])
    f = svg.frame(UNIT, (-high / 4, high), ("threshold probability", "net benefit"), (svg.percent, svg.plain))
    shown = [None if v is None or v < -high / 4 else v for v in everyone]
    marks = [
        svg.line(f, UNIT, (0.0, 0.0), "ideal"),
        svg.line(f, c["x"], shown, "before"),
        svg.line(f, c["x"], c["y"], "main"),
    ]
    name = found["positive_class"]
    read = f"Worth of acting on the probability of {name}, in true positives per case; act where the line is highest."
    legend = (("by this probability", "main"), ("treat all", "before"), ("treat none", "ideal"))
    series = {"by this probability": {"x": c["x"], "y": c["y"]}, "treat all": {"x": c["x"], "y": everyone}}
    return drawn("decision", "Decision curve", read, f, marks, series, said=_said(c, "Net benefit"), legend=legend)


def positive_reliability(report: ReportData) -> Picture | None:
    """How often the positive class came true against its probability, without bins, with its band."""
    c = None if report["binary"] is None else report["binary"].get("flexible")
    if report["binary"] is None or c is None:
        return None
    f = svg.frame(UNIT, UNIT, (f"probability of {report['binary']['positive_class']}", "came true"))
    none: Column = [None] * len(c["x"])
    marks = [
        svg.band(f, c["x"], c.get("low", none), c.get("high", none)),
        svg.line(f, UNIT, UNIT, "ideal"),
        svg.line(f, c["x"], c["y"], "main"),
    ]
    read = "On the dashed line the probability is kept. Shaded: limits of the curve."
    title = "Calibration of the positive class"
    return drawn("positive", title, read, f, marks, {"flexible": _columns(c)}, said=_said(c, "Share that came true"))


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
    series = {report["score"]: {"x": c["x"], "y": c["y"]}}
    return drawn(name, title, read, f, marks, series, said=_said(c, c["labels"][1]))


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
    return f"{what} against {c['labels'][0]}: {number(y0, 3)} at {number(x0, 3)}, {number(y1, 3)} at {number(x1, 3)}"


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


def middles(edges: Sequence[float]) -> list[float]:
    """The middle of each bar."""
    return [(a + b) / 2 for a, b in pairwise(edges)]


def _stack(*columns: list[float]) -> list[float]:
    return [list(accumulate(row))[-1] for row in zip(*columns, strict=True)]


def _chosen(s: Scatter, fate: int) -> tuple[list[float], list[float]]:
    rows = [i for i, f in enumerate(s["fate"]) if f == fate]
    return [s["score"][i] for i in rows], [s["loss"][i] for i in rows]
