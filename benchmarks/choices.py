"""The chosen calibrator of every real set, by an older source tree and by this one: `python -m
benchmarks.choices [OLD/src]`.

Chosen and fitted on validation, measured on test: NLL, Brier and ECE of what was chosen (for a
confidence, those of being right), the answers that it changed, and the CPU seconds of the choice
with one BLAS thread. Every set has a process of its own. An older tree: `git archive COMMIT src |
tar x -C OLD`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TypedDict

SHARED = Path(os.environ.get("HOWSURE_SHARED", Path(__file__).parents[2] / "shared"))
SOURCE = Path(__file__).parents[1] / "src"
IMAGES = ("membrane_images", "seg_unet_membrane")  # pixels: not samples of their own
PROGRAM = """
import json, sys, time, warnings
import numpy as np, howsure as hs
from howsure.calibrators.choice import evaluate_metric
warnings.simplefilter("ignore")
file = np.load(sys.argv[1])
sets = []
for part in ("val", "test"):
    if f"{part}_conf" in file:
        sets.append(hs.Predictions.from_confidence(file[f"{part}_conf"], file[f"{part}_correct"]))
    elif f"{part}_logits" in file:
        sets.append(hs.Predictions.from_logits(file[f"{part}_logits"], file[f"{part}_labels"]))
    else:
        sets.append(hs.Predictions.from_probs(file[f"{part}_probs"], file[f"{part}_labels"]))
val, test = sets
begin = time.process_time()
choice = hs.choose_calibrator(val)
cpu = time.process_time() - begin
after = choice.calibrator(test)
top = test.kind == "confidence"
nll, brier = (hs.correctness_nll, hs.correctness_brier) if top else (hs.nll, hs.brier)
changed = 0 if top else int((after.prediction != test.prediction).sum())
out = {"winner": choice.winner, "cpu": cpu, "changed": changed}
for name, metric in (("nll", nll), ("brier", brier), ("ece", hs.ece)):
    out[name] = [evaluate_metric(metric, test), evaluate_metric(metric, after)]
print(json.dumps(out))
"""


class Chosen(TypedDict):
    """What was chosen, the CPU seconds, and each number before and after."""

    winner: str
    cpu: float
    changed: int
    nll: tuple[float, float]
    brier: tuple[float, float]
    ece: tuple[float, float]


def main(argv: list[str]) -> int:
    if len(argv) > 1:
        print("usage: python -m benchmarks.choices [OLD/src]", file=sys.stderr)
        return 2
    trees = {"now": SOURCE}
    if argv:
        trees = {"before": Path(argv[0])} | trees
    print(
        "| set | tree | chosen | NLL | Brier | ECE | changed | CPU s |\n|---|---|---|---|---|---|---|---|"
    )
    for file in sorted((SHARED / "data").glob("*.npz")):
        if file.stem in IMAGES:
            continue
        for tree, source in trees.items():
            made = choose_by(source, file)
            numbers = [
                f"{before:.4f} → {after:.4f}"
                for before, after in (made["nll"], made["brier"], made["ece"])
            ]
            cells = (
                file.stem,
                tree,
                made["winner"],
                *numbers,
                f"{made['changed']:,}",
                f"{made['cpu']:.2f}",
            )
            print(f"| {' | '.join(cells)} |", flush=True)
    return 0


def choose_by(source: Path, file: Path) -> Chosen:
    """What the tree at `source` chooses, and what it does to the test set."""
    own = os.environ | {"PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"}
    made = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(file)],
        check=True,
        capture_output=True,
        text=True,
        env=own,
    )
    return json.loads(made.stdout)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
