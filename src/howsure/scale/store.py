"""What is known of some parts of a job: it merges, whichever worker made it, and is kept on disk.

On disk it is arrays and JSON in one npz file that appears whole or not at all. Nothing in it is
code.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from howsure._core import strict_json
from howsure._core.atomic import replace_file
from howsure._core.checks import Array, InputError
from howsure._core.frozen import frozen
from howsure.metrics.calibration_error import ClassBinSums
from howsure.predictions.images import Images
from howsure.report.label_sections import LabelSums
from howsure.report.masks import ImageSums, move_to_file
from howsure.report.samples import Details, Shape
from howsure.report.summary import Summary, SuspectSample, merge_summaries
from howsure.report.sums import ClassSums, Moments
from howsure.tallies.building import from_columns, to_columns
from howsure.tallies.tally import Tally

T = TypeVar("T")
# Distinct scores of all tallies together; about 400 MB of float32 scores.
MAX_DISTINCT_SCORES = 32_000_000
CLASS_COLUMNS = ("keys", "count", "given", "hits", "claim", "scored", "pairs", "pair_claim")
CELL_COLUMNS = ("claim", "true")
LABEL_TALLIES = ("present", "trusted")
IMAGE_COLUMNS = ("unit", "dice", "predicted", "true")
DAMAGE_ERRORS = (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, zlib.error)


@frozen(eq=False)
class PartResult:
    """Which parts, their summary or, of a second reading, their details, and what of them could not
    be read.
    """

    parts: frozenset[int]
    summary: Summary | None
    skipped: tuple[str, ...] = ()
    details: Details | None = None

    @property
    def size(self) -> int:
        """Numbers that take memory and become fewer by merging."""
        size = 0
        if self.summary is not None:
            size += self.summary.size
        if self.details is not None:
            size += self.details.size
        return size

    def __add__(self, other: PartResult) -> PartResult:
        return merge_results([self, other])


def merge_results(results: Sequence[PartResult]) -> PartResult:
    """All parts of all of them; a part that is in two of them is refused, for it would count twice."""
    # Clusters repeat tasks whose worker died; a result must not be counted a second time.
    parts = frozenset[int]().union(*(result.parts for result in results))
    if len(parts) < sum(len(result.parts) for result in results):
        raise InputError(
            "some part of the data is in two overlapping sums; run the evaluation again."
        )
    summaries = [result.summary for result in results if result.summary is not None]
    details = [result.details for result in results if result.details is not None]
    skipped: list[str] = []
    for result in results:
        skipped += result.skipped
    return PartResult(
        parts=parts,
        summary=check_size(merge_summaries(summaries)) if summaries else None,
        skipped=tuple(skipped),
        details=reduce(Details.__add__, details) if details else None,
    )


def check_size(s: Summary) -> Summary:
    """Return `s`; raise if it has grown beyond what is kept exactly."""
    if s.size <= MAX_DISTINCT_SCORES:
        return s
    raise InputError(
        f"these data have more than {MAX_DISTINCT_SCORES:,} distinct scores, too many to keep exactly "
        "in bounded memory; ask for the compact tally, which gives certified bounds (compact=True, "
        "--compact), or for fewer scores."
    )


def renumber(result: PartResult, part: int, file: int) -> PartResult:
    """One part under another number, as when files were added since it was stored."""
    parts = frozenset((part,))
    summary = result.summary
    if summary is None:
        return replace(result, parts=parts)
    images = None if summary.images is None else move_to_file(summary.images, file)
    suspects = tuple(suspect._replace(file=file) for suspect in summary.suspects)
    files = {file: summary.n}
    moved = replace(summary, files=files, suspects=suspects, images=images)
    return replace(result, parts=parts, summary=moved)


# On disk.


def save_result(result: PartResult, path: Path) -> None:
    """Write one part."""
    arrays: dict[str, Array] = {}
    plain: dict[str, object] = {"skipped": result.skipped, "summary": None}
    if result.summary is not None:
        plain["summary"] = _split_summary(result.summary, arrays)
    text = strict_json.dump_line(strict_json.encode(plain, _refuse_class))
    arrays["json"] = np.frombuffer(text.encode(), np.uint8)
    with replace_file(path) as temporary, temporary.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def load_result(path: Path) -> PartResult | None:
    """What was written; None where there is nothing or where it is not whole, so that the part is
    done again.
    """
    if not path.exists():
        return None
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            plain: Any = strict_json.decode(
                strict_json.loads(file["json"].tobytes()), _refuse_class
            )
            summary = None
            if plain["summary"] is not None:
                summary = _join_summary(plain["summary"], file)
            return PartResult(parts=frozenset(), summary=summary, skipped=tuple(plain["skipped"]))
    except DAMAGE_ERRORS:
        return None


def _refuse_class(name: str) -> type:
    raise InputError(f"{name!r} is no part of a summary")


def _split_summary(s: Summary, arrays: dict[str, Array]) -> dict[str, Any]:
    """JSON of everything but the arrays, which go into `arrays`."""
    tallies: dict[str, Tally | None] = {f"score.{name}": t for name, t in s.tallies.items()}
    tallies |= {"uncertainty": s.uncertainty, "positive": s.positive}
    slices: list[list[str]] = []
    for column, values in s.slices.items():
        for name, t in values.items():
            tallies[f"slice.{len(slices)}"] = t
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


def _join_summary(plain: dict[str, Any], file: Mapping[str, Array]) -> Summary:
    kind, k, samples, names, grouped, weighted, positive, labels = plain["shape"]
    class_names = None if names is None else tuple(names)
    label_names = None if labels is None else tuple(labels)
    tallies: dict[str, Tally] = {}
    for name, flags in plain["tallies"].items():
        columns = _pick(file, f"tally.{name}.")
        tallies[name] = from_columns(columns, flags["approximate"], weighted=flags["weighted"])
    slices: dict[str, dict[str, Tally]] = {column: {} for column in plain["columns"]}
    for i, (column, name) in enumerate(plain["slices"]):
        slices[column][name] = tallies[f"slice.{i}"]
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
        image_sums = _join_images(tuple(plain["foreground"]), file)
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
        compact=plain["compact"],
        labels=label_sums,
        images=image_sums,
    )


def _join_images(classes: tuple[int, ...], file: Mapping[str, Array]) -> ImageSums:
    columns = {name: file[f"images.{name}"] for name in ("names", *IMAGE_COLUMNS)}
    images = Images(classes=classes, scores=_pick(file, "images.score."), **columns)
    maps: dict[tuple[int, int], Array] = {}
    for key, values in _pick(file, "images.map.").items():
        number, row = key.split(".")
        maps[int(number), int(row)] = values
    return ImageSums(images, file["images.place"], maps)


def _pick(values: Mapping[str, T], prefix: str) -> dict[str, T]:
    """The entries whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): values[name] for name in values if name.startswith(prefix)}
