"""A comparison in words and pictures: a sheet for terminals and Markdown, and the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from howsure._core import strict_json
from howsure.report.render.comparison_pictures import (
    draw_cost_pictures,
    draw_models_reliability,
    draw_models_risk,
    style_model,
)
from howsure.report.render.page import dump_pictures, render_template
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
    format_range,
    format_signed,
    format_signed_range,
    get_meaning,
    identify_input,
    join_notes,
)
from howsure.report.render.svg import (
    format_short,
)
from howsure.report.render.text_tables import Sheet, TableRows, TextTable
from howsure.report.report_types import (
    ComparisonData,
    Difference,
    Entry,
    FurtherRow,
    Metrics,
)

FEW_MODELS, SEVERAL_MODELS = 4, 12


PAGE_ROWS = (200, 60, 25)  # rows of a table on the page: of few, several, and many models


PAIRS_TITLE, RANKING_TITLE = "Paired differences", "Ranking by AURC"


RANKING_METRICS = ("augrc", "coverage_at_risk_0.05")


PAIR_METRICS = ("aurc", "accuracy", "ece", "correctness_brier")


METRIC_GROUPS = (
    ("Its answers", ("accuracy", "nll", "brier")),
    ("Can it be read as a probability?", ("ece", "aece")),
    ("Finding errors", ("auroc", "aupr_error", "aupr_success", "e_aurc")),
)


MIX_NOTE = "Every answer to an outside sample counts as wrong. AUROC of finding errors compares scores of one model only."


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
            clear = "clear" if difference["clear"] else ""
            cells = _format_difference(difference)
            rows.append([models, get_meaning(name).title, *cells, clear])
    head = ["models", "number", "difference", "interval", ""]
    note = "Clear: beyond chance although all pairs were looked at."
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
        return f"{best['name']} ranks best by AURC, clearly ahead of the others."
    names = ", ".join(tied)
    return f"{best['name']} has the lowest AURC; {names} may be as good: among so many pairs that is within chance."


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
        alone = ", each interval for itself: among so many pairs a few miss 0 by chance"
    behind = [model["behind"] for model in data["models"][1:]]
    sentences = (
        f"Behind: the paired difference to the best{alone}.",
        explain_missing([*entries, *behind]),
        join_notes(notes),
    )
    head = ["model", _format_title(data, "aurc"), "interval", "behind", "interval"]
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
            metrics={"mix_aurc": "AURC ↓", "mix_auroc": "AUROC of finding errors ↑"},
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
    pictures = [
        draw_models_risk(data),
        *draw_models_reliability(data),
        *draw_cost_pictures(data),
    ]
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
        tables.append(table)
    pairs: dict[str, str] = {}
    for pair in data["pairs"]:
        pairs[f"{pair['a']} − {pair['b']}"] = strict_json.dump_line([pair["a"], pair["b"]])
    origin: list[tuple[str, str]] = []
    for name, provenance in data["provenance"].items():
        origin.append((name, ", ".join(map(identify_input, provenance["inputs"]))))
    first = data["provenance"][models[0]]
    origin += describe_origin(data["howsure"], {**first, "inputs": []})
    return render_template(
        "compare.html.j2",
        data=data,
        title="Which one is better?",
        sheet=sheet,
        tables=tables,
        matrix=build_matrix(data),
        models=models,
        pairs=pairs,
        legend=[(name, style_model(rank)) for rank, name in enumerate(models)],
        pictures=pictures,
        pictures_json=dump_pictures(pictures),
        origin=origin,
    )


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
        title="Clearly better, or not told apart?",
        head=["", *models],
        rows=[[a, *(signs[a, b] for b in models)] for a in models],
        note="The row against the column, by AURC: + clearly better, − clearly worse, = not told "
        "apart.",
    )
