"""Files and objects as people's tools write them: read at the first try, or refused with a proposal
that then works.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure import InputError, Predictions
from howsure.formats import read

CSV = {
    "max_proba": "y_true,y_pred,max_proba\n1,1,0.9\n0,1,0.7\n2,2,0.6\n",
    "expected and answer": "expected,answer,confidence\nb,b,0.9\na,b,0.7\nc,c,0.6\n",
    "is_correct": "is_correct,conf\nTrue,0.9\nFalse,0.7\nTrue,0.6\n",
    "target": "target,pred,score\n1,1,0.9\n0,1,0.7\n2,2,0.6\n",
    "gold": "gold,prediction,confidence\n1,1,0.9\n0,1,0.7\n2,2,0.6\n",
    "np.savetxt": "# prob_0,prob_1,label\n0.1,0.9,1\n0.3,0.7,0\n0.6,0.4,0\n",
    "y_score": "y_true,y_score\n1,0.9\n0,0.7\n0,0.4\n",
}
RECORDS = [
    {"label": 1, "prediction": 1, "confidence": 0.9},
    {"label": 0, "prediction": 1, "confidence": 0.7},
    {"label": 2, "prediction": 2, "confidence": 0.6},
]


@pytest.mark.parametrize("name", CSV)
def test_tables_at_the_first_try(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(CSV[name])
    preds = read(path)
    assert preds.confidence.tolist() == [0.9, 0.7, 0.6]
    assert preds.correct.tolist() == [True, False, True]


def test_a_list_of_records(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(RECORDS))
    preds = read(path)
    assert preds.confidence.tolist() == [0.9, 0.7, 0.6]
    assert preds.correct.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "no log of a known tool"),
        ('[{"label": 1}, 2]', "entry 2 is a int, not an object"),
        ("[]", "no log of a known tool"),
        ('{"label": {"0": 1}, "confidence": {"0": 0.9}}', r"to_json\(orient='records'\)"),
        ('[{"label": 1}', "ends in the middle|is not JSON"),
    ],
)
def test_other_json_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read(path)


def test_a_matrix_of_predictions(tmp_path: Path) -> None:
    probs, labels = np.array([[0.1, 0.9], [0.7, 0.3]]), np.array([1, 1])
    np.savez(tmp_path / "a.npz", preds=probs, target=labels)
    assert read(tmp_path / "a.npz").correct.tolist() == [True, False]
    np.savez(tmp_path / "b.npz", preds=10 * probs, target=labels)
    with pytest.raises(InputError, match="Are these logits"):
        read(tmp_path / "b.npz")
    assert read(tmp_path / "b.npz", names={"logits": "preds"}).n == 2


def test_y_score_beside_an_answer_is_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("y_true,y_pred,y_score\n1,0,0.9\n0,0,0.7\n1,1,0.8\n")
    with pytest.raises(InputError, match="--name confidence=y_score"):
        read(path)
    assert read(path, names={"confidence": "y_score"}).correct.tolist() == [False, True, True]
    frame = {"y_true": [1, 0], "y_pred": [0, 0], "y_score": [0.9, 0.7]}
    with pytest.raises(InputError, match="confidence='y_score'"):
        Predictions.from_frame(frame)
    assert Predictions.from_frame(frame, confidence="y_score").correct.tolist() == [False, True]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.xlsx", "", "pandas.read_excel"),
        ("a.pkl", "", "a pickle can run code"),
        ("a.txt", "1.0e-01 9.0e-01 1.0e+00\n", r"np.savetxt\('a.csv'"),
        ("a.txt", "# prob_0 prob_1 label\n0.1 0.9 1\n", r"np.savetxt\('a.csv'"),
        ("a.csv", "0.1,0.9,1\n0.2,0.8,0\n", "put a header before it"),
        (
            "a.jsonl",
            '{"correct": 1, "logprobs": [-0.1]}\n{"correct": 0, "logprobs": [-0.1, -2]}\n',
            "log-probabilities of tokens",
        ),
    ],
)
def test_refused_in_one_sentence(name: str, text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read(path)


def test_streams_of_arrow() -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"prob_0": [0.1, 0.7], "prob_1": [0.9, 0.3], "label": [1, 1]})
    reader: Any = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    # A relation of DuckDB has columns too, but what it gives for one is no column.
    relation = SimpleNamespace(columns=["prob_0"], __arrow_c_stream__=table.__arrow_c_stream__)
    for stream in (reader, relation):
        assert Predictions.from_frame(stream).correct.tolist() == [True, False]
    fresh = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    assert hs.evaluate(fresh).data["n"] == 2
    with pytest.raises(InputError, match="is no table"):
        Predictions.from_frame(pa.chunked_array([[1, 2]]))


@pytest.mark.parametrize(
    "dtype", ["U1", "S1", "O", *(["StringDType"] if hasattr(np.dtypes, "StringDType") else [])]
)
def test_text_labels_of_every_dtype(dtype: str) -> None:
    kind: Any = np.dtypes.StringDType() if dtype == "StringDType" else dtype
    labels = np.array(["a", "b"], dtype=kind)
    if dtype == "O":
        labels = np.array([b"a", b"b"], dtype=object)
    probs = [[0.9, 0.1], [0.7, 0.3]]
    preds = Predictions.from_probs(probs, labels, class_names=["a", "b"])
    assert preds.correct.tolist() == [True, False]
