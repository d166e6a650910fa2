"""A calibrator for each of many labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import nan

import numpy as np

from howsure._core.check import InputError
from howsure._core.frozen import frozen
from howsure.calibrators._fitted import Calibrator, Fitted
from howsure.calibrators.identity import Identity
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
        left: list[str] = []
        for name in layout.names:
            try:
                parts.append(method(preds.label(name)))
            except InputError:
                parts.append(Identity())
                left.append(name)
        if len(left) == layout.size:
            raise InputError(
                "no label can be calibrated: none has both positive and negative cases."
            )
        known = [nan if p.fitted is None else p.fitted.nll for p in parts]
        status = f"left as they are: {', '.join(left)}" if left else "converged"
        return cls(
            layout.names,
            tuple(parts),
            Fitted(status, preds.n, preds.k, preds.class_names, float(np.mean(known))),
        )

    def __call__(self, preds: Predictions) -> Predictions:
        """The predictions with the rows of each label calibrated."""
        needs_predictions(preds, "PerLabel")
        layout = preds.needs_labels("PerLabel")
        if layout.names != self.names:
            raise InputError(
                f"this calibrator was fitted for the labels {', '.join(self.names[:20])}."
            )
        found = [part(preds.label(i)) for i, part in enumerate(self.parts)]
        same = len({p.kind for p in found}) == 1
        values = np.empty(preds.values.shape, dtype=np.float64)
        for i, one in enumerate(found):
            values[layout.place == i] = one.values if same else one.probs
        return replace(preds, kind=found[0].kind if same else "probs", values=values)


def per_label(method: Callable[[Predictions], Calibrator]) -> Callable[[Predictions], Calibrator]:
    """`method` for every label by itself where there are many, else `method` as it is."""

    def fit(preds: Predictions) -> Calibrator:
        if preds.layout is None or preds.layout.parts != "labels":
            return method(preds)
        return PerLabel.fit(preds, method)

    return fit
