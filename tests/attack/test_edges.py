"""Numbers at the edge: right, or refused in one sentence; never a warning of NumPy, never another
number.
"""

import json
import tracemalloc
import warnings
from itertools import chain, islice
from pathlib import Path

import numpy as np
import pytest
from benchmarks.attack import numbers

import howsure as hs
from howsure import InputError, Outcomes, Predictions, tally
from howsure.calibrators import (
    Dirichlet,
    HistogramBinning,
    Isotonic,
    MatrixScaling,
    Platt,
    Temperature,
    VectorScaling,
)
from howsure.metrics.binary import positive_class
from howsure.predictions.frames import FixedClassifier
from howsure.predictions.segments import Cut

RNG = np.random.default_rng(0)
CONFIDENCE = RNG.random(60)
CORRECT = RNG.random(60) < CONFIDENCE
LABELS = np.arange(60) % 3
LOGITS = RNG.normal(size=(60, 4)) + 2 * np.eye(4)[LABELS]
RULED_OUT = np.where(np.arange(4) == 3, -np.inf, LOGITS)


@pytest.mark.parametrize(
    "kind", ["confidence", "correct", "score", "logits", "labels", "ids", "group", "weight"]
)
def test_a_masked_array_is_refused(kind: str) -> None:
    def masked(a: np.ndarray) -> np.ma.MaskedArray:
        return np.ma.array(a, mask=np.arange(a.size).reshape(a.shape) == 7)

    top = {"confidence": CONFIDENCE, "correct": CORRECT}
    both = {"logits": LOGITS, "labels": LABELS}
    beside = {"ids": np.arange(60), "group": LABELS, "weight": np.ones(60)}
    make = {
        **{k: lambda k=k: Predictions.from_confidence(**{**top, k: masked(top[k])}) for k in top},
        **{k: lambda k=k: Predictions.from_logits(**{**both, k: masked(both[k])}) for k in both},
        **{
            k: lambda k=k: Predictions.from_confidence(**top, **{k: masked(beside[k])})
            for k in beside
        },
        "score": lambda: tally(masked(CONFIDENCE), correct=CORRECT),
    }
    with pytest.raises(InputError, match=r"has 1 masked values \(first: row"):
        make[kind]()


def test_a_mask_that_hides_nothing_is_none() -> None:
    assert Predictions.from_confidence(np.ma.array(CONFIDENCE), CORRECT).n == 60
    left = np.ma.array(CONFIDENCE, mask=np.arange(60) == 7)
    assert Predictions.from_confidence(left[~left.mask], CORRECT[~left.mask]).n == 59


@pytest.mark.parametrize("door", ["frame", "attributes", "estimator"])
def test_a_masked_column_is_refused_at_every_other_door(door: str) -> None:
    hidden = np.ma.array(LABELS % 2, mask=np.arange(60) == 7)
    known = FixedClassifier(["0", "1"], np.stack((1 - CONFIDENCE, CONFIDENCE), axis=1).tolist())
    make = {
        "frame": lambda: Predictions.from_frame(
            {"risk": CONFIDENCE, "label": hidden}, probs="risk", label="label"
        ),
        "attributes": lambda: Predictions.from_confidence(
            CONFIDENCE, CORRECT, attributes={"site": hidden}
        ),
        "estimator": lambda: Predictions.from_estimator(known, None, hidden),
    }
    with pytest.raises(
        InputError, match=r"has 1 masked values \(first: row 7\); values are needed; leave out"
    ):
        make[door]()


def test_masked_rows_are_left_out_when_asked() -> None:
    logits = np.ma.array(LOGITS, mask=np.zeros_like(LOGITS, dtype=bool))
    logits[3, 2] = np.ma.masked
    labels = np.ma.array(LABELS, mask=np.arange(60) == 7)
    z, y, ids = hs.without_masked(logits, labels, [f"row {i}" for i in range(60)])
    keep = ~np.isin(np.arange(60), (3, 7))
    made = Predictions.from_logits(z, y, ids=ids)
    assert np.array_equal(made.logits[0], LOGITS[keep])
    assert np.array_equal(made.labels, LABELS[keep])
    assert made.ids is not None
    assert made.ids[:4].tolist() == ["row 0", "row 1", "row 2", "row 4"]
    for wrong, message in (
        ((logits, labels[:5]), "column 1 has 5 rows, column 0 has 60"),
        ((np.ma.masked_all(4),), "all 4 rows are masked"),
        ((3.0,), "a row for each sample"),
        ((), "needs the columns"),
    ):
        with pytest.raises(InputError, match=message):
            hs.without_masked(*wrong)


