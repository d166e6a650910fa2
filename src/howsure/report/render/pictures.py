"""What all pictures of a page share: their type, what they hold for the script, common marks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple, NotRequired, TypedDict

from markupsafe import Markup

from howsure.report.render import svg
from howsure.report.render.sentences import format_number
from howsure.report.render.svg import Frame
from howsure.report.report_types import Column, CurveData, ReportData

OPENING_COVERAGE = 0.9  # the coverage at which the page opens
CURVE_POINTS, BEFORE_POINTS = 180, 120  # points of a curve, and of one before calibration
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
    """A heading, how to read it, the drawing, what is drawn, and what its colours mean."""

    name: str
    title: str
    read: str
    svg: Markup
    data: PictureData
    legend: Legend


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
        one: Series = {
            "name": name,
            "columns": {key: _round_column(column) for key, column in columns.items()},
        }
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
    )


def _round_column(column: Sequence[float | None]) -> Column:
    """Numbers with four digits, which is more than a picture shows; counts stay whole."""
    return [float(f"{v:.4g}") if isinstance(v, float) else v for v in column]


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
    """The operating point at which the page opens: all that is seen without script and in print."""

    row: int
    coverage: float
    accuracy: float
    threshold: float


def find_opening(report: ReportData) -> Opening:
    """The operating point nearest to the coverage at which pages open."""
    points = report["views"]["operating"]
    distances = [abs(coverage - OPENING_COVERAGE) for coverage in points["coverage"]]
    row = distances.index(min(distances))
    # A threshold of null is not finite; nothing is shaded then.
    return Opening(
        row=row,
        coverage=points["coverage"][row],
        accuracy=points["accuracy"][row],
        threshold=points["threshold"][row] or 0.0,
    )


def draw_operating_point(f: Frame, x: float, y: float) -> Markup:
    """The operating point; the script moves it."""
    low, high, across, up = map(svg.format_pixel, (f.y.start, f.y.end, f.x(x), f.y(y)))
    line = f'<path d="M0 {low}V{high}"/>'
    return Markup(
        f'<g class="point" transform="translate({across} 0)">{line}<circle cy="{up}" r="6"/></g>'
    )


def draw_deferred(f: Frame, report: ReportData) -> Markup:
    """A shade over what is deferred; the script changes its width."""
    width = svg.format_pixel(f.x(find_opening(report).threshold) - f.x.start)
    height = svg.format_pixel(f.y.start - f.y.end)
    return Markup(
        f'<rect class="deferred" x="{f.x.start}" y="{f.y.end}" width="{width}" height="{height}"/>'
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
