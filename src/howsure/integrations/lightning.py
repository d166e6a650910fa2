"""For Lightning: a callback that logs how sure the model is, and whether it should be, after each
validation epoch.

Needs the extra `lightning`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from howsure._core.checks import InputError, is_mapping, need
from howsure.predictions.frames import OutputKind, check_output_kind

need("lightning.pytorch", for_="howsure.integrations.lightning", extra="lightning")

from lightning.pytorch import Callback, LightningModule, Trainer  # noqa: E402
from torchmetrics import MetricCollection  # noqa: E402

from howsure.integrations.torchmetrics import AURC, ECE, NLL  # noqa: E402

__all__ = ["ConfidenceMonitor"]

Read: TypeAlias = Callable[..., tuple[object, object]]


class ConfidenceMonitor(Callback):
    """Logs ECE, AURC and NLL of the validation data as `val_ece`, `val_aurc` and `val_nll`.

    `outputs` says what the model gives, "logits" or "probs". `validation_step` returns a dict that
    holds it under this name, and `labels`; or `read(step, batch)` gives both from what the step
    returned and from the batch. `metrics` is a torchmetrics collection to log instead. Memory is
    constant, several processes give the value of one, and each of several loaders is logged under
    its own name, as Lightning does. The sanity check is left out.

    >>> ConfidenceMonitor(outputs="logits").names
    ['val_aurc', 'val_ece', 'val_nll']
    """

    def __init__(
        self,
        *,
        outputs: OutputKind,
        read: Read | None = None,
        metrics: MetricCollection | None = None,
        prefix: str = "val_",
    ) -> None:
        self.outputs: OutputKind = check_output_kind(outputs)
        self.read = self._from_step if read is None else read
        usual = {
            "aurc": AURC(outputs=outputs),
            "ece": ECE(outputs=outputs),
            "nll": NLL(outputs=outputs),
        }
        self.metrics = MetricCollection(usual) if metrics is None else metrics
        self.prefix = prefix
        self._counted: dict[int, MetricCollection] = {}

    @property
    def names(self) -> list[str]:
        """What is logged where there is one loader."""
        return [f"{self.prefix}{name}" for name in self.metrics]

    def on_validation_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:  # noqa: ARG002
        """Begin anew."""
        self._counted = {}

    def on_validation_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: object,
        batch: object,
        batch_idx: int,  # noqa: ARG002
        dataloader_idx: int = 0,
    ) -> None:
        """Count a batch."""
        if trainer.sanity_checking:
            return
        if dataloader_idx not in self._counted:
            self._counted[dataloader_idx] = self.metrics.clone(prefix=self.prefix).to(
                pl_module.device
            )
        self._counted[dataloader_idx].update(*self.read(outputs, batch))

    def on_validation_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:  # noqa: ARG002
        """Log the values of all batches and processes."""
        for loader, counted in self._counted.items():
            suffix = f"/dataloader_idx_{loader}" if len(self._counted) > 1 else ""
            values = {name + suffix: value.float() for name, value in counted.compute().items()}
            pl_module.log_dict(values, add_dataloader_idx=False)

    def _from_step(self, step: object, batch: object) -> tuple[object, object]:  # noqa: ARG002
        if is_mapping(step) and self.outputs in step and "labels" in step:
            return step[self.outputs], step["labels"]
        returned = type(step).__name__
        if is_mapping(step):
            returned = f"a dict with {', '.join(map(repr, step))}"
        raise InputError(
            f"validation_step returned {returned}; a dict with {self.outputs!r} and 'labels' is needed. "
            "Return both, or give read= to take them from elsewhere."
        )
