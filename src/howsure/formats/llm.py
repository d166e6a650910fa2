"""Answers of a language model: what they say about how sure it is.

Three kinds of evidence, each a part of a file:

- `logprob`, the log-probability of the answer: the confidence is its exponential. `logprobs`, one number per
  answer option, are logits over the options.
- `confidence`, stated by the model: a number from 0 to 1, or a percentage with its sign ("85%").
- `samples`, several answers to the same question: the confidence is the share that agrees with `answer`, or with
  the most frequent one where no `answer` is given (Wang et al. 2023, self-consistency).

Two texts are the same answer when they differ only in case or in white space.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from howsure._core import check
from howsure._core.check import Array, Bools, Floats, InputError

__all__ = ["agreement", "from_logprob", "majority", "same_answer"]


def from_logprob(logprob: Array) -> Floats:
    r"""The confidence :math:`e^{\ell}` of an answer whose log-probability is :math:`\ell \le 0`.

    >>> from_logprob(np.log([0.5, 1.0]))
    array([0.5, 1. ])
    """
    column = check.column(logprob, "logprob").astype(np.float64)
    bad = column > 0
    if bad.any():
        i = check.find_first(bad)
        need = "a log-probability is at most 0, so name a probability otherwise"
        raise InputError("logprob", row=i, got=f"is {column[i]:g}", need=need)
    return np.exp(column)


def majority(samples: Sequence[str]) -> str:
    """The most frequent answer; of several, the one that comes first in the alphabet, whatever the
    order.

    >>> majority(["Paris", "paris ", "Lyon"]), majority(["b", "a"])
    ('Paris', 'a')
    """
    counts = Counter(map(_plain, samples))
    best = min(counts, key=lambda answer: (-counts[answer], answer))
    return min(s.strip() for s in samples if _plain(s) == best)


def agreement(samples: Sequence[Sequence[str]], answers: Sequence[str]) -> Floats:
    """The share of each row's samples that are the same as the row's answer.

    >>> agreement([["Paris", "paris ", "Lyon"], ["b", "a"]], ["Paris", "c"])
    array([0.66666667, 0. ])
    """
    shares = [
        sum(_plain(s) == _plain(a) for s in row) / len(row)
        for row, a in zip(samples, answers, strict=True)
    ]
    return np.array(shares, dtype=np.float64)


def same_answer(prediction: Array, labels: Array) -> Bools:
    """Whether prediction and label are the same: numbers as numbers, texts without regard to case
    and white space.

    >>> same_answer(np.array(["Paris", "42"]), np.array([" paris", "41"]))
    array([ True, False])
    """
    if prediction.dtype.kind in "biuf" and labels.dtype.kind in "biuf":
        return prediction == labels
    pairs = zip(prediction.tolist(), labels.tolist(), strict=True)
    return np.array([_plain(str(a)) == _plain(str(b)) for a, b in pairs], dtype=np.bool_)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
