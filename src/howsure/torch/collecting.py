"""Predictions of a network for everything that a loader gives."""

# pyright: reportMissingImports=false, reportUnknownParameterType=false, reportUnknownLambdaType=false
from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

from torch import nn

from howsure.predictions import Predictions
from howsure.torch._gather import gather
from howsure.torch._modes import evaluating
from howsure.torch._run import Options, Run


def collect(model: nn.Module, loader: Iterable[Any], **options: Unpack[Options]) -> Predictions:
    """The predictions of `model` for all samples of `loader`.

    A batch is (inputs, labels), (inputs, labels, ids) or a dict with `labels` and perhaps `ids`, whose other entries
    go to the model by name. The model runs in evaluation mode on the device of its parameters; afterwards each
    submodule is in the mode in which it was, and the random state is untouched. Options, shared by `mc_dropout`,
    `ensemble` and `snapshot_ensemble`:

    - `outputs="logits"` or `"probs"`: what the model returns. It is never guessed, and probabilities that are called
      logits are an error.
    - `output=`: which part, where a model returns more than a tensor: a key, a position or a function.
    - `device=`: where the inputs go, if not to the device of the parameters.
    - `labels=False`: there are no labels, or they do not matter.
    - `path=`: also write the predictions, in the format of its suffix, whole or not at all.
    - `memory=`: bytes of answers (default 1 GiB) beyond which they go to a file without a name, beside `path` or in the
      temporary folder, and are mapped from there.
    - `progress=False`: no bar; else there is one on a terminal for what takes over a second.

    >>> import torch
    >>> model = torch.nn.Linear(2, 3)
    >>> collect(model, [(torch.zeros(4, 2), torch.tensor([0, 1, 2, 0]))]).n
    4
    """
    run = Run(**options)
    with evaluating(model):
        return gather(loader, lambda inputs, _: run.rows(model, inputs), run)
