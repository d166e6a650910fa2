"""How a model is run: its mode and device, what it is given, and what it returns as rows of logits
or probabilities.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Literal, TypeAlias, TypedDict, TypeGuard

import torch
from torch import Tensor, nn

from howsure._core.check import InputError, is_dict, is_mapping, is_row
from howsure._core.frozen import frozen
from howsure.predictions import ROW_SUM_TOLERANCE

Kind: TypeAlias = Literal["logits", "probs"]
Pick: TypeAlias = str | int | Callable[..., Tensor]


class Options(TypedDict, total=False):
    """The fields of `Run`, for the signatures of what collects predictions."""

    outputs: Kind
    output: Pick | None
    device: torch.device | str | None
    labels: bool
    path: str | os.PathLike[str] | None
    memory: int
    progress: bool


@frozen
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
            raise InputError(
                f"outputs is {self.outputs!r}; say 'logits' or 'probs', whichever the model returns."
            )

    def answer(self, model: nn.Module, inputs: object) -> Tensor:
        """The tensor that the model returns; a dict of inputs is passed by name, a tuple by
        position.
        """
        x = move_tensors(inputs, self.place(model))
        if is_dict(x):
            return pick_tensor(model(**x), self.output)
        return pick_tensor(model(*x) if is_plain_row(x) else model(x), self.output)

    def rows(self, model: nn.Module, inputs: object) -> Tensor:
        """The answer as (n, k), checked."""
        return rows(self.answer(model, inputs), self.outputs)

    def place(self, model: nn.Module) -> torch.device | str | None:
        """The device that inputs go to."""
        return find_device(model) if self.device is None else self.device


def pick_tensor(raw: object, output: Pick | None) -> Tensor:
    """The tensor with the answers, of all that a model returned."""
    if output is not None:
        raw = output(raw) if callable(output) else _get_part(raw, output)
    if isinstance(raw, Tensor):
        return raw
    raise InputError(
        f"the model returned {_describe(raw)}; one tensor (n, k) is needed. "
        f"Say which part it is with output=, e.g. output={_suggest_output(raw)}, or pass a function."
    )


def rows(z: Tensor, kind: Kind) -> Tensor:
    """The tensor as (n, k), refused where it cannot be what it is said to be."""
    if not z.is_floating_point():
        raise InputError(f"the model returned {z.dtype}; floats are needed.")
    z = columns(z, kind)
    if z.ndim != 2:
        raise InputError(
            f"the model returned shape {tuple(z.shape)}; one row per sample and one column per class, (n, k), "
            "is needed. Pass output= with a function that makes it so."
        )
    if kind == "logits":
        _refuse_probs(z)
    else:
        _require_probs(z)
    return z


def columns(z: Tensor, kind: Kind) -> Tensor:
    """A binary model may give class 1 alone, as (n,) or (n, 1); all else stays as it is."""
    if z.ndim == 1 or (z.ndim == 2 and z.shape[1] == 1):
        z = z.reshape(-1)
        return torch.stack((torch.zeros_like(z) if kind == "logits" else 1 - z, z), dim=1)
    return z


def are_probs(z: Tensor) -> Tensor:
    """Which rows are distributions."""
    off = (z.sum(dim=1, dtype=torch.float64) - 1).abs()
    tolerance = ROW_SUM_TOLERANCE[z.element_size()]
    return (z.amin(dim=1) >= -tolerance) & (off <= tolerance)


def _refuse_probs(z: Tensor) -> None:
    if len(z) and bool((are_probs(z) & (z.amin(dim=1) >= 0)).all()):
        raise InputError(
            f"all {len(z):,} rows of a batch are non-negative and sum to 1, so the model returns "
            "probabilities; pass outputs='probs', or let it return logits."
        )


def _require_probs(z: Tensor) -> None:
    wrong = ~are_probs(z)
    if bool(wrong.any()):
        i = int(wrong.nonzero()[0, 0])
        raise InputError(
            f"row {i} of what the model returned sums to {float(z[i].sum()):.6g} with a least value of "
            f"{float(z[i].min()):.6g}; probabilities are not negative and sum to 1. Pass outputs='logits' if these "
            "are logits."
        )


def _get_part(raw: object, key: str | int) -> object:
    try:
        if is_mapping(raw):
            return raw[key]
        return raw[int(key)] if is_row(raw) and isinstance(key, int) else getattr(raw, str(key))
    except (KeyError, IndexError, TypeError, AttributeError):
        raise InputError(
            f"the model returned {_describe(raw)}; there is no part {key!r} in it."
        ) from None


def _describe(raw: object) -> str:
    name = type(raw).__name__
    if is_mapping(raw):
        return f"a {name} with the keys {', '.join(map(repr, raw))}"
    if is_row(raw):
        return f"a {name} of {len(raw)} ({', '.join(type(part).__name__ for part in raw)})"
    return f"a {name}"


def _suggest_output(raw: object) -> str:
    if is_mapping(raw):
        return repr("logits" if "logits" in raw else next(iter(raw), "logits"))
    return "0" if is_row(raw) else "'logits'"


@contextmanager
def evaluation_mode(model: object) -> Generator[None]:
    """`model` in evaluation mode; afterwards each submodule is back in its own mode."""
    if not isinstance(model, nn.Module):
        raise InputError(f"model is a {type(model).__name__}; a torch.nn.Module is needed.")
    before = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in before:
            module.training = training


def find_device(model: nn.Module) -> torch.device | None:
    """Where the first parameter or buffer lives; None for a model that has none."""
    held = next(model.parameters(), None)
    held = next(model.buffers(), None) if held is None else held
    return None if held is None else held.device


def move_tensors(x: object, device: torch.device | str | None) -> object:
    """`x` with all tensors in it on `device`; what has a `to` moves itself, as packed sequences do."""
    to = getattr(x, "to", None)
    if device is not None and callable(to):
        return to(device)
    if is_plain_row(x):
        return type(x)(move_tensors(part, device) for part in x)
    return {key: move_tensors(part, device) for key, part in x.items()} if is_dict(x) else x


def is_plain_row(x: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    """Whether `x` is a list or a tuple and not one with names, which a model takes whole."""
    return type(x) in (tuple, list)


@contextmanager
def random_state(seed: int | None, device: torch.device | None) -> Generator[None]:
    """Draws inside follow from `seed`, or continue the present state where it is None; those
    outside are unchanged.
    """
    if device is not None and device.type != "cpu":
        # Both are declared without the types of their parameters.
        with torch.random.fork_rng(devices=[device], device_type=device.type):  # pyright: ignore[reportUnknownMemberType]
            if seed is not None:
                torch.manual_seed(seed)  # pyright: ignore[reportUnknownMemberType]
            yield
        return
    before = torch.get_rng_state()
    try:
        if seed is not None:
            torch.default_generator.manual_seed(
                seed
            )  # torch.manual_seed seeds all devices, in 25 times the time
        yield
    finally:
        torch.set_rng_state(before)
