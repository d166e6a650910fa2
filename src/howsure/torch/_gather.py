"""A loader run through a model, batch by batch, into Predictions."""

# pyright: reportMissingImports=false, reportUnknownParameterType=false
from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from howsure._core import check
from howsure._core.atomic import check_target
from howsure._core.check import Array, InputError
from howsure.formats import write
from howsure.formats.catalogue import format_of
from howsure.predictions import Predictions
from howsure.torch._answers import Kind
from howsure.torch._batches import Batch, needs_labels, parsed
from howsure.torch._modes import random_state
from howsure.torch._progress import watched
from howsure.torch._run import Run
from howsure.torch._store import Store

Answer: TypeAlias = Callable[[Any, int], Tensor]


def gather(loader: Iterable[Any], answer: Answer, run: Run) -> Predictions:
    """The predictions of all batches; `answer(inputs, number)` gives (n, k), or (s, n, k) for several answers."""
    target = checked_target(run)
    beside = _Beside(run)
    with Store(run.memory, target and target.parent) as values, torch.no_grad(), random_state(None, None):
        for number, batch in enumerate(watched(loader, "predicting") if run.progress else loader):
            values.add(beside.checked(parsed(batch), number, answer))
        preds = _predictions(values.array(), run.outputs, **beside.columns())
    if target is not None:
        write(preds, target)
    return preds


class _Beside:
    """Labels and ids, batch by batch."""

    def __init__(self, run: Run) -> None:
        self.labelled = run.labels
        self.kind: Kind = run.outputs
        self.labels: list[Array] = []
        self.ids: list[Array] = []

    def checked(self, batch: Batch, number: int, answer: Answer) -> Array:
        """The answers with the samples first, (n, k) or (n, s, k), if they and the labels are what they should be."""
        if self.labelled:
            needs_labels(batch, number)
        values = numbers(answer(batch.inputs, number), self.kind)
        values = values.swapaxes(0, 1) if values.ndim == 3 else values
        labels = check.array(_host(batch.labels), "labels") if self.labelled else None
        try:
            made = _predictions(values, self.kind, labels=labels, ids=_host(batch.ids))
        except InputError as e:
            raise e.at(f"batch {number} of the loader") from None
        if self.labelled:
            self.labels.append(made.labels)
        if made.ids is not None:
            self.ids.append(made.ids)
        return values

    def columns(self) -> dict[str, Array | None]:
        """All labels and ids; None where there are none."""
        named = {"labels": self.labels, "ids": self.ids}
        return {name: np.concatenate(parts) if parts else None for name, parts in named.items()}


def numbers(z: Tensor, kind: Kind) -> Array:
    """A tensor as an array; half precision widens where nothing depends on knowing that it was half."""
    if z.dtype == torch.bfloat16 or (z.dtype == torch.float16 and kind == "logits"):
        z = z.float()
    return z.numpy(force=True)


def _predictions(values: Array, kind: Kind, **columns: Any) -> Predictions:
    """From (n, k), or (n, s, k) for several answers."""
    if values.ndim == 3:
        return Predictions.from_samples(**{kind: values.swapaxes(0, 1)}, **columns)
    return (Predictions.from_logits if kind == "logits" else Predictions.from_probs)(values, **columns)


def _host(x: Any) -> Any:
    return x.cpu() if isinstance(x, Tensor) else x


def checked_target(run: Run) -> Path | None:
    """Where the predictions will be written, refused before a long run and not after it."""
    if run.path is None:
        return None
    target = Path(run.path)
    format_of(target)
    check_target(target)
    return target
