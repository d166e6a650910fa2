"""Numbers → SVG marks. The only arithmetic is from a value to its place on the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log10, sqrt

from markupsafe import Markup, escape

WIDTH, HEIGHT = 340, 252
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 30, 44
Numbers = Sequence[float | None]
Format = Callable[[float], str]


def percent(v: float) -> str:
    """0.5 → 50 %, with decimals where they are needed."""
    return f"{v * 100:.10g} %"


def plain(v: float) -> str:
    """A number with thousands separated."""
    return f"{v:,.10g}"


def short(v: float) -> str:
    """1,500,000 → 1.5 M."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(v) >= size:
            return f"{v / size:.4g}{unit}"
    return f"{v:.4g}"


@dataclass(frozen=True)
class Scale:
    """Values from low to high on the pixels from start to end; `root` draws square roots."""

    low: float
    high: float
    start: float
    end: float
    root: bool = False

    def __call__(self, v: float) -> float:
        share = (v - self.low) / ((self.high - self.low) or 1.0)
        share = min(max(share, 0.0), 1.0)
        return self.start + (sqrt(share) if self.root else share) * (self.end - self.start)


@dataclass(frozen=True)
class Frame:
    """The paper of one picture: two scales, their names and how their numbers are written."""

    x: Scale
    y: Scale
    labels: tuple[str, str]
    write: tuple[Format, Format] = (percent, percent)


def frame(
    x: tuple[float, float],
    y: tuple[float, float],
    labels: tuple[str, str],
    write: tuple[Format, Format] = (percent, percent),
    *,
    root: bool = False,
) -> Frame:
    """A frame of the usual size."""
    across = Scale(*x, LEFT, WIDTH - RIGHT)
    up = Scale(*y, HEIGHT - BOTTOM, TOP, root)
    return Frame(across, up, labels, write)


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between the ends."""
    if not high > low:
        return [low]
    raw = (high - low) / most
    unit = 10 ** floor(log10(raw))
    step = next(m * unit for m in (1, 2, 2.5, 5, 10) if m * unit >= raw * (1 - 1e-9))
    first = ceil(low / step - 1e-9)
    return [float(f"{i * step:.10g}") for i in range(first, floor(high / step + 1e-9) + 1)]


def root_ticks(high: float) -> list[float]:
    """Round numbers that stand apart on a square-root scale."""
    step = 10 ** max(0, floor(log10(max(high, 1))))
    found = [0.0, *(m * s for s in (step / 100, step / 10, step) for m in (1, 2, 5) if 1 <= m * s <= high)]
    kept = [0.0]
    for v in found[1:]:
        if sqrt(v / high) - sqrt(kept[-1] / high) > 0.12:
            kept.append(v)
    return kept


def number(v: float) -> str:
    """A pixel with one decimal, as short as it gets."""
    return f"{v:.1f}".rstrip("0").rstrip(".")


def axes(f: Frame) -> Markup:
    """Grid, numbers and names."""
    marks = [*_across(f), *_up(f)]
    bottom = number(f.y.start)
    marks.append(Markup(f'<path class="axis" d="M{LEFT} {bottom}H{WIDTH - RIGHT}"/>'))
    x, y = (escape(label) for label in f.labels)
    middle = (LEFT + WIDTH - RIGHT) // 2
    marks.append(Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>').format(middle, HEIGHT - 6, x))
    marks.append(Markup('<text x="2" y="14">{}</text>').format(y))
    return Markup("").join(marks)


def _across(f: Frame) -> Iterator[Markup]:
    for v in ticks(f.x.low, f.x.high):
        at = f.x(v)
        anchor = "end" if at > WIDTH - RIGHT - 12 else "middle"
        end = at + RIGHT if anchor == "end" else at
        yield Markup(
            f'<path class="grid" d="M{number(at)} {TOP}V{HEIGHT - BOTTOM}"/>'
            f'<text x="{number(end)}" y="{HEIGHT - BOTTOM + 17}" text-anchor="{anchor}">{escape(f.write[0](v))}</text>'
        )


def _up(f: Frame) -> Iterator[Markup]:
    for v in root_ticks(f.y.high) if f.y.root else ticks(f.y.low, f.y.high, 4):
        at = f.y(v)
        yield Markup(
            f'<path class="grid" d="M{LEFT} {number(at)}H{WIDTH - RIGHT}"/>'
            f'<text x="{LEFT - 6}" y="{number(at + 4.5)}" text-anchor="end">{escape(f.write[1](v))}</text>'
        )


def places(f: Frame, x: Numbers, y: Numbers) -> list[tuple[str, str]]:
    """Pixels of the points that exist, neighbours on the same pixel left out."""
    found: list[tuple[str, str]] = []
    for a, b in zip(x, y, strict=True):
        if a is not None and b is not None:
            place = (number(f.x(a)), number(f.y(b)))
            if not found or found[-1] != place:
                found.append(place)
    return found


def line(f: Frame, x: Numbers, y: Numbers, kind: str) -> Markup:
    """A line through the points; `kind` is the class that styles it."""
    at = places(f, x, y)
    if not at:
        return Markup("")
    path = "M" + "L".join(f"{a} {b}" for a, b in at)
    return Markup(f'<path class="line {kind}" d="{path}"/>')


def dots(f: Frame, x: Numbers, y: Numbers, kind: str) -> Markup:
    """Points as one path: a stroke of length 0 with a round end is a dot."""
    path = "".join(f"M{a} {b}h0" for a, b in places(f, x, y))
    return Markup(f'<path class="dots {kind}" d="{path}"/>') if path else Markup("")


def whiskers(f: Frame, x: Numbers, low: Numbers, high: Numbers, kind: str = "whiskers") -> Markup:
    """An upright bar from low to high at each x."""
    path = "".join(
        f"M{number(f.x(a))} {number(f.y(b))}V{number(f.y(c))}"
        for a, b, c in zip(x, low, high, strict=True)
        if a is not None and b is not None and c is not None
    )
    return Markup(f'<path class="{kind}" d="{path}"/>') if path else Markup("")


def bars(f: Frame, edges: Sequence[float], base: Sequence[float], top: Sequence[float], kind: str) -> Markup:
    """Upright bars between edges, from base to top."""
    path = "".join(
        f"M{number(f.x(a))} {number(f.y(low))}V{number(f.y(high))}H{number(f.x(b) - 0.4)}V{number(f.y(low))}z"
        for (a, b), low, high in zip(pairwise(edges), base, top, strict=True)
        if high > low
    )
    return Markup(f'<path class="{kind}" d="{path}"/>') if path else Markup("")


def svg(f: Frame, marks: Sequence[Markup], *, title: str, name: str = "") -> Markup:
    """The picture; `title` is what a screen reader says. A name lets the page's script find its scales."""
    data = Markup("")
    if name:
        ends = (f.x.low, f.x.high, f.x.start, f.x.end, f.y.low, f.y.high, f.y.start, f.y.end)
        data = Markup(' data-picture="{}" data-scales="{}"').format(name, " ".join(f"{v:.6g}" for v in ends))
    return Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}"{}>{}</svg>').format(
        WIDTH, HEIGHT, title, data, axes(f) + Markup("").join(marks)
    )
