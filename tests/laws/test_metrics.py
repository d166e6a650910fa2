"""Laws of every exported metric. Metrics are found by themselves: a new one is tested as soon as it
is exported.

Each law tries all options of a metric that its types name: variants, treatments and binnings.
"""

import inspect
import math
import pkgutil
import re
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generators import ANY, UNIT, Rows, increasing, predictions, rows
from howsure import (
    InputError,
    Predictions,
    adaptive,
    equal_range,
    equal_size,
    metrics,
    tally,
    unique,
)
from howsure.binning import Binning

METRICS = [f for f in (getattr(metrics, name) for name in metrics.__all__) if hasattr(f, "better")]
BINNINGS = [
    equal_range(15),
    equal_range(10),
    equal_size(15),
    adaptive(),
    adaptive(z=1.645),
    unique(),
]
REQUIRED = {"risk": [0.0, 0.1, 0.5], "coverage": [0.01, 0.8, 1.0], "threshold": [0.0, 0.3, 1.0]}
PAPER = re.compile(r"[A-Z]\w+.*\b(19|20)\d\d|Finlay & Oberman")


def choices(f: Callable[..., Any], name: str, parameter: inspect.Parameter) -> list[Any]:
    """Values to try for one option, read from its type; an option of another kind keeps its
    default.
    """
    hint = get_type_hints(f)[name]
    literal = [h for h in (hint, *get_args(hint)) if get_origin(h) is Literal]
    if literal:
        return [v for h in literal for v in get_args(h)]
    if hint is Binning:
        return BINNINGS
    if name == "positive":  # a class; 0 is always there
        return [0]
    if parameter.default is inspect.Parameter.empty:
        assert name in REQUIRED, f"say in REQUIRED which values of {f.__name__}({name}=) to try"
        return REQUIRED[name]
    return []


def versions(f: Callable[..., Any]) -> list[Callable[[Any], float]]:
    """A metric with every combination of its options."""
    options = list(inspect.signature(f).parameters.items())[1:]
    tried = {name: values for name, p in options if (values := choices(f, name, p))}
    chosen = [dict(zip(tried, values, strict=True)) for values in product(*tried.values())]
    return [
        partial(f, **({**v, "cap": 50.0} if v.get("degenerate") == "cap" else v)) for v in chosen
    ]


def over(**facts: Any) -> Any:
    """Parametrise over the metrics with these facts."""
    found = [f for f in METRICS if all(getattr(f, name) == value for name, value in facts.items())]
    return pytest.mark.parametrize("metric", found, ids=lambda f: f.__name__)


def data(metric: Any) -> Any:
    """Rows that a metric can read: any score, or claims where it refuses others."""
    try:
        versions(metric)[0](tally([-1.0, 2.0], correct=[0, 1]))
    except InputError:
        return rows(UNIT)
    return rows(ANY)


def same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def close(a: float, b: float, tolerance: float = 1e-10) -> bool:
    return same(a, b) or abs(a - b) <= tolerance * max(1.0, abs(b))


def agree(metric: Any, a: Any, b: Any, how: Callable[[float, float], bool]) -> None:
    """Every version of the metric gives the same number for `a` and `b`."""
    for version in versions(metric):
        x, y = version(a), version(b)
        assert how(x, y), f"{version}: {x!r} and {y!r}"


@over(takes="tally")
@given(st.data())
def test_order_of_samples_does_not_matter(metric: Any, draw: Any) -> None:
    r: Rows = draw.draw(data(metric))
    order = np.random.default_rng(len(r)).permutation(len(r))
    agree(metric, r.tally(), r.tally(order), same)


@over(takes="predictions")
@given(preds=predictions())
def test_order_of_predictions_does_not_matter(metric: Any, preds: Predictions) -> None:
    order = np.random.default_rng(preds.n).permutation(preds.n)
    agree(metric, preds, preds[order], close)


@over(takes="tally")
@given(st.data())
def test_merged_tallies_are_the_tally_of_all(metric: Any, draw: Any) -> None:
    """Bit for bit, in either order: an exact tally holds integers."""
    r: Rows = draw.draw(data(metric))
    cut = draw.draw(st.integers(0, len(r)))
    parts = [r.tally(part) for part in (slice(None, cut), slice(cut, None)) if len(r.score[part])]
    whole = r.tally()
    agree(metric, sum(parts), whole, same)
    agree(metric, sum(parts[::-1]), whole, same)


