"""A log of a decision model, made of our own network's predictions: what the pages run on.

Each photograph is asked three questions: is it a shoe (yes or no), which group of four, which kind
of ten. Two decimals, the body as text in `raw`, labels in a table of their own.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from importlib.resources import files

import numpy as np

import howsure as hs

GROUPS = {"tops": [0, 2, 3, 4, 6], "trousers": [1], "shoes": [5, 7, 9], "bags": [8]}
MODEL = "fashion-cnn-1"


def write_log(log: str, labels: str, *, split: str, rows: int = 5000) -> None:
    """Write the log (JSON lines) and its labels (CSV)."""
    preds = hs.read(str(files("howsure") / "data" / "fashion_mnist_cnn.npz"), split=split)
    kinds = list(preds.class_names or ())
    group_of = {i: group for group, members in GROUPS.items() for i in members}
    sums = [preds.probs[:, members].sum(axis=1) for members in GROUPS.values()]
    truth = [["id", "shoe", "group", "kind"]]
    with open(log, "w", encoding="utf-8") as file:
        for i in range(rows):
            shares = np.array([column[i] for column in sums])
            answers = {
                "shoe": {"type": "noul", "noul": round(float(shares[2]), 2)},
                "group": make_choice(list(GROUPS), shares),
                "kind": make_choice(kinds, preds.probs[i]),
            }
            body = json.dumps({"model": MODEL, "answers": answers})
            file.write(json.dumps({"item_id": f"{split}{i}", "raw": body}) + "\n")
            label = int(preds.labels[i])
            shoe = "yes" if group_of[label] == "shoes" else "no"
            truth.append([f"{split}{i}", shoe, group_of[label], kinds[label]])
    with open(labels, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(truth)


def make_choice(options: Sequence[str], p: np.ndarray) -> dict[str, object]:
    """A choice as decision models answer: the field `confidence` is not the probability."""
    rounded, k = np.round(p, 2), len(p)
    top = int(rounded.argmax())
    return {
        "type": "choice",
        "choice": options[top],
        "confidence": round(float((k * rounded[top] - 1) / (k - 1)), 2),
        "probabilities": dict(zip(options, rounded.tolist(), strict=True)),
    }
