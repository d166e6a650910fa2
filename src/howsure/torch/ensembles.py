"""Several networks, or several states of one, as samples of one prediction."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from howsure._core.check import Array, InputError, is_mapping, need
from howsure.formats import write
from howsure.predictions import Predictions
from howsure.torch.collection import RowStore, check_run_target, gather
from howsure.torch.run import Options, Run, evaluation_mode

Checkpoint: TypeAlias = Mapping[str, object] | str | os.PathLike[str]


def ensemble(
    models: Sequence[nn.Module], loader: Iterable[object], **options: Unpack[Options]
) -> Predictions:
    """The predictions of several networks as samples: their mean probability is the answer.

    The loader is run once and each batch goes to all models, each on its own device. Batches, modes
    and options as for `collect`. Lakshminarayanan et al. 2017.

    >>> import torch
    >>> models = [torch.nn.Linear(2, 3) for _ in range(5)]
    >>> ensemble(models, [(torch.zeros(4, 2), torch.tensor([0, 1, 2, 0]))]).samples
    5
    """
    if isinstance(models, nn.Module) or not len(models):
        raise InputError(
            "models must hold at least one torch.nn.Module; pass a list such as [model_a, model_b]."
        )
    run = Run(**options)
    with ExitStack() as stack:
        for model in models:
            stack.enter_context(evaluation_mode(model))
        return gather(loader, lambda inputs, _: _stack_members(models, run, inputs), run)


def snapshot_ensemble(
    model: nn.Module,
    checkpoints: Sequence[Checkpoint],
    loader: Iterable[object],
    *,
    key: str | None = None,
    **options: Unpack[Options],
) -> Predictions:
    """The predictions of one network in several states, such as those at the end of each cycle of
    the learning rate.

    A checkpoint is a state dict, or a file of one (`.pt`, `.pth`, loaded with weights_only, or
    `.safetensors`); `key` names the entry of the file that holds it. One state is in `model` at a
    time, and its own is put back at the end. The loader is run once for each, so it must give the
    same samples in the same order. Huang et al. 2017.

    >>> import torch
    >>> model = torch.nn.Linear(2, 3)
    >>> states = [torch.nn.Linear(2, 3).state_dict() for _ in range(2)]
    >>> snapshot_ensemble(model, states, [(torch.zeros(4, 2), torch.tensor([0, 1, 2, 0]))]).samples
    2
    """
    if not len(checkpoints):
        raise InputError("checkpoints is empty; at least one state dict or file is needed.")
    if isinstance(loader, Iterator):
        raise InputError(
            "loader is an iterator, which can be run once only; pass a DataLoader or a list of batches."
        )
    run = Run(**options)
    target, single = check_run_target(run), replace(run, path=None)
    with (
        keep_state(model),
        evaluation_mode(model),
        RowStore(run.memory, target and target.parent) as values,
    ):
        runs = (
            _collect_state(model, checkpoint, key, loader, single) for checkpoint in checkpoints
        )
        preds = _stack_runs(runs, values)
    if target is not None:
        write(preds, target)
    return preds


def _stack_members(models: Sequence[nn.Module], run: Run, inputs: object) -> Tensor:
    rows = [run.rows(model, inputs).cpu() for model in models]
    shapes = {tuple(z.shape) for z in rows}
    if len(shapes) > 1:
        raise InputError(
            f"the models return different shapes, {sorted(shapes)}; they must know the same classes."
        )
    return torch.stack(rows)


def _collect_state(
    model: nn.Module, checkpoint: Checkpoint, key: str | None, loader: Iterable[object], run: Run
) -> Predictions:
    load(model, checkpoint, key)
    return gather(loader, lambda inputs, _: run.rows(model, inputs), run)


def _stack_runs(runs: Iterator[Predictions], values: RowStore) -> Predictions:
    """Runs over the same samples as one; the arrays of one run at a time are held beside the store."""
    first = next(runs)
    values.add(first.values)
    for run in runs:
        if not (
            _are_same(run.known_labels, first.known_labels)
            and _are_same(run.ids, first.ids)
            and run.n == first.n
        ):
            raise InputError(
                "the loader gave other samples, or another order, the second time; use shuffle=False and no sampling."
            )
        values.add(run.values)
    return replace(first, values=values.array().reshape(-1, *first.values.shape))


def _are_same(a: Array | None, b: Array | None) -> bool:
    return a is b if a is None or b is None else np.array_equal(a, b)


@contextmanager
def keep_state(model: nn.Module) -> Generator[None]:
    """Whatever is loaded inside, `model` has its own weights again afterwards; they wait in main
    memory.
    """
    own = {
        name: value.detach().to("cpu", copy=True) if isinstance(value, Tensor) else value
        for name, value in model.state_dict().items()
    }
    try:
        yield
    finally:
        model.load_state_dict(own)


def load(model: nn.Module, checkpoint: Checkpoint, key: str | None) -> None:
    """Put the weights of a checkpoint into `model`; every one of them must be there."""
    given: object = checkpoint
    where = "the checkpoint"
    if isinstance(checkpoint, (str, os.PathLike)):
        where, given = Path(checkpoint).name, _read(Path(checkpoint))
    if key is not None:
        given = _get_entry(given, key, where)
    state = {str(name): value for name, value in given.items()} if is_mapping(given) else None
    if state is None or not all(isinstance(value, Tensor) for value in state.values()):
        found = (
            type(given).__name__
            if state is None
            else f"the keys {', '.join(map(repr, list(state)[:6]))}"
        )
        raise InputError(
            f"{where} holds {found}; a state dict of tensors is needed. Name its entry with key=."
        )
    try:
        model.load_state_dict(state)
    except RuntimeError as e:
        reason = " ".join(str(e).split())[:300]
        raise InputError(f"{where} does not fit the model: {reason}") from None


def _read(path: Path) -> object:
    """Tensors only: nothing that a pickle asks for is run."""
    safe = path.suffix == ".safetensors" and need(
        "safetensors.torch", for_=f"reading {path.name}", extra="files"
    )
    try:
        return (
            safe.load_file(path)
            if safe
            else torch.load(path, map_location="cpu", weights_only=True)
        )
    except Exception as e:
        reason = type(e).__name__ if not str(e) else str(e).splitlines()[0][:120].rstrip(".")
        raise InputError(
            f"{path.name} is not a checkpoint of tensors ({reason}); save model.state_dict()."
        ) from None


def _get_entry(state: object, key: str, where: str) -> object:
    if is_mapping(state) and key in state:
        return state[key]
    there = ", ".join(map(repr, list(state)[:6])) if is_mapping(state) else type(state).__name__
    raise InputError(f"{where} has no entry {key!r}; there is {there}.")
