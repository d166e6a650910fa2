"""Numbers → SVG marks. The only arithmetic is from a value to its place on the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import ceil, floor, log10

from markupsafe import Markup, escape

from howsure._core.frozen import frozen

WIDTH, HEIGHT = 340, 252
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 30, 44
LETTER = 7.3  # pixels of a letter, on average
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


@frozen
class Scale:
    """Values from low to high on the pixels from start to end; `log` draws logarithms of positive
    values.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, v: float) -> float:
        low, high, v = map(_log, (self.low, self.high, v)) if self.log else (self.low, self.high, v)
        share = (v - low) / ((high - low) or 1.0)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)


def _log(v: float) -> float:
    return log10(max(v, 1e-300))


@frozen
class Frame:
    """The paper of one picture: two scales, their names and how their numbers are written."""

    x: Scale
    y: Scale
    labels: tuple[str, str]
    write: tuple[Format, Format] = (percent, percent)
    width: float = WIDTH
    height: float = HEIGHT
    names: tuple[Sequence[str], Sequence[str]] = (
        (),
        (),
    )  # of the values 1, 2, … of an axis that has no numbers


def frame(
    x: tuple[float, float],
    y: tuple[float, float],
    labels: tuple[str, str],
    write: tuple[Format, Format] = (percent, percent),
    *,
    log: tuple[bool, bool] = (False, False),
    rows: tuple[float, float] = (HEIGHT - BOTTOM, TOP),
    left: float = LEFT,
    right: float = RIGHT,
    width: float = WIDTH,
    height: float = HEIGHT,
    names: tuple[Sequence[str], Sequence[str]] = ((), ()),
) -> Frame:
    """A frame of the usual size; `log` axes, other pixels of its bottom and top `rows`, or more
    room at the sides.

    An axis with `names` has these instead of numbers, at 1, 2, 3 and so on.
    """
    across = Scale(*x, left, width - right, log[0])
    up = Scale(*y, *rows, log[1])
    return Frame(across, up, labels, write, width, height, names)


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between the ends."""
    if not high > low:
        return [low]
    raw = (high - low) / most
    unit = 10 ** floor(log10(raw))
    step = next(m * unit for m in (1, 2, 2.5, 5, 10) if m * unit >= raw * (1 - 1e-9))
    first = ceil(low / step - 1e-9)
    return [float(f"{i * step:.10g}") for i in range(first, floor(high / step + 1e-9) + 1)]


def log_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Powers of ten between the ends, and their multiples where there are few."""
    first, last = floor(log10(low) - 1e-9), ceil(log10(high) + 1e-9)
    steps = (1,) if last - first > most else (1, 3) if last - first > 2 else (1, 2, 5)
    skip = max(1, ceil((last - first) / most)) if steps == (1,) else 1
    found = [m * 10.0**e for e in range(first, last + 1, skip) for m in steps]
    return [float(f"{v:.10g}") for v in found if low * (1 - 1e-9) <= v <= high * (1 + 1e-9)]


def number(v: float) -> str:
    """A pixel with one decimal, as short as it gets."""
    return f"{v:.1f}".rstrip("0").rstrip(".")


def axes(f: Frame) -> Markup:
    """Grid, numbers and names."""
    whole = (
        f.y.start > f.height / 2
    )  # the lower of two panels, or the only one, has the numbers of x
    marks = [*_across(f, whole), *_up(f)]
    left, bottom = number(f.x.start), number(f.y.start)
    marks.append(Markup(f'<path class="axis" d="M{left} {bottom}H{number(f.x.end)}"/>'))
    x, y = (escape(label) for label in f.labels)
    middle = number((f.x.start + f.x.end) / 2)
    if whole:
        marks.append(
            Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>').format(
                middle, f.height - 6, x
            )
        )
    if y:
        marks.append(Markup('<text x="2" y="{}">{}</text>').format(number(f.y.end - 16), y))
    return Markup("").join(marks)


def marked(f: Frame, axis: int, most: int = 5) -> list[tuple[float, str]]:
    """What is written beside an axis, and where: names that there is room for, or round numbers."""
    scale, names = (f.x, f.y)[axis], f.names[axis]
    if not names:
        return [
            (v, f.write[axis](v))
            for v in (log_ticks if scale.log else ticks)(scale.low, scale.high, most)
        ]
    if axis:
        return [(float(i), said) for i, said in enumerate(names, start=1)]
    room = scale.end - scale.start
    if numbered(names, room):
        names = [str(i) for i in range(1, len(names) + 1)]
    step = ceil(len(names) / max(1, _fitting(names, room)))
    return [(float(i), said) for i, said in enumerate(names, start=1) if (i - 1) % step == 0]