def test_a_large_count_takes_no_memory_in_the_ideal_threshold_diagram() -> None:
    t = tally([0.9, 0.8, 0.7], correct=[1, 0, 1], count=[10**9, 3 * 10**9, 5])
    tracemalloc.start()
    found = hs.threshold_diagram(t, ideal=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200 * 2**20
    assert len(found) <= 1 << 20
    assert (found.weight[0], found.weight[-1]) == (10**9 + 5, 4 * 10**9 + 5)
    assert found.y == pytest.approx((10**9 + 5) / found.weight)
    few = tally([0.9, 0.8, 0.7], correct=[1, 0, 1], count=[2, 3, 1])
    assert hs.threshold_diagram(few, ideal=True).weight.tolist() == [3, 4, 5, 6]


@pytest.mark.parametrize("weight", [1e20, 1e308, 1e-320])
def test_weights_beyond_all_bounds_are_refused(weight: float) -> None:
    w = np.ones(60)
    w[3] = weight
    for make in (
        lambda: Predictions.from_confidence(CONFIDENCE, CORRECT, weight=w),
        lambda: tally(CONFIDENCE, correct=CORRECT, weight=w),
        lambda: Outcomes(CONFIDENCE, correct=CORRECT, weight=w),
    ):
        with pytest.raises(InputError, match="Only ratios matter"):
            make()


@pytest.mark.parametrize("weight", [1e18, 1e20, 1e99])
def test_equal_weights_of_any_size_change_nothing(weight: float) -> None:
    """Whole numbers whose sum no int64 holds."""
    z, y = np.eye(3)[np.arange(60) % 3] * np.linspace(0.1, 3, 60)[:, None], np.arange(60) % 4 % 3
    made = [
        hs.evaluate(Predictions.from_logits(z, y, weight=w)).to_json()
        for w in (None, np.full(60, weight))
    ]
    plain, heavy = (json.loads(text)["metrics"] for text in made)
    assert len(heavy) > 10
    for name, found in heavy.items():
        expected = plain[name]["value"]
        assert found["value"] == (expected and pytest.approx(expected, rel=1e-9, abs=1e-12)), name


def test_counts_beyond_an_int64_and_complex_labels_are_refused() -> None:
    with pytest.raises(InputError, match="counts below"):
        Predictions.from_confidence([0.5, 0.6], [1, 0], count=[2**63, 1])
    with pytest.raises(InputError, match="complex"):
        Predictions.from_logits(np.eye(2), np.array([0, 1 + 1j]))


@pytest.mark.parametrize("weight", [1e9, 1e12])
def test_one_large_weight_is_evaluated_without_a_warning(weight: float) -> None:
    w = np.ones(60)
    w[3] = weight
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        report = hs.evaluate(Predictions.from_confidence(CONFIDENCE, CORRECT, weight=w))
    assert report.data["metrics"]["accuracy"]["value"] == pytest.approx(float(CORRECT[3]), abs=1e-6)


@pytest.mark.parametrize("logit", [1e307, 1e308, -1e308, np.inf])
def test_logits_beyond_all_bounds_are_refused(logit: float) -> None:
    z = LOGITS.copy()
    z[5, 1] = logit
    with pytest.raises(InputError, match=r"(beyond all bounds|infinite values) \(first: row 5\)"):
        Predictions.from_logits(z, LABELS)
    with pytest.raises(InputError, match=r"(beyond all bounds|infinite values) \(first: row 5\)"):
        Predictions.from_samples(np.stack([LOGITS, z]), LABELS)


def test_large_logits_are_right() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        large = Predictions.from_logits(np.where(LOGITS > 1, 1e90, 0.0), LABELS)
        hs.evaluate(large)
        float32 = Predictions.from_logits(np.array([[3.4e38, -3.4e38]], dtype=np.float32), [0])
        assert hs.nll(float32) == 0.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_logit_of_minus_infinity_is_probability_0(dtype: type) -> None:
    masked = Predictions.from_logits(RULED_OUT.astype(dtype), LABELS)
    three = Predictions.from_logits(LOGITS[:, :3].astype(dtype), LABELS)
    assert (masked.probs[:, 3] == 0).all()
    np.testing.assert_allclose(masked.probs[:, :3], three.probs, rtol=1e-12)
    for name in ("max_prob", "neg_entropy", "margin", "energy", "max_logit", "log_max_prob"):
        score = getattr(hs.scores, name)
        np.testing.assert_allclose(score(masked), score(three), rtol=1e-12, err_msg=name)
    assert hs.nll(masked) == pytest.approx(hs.nll(three), rel=1e-12)
    assert hs.brier(masked) == pytest.approx(hs.brier(three), rel=1e-12)
    assert hs.nll(Predictions.from_logits(RULED_OUT, np.full(60, 3))) == np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        hs.evaluate(masked)


def test_samples_with_classes_ruled_out() -> None:
    masked = Predictions.from_samples(np.stack([RULED_OUT, RULED_OUT / 2]), LABELS)
    three = Predictions.from_samples(np.stack([LOGITS[:, :3], LOGITS[:, :3] / 2]), LABELS)
    np.testing.assert_allclose(masked.probs[:, :3], three.probs, rtol=1e-12)
    assert hs.nll(masked) == pytest.approx(hs.nll(three), rel=1e-12)


def test_calibrators_of_classes_ruled_out() -> None:
    masked = Predictions.from_logits(RULED_OUT, LABELS)
    three = Predictions.from_logits(LOGITS[:, :3], LABELS)
    assert Temperature.fit(masked).temperature == pytest.approx(
        Temperature.fit(three).temperature, rel=1e-6
    )
    assert (Temperature(2.0)(masked).probs[:, 3] == 0).all()
    for fit in (HistogramBinning, Isotonic, Platt):
        assert np.isfinite(fit.fit(masked)(masked).probs).all()
    for fit in (VectorScaling, MatrixScaling, Dirichlet):
        with pytest.raises(InputError, match="hold -inf"):
            fit.fit(masked, l2=0.1)
        with pytest.raises(InputError, match="hold -inf"):
            fit.fit(Predictions.from_logits(LOGITS, np.arange(60) % 4))(masked)
    with pytest.raises(InputError, match=r"labels\[0\] is a class of logit -inf"):
        Temperature.fit(Predictions.from_logits(RULED_OUT, np.where(np.arange(60) == 0, 3, LABELS)))
    with pytest.raises(InputError, match="at least one class must be possible"):
        Predictions.from_logits([[0.0, 1.0], [-np.inf, -np.inf]], [0, 1])


def test_a_file_with_classes_ruled_out(tmp_path: Path) -> None:
    preds = Predictions.from_logits(RULED_OUT, LABELS)
    for name in ("a.npz", "a.safetensors", "a.npy"):
        hs.write(preds, tmp_path / name)
        path = tmp_path / name if name != "a.npy" else tmp_path / "a_logits.npy"
        assert np.array_equal(hs.read(path).values, RULED_OUT)


def test_bfloat16_tensors_are_read() -> None:
    torch = pytest.importorskip("torch")
    z = torch.tensor(LOGITS).bfloat16()
    found = Predictions.from_logits(z.requires_grad_(), torch.tensor(LABELS))
    assert np.array_equal(found.values, z.detach().float().numpy())
    assert tally(torch.tensor(CONFIDENCE).bfloat16(), correct=torch.tensor(CORRECT)).n == 60


def test_large_labels_keep_their_value_in_the_message() -> None:
    with pytest.raises(InputError, match=r"labels\[0\] is 9223372036854775813"):
        Predictions.from_logits(LOGITS, np.full(60, 2**63 + 5, np.uint64))


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("9" * 30, r"labels\[1\] is 9{30}; with 4 classes labels run from 0 to 3"),
        ("-" + "9" * 30, r"labels\[1\] is -9{30}; with 4"),
        ("9" * 5000, r"labels\[1\] is 9{60}; with 4"),
        ("²", r"labels\[1\] is '²'; texts need class_names"),
        ("9" * 30 + ".0", r"labels\[1\] is '9{30}\.0'; texts need"),
        (2**70, r"labels\[1\] is 1180591620717411303424; with 4"),
    ],
)
def test_labels_that_no_integer_holds_are_refused(label: object, said: str) -> None:
    given = ["0", label, *["1"] * 58] if isinstance(label, str) else [0, label, *[1] * 58]
    with pytest.raises(InputError, match=said):
        Predictions.from_logits(LOGITS, given)


@pytest.mark.parametrize("digits", ["²", "9" * 5000])
def test_digits_that_are_no_number_are_names(digits: str) -> None:
    frame = {f"prob_{digits}": [0.4, 0.9], "prob_1": [0.6, 0.1], "label": ["1", digits]}
    assert Predictions.from_frame(frame).class_names == (digits, "1")
    with pytest.raises(InputError, match="no class is called"):
        positive_class(Predictions.from_probs([0.3, 0.7], [0, 1]), digits)


def test_bins_without_number_are_refused() -> None:
    with pytest.raises(InputError, match="a number of bins of at least 2 is needed"):
        Cut.of(f"age:{'9' * 5000}")


def test_odd_numbers_give_a_value_or_are_refused(tmp_path: Path) -> None:
    """Every eleventh of the calls that `python -m benchmarks.attack --only 5` makes."""
    calls = chain(numbers.list_bounds(), numbers.list_calls(tmp_path))
    faults = {name: numbers.run(call) for name, call in islice(calls, 0, None, 11)}
    assert len(faults) > 500
    assert {name: fault for name, fault in faults.items() if fault} == {}
