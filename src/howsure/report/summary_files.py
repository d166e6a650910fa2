"""Summaries on disk: arrays and JSON in one npz file that appears whole or not at all. Nothing in it
is code.

The parts of a stream keep everything that a summary holds; `save_summary` leaves out single rows, so
that the file can be given away.
"""

from __future__ import annotations

import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import numpy as np

from howsure._core import strict_json
from howsure._core.checks import Array, InputError
from howsure._core.file_access import check_readable, replace_file
from howsure._core.version import __version__
from howsure.formats import npy
from howsure.metrics.calibration_error import ClassBinSums
from howsure.predictions.images import Images
from howsure.report.label_sections import LabelSums
from howsure.report.masks import ImageSums
from howsure.report.samples import Shape
from howsure.report.summary import SliceTallies, Summary, SuspectSample
from howsure.report.sums import ClassSums, Moments
from howsure.tallies.building import from_columns, to_columns
from howsure.tallies.tally import Tally

T = TypeVar("T")
SUMMARY_VERSION = 1
CLASS_COLUMNS = ("keys", "count", "given", "hits", "claim", "scored", "pairs", "pair_claim")
CELL_COLUMNS = ("claim", "true")
LABEL_TALLIES = ("present", "trusted")
IMAGE_COLUMNS = ("unit", "dice", "predicted", "true")
DAMAGE_ERRORS = (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, zlib.error)


def save_summary(s: Summary, file: str | PathLike[str] | IO[bytes]) -> None:
    """Write a summary without single rows: the surest wrong answers and the points of the scatter
    plot stay behind.
    """
    if s.images is not None:
        raise InputError("a summary of images holds single images, which are not saved.")
    arrays: dict[str, Array] = {}
    plain = split_summary(replace(s, suspects=(), sample=None), arrays)
    head = {"howsure": __version__, "summary": SUMMARY_VERSION}
    arrays["json"] = encode_json({**head, "value": plain})
    if not isinstance(file, (str, PathLike)):
        np.savez(file, allow_pickle=False, **arrays)
        return
    if Path(file).suffix.lower() != ".npz":
        raise InputError(f"{file}: a summary is written as .npz.")
    with replace_file(Path(file)) as temporary, temporary.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)


def load_summary(file: str | PathLike[str] | IO[bytes]) -> Summary:
    """Return what `save_summary` wrote; raise where the file is damaged, of another version or not
    ours.
    """
    if not isinstance(file, (str, PathLike)):
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "summary.npz"
            with copy.open("wb") as stream:
                shutil.copyfileobj(file, stream)
            return load_summary(copy)
    path = check_readable(file)
    if path.suffix.lower() != ".npz":
        raise InputError(f"{path.name} is no summary; Summary.save writes .npz.")
    entries = next(npy.read(path, None)).entries
    if "json" not in entries:
        raise InputError(f"{path.name} is no summary; Summary.save writes one.")
    try:
        # The entries check sizes before anything is allocated, and hold no objects.
        arrays = {name: cast("Array", entry.load()) for name, entry in entries.items()}
        document: Any = decode_json(arrays["json"])
        version = document["summary"]
        if version != SUMMARY_VERSION:
            raise InputError(
                f"{path.name} is a summary of version {version!r}; "
                f"this howsure reads {SUMMARY_VERSION}."
            )
        s = join_summary(document["value"], arrays)
        for t in s.tallies.values():
            if t.n != s.n and not t.weighted:
                raise ValueError("counts that do not sum up")
        parts = [*s.tallies.values()]
        for by_value in (*s.slices.values(), *s.positive_slices.values()):
            parts += by_value.values()
        for t in (*parts, s.uncertainty, s.positive):
            if t is not None:
                score, count, loss = t.score, t.count, t.loss
                if not (score[1:] < score[:-1]).all() or not len(score) == len(count) == len(loss):
                    raise ValueError("rows that are not sorted")
                if not ((count > 0) & (loss >= 0) & (loss <= count)).all():
                    raise ValueError("counts that cannot be")
    except InputError:
        raise
    except (*DAMAGE_ERRORS, AttributeError, IndexError) as e:
        why = str(e).splitlines()[0] if str(e) else type(e).__name__
        raise InputError(f"{path.name} is a damaged summary ({why}); make it again.") from None
    return s


def encode_json(value: object) -> Array:
    """JSON as an array of bytes."""
    text = strict_json.dump_line(strict_json.encode(value, refuse_class))
    return np.frombuffer(text.encode(), np.uint8)


def decode_json(array: Array) -> Any:
    """The JSON of such an array."""
    return strict_json.decode(strict_json.loads(array.tobytes()), refuse_class)


def refuse_class(name: str) -> type:
    raise InputError(f"{name!r} is no part of a summary")


