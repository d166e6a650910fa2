"""Any discrete bins.

People's easy, typical, hard.
"""

import howsure as hs

h = hs.Histogram.from_bins([0, 0, 0, 1, 1, 2, 2, 2], [1, 1, 1, 1, 0, 0, 1, 0])
print(
    f"entropy that is left {hs.conditional_entropy(h):.3f}, AUROC of spotting errors {hs.histogram_auroc(h):.3f}"
)
