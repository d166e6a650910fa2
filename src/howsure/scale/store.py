"""Summaries on disk: arrays and JSON in one npz file that appears whole or not at all. Nothing in
it is code.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from howsure._core import json
from howsure._core.atomic import replacing
from howsure._core.check import Array, InputError
from howsure.metrics.vectors import Cells
from howsure.predictions.images import Images
from howsure.report.labels import LabelSums
from howsure.report.masks import ImageSums
from howsure.report.samples import Shape
from howsure.report.summary import Summary, Suspect
from howsure.report.sums import ClassSums, Moments
from howsure.scale.gathered import Gathered
from howsure.tallies.columns import columns_of, from_columns
from howsure.tallies.tally import Tally

CLASSES = ("keys", "count", "given", "hits", "claim", "scored", "pairs")
CELLS = ("claim", "true")
LABELS = ("present", "trusted")
IMAGES = ("unit", "dice", "predicted", "true")
BROKEN = (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, zlib.error)


def save(g: Gathered, path: Path) -> None:
    """Write one part."""
    arrays: dict[str, Array] = {}
    plain = {
        "skipped": g.skipped,
        "summary": None if g.summary is None else _plain(g.summary, arrays),
    }
    with replacing(path) as temporary, temporary.open("wb") as file:
        arrays["json"] = np.frombuffer(json.line(json.encode(plain, _no_class)).encode(), np.uint8)
        np.savez(file, allow_pickle=False, **arrays)


def load(path: Path) -> Gathered | None:
    """What was written; None where there is nothing or where it is not whole, so that the part is
    done again.
    """
    if not path.exists():
        return None
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            plain: Any = json.decode(json.loads(file["json"].tobytes()), _no_class)
            found = None if plain["summary"] is None else _summary(plain["summary"], file)
            return Gathered(frozenset(), found, tuple(plain["skipped"]))
    except BROKEN:
        return None


def _no_class(name: str) -> type:
    raise InputError(f"{name!r} is no part of a summary")


def _plain(s: Summary, arrays: dict[str, Array]) -> dict[str, Any]:
    """JSON of everything but the arrays, which go into `arrays`."""
    beside = {"uncertainty": s.uncertainty, "positive": s.positive}
    tallies = {**{f"score.{name}": t for name, t in s.tallies.items()}, **beside}
    slices = [(column, name, t) for column, found in s.slices.items() for name, t in found.items()]
    tallies |= {f"slice.{i}": t for i, (_, _, t) in enumerate(slices)}
    for name, columns, value in (("classes", CLASSES, s.classes), ("cells", CELLS, s.cells)):
        arrays |= (
            {}
            if value is None
            else {f"{name}.{column}": getattr(value, column) for column in columns}
        )
    arrays |= {} if s.sample is None else {"sample": s.sample}
    if s.labels is not None:
        tallies |= {
            f"{name}.{i}": t for name in LABELS for i, t in enumerate(getattr(s.labels, name))
        }
        arrays |= {"labels.by_wrong": s.labels.by_wrong, "labels.both": s.labels.both}
    if s.images is not None:
        found = s.images.images
        arrays |= {f"images.{name}": getattr(found, name) for name in IMAGES}
        arrays |= {f"images.score.{name}": a for name, a in found.scores.items()} | {
            "images.place": s.images.place
        }
        arrays["images.names"] = found.names.astype(str)
        arrays |= {f"images.map.{file}.{row}": a for (file, row), a in s.images.maps.items()}
    return {
        "shape": s.shape,
        "n": s.n,
        "suspects": s.suspects,
        "slices": [[column, name] for column, name, _ in slices],
        "columns": list(s.slices),
        "compact": s.compact,
        "foreground": None if s.images is None else s.images.images.classes,
        "alone": None if s.labels is None else s.labels.alone,
        "cells": None if s.cells is None else [s.cells.weight, s.cells.k],
        "tallies": {
            name: _plain_tally(t, name, arrays) for name, t in tallies.items() if t is not None
        },
        "moments": {name: [str(number) for number in m] for name, m in s.losses.items()},
    }


def _plain_tally(t: Tally, name: str, arrays: dict[str, Array]) -> dict[str, Any]:
    arrays |= {f"tally.{name}.{column}": a for column, a in columns_of(t).items()}
    return {"approximate": t.approximate, "weighted": t.weighted}


def _summary(plain: dict[str, Any], file: Mapping[str, Array]) -> Summary:
    kind, k, samples, names, grouped, weighted, positive, labels = plain["shape"]
    classes_of, labels_of = (None if given is None else tuple(given) for given in (names, labels))
    tallies = {name: _tally(how, name, file) for name, how in plain["tallies"].items()}
    of_scores = {
        name.removeprefix("score."): t for name, t in tallies.items() if name.startswith("score.")
    }
    classes = (
        ClassSums(*(file[f"classes.{c}"] for c in CLASSES)) if "classes.keys" in file else None
    )
    slices: dict[str, dict[str, Tally]] = {column: {} for column in plain["columns"]}
    for i, (column, name) in enumerate(plain["slices"]):
        slices[column][name] = tallies[f"slice.{i}"]
    cells = (
        None
        if plain["cells"] is None
        else Cells(file["cells.claim"], file["cells.true"], *plain["cells"])
    )
    return Summary(
        Shape(kind, k, samples, classes_of, grouped, weighted, positive, labels_of),
        {0: plain["n"]},
        of_scores,
        tallies.get("uncertainty"),
        tallies.get("positive"),
        {name: Moments(*map(int, m)) for name, m in plain["moments"].items()},
        classes,
        cells,
        file.get("sample"),
        tuple(Suspect(*s) for s in plain["suspects"]),
        slices,
        plain["compact"],
        labels=None if labels_of is None else _labels(labels_of, tallies, file, plain["alone"]),
        images=None if plain["foreground"] is None else _images(tuple(plain["foreground"]), file),
    )


def _images(classes: tuple[int, ...], file: Mapping[str, Array]) -> ImageSums:
    unit, dice, predicted, true = (file[f"images.{name}"] for name in IMAGES)
    begin, maps = "images.score.", "images.map."
    scores = {key.removeprefix(begin): file[key] for key in file if key.startswith(begin)}
    places = {key: key.removeprefix(maps).split(".") for key in file if key.startswith(maps)}
    found = Images(unit, file["images.names"], classes, dice, scores, predicted, true)
    kept = {(int(where), int(row)): file[key] for key, (where, row) in places.items()}
    return ImageSums(found, file["images.place"], kept)


def _labels(
    names: tuple[str, ...], tallies: dict[str, Tally], file: Mapping[str, Array], alone: bool
) -> LabelSums:
    present, trusted = (tuple(tallies[f"{kind}.{i}"] for i in range(len(names))) for kind in LABELS)
    return LabelSums(names, present, trusted, file["labels.by_wrong"], file["labels.both"], alone)


def _tally(how: dict[str, Any], name: str, file: Mapping[str, Array]) -> Tally:
    prefix = f"tally.{name}."
    columns = {key.removeprefix(prefix): file[key] for key in file if key.startswith(prefix)}
    return from_columns(columns, how["approximate"], weighted=how["weighted"])
