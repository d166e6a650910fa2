"""Where a report comes from: inputs by hash, versions, seed."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from howsure.predictions import Predictions
from howsure.render.model import Input, Provenance

BLOCK = 1 << 20


def file_digest(path: str | Path) -> str:
    """SHA-256 of a file, read in blocks."""
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def array_digest(preds: Predictions) -> str:
    """SHA-256 of the values and outcomes as they were given."""
    digest = hashlib.sha256()
    for a in (preds.values, preds.known_labels, preds.known_correct):
        if a is not None:
            digest.update(f"{a.dtype}{a.shape}".encode())
            digest.update(np.ascontiguousarray(a).view(np.uint8).data)
    return digest.hexdigest()


def provenance(
    preds: Predictions,
    files: Sequence[str | Path] = (),
    command: str | None = None,
    *,
    seed: int,
    level: float,
) -> Provenance:
    """What must be known to make the same report again."""
    if files:
        inputs: list[Input] = [{"file": Path(f).name, "sha256": file_digest(f)} for f in files]
    else:
        inputs = [{"arrays": preds.kind, "sha256": array_digest(preds)}]
    return {
        "inputs": inputs,
        "command": command,
        "seed": seed,
        "level": level,
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """What the numbers were computed with."""
    return {"python": platform.python_version(), "numpy": np.__version__}
