"""Accuracy without labels: how near are the estimates, and how often do our limits hold the truth?

    python -m benchmarks.unlabelled run --runs 1000     appends to results/unlabelled.jsonl; goes on
    after a stop python -m benchmarks.unlabelled nannyml --runs 100  the same draws through
    NannyML's CBPE, where it is installed python -m benchmarks.unlabelled table               the
    table of docs/monitor.md python -m benchmarks.unlabelled parts               the table there of
    groups of rows, policies, classes and columns

Real predictions with known labels are split without replacement into a labelled reference and new
data, whose labels are hidden, in four ways: no shift; label shift (every class between a third and
three times as common); four times as many hard cases (confidence in the lowest quarter); errors
three times likelier at equal confidence (wrong answers drawn three times as often within each
twentieth of the confidence). The truth is the accuracy of the new data, of the answers of each
class, of each third of the classes as a column to estimate by, and of what a policy accepts (the
most sure four fifths of the set). "clusters" and "clusters, hard": rows are drawn with replacement
in groups of 1 + Poisson(8) that share how hard they are and how likely errors are at equal
confidence (log-odds with standard deviation 1).
"""

from __future__ import annotations

import argparse
import json
import os
from collections import defaultdict
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

import howsure as hs
from howsure.report.estimation import Part

SHARED = Path(os.environ.get("HOWSURE_SHARED", "../shared"))
RESULTS = Path(__file__).parent / "results" / "unlabelled.jsonl"
SETS = {  # name: reference rows, new rows
    "nn_resnet110_c10": (4000, 1000),
    "ak_resnet20_c10": (3000, 1000),
    "cleanlab_imdb": (4000, 1000),
    "eurosat_rgb": (2000, 800),
    "netcal_wideresnet_16_4_c10": (3000, 1000),
    "f538_worldcup_ingame": (3000, 1000),
}
ALONE = ("none", "labels", "hard", "errors")
SHIFTS = (*ALONE, "clusters", "clusters, hard")
FACTOR = {"hard": 4.0, "errors": 3.0}


def pooled(name: str) -> hs.Predictions:
    """All rows of a set."""
    with np.load(SHARED / "data" / f"{name}.npz") as data:
        kind = "logits" if "val_logits" in data else "probs"
        values = np.concatenate([data[f"val_{kind}"], data[f"test_{kind}"]])
        labels = np.concatenate([data["val_labels"], data["test_labels"]])
    if kind == "logits":
        return hs.Predictions.from_logits(values, labels)
    return hs.Predictions.from_probs(values, labels, renormalise=True)


def draw(
    preds: hs.Predictions, shift: str, n: int, m: int, rng: np.random.Generator
) -> tuple[hs.Predictions, hs.Predictions]:
    """A reference and new data of no common row; new rows are drawn by strata whose shares changed."""
    if shift.startswith("clusters"):
        later = FACTOR["hard"] if "hard" in shift else 1.0
        return clustered(preds, n, 1.0, rng), clustered(preds, m, later, rng)
    order = rng.permutation(preds.n)
    reference, rest = order[:n], order[n:]
    if shift == "none":
        return preds[reference], preds[rest[:m]]
    if shift == "labels":
        stratum = preds.labels
        factor = np.exp(rng.uniform(-np.log(3), np.log(3), preds.k))
    elif shift == "hard":
        stratum = (preds.confidence <= np.quantile(preds.confidence, 0.25)).astype(int)
        factor = np.array([1.0, FACTOR["hard"]])
    else:
        edges = np.quantile(preds.confidence, np.arange(1, 20) / 20)
        stratum = 2 * np.searchsorted(edges, preds.confidence) + ~preds.correct
        factor = _likelier(np.bincount(stratum, minlength=40), FACTOR["errors"])
    share = np.bincount(stratum, minlength=len(factor)) * factor
    wanted = rng.multinomial(m, share / share.sum())
    return preds[reference], preds[_taken(stratum[rest], rest, wanted)]


