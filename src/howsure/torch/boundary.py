"""How far an input is from the nearest decision boundary, to first order."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Unpack, cast

import numpy as np
import torch
from torch import Tensor, nn

from howsure._core.checks import Floats, InputError
from howsure.torch.collection import (
    Kind,
    Options,
    Run,
    are_probs,
    evaluation_mode,
    parse_batch,
    pick_tensor,
    random_state,
    rows,
    show_progress,
)


def boundary_distance(
    model: nn.Module, loader: Iterable[object], *, norm: float = 2, **options: Unpack[Options]
) -> Floats:
    r"""Distance of each input to the boundary between its two most likely classes i and j, to first
    order.

    .. math:: d = \frac{h_i - h_j}{\|\nabla_x h_i - \nabla_x h_j\|_q}, \qquad \frac1p + \frac1q = 1

    p = `norm` is the norm in which the distance is measured (1, 2, ..., math.inf), q its dual. h are the logits; with
    `outputs="probs"` the softmax outputs, or what the model returns where that is probabilities. Exact for linear
    models and logits. One backward pass for each batch: in evaluation mode no sample depends on another. `output`,
    `device` and `progress` as for `collect`; labels are not needed. 0 where the two outputs are equal, inf where only
    their gradients are. A score without bound, higher = trust more, for ranking metrics only. Elsayed et al. 2018;
    Vemuri 2020, chapter 6.

    >>> import torch
    >>> model = torch.nn.Linear(2, 2, bias=False)
    >>> _ = model.weight.data.copy_(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
    >>> boundary_distance(model, [torch.tensor([[2.0, 0.25]])])
    array([1.])
    """
    if not norm >= 1:
        raise InputError(f"norm is {norm}; a number of at least 1, or math.inf, is needed.")
    run, dual = Run(**options), _compute_dual_norm(norm)
    with (
        evaluation_mode(model),
        torch.enable_grad(),
        torch.inference_mode(False),
        random_state(None, None),
    ):
        batches = loader
        if run.progress:
            batches = show_progress(loader, "distances")
        parts = [_measure_batch(model, parse_batch(batch).inputs, run, dual) for batch in batches]
    if not parts:
        raise InputError("the loader gave no batch; at least one sample is needed.")
    return np.concatenate(parts)


def _compute_dual_norm(norm: float) -> float:
    if norm == 1:
        return inf
    return 1.0 if norm == inf else norm / (norm - 1)


def _measure_batch(model: nn.Module, inputs: object, run: Run, dual: float) -> Floats:
    if not isinstance(inputs, Tensor) or not inputs.is_floating_point():
        found = inputs.dtype if isinstance(inputs, Tensor) else type(inputs).__name__
        raise InputError(f"the inputs are {found}; a distance needs one tensor of floats.")
    device = run.place(model)
    if device is not None:
        inputs = inputs.to(device)
    x = inputs.detach().clone().requires_grad_()
    # A first layer may change its input in place, so it gets a clone.
    h = _choose_outputs(pick_tensor(model(x.clone()), run.output), run.outputs)
    gap = _measure_gap(h)
    (slope,) = torch.autograd.grad(gap.sum(), x, allow_unused=True)
    gap = gap.detach().double()
    distance = torch.where(gap == 0, torch.zeros_like(gap), gap / _measure_slope(slope, dual))
    return distance.numpy(force=True)


def _measure_slope(slope: Tensor | None, dual: float) -> Tensor:
    """The norm of each sample's gradient; 0 where the output does not depend on the input."""
    if slope is None:
        return torch.zeros((), dtype=torch.float64)
    norm = torch.linalg.vector_norm  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType] - has no types
    return cast("Tensor", norm(slope.flatten(1).double(), dual, dim=1))


def _choose_outputs(z: Tensor, kind: Kind) -> Tensor:
    """The outputs whose difference vanishes on the boundary."""
    wide = z.ndim == 2 and z.shape[1] > 1
    if kind == "probs" and wide and not bool(are_probs(z).all()):
        return rows(z, "logits").softmax(dim=1)
    return rows(z, kind)


def _measure_gap(h: Tensor) -> Tensor:
    """The largest output minus the second largest; among equals the smaller class number comes
    first.
    """
    i = h.argmax(dim=1, keepdim=True)
    j = h.detach().scatter(1, i, -inf).argmax(dim=1, keepdim=True)
    return (h.gather(1, i) - h.gather(1, j)).squeeze(1)
