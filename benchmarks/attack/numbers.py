"""Numbers at the edge through every function that measures, calibrates or chooses: a value or an
InputError, nothing else.
"""

from __future__ import annotations

import itertools
import tempfile
import warnings
from collections.abc import Callable, Iterator
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np

import howsure as hs
from howsure import bounds, calibrators, metrics, policies
from howsure.policies import Policy
from howsure.predictions.images import images_of

Case = tuple[str, Callable[[], object]]


def list_predictions(folder: Path) -> Iterator[tuple[str, Callable[[], hs.Predictions]]]:
    """Predictions of few or odd rows: how many, constant, at the ends of what a number can be, and in
    memory as a stranger may keep them.
    """
    rng = np.random.default_rng(0)
    for n, k in itertools.product((0, 1, 2, 3), (2, 3)):
        z, y = rng.normal(size=(n, k)), rng.integers(0, k, n)
        yield f"logits n={n} k={k}", lambda z=z, y=y: hs.Predictions.from_logits(z, y)
        p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        yield f"probs n={n} k={k}", lambda p=p, y=y: hs.Predictions.from_probs(p, y)
        c, right = rng.random(n), rng.integers(0, 2, n)
        yield f"confidence n={n}", lambda c=c, r=right: hs.Predictions.from_confidence(c, r)
    n, k = 40, 3
    z, y = rng.normal(size=(n, k)) * 2, rng.integers(0, k, n)
    make = hs.Predictions.from_logits
    yield "constant logits", lambda: make(np.zeros((n, k)), y)
    yield "one class in the labels", lambda: make(z, np.zeros(n, int))
    yield "all right", lambda: make(z, z.argmax(1))
    yield "all wrong", lambda: make(z, (z.argmax(1) + 1) % k)
    for value in (inf, -inf, nan, 1e308, 5e-324, -0.0, 1e-310, 709.0, 1e5):
        odd = z.copy()
        odd[3, 1] = value
        yield f"one logit {value:g}", lambda odd=odd: make(odd, y)
        yield f"all logits {value:g}", lambda v=value: make(np.full((n, k), v), y)
    yield "denormal logits", lambda: make(z * 5e-324, y)
    yield "big-endian", lambda: make(z.astype(">f8"), y.astype(">i4"))
    yield "half", lambda: make(z.astype(np.float16), y.astype(np.uint8))
    yield "longdouble", lambda: make(z.astype(np.longdouble), y)
    yield "integers", lambda: make(np.round(z).astype(np.int32), y)
    yield "fortran", lambda: make(np.asfortranarray(z), y)
    yield "strided", lambda: make(np.repeat(z, 2, axis=0)[::2], np.repeat(y, 2)[::2])
    yield "negative strides", lambda: make(z[::-1, ::-1], y[::-1])

    def freeze() -> hs.Predictions:
        a, b = z.copy(), y.copy()
        a.flags.writeable = b.flags.writeable = False
        return make(a, b)

    def map_file() -> hs.Predictions:
        a = np.memmap(folder / "z", np.float64, "w+", shape=(n, k))
        a[:] = z
        a.flush()
        return make(np.memmap(folder / "z", np.float64, "r", shape=(n, k)), y)

    yield "read-only", freeze
    yield "memmap", map_file
    yield "broadcast", lambda: make(np.broadcast_to(z[:1], (n, k)), y)
    yield "one class", lambda: make(np.zeros((n, 1)), np.zeros(n, int))
    wide = rng.normal(size=(3, 100_000)).astype(np.float32)
    yield "10^5 classes", lambda: make(wide, np.array([0, 5, 99_999]))
    names = [f"class {i}" for i in range(100_000)]
    yield "10^5 named classes", lambda: make(wide, np.array([0, 5, 9]), class_names=names)
    probs = np.full((n, k), 1 / 3)
    for value in (0.0, 1.0, 5e-324, 1 - 2**-53, 1.0000001):
        odd = np.tile([value, 1 - value, 0.0], (n, 1))
        yield f"probs {value!r}", lambda odd=odd: hs.Predictions.from_probs(odd, y)
    yield "equal probs", lambda: hs.Predictions.from_probs(probs, y)
    for value in (0.0, 1.0, 5e-324, -0.0, 0.5, nan, inf, 1e-310):
        c = np.full(n, value)
        r = y > 0
        yield f"confidences {value!r}", lambda c=c, r=r: hs.Predictions.from_confidence(c, r)
    for value in (0.0, 5e-324, 1e-300, 1e99, inf, nan, -1.0):
        w = np.ones(n)
        w[0] = value
        yield f"weight {value!r}", lambda w=w: make(z, y, weight=w)
    yield "one group", lambda: make(z, y, group=np.zeros(n, int))
    yield "two groups", lambda: make(z, y, group=y > 0)
    for labels in (1, 2):
        p, truth = rng.random((n, labels)), rng.integers(0, 2, (n, labels))
        tags = hs.Predictions.from_multilabel
        yield f"{labels} labels", lambda p=p, t=truth, make=tags: make(p, t)
        yield f"{labels} labels, one row", lambda p=p, t=truth, make=tags: make(p[:1], t[:1])
        yield f"{labels} labels, no row", lambda p=p, t=truth, make=tags: make(p[:0], t[:0])
        yield f"{labels} labels, constant", lambda p=p, t=truth, make=tags: make(p * 0, t * 0)
        yield f"{labels} labels, nan", lambda p=p, t=truth, make=tags: make(p * nan, t)
        yield f"{labels} labels, above 1", lambda p=p, t=truth, make=tags: make(p * 5, t)
    pixels = rng.normal(size=(n, 2))
    for name, image in {"one": np.zeros(n, int), "each": np.arange(n), "few": y}.items():
        yield f"pixels, {name} image", lambda i=image: make(pixels, y > 0, group=i)
        yield f"pixels, {name} image, empty", lambda i=image: make(pixels, y * 0, group=i)
    yield "members", lambda: hs.Predictions.from_samples(np.stack((z, z)), y)
    yield "a member of nan", lambda: hs.Predictions.from_samples(np.stack((z, z * nan)), y)


