"""What a loader gives: inputs, labels and ids."""

# pyright: reportMissingImports=false
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import Tensor

from howsure._core.check import InputError

LABELS = ("labels", "label", "targets", "y")
IDS = ("ids", "id", "idx")


class Batch(NamedTuple):
    """The parts of a batch; labels and ids are None where the loader gives none."""

    inputs: Any
    labels: Any
    ids: Any


def parsed(batch: Any) -> Batch:
    """(inputs, labels), (inputs, labels, ids), a mapping with `labels` and `ids` among its keys, or inputs alone."""
    if isinstance(batch, Mapping):
        return _from_mapping(batch)
    if isinstance(batch, Tensor):
        return Batch(batch, None, None)
    if isinstance(batch, (tuple, list)) and 1 <= len(batch) <= 3:
        return Batch(*batch, *[None] * (3 - len(batch)))
    found = f"{type(batch).__name__} of {len(batch)}" if isinstance(batch, (tuple, list)) else type(batch).__name__
    raise InputError(f"the loader gives a {found}; (inputs, labels), (inputs, labels, ids) or a dict is needed.")


def _from_mapping(batch: Mapping[Any, Any]) -> Batch:
    labels, ids = (next((name for name in names if name in batch), None) for names in (LABELS, IDS))
    inputs = {key: value for key, value in batch.items() if key not in (labels, ids)}
    if not inputs:
        raise InputError(f"a batch of the loader has the keys {', '.join(map(repr, batch))}; there is no input in it.")
    return Batch(inputs, None if labels is None else batch[labels], None if ids is None else batch[ids])


def needs_labels(batch: Batch, number: int) -> None:
    """Refuse a batch without labels."""
    if batch.labels is None:
        keys = f" with the keys {', '.join(map(repr, batch.inputs))}" if isinstance(batch.inputs, dict) else ""
        raise InputError(
            f"batch {number} of the loader has inputs{keys} but no labels; give (inputs, labels) or a dict with "
            "'labels', or pass labels=False where only the answers matter."
        )
