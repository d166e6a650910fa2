"""Saved calibrators, policies and states, changed under a valid digest: each is loaded and used, or
refused.
"""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import howsure as hs
from howsure import calibrators
from howsure._core import saving
from howsure.policies import Cascade, DriftMonitor, OnlinePolicy, Policy, guaranteed_threshold
from howsure.policies.suggestions import Suggestions
from howsure.predictions.read_options import Asked, ReadOptions
from howsure.serving import GuaranteeMonitor
from howsure.serving.feedback import Learner

WRONG: tuple[Callable[[np.random.Generator], Any], ...] = (
    lambda _: None,
    lambda _: True,
    lambda _: "x",
    lambda _: "",
    lambda _: [],
    lambda _: {},
    lambda _: 0,
    lambda _: -1,
    lambda _: -0.5,
    lambda _: 2**63,
    lambda _: -(2**63) - 1,
    lambda _: 10**400,
    lambda _: 1e308,
    lambda _: -1e308,
    lambda _: 5e-324,
    lambda _: {"float": "nan"},
    lambda _: {"float": "inf"},
    lambda _: {"float": "-inf"},
    lambda _: {"float": "x"},
    lambda _: [1, "x", None],
    lambda _: [[1.0, 2.0], [3.0]],
    lambda _: {"array": [1.0, 2.0], "dtype": "float64", "shape": [2]},
    lambda _: {"array": [], "dtype": "float64", "shape": [0]},
    lambda _: {"array": [], "dtype": "int64", "shape": [0, 2**40]},
    lambda _: {"array": [1], "dtype": "int64", "shape": [1, 1, 1]},
    lambda _: {"array": [2**70], "dtype": "int64", "shape": [1]},
    lambda _: {"array": [True], "dtype": "bool", "shape": []},
    lambda _: {"class": "Temperature", "temperature": 1.5, "fitted": None},
    lambda _: {"class": "Identity"},
    lambda _: {"class": "Fitted", "status": "x", "n": 1, "k": 2, "class_names": None, "nll": 0.1},
    lambda _: {"class": "Policy", "score": "max_prob", "threshold": 0.5},
    lambda _: {"class": ["Policy"]},
    lambda _: {"class": "Popen", "args": ["true"]},
    lambda rng: int(rng.integers(-(2**62), 2**62)),
    lambda rng: float(rng.normal() * 10.0 ** int(rng.integers(-300, 300))),
)


def alike(value: Any, rng: np.random.Generator) -> Any:
    """Another value of the same type, which passes for the real one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return int(rng.choice([0, 1, -1, 2, 100, 2**31, 2**53, 2**62, -(2**62), value + 1, -value]))
    if isinstance(value, float):
        return float(
            rng.choice(
                [
                    0.0,
                    -0.0,
                    1.0,
                    -1.0,
                    0.5,
                    2.0,
                    1e-300,
                    1e20,
                    1e99,
                    1e300,
                    -1e300,
                    -value,
                    value * 2,
                ]
            )
        )
    if isinstance(value, str):
        return str(
            rng.choice(
                ["", "class", "group", "margin", "energy", "cost", "0", "\x1b[31m", value * 2]
            )
        )
    if isinstance(value, list):
        return [value[::-1], value[:-1], value * 2, value[:1], []][int(rng.integers(5))]
    if isinstance(value, dict) and isinstance(value.get("array"), list) and value["array"]:
        flat = list(value["array"])
        flat[int(rng.integers(len(flat)))] = alike(flat[0], rng)
        return {**value, "array": flat}
    return value


def preds(k: int = 3) -> hs.Predictions:
    rng = np.random.default_rng(0)
    y = np.arange(60) % k
    return hs.Predictions.from_logits(rng.normal(size=(60, k)) + 2 * np.eye(k)[y], y, group=y)


def top() -> hs.Predictions:
    p = preds()
    return hs.Predictions.from_confidence(p.confidence, p.correct)


def tags() -> hs.Predictions:
    rng = np.random.default_rng(1)
    p = rng.random((60, 2))
    return hs.Predictions.from_multilabel(
        p, (rng.random((60, 2)) < p).astype(int), label_names=["cat", "dog"]
    )


@cache
def values() -> tuple[Any, ...]:
    """One value of every class that can be saved."""
    fits = [
        getattr(calibrators, n)
        for n in calibrators.__all__
        if n not in ("PerLabel", "SecondOpinion") and hasattr(getattr(calibrators, n), "fit")
    ]
    out = [fit.fit(preds()) for fit in fits] + [
        fit.fit(top()) for fit in (calibrators.Platt, calibrators.Isotonic)
    ]
    choose = lambda t: guaranteed_threshold(t, risk=0.5, delta=0.2)
    made = Policy.fit(preds(), choose) if hasattr(Policy, "fit") else Policy("max_prob", 0.5)
    plain = Policy(
        "max_prob",
        0.6,
        calibrators.Temperature(1.5),
        by="group",
        keys=("0", "1"),
        thresholds=(0.5, 0.7),
        read=ReadOptions(names={"labels": "truth"}, renormalise=True),
        asked=Asked(models=("m-1",), questions={"late": ("predicate", "probability", "9cb6")}),
        suggestions=Suggestions(level=0.95, cut=0.8, keys=(1,), cuts=(0.9,), n=120),
    )
    costly = Policy("cost", -0.5, costs=((0.0, 1.0, 2.0), (1.0, 0.0, 1.0), (2.0, 1.0, 0.0)), k=3)
    online = OnlinePolicy.start(Policy("max_prob", 0.5), np.linspace(0, 1, 11), risk=0.1, audit=1.0)
    state, decided = online.decide(preds())
    watch = DriftMonitor.start(Policy("max_prob", 0.5).decide(preds()), false_alarms=0.01)
    o = hs.Outcomes(preds().confidence, correct=preds().correct)
    cascade = Cascade.fit([o, o], costs=(1, 5), human_cost=20, error_cost=100)
    promise = GuaranteeMonitor.start(risk=0.1).see(preds().correct)
    rest = (
        state.learn(decided, preds().correct),
        watch.see(decided),
        cascade,
        promise,
        promise.reset("a reason"),
    )
    opinion = calibrators.SecondOpinion(
        0.1, 0.6, 0.5, used=True, gain=-0.2, gain_low=-0.3, gain_high=-0.1, rows="9cb6"
    )
    return (*out, calibrators.PerLabel.fit(tags()), opinion, made, plain, costly, *rest)


def used(value: Any) -> None:
    """What a program does with a loaded value."""
    if isinstance(value, Policy):
        value.decide(preds())
    elif isinstance(value, OnlinePolicy):
        state, made = value.decide(preds())
        state.learn(made, preds().correct)
        Learner(value, None, lambda _: None).decide(preds())
    elif isinstance(value, DriftMonitor):
        value.see(Policy("max_prob", 0.5).decide(preds()))
    elif isinstance(value, GuaranteeMonitor):
        value.see(preds().correct).reset("again")
        repr(value.see(preds().correct).alarms)
    elif isinstance(value, calibrators.PerLabel):
        value(tags()).confidence.sum()
    elif isinstance(value, calibrators.SecondOpinion):
        value(preds(), preds()).confidence.sum()
    elif isinstance(value, Cascade):
        value.decide([preds(), preds()])
    elif callable(value):
        given = top() if getattr(value, "top_label", False) else preds()
        value(given).confidence.sum()
    repr(value)


def places(tree: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a JSON tree."""
    yield at
    items = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree[:4])
        if isinstance(tree, list)
        else ()
    )
    for key, part in items:
        yield from places(part, (*at, key))


