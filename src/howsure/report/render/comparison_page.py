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
from howsure.report.render.sections import AAC_NOTE, WITHOUT_INTERVAL_NOTE
from howsure.report.render.sentences import (
    NONE,
    count_shared_decimals,
    describe_origin,
    explain_missing,
    find_decimals,
    find_shared_notes,
    format_column,
    format_difference,
    format_heading,
    format_level,
    format_metric,
    format_number,
    format_percent,
    format_percent_range,
    format_points,
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
    COST_METRICS,
    Column,
    ComparisonData,
    CurveData,
    Difference,
    Entry,
    FurtherRow,
    Provenance,
)

FEW_MODELS, SEVERAL_MODELS = 4, 12
PAGE_ROWS = (200, 60, 25)  # rows of a table on the page: of few, several, and many models
PAGE_MODELS = 30  # that are drawn, the best ones; the tables of models and the JSON have all
PAIRS_TITLE, LEADERBOARD_TITLE = "Paired differences", "Leaderboard"
UNPAIRED_TITLE = "Differences"
INTERVALS_TITLE = "All numbers with their intervals"
LEADERBOARD_METRICS = ("aurc", "ece", "coverage_at_risk_0.05", "eor_pool")  # beside accuracy
PAIR_METRICS = ("aurc", "accuracy", "ece", "correctness_brier")
TIE_WORDS = {
    "accuracy": "is more accurate by {size}",
    "coverage_at_risk_0.01": "can automate {size} more at 1 % risk",
    "coverage_at_risk_0.05": "can automate {size} more at 5 % risk",
    "risk_at_coverage_0.02": "is safer among the most confident 2 %",
    "augrc": "has a lower AUGRC",
}
MIX_NOTE = "Every answer to an outside sample counts as wrong. AUROC of spotting errors compares scores of one model only."
MODEL_COLOURS = 8  # further models have the same colours with dashes
NAMED_PAPER = Paper(width=470, right=136)  # with room for names at the right
NAME_HEIGHT = 13.5  # pixels between two names
MODEL_NAME_LETTERS = 17
NAMED_CURVES = 6  # lines of a reliability diagram that are named at their ends
DOT_RADIUS = 4  # pixels
LOG_COST_RATIO = 10  # costs that differ by more are drawn on a log axis
Place = tuple[float, float]  # pixels from the left and from the top


def build_comparison_sheet(data: ComparisonData) -> Sheet:
    """Everything that is printed of a comparison."""
    what = _name_compared(data)
    tables = [_build_leaderboard(data)]

    # All numbers with their limits; those that would be unfair are left out.
    comparable = data["comparable"]
    fair = [name for name, fact in comparable.items() if fact["fair"]]
    columns: list[list[str]] = []
    entries: list[Entry] = []
    for name in fair:
        of_models = [model["metrics"].get(name) for model in data["models"]]
        columns.append(format_column(name, of_models))
        entries += [entry for entry in of_models if entry is not None]
    names = [model["name"] for model in data["models"]]
    unknown = [entry for entry in entries if entry["value"] is None]
    tables.append(
        TextTable(
            title=INTERVALS_TITLE,
            head=[what, *(_format_title(data, name) for name in fair)],
            rows=[list(row) for row in zip(names, *columns, strict=True)],
            note=f"{explain_missing(unknown)} {WITHOUT_INTERVAL_NOTE}".strip(),
        )
    )

    # The differences of all pairs, those of AURC first.
    rows = TableRows()
    for name in PAIR_METRICS:
        known = [pair.get(name) for pair in data["pairs"]]
        decimals = find_decimals(filter(None, known), percent=name in PERCENT_NUMBERS)
        for pair, difference in zip(data["pairs"], known, strict=True):
            if difference is None:
                continue
            models = f"{pair['a']} − {pair['b']}"
            clear = "significant" if difference["clear"] else ""
            cells = _format_gap(name, difference, decimals)
            rows.append([models, get_meaning(name).title, *cells, clear])
    head = [f"{what}s", "number", "difference", "interval", ""]
    note, title = "Significant: after correction for all pairs.", PAIRS_TITLE
    if "unpaired" in data:
        title = UNPAIRED_TITLE
    tables.append(TextTable(title=title, head=head, rows=rows, note=note))

    # What may be compared: numbers with the same answer and reason share a row.
    titles: dict[tuple[bool, str], list[str]] = {}
    for metric, fact in comparable.items():
        titles.setdefault((fact["fair"], fact["why"]), []).append(get_meaning(metric).title)
    rows = TableRows()
    for (is_fair, why), named in titles.items():
        rows.append([", ".join(named), "yes" if is_fair else "no", why])
    head = ["number", "fair", "why"]
    tables.append(TextTable(title=f"May these {what}s be compared by it?", head=head, rows=rows))

    tables += _build_further_tables(data)
    groups = f" in {data['groups']:,} groups" if "groups" in data else ""
    same = "" if "unpaired" in data else "the same "
    headline = (
        f"{len(data['models'])} {what}s on {same}{data['n']:,} samples{groups} · "
        f"{format_level(data['level'])} intervals"
    )
    shown = [table for table in tables if table.rows]
    findings = [finding["text"] for finding in data.get("findings", [])]
    return Sheet(headline=headline, sentences=[write_verdict(data), *findings], tables=shown)


