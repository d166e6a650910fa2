"""How often do the suggestions for the deferred hold the truth, on real predictions?

    python -m benchmarks.suggestions --runs 40 > table.md

A run draws 4,000 rows of a set (at most half of it), chooses a threshold on one half of them
(band, risk 0.02, delta 0.1), makes suggestions on the other half and judges them on all rows that
were not drawn. "All rows" are suggestions made on all of the second half, accepted ones too, as
conformal sets usually are.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial

import numpy as np

import howsure as hs
from benchmarks.real_guarantees import SHARED
from howsure.policies import Policy, fit_suggestions, guaranteed_threshold, split_halves

SETS = (
    "ak_resnet20_c10",
    "ak_resnet32_c10",
    "eurosat_rgb",
    "netcal_densenet_bc_100_c100",
    "netcal_wideresnet_16_4_c10",
    "nn_resnet110_c10",
    "cleanlab_imdb",
    "f538_worldcup_ingame",
    "f538_mlb",
    "mc_fashion_cnn",
)
DRAWN = 4_000
RULE = partial(guaranteed_threshold, risk=0.02, delta=0.1)


def read_all(name: str) -> hs.Predictions:
    """Both splits of a set; at most 16,000 rows of it."""
    parts: list[np.ndarray] = []
    labels: list[np.ndarray] = []
    for split in ("val", "test"):
        preds = hs.read(SHARED / "data" / f"{name}.npz", split=split)
        parts.append(preds.probs)
        labels.append(preds.labels)
    rows = np.random.default_rng(0).permutation(sum(map(len, parts)))[:16_000]
    probs, truth = np.concatenate(parts)[rows], np.concatenate(labels)[rows]
    return hs.Predictions.from_probs(probs, truth, renormalise=True)


def judge(policy: Policy, preds: hs.Predictions) -> tuple[float, float, float, float]:
    """Shares of the deferred: truth listed (no list counts), truth listed among lists, at most 3, none."""
    decisions = policy.decide(preds)
    rows = np.flatnonzero(~decisions.accept)
    listed = decisions.suggested[rows]
    length = (listed >= 0).sum(axis=1)
    inside = (listed == preds.labels[rows][:, None]).any(axis=1)
    none = length == 0
    return (
        float((inside | none).mean()),
        float(inside[~none].mean()),
        float(((length <= 3) & ~none).mean()),
        float(none.mean()),
    )


def run_set(name: str, runs: int) -> str:
    preds = read_all(name)
    ours: list[tuple[float, float, float, float]] = []
    usual: list[float] = []
    for seed in range(runs):
        order = np.random.default_rng(seed).permutation(preds.n)
        drawn = min(DRAWN, preds.n // 2)
        kept, spare = split_halves(preds[order[:drawn]], seed=seed)
        policy = Policy.fit(kept, RULE)
        rest = preds[order[drawn:]]
        ours.append(judge(fit_suggestions(policy, spare), rest))
        everything = fit_suggestions(replace(policy, threshold=np.inf), spare)
        usual.append(judge(replace(everything, threshold=policy.threshold), rest)[0])
    held, among, short, none = np.mean(ours, axis=0)
    return (
        f"| {name} | {preds.k} | {held:.3f} | {among:.3f} | {short:.2f} | {none:.2f} "
        f"| {np.mean(usual):.3f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    options = parser.parse_args()
    print("| set | classes | truth listed | among lists | at most 3 | none | made on all rows |")
    print("|---|---|---|---|---|---|---|")
    for name in SETS:
        print(run_set(name, options.runs), flush=True)


if __name__ == "__main__":
    main()
