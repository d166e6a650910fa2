"""A comparison in words and pictures: a sheet for terminals and Markdown, and the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import dist
from typing import NamedTuple

from markupsafe import Markup

from howsure._core import strict_json
from howsure.report.catalogue import PERCENT_NUMBERS
from howsure.report.render import svg
from howsure.report.render.page import dump_pictures, render_template
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
    NONE,
    describe_origin,
    explain_missing,
    find_shared_notes,
    format_heading,
    format_level,
    format_limits,
    format_metric,
    format_number,
    format_percent,
    format_percent_range,
    format_points,
    format_points_range,
    format_range,
    format_signed,
    format_signed_range,
    get_meaning,
    identify_input,
    join_notes,
)
from howsure.report.render.svg import (
    UNIT,
    USUAL_PAPER,
    Axis,
    Frame,
    Paper,
    format_short,
    make_frame,
)
from howsure.report.render.text_tables import Sheet, TableRows, TextTable
from howsure.report.report_types import (
    Column,
    ComparisonData,
    CurveData,
    Difference,
    Entry,
    FurtherRow,
    Metrics,
    Provenance,
)

FEW_MODELS, SEVERAL_MODELS = 4, 12
PAGE_ROWS = (200, 60, 25)  # rows of a table on the page: of few, several, and many models
PAGE_MODELS = 30  # that are drawn, the best ones; the tables of models and the JSON have all
PAIRS_TITLE, RANKING_TITLE = "Paired differences", "Ranking by AURC"
RANKING_METRICS = ("augrc", "coverage_at_risk_0.05")
PAIR_METRICS = ("aurc", "accuracy", "ece", "correctness_brier")
METRIC_GROUPS = (
    ("Accuracy", ("accuracy", "nll", "brier")),
    ("Can it be read as a probability?", ("ece", "aece")),
    ("Spotting errors", ("auroc", "aupr_error", "aupr_success", "e_aurc")),
)
MIX_NOTE = "Every answer to an outside sample counts as wrong. AUROC of spotting errors compares scores of one model only."
MODEL_COLOURS = 8  # further models have the same colours with dashes
NAMED_PAPER = Paper(width=470, right=128)  # with room for names at the right
NAME_HEIGHT = 13.5  # pixels between two names
MODEL_NAME_LETTERS = 15
NAMED_CURVES = 6  # lines of a reliability diagram that are named at their ends
DOT_RADIUS = 4  # pixels
LOG_COST_RATIO = 10  # costs that differ by more are drawn on a log axis
Place = tuple[float, float]  # pixels from the left and from the top


def build_comparison_sheet(data: ComparisonData) -> Sheet:
    """Everything that is printed of a comparison."""
    tables = [_build_ranking(data)]

    # Further numbers with their limits; those that would be unfair are left out.
    comparable = data["comparable"]
    for title, names in METRIC_GROUPS:
        fair = [name for name in names if name in comparable and comparable[name]["fair"]]
        if not fair:
            continue
        rows = TableRows()
        entries: list[Entry] = []
        for model in data["models"]:
            metrics = model["metrics"]
            rows.append([model["name"], *_format_metrics(metrics, fair)])
            entries += [metrics[name] for name in fair if name in metrics]
        head = ["model", *(_format_title(data, name) for name in fair)]
        note = explain_missing(entries)
        tables.append(TextTable(title=title, head=head, rows=rows, note=note))

    # The differences of all pairs, those of AURC first.
    rows = TableRows()
    for name in PAIR_METRICS:
        for pair in data["pairs"]:
            difference = pair.get(name)
            if difference is None:
                continue
            models = f"{pair['a']} − {pair['b']}"
            clear = "significant" if difference["clear"] else ""
            cells = _format_difference(difference)
            rows.append([models, get_meaning(name).title, *cells, clear])
    head = ["models", "number", "difference", "interval", ""]
    note = "Significant: after correction for all pairs."
    tables.append(TextTable(title=PAIRS_TITLE, head=head, rows=rows, note=note))

    # What may be compared: numbers with the same answer and reason share a row.
    titles: dict[tuple[bool, str], list[str]] = {}
    for metric, fact in comparable.items():
        titles.setdefault((fact["fair"], fact["why"]), []).append(get_meaning(metric).title)
    rows = TableRows()
    for (is_fair, why), named in titles.items():
        rows.append([", ".join(named), "yes" if is_fair else "no", why])
    head = ["number", "fair", "why"]
    tables.append(TextTable(title="May these models be compared by it?", head=head, rows=rows))

    tables += _build_further_tables(data)
    groups = f" in {data['groups']:,} groups" if "groups" in data else ""
    headline = (
        f"{len(data['models'])} models on the same {data['n']:,} samples{groups} · "
        f"{format_level(data['level'])} intervals"
    )
    shown = [table for table in tables if table.rows]
    return Sheet(headline=headline, sentences=[write_verdict(data)], tables=shown)


def write_verdict(data: ComparisonData) -> str:
    """Which model is best, and whether that is more than chance."""
    best, *others = data["models"]
    tied = [row["name"] for row in others if not row["behind"]["clear"]]
    if not tied:
        return f"{best['name']} ranks best by AURC, significantly ahead of the others."
    alike = [row["name"] for row in others if row["behind"]["low"] == row["behind"]["high"] == 0]
    unlike = [name for name in tied if name not in alike]
    sentences: list[str] = []
    if alike:
        sentences.append(
            f"{', '.join([best['name'], *alike])} give the same answers with the same confidence."
        )
    lowest = best["metrics"]["aurc"]["value"]
    equal = [
        row["name"]
        for row in others
        if row["name"] in unlike and row["metrics"]["aurc"]["value"] == lowest
    ]
    worse = [name for name in unlike if name not in equal]
    leads = f"{best['name']} has the lowest AURC"
    if equal:
        leads = f"{', '.join([best['name'], *equal])} have the same AURC"
        if worse:
            leads += ", the lowest"
    if worse:
        verb = "is" if len(worse) == 1 else "are"
        leads += f"; {', '.join(worse)} {verb} not significantly worse after correction"
    if unlike:
        sentences.append(f"{leads}.")
    # Where AURC does not decide: for whom the numbers beside it speak.
    for tie in data.get("ties", []):
        name, number = tie["metric"], tie["difference"]
        low, high = number.get("low"), number.get("high")
        if name in PERCENT_NUMBERS:
            size = f"{format_points(number['value'])}, {format_points_range(low, high)}"
        else:
            size = f"{format_signed(number['value'])}, {format_signed_range(low, high)}"
        title = get_meaning(name).title
        sentences.append(f"{tie['better']} has the better {title} than {tie['over']} ({size}).")
    if unlike and not data.get("ties", True):
        sentences.append(
            "Accuracy, AUGRC and coverage at 1 and 5 % risk show no significant difference either."
        )
    return " ".join(sentences)


# Tables


def _build_ranking(data: ComparisonData) -> TextTable:
    """AURC, how far each model is behind the best, and what else is read from the order."""
    others = [name for name in RANKING_METRICS if name in data["comparable"]]
    rows = TableRows()
    entries: list[Entry] = []
    notes: dict[str, None] = {}  # each once, in order
    for model in data["models"]:
        metrics = model["metrics"]
        aurc = metrics["aurc"]
        limits = format_range(aurc.get("low"), aurc.get("high"), 3)
        row = [model["name"], format_number(aurc["value"]), limits]
        row += _format_difference(model["behind"])
        for name in others:
            row.append(format_metric(name, metrics[name]) if name in metrics else NONE)
        rows.append(row)
        entries += [metrics[name] for name in ("aurc", *others) if name in metrics]
        notes |= dict.fromkeys(find_shared_notes(metrics))
    alone = ""
    if len(rows) > 2:
        alone = "; not corrected for multiple comparisons"
    behind = [model["behind"] for model in data["models"][1:]]
    sentences = (
        f"Gap to the best (paired{alone}).",
        explain_missing([*entries, *behind]),
        join_notes(notes),
    )
    head = ["model", _format_title(data, "aurc"), "interval", "gap to the best", "interval"]
    head += [_format_title(data, name) for name in others]
    note = " ".join(filter(None, sentences))
    return TextTable(title=RANKING_TITLE, head=head, rows=rows, note=note)


def _format_title(data: ComparisonData, metric: str) -> str:
    entries = (model["metrics"].get(metric) for model in data["models"])
    return format_heading(metric, next(entry["better"] for entry in entries if entry is not None))


def _format_metrics(metrics: Metrics, names: Sequence[str]) -> list[str]:
    """Numbers with their limits, one cell each."""
    cells: list[str] = []
    for name in names:
        entry = metrics.get(name)
        if entry is None or entry["value"] is None:
            cells.append(NONE)
            continue
        limits = format_limits(name, entry)
        between = f" ({limits})" if limits else ""
        cells.append(f"{format_metric(name, entry)}{between}")
    return cells


def _format_difference(d: Difference) -> list[str]:
    """A difference and its limits; the best is behind nobody."""
    if d["low"] is None and not d["value"]:
        return ["", ""]
    return [format_signed(d["value"]), format_signed_range(d["low"], d["high"])]


def _build_further_tables(data: ComparisonData) -> list[TextTable]:
    """What is known beside the samples that all models answered: costs, other data, groups and
    classes.
    """
    costs = TableRows()
    for c in data["cost"]:
        numbers = (format_short(c["cost"]), format_number(c["aurc"]), format_number(c["ece"]))
        ece = "it has no ECE" if c["ece"] is None else c["beaten_by"]["ece"] or "nobody"
        costs.append([c["name"], *numbers, c["beaten_by"]["aurc"] or "nobody", ece])
    what = data["cost_name"]

    slices = TableRows()
    for s in data["slices"]:
        slices.append(
            [
                s["group"],
                s["model"],
                f"{s['n']:,}",
                format_percent(s["accuracy"]),
                format_percent_range(s["low"], s["high"]),
                format_number(s["aurc"]),
                format_number(s["gap"]),
                "worse" if s["worse"] else "",
            ]
        )
    slice_numbers = ["accuracy ↑", "limits", "AURC ↓", "confidence − accuracy", ""]

    models = [row["name"] for row in data["models"]]
    classes = TableRows()
    for c in data["classes"]:
        recalls = [format_percent(c["recall"][model]) for model in models]
        classes.append([c["name"], f"{c['count']:,}", *recalls])

    return [
        TextTable(
            title=f"What does it cost ({what})?",
            head=["model", what, "AURC ↓", "ECE ↓", "beaten in AURC by", "beaten in ECE by"],
            rows=costs,
            note="Beaten: by a model that costs no more.",
        ),
        _build_sets_table(
            data["shifted"],
            "Shifted data beside the home set",
            metrics={"accuracy": "accuracy ↑", "aurc": "AURC ↓", "ece": "ECE ↓"},
        ),
        _build_sets_table(
            data["outside"],
            "Samples from outside: in or out?",
            metrics={"auroc": "AUROC of in or out ↑", "fpr_at_95": "FPR at 95 % ↓"},
            note="FPR: outside samples kept where 95 % of the home samples are.",
        ),
        _build_sets_table(
            data["outside"],
            "Finding errors on the mix of both",
            metrics={"mix_aurc": "AURC ↓", "mix_auroc": "AUROC of spotting errors ↑"},
            note=MIX_NOTE,
        ),
        TextTable(
            title="Groups, worst first",
            head=["group", "model", "samples", *slice_numbers],
            rows=slices,
            note="The limits of all groups hold together.",
        ),
        TextTable(
            title="Recall by class, worst first",
            head=["class", "samples", *models],
            rows=classes,
        ),
    ]


def _build_sets_table(
    sets: Sequence[FurtherRow], title: str, *, metrics: Mapping[str, str], note: str = ""
) -> TextTable:
    """Models on further data sets: some numbers by their headings."""
    rows = TableRows()
    for row in sets:
        numbers = _format_metrics(row["metrics"], list(metrics))
        rows.append([row["set"], row["model"], f"{row['n']:,}", *numbers])
    head = ["set", "model", "samples", *metrics.values()]
    return TextTable(title=title, head=head, rows=rows, note=note)


# The page


def render_comparison_page(data: ComparisonData) -> str:
    """One offline file: overlaid curves, cost, who is clearly better, and all tables."""
    models = [row["name"] for row in data["models"]]
    sheet = build_comparison_sheet(data)
    # Curves, the matrix and columns of the best; more would be neither told apart nor small.
    best: ComparisonData = {**data, "models": data["models"][:PAGE_MODELS]}
    best["cost"] = [row for row in data["cost"] if row["name"] in models[:PAGE_MODELS]]
    pictures = draw_comparison_pictures(best)
    # Long tables of many models are cut to what a page can hold; the JSON has all of it.
    few, several, many = PAGE_ROWS
    if len(models) <= FEW_MODELS:
        most = few
    elif len(models) <= SEVERAL_MODELS:
        most = several
    else:
        most = many
    tables: list[TextTable] = []
    for table in sheet.tables:
        # The matrix says the same as the pairs of many models, in far less room.
        if table.title == PAIRS_TITLE and len(models) > SEVERAL_MODELS:
            continue
        if table.title != RANKING_TITLE and len(table.rows) > most:
            note = f"{table.note} The first {most} of {len(table.rows):,} rows.".strip()
            table = replace(table, rows=table.rows[:most], note=note)
        if len(table.head) > PAGE_MODELS + 2:
            end = PAGE_MODELS + 2
            note = f"{table.note} The best {PAGE_MODELS} of {len(models)} models.".strip()
            rows = [row[:end] for row in table.rows]
            table = replace(table, head=table.head[:end], rows=rows, note=note)
        tables.append(table)
    pairs: dict[str, str] = {}
    for pair in data["pairs"]:
        pairs[f"{pair['a']} − {pair['b']}"] = strict_json.dump_line([pair["a"], pair["b"]])
    origin: list[tuple[str, str]] = []
    for name, provenance in data["provenance"].items():
        origin.append((name, ", ".join(map(identify_input, provenance["inputs"]))))
        if "receipt" in provenance:
            origin.append((f"{name} read as", provenance["receipt"]["text"]))
    # What differs between models stands above.
    shared: Provenance = {**data["provenance"][models[0]], "inputs": []}
    shared.pop("receipt", None)
    origin += describe_origin(data["howsure"], shared)
    return render_template(
        "compare.html.j2",
        data=data,
        title="Which one is better?",
        sheet=sheet,
        tables=tables,
        matrix=build_matrix(best),
        models=models,
        pairs=pairs,
        legend=[(name, style_model(rank)) for rank, name in enumerate(models[:PAGE_MODELS])],
        pictures=pictures,
        pictures_json=dump_pictures(pictures),
        origin=origin,
    )


def draw_comparison_pictures(data: ComparisonData) -> list[Picture]:
    """Every picture of a comparison."""
    curves = [draw_models_risk(data), *draw_models_reliability(data)]
    return [*curves, *draw_cost_pictures(data)]


def build_matrix(data: ComparisonData) -> TextTable:
    """Every model against every other by AURC; a sign is only given where the difference is clear."""
    models = [row["name"] for row in data["models"]]
    signs = {(name, name): "" for name in models}
    for pair in data["pairs"]:
        a, b = pair["a"], pair["b"]
        if not pair["aurc"]["clear"]:
            signs[a, b] = signs[b, a] = "="
        elif pair["aurc"]["value"] < 0:
            signs[a, b], signs[b, a] = "+", "−"
        else:
            signs[a, b], signs[b, a] = "−", "+"
    return TextTable(
        title="Which differences are significant?",
        head=["", *models],
        rows=[[a, *(signs[a, b] for b in models)] for a in models],
        note="The row against the column, by AURC: + significantly better, − significantly worse, "
        "= not significant.",
    )


# Pictures: curves of several models in one frame


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
            Axis(ends=ends, label=label, write=format_short, log=log),
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
        marks += _draw_dot_names(f, places)
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
    # A line apart: first all are pushed down until nothing overlaps, then up again from the bottom.
    heights: list[float] = []
    least = f.y.end
    for _, (_, y) in ends:
        heights.append(max(y, least))
        least = heights[-1] + NAME_HEIGHT
    most = f.y.start
    for i in reversed(range(len(heights))):
        heights[i] = min(heights[i], most)
        most = heights[i] - NAME_HEIGHT
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


def _draw_dot_names(f: Frame, places: Mapping[str, Place]) -> list[Markup]:
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
