"""What a file was taken for, by the names of its columns, and which telling names were left alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from howsure.formats.cells import is_number
from howsure.formats.column_names import (
    ATTRIBUTE,
    CELL_ENDS,
    SAMPLES,
    VALUES,
    VECTORS,
    Plan,
    find_array_part,
    find_parts,
    infer_classes,
    plan_wanted,
)
from howsure.formats.contents import Contents
from howsure.predictions import Predictions
from howsure.predictions.given_answers import name_numbers
from howsure.predictions.read_options import CELLS_NOTE, ReadOptions, Receipt

# What columns may be that no part is called by: named where nothing plays this part.
TELLING_NAMES = {
    "count": ("n", "freq", "frequency", "counts", "times", "repeats", "occurrences"),
    "weight": ("w", "importance", "sample_weights"),
    "group": (
        "patient",
        "patient_id",
        "subject_id",
        "user_id",
        "image_id",
        "cluster",
        "cluster_id",
    ),
    "confidence": ("certainty", "max_prob", "max_proba", "probability", "prob", "p_correct"),
    "labels": ("truth", "true", "actual", "obs", "true_class"),
    "correct": ("ok", "right", "hit", "passed", "success", "acc", "was_right"),
    "loss": ("error", "is_error", "wrong", "is_wrong"),
    "class_names": ("names",),
}
TELLING_STARTS = ("prob", "conf", "logit", "score", "max_prob", "certainty")
COMPARED_COLUMNS = 200  # names that are looked at
LONGEST_TELLING_NAME = 60


def build_receipt(contents: Contents, options: ReadOptions) -> Receipt:
    """What the columns of a file are taken for; how many rows there are is not known yet."""
    kind, wanted = plan_wanted(contents, options)
    columns: Plan = {}
    for part, names in wanted.items():
        if part != "class_names" and not part.startswith(ATTRIBUTE):
            columns[part] = names
    unused: dict[str, str] = {}
    if contents.asked is None:  # the columns of a decision model's log are ours
        for name, part in find_unused(contents, wanted, options).items():
            if part == "mc":
                unused[name] = "--mc"
            else:
                unused[name] = f"--name {part}={name}"
    of_class_1 = False
    if kind in ("probs", "logits") and not options.multilabel and len(columns[kind]) == 1:
        # One number per row, and not a list of them.
        entry = contents.entries[columns[kind][0]]
        if not contents.table:
            of_class_1 = len(entry.shape) == 1 or entry.shape[1:] == (1,)
        elif entry.dtype != "text":
            of_class_1 = "list" not in entry.dtype
        else:
            of_class_1 = is_number(next(iter(entry.load()), None))
    notes = contents.notes
    if "count" in columns and all(name in contents.entries for name in CELL_ENDS):
        notes = (*notes, CELLS_NOTE)
    classes = None
    if kind in VECTORS and not options.multilabel:
        classes = infer_classes(columns[kind])
    if classes is not None and "labels" in columns and "classes" not in options.names:
        entry = contents.entries[columns["labels"][0]]
        numbered = entry.dtype.startswith(("int", "uint", "float"))
        if entry.dtype == "text":
            numbered = is_number(next(iter(entry.load()), None))
        # Words for yes and no, and classes called by numbers, say themselves which they are.
        if numbered and name_numbers(np.array([0]), classes).dtype.kind == "i":
            notes = (
                *notes,
                f"labels count these columns from 0 on (0 = {classes[0]!r})",
            )
    return Receipt(
        rows=0,
        kind=kind,
        columns=columns,
        unused=unused,
        notes=notes,
        of_class_1=of_class_1,
        multilabel=options.multilabel,
        own_answers=options.answers == "file",
        asked=contents.asked,
        field=contents.asked is not None and options.kind == "confidence",
    )


def add_receipt(preds: Predictions, receipt: Receipt) -> Predictions:
    """Predictions with what their file was taken for."""
    classes = preds.k
    if not preds.vectors:
        classes = None
    elif preds.layout is not None and preds.layout.parts == "labels":
        classes = preds.layout.size
    if preds.rounded:
        note = "rows miss 1 by the rounding of their digits: scores as printed, losses of the divided row"
        receipt = replace(receipt, notes=(*receipt.notes, note))
    return replace(preds, receipt=replace(receipt, rows=preds.n, classes=classes))


def find_unused(contents: Contents, used: Plan, options: ReadOptions) -> dict[str, str]:
    """Columns whose names tell what they may be and that play no part, with the part that they may
    play; "mc" for samples.

    >>> from pathlib import Path
    >>> from howsure.formats.contents import make_text_entry
    >>> entries = {name: make_text_entry(["1"]) for name in ("confidence", "correct", "freq", "age")}
    >>> table = Contents(Path("a.csv"), entries, table=True)
    >>> find_unused(table, {"confidence": ("confidence",), "correct": ("correct",)}, ReadOptions())
    {'freq': 'count'}
    """
    taken = {name for names in used.values() for name in names}
    if len(taken) >= len(contents.entries):
        return {}
    parts = find_parts(contents)
    split = options.split
    known = find_array_part(next(iter(used.values()))[0].strip().lower())
    if not contents.table and split is None and known is not None:
        split = known[0]
    unused: dict[str, str] = {}
    seen: set[str] = set()  # parts, so that one of a hundred columns is named
    for name in list(contents.entries)[:COMPARED_COLUMNS]:
        if name in taken or len(name) > LONGEST_TELLING_NAME:
            continue
        part = parts.get(name)
        if part is not None and not contents.table:
            known = find_array_part(name.strip().lower())
            if known is not None and known[0] not in ("", split):
                continue  # of another split
        if part is not None:
            if part in seen:
                continue
            seen.add(part)
            if part in SAMPLES:
                unused[name] = "mc"
            elif part in VALUES:
                unused[name] = part
            continue
        plain = name.strip().lower()
        for telling, names in TELLING_NAMES.items():
            if plain in names and telling not in used:
                unused[name] = telling
        tells = plain.startswith(TELLING_STARTS) or plain.endswith("_confidence")
        if name not in unused and tells:
            unused[name] = "confidence"
    return unused
