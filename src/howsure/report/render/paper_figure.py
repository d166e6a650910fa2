"""Pictures of a page as figures for a paper: svg as the page draws them, pdf and png by matplotlib
with the same marks, colours, labels and legends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from xml.etree import ElementTree

from markupsafe import Markup, escape

from howsure._core.checks import InputError, need
from howsure._core.file_access import replace_file, write_text
from howsure._core.text import escape_page
from howsure.report.render.page import read_assets
from howsure.report.render.pictures import Picture
from howsure.report.render.svg import LETTER_WIDTH, Frame, format_pixel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE_FORMATS = (".svg", ".pdf", ".png")
TITLE_HEIGHT, LEGEND_HEIGHT = 28, 20  # pixels above a picture: of its title, and of a line of keys
KEY_WIDTH = 24  # pixels of the sample of a colour in a legend
POINTS_PER_PIXEL, PIXELS_PER_INCH, PNG_DPI = 0.75, 96, 288
TEXT_SIZE, TITLE_SIZE = 9, 11  # points
LIVE_MARKS = ('<g class="point"', '<rect class="deferred"')  # what the page's script moves
MAIN_PICTURES = ("risk", "threshold", "histogram", "reliability")  # where none is named
Style = dict[str, str]
Axes: TypeAlias = Any  # matplotlib is optional, so its types are too


def choose_pictures(every: Sequence[Picture], names: Sequence[str]) -> list[Picture]:
    """The pictures of these names, the main ones where none is named.

    The beginning of a name is enough: `reliability` for `reliability-equal_range`.
    """
    chosen: list[Picture] = []
    for name in names or MAIN_PICTURES:
        found = [p for p in every if p.name == name or p.name.startswith(f"{name}-")]
        chosen += found[:1]
        if not found and names:
            known = ", ".join(p.name for p in every)
            raise InputError(f"there is no picture {name!r} here; there are {known}.")
    return chosen or list(every)


def build_figure(every: Sequence[Picture], names: Sequence[str]) -> Figure:
    """The pictures of these names, the main ones unless given, side by side."""
    plt = need("matplotlib.pyplot", for_="figure()", extra="plot")
    return draw_figure(choose_pictures(every, names), plt.figure())


def save_figure(pictures: Sequence[Picture], path: str | Path) -> None:
    """Write pictures side by side into one file, whose ending says its kind."""
    suffix = Path(path).suffix.lower()
    if suffix == ".svg":
        write_text(path, draw_svg(pictures))
        return
    figure: Any = need("matplotlib.figure", for_=f"a {suffix} figure", extra="plot").Figure()
    draw_figure(pictures, figure)
    # Without a date, so that the same numbers give the same file.
    metadata = {"CreationDate": None} if suffix == ".pdf" else {}
    with replace_file(path) as temporary:
        figure.savefig(temporary, format=suffix[1:], dpi=PNG_DPI, metadata=metadata)


# Style


@cache
def read_styles() -> tuple[dict[str, str], list[tuple[frozenset[str], Style]]]:
    """The colours of the light page, and what each set of classes says of a mark, weakest first."""
    css = re.sub(r"@[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", read_assets()[0])
    first, _, rest = css.partition("}")
    colours: dict[str, str] = dict(re.findall(r"--([\w-]+): ([^;]+);", first))
    rules: list[tuple[frozenset[str], Style]] = []
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", rest):
        plain = re.sub(r"var\(--([\w-]+)\)", lambda match: colours[match[1]], body)
        style: Style = dict(re.findall(r"([\w-]+): ([^;]+);", plain))
        for selector in selectors.split(","):
            # Only rules on classes of the mark itself are about marks.
            if re.fullmatch(r"(path)?(\.\w+)+", selector.strip()):
                rules.append((frozenset(selector.strip().split(".")[1:]), style))
    return colours, sorted(rules, key=lambda rule: len(rule[0]))


def find_style(kind: str) -> Style:
    """How the page draws a mark of these classes.

    >>> find_style("line main")["stroke"]
    '#0f5f8c'
    """
    style: Style = {}
    for classes, says in read_styles()[1]:
        if classes <= set(kind.split()):
            style |= says
    return style


def find_key_style(kind: str) -> Style:
    """How a legend shows a mark: bars by their filling, everything else as a line."""
    bars = find_style(kind)
    if "fill" in bars and "stroke" not in bars:
        return {"stroke": bars["fill"], "stroke-width": "7"}
    return find_style(f"line {kind}")


# Layout, the same in every format


def place_keys(p: Picture) -> list[tuple[float, int, str, str]]:
    """Pixels from the left, line, text and kind of each entry of a legend."""
    places: list[tuple[float, int, str, str]] = []
    x, line = 0.0, 0
    for text, kind in p.legend:
        needed = KEY_WIDTH + LETTER_WIDTH * len(text) + 14
        if x and x + needed > p.frames[0].paper.width:
            x, line = 0.0, line + 1
        places.append((x, line, text, kind))
        x += needed
    return places


def measure_head(p: Picture) -> float:
    """The height of title and legend."""
    lines = {line for _, line, _, _ in place_keys(p)}
    return TITLE_HEIGHT + LEGEND_HEIGHT * len(lines)


def measure_sheet(pictures: Sequence[Picture]) -> tuple[float, float]:
    """Width and height of pictures side by side."""
    papers = [(p.frames[0].paper, measure_head(p)) for p in pictures]
    return sum(paper.width for paper, _ in papers), max(h + paper.height for paper, h in papers)


def list_still_marks(p: Picture) -> Markup:
    return Markup("").join(mark for mark in p.marks if not mark.startswith(LIVE_MARKS))


# SVG


def draw_svg(pictures: Sequence[Picture]) -> str:
    """Pictures side by side as one SVG file that needs no style sheet."""
    colours, (width, height) = read_styles()[0], measure_sheet(pictures)
    parts: list[str] = []
    x = 0.0
    for p in pictures:
        paper, head = p.frames[0].paper, measure_head(p)
        title = f'<text x="2" y="17" font-size="15" font-weight="bold" fill="{colours["ink"]}">'
        parts.append(
            f'<g transform="translate({format_pixel(x)} 0)">{title}{escape(p.title)}</text>'
        )
        for left, line, text, kind in place_keys(p):
            y = TITLE_HEIGHT + LEGEND_HEIGHT * line + 5
            key = f'<path {write_style(find_key_style(kind))} d="M{left + 4:g} {y + 2}h16"/>'
            parts.append(f'{key}<text x="{left + KEY_WIDTH:g}" y="{y + 6}">{escape(text)}</text>')
        axes = Markup("").join(frame.draw_axes() for frame in p.frames)
        marks = re.sub(
            r'class="([^"]*)"',
            lambda match: write_style(find_style(match[1])),
            axes + list_still_marks(p),
        )
        parts.append(f'<g transform="translate(0 {format_pixel(head)})">{marks}</g></g>')
        x += paper.width
    size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
    font = f'font-family="Helvetica, Arial, sans-serif" font-size="13" fill="{colours["soft"]}"'
    paper = f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>'
    sheet = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>{paper}{"".join(parts)}</svg>\n'
    return escape_page(sheet)


def write_style(style: Style) -> str:
    return f'style="{"; ".join(f"{name}: {value}" for name, value in style.items())}"'


# matplotlib


def draw_figure(pictures: Sequence[Picture], figure: Any) -> Figure:
    """Draw pictures side by side into a figure of matplotlib, on axes of their own values."""
    lines = need("matplotlib.lines", for_="a figure", extra="plot")
    colours, (width, height) = read_styles()[0], measure_sheet(pictures)
    words: dict[str, Any] = {"size": TEXT_SIZE, "color": colours["soft"]}
    figure.set_size_inches(width / PIXELS_PER_INCH, height / PIXELS_PER_INCH)
    x = 0.0
    for p in pictures:
        head = measure_head(p)
        axes: list[Axes] = []
        for frame in p.frames:
            left, bottom = (x + frame.x.start) / width, 1 - (head + frame.y.start) / height
            across, up = frame.x.end - frame.x.start, frame.y.start - frame.y.end
            ax = figure.add_axes((left, bottom, across / width, up / height))
            _prepare_axes(ax, frame)
            axes.append(ax)
        notes = [
            (2.0, 12.0, p.title, {"weight": "bold", "color": colours["ink"], "size": TITLE_SIZE})
        ]
        for left, line, text, kind in place_keys(p):
            y = TITLE_HEIGHT + LEGEND_HEIGHT * line + 7.0
            notes.append((left + KEY_WIDTH, y, text, words))
            stroke, ends = find_key_style(kind), ((x + left + 4) / width, (x + left + 20) / width)
            key = lines.Line2D(ends, [1 - y / height] * 2, **read_stroke(stroke))
            figure.add_artist(key)
        for left, y, text, style in notes:
            figure.text(
                (x + left) / width, 1 - y / height, escape_formula(text), va="center", **style
            )
        _draw_marks(axes, p)
        x += p.frames[0].paper.width
    return figure


def _prepare_axes(ax: Axes, frame: Frame) -> None:
    """Scales, ticks, labels and grid of a frame."""
    colours = read_styles()[0]
    if frame.x.log:
        ax.set_xscale("log")
    if frame.y.log:
        ax.set_yscale("log")
    ax.minorticks_off()
    ax.set(xlim=(frame.x.low, frame.x.high), ylim=(frame.y.low, frame.y.high))
    x_ticks, y_ticks = frame.x_ticks, frame.y_ticks
    shown = [escape_formula(text) if frame.is_lowest else "" for _, text in x_ticks]
    ax.set_xticks([v for v, _ in x_ticks], shown, fontsize=TEXT_SIZE)
    ax.set_yticks(
        [v for v, _ in y_ticks], [escape_formula(t) for _, t in y_ticks], fontsize=TEXT_SIZE
    )
    ax.tick_params(length=0, labelcolor=colours["soft"])
    ax.grid(color=colours["grid"], linewidth=POINTS_PER_PIXEL)
    ax.set_axisbelow(True)
    for side in ("left", "top", "right"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(colours["soft"])
    words: dict[str, Any] = {"fontsize": TEXT_SIZE, "color": colours["soft"]}
    if frame.is_lowest:
        ax.set_xlabel(escape_formula(frame.x_axis.label), **words)
    # As on the page: level, above the axis.
    ax.set_ylabel(escape_formula(frame.y_axis.label), rotation=0, ha="left", va="bottom", **words)
    width, height = frame.x.end - frame.x.start, frame.y.start - frame.y.end
    ax.yaxis.set_label_coords((2 - frame.x.start) / width, 1 + 8 / height)


def read_stroke(style: Style) -> dict[str, Any]:
    """Width, colour and dashes of a line, as matplotlib takes them."""
    width = float(style.get("stroke-width", 1)) * POINTS_PER_PIXEL
    options: dict[str, Any] = {"linewidth": width, "alpha": float(style.get("opacity", 1))}
    if style.get("stroke", "none") != "none":
        options["color"] = style["stroke"]
    if "stroke-dasharray" in style:
        dashes = [float(v) * POINTS_PER_PIXEL / width for v in style["stroke-dasharray"].split()]
        options["linestyle"] = (0, tuple(dashes))
    return options


def _draw_marks(axes: Sequence[Axes], p: Picture) -> None:
    """Every mark of a picture, on the panel that it lies in."""
    colours = read_styles()[0]
    marks = ElementTree.fromstring(f"<g>{escape_page(list_still_marks(p))}</g>")
    for element in marks.iter():
        if element.tag == "text":
            ax, frame = axes[0], p.frames[0]
            x, y = frame.x.invert(float(element.attrib["x"])), float(element.attrib["y"])
            colour = find_style(element.attrib.get("class", "")).get("fill", colours["soft"])
            text = escape_formula(element.text or "")
            ax.text(x, frame.y.invert(y), text, fontsize=TEXT_SIZE, color=colour)
        elif element.tag == "path":
            _draw_path(axes, p.frames, element.attrib)


def _draw_path(axes: Sequence[Axes], frames: Sequence[Frame], path: dict[str, str]) -> None:
    """One path: dots, a line or an area."""
    kind, codes, pixels = path["class"], list[int](), list[tuple[float, float]]()
    x = y = 0.0
    # Letters of a path, and what matplotlib calls them: 1 moves, 2 draws, 79 closes.
    for letter, numbers in re.findall(r"([MLHVhz])([^MLHVhz]*)", path["d"]):
        for point in numbers.split("L") if numbers else [""]:
            values = [float(v) for v in point.split()]
            if letter in "ML":
                x, y = values
            elif letter == "H":
                x = values[0]
            elif letter == "V":
                y = values[0]
            codes.append({"M": 1, "z": 79}.get(letter, 2))
            pixels.append((x, y))
    inside = [
        i for i, frame in enumerate(frames) if frame.y.end - 1 <= pixels[0][1] <= frame.y.start + 1
    ]
    panel = inside[0] if inside else 0
    ax, frame = axes[panel], frames[panel]
    points = [(frame.x.invert(a), frame.y.invert(b)) for a, b in pixels]
    style = find_style(kind)
    stroke = read_stroke(style)
    if "dots" in kind.split():
        dots = [point for point, code in zip(points, codes, strict=True) if code == 1]
        size = stroke.pop("linewidth")
        ax.plot(
            *zip(*dots, strict=True),
            "o",
            markersize=size,
            markeredgewidth=0,
            **stroke,
            clip_on=False,
        )
        return
    edge = stroke.pop("color", "none")
    shapes = need("matplotlib.patches", for_="a figure", extra="plot")
    paths = need("matplotlib.path", for_="a figure", extra="plot")
    shape = shapes.PathPatch(
        paths.Path(points, codes),
        facecolor=style.get("fill", "none"),
        edgecolor=edge,
        capstyle="round" if "line" in kind.split() else "butt",
        clip_on="leader" not in kind,
        **stroke,
    )
    ax.add_patch(shape)


def escape_formula(text: str) -> str:
    """A text in which matplotlib finds no formula."""
    return escape_page(text).replace("$", r"\$")
