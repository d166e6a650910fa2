"""Numbers → SVG marks. The only arithmetic is from a value to its place on the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import ceil, floor, log10, sqrt

from markupsafe import Markup, escape

from howsure._core.frozen import frozen

PICTURE_WIDTH, PICTURE_HEIGHT = 340, 252
LEFT_MARGIN, RIGHT_MARGIN, TOP_MARGIN, BOTTOM_MARGIN = 58, 14, 30, 44
TICK_HEIGHT = 18  # pixels between two ticks of an upright axis
UNIT = (0.0, 1.0)  # ends of an axis of shares
LETTER_WIDTH = 7.3  # pixels of a letter, on average
Numbers = Sequence[float | None]
TickFormat = Callable[[float], str]


def format_percent_tick(v: float) -> str:
    """0.5 → 50 %, with decimals where they are needed."""
    return f"{v * 100:.10g} %"


def format_plain_tick(v: float) -> str:
    """A number with thousands separated."""
    return f"{v:,.10g}"


def format_short(v: float) -> str:
    """1,500,000 → 1.5 M."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(v) >= size:
            return f"{v / size:.4g}{unit}"
    return f"{v:.4g}"


def format_pixel(v: float) -> str:
    """A pixel with one decimal, as short as possible: pages hold thousands of them."""
    return f"{v:.1f}".rstrip("0").rstrip(".")


@frozen
class Axis:
    """What an axis shows: the values at its ends, its label, and how its ticks are written.

    An axis with `names` has these as its ticks, at 1, 2, 3 and so on.
    """

    label: str
    ends: tuple[float, float] = UNIT
    write: TickFormat = format_percent_tick
    log: bool = False
    root: bool = False
    names: Sequence[str] = ()


@frozen
class Paper:
    """The size of a picture in pixels, its side margins, and its bottom and top `rows`."""

    width: float = PICTURE_WIDTH
    height: float = PICTURE_HEIGHT
    left: float = LEFT_MARGIN
    right: float = RIGHT_MARGIN
    rows: tuple[float, float] = (PICTURE_HEIGHT - BOTTOM_MARGIN, TOP_MARGIN)


USUAL_PAPER = Paper()


@frozen
class Scale:
    """Maps values from low to high to pixels from start to end, by their logarithm or their square
    root where `log` or `root` says so.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    root: bool = False

    @property
    def kind(self) -> str:
        """How the page's script maps values."""
        if self.log:
            return "log"
        return "root" if self.root else "linear"

    def __call__(self, v: float) -> float:
        low, high = self.low, self.high
        if self.root:
            low, high, v = (sqrt(max(value, 0.0)) for value in (low, high, v))
        if self.log:
            # Zero has no logarithm; it is drawn at the low end like all that is off the scale.
            low, high, v = (log10(max(value, 1e-300)) for value in (low, high, v))
        share = (v - low) / ((high - low) or 1.0)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def invert(self, pixel: float) -> float:
        """The value that is drawn at a pixel.

        >>> Scale(low=0, high=2, start=10, end=30).invert(20)
        1.0
        """
        share = (pixel - self.start) / ((self.end - self.start) or 1.0)
        if self.log:
            return self.low * (self.high / self.low) ** share
        if self.root:
            share *= share
        return self.low + share * (self.high - self.low)


def find_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between the ends."""
    if not high > low:
        return [low]
    raw = (high - low) / most
    unit = 10 ** floor(log10(raw))
    # The tolerance keeps a tick that rounding would push just beyond an end.
    step = next(m * unit for m in (1, 2, 2.5, 5, 10) if m * unit >= raw * (1 - 1e-9))
    first = ceil(low / step - 1e-9)
    last = floor(high / step + 1e-9)
    # Ten digits drop what rounding adds: 3 · 0.1 is 0.3, not 0.30000000000000004.
    return [float(f"{i * step:.10g}") for i in range(first, last + 1)]


def find_log_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Powers of ten between the ends, and their multiples where there are few."""
    first, last = floor(log10(low) - 1e-9), ceil(log10(high) + 1e-9)
    decades, skip = last - first, 1
    if decades > most:
        factors = (1,)
        skip = ceil(decades / most)
    elif decades > 2:
        factors = (1, 3)
    else:
        factors = (1, 2, 5)
    ticks: list[float] = []
    for exponent in range(first, last + 1, skip):
        ticks += [factor * 10.0**exponent for factor in factors]
    return [float(f"{v:.10g}") for v in ticks if low * (1 - 1e-9) <= v <= high * (1 + 1e-9)]


def find_root_ticks(scale: Scale) -> list[float]:
    """Zero and round numbers of a square-root axis that begins there, a line of text apart.

    >>> find_root_ticks(Scale(low=0, high=2500, start=98, end=28, root=True))
    [0.0, 300.0, 1000.0]
    """
    kept = [0.0]
    for v in reversed(find_log_ticks(1, max(scale.high, 1.0))):
        places = [scale(other) for other in kept]
        if all(abs(scale(v) - place) >= TICK_HEIGHT for place in places):
            kept.append(v)
    return sorted(kept)


