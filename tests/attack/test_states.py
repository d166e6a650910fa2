"""Saved calibrators, policies and states that were tampered with are refused in one line, or work."""

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks.attack import states

import howsure as hs
from howsure import InputError
from howsure._core import saving
from howsure.calibrators import Identity, MatrixScaling, Temperature
from howsure.policies import DriftMonitor, Policy

SHARE = 600  # of the mutations of `python -m benchmarks.attack`


def test_mutated_states_with_a_right_digest(tmp_path: Path) -> None:
    wrong = {
        i: found
        for i in range(SHARE)
        if (found := states.one(i, tmp_path)).startswith("unforeseen")
    }
    assert wrong == {}


def classes(tree: object) -> set[str]:
    """Every class that a saved file names."""
    if isinstance(tree, list):
        return {name for part in tree for name in classes(part)}
    if not isinstance(tree, dict):
        return set()
    inner = {name for part in tree.values() for name in classes(part)}
    return inner | ({tree["class"]} if isinstance(tree.get("class"), str) else set())


def test_every_class_that_can_be_saved_is_attacked(tmp_path: Path) -> None:
    found = {name for tree in states.trees(tmp_path) for name in classes(tree)}
    assert set(saving.SAVABLE) <= found, "add a value with it to benchmarks/attack/states.py"


def written(tmp_path: Path, value: object) -> Path:
    content = {"howsure": "0.2.0", "schema": 1, "value": value}
    (tmp_path / "x.json").write_text(
        json.dumps({**content, "digest": saving.compute_digest(content)})
    )
    return tmp_path / "x.json"


@pytest.mark.parametrize("depth", [600, 900])
def test_deep_nesting_is_refused(depth: int, tmp_path: Path) -> None:
    value: object = {"class": "Identity"}
    for _ in range(depth // 2):
        value = {"class": "Policy", "score": "max_prob", "threshold": 0.5, "calibrator": [value]}
    with pytest.raises(InputError, match=r"x\.json cannot be loaded"):
        hs.load(written(tmp_path, value))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"calibrator": 3}, "calibrator"),
        ({"calibrator": "x"}, "calibrator"),
        (
            {"calibrator": {"class": "Basis", "n": 1, "coverage": 0.5, "accuracy": 0.5}},
            "calibrator",
        ),
        ({"calibrator": {"class": "Policy", "score": "max_prob", "threshold": 0.5}}, "calibrator"),
        ({"calibrator": {"class": "Temperature", "temperature": -1.0}}, "temperature"),
        ({"threshold": 10**400}, "threshold"),
        ({"k": -1}, "k is -1"),
        ({"k": 2, "class_names": ["a"]}, "1 names for 2 classes"),
        ({"score": "__init__"}, "not a score"),
    ],
)
def test_a_field_has_a_type_and_a_range(
    fields: dict[str, object], message: str, tmp_path: Path
) -> None:
    value = {"class": "Policy", "score": "max_prob", "threshold": 0.5, **fields}
    with pytest.raises(InputError, match=message):
        hs.load(written(tmp_path, value))


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_a_watch_has_a_rate_of_false_alarms(rate: float, tmp_path: Path) -> None:
    watch = next(value for value in states.values() if isinstance(value, DriftMonitor))
    hs.save(watch, tmp_path / "watch.json")
    value = json.loads((tmp_path / "watch.json").read_text())["value"]
    with pytest.raises(
        InputError, match=r"false_alarms is \d; a number strictly between 0 and 1 is needed"
    ):
        hs.load(written(tmp_path, {**value, "false_alarms": rate}))


def test_a_matrix_of_a_thousand_classes_is_read(tmp_path: Path) -> None:
    """20 MB of numbers: no value is looked at more than once in Python."""
    weight = np.random.default_rng(0).normal(size=(1000, 1000))
    made = MatrixScaling(weight, np.zeros(1000))
    hs.save(made, tmp_path / "m.json")
    assert (tmp_path / "m.json").stat().st_size > 19e6
    assert np.array_equal(hs.load(tmp_path / "m.json").weight, weight)


def test_a_state_beyond_all_size_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "x.json").open("wb") as file:
        file.truncate(saving.SAVED_FILE_BYTES + 1)
    with pytest.raises(InputError, match="at most 268,435,456 are read"):
        hs.load(tmp_path / "x.json")


def test_a_key_makes_the_digest_a_signature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, signed = tmp_path / "plain.json", tmp_path / "signed.json"
    hs.save(Policy("max_prob", 0.5, Identity()), plain)
    monkeypatch.setenv("HOWSURE_KEY", "secret")
    hs.save(Temperature(1.5), signed)
    assert '"digest": "hmac-sha256:' in signed.read_text()
    assert hs.load(signed).temperature == 1.5
    with pytest.raises(InputError, match="it is not signed"):
        hs.load(plain)
    document = json.loads(signed.read_text())
    document["value"]["temperature"] = 2.5
    signed.write_text(json.dumps(document))
    with pytest.raises(InputError, match="its signature does not belong"):
        hs.load(signed)
    hs.save(Temperature(1.5), signed)
    monkeypatch.setenv("HOWSURE_KEY", "another")
    with pytest.raises(InputError, match="its signature does not belong"):
        hs.load(signed)
    monkeypatch.delenv("HOWSURE_KEY")
    with pytest.raises(InputError, match="it is signed"):
        hs.load(signed)
    assert hs.load(plain).threshold == 0.5


@pytest.mark.parametrize("number", [20475, 99954, 118654, 123076])
def test_states_that_mutations_found(number: int, tmp_path: Path) -> None:
    """Names that are one number, and temperatures that no logit can be divided by."""
    assert states.one(number, tmp_path) in ("read", "refused")
