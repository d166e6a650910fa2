"""A constant score earns the error rate.

Ties act together; the order of rows never matters.
"""

import howsure as hs

t = hs.tally([0.7] * 6, correct=[1, 0, 1, 1, 0, 1])
print(f"error rate {2 / 6:.3f}, AURC {hs.aurc(t):.3f}, AUROC of spotting errors {hs.auroc(t):.1f}")
