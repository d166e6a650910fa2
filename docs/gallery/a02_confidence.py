"""Only a confidence and right or wrong.

Enough for ranking and for calibration of the top label.
"""

import howsure as hs

preds = hs.Predictions.from_confidence([0.99, 0.9, 0.8, 0.6], [1, 1, 0, 1])
t = hs.tally(preds.confidence, correct=preds.correct)
print(f"AURC {hs.aurc(t):.3f}, ECE {hs.ece(t):.3f}")