@over(takes="tally")
@given(st.data())
def test_float32_and_float64_tallies_merge(metric: Any, draw: Any) -> None:
    r: Rows = draw.draw(data(metric))
    narrow = Rows(r.score.astype(np.float32), r.correct, r.weight)
    wide = Rows(narrow.score.astype(np.float64), r.correct, r.weight)
    both = tally(np.tile(wide.score, 2), correct=np.tile(r.correct, 2))
    agree(metric, narrow.tally() + wide.tally(), both, same)
    agree(metric, narrow.tally(), wide.tally(), partial(close, tolerance=1e-12))


@over(takes="tally")
@given(st.data())
def test_value_is_inside_its_bounds(metric: Any, draw: Any) -> None:
    within(metric, draw.draw(data(metric)).tally())


@over(takes="predictions")
@given(preds=predictions())
def test_value_of_predictions_is_inside_its_bounds(metric: Any, preds: Predictions) -> None:
    within(metric, preds)


def within(metric: Any, x: Any) -> None:
    low, high = metric.bounds
    for version in versions(metric):
        value = version(x)
        assert type(value) is float, f"{version} gave a {type(value)}"
        assert math.isnan(value) or low - 1e-12 <= value <= high + 1e-12, f"{version}: {value!r}"


@over(takes="tally", rank_only=True)
@given(r=rows(ANY), seed=st.integers(0, 2**32 - 1))
def test_increasing_maps_change_no_ranking_metric(metric: Any, r: Rows, seed: int) -> None:
    mapped = tally(increasing(r.score, np.random.default_rng(seed)), correct=r.correct)
    agree(metric, r.tally(), mapped, same)


@over(takes="tally", rank_only=False)
def test_other_metrics_do_look_at_the_values(metric: Any) -> None:
    correct = [1] * 7 + [0] + [1] * 5 + [0] * 3
    high, low = (
        tally([0.95] * 8 + [0.7] * 8, correct=correct),
        tally([0.65] * 8 + [0.55] * 8, correct=correct),
    )
    for version in versions(metric):
        assert not close(version(high), version(low), 1e-3), (
            f"{version} looks rank_only; say so in @metric"
        )


@over(takes="tally")
@given(st.data())
def test_count_is_repetition(metric: Any, draw: Any) -> None:
    r: Rows = draw.draw(data(metric))
    count = r.weight if r.weight.any() else r.weight + 1
    repeated = tally(np.repeat(r.score, count), correct=np.repeat(r.correct, count))
    agree(metric, tally(r.score, correct=r.correct, count=count), repeated, close)


@over(takes="tally")
@given(st.data())
def test_the_unit_of_weights_changes_nothing(metric: Any, draw: Any) -> None:
    r: Rows = draw.draw(data(metric))
    unit = 10.0 ** draw.draw(st.integers(-12, 12))
    once, again = (
        tally(r.score, correct=r.correct, weight=w)
        for w in (0.3 + r.weight, unit * (0.3 + r.weight))
    )
    for version in versions(metric):
        if once.equal_weights or not refuses(version, once):
            x, y = version(once), version(again)
            assert close(x, y, 1e-12), f"{version}: {x!r} and {y!r}"


def refuses(version: Any, t: Any) -> bool:
    """Adaptive bins and debiased errors count samples."""
    try:
        version(t)
    except InputError as e:
        return "these weights are not equal" in str(e)
    return False


@over(takes="tally")
@given(st.data())
def test_equal_weights_are_none(metric: Any, draw: Any) -> None:
    r: Rows = draw.draw(data(metric))
    weighted = tally(r.score, correct=r.correct, weight=np.full(len(r.score), 0.7))
    agree(metric, weighted, r.tally(), close)


@over(takes="predictions")
@given(preds=predictions())
def test_count_of_predictions_is_repetition(metric: Any, preds: Predictions) -> None:
    count = 1 + np.arange(preds.n) % 3
    many = preds[np.repeat(np.arange(preds.n), count)]
    agree(metric, with_columns(preds, count=count), many, close)


