"""Vemuri 2020, figure 4.2: threshold diagrams of a good, a useless and an ideal confidence of one classifier.

    python docs/gallery/threshold_toy.py threshold_toy.png

All three share the same answers (70 % right), so the curves meet where nothing is deferred. The area above a curve is
the AAC: the ideal defers every wrong answer first, a useless score gains nothing.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

import howsure as hs
from howsure.render import figure
from howsure.report import curve_json


def scores(n: int = 2000, seed: int = 0) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Right or wrong, and two confidences in it."""
    rng = np.random.default_rng(seed)
    correct = rng.random(n) < 0.7
    good = np.where(correct, rng.beta(4, 2, n), rng.beta(2, 4, n))
    return correct, {"good": good, "useless": rng.random(n)}


def main(target: str) -> None:
    correct, confidences = scores()
    fig, ax = plt.subplots(figsize=(5.2, 4), layout="constrained")
    ideal = curve_json(hs.threshold_diagram(hs.tally(correct * 1.0, correct), ideal=True))
    for name, score in confidences.items():
        t = hs.tally(score, correct)
        figure.threshold_diagram(curve_json(hs.threshold_diagram(t)), ax, label=f"{name}, AAC {hs.aac(t):.3f}")
    best = hs.optimal_aurc(hs.tally(correct * 1.0, correct))
    ax.plot([1.0, *ideal["x"]], [1.0, *ideal["y"]], "k--", label=f"ideal, AAC {best:.3f}")
    ax.legend(loc="lower right")
    fig.savefig(target, dpi=110)


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["threshold_toy.png"]))
