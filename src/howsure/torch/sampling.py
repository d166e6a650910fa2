"""Monte-Carlo dropout: several answers of one network, each with other units left out."""

# pyright: reportMissingImports=false, reportUnknownParameterType=false
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from howsure._core import check
from howsure._core.check import InputError
from howsure.predictions import Predictions
from howsure.predictions.columns import chunks
from howsure.torch._answers import rows
from howsure.torch._dropout import dropout_layers, stochastic
from howsure.torch._gather import gather
from howsure.torch._modes import device_of, evaluating, random_state
from howsure.torch._replay import Call, recording, tail
from howsure.torch._run import Options, Run


def mc_dropout(
    model: nn.Module,
    loader: Iterable[Any],
    *,
    passes: int = 25,
    p: float | None = None,
    seed: int = 0,
    **options: Unpack[Options],
) -> Predictions:
    r"""Several answers for each sample, with the dropout layers at work as in training.

    .. math:: \hat p = \frac1N \sum_{t=1}^{N} \mathrm{softmax}(z_t)

    Only dropout layers (`nn.Dropout`, `1d` to `3d`, alpha dropout) are random; batch norm and all else stay in
    evaluation mode. `p` replaces the probability of every layer (.002, .01, .05 in Finlay & Oberman). The same
    seed, batches and device give the same answers, and nobody else's random numbers change. Where nothing but layers in
    a row follow the first dropout, what comes before it runs once for each batch (Laves), provided that running the
    rest again repeats the first pass to the last bit. Passes that never differ are an error. Batches and options as for
    `collect`. Gal & Ghahramani 2016; Laves et al. 2019, section 2.

    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 3))
    >>> mc_dropout(model, [(torch.ones(4, 2), torch.tensor([0, 1, 2, 0]))], passes=10).samples
    10
    """
    check.at_least(passes, 1, "passes")
    check.at_least(seed, 0, "seed")
    run = Run(**options)
    with evaluating(model):
        layers = dropout_layers(model)
        with stochastic(layers, p):
            preds = gather(loader, _Draw(model, layers, run, passes, seed), run)
    _check_varied(preds)
    return preds


@dataclass(frozen=True)
class _Draw:
    """All passes of a batch."""

    model: nn.Module
    layers: Sequence[nn.Module]
    run: Run
    passes: int
    seed: int

    def __call__(self, inputs: Any, number: int) -> Tensor:
        """Pass t of batch b has a seed of its own, so both ways of running a pass give the same."""
        device = device_of(self.model)
        seeds = np.random.SeedSequence(self.seed, spawn_key=(number,)).generate_state(self.passes, np.uint64)
        with recording(self.model, self.layers) as calls, random_state(int(seeds[0]), device):
            first = self.run.answer(self.model, inputs)
        again = self._again(calls, first, int(seeds[0]))
        out = [first]
        for seed in seeds[1:]:
            with random_state(int(seed), device):
                out.append(again() if again else self.run.answer(self.model, inputs))
        return torch.stack([rows(z, self.run.outputs) for z in out])

    def _again(self, calls: Sequence[Call], first: Tensor, seed: int) -> Callable[[], Tensor] | None:
        """A pass without what comes before the first dropout, if that repeats the first pass to the last bit."""
        rest = tail(calls, first) if self.passes > 1 else None
        if rest is None:
            return None
        with random_state(seed, device_of(self.model)):
            return rest if torch.equal(rest(), first) else None


def _check_varied(preds: Predictions) -> None:
    v = preds.values
    if preds.samples > 1 and not any((v[1:, rows] != v[:1, rows]).any() for rows in chunks(preds.n, v[:, 0].size)):
        raise InputError(
            f"all {preds.samples} passes are equal, so the dropout layers had no effect: their p is 0, or forward "
            "does not call them. Pass p=, or call nn.Dropout layers in forward."
        )