@over(takes="predictions")
@given(preds=predictions(), power=st.integers(-12, 12))
def test_the_unit_of_weights_of_predictions_changes_nothing(
    metric: Any, preds: Predictions, power: int
) -> None:
    weight = 0.5 + np.arange(preds.n) % 3
    once, again = (with_columns(preds, weight=w) for w in (weight, weight * 10.0**power))
    agree(metric, once, again, close)


@st.composite
def many_labels(draw: Any) -> tuple[Any, Any]:
    """Probabilities and labels of up to 20 cases; labels may be nowhere or everywhere,
    probabilities tied.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.integers(1, 20)), draw(st.integers(1, 4))
    return rng.uniform(0.05, 0.9, shape).round(draw(st.sampled_from([1, 6]))), rng.integers(
        0, 2, shape
    )


@over(takes="multilabel")
@given(many=many_labels())
def test_many_labels_keep_order_count_unit_and_bounds(metric: Any, many: tuple[Any, Any]) -> None:
    made = partial(Predictions.from_multilabel, sums_to_one=True)
    plain, n = made(*many), len(many[0])
    within(metric, plain)
    order, count, weight = (
        np.random.default_rng(n).permutation(n),
        1 + np.arange(n) % 3,
        0.5 + np.arange(n) % 3,
    )
    agree(metric, plain, made(many[0][order], many[1][order]), close)
    agree(
        metric, made(*many, count=count), made(*(np.repeat(a, count, axis=0) for a in many)), close
    )
    agree(metric, made(*many, weight=weight), made(*many, weight=weight * 1e7), close)
    agree(metric, made(*many, weight=count), made(*many, count=count), close)


@over(takes="pixels")
@given(seed=st.integers(0, 2**32 - 1), images=st.integers(1, 9))
def test_images_keep_order_and_bounds(metric: Any, seed: int, images: int) -> None:
    rng = np.random.default_rng(seed)
    n = images * 6
    z, y, group = rng.normal(size=(n, 3)).round(1), rng.integers(0, 3, n), np.arange(n) % images
    preds, order = Predictions.from_logits(z, y, group=group), rng.permutation(n)
    within(metric, preds)
    agree(metric, preds, preds[order], close)


def with_columns(preds: Predictions, **columns: Any) -> Predictions:
    columns = {"labels": preds.labels, **columns}
    if preds.values.ndim == 3:
        return Predictions.from_samples(**{preds.kind: preds.values}, **columns)
    make = Predictions.from_logits if preds.kind == "logits" else Predictions.from_probs
    return make(preds.values, **columns)


@over()
def test_metric_is_documented(metric: Any) -> None:
    doc = inspect.getdoc(metric) or ""
    assert ">>> " in doc, "show an example that runs"
    assert PAPER.search(doc), "name the paper"
    assert "Range" in doc, "say which values it can take"
    assert re.match(r"[^\n]+[.:,;`]|[^\n]{60,}", doc), "begin with one sentence"


@over()
def test_metric_has_a_line_in_the_docs(metric: Any) -> None:
    page = Path(__file__).parents[2] / "docs" / "metrics.md"
    assert f"`{metric.__name__}`" in page.read_text(), f"add {metric.__name__} to docs/metrics.md"


@over()
def test_metric_says_what_it_is(metric: Any) -> None:
    assert metric.better in ("lower", "higher", "zero")
    assert metric.takes in ("tally", "predictions", "multilabel", "pixels")
    assert metric.bounds[0] < metric.bounds[1]
    assert isinstance(metric.rank_only, bool)
    assert isinstance(metric.smooth, bool)


def test_every_metric_is_exported() -> None:
    for info in pkgutil.iter_modules(metrics.__path__, "howsure.metrics."):
        for name, f in vars(import_module(info.name)).items():
            if hasattr(f, "better") and f.__module__ == info.name:
                assert name in metrics.__all__, (
                    f"add `from {info.name} import {name}` to metrics/__init__.py"
                )


def test_exports_are_sorted() -> None:
    assert list(metrics.__all__) == sorted(metrics.__all__)
