"""Wrote this folder with howsure 0.1.0 (commit 0bcfe52); later versions must read it and not write
it again.

`PYTHONPATH=src python .../make_v01.py FOLDER` in a checkout of that commit.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import howsure as hs
from howsure import policies as p
from howsure.predictions import Predictions

N, NAMES = 60, ["ant", "bée", "cat"]


def logits(n: int = N, k: int = 3, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return (2 * np.eye(k)[y] + 1.5 * rng.standard_normal((n, k))).round(3), y


def probs(k: int = 3) -> tuple[Any, Any]:
    z, y = logits(k=k)
    e = np.exp(z)
    return e / e.sum(1, keepdims=True), y


def predictions() -> Predictions:
    return Predictions.from_logits(*logits(), class_names=NAMES, ids=[f"s{i}" for i in range(N)])


def calibrators() -> dict[str, Any]:
    kinds = [
        "Beta",
        "Dirichlet",
        "HistogramBinning",
        "Identity",
        "Isotonic",
        "MatrixScaling",
        "Platt",
        "Temperature",
        "VectorScaling",
    ]
    return {name.lower(): getattr(hs.calibrators, name).fit(predictions()) for name in kinds}


def deciders() -> dict[str, Any]:
    preds = predictions()
    plain = p.Policy.fit(
        preds, lambda t: p.threshold_for_accuracy(t, 0.9), source=("val.npz", "0" * 64)
    )
    online = p.OnlinePolicy.start(plain, plain.decide(preds).score, risk=0.2, audit=0.5)
    online, made = online.decide(preds)
    watch = p.Watch.start(plain.decide(preds))
    o = [hs.Outcomes(preds.confidence, preds.correct) for _ in range(2)]
    return {
        "policy": plain,
        "policy_guaranteed": p.Policy.fit(
            preds, lambda t: p.guaranteed_threshold(t, risk=0.3, delta=0.1)
        ),
        "policy_infeasible": p.Policy.fit(
            preds, lambda t: p.guaranteed_threshold(t, risk=0.01, delta=0.05)
        ),
        "policy_by_class": p.Policy.fit(
            preds, lambda t: p.threshold_for_coverage(t, 0.5), by="class", minimum=5
        ),
        "policy_calibrated": p.Policy.fit(
            preds,
            lambda t: p.threshold_for_coverage(t, 0.7),
            calibrator=hs.calibrators.Temperature.fit(preds),
        ),
        "policy_costs": p.Policy.fit(
            preds,
            lambda t: p.threshold_for_cost(t, error=1.0, deferral=0.3),
            costs=[[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [5.0, 1.0, 0.0]],
        ),
        "online": online.learn(made, preds.correct),
        "watch": watch.see(plain.decide(preds)).see(
            plain.decide(preds[np.argsort(preds.confidence)[:20]])
        ),
        "cascade": p.Cascade.fit(o, costs=[1.0, 5.0], human_cost=50.0, error_cost=100.0),
    }


def behaviour(value: Any) -> Any:
    """What the value does, to compare with what it does after it was read."""
    preds = predictions()[:8]
    if isinstance(value, p.Policy):
        return {
            "accept": value.decide(preds).accept.tolist(),
            "answers": value.decide(preds).answers(),
        }
    if isinstance(value, p.OnlinePolicy):
        return {
            "threshold": value.threshold,
            "seen": value.seen,
            "audited_risk": value.audited_risk,
        }
    if isinstance(value, p.Watch):
        return {"seen": value.seen, "alarms": value.alarms}
    if isinstance(value, p.Cascade):
        return {"thresholds": list(value.thresholds)}
    return {"values": value(preds).values.tolist()}


def reports(folder: Path) -> dict[str, Any]:
    z, y = logits()
    q, _ = probs()
    group = np.arange(N) // 4
    image = np.linspace(0, 1, N * 9).reshape(N, 3, 3)
    cold = hs.calibrators.Temperature.fit(predictions())
    confidence, correct = q.max(1), q.argmax(1) == y
    return {
        "logits": hs.evaluate(predictions(), images=image),
        "probs": hs.evaluate(Predictions.from_probs(q, y), level=0.9),
        "confidence": hs.evaluate(Predictions.from_confidence(confidence, correct)),
        "top_label": hs.evaluate(
            Predictions.from_confidence(confidence, prediction=q.argmax(1), labels=y)
        ),
        "binary": hs.evaluate(Predictions.from_probs(*probs(2), class_names=["no", "yes"])),
        "grouped": hs.evaluate(Predictions.from_logits(z, y, group=group)),
        "weighted": hs.evaluate(
            Predictions.from_confidence(confidence, correct, weight=1.0 + np.arange(N) % 3)
        ),
        "samples": hs.evaluate(
            Predictions.from_samples(z + np.random.default_rng(1).normal(size=(4, N, 3)), y)
        ),
        "energy": hs.evaluate(predictions(), ["energy", "max_logit"]),
        "calibrated": hs.evaluate(cold(predictions()), before=predictions()),
        "right": hs.evaluate(Predictions.from_probs([[0.9, 0.1], [0.2, 0.8]], [0, 1])),
        **streamed(folder),
    }


def streamed(folder: Path) -> dict[str, Any]:
    z, y = logits()
    paths = []
    for i in range(2):
        preds = Predictions.from_logits(z[i::2], y[i::2], class_names=NAMES)
        paths.append(folder / f"part{i}.jsonl")
        hs.write(preds, paths[-1])
    found = {
        "streamed": hs.evaluate_files(paths),
        "streamed_compact": hs.evaluate_files(paths, compact=True),
    }
    for path in paths:
        path.unlink()
    return found


def decisions(folder: Path) -> None:
    """Twelve rows, and the decisions of the first five of them."""
    rows = [f"r{i}," + ",".join(map(str, row)) for i, row in enumerate(logits(12)[0].tolist())]
    (folder / "rows.csv").write_text("\n".join(["id,logit_0,logit_1,logit_2", *rows]) + "\n")
    command = [
        sys.executable,
        "-m",
        "howsure.cli",
        "decide",
        folder / "policy.json",
        folder / "rows.csv",
    ]
    made = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    (folder / "decisions.jsonl").write_text("".join(made.splitlines(keepends=True)[:5]))


def main(folder: Path) -> None:
    for name, value in {**calibrators(), **deciders()}.items():
        hs.save(value, folder / f"{name}.json")
    does = {name: behaviour(value) for name, value in {**calibrators(), **deciders()}.items()}
    (folder / "behaviour.json").write_text(json.dumps(does, indent=1) + "\n")
    decisions(folder)
    for name, report in reports(folder).items():
        report.to_json(folder / f"report_{name}.json")
    preds = predictions()
    sets: dict[str, Any] = {
        "by": np.arange(N) % 2,
        "cost": {"a": 1.0, "b": 2.0},
        "shifted": {"fog": {"a": preds}},
    }
    outside = {"noise": {"a": Predictions.from_logits(logits(20)[0] / 9)}}
    other = Predictions.from_logits(logits(seed=1)[0], preds.labels, ids=preds.ids)
    hs.compare({"a": preds, "b": other}, outside=outside, **sets).to_json(
        folder / "comparison_models.json"
    )
    scores = {"max_prob": (preds, "max_prob"), "energy": (preds, "energy")}
    hs.compare(scores).to_json(folder / "comparison_scores.json")
    found = hs.calibration_report(preds[::2], preds[1::2])
    (folder / "calibration.json").write_text(json.dumps(found.to_dict(), allow_nan=False) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