def count_fitting(names: Sequence[str], room: float) -> int:
    """How many names of this length fit side by side."""
    return int(room / (LETTER_WIDTH * max(map(len, names)) + 12))


def needs_numbers(
    names: Sequence[str], room: float = PICTURE_WIDTH - LEFT_MARGIN - RIGHT_MARGIN
) -> bool:
    """Whether names are too long for two of them side by side, so that numbers stand for them.

    >>> needs_numbers(["May", "June"]), needs_numbers(["rows 1 to 5,000", "rows 5,001 to 10,000"])
    (False, True)
    """
    return len(names) > 1 and count_fitting(names, room) < 2


def find_axis_ticks(axis: Axis, scale: Scale, most: int) -> list[tuple[float, str]]:
    """The ticks of an axis, value and text: round numbers, or all names."""
    if axis.names:
        return [(float(i), name) for i, name in enumerate(axis.names, start=1)]
    if scale.root:
        return [(v, axis.write(v)) for v in find_root_ticks(scale)]
    find = find_log_ticks if scale.log else find_ticks
    return [(v, axis.write(v)) for v in find(scale.low, scale.high, most)]


def make_path(kind: str, path: str) -> Markup:
    """A path of the class that styles it; nothing where there is nothing to draw."""
    if not path:
        return Markup("")
    return Markup(f'<path class="{kind}" d="{path}"/>')


