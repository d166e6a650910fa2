"""Segmentation.

Dice as the loss of a set: pixels of one image belong together.
"""

import numpy as np

import howsure as hs

rng = np.random.default_rng(3)
truth = rng.integers(0, 2, (64, 64))
said = np.where(rng.random((64, 64)) < 0.9, truth, 1 - truth)
score = np.where(said == truth, 0.8, 0.6) + 0.2 * rng.random((64, 64))
t = hs.dice_tally(score.ravel(), said.ravel(), truth.ravel())
print(f"AURC of 1 - Dice {hs.aurc(t):.3f}")
