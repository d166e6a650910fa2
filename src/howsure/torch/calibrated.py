"""A network that is calibrated when it is deployed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from functools import partial
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from howsure._core import checks
from howsure._core.checks import InputError, is_row
from howsure.calibrators import (
    Identity,
    MatrixScaling,
    StructuredScaling,
    Temperature,
    VectorScaling,
)
from howsure.calibrators.calibrator import SMALLEST_PROBABILITY
from howsure.calibrators.linear import list_operators
from howsure.torch.collection import (
    Kind,
    Pick,
    Run,
    columns,
    evaluation_mode,
    find_device,
    pick_tensor,
    random_state,
)
from howsure.torch.sampling import Dropout, find_dropout_layers

TORCH_OPERATORS = {"Div": torch.div, "Mul": torch.mul, "MatMul": torch.matmul, "Add": torch.add}
# Those without a constant:
TORCH_MAPS: dict[str, Callable[[Tensor], Tensor]] = {
    "Softmax": partial(torch.softmax, dim=-1),
    "Log": torch.log,
}


class CalibratedModule(nn.Module):
    r"""A network with a fitted calibrator behind it: returns calibrated probabilities (n, k).

    .. math:: p = \frac1N \sum_{t=1}^{N} \mathrm{softmax}(z_t / T), \qquad p = \mathrm{softmax}(W z + b)

    `Temperature`, `VectorScaling`, `MatrixScaling`, `StructuredScaling` and `Identity` become constants of the
    module; they move with it and are in its state dict. Several answers z_t come from a list of models (an ensemble),
    from `passes` of MC dropout, or from a model that returns (s, n, k). A temperature then acts inside the average
    and the others on its log, as on Predictions. The masks of the passes are drawn once, from `seed`, for inputs of
    the shape of `example` (one batch; its size is free) and shared by all samples, so equal inputs have equal outputs
    in every runtime. `outputs` and `output` as for `collect`. An ordinary module: `torch.export.export` and
    `torch.onnx.export` take it. Guo et al. 2017; Laves et al. 2019, eq. 9.

    >>> from howsure.calibrators import Temperature
    >>> model = CalibratedModule(torch.nn.Identity(), Temperature(2.0))
    >>> model(torch.tensor([[2.0, 0.0]]))
    tensor([[0.7311, 0.2689]])
    """

    def __init__(
        self,
        model: nn.Module | Sequence[nn.Module],
        calibrator: Temperature | VectorScaling | MatrixScaling | StructuredScaling | Identity,
        *,
        outputs: Kind = "logits",
        output: Pick | None = None,
        passes: int = 1,
        seed: int = 0,
        example: object = None,
    ) -> None:
        super().__init__()
        made = list_operators(calibrator, "a network")
        self.run = Run(outputs, output)
        self.passes = checks.at_least(passes, 1, "passes")
        models = [model] if isinstance(model, nn.Module) else list(model)
        if passes > 1:
            if example is None:
                raise InputError(
                    "passes needs example=, one batch of inputs: the masks have the shape of what is dropped."
                )
            sources = np.random.SeedSequence(checks.at_least(seed, 0, "seed")).spawn(len(models))
            models = [
                fix_dropout(own, passes, source, example)
                for own, source in zip(models, sources, strict=True)
            ]
        self.models = nn.ModuleList(models)
        self.inside = isinstance(calibrator, (Temperature, Identity))
        self.classes = None if calibrator.fitted is None else calibrator.fitted.k
        self.operators = [name for name, _ in made]
        # In the precision of the models, but not below float32.
        wide = any(p.dtype == torch.float64 for p in self.models.parameters())
        dtype = torch.float64 if wide else torch.float32
        for i, (_, values) in enumerate(made):
            if values is None:
                continue
            constant = torch.tensor(values, dtype=dtype, device=find_device(self.models))
            self.register_buffer(f"constant_{i}", constant)

    def forward(self, *inputs: object, **named: object) -> Tensor:
        """Calibrated probabilities."""
        z = self._logits(
            [
                self._pass(number, m, inputs, named)
                for number in range(self.passes)
                for m in self.models
            ]
        )
        if z.ndim == 3 and not self.inside:
            z = z.softmax(dim=-1).mean(dim=0).clamp(min=SMALLEST_PROBABILITY).log()
        for i, name in enumerate(self.operators):
            if name in TORCH_MAPS:
                z = TORCH_MAPS[name](z)
            else:
                z = TORCH_OPERATORS[name](z, self.get_buffer(f"constant_{i}").to(z.dtype))
        p = z.softmax(dim=-1)
        return p.mean(dim=0) if p.ndim == 3 else p

    def _pass(
        self, number: int, model: nn.Module, inputs: tuple[object, ...], named: dict[str, object]
    ) -> Tensor:
        for module in model.modules():
            if isinstance(module, FixedDropout):
                module.begin(number)
        return pick_tensor(model(*inputs, **named), self.run.output)

    def _logits(self, answers: list[Tensor]) -> Tensor:
        """(n, k), or (s, n, k) where there are several answers."""
        rows = [
            columns(z.float() if z.element_size() < 4 else z, self.run.outputs) for z in answers
        ]
        z = rows[0] if len(rows) == 1 else torch.stack(rows)
        if self.classes is not None and z.shape[-1] != self.classes:
            raise InputError(
                f"the model gives {z.shape[-1]} classes; the calibrator was fitted for {self.classes}."
            )
        return z if self.run.outputs == "logits" else z.clamp(min=SMALLEST_PROBABILITY).log()


class FixedDropout(nn.Module):
    """One mask for each pass and call, the same for all samples. Every kind of dropout is x · scale
    + shift.
    """

    def __init__(self, masks: Sequence[tuple[Tensor, Tensor]]) -> None:
        super().__init__()
        self.number = self.call = 0
        for i, (scale, shift) in enumerate(masks):
            self.register_buffer(f"scale_{i}", scale)
            self.register_buffer(f"shift_{i}", shift)

    def begin(self, number: int) -> None:
        """The next calls belong to this pass."""
        self.number, self.call = number, 0

    def forward(self, x: Tensor) -> Tensor:
        """The input with what this pass leaves out."""
        scale, shift = (
            self.get_buffer(f"{name}_{self.call}")[self.number] for name in ("scale", "shift")
        )
        self.call += 1
        return x * scale + shift


def fix_dropout(
    model: nn.Module, passes: int, source: np.random.SeedSequence, example: object
) -> nn.Module:
    """A copy of `model` that shares its weights and has fixed dropout, for inputs of the shape of
    `example`.
    """
    held = {id(t): t for t in (*model.parameters(), *model.buffers())}
    made: nn.Module = deepcopy(model, held)
    layers = find_dropout_layers(made)
    calls = _record_dropout_inputs(made, layers, example)
    seeds = iter(source.generate_state(sum(map(len, calls.values())), np.uint64).tolist())
    swapped: dict[nn.Module, FixedDropout] = {}
    for layer in layers:
        masks = [
            _draw_masks(layer, like.expand(passes, *like.shape[1:]), next(seeds))
            for like in calls[layer]
        ]
        swapped[layer] = FixedDropout(masks)
    named = cast("Iterable[tuple[str, nn.Module]]", made.named_modules(remove_duplicate=False))
    for name, module in list(named):
        if module in swapped:
            made.set_submodule(name, swapped[module])
    return made


def _record_dropout_inputs(
    model: nn.Module, layers: Sequence[Dropout], example: object
) -> dict[nn.Module, list[Tensor]]:
    """The first row of what each layer is given, for each of its calls."""
    calls: dict[nn.Module, list[Tensor]] = {layer: [] for layer in layers}

    def note(layer: nn.Module, args: tuple[Tensor, ...]) -> None:
        calls[layer].append(args[0][:1].detach())

    hooks = [layer.register_forward_pre_hook(note) for layer in layers]
    with evaluation_mode(model), torch.no_grad():
        model(*example) if is_row(example) else model(example)
    for hook in hooks:
        hook.remove()
    unused = sum(not own for own in calls.values())
    if unused:
        raise InputError(
            f"{unused} of {len(layers)} dropout layers were not called, so their masks cannot be drawn."
        )
    return calls


def _draw_masks(layer: Dropout, like: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Scale and shift, one row for each pass: what the layer makes of ones and zeros."""
    layer.training, layer.inplace = True, False
    with random_state(seed, like.device), torch.no_grad():
        shift = layer(torch.zeros_like(like))
    with random_state(seed, like.device), torch.no_grad():
        return layer(torch.ones_like(like)) - shift, shift