@frozen
class Frame:
    """One panel of a picture: two axes and their scales on a paper."""

    x: Scale
    y: Scale
    x_axis: Axis
    y_axis: Axis
    paper: Paper

    def draw_line(self, x: Numbers, y: Numbers, kind: str) -> Markup:
        """A line through the points; `kind` is the class that styles it."""
        places = self._place_points(x, y)
        if not places:
            return Markup("")
        return make_path(f"line {kind}", f"M{'L'.join(places)}")

    def draw_dots(self, x: Numbers, y: Numbers, kind: str) -> Markup:
        """Points as one path: a stroke of length 0 with a round end is a dot."""
        dots = [f"M{place}h0" for place in self._place_points(x, y)]
        return make_path(f"dots {kind}", "".join(dots))

    def draw_whiskers(
        self, x: Numbers, low: Numbers, high: Numbers, kind: str = "whiskers"
    ) -> Markup:
        """An upright bar from low to high at each x."""
        path = ""
        for at, bottom, top in zip(x, low, high, strict=True):
            if at is not None and bottom is not None and top is not None:
                path += f"M{self._place(at, bottom)}V{format_pixel(self.y(top))}"
        return make_path(kind, path)

    def draw_level_whiskers(self, low: Numbers, high: Numbers, y: Numbers) -> Markup:
        """A level bar from low to high at each y."""
        path = ""
        for left, right, at in zip(low, high, y, strict=True):
            if left is not None and right is not None and at is not None:
                path += f"M{self._place(left, at)}H{format_pixel(self.x(right))}"
        return make_path("whiskers", path)

    def draw_band(self, x: Numbers, low: Numbers, high: Numbers) -> Markup:
        """The area between two lines."""
        there, back = self._place_points(x, low), self._place_points(x, high)[::-1]
        if not there or not back:
            return Markup("")
        return make_path("band", f"M{'L'.join([*there, *back])}z")

    def draw_steps(self, edges: Sequence[float], heights: Sequence[float], kind: str) -> Markup:
        """A line of level steps between edges."""
        x, y = list[float](), list[float]()
        for ends, height in zip(pairwise(edges), heights, strict=True):
            x += ends
            y += [height, height]
        return self.draw_line(x, y, kind)

    def draw_bars(
        self, edges: Sequence[float], base: Sequence[float], top: Sequence[float], kind: str
    ) -> Markup:
        """Upright bars between edges, from base to top."""
        path = ""
        for (a, b), low, high in zip(pairwise(edges), base, top, strict=True):
            if high > low:
                foot, head = format_pixel(self.y(low)), format_pixel(self.y(high))
                right = format_pixel(self.x(b) - 0.4)  # a hair of paper between two bars
                path += f"M{format_pixel(self.x(a))} {foot}V{head}H{right}V{foot}z"
        return make_path(kind, path)

    def draw_axes(self) -> Markup:
        """Grid, ticks and labels."""
        marks = [*self._draw_x_ticks(), *self._draw_y_ticks()]
        left, right, bottom = map(format_pixel, (self.x.start, self.x.end, self.y.start))
        marks.append(Markup(f'<path class="axis" d="M{left} {bottom}H{right}"/>'))
        if self.is_lowest:
            middle = format_pixel((self.x.start + self.x.end) / 2)
            text = Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>')
            marks.append(text.format(middle, self.paper.height - 6, self.x_axis.label))
        if self.y_axis.label:
            text = Markup('<text x="2" y="{}">{}</text>')
            marks.append(text.format(format_pixel(self.y.end - 16), self.y_axis.label))
        return Markup("").join(marks)

    @property
    def x_ticks(self) -> list[tuple[float, str]]:
        """The ticks of x, value and text."""
        room, names = self.x.end - self.x.start, self.x_axis.names
        ticks = find_axis_ticks(self.x_axis, self.x, most=min(5, int(room / 44)))
        if names:
            if needs_numbers(names, room):
                ticks = [(v, str(i)) for i, (v, _) in enumerate(ticks, start=1)]
            texts = [text for _, text in ticks]
            # Names that would run into each other are left out at an even step.
            ticks = ticks[:: ceil(len(ticks) / max(1, count_fitting(texts, room)))]
        return ticks

    @property
    def y_ticks(self) -> list[tuple[float, str]]:
        """The ticks of y, value and text."""
        most = 4 if self.y.start - self.y.end > 100 else 2
        return find_axis_ticks(self.y_axis, self.y, most)

    @property
    def is_lowest(self) -> bool:
        """Whether it is the lower of two panels, or the only one: it has the ticks and the label of
        x.
        """
        return self.y.start > self.paper.height / 2

    def _draw_x_ticks(self) -> Iterator[Markup]:
        low, high = format_pixel(self.y.start), format_pixel(self.y.end)
        for v, text in self.x_ticks:
            at = self.x(v)
            yield Markup(f'<path class="grid" d="M{format_pixel(at)} {high}V{low}"/>')
            if not self.is_lowest:
                continue
            anchor = "middle"
            if at + LETTER_WIDTH * len(text) / 2 > self.paper.width:
                # A text centred here would be cut at the edge of the paper: let it end there.
                anchor, at = "end", self.paper.width
            place = f'x="{format_pixel(at)}" y="{format_pixel(self.y.start + 17)}"'
            yield Markup(f'<text {place} text-anchor="{anchor}">{escape(text)}</text>')

    def _draw_y_ticks(self) -> Iterator[Markup]:
        left, right = format_pixel(self.x.start), format_pixel(self.x.end)
        for v, text in self.y_ticks:
            at = self.y(v)
            place = f'x="{format_pixel(self.x.start - 6)}" y="{format_pixel(at + 4.5)}"'
            yield Markup(
                f'<path class="grid" d="M{left} {format_pixel(at)}H{right}"/>'
                f'<text {place} text-anchor="end">{escape(text)}</text>'
            )

    def _place(self, x: float, y: float) -> str:
        """The pixels of a point, as a path has them."""
        return f"{format_pixel(self.x(x))} {format_pixel(self.y(y))}"

    def _place_points(self, x: Numbers, y: Numbers) -> list[str]:
        """Pixels of the points that exist, neighbours on the same pixel left out."""
        places: list[str] = []
        for a, b in zip(x, y, strict=True):
            if a is not None and b is not None:
                place = self._place(a, b)
                if places[-1:] != [place]:
                    places.append(place)
        return places


def make_frame(x: Axis, y: Axis, paper: Paper = USUAL_PAPER) -> Frame:
    """The frame of both axes on a paper."""
    bottom, top = paper.rows
    across = Scale(
        low=x.ends[0], high=x.ends[1], start=paper.left, end=paper.width - paper.right, log=x.log
    )
    up = Scale(low=y.ends[0], high=y.ends[1], start=bottom, end=top, log=y.log, root=y.root)
    return Frame(x=across, y=up, x_axis=x, y_axis=y, paper=paper)


def build_svg(
    f: Frame, marks: Sequence[Markup], *, title: str, name: str, more: Sequence[Frame] = ()
) -> Markup:
    """The picture; `title` is what a screen reader says, `more` are further panels."""
    # The page's script finds a picture by its name and turns pixels into values by its scales.
    ends: list[float] = []
    for panel in (f, *more):
        for scale in (panel.x, panel.y):
            ends += [scale.low, scale.high, scale.start, scale.end]
    kinds = [scale.kind for scale in (f.x, f.y)]
    data = Markup(' data-picture="{}" data-scales="{}" data-kinds="{}"').format(
        name, " ".join(f"{v:.6g}" for v in ends), " ".join(kinds)
    )
    panels = Markup("").join(panel.draw_axes() for panel in (f, *more))
    kind = Markup(' class="named"') if f.paper.width > PICTURE_WIDTH else ""
    return Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}"{}{}>{}</svg>').format(
        f.paper.width, f.paper.height, title, kind, data, panels + Markup("").join(marks)
    )
