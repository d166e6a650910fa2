"""Several answers to each sample: dropout passes of one network, several networks, or several
states of one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from howsure._core import checks
from howsure._core.checks import Array, InputError, is_mapping, need
from howsure._core.frozen import frozen
from howsure.formats import write
from howsure.predictions import Predictions
from howsure.predictions.columns import iterate_chunks
from howsure.torch.collection import (
    Options,
    RowStore,
    Run,
    check_run_target,
    evaluation_mode,
    find_device,
    gather,
    random_state,
    rows,
)

DROPOUT_CLASSES = (
    nn.Dropout,
    nn.Dropout1d,
    nn.Dropout2d,
    nn.Dropout3d,
    nn.AlphaDropout,
    nn.FeatureAlphaDropout,
)
Dropout: TypeAlias = "nn.Dropout | nn.Dropout1d | nn.Dropout2d | nn.Dropout3d | nn.AlphaDropout | nn.FeatureAlphaDropout"

Checkpoint: TypeAlias = Mapping[str, object] | str | os.PathLike[str]


def mc_dropout(
    model: nn.Module,
    loader: Iterable[object],
    *,
    passes: int = 25,
    p: float | None = None,
    seed: int = 0,
    **options: Unpack[Options],
) -> Predictions:
    r"""Several answers for each sample, with the dropout layers at work as in training.

    .. math:: \hat p = \frac1N \sum_{t=1}^{N} \mathrm{softmax}(z_t)

    Only dropout layers (`nn.Dropout`, `1d` to `3d`, alpha dropout) are random; batch norm and all else stay in
    evaluation mode. `p` replaces the probability of every layer (.002, .01, .05 in Finlay & Oberman). The same
    seed, batches and device give the same answers, and no other random numbers change. Where only layers in
    sequence follow the first dropout, what comes before it runs once for each batch (Laves), provided that running the
    rest again repeats the first pass to the last bit. Passes that never differ are an error. Batches and options as for
    `collect`. Gal & Ghahramani 2016; Laves et al. 2019, section 2.

    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 3))
    >>> mc_dropout(model, [(torch.ones(4, 2), torch.tensor([0, 1, 2, 0]))], passes=10).samples
    10
    """
    checks.at_least(passes, 1, "passes")
    checks.at_least(seed, 0, "seed")
    run = Run(**options)
    with evaluation_mode(model):
        layers = find_dropout_layers(model)
        with enable_dropout(layers, p):
            preds = gather(loader, _Draw(model, layers, run, passes, seed), run)
    v = preds.values
    if passes > 1 and not any(
        (v[1:, rows] != v[:1, rows]).any() for rows in iterate_chunks(preds.n, v[:, 0].size)
    ):
        raise InputError(
            f"all {passes} passes are equal, so the dropout layers had no effect: their p is 0, or forward "
            "does not call them. Pass p=, or call nn.Dropout layers in forward."
        )
    return preds


@frozen
class _Draw:
    """All passes of a batch."""

    model: nn.Module
    layers: Sequence[nn.Module]
    run: Run
    passes: int
    seed: int

    def __call__(self, inputs: object, number: int) -> Tensor:
        """Pass t of batch b has a seed of its own, so both ways of running a pass give the same."""
        device = find_device(self.model)
        seeds = np.random.SeedSequence(self.seed, spawn_key=(number,)).generate_state(
            self.passes, np.uint64
        )
        with record_calls(self.model, self.layers) as calls, random_state(int(seeds[0]), device):
            first = self.run.answer(self.model, inputs)
        again = self._find_shortcut(calls, first, int(seeds[0]))
        out = [first]
        for seed in seeds[1:]:
            with random_state(int(seed), device):
                out.append(again() if again else self.run.answer(self.model, inputs))
        return torch.stack([rows(z, self.run.outputs) for z in out])

    def _find_shortcut(
        self, calls: Sequence[Call], first: Tensor, seed: int
    ) -> Callable[[], Tensor] | None:
        """A pass without what comes before the first dropout, if that repeats the first pass to the
        last bit.
        """
        rest = build_tail(calls, first) if self.passes > 1 else None
        if rest is None:
            return None
        with random_state(seed, find_device(self.model)):
            return rest if torch.equal(rest(), first) else None


def find_dropout_layers(model: nn.Module) -> list[Dropout]:
    """All layers that drop something."""
    found = [module for module in model.modules() if isinstance(module, DROPOUT_CLASSES)]
    if not found:
        raise InputError(
            f"{type(model).__name__} has no dropout layer, so all passes would be equal; MC dropout needs nn.Dropout "
            "layers. Calls of F.dropout and the dropout= of attention and recurrent layers cannot be switched on."
        )
    return found


@contextmanager
def enable_dropout(layers: Sequence[Dropout], p: float | None) -> Generator[None]:
    """`layers` drop with probability p, or with their own; the rest of the model stays in
    evaluation mode.
    """
    if p is not None and not 0 < p < 1:
        raise InputError(f"p is {p:g}; a probability above 0 and below 1 is needed.")
    before = [(layer, layer.p, layer.inplace, layer.training) for layer in layers]
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(
        False
    )  # the fast path of transformers leaves their dropout layers out
    try:
        for layer in layers:
            layer.p = layer.p if p is None else p
            layer.inplace = False  # the input of the first layer is used again
            layer.training = True
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for layer, own, inplace, training in before:
            layer.p, layer.inplace, layer.training = own, inplace, training


class Call(NamedTuple):
    """A layer that ran: what it was given, if that was one tensor and nothing else, and what it
    made.
    """

    layer: nn.Module
    given: Tensor | None
    made: object


@contextmanager
def record_calls(model: nn.Module, droppers: Sequence[nn.Module]) -> Generator[list[Call]]:
    """The calls of all layers without parts, from the first dropout layer on; nothing earlier is
    kept alive.
    """
    calls: list[Call] = []
    starts = set(droppers)

    def note(
        layer: nn.Module, args: tuple[object, ...], kwargs: dict[str, object], made: object
    ) -> None:
        if calls or layer in starts:
            given = None
            if len(args) == 1 and not kwargs:
                given = args[0]
            calls.append(Call(layer, given if isinstance(given, Tensor) else None, made))

    leaves = [module for module in model.modules() if next(module.children(), None) is None]
    hooks = [leaf.register_forward_hook(note, with_kwargs=True) for leaf in leaves]
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()


def build_tail(calls: Sequence[Call], output: Tensor) -> Callable[[], Tensor] | None:
    """All from the first dropout on as a function, if each layer takes what the one before made and
    nothing else.
    """
    start = calls[0].given if calls else None
    if start is None or calls[-1].made is not output:
        return None
    if any(later.given is not earlier.made for earlier, later in pairwise(calls)):
        return None
    return lambda: reduce(lambda x, call: call.layer(x), calls, start)


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

    def stack_members(inputs: object, _: int) -> Tensor:
        answers = [run.rows(model, inputs).cpu() for model in models]
        shapes = {tuple(z.shape) for z in answers}
        if len(shapes) > 1:
            raise InputError(
                f"the models return different shapes, {sorted(shapes)}; they must know the same classes."
            )
        return torch.stack(answers)

    with ExitStack() as stack:
        for model in models:
            stack.enter_context(evaluation_mode(model))
        return gather(loader, stack_members, run)


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

    def collect_state(checkpoint: Checkpoint) -> Predictions:
        load(model, checkpoint, key)
        return gather(loader, lambda inputs, _: single.rows(model, inputs), single)

    with (
        keep_state(model),
        evaluation_mode(model),
        RowStore(run.memory, target and target.parent) as values,
    ):
        first = collect_state(checkpoints[0])
        values.add(first.values)
        # The arrays of one run at a time are held beside the store.
        for checkpoint in checkpoints[1:]:
            preds = collect_state(checkpoint)
            if not (
                _are_same(preds.known_labels, first.known_labels)
                and _are_same(preds.ids, first.ids)
                and preds.n == first.n
            ):
                raise InputError(
                    "the loader gave other samples, or another order, the second time; use shuffle=False and no sampling."
                )
            values.add(preds.values)
        preds = replace(first, values=values.array().reshape(-1, *first.values.shape))
    if target is not None:
        write(preds, target)
    return preds


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
        if not is_mapping(given) or key not in given:
            there = type(given).__name__
            if is_mapping(given):
                there = ", ".join(map(repr, list(given)[:6]))
            raise InputError(f"{where} has no entry {key!r}; there is {there}.")
        given = given[key]
    state = None
    if is_mapping(given):
        state = {str(name): value for name, value in given.items()}
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
