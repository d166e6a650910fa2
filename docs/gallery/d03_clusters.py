"""Rows that belong together.

Samples of one patient or image say less than as many patients; say so with group.
"""

import numpy as np

import howsure as hs

rng = np.random.default_rng(2)
patient = np.repeat(np.arange(100), 20)
right = rng.random(2000) < np.repeat(rng.beta(8, 2, 100), 20)
score = 0.6 + 0.4 * rng.random(2000)
for name, group in (("alone", None), ("patients", patient)):
    low, high = hs.interval(hs.aurc, hs.Outcomes(score, correct=right, group=group))
    print(f"{name}: width {high - low:.3f}")