def mutated(tree: Any, rng: np.random.Generator) -> Any:
    """One to three places changed: another value, a key gone, doubled, renamed, or everything
    nested deeper.
    """
    tree = copy.deepcopy(tree)
    for _ in range(int(rng.integers(1, 4))):
        every = [place for place in places(tree) if place]
        if not every:  # the only places are gone
            break
        place = every[int(rng.integers(len(every)))]
        parent = tree
        for key in place[:-1]:
            parent = parent[key]
        kind = rng.random()
        if kind < 0.4:
            parent[place[-1]] = alike(parent[place[-1]], rng)
        elif kind < 0.8 or isinstance(parent, list):
            parent[place[-1]] = WRONG[int(rng.integers(len(WRONG)))](rng)
        elif kind < 0.88:
            del parent[place[-1]]
        elif kind < 0.95:
            parent[str(rng.integers(10))] = parent[place[-1]]
        else:
            deep: Any = parent[place[-1]]
            for _level in range(int(rng.choice([10, 100, 300, 600]))):
                deep = [deep] if rng.random() < 0.5 else {"class": "Policy", "calibrator": deep}
            parent[place[-1]] = deep
            break  # the rest of the tree would be walked too deeply
    return tree


@cache
def trees(folder: Path) -> tuple[dict[str, Any], ...]:
    out = []
    for i, value in enumerate(values()):
        hs.save(value, folder / f"{i}.json")
        out.append(json.loads((folder / f"{i}.json").read_text()))
    return tuple(out)


def text(tree: dict[str, Any]) -> str:
    """The file with a digest that is right."""
    content = {key: tree[key] for key in tree if key != "digest"}
    try:
        return json.dumps({**content, "digest": saving.compute_digest(content)})
    except (ValueError, RecursionError):
        return json.dumps({"howsure": "0", "schema": 1, "value": None, "digest": "sha256:0"})


def one(index: int, folder: Path) -> str:
    """Make, load and use the state of a number: "read", "refused", or what went wrong."""
    rng = np.random.default_rng([4, index])
    tree = dict(trees(folder)[index % len(trees(folder))])
    tree["value"] = mutated(tree["value"], rng)
    path = folder / "state.json"
    path.write_text(text(tree))
    return outcome(path)


def large(folder: Path) -> str:
    """A state of 20 MB: a matrix of a thousand classes."""
    path = folder / "large.json"
    if not path.exists():
        rng = np.random.default_rng(0)
        hs.save(calibrators.MatrixScaling(rng.normal(size=(1000, 1000)), np.zeros(1000)), path)
    hs.load(path)
    return "read"


def outcome(path: Path) -> str:
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            used(hs.load(path))
        wrong = [w for w in said if issubclass(w.category, RuntimeWarning)]
        return f"unforeseen: warning {wrong[0].message}" if wrong else "read"
    except hs.InputError as e:
        return (
            "refused" if "\n" not in str(e) and len(str(e)) < 3000 else "unforeseen: a long refusal"
        )
    except Exception as e:
        return f"unforeseen: {type(e).__name__}: {str(e)[:100]}"
