"""Pictures of a comparison: curves of several models in one frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import dist
from typing import NamedTuple

from markupsafe import Markup

from howsure.report.render import svg
from howsure.report.render.pictures import (
    Caption,
    Picture,
    add_headroom,
    build_picture,
    draw_curve,
    get_known_points,
    get_points,
    shorten,
    thin_curve,
)
from howsure.report.render.sentences import (
    get_meaning,
)
from howsure.report.render.svg import (
    UNIT,
    USUAL_PAPER,
    Axis,
    Frame,
    Paper,
    make_frame,
)
from howsure.report.report_types import (
    Column,
    ComparisonData,
    CurveData,
)

MODEL_COLOURS = 8  # further models have the same colours with dashes


NAMED_PAPER = Paper(width=470, right=128)  # with room for names at the right


NAME_HEIGHT = 13.5  # pixels between two names


MODEL_NAME_LETTERS = 15


NAMED_CURVES = 6  # lines of a reliability diagram that are named at their ends


DOT_RADIUS = 4  # pixels


LOG_COST_RATIO = 10  # costs that differ by more are drawn on a log axis


Place = tuple[float, float]  # pixels from the left and from the top


def style_model(rank: int) -> str:
    """Colour and dashes of a model by its rank: eight colours, then the same with dashes."""
    return f"c{rank % MODEL_COLOURS} d{min(3, rank // MODEL_COLOURS)}"


def draw_models_risk(data: ComparisonData) -> Picture:
    """Risk against coverage of every model."""
    names = [row["name"] for row in data["models"]]
    # Fewer points per curve where there are many, so that the page stays small.
    if len(names) <= 4:
        points = 300
    elif len(names) <= 12:
        points = 120
    else:
        points = 60
    curves = {name: thin_curve(data["curves"][name], points) for name in names}
    risks: Column = []
    for c in curves.values():
        risks += c["y"]
    f = make_frame(
        Axis(label="share accepted"),
        Axis(ends=(0, add_headroom(risks)), label="wrong among the accepted"),
        NAMED_PAPER,
    )
    marks = [*_draw_lines(f, names, curves), *_draw_names(f, names, curves)]
    caption = Caption(
        name="risk",
        title="Risk and coverage",
        read="A lower curve is better. Curves that cross: better for one coverage, worse for "
        "another.",
        alt="Risk against coverage of every model",
    )
    return build_picture(caption, f, marks, {name: get_points(c) for name, c in curves.items()})


def draw_models_reliability(data: ComparisonData) -> list[Picture]:
    """Reliability of the models whose score is a probability."""
    names = [row["name"] for row in data["models"]]
    curves = {name: data["reliability"][name] for name in names if name in data["reliability"]}
    if not curves:
        return []
    # Many lines that end in one corner cannot be named there; the legend does it.
    named = len(curves) <= NAMED_CURVES
    x, y = Axis(label="confidence"), Axis(label="accuracy")
    f = make_frame(x, y, NAMED_PAPER if named else USUAL_PAPER)
    marks = [f.draw_line(UNIT, UNIT, "ideal"), *_draw_lines(f, names, curves)]
    if named:
        marks += _draw_names(f, names, curves)
    caption = Caption(
        name="reliability",
        title="Reliability",
        read="Fifteen bins of equally many answers. On the dashed line confidence is accuracy; "
        "below it claims too much.",
        alt="Accuracy against confidence of every model",
    )
    return [build_picture(caption, f, marks, {name: get_points(c) for name, c in curves.items()})]


def draw_cost_pictures(data: ComparisonData) -> list[Picture]:
    """Cost against AURC and, where known, ECE; one dot per model."""
    styles = {row["name"]: style_model(rank) for rank, row in enumerate(data["models"])}
    pictures: list[Picture] = []
    for metric in ("aurc", "ece"):
        dots: dict[str, tuple[float, float]] = {}
        for row in data["cost"]:
            value = row[metric]
            if value is not None:
                dots[row["name"]] = (row["cost"], value)
        if not dots:
            continue
        title, label = get_meaning(metric).title, data["cost_name"]
        costs = [cost for cost, _ in dots.values()]
        ends = (0.0, add_headroom(costs))
        log = min(costs) > 0 and max(costs) > LOG_COST_RATIO * min(costs)
        if log:
            label += " (log scale)"
            ends = (min(costs) / 1.5, max(costs) * 1.5)
        high = add_headroom(value for _, value in dots.values())
        f = make_frame(
            Axis(ends=ends, label=label, write=svg.format_short, log=log),
            Axis(ends=(0, high), label=title, write=svg.format_plain_tick),
        )
        marks: list[Markup] = []
        places: dict[str, Place] = {}
        series: dict[str, dict[str, Column]] = {}
        for name, (cost, value) in dots.items():
            marks.append(_mark_model(name, f.draw_dots([cost], [value], styles[name])))
            places[name] = (f.x(cost), f.y(value))
            series[name] = {"x": [cost], "y": [value]}
        caption = Caption(
            name=f"cost-{metric}",
            title=f"Cost and {title}",
            read="Lower and further left is better.",
            alt=f"{title} against {data['cost_name']}",
        )
        marks += _name_dots(f, places)
        pictures.append(build_picture(caption, f, marks, series))
    return pictures


def _mark_model(name: str, mark: Markup) -> Markup:
    """A mark that belongs to a model; the script hides and shows it."""
    return Markup('<g data-model="{}">{}</g>').format(name, mark)


def _draw_lines(f: Frame, models: Sequence[str], curves: Mapping[str, CurveData]) -> list[Markup]:
    """A line for each model, the best on top."""
    # What is drawn last lies on top.
    lines: list[Markup] = []
    for name, c in curves.items():
        line = draw_curve(f, c, style_model(models.index(name)))
        lines.append(_mark_model(name, line))
    return lines[::-1]


def _draw_names(f: Frame, models: Sequence[str], curves: Mapping[str, CurveData]) -> list[Markup]:
    """Names beside the ends of lines, as many as there is room for, best models first; none lies
    on another.
    """
    ends: list[tuple[str, Place]] = []
    for name, c in curves.items():
        known = get_known_points(c)
        if known:
            x, y = known[-1]
            ends.append((name, (f.x(x), f.y(y))))
    room = int((f.y.start - f.y.end) / NAME_HEIGHT) + 1
    ends = sorted(ends[:room], key=lambda end: end[1][1])
    heights = _spread_apart([y for _, (_, y) in ends], f.y.end, f.y.start)
    marks: list[Markup] = []
    for (name, (x, y)), height in zip(ends, heights, strict=True):
        style = style_model(models.index(name))
        start = f"M{svg.format_pixel(x + 3)} {svg.format_pixel(y)}"
        leader = f"{start}L{svg.format_pixel(f.x.end + 8)} {svg.format_pixel(height)}"
        text = _write_name(name, f.x.end + 10, height + 4.5)
        marks.append(_mark_model(name, svg.make_path(f"leader {style}", leader) + text))
    return marks


def _write_name(name: str, x: float, y: float) -> Markup:
    text = Markup('<text x="{}" y="{}">{}</text>')
    shown = shorten(name, MODEL_NAME_LETTERS)
    return text.format(svg.format_pixel(x), svg.format_pixel(y), shown)


def _spread_apart(wanted: Sequence[float], low: float, high: float) -> list[float]:
    """Places in the same order, a line apart, between low and high."""
    # First everything is pushed down until nothing overlaps, then up again from the bottom.
    places: list[float] = []
    least = low
    for y in wanted:
        places.append(max(y, least))
        least = places[-1] + NAME_HEIGHT
    most = high
    for i in reversed(range(len(places))):
        places[i] = min(places[i], most)
        most = places[i] - NAME_HEIGHT
    return places


class Box(NamedTuple):
    """A place on the paper."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Whether both share a piece of paper."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    def fits(self, f: Frame) -> bool:
        """Whether it lies between the axes and the right edge of the paper."""
        across = f.x.start <= self.left and self.right <= f.paper.width
        return across and f.y.end <= self.top and self.bottom <= f.y.start


def _name_dots(f: Frame, places: Mapping[str, Place]) -> list[Markup]:
    """Names right beside their dots, best models first; where there is no free place, the dot stays
    without.
    """
    r = DOT_RADIUS
    taken = [Box(left=x - r, top=y - r, right=x + r, bottom=y + r) for x, y in places.values()]
    marks: list[Markup] = []
    for name, (x, y) in places.items():
        width = svg.LETTER_WIDTH * len(shorten(name, MODEL_NAME_LETTERS))
        right, left = x + r + 2, x - r - 2 - width
        level, above, below = y + 4.5, y - 5, y + 14
        for at, base in (
            (right, level),
            (left, level),
            (right, above),
            (right, below),
            (left, above),
            (left, below),
        ):
            box = Box(left=at, top=base - 10, right=at + width, bottom=base + 2)
            # The end of the name that is next to its dot must not be nearer to another dot.
            near = (at if at > x else at + width, base - 4.5)
            own = all(dist(near, (x, y)) <= dist(near, other) for other in places.values())
            if own and box.fits(f) and not any(map(box.meets, taken)):
                taken.append(box)
                marks.append(_mark_model(name, _write_name(name, at, base)))
                break
    return marks
