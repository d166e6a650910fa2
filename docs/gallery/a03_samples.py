"""Monte-Carlo dropout and ensembles.

Several passes per sample; the answer is the mean, the spread is a score.
"""

import numpy as np

import howsure as hs

rng = np.random.default_rng(1)
labels = rng.integers(0, 3, 500)
passes = 2 * np.eye(3)[labels] + rng.standard_normal((8, 500, 3))
preds = hs.Predictions.from_samples(logits=passes, labels=labels)
for name in ("max_prob", "mutual_information"):
    t = hs.tally(getattr(hs.scores, name)(preds), correct=preds.correct)
    print(f"{name}: AUROC of spotting errors {hs.auroc(t):.3f}")
