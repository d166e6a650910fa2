"""A network that is calibrated when it is deployed."""

# pyright: reportMissingImports=false, reportUnknownParameterType=false, reportUntypedBaseClass=false
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from howsure._core import check
from howsure._core.check import Floats, InputError
from howsure.calibrators import Identity, MatrixScaling, Temperature, VectorScaling
from howsure.calibrators._logits import SMALLEST
from howsure.calibrators._steps import steps
from howsure.torch._answers import Kind, Pick, columns, picked
from howsure.torch._fixed import FixedDropout, fixed
from howsure.torch._modes import device_of
from howsure.torch._run import Run

OPERATORS = {"Div": torch.div, "Mul": torch.mul, "MatMul": torch.matmul, "Add": torch.add}


class CalibratedModule(nn.Module):
    r"""A network with a fitted calibrator behind it: returns calibrated probabilities (n, k).

    .. math:: p = \frac1N \sum_{t=1}^{N} \mathrm{softmax}(z_t / T), \qquad p = \mathrm{softmax}(W z + b)

    `Temperature`, `VectorScaling`, `MatrixScaling` and `Identity` become constants of the module; they move with it and
    are in its state dict. Several answers z_t come from a list of models (an ensemble), from `passes` of MC dropout, or
    from a model that returns (s, n, k). A temperature then acts inside the average and the others on its log, as on
    Predictions. The masks of the passes are drawn once, from `seed`, for inputs of the shape of `example` (one batch;
    its size is free) and shared by all samples, so equal inputs have equal outputs in every runtime. `outputs` and
    `output` as for `collect`. An ordinary module: `torch.export.export` and `torch.onnx.export` take it. Guo et al.
    2017; Laves et al. 2019, eq. 9.

    >>> from howsure.calibrators import Temperature
    >>> model = CalibratedModule(torch.nn.Identity(), Temperature(2.0))
    >>> model(torch.tensor([[2.0, 0.0]]))
    tensor([[0.7311, 0.2689]])
    """

    def __init__(
        self,
        model: nn.Module | Sequence[nn.Module],
        calibrator: Temperature | VectorScaling | MatrixScaling | Identity,
        *,
        outputs: Kind = "logits",
        output: Pick | None = None,
        passes: int = 1,
        seed: int = 0,
        example: Any = None,
    ) -> None:
        super().__init__()
        made = steps(calibrator, "a network")
        self.run = Run(outputs, output)
        self.passes = check.at_least(passes, 1, "passes")
        models = [model] if isinstance(model, nn.Module) else list(model)
        self.models = nn.ModuleList(_with_masks(models, passes, seed, example) if passes > 1 else models)
        self.inside = isinstance(calibrator, (Temperature, Identity))
        self.classes = None if calibrator.fitted is None else calibrator.fitted.k
        self.operators = [name for name, _ in made]
        for i, (_, constant) in enumerate(made):
            self.register_buffer(f"constant_{i}", _tensor(constant, self.models))

    def forward(self, *inputs: Any, **named: Any) -> Tensor:
        """Calibrated probabilities."""
        z = self._logits([self._pass(number, m, inputs, named) for number in range(self.passes) for m in self.models])
        if z.ndim == 3 and not self.inside:
            z = z.softmax(dim=-1).mean(dim=0).clamp(min=SMALLEST).log()
        for i, name in enumerate(self.operators):
            z = OPERATORS[name](z, self.get_buffer(f"constant_{i}").to(z.dtype))
        p = z.softmax(dim=-1)
        return p.mean(dim=0) if p.ndim == 3 else p

    def _pass(self, number: int, model: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> Tensor:
        for module in model.modules():
            if isinstance(module, FixedDropout):
                module.begin(number)
        return picked(model(*inputs, **named), self.run.output)

    def _logits(self, answers: list[Tensor]) -> Tensor:
        """(n, k), or (s, n, k) where there are several answers."""
        rows = [columns(z.float() if z.element_size() < 4 else z, self.run.outputs) for z in answers]
        z = rows[0] if len(rows) == 1 else torch.stack(rows)
        if self.classes is not None and z.shape[-1] != self.classes:
            raise InputError(f"the model gives {z.shape[-1]} classes; the calibrator was fitted for {self.classes}.")
        return z if self.run.outputs == "logits" else z.clamp(min=SMALLEST).log()


def _with_masks(models: Sequence[nn.Module], passes: int, seed: int, example: Any) -> list[nn.Module]:
    if example is None:
        raise InputError("passes needs example=, one batch of inputs: the masks have the shape of what is dropped.")
    sources = np.random.SeedSequence(check.at_least(seed, 0, "seed")).spawn(len(models))
    return [fixed(model, passes, source, example) for model, source in zip(models, sources, strict=True)]


def _tensor(constant: Floats, models: nn.Module) -> Tensor:
    """In the precision of the models, but not below float32."""
    wide = any(p.dtype == torch.float64 for p in models.parameters())
    return torch.tensor(constant, dtype=torch.float64 if wide else torch.float32, device=device_of(models))
