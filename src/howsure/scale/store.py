"""Summaries on disk: arrays and JSON in one npz file that appears whole or not at all. Nothing in it is code."""

from __future__ import annotations

import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from howsure._core.atomic import replacing
from howsure._core.check import Array
from howsure.report.summary import Gathered, Shape, Summary, Suspect
from howsure.report.vectors import Moments, Vectors
from howsure.tallies.columns import columns_of, from_columns
from howsure.tallies.tally import Tally

VECTORS = ("count", "given", "hits", "claim", "bins", "true", "near", "sample")
BROKEN = (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, zlib.error)


def save(g: Gathered, path: Path) -> None:
    """Write one part."""
    arrays: dict[str, Array] = {}
    plain = {"skipped": g.skipped, "summary": None if g.summary is None else _plain(g.summary, arrays)}
    with replacing(path) as temporary, temporary.open("wb") as file:
        arrays["json"] = np.frombuffer(json.dumps(plain).encode(), np.uint8)
        np.savez(file, allow_pickle=False, **arrays)


def load(path: Path) -> Gathered | None:
    """What was written; None where there is nothing or where it is not whole, so that the part is done again."""
    if not path.exists():
        return None
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            plain = json.loads(file["json"].tobytes())
            found = None if plain["summary"] is None else _summary(plain["summary"], file)
            return Gathered(frozenset(), found, tuple(plain["skipped"]))
    except BROKEN:
        return None


def _plain(s: Summary, arrays: dict[str, Array]) -> dict[str, Any]:
    """JSON of everything but the arrays, which go into `arrays`."""
    tallies = {name: _plain_tally(t, name, arrays) for name, t in s.tallies.items()}
    moments = None
    if s.vectors is not None:
        arrays |= {f"vectors.{name}": getattr(s.vectors, name) for name in VECTORS}
        moments = {name: [str(number) for number in m] for name, m in s.vectors.losses.items()}
    return {"shape": s.shape, "n": s.n, "suspects": s.suspects, "tallies": tallies, "moments": moments}


def _plain_tally(t: Tally, name: str, arrays: dict[str, Array]) -> dict[str, Any]:
    arrays |= {f"tally.{name}.{column}": a for column, a in columns_of(t).items()}
    return {"approximate": t.approximate}


def _summary(plain: dict[str, Any], file: Any) -> Summary:
    kind, k, samples, names, grouped = plain["shape"]
    shape = Shape(kind, k, samples, None if names is None else tuple(names), grouped)
    tallies = {name: _tally(how, name, file) for name, how in plain["tallies"].items()}
    of_classes = None
    if plain["moments"] is not None:
        moments = {name: Moments(*map(int, m)) for name, m in plain["moments"].items()}
        of_classes = Vectors(moments, *(file[f"vectors.{name}"] for name in VECTORS))
    return Summary(shape, {0: plain["n"]}, tallies, tuple(Suspect(*s) for s in plain["suspects"]), of_classes)


def _tally(how: dict[str, Any], name: str, file: Any) -> Tally:
    prefix = f"tally.{name}."
    columns = {key.removeprefix(prefix): file[key] for key in file.files if key.startswith(prefix)}
    return from_columns(columns, how.get("approximate"))