def list_calls(folder: Path) -> Iterator[Case]:
    """Every function with every odd input."""
    fits = [getattr(calibrators, name) for name in calibrators.__all__]
    fits = [fit for fit in fits if hasattr(fit, "fit") and fit.__name__ != "SecondOpinion"]
    for name, make in list_predictions(folder):
        try:
            preds = make()
        except hs.InputError:
            continue
        except Exception:
            yield f"{name}: predictions", make
            continue
        yield f"{name}: predictions", make
        for metric in ("aurc", "ece", "accuracy", "nll", "auroc", "mce", "aece"):
            if not hasattr(metrics, metric):
                continue
            measure = getattr(metrics, metric)
            yield f"{name}: interval {metric}", lambda m=measure, p=preds: hs.interval(m, p)
            yield (
                f"{name}: paired {metric}",
                lambda m=measure, p=preds: hs.paired_difference(m, p, p),
            )
        for fit in fits:
            yield f"{name}: {fit.__name__}", lambda f=fit, p=preds: f.fit(p)(p).confidence
        for rule, choose in RULES.items():
            yield f"{name}: {rule}", lambda c=choose, p=preds: decide(p, c)
        yield f"{name}: evaluate", lambda p=preds: hs.evaluate(p).to_text()
        yield f"{name}: masks", lambda p=preds: hs.evaluate(p, loss="dice").to_text()
        yield (
            f"{name}: policy of masks",
            lambda p=preds: decide(images_of(p).predictions(), RULES["graded"]),
        )
        yield (
            f"{name}: policy of labels",
            lambda p=preds: policies.label_policy(p, risk=0.1, delta=0.1).decide(p),
        )


RULES: dict[str, Callable[[Any], Any]] = {
    "guaranteed": lambda t: policies.guaranteed_threshold(t, risk=0.1, delta=0.1),
    "graded": lambda t: policies.guaranteed_threshold(t, risk=0.5, delta=0.1, bound="betting"),
    "accuracy": lambda t: policies.threshold_for_accuracy(t, 0.9),
    "coverage": lambda t: policies.threshold_for_coverage(t, 0.5),
    "cost": lambda t: policies.threshold_for_cost(t, error=10, deferral=1),
    "at": lambda t: policies.threshold_at(t, 0.5),
}


def decide(preds: hs.Predictions, choose: Callable[[Any], Any]) -> object:
    """A policy fitted, saved, loaded and applied, to all and to one."""
    policy = Policy.fit(preds, choose)
    with tempfile.TemporaryDirectory() as folder:
        hs.save(policy, Path(folder, "p.json"))
        policy = hs.load(Path(folder, "p.json"))
    return policy.decide(preds), policy.to_text()


def list_bounds() -> Iterator[Case]:
    """Bounds of odd counts, means, losses and levels."""
    counts = (0, 1, 2, 1e6, 2**53, 1e15, 1e300, -1, 0.5, inf, nan, 5e-324)
    levels = (0.05, 1e-12, 5e-324, 0.0, 1.0, -1.0, nan, inf)
    for errors, n, level in itertools.product(counts, counts, levels):
        for name in ("clopper_pearson", "clopper_pearson_interval", "hoeffding_bentkus"):
            call = getattr(bounds, name)
            yield f"{name}({errors}, {n}, {level})", lambda c=call, a=(errors, n, level): c(*a)
    losses: list[Any] = [
        [],
        [0.0],
        [1.0],
        [0.5, 0.5],
        np.zeros(1000),
        np.ones(1000),
        [nan],
        [inf],
        [-1.0],
        [5e-324] * 5,
        [1.0, 2.0],
        np.zeros(5, ">f8"),
        np.zeros((2, 2)),
        ["a"],
        np.array([], dtype=object),
        None,
    ]
    for x, level in itertools.product(losses, levels):
        yield f"betting({x!r:.40}, {level})", lambda x=x, d=level: bounds.betting(x, d)
        yield (
            f"group_betting({x!r:.40}, {level})",
            lambda x=x, d=level: bounds.group_betting(x, x, x, d),
        )
    for error, risk, level in itertools.product(
        (0, 0.01, 0.5, 1, nan, -1), (0, 0.05, 1, nan), levels
    ):
        yield (
            f"label_budget({error}, {risk}, {level})",
            lambda a=(error, risk, level): policies.label_budget(a[0], risk=a[1], delta=a[2]),
        )


def run(call: Callable[[], object]) -> str:
    """What went wrong; nothing where there was a value or a refusal of one sentence."""
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            call()
    except hs.InputError as e:
        return "" if "\n" not in str(e) and len(str(e)) < 3000 else "a long refusal"
    except Exception as e:
        return f"{type(e).__name__}: {str(e)[:150]}"
    bad = [w for w in said if issubclass(w.category, RuntimeWarning)]
    return f"warning {bad[0].message}" if bad else ""
