"""What happens to the confidence of a network while it learns."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

import torch
from torch import nn

from howsure._core import strict_json
from howsure._core.atomic import check_target, write_text
from howsure._core.check import InputError
from howsure._core.text import format_spreadsheet_cell
from howsure.metrics import accuracy, aurc, ece, nll
from howsure.predictions import Predictions
from howsure.scores import max_prob
from howsure.tallies.building import tally
from howsure.torch.collection import collect
from howsure.torch.run import Kind, Options, Pick

Row: TypeAlias = dict[str, int | float | str]


class EpochLog:
    """Accuracy, NLL, ECE and AURC of a network after each epoch, on as many sets as you like.

    `loaders` names the sets: {"train": ..., "val": ...}. Call `record()` at the end of an epoch; it
    changes neither the network nor the random state, so training is the same with and without it.
    `rows` are plain dicts, one for each epoch and set; with `path` (.csv or .json) all of them are
    written after each epoch, whole or not at all. A training loader that augments is measured on
    what it gives. ECE has 15 equal bins, AURC ranks by the top probability. `outputs`, `output` and
    `device` as for `collect`.

    >>> data = [(torch.eye(2), torch.tensor([0, 1]))]
    >>> log = EpochLog(torch.nn.Linear(2, 2), {"train": data, "val": data})
    >>> rows = log.record(learning_rate=0.1)
    >>> [(row["epoch"], row["split"], row["n"]) for row in log.rows]
    [(1, 'train', 2), (1, 'val', 2)]
    """

    def __init__(
        self,
        model: nn.Module,
        loaders: Mapping[str, Iterable[object]],
        *,
        path: str | os.PathLike[str] | None = None,
        outputs: Kind = "logits",
        output: Pick | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        self.model, self.loaders = model, loaders
        self.options: Options = {"outputs": outputs, "output": output, "device": device}
        self.path = None if path is None else _check_path(Path(path))
        self.rows: list[Row] = []

    def record(self, **beside: float | str) -> list[Row]:
        """The rows of this epoch, measured now; `beside` is added to each of them."""
        return self.add(
            {
                name: collect(self.model, loader, **self.options)
                for name, loader in self.loaders.items()
            },
            **beside,
        )

    def add(self, predictions: Mapping[str, Predictions], **beside: float | str) -> list[Row]:
        """The same from predictions that are already there."""
        epoch = int(self.rows[-1]["epoch"]) + 1 if self.rows else 1
        made: list[Row] = [
            {"epoch": epoch, "split": name, **beside, **_measure_epoch(p)}
            for name, p in predictions.items()
        ]
        self.rows += made
        if self.path is not None:
            write_text(
                self.path,
                (_format_csv if self.path.suffix.lower() == ".csv" else _format_json)(self.rows),
            )
        return made


def _measure_epoch(preds: Predictions) -> Row:
    t = tally(max_prob(preds), correct=preds.correct)
    return {
        "n": preds.n,
        "accuracy": accuracy(preds),
        "nll": nll(preds),
        "ece": ece(t),
        "aurc": aurc(t),
    }


def _check_path(path: Path) -> Path:
    if path.suffix.lower() not in (".csv", ".json"):
        raise InputError(f"{path.name} must end in .csv or .json.")
    check_target(path)
    return path


def _format_csv(rows: list[Row]) -> str:
    out = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = csv.DictWriter(out, names, lineterminator="\n")
    table.writeheader()
    table.writerows(
        {name: format_spreadsheet_cell(value) for name, value in row.items()} for row in rows
    )
    return out.getvalue()


def _format_json(rows: list[Row]) -> str:
    return strict_json.dump_pretty(strict_json.to_plain(rows))