def _name_compared(data: ComparisonData) -> str:
    """What is compared: scores of one model are called by their names."""
    return "score" if all(row["name"] == row["score"] for row in data["models"]) else "model"


def write_verdict(data: ComparisonData) -> str:
    """Which model is best, and whether that is more than chance; what speaks for another one."""
    best, *others = data["models"]
    tied = [row["name"] for row in others if not row["behind"]["clear"]]
    sentences: list[str] = []
    if not tied:
        rest = "the others" if others[1:] else "the other"
        sentences.append(f"{best['name']} ranks best by AURC, significantly ahead of {rest}.")
    alike = [row["name"] for row in others if row["behind"]["low"] == row["behind"]["high"] == 0]
    unlike = [name for name in tied if name not in alike]
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
    sentences += _write_ties(data)
    if unlike and not data.get("ties", True):
        sentences.append(
            "Accuracy, AUGRC and coverage at 1 and 5 % risk show no significant difference either."
        )
    return " ".join(sentences)


def _write_ties(data: ComparisonData) -> list[str]:
    """For whom the numbers beside AURC speak: where it does not decide, and in accuracy always."""
    best = data["models"][0]["name"]
    told: dict[str, dict[str, list[str]]] = {}  # words by the other model, then by who is better
    for tie in data.get("ties", []):
        other = tie["over"] if tie["better"] == best else tie["better"]
        size = format_points(tie["difference"]["value"], 1).removeprefix("+")
        words = TIE_WORDS[tie["metric"]].format(size=size)
        told.setdefault(other, {}).setdefault(tie["better"], []).append(words)
    sentences: list[str] = []
    for other, sides in told.items():
        clauses: list[str] = []
        for better, words in sides.items():
            over = other if better == best else best
            than = f" than {over}" if not clauses else ""
            listed = " and ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)
            clauses.append(f"{better} {listed}{than}")
        sentences.append(f"{'; '.join(clauses)}.")
    for pair in data["pairs"]:
        if best not in (pair["a"], pair["b"]) or "accuracy" not in pair:
            continue
        other = pair["a"] if pair["b"] == best else pair["b"]
        leads = (pair["accuracy"]["value"] > 0) == (other == pair["a"])
        if other not in told and leads and pair["accuracy"]["clear"]:
            size = format_points(abs(pair["accuracy"]["value"]), 1).removeprefix("+")
            sentences.append(f"{other} is more accurate than {best} by {size}.")
    return sentences


# Tables


def _build_leaderboard(data: ComparisonData) -> TextTable:
    """Each model in one row: how right it is, how well its confidence orders and claims, and how
    far it is behind the best.
    """
    names = [name for name in ("accuracy", *LEADERBOARD_METRICS) if name in data["comparable"]]
    entries: list[Entry] = []
    columns: dict[str, list[str]] = {}
    for name in names:
        of_models = [model["metrics"].get(name) for model in data["models"]]
        known = [entry for entry in of_models if entry is not None]
        decimals = find_decimals(known, percent=name in PERCENT_NUMBERS)
        if decimals is None and name not in PERCENT_NUMBERS:
            decimals = count_shared_decimals(entry["value"] for entry in known)
        columns[name] = [
            NONE if entry is None else format_metric(name, entry, decimals) for entry in of_models
        ]
        entries += known
    behind = [model["behind"] for model in data["models"]]
    decimals = find_decimals(behind)
    gaps = [_format_gap("aurc", gap, decimals) for gap in behind]
    notes: dict[str, None] = {}  # each once, in order
    rows = TableRows()
    for i, model in enumerate(data["models"]):
        rows.append([model["name"], *(columns[name][i] for name in names), *gaps[i]])
        notes |= dict.fromkeys(find_shared_notes(model["metrics"]))
    alone = ""
    if len(rows) > 2 and "unpaired" not in data:
        alone = "; not corrected for multiple comparisons"
    head = [
        _name_compared(data),
        *(_format_title(data, name) for name in names),
        "AURC, gap to the best",
        "interval",
    ]
    missing = [entry for entry in entries if entry["value"] is None]
    pairing = "paired"
    if "unpaired" in data:
        pairing = f"as of independent samples: {data['unpaired']}"
    sentences = (
        f"In order of AURC. Gap to the best ({pairing}{alone}). {AAC_NOTE}",
        explain_missing([*missing, *behind[1:]]),
        join_notes(notes),
    )
    note = " ".join(filter(None, sentences))
    return TextTable(title=LEADERBOARD_TITLE, head=head, rows=rows, note=note)