def split_summary(s: Summary, arrays: dict[str, Array]) -> dict[str, Any]:
    """JSON of everything but the arrays, which go into `arrays`."""
    tallies: dict[str, Tally | None] = {f"score.{name}": t for name, t in s.tallies.items()}
    tallies |= {"uncertainty": s.uncertainty, "positive": s.positive}
    slices: list[list[str]] = []
    for column, values in s.slices.items():
        for name, t in values.items():
            tallies[f"slice.{len(slices)}"] = t
            if s.positive is not None:
                tallies[f"positive_slice.{len(slices)}"] = s.positive_slices[column][name]
            slices.append([column, name])
    if s.classes is not None:
        arrays |= {f"classes.{name}": getattr(s.classes, name) for name in CLASS_COLUMNS}
    if s.cells is not None:
        arrays |= {f"cells.{name}": getattr(s.cells, name) for name in CELL_COLUMNS}
    if s.sample is not None:
        arrays["sample"] = s.sample
    if s.labels is not None:
        for kind in LABEL_TALLIES:
            tallies |= {f"{kind}.{i}": t for i, t in enumerate(getattr(s.labels, kind))}
        arrays |= {"labels.by_wrong": s.labels.by_wrong, "labels.both": s.labels.both}
    if s.images is not None:
        images = s.images.images
        arrays |= {f"images.{name}": getattr(images, name) for name in IMAGE_COLUMNS}
        arrays |= {f"images.score.{name}": a for name, a in images.scores.items()}
        arrays["images.place"] = s.images.place
        arrays["images.names"] = images.names.astype(str)
        arrays |= {f"images.map.{file}.{row}": a for (file, row), a in s.images.maps.items()}
    flags: dict[str, object] = {}
    for name, t in tallies.items():
        if t is not None:
            arrays |= {f"tally.{name}.{column}": a for column, a in to_columns(t).items()}
            flags[name] = {"approximate": t.approximate, "weighted": t.weighted}
    return {
        "shape": s.shape,
        "n": s.n,
        "suspects": s.suspects,
        "slices": slices,
        "columns": list(s.slices),
        "compact": s.compact,
        "foreground": None if s.images is None else s.images.images.classes,
        "alone": None if s.labels is None else s.labels.alone,
        "cells": None if s.cells is None else [s.cells.weight, s.cells.k],
        "tallies": flags,
        "losses": {name: list(m) for name, m in s.losses.items()},
    }


def join_summary(plain: dict[str, Any], file: Mapping[str, Array]) -> Summary:
    kind, k, samples, names, grouped, weighted, positive, labels = plain["shape"]
    class_names = None if names is None else tuple(names)
    label_names = None if labels is None else tuple(labels)
    tallies: dict[str, Tally] = {}
    for name, flags in plain["tallies"].items():
        columns = _pick(file, f"tally.{name}.")
        tallies[name] = from_columns(columns, flags["approximate"], weighted=flags["weighted"])
    slices: SliceTallies = {column: {} for column in plain["columns"]}
    positive_slices: SliceTallies = {}
    if positive is not None:
        positive_slices = {column: {} for column in plain["columns"]}
    for i, (column, name) in enumerate(plain["slices"]):
        slices[column][name] = tallies[f"slice.{i}"]
        if positive is not None:
            positive_slices[column][name] = tallies[f"positive_slice.{i}"]
    classes = cells = label_sums = image_sums = None
    if "classes.keys" in file:
        classes = ClassSums(**{name: file[f"classes.{name}"] for name in CLASS_COLUMNS})
    if plain["cells"] is not None:
        weight, cell_classes = plain["cells"]
        cells = ClassBinSums(file["cells.claim"], file["cells.true"], weight, cell_classes)
    if label_names is not None:
        n = range(len(label_names))
        label_sums = LabelSums(
            label_names,
            tuple(tallies[f"present.{i}"] for i in n),
            tuple(tallies[f"trusted.{i}"] for i in n),
            file["labels.by_wrong"],
            file["labels.both"],
            alone=plain["alone"],
        )
    if plain["foreground"] is not None:
        maps: dict[tuple[int, int], Array] = {}
        for key, values in _pick(file, "images.map.").items():
            number, row = key.split(".")
            maps[int(number), int(row)] = values
        images = Images(
            classes=tuple(plain["foreground"]),
            scores=_pick(file, "images.score."),
            **{name: file[f"images.{name}"] for name in ("names", *IMAGE_COLUMNS)},
        )
        image_sums = ImageSums(images, file["images.place"], maps)
    return Summary(
        shape=Shape(
            kind=kind,
            k=k,
            samples=samples,
            class_names=class_names,
            grouped=grouped,
            weighted=weighted,
            positive=positive,
            labels=label_names,
        ),
        files={0: plain["n"]},
        tallies=_pick(tallies, "score."),
        uncertainty=tallies.get("uncertainty"),
        positive=tallies.get("positive"),
        losses={name: Moments(*m) for name, m in plain["losses"].items()},
        classes=classes,
        cells=cells,
        sample=file.get("sample"),
        suspects=tuple(SuspectSample(*s) for s in plain["suspects"]),
        slices=slices,
        positive_slices=positive_slices,
        compact=plain["compact"],
        labels=label_sums,
        images=image_sums,
    )


def _pick(values: Mapping[str, T], prefix: str) -> dict[str, T]:
    """The entries whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): values[name] for name in values if name.startswith(prefix)}