def clustered(
    preds: hs.Predictions, n: int, hard: float, rng: np.random.Generator
) -> hs.Predictions:
    """About n rows, drawn with replacement from all of them, in groups that share their fate.

    Each group has a tilt towards sure or unsure twentieths of the confidence; whether a row is
    wrong follows from its twentieth's error rate and the group's own effect, so that the lowest
    quarter may be `hard` times as common and nothing else changes.
    """
    size = 1 + rng.poisson(8, n // 9)
    group = np.repeat(np.arange(len(size)), size)
    bins = np.searchsorted(np.quantile(preds.confidence, np.arange(1, 20) / 20), preds.confidence)
    share = np.bincount(bins, minlength=20) * np.where(np.arange(20) < 5, hard, 1.0)
    tilted = share * np.exp(rng.normal(0, 0.7, (len(size), 1)) * (np.arange(20) - 9.5) / 10)
    upper = np.cumsum(tilted, axis=1) / tilted.sum(axis=1, keepdims=True)
    at = np.minimum((rng.random(len(group))[:, None] > upper[group]).sum(axis=1), 19)
    rate = np.bincount(bins, ~preds.correct, minlength=20) / np.maximum(
        np.bincount(bins, minlength=20), 1
    )
    odds = rate[at] / np.maximum(1 - rate[at], 1e-12) * np.exp(rng.normal(0, 1, len(size))[group])
    wrong = rng.random(len(group)) < odds / (1 + odds)
    stratum = 2 * bins + ~preds.correct
    order = np.argsort(stratum, kind="stable")
    count = np.bincount(stratum, minlength=40)
    wanted = 2 * at + wrong
    first = np.cumsum(count) - count
    picked = order[first[wanted] + (rng.random(len(group)) * count[wanted]).astype(int)]
    return replace(preds[picked], ids=None, group=group)


def _likelier(count: np.ndarray, times: float) -> np.ndarray:
    """Factors of right and wrong in each bin that keep the bin's size; at most all are wrong."""
    right, wrong = count[0::2], count[1::2]
    rate = np.minimum(times * wrong / np.maximum(right + wrong, 1), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.stack(
            [(1 - rate) * (right + wrong) / right, rate * (right + wrong) / wrong], axis=1
        )
    return np.nan_to_num(factors.reshape(-1), nan=0.0, posinf=0.0)


def _taken(stratum: np.ndarray, rows: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The first so many rows of each stratum (fewer where there are no more)."""
    return np.concatenate([rows[stratum == s][:count] for s, count in enumerate(wanted) if count])


def others(reference: hs.Predictions, new: hs.Predictions) -> dict[str, float]:
    """ATC (Garg et al. 2022), DoC (Guillory et al. 2021) and the mean confidence."""
    wrong = int((~reference.correct).sum())
    threshold = np.sort(reference.confidence)[wrong] if wrong < reference.n else np.inf
    return {
        "ATC": float((new.confidence >= threshold).mean()),
        "DoC": float(
            reference.correct.mean() - reference.confidence.mean() + new.confidence.mean()
        ),
        "mean confidence": float(new.confidence.mean()),
    }


def drawn(
    preds: hs.Predictions, name: str, shift: str, run: int
) -> tuple[hs.Predictions, hs.Predictions]:
    """The draw of a run: always the same."""
    rng = np.random.default_rng([run, SHIFTS.index(shift), list(SETS).index(name)])
    return draw(preds, shift, *SETS[name], rng)


def one(preds: hs.Predictions, name: str, shift: str, run: int) -> dict[str, object]:
    reference, new = drawn(preds, name, shift, run)
    policy = hs.policies.Policy("max_prob", float(np.quantile(preds.confidence, 0.2)))
    third, theirs = (np.array(["0", "1", "2"])[p.labels % 3] for p in (reference, new))
    found = hs.estimate(reference, new, policy=policy, by=theirs, reference_by=third)
    accepted = new.confidence >= policy.threshold
    risk = 1 - float(new.correct[accepted].mean())
    return {
        "set": name, "shift": shift, "run": run, "truth": float(new.correct.mean()),
        "reference": float(reference.correct.mean()), "ours": found.accuracy, "low": found.low, "high": found.high,
        "error": found.error, "accepted": [[int(accepted.sum()), risk, found.risk, found.risk_low, found.risk_high]],
        "classes": _parts(found.classes, new.correct, new.prediction.astype(str)),
        "groups": _parts(found.groups, new.correct, theirs), **others(reference, new),
    }  # fmt: skip


def _parts(parts: tuple[Part, ...], correct: np.ndarray, value: np.ndarray) -> list[list[float]]:
    """Rows, truth, estimate and limits of each part."""
    return [[p.n, float(correct[value == p.name].mean()), p.accuracy, p.low, p.high] for p in parts]


def cbpe(reference: hs.Predictions, new: hs.Predictions) -> dict[str, float]:
    """NannyML's estimate, and whether the truth lies within its band of three standard errors."""
    import nannyml
    import pandas as pd

    def frame(p: hs.Predictions) -> pd.DataFrame:
        columns = {f"p{i}": p.probs[:, i] for i in range(p.k)}
        return pd.DataFrame(
            {**columns, "said": p.prediction.astype(str), "label": p.labels.astype(str)}
        )

    many = reference.k > 2
    past, later = frame(reference), frame(new)
    if not many:
        for one_frame in (past, later):
            one_frame[["said", "label"]] = one_frame[["said", "label"]].astype(int)
    made = nannyml.CBPE(
        y_pred_proba={str(i): f"p{i}" for i in range(reference.k)} if many else "p1", y_pred="said", y_true="label",
        metrics=["accuracy"], chunk_size=new.n,
        problem_type="classification_multiclass" if many else "classification_binary",
    )  # fmt: skip
    found = (
        made.fit(past)
        .estimate(later.drop(columns="label"))
        .filter(period="analysis")
        .to_df()["accuracy"]
        .iloc[0]
    )
    return {
        "NannyML": float(found["value"]),
        "NannyML low": float(found["lower_confidence_boundary"]),
        "NannyML high": float(found["upper_confidence_boundary"]),
    }


def run_cbpe(runs: int, path: Path, only: str) -> None:
    """The same draws; whatever is not in the file yet."""
    os.environ["NML_DISABLE_USAGE_LOGGING"] = (
        "1"  # it would send a line for each call over the network
    )
    done = {(r["set"], r["shift"], r["run"]) for r in rows(path)}
    pools = {name: pooled(name) for name in SETS if only in name}
    with path.open("a") as out:
        for i in range(runs):
            for name, preds in pools.items():
                for shift in (shift for shift in ALONE if (name, shift, i) not in done):
                    reference, new = drawn(preds, name, shift, i)
                    line = {
                        "set": name,
                        "shift": shift,
                        "run": i,
                        "truth": float(new.correct.mean()),
                    }
                    out.write(json.dumps({**line, **cbpe(reference, new)}) + "\n")
                    out.flush()


def rows(path: Path = RESULTS) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(runs: int, path: Path, only: str, shifts: tuple[str, ...] = SHIFTS) -> None:
    """Whatever is not in the file yet."""
    done = {(r["set"], r["shift"], r["run"]) for r in rows(path)}
    path.parent.mkdir(exist_ok=True)
    pools = {name: pooled(name) for name in SETS if any(part in name for part in only.split(","))}
    with path.open("a") as out:
        for i in range(runs):
            for name, preds in pools.items():
                for shift in shifts:
                    if (name, shift, i) not in done:
                        out.write(json.dumps(one(preds, name, shift, i)) + "\n")
            out.flush()


def table(path: Path) -> None:
    """rmse of each method in points of accuracy; how often our limits and NannyML's band held the
    truth.
    """
    groups = defaultdict(list)
    for r in rows(path):
        groups[r["shift"], r["set"]].append(r)
    for r in rows(path.with_name("unlabelled_nannyml.jsonl")):
        groups["NannyML", r["shift"], r["set"]].append(r)
    methods = ["ours", "ATC", "DoC", "mean confidence"]
    head = [
        "shift",
        "set",
        "runs",
        "truth (reference)",
        "limits hold",
        "width",
        *methods,
        "NannyML",
        "its band holds",
    ]
    print("| " + " | ".join(head) + " |")
    print("|---" * len(head) + "|")
    for shift in SHIFTS:
        for name in SETS:
            found = groups[shift, name]
            if not found:
                continue
            column = partial(_column, found)
            theirs = groups["NannyML", shift, name]
            truth, width = column("truth").mean(), (column("high") - column("low")).mean()
            rmse = [_rmse(found, key) for key in methods] + [_rmse(theirs, "NannyML")]
            band = _within(theirs, "NannyML low", "NannyML high")
            cells = [shift, name, f"{len(found):,}", f"{truth:.3f} ({column('reference').mean():.3f})",
                     f"{_within(found, 'low', 'high'):.1%}", f"{width:.3f}", *(f"{100 * e:.2f}" for e in rmse),
                     f"{band:.0%}"]  # fmt: skip
            print("| " + " | ".join(cells) + " |")


def parts(path: Path) -> None:
    """How often the limits hold of all rows, of what a policy accepts, and of each class and value
    of a column.
    """
    groups = defaultdict(list)
    for r in rows(path):
        if "classes" in r:
            groups[r["shift"], r["set"]].append(r)
    print(
        "| shift | set | runs | all rows | risk of the accepted | answers of a class | values of a column |"
    )
    print("|---" * 7 + "|")
    for shift in SHIFTS:
        for name in SETS:
            found = groups[shift, name]
            if found:
                whole = [[0, r["truth"], r["ours"], r["low"], r["high"]] for r in found]
                kinds = [
                    whole,
                    *(
                        [p for r in found for p in r[kind]]
                        for kind in ("accepted", "classes", "groups")
                    ),
                ]
                cells = [
                    shift,
                    name,
                    f"{len(found):,}",
                    *(f"{_holds(np.array(k)):.1%}" for k in kinds),
                ]
                print("| " + " | ".join(cells) + " |")


def _holds(found: np.ndarray) -> float:
    truth, low, high = found[:, 1], found[:, 3], found[:, 4]
    return float(((low <= truth + 1e-12) & (truth <= high + 1e-12)).mean())


def _within(found: list[dict[str, object]], low: str, high: str) -> float:
    truth = _column(found, "truth")
    within = (_column(found, low) <= truth + 1e-12) & (truth <= _column(found, high) + 1e-12)
    return float(within.mean()) if found else float("nan")


def _rmse(found: list[dict[str, object]], key: str) -> float:
    return (
        float(np.sqrt(np.mean((_column(found, key) - _column(found, "truth")) ** 2)))
        if found
        else float("nan")
    )


def _column(found: list[dict[str, object]], key: str) -> np.ndarray:
    return np.array([r.get(key, np.nan) for r in found], dtype=float)


def main() -> None:
    parser = argparse.ArgumentParser(description="Accuracy without labels: rmse and coverage.")
    parser.add_argument("what", choices=["run", "nannyml", "table", "parts"])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument(
        "--only", default="", help="sets whose name contains this, or one of these with commas"
    )
    parser.add_argument(
        "--shifts", default=";".join(SHIFTS), help="which shifts, with semicolons between them"
    )
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    if args.what == "run":
        run(args.runs, args.out, args.only, tuple(args.shifts.split(";")))
    elif args.what == "nannyml":
        run_cbpe(args.runs, args.out.with_name("unlabelled_nannyml.jsonl"), args.only)
    else:
        {"table": table, "parts": parts}[args.what](args.out)


if __name__ == "__main__":
    main()
