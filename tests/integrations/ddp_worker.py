"""Lightning validates in one and in two processes: `python -m integrations.ddp_worker FOLDER`
prints what each logs.
"""

import json
import sys
import warnings

import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader

from howsure.integrations.lightning import ConfidenceMonitor
from integrations.digits import digits


class Given(pl.LightningModule):
    """Some of the pixels are the logits: the same bits however samples are put into batches."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = torch.nn.Linear(1, 1)

    def validation_step(self, batch: list[torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"logits": 8 * batch[0][:, 10:20], "labels": batch[1]}


def logged(processes: int, folder: str) -> dict[str, str]:
    """What the callback logs, bit for bit."""
    trainer = pl.Trainer(
        accelerator="cpu",
        devices=processes,
        strategy="ddp_fork" if processes > 1 else "auto",
        callbacks=[ConfidenceMonitor(outputs="logits")],
        default_root_dir=folder,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    data = torch.utils.data.Subset(digits()[1], range(596))  # an even number: none is drawn twice
    (found,) = trainer.validate(Given(), DataLoader(data, batch_size=50), verbose=False)
    return {name: float(value).hex() for name, value in found.items()}


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # Lightning's advice on workers and devices
    sys.stdout.write("\n" + json.dumps([logged(processes, sys.argv[1]) for processes in (2, 1)]))
