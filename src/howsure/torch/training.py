"""Losses that make a network less sure or let it know which answers to give, and a log of its
confidence while it learns.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from howsure._core import strict_json
from howsure._core.checks import InputError
from howsure._core.file_access import check_target, write_text
from howsure._core.text import format_spreadsheet_cell
from howsure.metrics import accuracy, aurc, ece, nll
from howsure.predictions import Predictions
from howsure.scores import max_prob
from howsure.tallies.building import tally
from howsure.torch.collection import Kind, Options, Pick, collect

Row: TypeAlias = dict[str, int | float | str]


def label_smoothing(logits: Tensor, labels: Tensor, *, epsilon: float = 0.1) -> Tensor:
    r"""Cross entropy with a share of the label given to all classes alike.

    .. math:: -\frac1n \sum_i \sum_k \big((1 - \varepsilon) 1[y_i = k] + \tfrac{\varepsilon}{K}\big) \log p_{ik}

    0 is plain cross entropy. Vemuri's "0.9" is the weight of the label, epsilon = .1. Szegedy et al. 2016.

    >>> label_smoothing(torch.tensor([[4.0, 0.0]]), torch.tensor([0]), epsilon=0.1)
    tensor(0.2181)
    """
    if not 0 <= epsilon <= 1:
        raise InputError(f"epsilon is {epsilon:g}; a share from 0 to 1 is needed.")
    return F.cross_entropy(logits, labels, label_smoothing=epsilon)


def confidence_penalty(logits: Tensor, labels: Tensor, *, beta: float = 0.1) -> Tensor:
    r"""Cross entropy minus `beta` times the entropy of the answer: being sure costs.

    .. math:: \frac1n \sum_i \big(-\log p_{i y_i} - \beta H(p_i)\big)

    The entropy is in nats. The paper prints a sum over the data; this is the mean, so that `beta` does not depend on
    the size of the batch. Pereyra et al. 2017; Laves et al. 2019, eq. 10 (beta = .1).

    >>> confidence_penalty(torch.tensor([[4.0, 0.0]]), torch.tensor([0]), beta=0.1)
    tensor(0.0091)
    """
    if not beta >= 0:
        raise InputError(f"beta is {beta:g}; a number that is not negative is needed.")
    log_p = F.log_softmax(logits, dim=1)
    entropy = -(log_p.exp() * log_p).sum(dim=1).mean()
    return F.nll_loss(log_p, labels) - beta * entropy


def selective_loss(logits: Tensor, labels: Tensor, *, width: float = 0.05) -> Tensor:
    r"""A differentiable stand-in for AURC: the mean risk over all coverages of the batch, with soft
    ranks.

    .. math:: \sum_i w(r_i)\, \ell_i, \quad w(r) = \frac{\psi(n + 1) - \psi(r)}{n}, \quad
        r_i = 1 + \sum_{j \ne i} \sigma\Big(\frac{c_j - c_i}{\mathrm{width}}\Big)

    c is the top probability, the loss of a sample its cross entropy, and w(r) is how much AURC counts the sample of
    rank r (1 = most trusted). As `width` goes to 0 this becomes the AURC of that loss in the batch, where no
    confidences are equal; a large `width` gives equal ranks to all, which is a multiple of plain cross entropy.
    Gradients go through the losses and through the ranks: it pays to be right, and to doubt what is wrong. Limits:
    ranks are those inside the batch, so batches should be large; the least trusted samples count little, so begin
    with plain cross entropy or add it; memory grows with the square of the batch. Ding et al. 2020, section 4.1 (iv)
    proposes AURC as an objective and leaves the form open; this form is ours.

    >>> logits = torch.tensor([[4.0, 0.0], [1.0, 0.0]])
    >>> sure_and_wrong, sure_and_right = torch.tensor([1, 0]), torch.tensor([0, 1])
    >>> bool(selective_loss(logits, sure_and_right) < selective_loss(logits, sure_and_wrong))
    True
    """
    if not width > 0:
        raise InputError(f"width is {width:g}; a number above 0 is needed.")
    log_p = F.log_softmax(logits, dim=1)
    trust = log_p.amax(dim=1).exp()
    n = torch.tensor(float(len(trust)), dtype=trust.dtype, device=trust.device)
    ahead = (
        torch.sigmoid((trust[None, :] - trust[:, None]) / width).sum(dim=1) - 0.5
    )  # each is half ahead of itself
    weight = (torch.digamma(n + 1) - torch.digamma(1 + ahead)) / n
    return (weight * F.nll_loss(log_p, labels, reduction="none")).sum()


def mixup(
    inputs: Tensor, labels: Tensor, *, classes: int, rng: np.random.Generator, alpha: float = 0.2
) -> tuple[Tensor, Tensor]:
    r"""A batch mixed with itself in another order, and its soft labels for `F.cross_entropy`.

    .. math:: \tilde x = \lambda x_i + (1 - \lambda) x_j, \quad \tilde y = \lambda y_i + (1 - \lambda) y_j, \quad
        \lambda \sim \mathrm{Beta}(\alpha, \alpha)

    One lambda for the batch, as in the paper. All randomness comes from `rng`. Zhang et al. 2018; it calibrates too:
    Thulasidasan et al. 2019.

    >>> x, y = mixup(torch.eye(2), torch.tensor([0, 1]), classes=2, rng=np.random.default_rng(1))
    >>> x.shape, torch.equal(x, y)
    (torch.Size([2, 2]), True)
    """
    if not alpha > 0:
        raise InputError(f"alpha is {alpha:g}; a number above 0 is needed.")
    if len(inputs) != len(labels):
        raise InputError(
            f"inputs has {len(inputs):,} rows, labels has {len(labels):,}; they must belong together."
        )
    share = float(rng.beta(alpha, alpha))
    other = torch.as_tensor(rng.permutation(len(labels)), device=inputs.device)
    soft = F.one_hot(labels, classes).to(inputs.dtype)
    return share * inputs + (1 - share) * inputs[other], share * soft + (1 - share) * soft[
        other.to(soft.device)
    ]


class EpochLog:
    """Accuracy, NLL, ECE and AURC of a network after each epoch, on as many sets as you like.

    `loaders` names the sets: {"train": ..., "val": ...}. Call `record()` at the end of an epoch; it
    changes neither the network nor the random state, so training is the same with and without it.
    `rows` are plain dicts, one for each epoch and set; with `path` (.csv or .json) all of them are
    written after each epoch, whole or not at all. A training loader that augments is measured on
    what it gives. ECE has 15 equal bins, AURC ranks by the top probability. `outputs`, `output` and
    `device` as for `collect`.

    >>> data = [(torch.eye(2), torch.tensor([0, 1]))]
    >>> log = EpochLog(torch.nn.Linear(2, 2), {"train": data, "val": data})
    >>> rows = log.record(learning_rate=0.1)
    >>> [(row["epoch"], row["split"], row["n"]) for row in log.rows]
    [(1, 'train', 2), (1, 'val', 2)]
    """

    def __init__(
        self,
        model: nn.Module,
        loaders: Mapping[str, Iterable[object]],
        *,
        path: str | os.PathLike[str] | None = None,
        outputs: Kind = "logits",
        output: Pick | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        self.model, self.loaders = model, loaders
        self.options: Options = {"outputs": outputs, "output": output, "device": device}
        self.path = None
        if path is not None:
            self.path = Path(path)
            if self.path.suffix.lower() not in (".csv", ".json"):
                raise InputError(f"{self.path.name} must end in .csv or .json.")
            check_target(self.path)
        self.rows: list[Row] = []

    def record(self, **beside: float | str) -> list[Row]:
        """The rows of this epoch, measured now; `beside` is added to each of them."""
        return self.add(
            {
                name: collect(self.model, loader, **self.options)
                for name, loader in self.loaders.items()
            },
            **beside,
        )

    def add(self, predictions: Mapping[str, Predictions], **beside: float | str) -> list[Row]:
        """The same from predictions that are already there."""
        epoch = 1
        if self.rows:
            epoch = int(self.rows[-1]["epoch"]) + 1
        made: list[Row] = []
        for name, preds in predictions.items():
            t = tally(max_prob(preds), correct=preds.correct)
            measured: Row = {
                "n": preds.n,
                "accuracy": accuracy(preds),
                "nll": nll(preds),
                "ece": ece(t),
                "aurc": aurc(t),
            }
            made.append({"epoch": epoch, "split": name, **beside, **measured})
        self.rows += made
        if self.path is not None:
            text = strict_json.dump_pretty(strict_json.to_plain(self.rows))
            if self.path.suffix.lower() == ".csv":
                text = _format_csv(self.rows)
            write_text(self.path, text)
        return made


def _format_csv(rows: list[Row]) -> str:
    out = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = csv.DictWriter(out, names, lineterminator="\n")
    table.writeheader()
    table.writerows(
        {name: format_spreadsheet_cell(value) for name, value in row.items()} for row in rows
    )
    return out.getvalue()
