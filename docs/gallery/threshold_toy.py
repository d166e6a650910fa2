"""Vemuri 2020, figure 4.2: three confidences whose reliability diagrams differ and whose threshold
diagrams are one.

    python docs/gallery/threshold_toy.py threshold_toy.png

The first confidence is the probability of being right. The other two are linear maps of it: one
claims too much, the other too little. All rank the samples alike, so a threshold on any of them
does the same: AAC and AURC stay, ECE does not.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import howsure as hs
from howsure.report.render import figure
from howsure.report.report_types import build_curve_data

MAPS = {
    "the probability itself": lambda p: p,
    "half of it and a half": lambda p: 0.5 + p / 2,
    "half of it": lambda p: p / 2,
}


def main(target: str) -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.2, 1, 20_000)
    correct = rng.random(len(p)) < p
    fig, axes = plt.subplots(
        2, len(MAPS), figsize=(10, 6.4), sharex="row", sharey="row", layout="constrained"
    )
    for (name, confidence), (above, below) in zip(MAPS.items(), axes.T, strict=True):
        t = hs.tally(confidence(p), correct)
        figure.reliability(
            build_curve_data(hs.reliability(t, hs.equal_size(15), consistency=True)), above
        )
        above.set_title(f"{name}: ECE {hs.ece(t):.3f}", fontsize=10)
        ideal = build_curve_data(hs.threshold_diagram(t, ideal=True))
        figure.threshold_diagram(build_curve_data(hs.threshold_diagram(t)), below, ideal=ideal)
        below.set_title(f"AAC {hs.aac(t):.3f}", fontsize=10)
        for ax in (above, below):
            ax.label_outer()
    fig.savefig(target, dpi=110)


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["threshold_toy.png"]))
