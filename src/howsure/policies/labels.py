"""Many labels per case: which label may be decided alone, above which confidence, with one promise
for all.
"""

from __future__ import annotations

from math import inf, isnan, nan

import numpy as np

from howsure import bounds
from howsure.calibrators import Calibrator
from howsure.policies.guarantee import Guaranteed, Method, guaranteed_threshold
from howsure.policies.policy import Basis, Policy, Promise, score_named
from howsure.policies.threshold import rows_or_tally
from howsure.predictions import Predictions, needs_predictions
from howsure.predictions.outcomes import Outcomes


def label_thresholds(
    preds: Predictions,
    *,
    risk: float,
    delta: float,
    method: Method = "fixed_sequence",
    score: str = "max_prob",
) -> dict[str, Guaranteed]:
    r"""A guaranteed threshold for each label of multilabel predictions, all of them true with
    probability 1 − `delta`.

    .. math:: P\big( \exists\, l : R_l(\theta_l) > \mathrm{risk} \big) \le \delta

    Each of L labels has its share delta / L (Bonferroni), so that the promise is about all labels at once, however they
    depend on each other. A label is decided alone, present or absent, where its confidence reaches its threshold. Where
    a label is rare, nearly all that is decided is that it is absent: see how many positive cases that misses.

    >>> p = np.repeat([[0.99, 0.6]], 300, axis=0)
    >>> y = np.stack([np.ones(300), np.arange(300) % 2], axis=1)
    >>> found = label_thresholds(Predictions.from_multilabel(p, y, label_names=["cat", "dog"]), risk=0.05, delta=0.05)
    >>> found["cat"].threshold, found["cat"].delta, found["dog"].feasible
    (0.99, 0.025, False)
    """
    needs_predictions(preds, "label_thresholds")
    layout = preds.needs_labels("label_thresholds")
    bounds.proportion(delta, "delta")
    of = score_named(score)
    share = delta / layout.size

    def one(name: str) -> Guaranteed:
        rows = preds.label(name)
        return guaranteed_threshold(
            rows_or_tally(Outcomes.of(rows, of(rows))), risk=risk, delta=share, method=method
        )

    return {name: one(name) for name in layout.names}


def label_policy(
    preds: Predictions,
    *,
    risk: float,
    delta: float,
    method: Method = "fixed_sequence",
    score: str = "max_prob",
    calibrator: Calibrator | None = None,
    source: tuple[str, str] = ("", ""),
) -> Policy:
    """The policy of `label_thresholds`: every label has a threshold of its own, and an unknown
    label is deferred.

    >>> p = np.repeat([[0.99, 0.6]], 300, axis=0)
    >>> preds = Predictions.from_multilabel(p, np.ones((300, 2)), label_names=["cat", "dog"])
    >>> label_policy(preds, risk=0.05, delta=0.05).thresholds
    (0.99, 0.6)
    """
    needs_predictions(preds, "label_policy")
    if calibrator is not None:
        preds = calibrator(preds)
    layout = preds.needs_labels("label_policy")
    found = label_thresholds(preds, risk=risk, delta=delta, method=method, score=score)
    limits = np.array([g.threshold for g in found.values()])
    accept = score_named(score)(preds) >= limits[layout.place]
    right = preds.correct[accept]
    known = [g.bound for g in found.values() if not isnan(g.bound)]
    needed = [g.labels_needed for g in found.values() if g.labels_needed is not None]
    rule = f"risk of the accepted at most {risk:g} for every label, all {layout.size} with probability {1 - delta:g}"
    return Policy(
        score,
        inf,
        calibrator,
        "label",
        layout.names,
        tuple(limits.tolist()),
        None,
        preds.k,
        preds.class_names,
        Promise(
            rule,
            risk,
            delta,
            max(known, default=nan),
            bool(known),
            None if known or not needed else min(needed),
        ),
        Basis(preds.n, float(accept.mean()), float(right.mean()) if len(right) else nan, *source),
    )
