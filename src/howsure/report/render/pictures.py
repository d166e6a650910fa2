"""What all pictures of a page share: their type, what they hold for the script, common marks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple, NotRequired, TypedDict

from markupsafe import Markup

from howsure.report.render import svg
from howsure.report.render.sentences import format_number, format_percent
from howsure.report.render.svg import USUAL_PAPER, Axis, Frame, Paper, make_frame
from howsure.report.report_types import (
    Column,
    Confusion,
    CurveData,
    GuaranteeData,
    HistogramData,
    Number,
    ReportData,
    Slices,
)
from howsure.report.verdict_text import choose_guarantee

OPENING_COVERAGE = 0.9  # the coverage at which a page without a guarantee opens
CURVE_POINTS, BEFORE_POINTS = 180, 120  # points of a curve, and of one before calibration
STRIP_HEIGHT = 4  # pixels of the strip along what is deferred
ONE_BAR_SHARE = 0.5  # of the answers in one bar: the others would hardly be seen beside it
THUMBNAIL_LETTERS = 45_000  # letters of all small pictures on a page, so that it stays small
BY_CHANCE = "by chance"  # what the band of a reliability diagram is
CALIBRATION_LEGEND = (("after calibration", "main"), ("before", "before"))
TICK_UNITS: dict[svg.TickFormat, str] = {
    svg.format_percent_tick: "percent",
    svg.format_plain_tick: "plain",
    svg.format_short: "short",
}
Legend = tuple[tuple[str, str], ...]  # what a colour means, and the class that styles it
SeriesColumns = Mapping[str, Sequence[float | None]]

TOP_5 = "label among the top 5"
FATES = (("right", "right"), (TOP_5, "near"), ("wrong", "wrong"))  # what became of an answer
UPPER_ROWS, LOWER_ROWS = (98, 28), (208, 142)  # pixels of two panels, bottom and top
SCATTER_DOTS = 600
HEAT_CLASSES = 12  # classes whose labels and answers are shown cell by cell
HEAT_SHARES = (0, 0.01, 0.03, 0.1, 0.3, 0.6)  # above each a cell is a step darker
PICTURE_ROWS, ROW_HEIGHT = 20, 22  # of a picture with one row per name
NAME_LETTERS, HALF_NAME_LETTERS = 24, 9  # letters of a name, and of each name of a pair


class Series(TypedDict):
    """A line or a set of points: columns by name. `x` and `y` are drawn, in the first panel unless
    `panel` says another.
    """

    name: str
    columns: dict[str, Column]
    panel: NotRequired[int]


class PictureData(TypedDict):
    """What is drawn, for the pointer and for the file: labels and units of both axes, and the
    series.

    `names` are those of the values 1, 2, … of an axis without numbers; `band` says what `low` and
    `high` are.
    """

    labels: list[str]
    units: list[str]
    series: list[Series]
    names: NotRequired[list[list[str]]]
    band: NotRequired[str]


class Caption(NamedTuple):
    """The words around a picture; `name` is for the script, `alt` for screen readers."""

    name: str
    title: str
    read: str
    alt: str
    legend: Legend = ()


class Picture(NamedTuple):
    """A heading, how to read it, the drawing, what is drawn, and what its colours mean; `frames` and
    `marks` are what the drawing is made of.
    """

    name: str
    title: str
    read: str
    svg: Markup
    data: PictureData
    legend: Legend
    frames: Sequence[Frame]
    marks: Sequence[Markup]


def build_picture(
    caption: Caption,
    frame: Frame,
    marks: Sequence[Markup],
    series: Mapping[str, SeriesColumns],
    *,
    more: Sequence[Frame] = (),
    panels: Mapping[str, int] = MappingProxyType({}),
    band: str = "limits",
) -> Picture:
    """A picture with what is drawn; `band` says what `low` and `high` of a series are.

    `more` are further panels, `panels` says which series stand in them.
    """
    axes = (frame.x_axis, frame.y_axis)
    data: PictureData = {
        "labels": [axis.label for axis in axes],
        "units": [TICK_UNITS.get(axis.write, "plain") for axis in axes],
        "series": [],
    }
    for name, columns in series.items():
        rounded: dict[str, Column] = {}
        for key, column in columns.items():
            # Four digits are more than a picture shows; counts stay whole.
            rounded[key] = [float(f"{v:.4g}") if isinstance(v, float) else v for v in column]
        one: Series = {"name": name, "columns": rounded}
        if panels.get(name):
            one["panel"] = panels[name]
        data["series"].append(one)
    if any(axis.names for axis in axes):
        data["names"] = [list(axis.names) for axis in axes]
    if any("low" in columns or "left" in columns for columns in series.values()):
        data["band"] = band
    return Picture(
        name=caption.name,
        title=caption.title,
        read=caption.read,
        svg=svg.build_svg(frame, marks, title=caption.alt, name=caption.name, more=more),
        data=data,
        legend=caption.legend,
        frames=(frame, *more),
        marks=marks,
    )


# Curves


def thin_curve(c: CurveData, most: int) -> CurveData:
    """At most `most` points of a curve, spread evenly, so that a page stays small."""
    n = len(c["x"])
    if n <= most:
        return c
    rows = [round(i * (n - 1) / (most - 1)) for i in range(most)]
    thinned = c.copy()
    for key in ("x", "y", "weight", "threshold", "low", "high"):
        column = c.get(key)
        if column is not None:
            thinned[key] = [column[i] for i in rows]
    return thinned


def get_before(report: ReportData, name: str) -> CurveData | None:
    """A curve before calibration, with fewer points than the one after it."""
    c = report["curves"].get(f"{name}_before")
    return None if c is None else thin_curve(c, BEFORE_POINTS)


def draw_curve(f: Frame, c: CurveData, kind: str) -> Markup:
    """A line through the points of a curve."""
    return f.draw_line(c["x"], c["y"], kind)


def draw_before(f: Frame, before: CurveData | None) -> Markup:
    """A curve before calibration, where the report knows it."""
    return Markup("") if before is None else draw_curve(f, before, "before")


def get_points(c: CurveData) -> dict[str, Column]:
    """The columns of a curve that are drawn."""
    return {"x": c["x"], "y": c["y"]}


def get_limits(c: CurveData) -> tuple[Column, Column]:
    """The band of a curve; columns of None where it has none."""
    none: Column = [None] * len(c["x"])
    return c.get("low", none), c.get("high", none)


def get_known_points(c: CurveData) -> list[tuple[float, float]]:
    """The points of a curve that exist."""
    points = zip(c["x"], c["y"], strict=True)
    return [(x, y) for x, y in points if x is not None and y is not None]


def get_columns(c: CurveData) -> dict[str, Column]:
    """The columns of a curve that a file should hold."""
    columns = get_points(c)
    for key in ("threshold", "low", "high"):
        column = c.get(key)
        if column is not None:
            columns[key] = column
    return columns


def describe_curve(c: CurveData, what: str) -> str:
    """The ends of a curve in words, for screen readers."""
    known = get_known_points(c)
    if not known:
        return f"{what}: no values"
    ends = [f"{format_number(y, 3)} at {format_number(x, 3)}" for x, y in (known[0], known[-1])]
    return f"{what} against {c['labels'][0]}: {', '.join(ends)}"


def add_headroom(values: Iterable[float | None]) -> float:
    """The highest value with some air, so that the line does not touch the frame."""
    return max([v for v in values if v is not None], default=0.0) * 1.05 or 1.0


# The operating point


class Opening(NamedTuple):
    """The operating point at which the page opens: all that is seen without script and in print;
    `guarantee` is the one that it is the point of.
    """

    row: int
    coverage: float
    accuracy: float
    threshold: float
    guarantee: GuaranteeData | None


def find_opening(report: ReportData) -> Opening:
    """The operating point of the guarantee that the verdict speaks of, so that both say one number;
    where there is none, one of a usual coverage.
    """
    points = report["views"]["operating"]
    promised = choose_guarantee(report.get("guarantees", []))
    wanted = OPENING_COVERAGE if promised is None else promised["coverage"]
    distances = [abs(coverage - wanted) for coverage in points["coverage"]]
    row = distances.index(min(distances))
    # A threshold of null is not finite; nothing is shaded then.
    return Opening(
        row=row,
        coverage=points["coverage"][row],
        accuracy=points["accuracy"][row],
        threshold=points["threshold"][row] or 0.0,
        guarantee=promised,
    )


def draw_operating_point(f: Frame, x: float, y: float) -> Markup:
    """The operating point; the script moves it."""
    low, high, across, up = map(svg.format_pixel, (f.y.start, f.y.end, f.x(x), f.y(y)))
    line = f'<path d="M0 {low}V{high}"/>'
    return Markup(
        f'<g class="point" transform="translate({across} 0)">{line}<circle cy="{up}" r="6"/></g>'
    )


def draw_guaranteed(f: Frame, opening: Opening, *, deferred: bool = False) -> Markup:
    """Where the guarantee of the verdict lies, with its name; it stays where the slider moves. The
    axis is the share accepted, or `deferred`.
    """
    promised = opening.guarantee
    if promised is None or not promised["coverage"]:
        return Markup("")
    x = 1 - promised["coverage"] if deferred else promised["coverage"]
    at, low, high = map(svg.format_pixel, (f.x(x), f.y.start, f.y.end))
    # The name stands on the side that has more room, where the curve does not run.
    anchor, shift = "start", 6
    if f.x(x) - f.x.start > f.x.end - f.x(x):
        anchor, shift = "end", -6
    height = f.y.start - 7 if deferred else f.y.end + 11
    text = Markup(
        '<text class="promised" x="{}" y="{}" text-anchor="{}">guaranteed ≤ {}</text>'
    ).format(
        svg.format_pixel(f.x(x) + shift),
        svg.format_pixel(height),
        anchor,
        svg.format_percent_tick(promised["risk"]),
    )
    return svg.make_path("guaranteed", f"M{at} {low}V{high}") + text


def draw_deferred(f: Frame, report: ReportData) -> Markup:
    """A strip below the axis along what is deferred; the script changes its width."""
    width = svg.format_pixel(f.x(find_opening(report).threshold) - f.x.start)
    top = svg.format_pixel(f.y.start + 1)
    return Markup(
        f'<rect class="deferred" x="{f.x.start}" y="{top}" width="{width}" height="{STRIP_HEIGHT}"/>'
    )


# Bars and small pictures


def find_edges(low: float, high: float, bars: int) -> list[float]:
    """Edges of bars of equal width."""
    return [low + (high - low) * i / bars for i in range(bars + 1)]


def find_middles(edges: Sequence[float]) -> list[float]:
    """The middle of each bar."""
    return [(a + b) / 2 for a, b in pairwise(edges)]


def keep_fitting_images(images: Iterable[str], room: int = THUMBNAIL_LETTERS) -> list[str]:
    """The first images, given as data addresses, that there is room for; "" for the others."""
    kept: list[str] = []
    # After the first that does not fit nothing is kept, so the order of the page stays.
    total = 0
    for image in images:
        total += len(image)
        kept.append(image if total <= room else "")
    return kept


def get_fate_legend(report: ReportData) -> Legend:
    """Right, top-5 and wrong; top-5 only where the report tells it from wrong."""
    if any(report["views"]["histogram"]["top_5"]):
        return FATES
    return FATES[0], FATES[2]


def find_score_span(report: ReportData) -> tuple[float, float]:
    """The lowest and the highest score, before calibration included."""
    histograms = [report["views"]["histogram"]]
    if "before" in report["views"]:
        histograms.append(report["views"]["before"]["histogram"])
    return min(h["low"] for h in histograms), max(h["high"] for h in histograms)


def draw_histogram(report: ReportData) -> Picture:
    """How often each score is given, right answers above and wrong ones below, each on a scale of
    its own.
    """
    h, views, name = report["views"]["histogram"], report["views"], report["score"]
    before = None
    if "before" in views:
        before = views["before"]["histogram"]
    wrong = _sum_wrong(h)
    # At least 1, so that a panel without answers has an axis.
    most_right, most_wrong = max(1, *h["right"]), max(1, *wrong)
    if before is not None:
        most_right = max(most_right, *before["right"])
        most_wrong = max(most_wrong, *_sum_wrong(before))
    x = Axis(ends=find_score_span(report), label=name, write=svg.format_plain_tick)
    # One bar among several that dwarfs the others would leave them flat.
    root = False
    for counts in (h["right"], wrong):
        root |= max(counts) > ONE_BAR_SHARE * sum(counts) and sum(map(bool, counts)) > 1
    scale = " (square-root scale)" if root else ""
    right_axis = Axis(
        ends=(0, most_right), label=f"right answers{scale}", write=svg.format_short, root=root
    )
    wrong_axis = Axis(
        ends=(0, most_wrong), label=f"wrong answers{scale}", write=svg.format_short, root=root
    )
    upper = make_frame(x, right_axis, Paper(rows=UPPER_ROWS))
    lower = make_frame(x, wrong_axis, Paper(rows=LOWER_ROWS))
    zeros = [0.0] * len(wrong)
    cuts = _find_bars(h)
    marks = [
        upper.draw_bars(cuts, base=zeros, top=h["right"], kind="right"),
        lower.draw_bars(cuts, base=h["wrong"], top=wrong, kind="near"),
        lower.draw_bars(cuts, base=zeros, top=h["wrong"], kind="wrong"),
        draw_deferred(upper, report),
        draw_deferred(lower, report),
    ]
    series, legend = _count_fates(h), get_fate_legend(report)
    if before is not None:
        # Before calibration as an outline over both panels; it begins and ends at 0.
        cuts = _find_bars(before)
        outline = [cuts[0], *cuts, cuts[-1]]
        marks.append(upper.draw_steps(outline, [0.0, *before["right"], 0.0], "before"))
        marks.append(lower.draw_steps(outline, [0.0, *_sum_wrong(before), 0.0], "before"))
        series |= {f"{fate}, before": c for fate, c in _count_fates(before).items()}
        legend = (*legend, CALIBRATION_LEGEND[1])
    caption = Caption(
        name="histogram",
        title="Confidence histogram",
        read="How often each score is given; both panels have a scale of their own. Strip below the "
        "axis: what is deferred.",
        alt=f"Histogram of {name}: right and wrong among {report['n']:,} answers",
        legend=legend,
    )
    panels = {fate: int(not fate.startswith("right")) for fate in series}
    return build_picture(caption, upper, marks, series, more=(lower,), panels=panels)


def _find_bars(h: HistogramData) -> list[float]:
    """The edges of the bars."""
    return find_edges(h["low"], h["high"], len(h["right"]))


def _sum_wrong(h: HistogramData) -> list[float]:
    """All wrong answers of each bar, those with the label among the top 5 on top."""
    return [wrong + near for wrong, near in zip(h["wrong"], h["top_5"], strict=True)]


def _count_fates(h: HistogramData) -> dict[str, dict[str, Column]]:
    """Counts by what became of the answers, beside the middle of each bar."""
    middles: Column = [*find_middles(_find_bars(h))]
    counts = {"right": h["right"], TOP_5: h["top_5"], "wrong": h["wrong"]}
    if not any(h["top_5"]):
        del counts[TOP_5]
    return {fate: {"x": middles, "y": [*column]} for fate, column in counts.items()}


def draw_scatter(report: ReportData) -> Picture | None:
    """Loss against score, coloured by outcome; before calibration in a panel of its own."""
    s, views = report["views"]["scatter"], report["views"]
    if s is None or not s["score"]:
        return None
    before = None
    if "before" in views:
        before = views["before"]["scatter"]
    panels = [("loss (NLL)", "", s, USUAL_PAPER)]
    losses = [*s["loss"]]
    if before is not None:
        panels = [
            ("loss after", "", s, Paper(rows=LOWER_ROWS)),
            ("loss before (NLL)", ", before", before, Paper(rows=UPPER_ROWS)),
        ]
        losses += before["loss"]
    x = Axis(ends=find_score_span(report), label=report["score"], write=svg.format_plain_tick)
    highest, most = add_headroom(losses), SCATTER_DOTS // len(panels)
    frames: list[Frame] = []
    marks: list[Markup] = []
    series: dict[str, dict[str, Column]] = {}
    panel_of: dict[str, int] = {}
    for panel, (label, when, samples, paper) in enumerate(panels):
        y = Axis(ends=(0, highest), label=label, write=svg.format_plain_tick)
        f = make_frame(x, y, paper)
        frames.append(f)
        for fate, (name, kind) in enumerate(FATES):
            # Samples stand in a random order, so the first of them are a fair choice.
            rows = [i for i, one in enumerate(samples["fate"][:most]) if one == fate]
            scores: Column = [samples["score"][i] for i in rows]
            nlls: Column = [samples["loss"][i] for i in rows]
            marks.append(f.draw_dots(scores, nlls, kind))
            if rows:
                series[f"{name}{when}"] = {"x": scores, "y": nlls}
                panel_of[f"{name}{when}"] = panel
    many = f"{min(most, len(s['score'])):,} of {s['of']:,} samples"
    caption = Caption(
        name="scatter",
        title="Loss and score",
        read=f"{many}. In the upper right corner: sure and wrong.",
        alt=f"Scatter of loss against {report['score']} for {many}",
        legend=get_fate_legend(report),
    )
    return build_picture(caption, frames[0], marks, series, more=frames[1:], panels=panel_of)


def draw_slices(slices: Slices | None) -> list[Picture]:
    """Accuracy and accepted share of each slice with limits, the least accurate on top."""
    if slices is None or not slices["rows"]:
        return []
    rows, all_rows = slices["rows"][:PICTURE_ROWS], len(slices["rows"])
    names = [row["value"] for row in rows]
    if len(slices["columns"]) > 1:
        names = [f"{row['column']}: {row['value']}" for row in rows]
    some = "" if len(rows) == all_rows else f" The {len(rows)} least accurate of {all_rows}."
    accuracy = Caption(
        name="slices",
        title="Accuracy by slice",
        read="Bars: limits that hold for all slices together. Orange: less accurate than all "
        f"samples, beyond chance.{some}",
        alt=f"Accuracy by slice: accuracy of {len(names)} rows",
    )
    at_least = format_number(slices["threshold"])
    accepted = Caption(
        name="slices-accepted",
        title="Accepted by slice",
        read=f"Share with a score of at least {at_least}: {slices['rule']}.{some}",
        alt=f"Accepted by slice: share accepted of {len(names)} rows",
    )
    kinds = ["worse" if row["worse"] else "main" for row in rows]
    shares = [row["coverage"] for row in rows]
    return [
        draw_rows(accuracy, names, "accuracy", values=[r["accuracy"] for r in rows], kinds=kinds),
        draw_rows(accepted, names, "share accepted", values=shares, kinds=["main"] * len(rows)),
    ]


def draw_confusions(confusion: Confusion) -> Picture | None:
    """The commonest wrong answers: their share of the class, and how sure they are."""
    rows = confusion["top"][:PICTURE_ROWS]
    if not rows:
        return None
    names: list[str] = []
    for row in rows:
        pair = (row["label"], row["prediction"])
        names.append(" → ".join(shorten(name, HALF_NAME_LETTERS) for name in pair))
    caption = Caption(
        name="confusions",
        title="Commonest confusions",
        read="Label → answer, the commonest first. Orange: share of the label; blue: mean "
        "confidence of these answers.",
        alt=f"Commonest confusions: share of the label of {len(names)} rows",
    )
    return draw_rows(
        caption,
        names,
        "share of the label",
        values=[{"value": row["share"]} for row in rows],
        kinds=["worse"] * len(rows),
        beside=("confidence", [row.get("confidence") for row in rows]),
    )


def shorten(text: str, letters: int) -> str:
    """A text of at most so many letters, the last of them an ellipsis where it was longer."""
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def draw_rows(
    caption: Caption,
    names: Sequence[str],
    what: str,
    *,
    values: Sequence[Number],
    kinds: Sequence[str],
    beside: tuple[str, Column] | None = None,
) -> Picture:
    """Shares as one row each, with their names to the left and their limits as bars; `beside`, a
    second dot.
    """
    height = svg.TOP_MARGIN + ROW_HEIGHT * len(names) + svg.BOTTOM_MARGIN
    shown = [shorten(name, NAME_LETTERS) for name in names]
    paper = Paper(
        height=height,
        left=14 + 7.9 * max(map(len, shown)),
        rows=(height - svg.BOTTOM_MARGIN, svg.TOP_MARGIN - 8),
    )
    # The axis runs downwards: the first row is on top.
    rows = Axis(ends=(len(names) + 0.5, 0.5), label="", names=shown)
    f = make_frame(Axis(label=what), rows, paper)
    y: Column = [float(i) for i in range(1, len(names) + 1)]
    x, low, high = ([v.get(key) for v in values] for key in ("value", "low", "high"))
    marks = [f.draw_level_whiskers(low, high, y)]
    for kind in dict.fromkeys(kinds):
        at = [i for i, k in enumerate(kinds) if k == kind]
        marks.append(f.draw_dots([x[i] for i in at], [y[i] for i in at], kind))
    series: dict[str, dict[str, Column]] = {what: {"x": x, "y": y}}
    if any(v is not None for v in low):
        series[what] |= {"left": low, "right": high}
    if beside is not None:
        second, shares = beside
        marks.append(f.draw_dots(shares, y, "main"))
        series[second] = {"x": shares, "y": y}
    return build_picture(caption, f, marks, series)


class HeatCell(NamedTuple):
    """A cell of the table of labels and answers: samples, mean confidence, and how dark it is."""

    samples: str
    confidence: str
    kind: str


def has_heat_table(confusion: Confusion) -> bool:
    """Whether the classes are few enough to show labels and answers cell by cell."""
    return confusion["counts"] is not None and len(confusion["classes"]) <= HEAT_CLASSES


def build_heat_table(confusion: Confusion | None) -> list[tuple[str, list[HeatCell]]]:
    """Labels against answers with the confidence in each cell: a name and cells per row.

    Empty where there are too many classes.
    """
    if confusion is None or confusion["counts"] is None or not has_heat_table(confusion):
        return []
    classes = confusion["classes"]
    empty: list[Column] = [[None] * len(classes)] * len(classes)
    confidence = confusion.get("confidence") or empty
    table: list[tuple[str, list[HeatCell]]] = []
    for i, (name, counts) in enumerate(zip(classes, confusion["counts"], strict=True)):
        samples, cells = sum(counts), list[HeatCell]()
        for j, (count, mean) in enumerate(zip(counts, confidence[i], strict=True)):
            # Darker where a larger share of the label has this answer, in finer steps where
            # shares are small.
            step = sum(count > share * samples for share in HEAT_SHARES)
            kind = ""
            if step:
                kind = f"{'hit' if i == j else 'miss'}{step}"
            shown = "" if mean is None else format_percent(mean, 0)
            cells.append(HeatCell(samples=f"{count:,}", confidence=shown, kind=kind))
        table.append((name, cells))
    return table
