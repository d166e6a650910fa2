"""Ding et al. 2020, figures 2, 3 and 6: one network under five binnings, before and after
temperature scaling.

    python docs/gallery/binnings.py binnings.png

The network is the small CNN on Fashion-MNIST that comes with howsure: T is fitted on its validation
set, everything is drawn from its test set. Bars show confidence minus accuracy: positive is
overconfident. Wide bins hide what happens inside them, many bins drown in noise; adaptive bins are
as narrow as their samples allow.
"""

import sys
from importlib.resources import as_file, files

import matplotlib.pyplot as plt

import howsure as hs
from howsure.report.render import figure

BINNINGS = {
    "10 of equal range": hs.equal_range(10),
    "50 of equal range": hs.equal_range(50),
    "50 of equal size": hs.equal_size(50),
    "100 of equal size": hs.equal_size(100),
    "adaptive": hs.adaptive(),
}


def gaps(preds: hs.Predictions, bins) -> dict:
    """Bars over the observed range of each bin."""
    table = hs.bin_table(hs.tally(preds.confidence, preds.correct), bins)
    return {
        "x": (table.low + table.high) / 2,
        "gap": table.gap,
        "width": (table.high - table.low).clip(0.004),
    }


def main(target: str) -> None:
    with as_file(files("howsure") / "data" / "fashion_mnist_cnn.npz") as path:
        val, test = (hs.read(path, split=split) for split in ("val", "test"))
    scaled = hs.calibrators.Temperature.fit(val)(test)
    fig, axes = plt.subplots(
        2, len(BINNINGS), figsize=(16, 5.4), sharex=True, sharey=True, layout="constrained"
    )
    for row, (when, preds) in zip(axes, {"before": test, "after T": scaled}.items(), strict=True):
        for ax, (name, bins) in zip(row, BINNINGS.items(), strict=True):
            t = hs.tally(preds.confidence, preds.correct)
            figure.gaps(gaps(preds, bins), ax)
            ax.set_title(
                f"{name}, {when}\nECE {hs.ece(t, bins):.3f}, MCE {hs.mce(t, bins):.3f}", fontsize=9
            )
            ax.label_outer()
    fig.savefig(target, dpi=110)


if __name__ == "__main__":
    main(*(sys.argv[1:] or ["binnings.png"]))
