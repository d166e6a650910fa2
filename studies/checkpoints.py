"""Weights and optimiser state on disk, written whole or not at all."""

import os
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Place:
    """A place inside an epoch: how many batches are done, their losses, and where the two random
    streams stand.
    """

    epoch: int
    losses: list[float]
    dropout_random: Tensor
    data_random: Tensor


@dataclass(frozen=True)
class Checkpoints:
    """The folder of one run: `state.pt` to go on from, `epoch_NN.pt` the weights after each epoch,
    and for long epochs `inside.pt`, a place in the middle of one."""

    folder: Path

    def weights(self, epoch: int) -> Path:
        return self.folder / f"epoch_{epoch:03d}.pt"

    def save(
        self,
        epoch: int,
        network: nn.Module,
        opt: torch.optim.Optimizer,
        history: list[dict[str, float]],
    ) -> None:
        """After `epoch` (from 1). The weights come first, so `state.pt` never speaks of a file that
        is not there.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        write(network.state_dict(), self.weights(epoch))
        state = {"epoch": epoch, "optimiser": opt.state_dict(), "history": history}
        write(state, self.folder / "state.pt")

    def load(
        self, network: nn.Module, opt: torch.optim.Optimizer
    ) -> tuple[int, list[dict[str, float]]]:
        """Restore the last finished epoch; (0, []) when there is none."""
        path = self.folder / "state.pt"
        if not path.exists():
            return 0, []
        state = torch.load(path, weights_only=True)
        network.load_state_dict(torch.load(self.weights(state["epoch"]), weights_only=True))
        opt.load_state_dict(state["optimiser"])
        return state["epoch"], state["history"]

    def save_inside(self, place: Place, network: nn.Module, opt: torch.optim.Optimizer) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        state = {
            "weights": network.state_dict(),
            "optimiser": opt.state_dict(),
            "place": vars(place),
        }
        write(state, self.folder / "inside.pt")

    def load_inside(
        self, epoch: int, network: nn.Module, opt: torch.optim.Optimizer
    ) -> Place | None:
        """Restore the middle of this epoch (from 0); None where nothing was saved in it."""
        path = self.folder / "inside.pt"
        if not path.exists():
            return None
        state = torch.load(path, weights_only=True)
        place = Place(**state["place"])
        if place.epoch != epoch:
            return None
        network.load_state_dict(state["weights"])
        opt.load_state_dict(state["optimiser"])
        return place

    def load_weights(self, network: nn.Module, epoch: int) -> nn.Module:
        network.load_state_dict(torch.load(self.weights(epoch), weights_only=True))
        return network


def write(value: object, path: Path) -> None:
    """Through a temporary file: a process killed while writing leaves the old file, not half of a
    new one.
    """
    partial = path.with_suffix(".partial")
    torch.save(value, partial)
    os.replace(partial, path)
