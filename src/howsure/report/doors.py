"""What people hand to `evaluate`: predictions, or something of which it is said how to make them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import cast

from howsure._core.check import InputError
from howsure.predictions import Predictions
from howsure.predictions.frames import is_frame

WRITE = "hs.evaluate(hs.Predictions.from_probs(P, y))"


def predictions_in(data: object, second: object = None) -> Predictions:
    """Predictions as they are, those of a table; of anything else an `InputError` says what to
    write.

    >>> predictions_in({"prob_0": [0.9], "prob_1": [0.1], "label": [0]})
    <Predictions: n=1, k=2, probs, accuracy 1>
    """
    if isinstance(data, Predictions):
        if _is_array(second):
            raise InputError(
                f"the second argument is a {type(second).__name__}; scores are names or functions."
            )
        return data
    if isinstance(data, str | os.PathLike):
        raise InputError(f"a file is read first: hs.evaluate(hs.read({os.fspath(data)!r})).")
    if hasattr(data, "predict_proba") or hasattr(data, "decision_function"):
        raise InputError(
            "a classifier is asked first: hs.evaluate(hs.Predictions.from_estimator(model, X, y))."
        )
    if _is_array(second) or isinstance(data, tuple):
        raise InputError(
            f"labels y and probabilities P alone do not say which is which; write {WRITE}."
        )
    if is_frame(data):
        return Predictions.from_frame(data)
    name = type(data).__name__
    raise InputError(
        f"a {name} does not say whether it holds logits or probabilities; write {WRITE}, or from_logits."
    )


def _is_array(value: object) -> bool:
    if not isinstance(value, list | tuple):
        return hasattr(value, "__array__")
    cells = cast("Sequence[object]", value)
    return len(cells) > 0 and isinstance(cells[0], int | float | list)
