"""What a model returns, as one row of logits or probabilities for each sample."""

# pyright: reportMissingImports=false, reportUnknownParameterType=false
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from howsure._core.check import InputError
from howsure.predictions import ROW_SUM_TOLERANCE

Kind: TypeAlias = Literal["logits", "probs"]
Pick: TypeAlias = str | int | Callable[[Any], Tensor]


def picked(raw: Any, output: Pick | None) -> Tensor:
    """The tensor that counts, of all that a model returned."""
    if output is not None:
        raw = output(raw) if callable(output) else _part(raw, output)
    if isinstance(raw, Tensor):
        return raw
    raise InputError(
        f"the model returned {_described(raw)}; one tensor (n, k) is needed. "
        f"Say which part it is with output=, e.g. output={_example(raw)}, or pass a function."
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
    (_not_probs if kind == "logits" else _only_probs)(z)
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


def _not_probs(z: Tensor) -> None:
    if len(z) and bool((are_probs(z) & (z.amin(dim=1) >= 0)).all()):
        raise InputError(
            f"all {len(z):,} rows of a batch are non-negative and sum to 1, so the model returns "
            "probabilities; pass outputs='probs', or let it return logits."
        )


def _only_probs(z: Tensor) -> None:
    wrong = ~are_probs(z)
    if bool(wrong.any()):
        i = int(wrong.nonzero()[0, 0])
        raise InputError(
            f"row {i} of what the model returned sums to {float(z[i].sum()):.6g} with a least value of "
            f"{float(z[i].min()):.6g}; probabilities are not negative and sum to 1. Pass outputs='logits' if these "
            "are logits."
        )


def _part(raw: Any, key: Any) -> Any:
    try:
        return raw[key] if isinstance(raw, (Mapping, tuple, list)) else getattr(raw, str(key))
    except (KeyError, IndexError, TypeError, AttributeError):
        raise InputError(f"the model returned {_described(raw)}; there is no part {key!r} in it.") from None


def _described(raw: Any) -> str:
    name = type(raw).__name__
    if isinstance(raw, Mapping):
        return f"a {name} with the keys {', '.join(map(repr, raw))}"
    if isinstance(raw, (tuple, list)):
        return f"a {name} of {len(raw)} ({', '.join(type(part).__name__ for part in raw)})"
    return f"a {name}"


def _example(raw: Any) -> str:
    if isinstance(raw, Mapping):
        return repr("logits" if "logits" in raw else next(iter(raw), "logits"))
    return "0" if isinstance(raw, (tuple, list)) else "'logits'"
