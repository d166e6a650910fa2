"""Pictures of a comparison: many models on one paper, told apart by colour, dashes and direct
labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import dist
from typing import NamedTuple

from markupsafe import Markup

from howsure.render import svg
from howsure.render.model import Column, ComparisonData, CurveData
from howsure.render.pictures import COLOURS, UNIT, Picture, drawn, thin, top
from howsure.render.svg import Frame
from howsure.render.words import meaning

WIDTH, ROOM = 470, 128  # pixels of a picture, and of the names at its right
LINE = 13.5  # pixels between two names
LETTERS = 15
NAMED = 6  # lines of a reliability diagram that are named at their ends
DOT = 4  # half a dot, in pixels
DECADE = 10  # costs that differ by more are drawn on a log axis


def colour(model: int) -> str:
    """Colour and dashes of a model by its rank: eight colours, then the same with dashes."""
    return f"c{model % COLOURS} d{min(3, model // COLOURS)}"


def overlaid(data: ComparisonData) -> Picture:
    """Risk against coverage of every model."""
    curves = {
        row["name"]: thin(data["curves"][row["name"]], _points(len(data["models"])))
        for row in data["models"]
    }
    ends = (0, top(v for c in curves.values() for v in c["y"]))
    f = svg.frame(
        UNIT, ends, ("share accepted", "wrong among the accepted"), right=ROOM, width=WIDTH
    )
    read = "A lower curve is better. Curves that cross: better for one coverage, worse for another."
    said = "Risk against coverage of every model"
    return drawn(
        "risk",
        "Risk and coverage",
        read,
        f,
        _lines(f, list(curves), curves),
        _series(curves),
        said=said,
    )


def claimed(data: ComparisonData) -> list[Picture]:
    """Reliability of the models whose score is a probability."""
    names = [row["name"] for row in data["models"]]
    curves = {name: data["reliability"][name] for name in names if name in data["reliability"]}
    if not curves:
        return []
    told = (
        len(curves) <= NAMED
    )  # lines that end in one corner cannot be named there, the list above does it
    right, width = (ROOM, WIDTH) if told else (svg.RIGHT, svg.WIDTH)
    f = svg.frame(UNIT, UNIT, ("confidence", "accuracy"), right=right, width=width)
    marks = [svg.line(f, UNIT, UNIT, "ideal"), *_lines(f, names, curves, told=told)]
    read = "Fifteen bins of equally many answers. On the dashed line confidence is accuracy; below it claims too much."
    said = "Accuracy against confidence of every model"
    return [drawn("reliability", "Reliability", read, f, marks, _series(curves), said=said)]


def priced(data: ComparisonData) -> list[Picture]:
    """Cost against AURC and, where known, ECE; one dot per model."""
    kind = {row["name"]: colour(i) for i, row in enumerate(data["models"])}
    found: list[Picture] = []
    for name in ("aurc", "ece"):
        dots = {
            c["name"]: (c["cost"], value) for c in data["cost"] if (value := c[name]) is not None
        }
        if dots:
            found.append(_dots(dots, kind, data["cost_name"], name))
    return found


def _dots(
    dots: dict[str, tuple[float, float]], kind: dict[str, str], what: str, name: str
) -> Picture:
    title, costs = meaning(name).title, [cost for cost, _ in dots.values()]
    log = min(costs) > 0 and max(costs) > DECADE * min(costs)
    ends = (min(costs) / 1.5, max(costs) * 1.5) if log else (0.0, top(costs))
    labels = (f"{what} (log scale)" if log else what, title)
    high = top(value for _, value in dots.values())
    f = svg.frame(ends, (0, high), labels, (svg.short, svg.plain), log=(log, False))
    marks = [
        _of(who, svg.dots(f, [cost], [value], kind[who])) for who, (cost, value) in dots.items()
    ]
    places = {who: (f.x(cost), f.y(value)) for who, (cost, value) in dots.items()}
    series: dict[str, dict[str, Column]] = {
        who: {"x": [cost], "y": [value]} for who, (cost, value) in dots.items()
    }
    marks += _beside(f, places)
    read, said = "Lower and further left is better.", f"{title} against {what}"
    return drawn(f"cost-{name}", f"Cost and {title}", read, f, marks, series, said=said)


def _series(curves: Mapping[str, CurveData]) -> dict[str, dict[str, Column]]:
    return {name: {"x": c["x"], "y": c["y"]} for name, c in curves.items()}


def _points(models: int) -> int:
    """How many points of each curve are drawn where there are so many models."""
    return 300 if models <= 4 else 120 if models <= 12 else 60


def _lines(
    f: Frame, order: Sequence[str], curves: Mapping[str, CurveData], *, told: bool = True
) -> list[Markup]:
    """A line for each model, the best on top, with its name at the end."""
    kind = {name: colour(i) for i, name in enumerate(order)}
    lines = [_of(name, svg.line(f, c["x"], c["y"], kind[name])) for name, c in curves.items()]
    places = {name: at for name, c in curves.items() if (at := _end(f, c)) is not None}
    return [*lines[::-1], *(_names(f, places, kind) if told else [])]


def _of(name: str, mark: Markup) -> Markup:
    return Markup('<g data-model="{}">{}</g>').format(name, mark)


def _end(f: Frame, c: CurveData) -> tuple[float, float] | None:
    known = [(x, y) for x, y in zip(c["x"], c["y"], strict=True) if x is not None and y is not None]
    return (f.x(known[-1][0]), f.y(known[-1][1])) if known else None


def _names(
    f: Frame, places: Mapping[str, tuple[float, float]], kind: Mapping[str, str]
) -> list[Markup]:
    """Names beside their ends, as many as there is room for, best models first; none lies on
    another.
    """
    room = int((f.y.start - f.y.end) / LINE) + 1
    chosen = sorted(list(places.items())[:room], key=lambda item: item[1][1])
    rows = _apart([at[1] for _, at in chosen], f.y.end, f.y.start)
    mark = Markup('<path class="leader {}" d="M{} {}L{} {}"/><text x="{}" y="{}">{}</text>')
    found: list[Markup] = []
    for (name, at), y in zip(chosen, rows, strict=True):
        pixels = (svg.number(v) for v in (at[0] + 3, at[1], f.x.end + 8, y, f.x.end + 10, y + 4.5))
        said = name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…"
        found.append(_of(name, mark.format(kind[name], *pixels, said)))
    return found


def _beside(f: Frame, places: Mapping[str, tuple[float, float]]) -> list[Markup]:
    """Names right beside their dots, best models first; where there is no free place, the dot stays
    without.
    """
    taken = [Box(x - DOT, y - DOT, x + DOT, y + DOT) for x, y in places.values()]
    found: list[Markup] = []
    for name, (x, y) in places.items():
        said = name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…"
        wide = svg.LETTER * len(said)
        right, left = x + DOT + 2, x - DOT - 2 - wide
        corners = [
            (right, y + 4.5),
            (left, y + 4.5),
            (right, y - 5),
            (right, y + 14),
            (left, y - 5),
            (left, y + 14),
        ]
        for at, base in corners:
            box = Box(at, base - 10, at + wide, base + 2)
            inside = (
                f.x.start <= box.left
                and box.right <= f.width
                and f.y.end <= box.top
                and box.bottom <= f.y.start
            )
            start = (at if at > x else at + wide, base - 4.5)
            mine = all(dist(start, (x, y)) <= dist(start, other) for other in places.values())
            if inside and mine and not any(box.meets(other) for other in taken):
                taken.append(box)
                text = Markup('<text x="{}" y="{}">{}</text>').format(
                    svg.number(at), svg.number(base), said
                )
                found.append(_of(name, text))
                break
    return found


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


def _apart(wanted: Sequence[float], low: float, high: float) -> list[float]:
    """Places in the same order, a line apart, between low and high."""
    found: list[float] = []
    for y in wanted:
        found.append(max(y, found[-1] + LINE) if found else max(y, low))
    for i in reversed(range(len(found))):
        last = high if i == len(found) - 1 else found[i + 1] - LINE
        found[i] = min(found[i], last)
    return found
