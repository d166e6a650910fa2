"""For Hugging Face: `compute_metrics` of a Trainer. Nothing of transformers is imported here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from howsure import metrics
from howsure._core.checks import InputError, is_row
from howsure.calibrators.choice import evaluate_metric
from howsure.predictions.frames import build_batch as predictions

__all__ = ["compute_metrics"]

IGNORED_LABEL = -100  # the label that transformers gives to padding
USUAL_METRICS = (metrics.accuracy, metrics.nll, metrics.ece, metrics.aurc)


class Evaluated(Protocol):
    """What a Trainer hands over: `transformers.EvalPrediction`."""

    predictions: object
    label_ids: object


def compute_metrics(*measures: Callable[..., float]) -> Callable[[Evaluated], dict[str, float]]:
    """The function that a Trainer takes as `compute_metrics=`: accuracy, NLL, ECE and AURC, or
    `measures` instead.

    The model's output counts as logits, classes last: (n, k), or (n, tokens, k) with a label for
    each token. Labels of -100 do not count. A measure is any metric of howsure; `functools.partial`
    sets its options.

    >>> from types import SimpleNamespace
    >>> compute_metrics(metrics.accuracy)(SimpleNamespace(predictions=[[2.0, 0.5]], label_ids=[0]))
    Traceback (most recent call last):
    howsure.InputError: preds is a list of 1; pass the one array that is meant.
    """
    by_name: dict[str, Callable[..., float]] = {}
    for measure in measures or USUAL_METRICS:
        by_name[getattr(measure, "func", measure).__name__] = measure
    return partial(_compute, by_name)


def _compute(measures: dict[str, Callable[..., float]], given: Evaluated) -> dict[str, float]:
    if is_row(given.predictions) and isinstance(given.predictions, tuple):
        raise InputError(
            f"the model returned {len(given.predictions)} arrays; only the logits are needed. Give the Trainer "
            "preprocess_logits_for_metrics=lambda outputs, labels: outputs[0]."
        )
    if given.label_ids is None:
        raise InputError(
            "the evaluation data have no labels; without them no answer is right or wrong."
        )
    preds = predictions(given.predictions, given.label_ids, "logits", ignore=IGNORED_LABEL)
    if preds is None:
        raise InputError(
            f"every label is {IGNORED_LABEL}, which does not count; at least one label is needed."
        )
    return {name: evaluate_metric(measure, preds) for name, measure in measures.items()}
