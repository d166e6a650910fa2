"""One of several processes that share a data set: `python gloo_worker.py RANK PROCESSES
MEETING_FILE DATA.npz`.

Prints the value of every metric, bit for bit, as it is after all processes have met.
"""

import json
import sys

import numpy as np
import torch
import torch.distributed as dist
from torchmetrics import MetricCollection

from howsure.integrations import torchmetrics as made

CLASSES = (
    made.AECE,
    made.AUGRC,
    made.AUROC,
    made.AURC,
    made.Accuracy,
    made.Brier,
    made.EAURC,
    made.ECE,
    made.NLL,
)


def values(logits: np.ndarray, labels: np.ndarray, batch: int) -> dict[str, str]:
    """Every metric of the rows, counted in batches of this size."""
    metrics = MetricCollection([one(outputs="logits") for one in CLASSES])
    for start in range(0, len(labels), batch):
        rows = slice(start, start + batch)
        metrics.update(torch.from_numpy(logits[rows]), torch.from_numpy(labels[rows]))
    return {name: value.item().hex() for name, value in metrics.compute().items()}


if __name__ == "__main__":
    rank, processes = int(sys.argv[1]), int(sys.argv[2])
    dist.init_process_group(
        "gloo", init_method=f"file://{sys.argv[3]}", rank=rank, world_size=processes
    )
    with np.load(sys.argv[4], allow_pickle=False) as data:
        share = slice(rank, None, processes)
        found = values(data["logits"][share], data["labels"][share], batch=100 + 37 * rank)
    sys.stdout.write(json.dumps(found))
    dist.destroy_process_group()
