"""Log-probabilities of the tokens of an answer → confidences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from howsure.formats.logs.log import Confidence, Kind
from howsure.formats.logs.tree import Json, at, number


def sequence(answers: Sequence[list[Json]]) -> tuple[Confidence, ...]:
    r"""Two confidences from the token log-probabilities :math:`\ell_t` of each answer; none where
    no answer has any.

    `sequence_probability` is :math:`e^{\sum \ell_t}`, `mean_token_probability` the mean of
    :math:`e^{\ell_t}`. A token is a number or an object with `logprob`.

    >>> [float(c.value[0].round(3)) for c in sequence([[{"logprob": -0.1}, {"logprob": -0.2}]])]
    [0.741, 0.862]
    """
    tokens = [
        [number(at(token, "logprob")) if isinstance(token, dict) else number(token) for token in a]
        for a in answers
    ]
    known = [[t for t in row if t is not None] for row in tokens]
    if not any(known):
        return ()
    total = [float(np.exp(sum(row))) if row else np.nan for row in known]
    mean = [float(np.exp(row).mean()) if row else np.nan for row in known]
    return (
        Confidence("sequence_probability", Kind.SEQUENCE, np.array(total)),
        Confidence("mean_token_probability", Kind.SEQUENCE, np.array(mean)),
    )
