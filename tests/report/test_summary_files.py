"""Summaries travel: of parts, added in any order, saved, loaded, evaluated."""

import io
import json
import zipfile

import numpy as np
import pytest

import howsure as hs
from howsure._core.checks import InputError
from howsure.report.report_types import ReportData

EXACT = 1e-12


def make_probs(n: int, k: int, seed: int = 0) -> hs.Predictions:
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, k))
    noise = logits + rng.gumbel(size=(n, k))
    ids = [f"patient {i}" for i in range(n)]
    return hs.Predictions.from_logits(logits, noise.argmax(axis=1), ids=ids)


def metrics_of(data: ReportData) -> dict[str, float | None]:
    return {name: entry["value"] for name, entry in data["metrics"].items()}


@pytest.mark.parametrize("k", [2, 5])
def test_parts_saved_and_added_are_the_whole(tmp_path, k):
    preds = make_probs(900, k)
    whole = hs.evaluate(preds).data
    for i in range(3):
        hs.Summary.of(preds[i::3]).save(tmp_path / f"{i}.npz")
    loaded = [hs.Summary.load(tmp_path / f"{i}.npz") for i in (2, 0, 1)]
    data = hs.evaluate(loaded[0] + loaded[1] + loaded[2]).data
    assert data["n"] == 900
    ours, theirs = metrics_of(data), metrics_of(whole)
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        if value is None:
            assert ours[name] is None, name
        else:
            assert ours[name] == pytest.approx(value, rel=EXACT, abs=EXACT), name
    assert data["guarantees"] == whole["guarantees"]


def test_what_rows_alone_tell_is_left_out_with_why(tmp_path):
    file = tmp_path / "a.npz"
    hs.Summary.of(make_probs(300, 5)).save(file)
    data = hs.evaluate(hs.Summary.load(file)).data
    assert set(data["streamed"]["left_out"]) >= {"views.label_errors", "views.scatter"}
    assert data["views"]["label_errors"] == []
    assert data["views"]["scatter"] is None


def test_no_row_leaves_the_house(tmp_path):
    file = tmp_path / "a.npz"
    preds = make_probs(300, 5)
    assert hs.Summary.of(preds).suspects
    hs.Summary.of(preds).save(file)
    assert b"patient" not in file.read_bytes()
    with zipfile.ZipFile(file) as archive:
        assert "sample.npy" not in archive.namelist()


def test_bytes_in_memory():
    summary, stream = hs.Summary.of(make_probs(50, 3)), io.BytesIO()
    summary.save(stream)
    assert hs.Summary.load(io.BytesIO(stream.getvalue())).tally.total == summary.tally.total


def test_whole_summaries_of_memory_evaluate_like_predictions():
    preds = make_probs(200, 3)
    data = hs.evaluate(hs.Summary.of(preds)).data
    whole = hs.evaluate(preds).data
    assert metrics_of(data) == metrics_of(whole)
    assert data["views"]["label_errors"] == whole["views"]["label_errors"]


def rewrite(file, change) -> None:
    """The same archive with another document or other arrays."""
    with np.load(file) as stored:
        arrays = dict(stored)
    document = json.loads(arrays["json"].tobytes())
    change(document, arrays)
    arrays["json"] = np.frombuffer(json.dumps(document).encode(), np.uint8)
    np.savez(file, **arrays)


def other_version(document, arrays):
    document["summary"] = 99


def wrong_n(document, arrays):
    document["value"]["n"] += 1


def unsorted(document, arrays):
    arrays["tally.score.max_prob.keys"] = arrays["tally.score.max_prob.keys"][::-1].copy()


def without_tally(document, arrays):
    del arrays["tally.score.max_prob.keys"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (other_version, "a summary of version 99"),
        (wrong_n, "damaged"),
        (unsorted, "damaged"),
        (without_tally, "damaged"),
    ],
)
def test_changed_files_are_refused(tmp_path, change, says):
    file = tmp_path / "a.npz"
    hs.Summary.of(hs.Predictions.from_confidence([0.9, 0.8, 0.7], [1, 0, 1])).save(file)
    rewrite(file, change)
    with pytest.raises(InputError, match=says):
        hs.Summary.load(file)


def test_other_files_are_refused(tmp_path):
    file = tmp_path / "a.npz"
    np.savez(file, probs=np.ones((2, 2)))
    with pytest.raises(InputError, match="no summary"):
        hs.Summary.load(file)
    file.write_bytes(b"PK but no archive")
    with pytest.raises(InputError):
        hs.Summary.load(file)
    with pytest.raises(InputError, match=r"\.npz"):
        hs.Summary.of(make_probs(5, 2)).save(tmp_path / "a.json")


def test_options_of_predictions_are_refused():
    summary = hs.Summary.of(make_probs(20, 2))
    with pytest.raises(InputError, match="summary"):
        hs.evaluate(summary, by="hospital")
