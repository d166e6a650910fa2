"""How far an input is from the nearest decision boundary, to first order."""

import numpy as np
import torch
from torch import Tensor, nn

from .batches import Normaliser

BATCH = 250


def boundary_distance(network: nn.Module, images: np.ndarray, normalise: Normaliser) -> np.ndarray:
    """Smallest over classes j of (z_top - z_j) / |grad (z_top - z_j)|_2, in units of the normalised input."""
    network.eval()
    parts = torch.from_numpy(images).split(BATCH)
    return torch.cat([distances(network, normalise(part)) for part in parts]).numpy()


def distances(network: nn.Module, inputs: Tensor) -> Tensor:
    """One backward pass per rank: at rank r each image asks for its own r-th class."""
    inputs = inputs.requires_grad_()
    ranked = network(inputs).sort(dim=1, descending=True).values
    gaps = ranked[:, :1] - ranked[:, 1:]
    slopes = [torch.autograd.grad(gap.sum(), inputs, retain_graph=True)[0].flatten(1).norm(dim=1) for gap in gaps.T]
    return (gaps.detach() / torch.stack(slopes, 1)).amin(1)
