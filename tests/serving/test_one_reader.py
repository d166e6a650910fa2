"""`decide` reads what `evaluate` reads: the same names and units, the same faults at the same
places.
"""

import gzip
import json
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.formats.bad_files import CORPUS, Bad

from howsure import InputError, Predictions, read, write
from howsure.formats import suffixes
from howsure.policies import Policy
from howsure.predictions.read_options import UNLABELLED_PARTS, ReadOptions
from howsure.serving.stream import Serving, decide_path, decide_stream

POLICY = Policy("max_prob", 0.8)
TRUTH = (
    "label",
    "correct",
    "weight",
    "ids",
)  # what a decision does not need, so that it may be bad


def lines(out: BytesIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def piped(text: str, **reading: Any) -> list[dict[str, Any]]:
    out = BytesIO()
    how = Serving(wanted=ReadOptions(**reading, beside=UNLABELLED_PARTS))
    decide_stream(POLICY.decide, BytesIO(text.encode()), out, how=how)
    return lines(out)


def filed(path: Path, **reading: Any) -> list[dict[str, Any]]:
    out = BytesIO()
    decide_path(
        POLICY.decide, path, out, Serving(wanted=ReadOptions(**reading, beside=UNLABELLED_PARTS))
    )
    return lines(out)


@pytest.mark.parametrize(
    "text",
    [
        "conf\n0.818\n0.4\n",
        "confidence\n81.8%\n40%\n",
        "SCORE,note\n0.818,x\n0.4,y\n",
        '{"conf": "81.8%"}\n{"conf": 0.4}\n',
        '{"logprob": -0.2008929}\n{"logprob": -0.9162907}\n',
        "prob_1\n0.818\n0.6\n",
        'probs\n"[0.182, 0.818]"\n"[0.4, 0.6]"\n',
        "prob_cat,prob_dog\n0.182,0.818\n0.6,0.4\n",
        '{"probs": {"cat": 0.182, "dog": 0.818}}\n{"probs": {"dog": 0.4, "cat": 0.6}}\n',
        'id,confidence,note\n1,0.818,"two\nlines"\n2,0.4,"a ""quote"""\n',
        "\n\nconfidence\n0.818\n\n0.4\n",
    ],
)
def test_names_units_and_cells(text: str, tmp_path: Path) -> None:
    suffix = ".jsonl" if text.startswith("{") else ".csv"
    (tmp_path / f"a{suffix}").write_text(text)
    said = read(tmp_path / f"a{suffix}").confidence
    rows = piped(text)
    assert [row["confidence"] for row in rows] == pytest.approx(said.tolist(), abs=1e-12)
    assert [row["decision"] for row in rows] == ["accept", "defer"]
    assert filed(tmp_path / f"a{suffix}") == rows


def test_names_can_be_given() -> None:
    assert piped("sure\n0.9\n", names={"confidence": "sure"})[0]["decision"] == "accept"


def test_a_split_is_chosen_or_asked_for() -> None:
    text = '{"confidence": 0.9, "split": "val"}\n{"confidence": 0.5, "split": "test"}\n'
    assert [row["line"] for row in piped(text, split="test")] == [2]
    with pytest.raises(InputError, match=r"has 2 splits \('test', 'val'\)"):
        piped(text)
    with pytest.raises(InputError, match="no split 'tset'"):
        piped(text, split="tset")


@pytest.mark.parametrize("suffix", sorted(suffixes()))
def test_every_format_that_is_written_is_decided(suffix: str, tmp_path: Path) -> None:
    needs = {
        ".pt": "torch",
        ".pth": "torch",
        ".npz": "numpy",
        ".npy": "numpy",
        ".safetensors": "numpy",
    }
    text = suffix.removesuffix(".gz") in (".csv", ".tsv", ".jsonl", ".ndjson")
    pytest.importorskip("numpy" if text else needs.get(suffix, "pyarrow"))
    preds = Predictions.from_probs([[0.875, 0.125], [0.5, 0.5]], ids=["a", "b"])
    write(preds, tmp_path / f"a{suffix}")
    assert [(row["id"], row["decision"]) for row in filed(tmp_path / f"a{suffix}")] == [
        ("a", "accept"),
        ("b", "defer"),
    ]


@pytest.mark.parametrize("bad", CORPUS, ids=lambda bad: bad.name)
def test_a_bad_file_has_the_same_fault_at_the_same_place(bad: Bad, tmp_path: Path) -> None:
    if bad.package is not None:
        pytest.importorskip(bad.package)
    path = bad.make(tmp_path)
    with pytest.raises(InputError) as caught:
        read(path, **bad.options)
    said, here = caught.value, refused(path, bad)
    if here is None:
        assert any(word in f"{said.what} {said.where}" for word in TRUTH)
        return
    assert (here.what, here.row) == (said.what, said.row)
    assert here.where in (said.where, "line 1")  # every JSON line names its own fields
    assert here.line in (said.line, None)
    seen = (
        said.hint if "--name" not in said.hint else ""
    )  # the first line shows what columns are called, not what they hold
    if not here.hint.startswith("Did you mean"):  # nor what they could be read as
        assert here.hint in (said.hint, seen, "a list of numbers is needed")


def refused(path: Path, bad: Bad) -> InputError | None:
    """What decide says of the file; None where it decides it."""
    try:
        filed(path, **bad.options)
    except InputError as e:
        return e
    return None


def test_what_a_line_means_does_not_depend_on_its_neighbours() -> None:
    """Half-precision rows miss 1 by more than others may; classes in another order are the same
    classes.
    """
    half = np.array([0.3305, 0.3305, 0.3305], dtype=np.float16).astype(float).tolist()
    text = "".join(json.dumps({"probs": row}) + "\n" for row in (half, [0.2, 0.3, 0.5], half))
    whole = piped(text)
    assert [row["confidence"] for row in whole] == [max(half), 0.5, max(half)]
    assert [piped(line)[0]["confidence"] for line in text.splitlines()] == [
        row["confidence"] for row in whole
    ]


def test_the_first_good_line_says_how_many_numbers_there_are() -> None:
    told: list[str] = []
    text = '{"probs": [0.5, 0.6]}\n{"probs": [0.1, 0.9]}\n{"probs": [1.0]}\n{"probs": [0.2, 0.8]}\n'
    out = BytesIO()
    total = decide_stream(
        POLICY.decide, BytesIO(text.encode()), out, how=Serving("skip", told.append)
    )
    assert (total.bad, [row["line"] for row in lines(out)]) == (2, [2, 4])
    assert "line 3, column 'probs': the value is [1.0]; a list of 2 numbers" in told[1]


def test_a_quote_that_stays_open_costs_one_line() -> None:
    told: list[str] = []
    out = BytesIO()
    text = 'confidence,note\n0.9,"open\n0.9,x\n0.5,y\n'
    total = decide_stream(
        POLICY.decide, BytesIO(text.encode()), out, how=Serving("skip", told.append)
    )
    assert (total.decided, total.bad) == (2, 1)
    assert "unexpected end of data" in told[0]


def test_a_packed_file_that_is_cut_or_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = gzip.compress(b"confidence,correct\n" + b"0.9,1\n" * 100_000)
    (tmp_path / "cut.csv.gz").write_bytes(raw[:-20])
    with pytest.raises(InputError, match=r"cut\.csv\.gz is not a complete gzip file"):
        read(tmp_path / "cut.csv.gz")
    (tmp_path / "a.csv.gz").write_bytes(raw)
    assert read(tmp_path / "a.csv.gz").n == 100_000
    monkeypatch.setattr("howsure._core.file_access.FREE_BYTES", 1 << 16)
    with pytest.raises(InputError, match="would unpack to"):
        read(tmp_path / "a.csv.gz")
