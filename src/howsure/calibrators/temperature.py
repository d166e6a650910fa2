"""Temperature scaling: one number that makes all answers surer or less sure."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from math import inf, isfinite, nan
from typing import Literal

import numpy as np

from howsure._core.checks import LARGEST_NUMBER, Array, Floats, InputError, within
from howsure._core.frozen import frozen
from howsure.calibrators.calibrator import (
    Fitted,
    check_classes,
    check_same_classes,
    compute_shares,
    convert_to_logits,
    replace_values,
    stack_members,
    takes_arrays,
)
from howsure.predictions import Predictions, needs_predictions
from howsure.predictions.columns import iterate_chunks, log_softmax

TEMPERATURE_BOUNDS = (1e-6, 1e6)


@frozen
class Temperature:
    r"""Divide the logits by one temperature T, fitted by maximum likelihood.

    .. math:: p = \mathrm{softmax}(z / T), \qquad T = \arg\min_T \, \mathrm{NLL}

    T > 1 makes answers less sure, T < 1 surer; the answers themselves stay the same, and with more than two
    classes their ranking may change. Of probabilities the logits are their logs, clipped below at 1e-12. Samples
    (MC dropout, ensembles) are scaled inside their average, where answers may change. With `samples` n, p is mixed
    with the uniform distribution, (n p + 1/K)/(n + 1): no probability becomes 0, so that one wrong answer never costs
    an infinite loss. Guo et al. 2017; Laves et al. 2019, eq. 9; Berta et al. 2025.

    >>> preds = Predictions.from_logits([[4.0, 0.0], [4.0, 0.0], [0.0, 4.0], [0.0, 4.0]], [0, 0, 1, 0])
    >>> t = Temperature.fit(preds)
    >>> round(t.temperature, 3)
    3.641
    >>> t(preds).confidence
    array([0.75, 0.75, 0.75, 0.75])
    """

    temperature: float
    fitted: Fitted | None = None
    samples: int | None = None  # n of the mixture

    def __post_init__(self) -> None:
        if self.samples is not None:
            within(self.samples, 1, 2**62, "samples")
        if not (isfinite(self.temperature) and self.temperature > 0):
            raise InputError(
                f"temperature is {self.temperature:g}; a finite number above 0 is needed."
            )
        within(self.temperature, 1 / LARGEST_NUMBER, LARGEST_NUMBER, "temperature")

    @takes_arrays
    @classmethod
    def fit(
        cls,
        preds: Predictions,
        *,
        objective: Literal["averaged", "per_pass"] = "averaged",
        grid: Sequence[float] | Floats | None = None,
        bounds: tuple[float, float] = TEMPERATURE_BOUNDS,
        mixed: bool = False,
        start: Temperature | None = None,
        measured: bool = True,
    ) -> Temperature:
        """The temperature with the least mean negative log-likelihood.

        One pass: convex in 1/T, solved to 1e-8 of T. Samples: `objective="averaged"` is the
        likelihood of the mean probability, which is not convex and searched within [1e-3, 1e3];
        `"per_pass"` is the mean over the passes (Laves' released code), convex again. `grid` takes
        the best of the given temperatures instead, as Ding does. `mixed` mixes the result with the
        uniform distribution as one sample beside those of the fit. From `start` a convex search
        needs fewer passes to the same temperature; without `measured` the loss of the mixture is
        left out.

        `fitted.status` is "interior"; "lower" or "upper" where the likelihood still grows at that
        bound (all answers right; answers worse than chance); "flat" where all logits of each row
        are equal, with T = 1; or "grid".
        """
        check_classes(preds, "Temperature")
        from howsure.calibrators.descent import find_temperature

        near = start and start.temperature
        best = find_temperature(preds, objective, grid, bounds, near)
        temperature = float(best.temperature)
        if preds.samples > 1:
            scaled = cls(temperature)(preds)
            changed = int((scaled.prediction != preds.prediction).sum())
            if changed:
                warnings.warn(
                    f"{changed:,} of {preds.n:,} predictions change at temperature {temperature:.4g}: "
                    "the mean over passes is taken after scaling, so compare accuracies too.",
                    stacklevel=3,
                )
        made, nll = cls(temperature=temperature), best.loss
        if mixed:
            from howsure import losses

            made, nll = cls(temperature=temperature, samples=preds.n), nan
            if measured:
                nll = float(compute_shares(preds) @ losses.nll(made(preds)))
        fitted = Fitted(
            status=best.status, n=preds.n, k=preds.k, class_names=preds.class_names, nll=nll
        )
        return replace(made, fitted=fitted)

    def __call__(self, preds: Predictions) -> Predictions:
        """The predictions at this temperature: logits stay logits, probabilities stay
        probabilities.
        """
        needs_predictions(preds, "Temperature")
        preds.needs_vector("temperature")
        check_same_classes(preds, self.fitted and self.fitted.k, self.fitted, "Temperature")
        values = stack_members(preds)
        out = np.empty(values.shape)
        for member, scaled in zip(values, out, strict=True):
            for rows in iterate_chunks(*member.shape):
                scaled[rows] = self.scale_rows(member[rows], preds.kind)
        if preds.values.ndim != 3:
            out = out[0]
        return replace_values(preds, preds.kind, out)

    def scale_rows(self, part: Array, kind: str) -> Floats:
        """Logits or probabilities (samples, k) at this temperature."""
        z = convert_to_logits(part, kind) / self.temperature
        if self.samples is not None:
            z = np.exp(log_softmax(z))
            z = (self.samples * z + 1 / z.shape[1]) / (self.samples + 1)
            if kind == "logits":
                z = np.log(z)
        elif kind != "logits":
            z = np.exp(log_softmax(z))
        # Rounding may make the two largest of a row equal; the one that was largest stays it.
        top = part.argmax(axis=1)
        row = np.flatnonzero(z.argmax(axis=1) != top)
        if len(row):
            z[row, top[row]] = np.nextafter(z[row].max(axis=1, initial=-inf), inf)
        return z
