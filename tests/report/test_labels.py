"""Many labels per case: real files with published numbers, files and streams, promises,
calibrators, bad input.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import howsure as hs
from howsure.calibrators import Isotonic, PerLabel
from howsure.policies import Policy, label_policy, label_thresholds

DATA = Path(os.environ.get("HOWSURE_SHARED", Path(__file__).parents[3] / "shared")) / "data2"
CHEXNET, MULAN = DATA / "multilabel_chexnet", DATA / "multilabel_mulan"
real = pytest.mark.skipif(not CHEXNET.exists(), reason="the real files are not here")
Run = Callable[..., str]
NAMES = ("cat", "dog", "eel")


def made(n: int = 400, seed: int = 0, **columns: object) -> hs.Predictions:
    """Calibrated probabilities of three labels, of which the last is rare."""
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-(rng.normal(size=(n, 3)) * 2 - np.array([0, 1, 4]))))
    return hs.Predictions.from_multilabel(p, rng.random((n, 3)) < p, label_names=NAMES, **columns)


@real
def test_published_aucs_of_thirteen_findings() -> None:
    said = json.loads((CHEXNET / "index.json").read_text())["recomputed"]
    preds = hs.read(
        CHEXNET / "chexnet_nih14.npz",
        multilabel=True,
        names={"class_names": "names", "ids": "image"},
    )
    rows = {row["name"]: row for row in hs.evaluate(preds).data["labels"]["rows"]}
    for name, numbers in said.items():
        close = (
            0.0003 if name != "Pneumonia" else 0.005
        )  # whose labels are others than the authors'
        assert rows[name]["auc"]["value"] == pytest.approx(numbers["published_auc"], abs=close)
        assert rows[name]["auc"]["value"] == pytest.approx(numbers["auroc"], abs=1e-12)
        assert rows[name]["ece"]["value"] == pytest.approx(numbers["ece15_positive"], abs=1e-9)


@real
@pytest.mark.parametrize("name", ["emotions", "yeast"])
def test_hamming_loss_and_exact_match_of_the_index(name: str) -> None:
    said = json.loads((MULAN / "index.json").read_text())["sets"][name]["recomputed_test"]
    names = {"probs": "test_probs", "labels": "Y_test", "class_names": "names"}
    report = hs.evaluate(hs.read(MULAN / f"{name}.npz", multilabel=True, names=names))
    assert report["hamming_loss"] == pytest.approx(said["hamming_loss"], abs=1e-12)
    assert report["exact_match"] == pytest.approx(said["subset_accuracy"], abs=1e-12)
    assert report["macro_auroc"] == pytest.approx(said["macro_auroc"], abs=1e-12)
    assert report.data["binary"]["ece"] == pytest.approx(said["micro_ece15"], abs=1e-12)


def test_micro_numbers_are_those_of_all_pairs_with_cases_as_clusters() -> None:
    preds = made()
    plain = hs.Predictions.from_probs(preds.probs, preds.labels, group=np.repeat(np.arange(400), 3))
    one, two = hs.evaluate(preds), hs.evaluate(plain)
    for name in ("accuracy", "aurc", "ece", "nll"):
        assert one.data["metrics"][name] == two.data["metrics"][name]
    assert one["hamming_loss"] == pytest.approx(1 - one["accuracy"])


def test_limits_of_whole_cases_come_from_cases() -> None:
    preds = made()
    report = hs.evaluate(preds)
    for name in ("hamming_loss", "exact_match", "macro_auroc"):
        low, high = hs.interval(getattr(hs, name), preds)
        entry = report.data["metrics"][name]
        assert (entry["low"], entry["high"]) == pytest.approx((low, high), rel=1e-6)
        assert low < entry["value"] < high
    patients = made(group=np.arange(400) // 4)
    wide = hs.evaluate(patients).data["metrics"]["hamming_loss"]
    assert wide["value"] == pytest.approx(report["hamming_loss"])
    assert (wide["low"], wide["high"]) == pytest.approx(hs.interval(hs.hamming_loss, patients))


def test_weights_are_importance() -> None:
    twice = made(weight=np.full(400, 2.0))
    for name in ("hamming_loss", "exact_match", "macro_auroc"):
        assert hs.evaluate(twice)[name] == pytest.approx(hs.evaluate(made())[name])
    unequal = hs.evaluate(made(weight=np.where(np.arange(400) < 200, 1.0, 2.0)))
    assert "weights are refused" in unequal.data["labels"]["rows"][0]["guarantee"]["why"]


def test_a_label_without_positives_is_a_named_gap() -> None:
    p, y = np.full((60, 2), 0.3), np.zeros((60, 2), dtype=int)
    y[:20, 0] = 1
    row = hs.evaluate(hs.Predictions.from_multilabel(p, y)).data["labels"]["rows"][1]
    assert row["positives"] == 0
    assert row["auc"] == {"value": None, "why": "undefined: no positive case"}
    assert row["guarantee"]["missed"] is None


def test_streamed_and_loaded_agree(tmp_path: Path) -> None:
    hs.write(made(90), tmp_path / "a.npz")
    hs.write(made(50, seed=1), tmp_path / "b.npz")
    files = [tmp_path / "a.npz", tmp_path / "b.npz"]
    loaded = hs.evaluate(hs.read(files, multilabel=True))
    parts = [hs.evaluate_files(files, multilabel=True, resume=tmp_path / "kept") for _ in range(2)]
    assert parts[1].data["streamed"]["resumed"] == 2
    for streamed in parts:
        assert streamed.data["labels"] == loaded.data["labels"]
        for name in ("hamming_loss", "exact_match", "macro_auroc", "aurc"):
            assert streamed[name] == pytest.approx(loaded[name], abs=1e-12)
        assert streamed.data["metrics"]["hamming_loss"]["low"] is not None
        for form in ("to_text", "to_markdown", "to_html"):
            assert "Label by label" in getattr(streamed, form)()


@pytest.mark.parametrize("name", ["a.npz", "a.parquet", "a.jsonl", "a.csv"])
def test_files_keep_what_they_hold(tmp_path: Path, name: str) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    preds, path = made(40, ids=[f"x{i}" for i in range(40)]), tmp_path / name
    hs.write(preds, path)
    again = hs.read(path, multilabel=True)
    assert np.array_equal(again.probs, preds.probs)
    assert np.array_equal(again.labels, preds.labels)
    assert np.array_equal(again.ids, preds.ids)


def test_tables_name_their_labels(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,prob_cat,prob_dog,label_dog,label_cat\na,0.9,0.2,1,1\nb,0.4,0.7,1,0\n")
    preds = hs.read(path, multilabel=True)
    assert preds.layout.names == ("cat", "dog")
    assert preds.label("dog").labels.tolist() == [1, 1]
    assert preds.label("cat").labels.tolist() == [1, 0]
    assert "Hamming loss" in run("evaluate", path, "--multilabel")


def test_a_promise_for_each_label_shares_delta() -> None:
    preds = made(2000)
    found = label_thresholds(preds, risk=0.1, delta=0.06)
    for name in NAMES:
        rows = preds.label(name)
        alone = hs.policies.guaranteed_threshold(
            hs.tally(rows.confidence, correct=rows.correct), risk=0.1, delta=0.02
        )
        assert found[name] == alone
    policy = label_policy(preds, risk=0.1, delta=0.06)
    accept = policy.decide(preds).accept.reshape(-1, 3)
    assert accept.mean(axis=0).tolist() == [found[name].coverage for name in NAMES]


def test_policies_of_labels_are_saved_and_decide(tmp_path: Path, run: Run) -> None:
    hs.write(made(2000), tmp_path / "a.npz")
    text = run(
        "threshold", tmp_path / "a.npz", "--multilabel", "--risk", "0.1", "-o", tmp_path / "p.json"
    )
    assert "Accept a label where its max_prob reaches its own threshold" in text
    policy = hs.load(tmp_path / "p.json")
    assert isinstance(policy, Policy)
    assert policy.keys == NAMES


def test_calibrators_are_fitted_per_label(tmp_path: Path, run: Run) -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, (3000, 2))
    y = rng.random((3000, 2)) < np.stack(
        [p[:, 0] ** 3, np.sqrt(p[:, 1])], axis=1
    )  # off in opposite directions
    preds = hs.Predictions.from_multilabel(p, y, label_names=["a", "b"])
    fitted = PerLabel.fit(preds, Isotonic.fit)
    for name in ("a", "b"):
        before, after = (hs.ece(hs.positive_tally(x.label(name))) for x in (preds, fitted(preds)))
        assert after < 0.2 * before
    hs.save(fitted, tmp_path / "c.json")
    assert np.array_equal(hs.load(tmp_path / "c.json")(preds).values, fitted(preds).values)
    choice = hs.choose_calibrator(preds)
    assert isinstance(choice.calibrator, PerLabel)
    hs.write(preds, tmp_path / "a.npz")
    files = ("--fit", tmp_path / "a.npz", "--on", tmp_path / "a.npz")
    assert "platt" in run("calibrate", *files, "--multilabel", "--method", "platt")


@pytest.mark.parametrize(
    ("probs", "labels", "said"),
    [
        (
            [[0.9, 0.2], [0.4, 0.7]],
            [[1, 2], [0, 1]],
            r"labels\[0\] holds 2; with many labels each is 0",
        ),
        ([[0.9, 0.2], [0.4, 0.7]], [[1, 0]], "has shape"),
        ([[0.9, 0.1], [0.4, 0.6]], [[1, 0], [0, 1]], "2 rows that all sum to 1.*--sums-to-one"),
        ([[0.9, 3.0], [0.4, 0.6]], [[1, 0], [0, 1]], "outside .*Are these logits"),
        ([[0.9, np.nan], [0.4, 0.6]], [[1, 0], [0, 1]], "nan"),
        ([0.9, 0.2], [1, 0], "shape"),
    ],
)
def test_bad_input_is_one_sentence(
    probs: list[object], labels: list[object], said: str, tmp_path: Path, run: Run
) -> None:
    with pytest.raises(hs.InputError, match=said):
        hs.Predictions.from_multilabel(probs, labels)
    np.savez(tmp_path / "a.npz", probs=np.array(probs), labels=np.array(labels))
    run("evaluate", tmp_path / "a.npz", "--multilabel", ok=2)
    assert run("doctor", tmp_path / "a.npz", "--multilabel", ok=2)


def test_rows_that_sum_to_one_may_be_meant(tmp_path: Path, run: Run) -> None:
    np.savez(tmp_path / "a.npz", probs=[[0.9, 0.1], [0.4, 0.6]], labels=[[1, 0], [1, 1]])
    assert "2 cases, 2 labels each" in run(
        "evaluate", tmp_path / "a.npz", "--multilabel", "--sums-to-one"
    )


def test_a_matrix_of_labels_without_multilabel(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", probs=[[0.9, 0.1], [0.4, 0.6]], labels=[[1, 0], [0, 1]])
    assert hs.read(tmp_path / "a.npz").labels.tolist() == [0, 1]  # one 1 per row names a class
    np.savez(tmp_path / "b.npz", probs=[[0.9, 0.1], [0.4, 0.6]], labels=[[1, 0], [1, 1]])
    with pytest.raises(hs.InputError, match="--multilabel"):
        hs.read(tmp_path / "b.npz")


def tags() -> dict[str, list[object]]:
    return {
        "id": ["a", "b", "c"],
        "prob_cat": [0.9, 0.4, 0.2],
        "prob_dog": [0.2, 0.7, 0.6],
        "label_dog": [0, 1, 1],
        "label_cat": [1, 1, 0],
        "site": ["x", "x", "y"],
    }


@pytest.mark.parametrize("library", ["dict", "pandas", "polars"])
def test_frames_with_many_labels(library: str) -> None:
    table = tags() if library == "dict" else pytest.importorskip(library).DataFrame(tags())
    preds = hs.Predictions.from_frame(table, multilabel=True)
    assert preds.layout.names == ("cat", "dog")
    assert preds.label("cat").labels.tolist() == [1, 1, 0]
    assert preds.label("dog").labels.tolist() == [0, 1, 1]
    assert preds.label("dog").probs[:, 1].tolist() == [0.2, 0.7, 0.6]
    assert preds.ids[:2].tolist() == ["a cat", "a dog"]
    assert set(preds.attributes) == {"site"}
    named = hs.Predictions.from_frame(
        table,
        multilabel=True,
        probs=["prob_dog", "prob_cat"],
        label=["label_dog", "label_cat"],
        class_names=["d", "c"],
    )
    assert named.layout.names == ("d", "c")
    assert np.array_equal(named.label("c").labels, preds.label("cat").labels)
    assert hs.hamming_loss(preds) == hs.hamming_loss(named)


def test_columns_of_lists_hold_many_labels() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"probs": [[0.9, 0.2], [0.4, 0.7]], "labels": [[1, 0], [1, 1]]})
    assert hs.Predictions.from_frame(frame, multilabel=True).label(0).labels.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"label_cat": [1, 2, 0]}, r"labels\[1\] holds 2"),
        ({"prob_eel": [0.1, 0.1, 0.1]}, "no column 'label_eel'"),
        ({"prob_dog": [0.1, 0.6, 0.8]}, "3 rows that all sum to 1"),
        ({"prob_dog": [0.1, None, 0.8]}, "missing"),
    ],
)
def test_bad_frames_with_many_labels(change: dict[str, list[object]], said: str) -> None:
    with pytest.raises(hs.InputError, match=said):
        hs.Predictions.from_frame(tags() | change, multilabel=True)
    with pytest.raises(hs.InputError, match="multilabel=True"):
        hs.Predictions.from_frame(tags(), label=["label_cat", "label_dog"])


@pytest.mark.parametrize("name", ["a.npz", "a.csv", "a.jsonl", "a.parquet"])
def test_each_label_is_decided_by_its_own_threshold(tmp_path: Path, run: Run, name: str) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    preds = made(600, ids=[f"x{i}" for i in range(600)])
    policy = label_policy(preds, risk=0.1, delta=0.06)
    hs.save(policy, tmp_path / "p.json")
    hs.write(preds, tmp_path / name)
    text = run(
        "decide", tmp_path / "p.json", tmp_path / name, "--multilabel", "-o", tmp_path / "out.jsonl"
    )
    wanted = policy.decide(preds)
    assert f"1,800 decided: {wanted.accept.sum():,} accepted" in text
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == [f"x{i}" for i in range(600)]
    said = [row["labels"][label]["decision"] == "accept" for row in rows for label in NAMES]
    assert said == wanted.accept.tolist()
    assert [row["labels"]["dog"]["confidence"] for row in rows] == preds.label(
        "dog"
    ).confidence.tolist()


def test_deciding_many_labels_goes_on_after_a_crash(tmp_path: Path, run: Run) -> None:
    preds = made(300, ids=[f"x{i}" for i in range(300)])
    hs.save(label_policy(preds, risk=0.1, delta=0.06), tmp_path / "p.json")
    hs.write(preds, tmp_path / "a.csv")
    run("decide", tmp_path / "p.json", tmp_path / "a.csv", "-o", tmp_path / "whole.jsonl")
    whole = (tmp_path / "whole.jsonl").read_bytes()
    (tmp_path / "torn.jsonl").write_bytes(whole[: len(whole) // 3])
    run(
        "decide", tmp_path / "p.json", tmp_path / "a.csv", "-o", tmp_path / "torn.jsonl", "--resume"
    )
    assert (tmp_path / "torn.jsonl").read_bytes() == whole


def test_labels_that_a_policy_does_not_know(tmp_path: Path, run: Run) -> None:
    preds = made(600)
    hs.save(label_policy(preds, risk=0.1, delta=0.06), tmp_path / "p.json")
    (tmp_path / "a.csv").write_text(
        "prob_cat,prob_ox\n0.99,0.99\n0.5,0.5\n"
    )  # a row that sums to 1 is meant
    rows = [
        json.loads(line)
        for line in run("decide", tmp_path / "p.json", tmp_path / "a.csv", "-q").splitlines()
    ]
    assert [row["labels"]["ox"]["decision"] for row in rows] == ["defer", "defer"]
    (tmp_path / "b.csv").write_text("prob_ox,prob_emu\n0.99,0.99\n")
    assert "labels cat, dog, eel" in run("decide", tmp_path / "p.json", tmp_path / "b.csv", ok=2)
    hs.write(preds, tmp_path / "a.npz")
    watched = (
        "threshold",
        tmp_path / "a.npz",
        "--multilabel",
        "--risk",
        "0.1",
        "--drift",
        tmp_path / "w.json",
    )
    assert "independent decisions" in run(*watched, ok=2)
    assert not (tmp_path / "w.json").exists()


def test_every_label_says_how_many_of_its_cases_are_missed() -> None:
    rng = np.random.default_rng(0)
    probs = rng.random((60, 3)).round(2)
    labels = (rng.random((60, 3)) < probs).astype(int)
    report = hs.evaluate(hs.Predictions.from_multilabel(probs, labels))
    missed = ((labels == 1) & (probs <= 0.5)).sum(axis=0).tolist()
    assert [row["missed"] for row in report.data["labels"]["rows"]] == missed
    assert sum(missed) > 0
