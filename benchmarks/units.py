"""How often limits over cases and images hold, and how often a promise about them is broken: truth
known by resampling.

A set of real predictions is the population. Each run draws cases (or images) from it with
replacement, makes limits and thresholds of the draw alone, and holds them against the population.
Runs go to a file of JSON lines, so that a job that was stopped goes on: `python -m benchmarks.units
labels OUT.jsonl --runs 1000`, and for masks the number of images drawn and the promised mean 1 −
Dice: `images:400:0.15 OUT.jsonl`. `python -m benchmarks.units summary OUT.jsonl` prints the shares.
A promise can only be broken where thresholds of the population have more than the promised risk:
`breakable`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import howsure as hs
from howsure.metrics.proper_scores import mean_loss
from howsure.policies import label_thresholds
from howsure.predictions.images import images_of

SHARED = Path(os.environ.get("HOWSURE_SHARED", Path(__file__).parents[2] / "shared"))
RISK = DELTA = 0.05
NUCLEI = Path(__file__).parents[1] / "studies" / "predictions" / "nuclei_unet.npz"
Run = dict[str, float | bool | int]


def labels(drawn: int = 2000) -> Callable[[int], Run]:
    """Fourteen findings on 22,433 chest X-rays: limits of whole cases, one promise for all labels."""
    data = np.load(SHARED / "data2" / "multilabel_chexnet" / "chexnet_nih14.npz")
    whole = hs.Predictions.from_multilabel(data["probs"], data["labels"])
    metrics = (hs.hamming_loss, hs.exact_match, hs.macro_auroc)
    truth = {m.__name__: m(whole) for m in metrics}
    parts = [whole.label(i) for i in range(data["labels"].shape[1])]
    tallies = [hs.tally(p.confidence, correct=p.correct) for p in parts]

    def run(seed: int) -> Run:
        rows = np.random.default_rng(seed).integers(0, len(data["probs"]), drawn)
        sample = hs.Predictions.from_multilabel(data["probs"][rows], data["labels"][rows])
        out: Run = {"seed": seed}
        for metric in metrics:
            low, high = hs.interval(metric, sample)
            out[metric.__name__] = bool(low <= truth[metric.__name__] <= high)
        found = list(label_thresholds(sample, risk=RISK, delta=DELTA).values())
        out["feasible"] = sum(g.feasible for g in found)
        out["broken"] = any(
            hs.policies.threshold_at(t, g.threshold).risk > RISK
            for t, g in zip(tallies, found, strict=True)
            if g.feasible
        )
        return out

    return run


def images(drawn: int, risk: float) -> Callable[[int], Run]:
    """A U-Net on images: limits of the mean loss and of the AURC over images, a promise about
    accepted images.
    """
    parts = [images_of(hs.read(NUCLEI, split=split)) for split in ("val", "test")]
    score = np.concatenate([p.scores["mean_confidence"] for p in parts])
    loss = np.concatenate([p.loss for p in parts])
    many = np.full(len(loss), 1000)
    whole = hs.tally(score, loss=loss, count=many)
    truth = {"aurc": hs.aurc(whole), "augrc": hs.augrc(whole), "mean_loss": float(loss.mean())}
    breakable = float(np.mean([loss[score >= cut].mean() > risk for cut in score]))

    def run(seed: int) -> Run:
        rows = np.random.default_rng(seed).integers(0, len(loss), drawn)
        sample = hs.Outcomes(score[rows], loss=loss[rows])
        out: Run = {"seed": seed, "breakable": breakable}
        for metric in (hs.aurc, hs.augrc, mean_loss):
            low, high = hs.interval(metric, sample)
            out[metric.__name__] = bool(low <= truth[metric.__name__] <= high)
        for bound in ("hoeffding_bentkus", "betting"):
            found = hs.policies.guaranteed_threshold(sample, risk=risk, delta=DELTA, bound=bound)
            kept = score >= found.threshold
            out[f"{bound}_feasible"] = found.feasible
            out[f"{bound}_coverage"] = found.coverage
            out[f"{bound}_broken"] = bool(found.feasible and loss[kept].mean() > risk)
        return out

    return run


def kind_of(kind: str) -> Callable[[int], Run]:
    """`labels`, or `images:DRAWN:RISK`."""
    if kind == "labels":
        return labels()
    _, drawn, risk = kind.split(":")
    return images(int(drawn), float(risk))


def main(kind: str, path: str, runs: int) -> None:
    """Do the runs that are not in the file yet."""
    file = Path(path)
    done = (
        {json.loads(line)["seed"] for line in file.read_text().splitlines()}
        if file.exists()
        else set()
    )
    run = kind_of(kind)
    with file.open("a") as out:
        for seed in range(runs):
            if seed not in done:
                out.write(json.dumps(run(seed)) + "\n")
                out.flush()


def summary(path: str) -> None:
    """Shares over all runs."""
    rows = [json.loads(line) for line in Path(path).read_text().splitlines()]
    print(f"{len(rows):,} runs")
    for name in rows[0]:
        if name != "seed":
            print(f"{name:24} {np.mean([row[name] for row in rows]):.4f}")


if __name__ == "__main__":
    if sys.argv[1] == "summary":
        summary(sys.argv[2])
    else:
        main(sys.argv[1], sys.argv[2], int(sys.argv[sys.argv.index("--runs") + 1]))