def _format_title(data: ComparisonData, metric: str) -> str:
    entries = (model["metrics"].get(metric) for model in data["models"])
    return format_heading(metric, next(entry["better"] for entry in entries if entry is not None))


def _format_gap(name: str, d: Difference, decimals: int | None) -> list[str]:
    """A difference and its limits; the best is behind nobody, and of the same answers with the same
    confidence nothing is uncertain.
    """
    if d["low"] is None and not d["value"]:
        return ["", ""]
    if d["low"] == d["high"] == 0:
        return ["0", ""]
    return [*format_difference(name, d, decimals)]


def _build_further_tables(data: ComparisonData) -> list[TextTable]:
    """What is known beside the samples that all models answered: costs, other data, groups and
    classes.
    """
    priced = [name for name in COST_METRICS if any(name in row for row in data["cost"])]
    columns = [
        format_column(name, [{"value": row.get(name)} for row in data["cost"]]) for name in priced
    ]
    costs = TableRows()
    for i, row in enumerate(data["cost"]):
        beaten = row["beaten_by"].items()
        by = [f"{get_meaning(name).title}: {other}" for name, other in beaten if other is not None]
        numbers = [column[i] for column in columns]
        costs.append([row["name"], format_short(row["cost"]), *numbers, ", ".join(by) or "nobody"])
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

    benefits = TableRows()
    for b in data.get("net_benefit", []):
        number = b["difference"]
        cells = format_difference("", number)
        benefits.append([f"{b['a']} − {b['b']}", format_level(b["threshold"]), *cells])

    models = [row["name"] for row in data["models"]]
    classes = TableRows()
    for c in data["classes"]:
        recalls = [format_percent(c["recall"][model]) for model in models]
        classes.append([c["name"], f"{c['count']:,}", *recalls])

    return [
        TextTable(
            title="Net benefit",
            head=["models", "threshold", "difference", "interval"],
            rows=benefits,
            note="Called positive from the threshold on; the difference is per case (paired; not "
            "corrected for multiple comparisons).",
        ),
        TextTable(
            title=f"What does it cost ({what})?",
            head=["model", what, *(format_heading(name, "lower") for name in priced), "beaten by"],
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
    columns = [format_column(name, [row["metrics"].get(name) for row in sets]) for name in metrics]
    rows = TableRows()
    for i, row in enumerate(sets):
        numbers = [column[i] for column in columns]
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
        if table.title in (PAIRS_TITLE, UNPAIRED_TITLE) and len(models) > SEVERAL_MODELS:
            continue
        if table.title != LEADERBOARD_TITLE and len(table.rows) > most:
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
        leaderboard=tables[0],
        folded={t.title: t for t in tables if t.title in (INTERVALS_TITLE, PAIRS_TITLE)},
        tables=[t for t in tables[1:] if t.title not in (INTERVALS_TITLE, PAIRS_TITLE)],
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
    """Cost against AURC and the calibration errors that are known; one dot per model."""
    styles = {row["name"]: style_model(rank) for rank, row in enumerate(data["models"])}
    pictures: list[Picture] = []
    for metric in COST_METRICS:
        dots: dict[str, tuple[float, float]] = {}
        for row in data["cost"]:
            value = row.get(metric)
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
        marks += _draw_dot_names(f, places, styles)
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
    shown = shorten_names(models)
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
        text = _write_name(shown[name], f.x.end + 10, height + 4.5, style)
        marks.append(_mark_model(name, svg.make_path(f"leader {style}", leader) + text))
    return marks


def _write_name(name: str, x: float, y: float, style: str) -> Markup:
    text = Markup('<text class="name {}" x="{}" y="{}">{}</text>')
    return text.format(style, svg.format_pixel(x), svg.format_pixel(y), name)


def shorten_names(models: Sequence[str]) -> dict[str, str]:
    """Names for a picture: without the words that all begin with, the middle of long ones left out.

    >>> list(shorten_names(["cifar10_resnet20", "cifar10_resnet110"]).values())
    ['resnet20', 'resnet110']
    """
    # Up to the end of a word: resnet20 and resnet110 do not become 20 and 110.
    end = 0
    for i, letter in enumerate(min(models, key=len)[:-1], start=1):
        if letter in "_-./ :" and len({name[:i] for name in models}) == 1:
            end = i
    if len(models) == 1:
        end = 0
    return {name: shorten(name[end:], MODEL_NAME_LETTERS) for name in models}


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


def _draw_dot_names(
    f: Frame, places: Mapping[str, Place], styles: Mapping[str, str]
) -> list[Markup]:
    """Names right beside their dots, best models first; where there is no free place, the dot stays
    without.
    """
    r, shown = DOT_RADIUS, shorten_names(list(places))
    taken = [Box(left=x - r, top=y - r, right=x + r, bottom=y + r) for x, y in places.values()]
    marks: list[Markup] = []
    for name, (x, y) in places.items():
        width = svg.LETTER_WIDTH * len(shown[name])
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
                marks.append(_mark_model(name, _write_name(shown[name], at, base, styles[name])))
                break
    return marks
