"""Tables of reports whose units are not single answers: whole images, and many labels per case."""

from __future__ import annotations

from collections.abc import Sequence

from howsure.report.render.sentences import (
    NONE,
    format_interval,
    format_level,
    format_number,
    format_percent,
    format_percent_range,
)
from howsure.report.render.text_tables import TableRows, TextTable
from howsure.report.report_types import ImageGuarantee, LabelGuarantee, Number, ReportData

IMAGE_SCORES = {
    "mean_confidence": "mean confidence of pixels",
    "mean_certainty": "1 − mean scaled entropy",
    "sure_pixels": "share of pixels above 0.9",
}
PROMISES_NOTE = (
    "The mean 1 − Dice of accepted images, each row a promise by itself (threshold --loss dice --bound betting); the "
    "others go to a reader."
)
EMPTY_MASKS_NOTE = "Both masks empty: Dice 1. One of them empty: Dice 0."
MISSED_NOTE = (
    "Positives missed: positive cases that are then called absent and that nobody looks at."
)
PAIRS_NOTE = "Pairs that are wrong in the same case more often than each by itself, beyond chance."


def build_image_tables(report: ReportData) -> list[TextTable]:
    """Images as units: which may be accepted, which score orders them, each class, the worst."""
    images = report.get("images")
    if images is None:
        return []
    first = images["scores"][0]["name"]
    trusted = IMAGE_SCORES.get(first, first)
    if first == "mean_confidence":
        trusted = "mean confidence"
    promises = [_format_image_promise(p) for p in images["promises"]]
    scores = [
        [IMAGE_SCORES.get(s["name"], s["name"]), *_format_with_limits(s["aurc"])]
        for s in images["scores"]
    ]
    classes = TableRows()
    for c in images["classes"]:
        dice = _format_with_limits(c["dice"])
        classes.append([c["name"], *dice, f"{c['missed']:,}", f"{c['perfect']:,}"])
    worst = TableRows()
    for row in images["rows"]:
        numbers = (format_number(row["dice"]), format_number(row["score"]))
        shares = (format_percent(row["predicted"]), format_percent(row["true"]))
        worst.append([row["name"], *numbers, *shares])
    dice_note = _join_unsafe_notes([c["dice"] for c in images["classes"]])
    tables = [
        TextTable(
            title="Which images may it decide alone?",
            head=[
                "mean 1 − Dice at most",
                f"{trusted} from",
                "images accepted",
                "their 1 − Dice",
                "at most",
            ],
            rows=promises,
            note=PROMISES_NOTE,
        ),
        TextTable(
            title="Which score orders images best?",
            head=["score of an image", "AURC\N{NO-BREAK SPACE}↓", "interval"],
            rows=scores,
            note=_join_unsafe_notes([s["aurc"] for s in images["scores"]]),
        ),
        TextTable(
            title="Dice of each class over images",
            head=["class", "Dice", "interval", "Dice 0", "Dice 1"],
            rows=classes,
            note=f"{EMPTY_MASKS_NOTE} {dice_note}".strip(),
        ),
        TextTable(
            title="The worst images",
            head=["image", "Dice", trusted, "predicted", "true"],
            rows=worst,
        ),
    ]
    return [table for table in tables if table.rows]


def _format_image_promise(promise: ImageGuarantee) -> list[str]:
    risk, needed = format_number(promise["risk"]), promise["images_needed"]
    if promise["threshold"] is not None:
        threshold, coverage = format_number(promise["threshold"], 6), promise["coverage"]
        dice = (format_number(promise["observed"]), format_number(promise["bound"]))
        return [risk, threshold, format_percent(coverage), *dice]
    why = "no threshold" if needed is None else f"about {needed:,} images are needed"
    return [risk, why, NONE, "", ""]


def build_label_tables(report: ReportData) -> list[TextTable]:
    """Each of many labels: what its probability is worth, what it may decide alone, and errors that
    come together.
    """
    labels = report.get("labels")
    if labels is None:
        return []
    rows = TableRows()
    numbers: list[Number] = []
    for label in labels["rows"]:
        auc, ece = _format_with_limits(label["auc"]), _format_with_limits(label["ece"])
        rows.append([label["name"], f"{label['positives']:,}", *auc, *ece])
        numbers += [label["auc"], label["ece"]]
    pairs = TableRows()
    for p in labels["together"]:
        limits = format_percent_range(p["low"], p["high"])
        shares = (format_percent(p["share"]), limits, format_percent(p["otherwise"]))
        pairs.append([f"{p['a']}, {p['b']}", f"{p['cases']:,}", *shares])
    risk, sure = format_percent(labels["risk"], 0), format_level(labels["sure"])
    auc, ece = "AUC\N{NO-BREAK SPACE}↑", "ECE\N{NO-BREAK SPACE}↓"
    tables = [
        TextTable(
            title="Label by label",
            head=["label", "positive", auc, "interval", ece, "interval"],
            rows=rows,
            note=_join_unsafe_notes(numbers),
        ),
        TextTable(
            title=f"Which label may it decide alone, at most {risk} wrong? "
            f"(all {len(rows)} at once, {sure} sure)",
            head=["label", "alone above", "decided alone", "wrong", "at most", "positives missed"],
            rows=[[r["name"], *_format_label_promise(r["promise"])] for r in labels["rows"]],
            note=MISSED_NOTE,
        ),
        TextTable(
            title="Wrong together",
            head=["labels", "cases", "wrong on the second then", "interval", "otherwise"],
            rows=pairs,
            note=PAIRS_NOTE,
        ),
    ]
    return [table for table in tables if table.rows]


def _format_label_promise(promise: LabelGuarantee) -> list[str]:
    if promise["threshold"] is None:
        return [NONE, promise.get("why", NONE), "", "", ""]
    shares = (promise["coverage"], promise["wrong"], promise["bound"], promise["missed"])
    return [format_number(promise["threshold"]), *map(format_percent, shares)]


def _format_with_limits(entry: Number) -> tuple[str, str]:
    """A number and its limits; without a number, the reason in place of the limits."""
    if entry["value"] is None:
        return NONE, entry.get("why", NONE)
    return format_number(entry["value"]), format_interval(entry)


def _join_unsafe_notes(numbers: Sequence[Number]) -> str:
    """What makes limits of a table unsafe, each reason once."""
    notes = dict.fromkeys(n["note"] for n in numbers if "note" in n)
    return " ".join(f"{note[:1].upper()}{note[1:]}." for note in notes)
