"""A calibrator for each of many labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import nan

import numpy as np

from howsure._core.checks import InputError
from howsure._core.frozen import frozen
from howsure.calibrators.calibrator import Calibrator, Fitted, Identity
from howsure.calibrators.logistic import Platt
from howsure.predictions import Predictions, needs_predictions


@frozen
class PerLabel:
    """Each label of multilabel predictions has a calibrator of its own: rare labels are often off
    in their own way.

    A label whose calibrator cannot be fitted, for it has no positive case, stays as it is;
    `fitted.status` names it.

    >>> p = np.tile([[0.8, 0.3], [0.6, 0.1]], (50, 1))
    >>> y = np.stack([np.arange(100) % 2 == 0, np.arange(100) % 5 == 0], axis=1)
    >>> preds = Predictions.from_multilabel(p, y, label_names=["cat", "dog"])
    >>> PerLabel.fit(preds).fitted.status
    'converged'
    """

    names: tuple[str, ...]
    parts: tuple[Calibrator, ...]
    fitted: Fitted | None = None

    def __post_init__(self) -> None:
        if len(self.names) != len(self.parts):
            raise InputError(f"{len(self.names)} labels have {len(self.parts)} calibrators.")

    @classmethod
    def fit(
        cls, preds: Predictions, method: Callable[[Predictions], Calibrator] = Platt.fit
    ) -> PerLabel:
        """Fit `method`, such as `Isotonic.fit`, on every label by itself."""
        needs_predictions(preds, "PerLabel.fit")
        layout = preds.needs_labels("PerLabel")
        parts: list[Calibrator] = []
        unchanged: list[str] = []
        for name in layout.names:
            try:
                parts.append(method(preds.label(name)))
            except InputError:
                parts.append(Identity())
                unchanged.append(name)
        if len(unchanged) == layout.size:
            raise InputError(
                "no label can be calibrated: none has both positive and negative cases."
            )
        status = "converged"
        if unchanged:
            status = f"left as they are: {', '.join(unchanged)}"
        losses = [nan if part.fitted is None else part.fitted.nll for part in parts]
        fitted = Fitted(
            status=status,
            n=preds.n,
            k=preds.k,
            class_names=preds.class_names,
            nll=float(np.mean(losses)),
        )
        return cls(names=layout.names, parts=tuple(parts), fitted=fitted)

    def __call__(self, preds: Predictions) -> Predictions:
        """The predictions with the rows of each label calibrated."""
        needs_predictions(preds, "PerLabel")
        layout = preds.needs_labels("PerLabel")
        if layout.names != self.names:
            raise InputError(
                f"this calibrator was fitted for the labels {', '.join(self.names[:20])}."
            )
        labels = [part(preds.label(i)) for i, part in enumerate(self.parts)]
        # Calibrators of some labels may answer with logits and those of others with probabilities.
        same_kind = len({label.kind for label in labels}) == 1
        values = np.empty(preds.values.shape, dtype=np.float64)
        for i, label in enumerate(labels):
            values[layout.place == i] = label.values if same_kind else label.probs
        return replace(preds, kind=labels[0].kind if same_kind else "probs", values=values)


def apply_per_label(
    method: Callable[[Predictions], Calibrator],
) -> Callable[[Predictions], Calibrator]:
    """`method` for every label by itself where there are many, else `method` as it is."""

    def fit(preds: Predictions) -> Calibrator:
        if preds.layout is None or preds.layout.parts != "labels":
            return method(preds)
        return PerLabel.fit(preds, method)

    return fit
