"""The pictures of a report, each from its part of the JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import NamedTuple, NotRequired, TypedDict

from markupsafe import Markup

from howsure.render import svg
from howsure.render.model import (
    Column,
    Confusion,
    CorpData,
    CurveData,
    HistogramData,
    Number,
    ReportData,
    Scatter,
    Slices,
)
from howsure.render.svg import Frame
from howsure.render.words import number, percent

UNIT = (0.0, 1.0)
START = 0.9  # the coverage at which the page opens
COLOURS = 8  # of curves; further ones have dashes
CHANGED = (("after calibration", "main"), ("before", "before"))
FATES = (("right", "right"), ("label among the top 5", "near"), ("wrong", "wrong"))
DOTS, FINE, FEWER = (
    600,
    180,
    120,
)  # points of the scatter, of curves, and of curves before calibration
SHOWN = 45_000  # letters of small pictures on a page, so that it stays small
HEATED = 12  # classes whose labels and answers are shown cell by cell
CHANCE = "by chance"
SLICES, ROW, LETTERS, BRIEF = (
    20,
    22,
    22,
    9,
)  # rows of a picture, their height, letters of a name, of half a name
Legend = tuple[tuple[str, str], ...]
UNITS: dict[svg.Format, str] = {svg.percent: "percent", svg.plain: "plain", svg.short: "short"}


class Series(TypedDict):
    """A line or a set of points: columns by name; `x` and `y` are drawn, in the first panel unless
    told otherwise.
    """

    name: str
    columns: dict[str, Column]
    panel: NotRequired[int]


class Data(TypedDict):
    """What is drawn, for the pointer and for the file: names and units of both axes, and the
    series.

    `names` are those of the values 1, 2, … of an axis without numbers; `band` says what `low` and
    `high` are.
    """

    labels: list[str]
    units: list[str]
    series: list[Series]
    names: NotRequired[list[list[str]]]
    band: NotRequired[str]


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
    panels: Mapping[str, int] = MappingProxyType({}),
    band: str = "limits",
) -> Picture:
    """A picture with what is drawn; `said` is for screen readers, `band` is what `low` and `high`
    are.

    `more` are further panels, `panels` says which series stand in them.
    """
    data: Data = {
        "labels": list(f.labels),
        "units": [UNITS.get(write, "plain") for write in f.write],
        "series": [_series(who, found, panels.get(who, 0)) for who, found in series.items()],
    }
    if any(f.names):
        data["names"] = [list(names) for names in f.names]
    if any("low" in found or "left" in found for found in series.values()):
        data["band"] = band
    return Picture(
        name, title, read, svg.svg(f, marks, title=said, name=name, more=more), data, legend
    )


def _series(name: str, found: Mapping[str, Sequence[float | None]], panel: int) -> Series:
    made: Series = {"name": name, "columns": {key: short(c) for key, c in found.items()}}
    return {**made, "panel": panel} if panel else made


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
    c, at = thin(report["curves"]["risk_coverage"], FINE), opening(report)
    f = svg.frame(UNIT, (0, top(c["y"])), ("share accepted", "wrong among the accepted"))
    before = _past(report, "risk_coverage")
    marks = [
        *_before(f, before),
        svg.line(f, c["x"], c["y"], "main"),
        _marker(f, at.coverage, 1 - at.accuracy),
    ]
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
    c, ideal = (
        thin(report["curves"][name], FINE)
        for name in ("threshold_diagram", "ideal_threshold_diagram")
    )
    at = opening(report)
    f = svg.frame(UNIT, (_bottom(c["y"]), 1.0), ("share deferred", "right among the kept"))
    before = _past(report, "threshold_diagram")
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


def _past(report: ReportData, name: str) -> CurveData | None:
    """A curve before calibration, with fewer points than that after it."""
    c = report["curves"].get(f"{name}_before")
    return None if c is None else thin(c, FEWER)


def thin(c: CurveData, most: int) -> CurveData:
    """At most so many points of a curve, spread evenly, so that a page stays small."""
    n = len(c["x"])
    if n <= most:
        return c
    pick = [round(i * (n - 1) / (most - 1)) for i in range(most)]
    x, y = ([c[axis][i] for i in pick] for axis in ("x", "y"))
    thinned: CurveData = {"labels": c["labels"], "points": c["points"], "x": x, "y": y}
    for key in ("weight", "threshold", "low", "high"):
        if (column := c.get(key)) is not None:
            thinned[key] = [column[i] for i in pick]
    return thinned


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
    before = _past(report, f"reliability_{name}")
    marks = [
        _shade(f, opening(report).threshold),
        svg.whiskers(count, c["x"], [0.0] * len(share), share, "counts"),
        svg.line(f, UNIT, UNIT, "ideal"),
        svg.whiskers(f, c["x"], c.get("low", none), c.get("high", none)),
        *_before(f, before),
        svg.line(f, c["x"], c["y"], "thin"),
        svg.dots(f, c["x"], c["y"], "main"),
    ]
    series: dict[str, Mapping[str, Column]] = {
        name: {**_columns(c), "answers": c.get("weight", none)}
    }
    if before:
        series["before"] = {
            "x": before["x"],
            "y": before["y"],
            "answers": before.get("weight", none),
        }
    legend, said = CHANGED if before else (), _said(c, "Accuracy")
    title = f"reliability-{name}"
    return drawn(title, "Reliability", "", f, marks, series, said=said, legend=legend, band=CHANCE)


def corp(report: ReportData, found: CorpData) -> Picture:
    """The isotonic reliability curve with its band; before calibration too where the report knows
    it.
    """
    c = thin(found["curve"], FEWER)
    f = svg.frame(UNIT, UNIT, ("confidence", "accuracy"))
    none: Column = [None] * len(c["x"])
    before = _past(report, "reliability")
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
    legend, said = CHANGED if before else (), _said(c, "Isotonic accuracy")
    return drawn(
        "corp",
        "Reliability without bins",
        "",
        f,
        marks,
        series,
        said=said,
        legend=legend,
        band=CHANCE,
    )


def histogram(report: ReportData) -> Picture:
    """How often each score is given, right answers above and wrong ones below, each on a scale of
    its own.
    """
    h, past = report["views"]["histogram"], report["views"].get("before")
    old = None if past is None else past["histogram"]
    cuts, name = edges(h["low"], h["high"], len(h["right"])), report["score"]
    wrong, span = _stack(h["wrong"], h["top_5"]), _span(h, old)
    high = [max([1, *column]) for column in (h["right"], wrong)]
    if old is not None:
        high = [max(high[0], *old["right"]), max(high[1], *_stack(old["wrong"], old["top_5"]))]
    write = (svg.plain, svg.short)
    f = svg.frame(span, (0, high[0]), (name, "right answers"), write, rows=(98, 28))
    g = svg.frame(span, (0, high[1]), (name, "wrong answers"), write, rows=(208, 142))
    at = opening(report).threshold
    marks = [
        _shade(f, at),
        _shade(g, at),
        svg.bars(f, cuts, [0] * len(wrong), h["right"], "right"),
        svg.bars(g, cuts, h["wrong"], wrong, "near"),
        svg.bars(g, cuts, [0] * len(wrong), h["wrong"], "wrong"),
        *_outlines(f, g, old),
    ]
    series = {
        **_counted(h),
        **({} if old is None else {f"{who}, before": c for who, c in _counted(old).items()}),
    }
    return drawn(
        "histogram",
        "Confidence histogram",
        "How often each score is given; both panels have a scale of their own. Shaded: what is deferred.",
        f,
        marks,
        series,
        said=f"Histogram of {report['score']}: right and wrong among {report['n']:,} answers",
        legend=(*_fates(report), *(() if old is None else (CHANGED[1],))),
        more=(g,),
        panels={who: int(not who.startswith("right")) for who in series},
    )


def _span(h: HistogramData, old: HistogramData | None) -> tuple[float, float]:
    both = [h] if old is None else [h, old]
    return min(one["low"] for one in both), max(one["high"] for one in both)


def _outlines(f: Frame, g: Frame, old: HistogramData | None) -> list[Markup]:
    """The histogram before calibration as lines over both panels."""
    if old is None:
        return []
    cuts = edges(old["low"], old["high"], len(old["right"]))
    return [
        svg.stairs(f, cuts, old["right"], "before"),
        svg.stairs(g, cuts, _stack(old["wrong"], old["top_5"]), "before"),
    ]


def _counted(h: HistogramData) -> dict[str, dict[str, Column]]:
    """Counts by what became of the answers, beside the middle of each bar."""
    middle: Column = list(middles(edges(h["low"], h["high"], len(h["right"]))))
    near = "label among the top 5"
    fates = {"right": h["right"], near: h["top_5"], "wrong": h["wrong"]}
    return {who: {"x": middle, "y": list(c)} for who, c in fates.items() if any(c) or who != near}


def scatter(report: ReportData) -> Picture | None:
    """Loss against score, coloured by outcome; before calibration in a panel of its own."""
    s, past = report["views"]["scatter"], report["views"].get("before")
    if s is None or not s["score"]:
        return None
    h, old = report["views"]["histogram"], None if past is None else past["scatter"]
    span = _span(h, None if past is None else past["histogram"])
    high = top([*s["loss"], *([] if old is None else old["loss"])])
    panels = [("loss (NLL)", s, "", (svg.HEIGHT - svg.BOTTOM, svg.TOP))]
    if old is not None:
        panels = [
            ("loss after", s, "", (208.0, 142.0)),
            ("loss before (NLL)", old, ", before", (98.0, 28.0)),
        ]
    most = DOTS // len(panels)
    frames, marks = list[Frame](), list[Markup]()
    series, where = dict[str, dict[str, Column]](), dict[str, int]()
    for i, (label, shown, when, rows) in enumerate(panels):
        frames.append(
            svg.frame(span, (0, high), (report["score"], label), (svg.plain, svg.plain), rows=rows)
        )
        points = {FATES[fate][0]: _chosen(shown, fate, most) for fate in range(3)}
        marks += [svg.dots(frames[-1], *points[what], kind) for what, kind in FATES]
        found = {f"{what}{when}": {"x": [*x], "y": [*y]} for what, (x, y) in points.items() if x}
        series |= found
        where |= dict.fromkeys(found, i)
    many = f"{min(most, len(s['score'])):,} of {s['of']:,} samples"
    read = f"{many}. In the upper right corner: sure and wrong."
    said = f"Scatter of loss against {report['score']} for {many}"
    legend, more = _fates(report), frames[1:]
    title = "Loss and score"
    return drawn(
        "scatter",
        title,
        read,
        frames[0],
        marks,
        series,
        said=said,
        legend=legend,
        more=more,
        panels=where,
    )


def uncertainty_reliability(report: ReportData) -> Picture | None:
    """Error rate against normalised entropy."""
    c, before = (
        report["curves"].get("uncertainty_reliability"),
        _past(report, "uncertainty_reliability"),
    )
    if c is None:
        return None
    f = svg.frame(UNIT, UNIT, ("normalised entropy", "error rate"), (svg.plain, svg.percent))
    marks = [
        svg.line(f, UNIT, UNIT, "ideal"),
        *_before(f, before),
        svg.line(f, c["x"], c["y"], "thin"),
        svg.dots(f, c["x"], c["y"], "main"),
    ]
    read = "On the dashed line the entropy is the error rate, which UCE asks for and calibration does not."
    series, legend = _both("15 bins", c, before)
    said, title = _said(c, "Error rate"), "Uncertainty reliability"
    return drawn("uncertainty", title, read, f, marks, series, said=said, legend=legend)


def _both(
    name: str, c: CurveData, before: CurveData | None
) -> tuple[dict[str, dict[str, Column]], Legend]:
    """A curve as it is drawn, beside the one before calibration where the report knows it."""
    if before is None:
        return {name: {"x": c["x"], "y": c["y"]}}, ()
    return {
        when: {"x": one["x"], "y": one["y"]}
        for (when, _), one in zip(CHANGED, (c, before), strict=True)
    }, CHANGED


def rejection(report: ReportData) -> Picture | None:
    """Error of the kept against the entropy kept; before calibration too where the report knows it."""
    c, before = report["curves"].get("rejection"), _past(report, "rejection")
    if c is None:
        return None
    c = thin(c, FINE)
    high = top([*c["y"], *(before["y"] if before else [])])
    f = svg.frame(
        UNIT,
        (0, high),
        ("largest normalised entropy kept", "error of the kept"),
        (svg.plain, svg.percent),
    )
    marks = [*_before(f, before), svg.line(f, c["x"], c["y"], "main")]
    series, legend = _both(report["score"], c, before)
    read, said = "Reject what is less sure than this.", _said(c, "Error of the kept")
    return drawn(
        "rejection", "Rejection by entropy", read, f, marks, series, said=said, legend=legend
    )


def odds(report: ReportData) -> Picture | None:
    """Odds ratio of each quantile of the first score on a log axis; infinite ones at the top."""
    c, before = report["curves"]["odds_by_quantile"], _past(report, "odds_by_quantile")
    known = [y for y in (*c["y"], *(before["y"] if before else ())) if y is not None and y > 0]
    if not known:
        return None
    low, high = min(known) / 1.3, max(known) * 2
    labels = ("quantile, most trusted first", "odds ratio (log scale)")
    f = svg.frame(UNIT, (low, high), labels, (svg.percent, svg.short), log=(False, True))
    infinite = [x for x, y in zip(c["x"], c["y"], strict=True) if y is None]
    marks = [
        svg.line(f, UNIT, (1.0, 1.0), "ideal") if low < 1 < high else Markup(""),
        svg.dots(f, before["x"], before["y"], "small c1") if before else Markup(""),
        svg.dots(f, infinite, [high] * len(infinite), "small hollow c0"),
        svg.dots(f, c["x"], c["y"], "small c0"),
    ]
    lost = (
        f" Hollow, at the top: {len(infinite)} that are infinite, all right or all wrong."
        if infinite
        else ""
    )
    read = f"How much better a bet becomes when the score is known: one dot per hundredth of the answers.{lost}"
    series, legend = _both(report["score"], c, before)
    said = _said(c, "Odds ratio")
    return drawn("odds", "Odds by quantile", read, f, marks, series, said=said, legend=legend)


def decision_curve(report: ReportData) -> Picture | None:
    """Net benefit against the threshold probability, beside treating all and treating none."""
    found = report["binary"]
    if found is None:
        return None
    c = found["net_benefit"]
    everyone = c.get("low", [None] * len(c["x"]))
    high = top([*c["y"], found["prevalence"]])
    f = svg.frame(
        UNIT, (-high / 4, high), ("threshold probability", "net benefit"), (svg.percent, svg.plain)
    )
    shown = [None if v is None or v < -high / 4 else v for v in everyone]
    marks = [
        svg.line(f, UNIT, (0.0, 0.0), "ideal"),
        svg.line(f, c["x"], shown, "before"),
        svg.line(f, c["x"], c["y"], "main"),
    ]
    name = found["positive_class"]
    read = f"Worth of acting on the probability of {name}, in true positives per case; act where the line is highest."
    legend = (("by this probability", "main"), ("treat all", "before"), ("treat none", "ideal"))
    series = {
        "by this probability": {"x": c["x"], "y": c["y"]},
        "treat all": {"x": c["x"], "y": everyone},
    }
    return drawn(
        "decision",
        "Decision curve",
        read,
        f,
        marks,
        series,
        said=_said(c, "Net benefit"),
        legend=legend,
    )


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
    return drawn(
        "positive",
        title,
        read,
        f,
        marks,
        {"flexible": _columns(c)},
        said=_said(c, "Share that came true"),
    )


def rate(report: ReportData, name: str, title: str) -> Picture | None:
    """ROC or precision-recall."""
    c, before = report["curves"].get(name), _past(report, name)
    if c is None or not any(v is not None for v in c["y"]) or None in (c["x"][-1], c["y"][-1]):
        return None
    c = thin(c, FINE)
    f = svg.frame(UNIT, UNIT, (c["labels"][0], c["labels"][1]))
    marks = [*_before(f, before), svg.line(f, c["x"], c["y"], "main")]
    if name == "roc":
        marks.insert(0, svg.line(f, UNIT, UNIT, "ideal"))
    read = (
        "Finding errors by low confidence. Compare scores of one model with it, never two models."
    )
    series, legend = _both(report["score"], c, before)
    return drawn(name, title, read, f, marks, series, said=_said(c, c["labels"][1]), legend=legend)


def slices(found: Slices | None) -> list[Picture]:
    """Accuracy and accepted share of each slice with limits, the least accurate on top."""
    if found is None or not found["rows"]:
        return []
    many = len(found["columns"]) > 1
    names = [
        f"{row['column']}: {row['value']}" if many else row["value"]
        for row in found["rows"][:SLICES]
    ]
    rows = found["rows"][: len(names)]
    kinds = ["worse" if row["worse"] else "main" for row in rows]
    only = (
        ""
        if len(names) == len(found["rows"])
        else f" The {len(names)} least accurate of {len(found['rows'])}."
    )
    accuracy = "Bars: limits that hold for all slices together. Orange: less accurate than all samples, beyond chance."
    accepted = f"Share with a score of at least {number(found['threshold'])}: {found['rule']}."
    return [
        rowed("slices", "Accuracy by slice", accuracy + only, names, [r["accuracy"] for r in rows], kinds, "accuracy"),
        rowed("slices-accepted", "Accepted by slice", accepted + only, names, [r["coverage"] for r in rows],
              ["main"] * len(rows), "share accepted"),
    ]  # fmt: skip


def confusions(report: ReportData) -> Picture | None:
    """The commonest wrong answers: their share of the class, and how sure they are."""
    found = report["views"].get("confusion")
    rows = [] if found is None else found["top"][:SLICES]
    if not rows:
        return None
    names = [f"{_brief(c['label'])} → {_brief(c['prediction'])}" for c in rows]
    sure: list[Number] = [{"value": c.get("confidence")} for c in rows]
    picture = rowed(
        "confusions",
        "What is taken for what",
        "Label → answer, the commonest first. Orange: share of the label; blue: mean confidence of these answers.",
        names,
        [{"value": c["share"]} for c in rows],
        ["worse"] * len(rows),
        "share of the label",
        beside=("confidence", sure),
    )
    return picture


class Cell(NamedTuple):
    """A cell of the table of labels and answers: samples, mean confidence, and how dark it is."""

    samples: str
    confidence: str
    kind: str


def heat(found: Confusion | None) -> list[tuple[str, list[Cell]]]:
    """Labels against answers with the confidence in each cell, where the classes are few: a name
    and cells per row.
    """
    if found is None or found["counts"] is None or len(found["classes"]) > HEATED:
        return []
    empty: list[Column] = [[None] * len(found["classes"])] * len(found["classes"])
    sure = found.get("confidence") or empty
    table = zip(found["classes"], found["counts"], sure, strict=True)
    return [
        (
            name,
            [
                _cell(n, p, sum(counts), right=i == j)
                for j, (n, p) in enumerate(zip(counts, means, strict=True))
            ],
        )
        for i, (name, counts, means) in enumerate(table)
    ]


def _cell(count: int, confidence: float | None, of: int, *, right: bool) -> Cell:
    """Darker where a larger share of the label has this answer; steps are finer where shares are
    small.
    """
    step = sum(count > share * of for share in (0, 0.01, 0.03, 0.1, 0.3, 0.6)) if of else 0
    said = "" if confidence is None else percent(confidence, 0)
    return Cell(f"{count:,}", said, f"{'hit' if right else 'miss'}{step}" if step else "")


def rowed(
    name: str,
    title: str,
    read: str,
    names: Sequence[str],
    values: Sequence[Number],
    kinds: Sequence[str],
    what: str,
    *,
    beside: tuple[str, Sequence[Number]] | None = None,
) -> Picture:
    """Shares as one row each, with their names to the left and their limits as bars; `beside`, a
    second dot.
    """
    height = svg.TOP + ROW * len(names) + svg.BOTTOM
    said = [text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…" for text in names]
    ends, rows, left = (
        (len(names) + 0.5, 0.5),
        (height - svg.BOTTOM, svg.TOP - 8),
        14 + 7.9 * max(map(len, said)),
    )
    f = svg.frame(UNIT, ends, (what, ""), rows=rows, left=left, height=height, names=((), said))
    y = [float(i) for i in range(1, len(names) + 1)]
    x, low, high = ([v.get(key) for v in values] for key in ("value", "low", "high"))
    marks = [svg.limits(f, low, high, y)]
    for kind in dict.fromkeys(kinds):
        at = [i for i, k in enumerate(kinds) if k == kind]
        marks.append(svg.dots(f, [x[i] for i in at], [y[i] for i in at], kind))
    series: dict[str, dict[str, Column]] = {what: {"x": x, "y": [*y]}}
    if any(v is not None for v in low):
        series[what] |= {"left": low, "right": high}
    if beside is not None:
        second = [v["value"] for v in beside[1]]
        marks.append(svg.dots(f, second, y, "main"))
        series[beside[0]] = {"x": second, "y": [*y]}
    return drawn(name, title, read, f, marks, series, said=f"{title}: {what} of {len(names)} rows")


def _brief(text: str) -> str:
    return text if len(text) <= BRIEF else f"{text[: BRIEF - 1]}…"


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
    return Markup(
        f'<g class="point" transform="translate({across} 0)">{line}<circle cy="{up}" r="6"/></g>'
    )


def _shade(f: Frame, threshold: float) -> Markup:
    """What is deferred; the script changes its width."""
    width, height = svg.number(f.x(threshold) - f.x.start), svg.number(f.y.start - f.y.end)
    return Markup(
        f'<rect class="deferred" x="{f.x.start}" y="{f.y.end}" width="{width}" height="{height}"/>'
    )


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


def shown(pictures: Iterable[str], room: int = SHOWN) -> list[str]:
    """The first pictures, given as data addresses, that there is room for; empty texts for the
    others.
    """
    return [one if size <= room else "" for one, size in _sizes(pictures)]


def _sizes(pictures: Iterable[str]) -> Iterator[tuple[str, int]]:
    total = 0
    for one in pictures:
        total += len(one)
        yield one, total


def edges(low: float, high: float, bars: int) -> list[float]:
    """Edges of bars of equal width."""
    return [low + (high - low) * i / bars for i in range(bars + 1)]


def middles(edges: Sequence[float]) -> list[float]:
    """The middle of each bar."""
    return [(a + b) / 2 for a, b in pairwise(edges)]


def _stack(*columns: list[float]) -> list[float]:
    return [list(accumulate(row))[-1] for row in zip(*columns, strict=True)]


def _chosen(s: Scatter, fate: int, most: int) -> tuple[list[float], list[float]]:
    """Score and loss of one fate among the first `most` samples, which stand in a random order."""
    rows = [i for i, f in enumerate(s["fate"][:most]) if f == fate]
    return [s["score"][i] for i in rows], [s["loss"][i] for i in rows]
