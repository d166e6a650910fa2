"""How a loader is run through a model."""

# pyright: reportMissingImports=false, reportUnknownParameterType=false
from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, TypedDict

import torch
from torch import Tensor, nn

from howsure._core.check import InputError
from howsure.torch._answers import Kind, Pick, picked, rows
from howsure.torch._modes import device_of, moved


class Options(TypedDict, total=False):
    """The fields of `Run`, for the signatures of what collects predictions."""

    outputs: Kind
    output: Pick | None
    device: torch.device | str | None
    labels: bool
    path: str | os.PathLike[str] | None
    memory: int
    progress: bool


@dataclass(frozen=True)
class Run:
    """The options of `collect`, which says what each of them means."""

    outputs: Kind = "logits"
    output: Pick | None = None
    device: torch.device | str | None = None
    labels: bool = True
    path: str | os.PathLike[str] | None = None
    memory: int = 1 << 30
    progress: bool = True

    def __post_init__(self) -> None:
        if self.outputs not in ("logits", "probs"):
            raise InputError(f"outputs is {self.outputs!r}; say 'logits' or 'probs', whichever the model returns.")

    def answer(self, model: nn.Module, inputs: Any) -> Tensor:
        """The tensor that the model gives; a dict of inputs goes to it by name, a tuple by position."""
        x = self.placed(model, inputs)
        if isinstance(x, dict):
            return picked(model(**x), self.output)
        return picked(model(*x) if type(x) in (tuple, list) else model(x), self.output)

    def rows(self, model: nn.Module, inputs: Any) -> Tensor:
        """The answer as (n, k), checked."""
        return rows(self.answer(model, inputs), self.outputs)

    def placed(self, model: nn.Module, inputs: Any) -> Any:
        """The inputs where they should be."""
        return moved(inputs, device_of(model) if self.device is None else self.device)