def numbered(names: Sequence[str], room: float = WIDTH - LEFT - RIGHT) -> bool:
    """Whether names are too long for two of them to stand side by side, so that numbers stand for
    them.

    >>> numbered(["May", "June"]), numbered(["rows 1 to 5,000", "rows 5,001 to 10,000"])
    (False, True)
    """
    return len(names) > 1 and _fitting(names, room) < 2


def _fitting(names: Sequence[str], room: float) -> int:
    return int(room / (LETTER * max(map(len, names)) + 12))


def _across(f: Frame, written: bool) -> Iterator[Markup]:
    low, high = number(f.y.start), number(f.y.end)
    for v, said in marked(f, 0, min(5, int((f.x.end - f.x.start) / 44))):
        at = f.x(v)
        beyond = at + LETTER * len(said) / 2 > f.width
        anchor, end = ("end", f.width) if beyond else ("middle", at)
        yield Markup(f'<path class="grid" d="M{number(at)} {high}V{low}"/>')
        if written:
            place = f'x="{number(end)}" y="{number(f.y.start + 17)}" text-anchor="{anchor}"'
            yield Markup(f"<text {place}>{escape(said)}</text>")


def _up(f: Frame) -> Iterator[Markup]:
    most = 4 if f.y.start - f.y.end > 100 else 2
    left, right = number(f.x.start), number(f.x.end)
    for v, said in marked(f, 1, most):
        at = f.y(v)
        yield Markup(
            f'<path class="grid" d="M{left} {number(at)}H{right}"/>'
            f'<text x="{number(f.x.start - 6)}" y="{number(at + 4.5)}" text-anchor="end">{escape(said)}</text>'
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


def limits(f: Frame, low: Numbers, high: Numbers, y: Numbers, kind: str = "whiskers") -> Markup:
    """A level bar from low to high at each y."""
    path = "".join(
        f"M{number(f.x(a))} {number(f.y(c))}H{number(f.x(b))}"
        for a, b, c in zip(low, high, y, strict=True)
        if a is not None and b is not None and c is not None
    )
    return Markup(f'<path class="{kind}" d="{path}"/>') if path else Markup("")


def band(f: Frame, x: Numbers, low: Numbers, high: Numbers, kind: str = "band") -> Markup:
    """The area between two lines."""
    there, back = places(f, x, low), places(f, x, high)[::-1]
    if not there or not back:
        return Markup("")
    return Markup(
        f'<path class="{kind}" d="M{"L".join(f"{a} {b}" for a, b in [*there, *back])}z"/>'
    )


def stairs(f: Frame, edges: Sequence[float], top: Sequence[float], kind: str) -> Markup:
    """The outline of bars between edges."""
    x = [edge for edge in edges for _ in (0, 1)]
    y = [0.0, *(v for v in top for _ in (0, 1)), 0.0]
    return line(f, x, y, kind)


def bars(
    f: Frame, edges: Sequence[float], base: Sequence[float], top: Sequence[float], kind: str
) -> Markup:
    """Upright bars between edges, from base to top."""
    path = "".join(
        f"M{number(f.x(a))} {number(f.y(low))}V{number(f.y(high))}H{number(f.x(b) - 0.4)}V{number(f.y(low))}z"
        for (a, b), low, high in zip(pairwise(edges), base, top, strict=True)
        if high > low
    )
    return Markup(f'<path class="{kind}" d="{path}"/>') if path else Markup("")


def svg(
    f: Frame, marks: Sequence[Markup], *, title: str, name: str = "", more: Sequence[Frame] = ()
) -> Markup:
    """The picture; `title` is what a screen reader says, `more` are further panels. The script
    finds it by its name.
    """
    ends = [v for g in (f, *more) for s in (g.x, g.y) for v in (s.low, s.high, s.start, s.end)]
    kinds = "".join("log " if scale.log else "linear " for scale in (f.x, f.y)).strip()
    data = Markup(' data-picture="{}" data-scales="{}" data-kinds="{}"').format(
        name, " ".join(f"{v:.6g}" for v in ends), kinds
    )
    panels = Markup("").join(map(axes, (f, *more)))
    kind = Markup(' class="named"') if f.width > WIDTH else ""
    return Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}"{}{}>{}</svg>').format(
        f.width, f.height, title, kind, data, panels + Markup("").join(marks)
    )
