"""The parts of a report as tables, for terminals, Markdown and the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from howsure._core.text import name_class
from howsure.report.catalogue import PERCENT_NUMBERS
from howsure.report.render.sentences import (
    ARROWS,
    NONE,
    explain_metric,
    explain_missing,
    find_decimals,
    format_column,
    format_decimals,
    format_difference,
    format_estimate,
    format_heading,
    format_level,
    format_limits,
    format_metric,
    format_number,
    format_percent,
    format_percent_range,
    format_share,
    get_meaning,
)
from howsure.report.render.text_tables import TableRows, TextTable
from howsure.report.report_types import (
    Binary,
    CalibrationData,
    Changes,
    ClassRow,
    Confusion,
    CorpData,
    CurveData,
    Entry,
    Metrics,
    Number,
    Operating,
    ReportData,
    Slices,
    Suspect,
)

SCORE_METRICS = ("aurc", "auroc", "aupr_error", "coverage_at_risk_0.01", "eor_smooth")
OPERATING_HEADINGS = {
    "coverage": "decided alone",
    "threshold": "threshold",
    "accuracy": "right among these, observed",
    "limits": "with limits",
    "wrong": "wrong among these",
}
BANDS_NOTE = (
    "The surest answers that together are 99 % right, the next ones that together are 95 % right, and the rest "
    "(Finlay & Oberman, tables 3 to 5)."
)
POSITIVE_NUMBERS = {
    "class_auroc": "AUC of the class",
    "prevalence": "prevalence",
    "observed_expected": "observed / expected (1 is perfect)",
    "calibration_in_the_large": "calibration in the large (0 is perfect)",
    "brier": "Brier of this probability",
    "ece": "ECE of the positive class",
}
CURVE_DISTANCES = {
    "ici": "ICI, mean distance of the calibration curve",
    "e50": "E50, its median",
    "e90": "E90, its 90 % quantile",
    "emax": "Emax, its maximum",
}
CALLS_NOTE = (
    "Called positive where the probability reaches the threshold. Net benefit: true positives per case, minus false "
    "positives weighed by the odds of the threshold; treating none has 0 (Vickers & Elkin 2006)."
)
AAC_NOTE = "AURC is also the AAC, the area above the threshold diagram."
RANKING_NOTE = (
    "A score that only ranks, such as entropy, leaves the answers alone and claims no probability: AAC "
    "compares it with the calibrators."
)
DISTANCE_NOTE = (
    "The distance to the decision boundary joins where the test data hold it as boundary_distance; "
    "howsure.torch.boundary_distance(model, loader) computes it."
)
WITHOUT_INTERVAL_NOTE = "Without an interval: none is known for this number."
UNKNOWN_CLASS = "not known"
OPERATING_ROWS = 20  # rows of the operating table
MATRIX_CLASSES = 10  # classes of a printed table of labels and answers


# Numbers of the score


class MetricRow(NamedTuple):
    """A metric in words."""

    name: str
    title: str
    arrow: str
    value: str
    interval: str
    note: str
    says: str


def describe_metric(name: str, entry: Entry, shared: Sequence[str] = ()) -> MetricRow:
    """A metric in words; notes that are `shared` stand elsewhere."""
    return MetricRow(
        name=name,
        title=get_meaning(name).title,
        arrow=ARROWS[entry["better"]],
        value=format_metric(name, entry),
        interval=format_limits(name, entry),
        note=explain_metric(name, entry, shared),
        says=get_meaning(name).says if entry["value"] is not None else "",
    )


def build_metrics_table(question: str, metrics: Metrics, shared: Sequence[str]) -> TextTable:
    """The metrics that answer a question; notes that are `shared` stand elsewhere."""
    rows = TableRows()
    for name, entry in metrics.items():
        row = describe_metric(name, entry, shared)
        rows.append([row.title, row.arrow, row.value, row.interval, row.note])
    head = ["", "", "value", "interval", "what it says"]
    return TextTable(title=question, head=head, rows=rows)


def build_scores_table(report: ReportData) -> TextTable | None:
    """Ranking metrics of all scores side by side: the same predictions, so all of them compare."""
    if not report["scores"]:
        return None
    first = report["metrics"]
    metrics = {report["score"]: first}
    metrics |= {name: score["metrics"] for name, score in report["scores"].items()}
    columns: list[list[str]] = []
    for m in SCORE_METRICS:
        of_scores = [entries[m] for entries in metrics.values()]
        decimals = find_decimals(of_scores, percent=m in PERCENT_NUMBERS)
        columns.append([format_metric(m, entry, decimals) for entry in of_scores])
    rows = [list(row) for row in zip(metrics, *columns, strict=True)]
    head = ["score", *(format_heading(m, first[m]["better"]) for m in SCORE_METRICS)]
    return TextTable(title="Which score ranks best?", head=head, rows=rows)


def build_bands_table(report: ReportData) -> TextTable:
    """Bands of promised accuracy, one row per score."""
    bands = {report["score"]: report["views"]["bands"]}
    bands |= {name: score["bands"] for name, score in report["scores"].items()}
    rows = TableRows()
    for name, row in bands.items():
        cells: list[str] = []
        for band in row:
            cell = format_percent(band["share"]) if band["share"] else NONE
            if band["share"] and band["threshold"] is not None:
                cell += f" from {format_number(band['threshold'])}"
            cells.append(cell)
        rows.append([name, *cells, format_percent(row[-1]["accuracy"])])
    head = ["score", "99 % right", "95 % right", "the rest", "right among the rest"]
    return TextTable(title="Bands of trust", head=head, rows=rows, note=BANDS_NOTE)


# The positive class


def describe_positive_class(binary: Binary) -> list[MetricRow]:
    """What leads the page of two classes: how well the class is told apart, how common it is, what
    is missed, and whether its probability can be believed.
    """
    name, numbers = name_class(binary["positive_class"]), binary["numbers"]
    tiles = [
        (f"AUC of {name}", numbers["class_auroc"], "a case outranks a case of the other class"),
        (
            "calibration in the large",
            numbers["calibration_in_the_large"],
            "0 is perfect; above 0: it claims too little",
        ),
        ("calibration slope", binary["calibration_slope"], "1 is perfect; below 1: too extreme"),
    ]
    rows: list[MetricRow] = []
    for title, entry, says in tiles:
        value, interval = format_estimate(entry)
        rows.append(
            MetricRow(
                name="", title=title, arrow="", value=value, interval=interval, note="", says=says
            )
        )
    share, interval = format_share(numbers["prevalence"], 1)
    rows.insert(
        1,
        MetricRow(
            name="",
            title="base rate",
            arrow="",
            value=share,
            interval=interval,
            note="",
            says=f"cases that are {name}",
        ),
    )
    return rows


def build_positive_class_table(binary: Binary | None) -> TextTable | None:
    """The numbers of the positive class."""
    if binary is None:
        return None
    numbers = binary["numbers"]
    rows = TableRows()
    for name, title in POSITIVE_NUMBERS.items():
        if name not in numbers:
            continue
        entry = numbers[name]
        if name == "prevalence":
            rows.append([title, *format_share(entry, 2)])
        else:
            rows.append([title, *format_estimate(entry)])
    slope, intercept = binary["calibration_slope"], binary["calibration_intercept"]
    for title, entry in (
        ("calibration slope (1 is perfect)", slope),
        ("calibration intercept (0 is perfect)", intercept),
    ):
        rows.append([title, *format_estimate(entry)])
    distance = binary.get("distance")
    if distance is not None and distance["ici"] is not None:
        floor = distance.get("floor", {})
        for name, title in CURVE_DISTANCES.items():
            chance = ""
            if floor.get(name) is not None:
                chance = f"{format_number(floor[name], 3)} would be chance"
            rows.append([title, format_number(distance.get(name)), chance])
    z = binary.get("spiegelhalter_z")
    if z is not None:
        rows.append(["Spiegelhalter's z (0 is perfect)", format_number(z), ""])
    for part in ("reliability", "resolution", "uncertainty", "within"):
        rows.append([f"Brier, {part}", format_number(binary["brier_decomposition"][part]), ""])
    return TextTable(
        title=f"The probability of {name_class(binary['positive_class'])}",
        head=["number", "value", "interval"],
        rows=rows,
        note=explain_missing([slope, intercept, *numbers.values()]),
    )


def build_calls_table(binary: Binary | None) -> TextTable | None:
    """What happens where cases are called positive from a threshold on."""
    if binary is None or not binary.get("thresholds"):
        return None
    rows = TableRows()
    shares: list[Number] = []
    for call in binary.get("thresholds", []):
        row = [format_level(call["threshold"]), format_percent(call["called"])]
        for name in ("sensitivity", "specificity", "ppv", "npv"):
            row += format_share(call[name], 1)
            shares.append(call[name])
        benefit: Number = {"value": call["net_benefit"]}
        if "net_benefit_limits" in call:
            benefit["low"], benefit["high"] = call["net_benefit_limits"]
        row += format_estimate(benefit)
        rows.append([*row, format_decimals(call["treat_all"], find_decimals([benefit]))])
    head = ["threshold", "called"]
    for name in ("sensitivity", "specificity", "PPV", "NPV"):
        head += [name, "interval"]
    return TextTable(
        title=f"Who is called {name_class(binary['positive_class'])}?",
        head=[*head, "net benefit", "interval", "of treating all"],
        rows=rows,
        note=f"{CALLS_NOTE} {explain_missing(shares)}".strip(),
    )


# Slices and classes


def build_slices_table(slices: Slices | None) -> TextTable | None:
    """Slices side by side, the least accurate first."""
    if slices is None:
        return None
    rows = TableRows()
    entries: list[Number] = []
    decimals = {
        "aurc": find_decimals(s["aurc"] for s in slices["rows"]),
        "ece": find_decimals(s["ece"] for s in slices["rows"]),
    }
    for s in slices["rows"]:
        row = [f"{s['column']}: {s['value']}", f"{s['n']:,}", *format_share(s["accuracy"], 1)]
        for name, entry in (("aurc", s["aurc"]), ("ece", s["ece"])):
            row.append(format_decimals(entry["value"], decimals[name]))
            row.append(format_limits(name, entry, decimals[name]) or NONE)
        mark = "worse than all" if s["worse"] else ""
        rows.append([*row, *format_share(s["coverage"], 1), mark])
        entries += [s["accuracy"], s["aurc"], s["ece"], s["coverage"]]
    head = ["slice", "samples"]
    for name in ("accuracy", "AURC", "ECE", "accepted"):
        head += [name, "interval"]
    level, least = format_level(slices["level"]), format_number(slices["threshold"])
    note = (
        f"Intervals hold at {level} for all {slices['of']:,} slices together. Accepted: score of at "
        f"least {least} ({slices['rule']}). {explain_missing(entries)}"
    )
    title = f"Slices by {', '.join(slices['columns'])}"
    return TextTable(title=title, head=[*head, ""], rows=rows, note=note.strip())


def build_positive_slices_table(slices: Slices | None, binary: Binary | None) -> TextTable | None:
    """The probability of the positive class, slice by slice."""
    if slices is None or binary is None:
        return None
    rows = TableRows()
    entries: list[Number] = []
    for s in slices["rows"]:
        positive = s.get("positive")
        if positive is None:
            continue
        row = [f"{s['column']}: {s['value']}", f"{s['n']:,}", f"{positive['cases']:,}"]
        numbers = [
            positive["class_auroc"],
            positive["observed_expected"],
            positive["calibration_in_the_large"],
        ]
        for entry in numbers:
            row += format_estimate(entry)
        rows.append([*row, *format_share(positive["sensitivity"], 1)])
        entries += [*numbers, positive["sensitivity"]]
    if not rows:
        return None
    name = name_class(binary["positive_class"])
    head = ["slice", "samples", "positive"]
    for number in ("AUC", "observed / expected", "in the large", "sensitivity"):
        head += [number, "interval"]
    note = (
        f"Intervals hold for all slices together, each number by itself. In the large: calibration in "
        f"the large. Sensitivity: cases of {name} with a probability of at least 50 %. "
        f"{explain_missing(entries)}"
    )
    return TextTable(
        title=f"The probability of {name}, slice by slice", head=head, rows=rows, note=note.strip()
    )


def build_classes_table(classes: Sequence[ClassRow]) -> TextTable | None:
    """Recall, precision and confidence per class."""
    if not classes:
        return None
    rows = TableRows()
    for c in classes:
        rows.append(
            [
                c["name"],
                f"{c['count']:,}",
                format_percent(c["recall"]),
                format_percent_range(c["low"], c["high"]),
                f"{c['given']:,}",
                format_percent(c["precision"]),
                format_percent(c["confidence"]),
            ]
        )
    head = ["class", "samples", "recall", "interval", "answers", "precision", "confidence"]
    return TextTable(title="Class by class", head=head, rows=rows)


def build_confusion_matrix(confusion: Confusion | None) -> TextTable | None:
    """Labels against answers, where the classes are few."""
    if confusion is None or confusion["counts"] is None:
        return None
    classes = confusion["classes"]
    if len(classes) > MATRIX_CLASSES:
        return None
    rows = TableRows()
    for name, counts in zip(classes, confusion["counts"], strict=True):
        rows.append([name, *(f"{n:,}" for n in counts)])
    return TextTable(title="Confusion matrix", head=["label", *classes], rows=rows)


def build_confusions_table(confusion: Confusion | None) -> TextTable | None:
    """The commonest wrong answers; of two classes the table of all answers shows them."""
    if confusion is None or not confusion["top"] or len(confusion["classes"]) == 2:
        return None
    rows = TableRows()
    for c in confusion["top"]:
        shares = (format_percent(c["share"]), format_percent(c.get("confidence")))
        rows.append([c["label"], c["prediction"], f"{c['count']:,}", *shares])
    head = ["label", "answer", "samples", "share of the label", "mean confidence"]
    return TextTable(title="Commonest confusions", head=head, rows=rows)


# Calibration


def build_changes_table(calibration: Changes | CalibrationData | None) -> TextTable | None:
    """What a calibrator changed on the same samples."""
    if calibration is None:
        return None
    rows = TableRows()
    note = ""
    for name, change in calibration["metrics"].items():
        difference = change["difference"]
        if change["verdict"] == "unchanged":
            difference = Number(value=difference["value"])
        # Both sides as fine as their difference: what is shown then subtracts to what is said.
        decimals = find_decimals([difference], percent=name in PERCENT_NUMBERS)
        moved, limits = format_difference(name, difference)
        if limits == NONE:
            limits = ""
            if change["verdict"] != "unchanged":
                note = WITHOUT_INTERVAL_NOTE
        sides = [format_metric(name, change[side], decimals) for side in ("before", "after")]
        rows.append([get_meaning(name).title, *sides, moved, limits, change["verdict"]])
    if "aurc" in calibration["metrics"]:
        note = f"{AAC_NOTE} {note}".strip()
    head = ["number", "before", "after", "difference", "interval", "verdict"]
    return TextTable(title="What calibration changed", head=head, rows=rows, note=note)


def build_calibrators_table(calibration: Changes | CalibrationData | None) -> TextTable | None:
    """What every calibrator would have done to the same samples, and scores that only rank them."""
    if calibration is None or "methods" not in calibration or len(calibration["methods"]) <= 2:
        return None
    methods = calibration["methods"]
    head = ["method"]
    columns: list[list[str]] = []
    for name in calibration["metrics"]:
        head.append("AAC (AURC)" if name == "aurc" else get_meaning(name).title)
        known = {method: values[name] for method, values in methods.items() if name in values}
        cells = format_column(name, [{"value": value} for value in known.values()])
        by_method = dict(zip(known, cells, strict=True))
        columns.append([by_method.get(method, "") for method in methods])
    rows = [list(row) for row in zip(methods, *columns, strict=True)]
    note = ""
    if "entropy" in methods:
        note = RANKING_NOTE
        if "boundary distance" not in methods:
            note = f"{RANKING_NOTE} {DISTANCE_NOTE}"
    return TextTable(title="All methods on the same data", head=head, rows=rows, note=note)


def build_candidates_table(calibration: Changes | CalibrationData | None) -> TextTable | None:
    """How the calibrator was chosen: each one on held-out folds, and what it costs in changed
    answers.
    """
    if calibration is None or "choice" not in calibration or calibration["choice"] is None:
        return None
    choice = calibration["choice"]
    decimals = find_decimals(candidate["gain"] for candidate in choice["table"].values())
    rows = TableRows()
    for name, candidate in choice["table"].items():
        gain, limits = format_difference(choice["criterion"], candidate["gain"], decimals)
        changed = NONE
        if limits == NONE:
            limits = ""
        if "changed" in candidate:
            changed = f"{candidate['changed']:,}"
        if name == choice["winner"]:
            standing = "chosen"
        elif not candidate["real"]:
            standing = candidate["note"] or ""
        elif candidate.get("behind"):
            standing = "clearly better than none, clearly worse than the best"
        else:
            standing = "clearly better than none"
        value = format_decimals(candidate["value"], decimals)
        rows.append([name, value, gain, limits, changed, standing])
    criterion = get_meaning(choice["criterion"]).title
    note = (
        f"Fitted on {calibration['n_fit']:,} samples that the test data have nothing to do with; doing nothing is "
        "none. Chosen is the simplest that is clearly better than none and not clearly worse than the best."
    )
    return TextTable(
        title=f"How it was chosen: {criterion} on {choice['folds']} held-out folds",
        head=["calibrator", criterion, "change", "interval", "answers changed", ""],
        rows=rows,
        note=note,
    )


# What only the page shows


class Doubt(NamedTuple):
    """A sure and wrong answer in words; `image` is empty where there is none."""

    id: str
    score: str
    answer: str
    label: str
    image: str


def list_doubts(suspects: Sequence[Suspect], images: Sequence[str]) -> list[Doubt]:
    """Sure and wrong answers with their pictures; an empty text is none."""
    doubts: list[Doubt] = []
    # Scores close to 1 need more decimals to differ than a margin of logits.
    largest = max((suspect["score"] or 0.0 for suspect in suspects), default=0.0)
    decimals = None
    if 0 < largest <= 1:
        decimals = 6
    for suspect, image in zip(suspects, images, strict=True):
        doubts.append(
            Doubt(
                id=suspect["id"],
                score=format_decimals(suspect["score"], decimals),
                answer=suspect["prediction"] or UNKNOWN_CLASS,
                label=suspect["label"] or UNKNOWN_CLASS,
                image=image,
            )
        )
    return doubts


def list_bins(curve: CurveData) -> list[list[str]]:
    """From, answers, confidence, accuracy and what chance allows, per bin."""
    none = [None] * len(curve["x"])
    keys = ("threshold", "weight", "low", "high")
    start, weight, low, high = (curve.get(key, none) for key in keys)
    rows = TableRows()
    for i, n in enumerate(weight):
        rows.append(
            [
                format_decimals(start[i], 4),
                NONE if n is None else f"{n:,.0f}",
                format_percent(curve["x"][i]),
                format_percent(curve["y"][i]),
                "" if low[i] is None else format_percent_range(low[i], high[i]),
            ]
        )
    return rows


def list_corp_parts(corp: CorpData) -> list[tuple[str, str, str]]:
    """The parts of the Brier score of the confidence, with what each says."""
    parts = [
        ("Brier of the confidence", "score", "= miscalibration − discrimination + uncertainty"),
        ("miscalibration", "miscalibration", "what the isotonic map would save; 0 is perfect"),
        ("discrimination", "discrimination", "what telling cases apart gains; more is better"),
        ("uncertainty", "uncertainty", "of always saying the accuracy"),
    ]
    return [(title, f"{corp[key]:.5f}", says) for title, key, says in parts]


def format_cases(per_thousand: float) -> str:
    """Whole cases of 1,000.

    >>> format_cases(50.5), format_cases(0.2), format_cases(0)
    ('50', 'fewer than 1', '0')
    """
    return "fewer than 1" if 0 < per_thousand < 0.5 else f"{per_thousand:.0f}"


def format_operating_points(points: Operating, n: int) -> dict[str, list[str]]:
    """The operating points in words, column by column."""
    known = [v for v in points["threshold"] if v is not None]
    # Close to 1 four decimals would show many thresholds as the same number.
    decimals = 4
    if known and 0.99 <= max(known) < 1:
        decimals = 7
    thresholds: list[str] = []
    for v in points["threshold"]:
        thresholds.append(format_decimals(v, decimals))
    columns = {
        "coverage": [format_percent(v) for v in points["coverage"]],
        "threshold": thresholds,
        "accuracy": [format_percent(v, 2) for v in points["accuracy"]],
        "errors": list(map(format_cases, points["errors"])),
        "deferred": list(map(format_cases, points["deferred"])),
    }
    if "kept" in points and "wrong" in points:
        pairs = zip(points["wrong"], points["kept"], strict=True)
        columns["wrong"] = [f"{wrong:,.0f} of {kept:,.0f}" for wrong, kept in pairs]
        columns["of"] = [f"{n:,}"] * len(points["kept"])
    if points["low"] is not None and points["high"] is not None:
        limits = zip(points["low"], points["high"], strict=True)
        columns["limits"] = [format_percent_range(low, high, 2) for low, high in limits]
    pairs = zip(columns["coverage"], columns["accuracy"], strict=True)
    columns["said"] = [f"{share} decided alone, {right} of these right" for share, right in pairs]
    return columns


def choose_operating_rows(points: int) -> list[int]:
    """The operating points that a table lists, from all samples down to the surest."""
    return list(range(points - 1, -1, -max(1, points // OPERATING_ROWS)))
