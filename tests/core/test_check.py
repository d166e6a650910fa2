"""Errors are values: fields first, one sentence made from them."""

import pickle

import pytest

import howsure
from howsure import InputError, Predictions


def test_the_sentence_is_made_from_the_fields() -> None:
    e = InputError(
        "labels",
        row=3,
        got="is 12",
        need="with 10 classes labels run from 0 to 9",
        hint="Subtract 1",
    )
    assert str(e) == "labels[3] is 12; with 10 classes labels run from 0 to 9. Subtract 1."
    assert str(InputError("probs", got="has 2 nan", first=4)) == "probs has 2 nan (first: row 4)."


def test_a_place_is_added_without_touching_the_rest() -> None:
    e = InputError("labels", row=3, got="is 12", hint="subtract 1").at("a.csv", line=5).at("part 2")
    assert str(e) == "part 2: a.csv: labels[3] (line 5) is 12; subtract 1."
    assert (e.what, e.where, e.row, e.line, e.hint) == (
        "labels",
        "part 2: a.csv",
        3,
        5,
        "subtract 1",
    )


def test_a_plain_sentence_stays_as_it_is() -> None:
    assert str(InputError("it is no file of ours")) == "it is no file of ours"


def test_a_check_fills_the_fields() -> None:
    with pytest.raises(InputError) as caught:
        Predictions.from_confidence([0.5, 1.5], [1, 0])
    e = caught.value
    assert (e.what, e.row, e.got, e.need) == (
        "confidence",
        1,
        "is 1.5",
        "a confidence lies in [0, 1]",
    )


def test_it_travels_between_processes_and_is_called_what_users_import() -> None:
    e = pickle.loads(pickle.dumps(InputError("labels", row=3, got="is 12").at("a.csv", line=5)))
    assert (str(e), e.row, e.line) == ("a.csv: labels[3] (line 5) is 12.", 3, 5)
    assert (InputError.__module__, type(e) is howsure.InputError) == ("howsure", True)
