"""How big a network is: parameters and multiply-adds."""

import math

import torch
from torch import Tensor, nn

COUNTED = (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)


def parameters(network: nn.Module) -> int:
    """Trainable numbers, batch norm included."""
    return sum(p.numel() for p in network.parameters())


def multiply_adds(network: nn.Module, channels: int, height: int, width: int) -> int:
    """Multiplications of one image's forward pass in convolutions and linear layers, as papers
    count FLOPs.
    """
    total = 0

    def add(module: nn.Module, _: object, output: Tensor) -> None:
        nonlocal total
        total += per_output(module) * output[0].numel()

    hooks = [m.register_forward_hook(add) for m in network.modules() if isinstance(m, COUNTED)]
    try:
        network.eval()
        with torch.inference_mode():
            network(
                torch.zeros(1, channels, height, width, device=next(network.parameters()).device)
            )
    finally:
        for hook in hooks:
            hook.remove()
    return total


def per_output(module: nn.Module) -> int:
    """Multiplications behind one output value."""
    match module:
        case nn.Linear():
            return module.in_features
        case nn.ConvTranspose2d():
            return module.in_channels * math.prod(module.kernel_size) // math.prod(module.stride)
        case nn.Conv2d():
            return module.in_channels // module.groups * math.prod(module.kernel_size)
    raise TypeError(f"{type(module).__name__} is not counted.")
