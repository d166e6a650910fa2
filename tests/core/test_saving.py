"""Saving and loading: bit-exact, and nothing that was changed is accepted."""

import json
import random
import struct
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

import howsure as hs
from howsure import InputError, Predictions
from howsure._core import saving
from howsure.calibrators import (
    Beta,
    Dirichlet,
    HistogramBinning,
    Identity,
    Isotonic,
    MatrixScaling,
    Platt,
    Temperature,
    VectorScaling,
)

ALL = [
    Beta,
    Dirichlet,
    HistogramBinning,
    Identity,
    Isotonic,
    MatrixScaling,
    Platt,
    Temperature,
    VectorScaling,
]


def preds(n=90, k=3):
    rng = np.random.default_rng(0)
    y = np.arange(n) % k
    return Predictions.from_logits(
        rng.normal(size=(n, k)) + np.eye(k)[y], y, class_names=["a", "é", "c"][:k]
    )


def same(a, b):
    """Equal in every field and bit."""
    if is_dataclass(a):
        return type(a) is type(b) and all(
            same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a)
        )
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("calibrator", ALL)
def test_round_trip_is_bit_exact(calibrator, tmp_path):
    made = calibrator.fit(preds())
    hs.save(made, tmp_path / "c.json")
    again = hs.load(tmp_path / "c.json")
    assert same(made, again)
    assert (again(preds()).values == made(preds()).values).all()


def test_round_trip_of_odd_numbers(tmp_path):
    for t in (1e-100, 0.1 + 0.2, 1e100, 1 / 3):
        hs.save(Temperature(t), tmp_path / "c.json")
        assert same(hs.load(tmp_path / "c.json"), Temperature(t))


def test_reports_and_comparisons_are_saved_as_their_own_json(tmp_path):
    made = {
        "report": hs.evaluate(preds()),
        "comparison": hs.compare({"a": preds(), "b": (preds(), "margin")}),
    }
    for name, value in made.items():
        hs.save(value, tmp_path / f"{name}.json")
        again = hs.load(tmp_path / f"{name}.json")
        assert type(again) is type(value)
        assert (
            (tmp_path / f"{name}.json").read_text(encoding="utf-8")
            == value.to_json()
            == again.to_json()
        )


def test_an_infinite_loss_survives(tmp_path):
    made = Temperature(1.0, hs.calibrators.Fitted("interior", 1, 2, None, float("inf")))
    hs.save(made, tmp_path / "c.json")
    assert same(hs.load(tmp_path / "c.json"), made)


def test_the_file_says_what_it_is(tmp_path):
    hs.save(Temperature.fit(preds()), tmp_path / "c.json")
    document = json.loads((tmp_path / "c.json").read_text())
    assert document["howsure"] == hs.__version__
    assert document["schema"] == 1
    assert document["value"]["class"] == "Temperature"
    assert document["value"]["fitted"]["n"] == 90
    assert document["value"]["fitted"]["class_names"] == ["a", "é", "c"]


def changed(tmp_path, old, new, *, redigest=False):
    hs.save(Temperature(1.5), tmp_path / "c.json")
    text = (tmp_path / "c.json").read_text()
    assert old in text
    text = text.replace(old, new)
    if redigest:
        document = json.loads(text)
        document.pop("digest")
        document["digest"] = saving.compute_digest(document)
        text = json.dumps(document)
    (tmp_path / "c.json").write_text(text)
    return tmp_path / "c.json"


@pytest.mark.parametrize(
    ("old", "new", "redigest", "message"),
    [
        ("1.5", "1.6", False, "its digest does not match its content"),
        ('"schema": 1', '"schema": 2', False, "this is howsure .*, which reads schema 1"),
        ('"schema": 1', '"schema": true', False, "it has schema True"),
        ("Temperature", "Popen", True, "'Popen' is not a class that can be saved or loaded"),
        ("1.5", "-1.5", True, "a finite number above 0 is needed"),
        ("1.5", '"1.5"', True, "Temperature.temperature is '1.5', which is not"),
        ('"fitted"', '"fited"', True, "fited missing or unknown"),
        ("1.5", "NaN", False, "NaN is not JSON"),
        ("1.5", "1e999", False, "too large for a float"),
        ('"temperature"', '"class"', False, "the key 'class' stands twice"),
        ('"digest"', '"digests"', False, "it needs exactly the keys"),
    ],
)
def test_changed_files_are_refused(tmp_path, old, new, redigest, message):
    with pytest.raises(InputError, match=message):
        hs.load(changed(tmp_path, old, new, redigest=redigest))


def test_a_field_that_a_later_version_added_takes_its_default(tmp_path):
    path = changed(tmp_path, ',\n  "fitted": null', "", redigest=True)
    assert hs.load(path) == Temperature(1.5)


def test_a_field_without_default_must_be_there(tmp_path):
    with pytest.raises(InputError, match="temperature missing or unknown"):
        hs.load(changed(tmp_path, '"temperature": 1.5,', "", redigest=True))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "Expecting value"),
        (b"\x80\x04K\x01.", "not a text file"),
        (b"[1, 2]", "not a file that howsure saved"),
        (b'{"a": 1}', "not a file that howsure saved"),
        (b"[" * 100_000, "nested too deeply|Expecting value"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    (tmp_path / "c.json").write_bytes(content)
    with pytest.raises(InputError, match=message):
        hs.load(tmp_path / "c.json")


def test_a_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"none.json cannot be loaded: No such file or directory"):
        hs.load(tmp_path / "none.json")


def test_what_cannot_be_saved(tmp_path):
    with pytest.raises(
        InputError, match=r"type object cannot be stored|not a class that can be saved"
    ):
        hs.save(object(), tmp_path / "c.json")
    assert list(tmp_path.iterdir()) == []


def mutated(text: bytes, rng: random.Random) -> bytes:
    """One small accident: a byte changed, lost, doubled or swapped, a number or a piece moved."""
    data, i = bytearray(text), rng.randrange(len(text))
    j = rng.randrange(len(text))
    kind = rng.randrange(6)
    if kind == 0:
        data[i] = rng.randrange(256)
    elif kind == 1:
        del data[i : i + rng.randrange(1, 9)]
    elif kind == 2:
        data[i:i] = data[j : j + 9]
    elif kind == 3:
        data[i], data[j] = data[j], data[i]
    elif kind == 4:
        data[i] = rng.choice(b"0123456789")
    else:
        data[i] ^= 1 << rng.randrange(8)
    return bytes(data)


@pytest.mark.parametrize("calibrator", [Temperature, MatrixScaling, Isotonic])
def test_no_accident_changes_the_meaning(calibrator, tmp_path):
    made, path, rng = calibrator.fit(preds()), tmp_path / "c.json", random.Random(0)
    hs.save(made, path)
    text, refused = path.read_bytes(), 0
    for _ in range(350):
        path.write_bytes(mutated(text, rng))
        try:
            assert same(hs.load(path), made)
        except InputError:
            refused += 1
    assert refused > 250
