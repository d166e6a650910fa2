"""Ordinary files of R, spreadsheets and services that were once read as something else: each is read
right, or refused with what to say, and what is said is right.
"""

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import howsure as hs
from howsure import InputError
from howsure.cli.main import main

N = 120
RNG = np.random.default_rng(4)
LABELS = RNG.integers(0, 3, N)
LOGITS = 2.2 * np.eye(3)[LABELS] + RNG.normal(size=(N, 3))
PROBS = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
ANSWERS = PROBS.argmax(axis=1)
SURE = PROBS.max(axis=1)
RIGHT = (ANSWERS == LABELS).astype(int)
RISK = 1 - PROBS[:, 0]
ILL = (LABELS > 0).astype(int)
CALLED = (RISK > 0.5).astype(int)
NAMES = np.array(["cat", "dog", "owl"])
THREE = float(RIGHT.mean())
TWO = float((CALLED == ILL).mean())


def build(columns: dict[str, object], mark: str = ",") -> str:
    rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
    lines = [mark.join(columns), *(mark.join(map(str, row)) for row in rows)]
    return "\n".join(lines) + "\n"


def by_class(start: str, ends: object) -> dict[str, object]:
    return {f"{start}{end}": PROBS[:, i] for i, end in enumerate(ends)}  # type: ignore[arg-type]


CONFIDENT = {"confidence": SURE, "correct": RIGHT}
READ = {
    "positive first": (build({"label": ILL, "prob_positive": RISK, "prob_negative": 1 - RISK}), TWO),
    "one-based": (build({"label": LABELS + 1, **by_class("prob_", (1, 2, 3))}), THREE),
    "one-based, two": (build({"label": ILL + 1, "prob_1": 1 - RISK, "prob_2": RISK}), TWO),
    "mixed order": (build({"label": LABELS, **dict(reversed(by_class("prob_", (0, 1, 2)).items()))}), THREE),
    "right and wrong": (build({"confidence": SURE, "correct": np.where(RIGHT, "Right", "Wrong")}), THREE),
    "empty rows at the end": (build(CONFIDENT) + ",\n,\n", THREE),
    "sep line": ("sep=;\n" + build(CONFIDENT, ";").replace(".", ","), THREE),
    "byte order mark": ("\ufeff" + build(CONFIDENT), THREE),
    "tidymodels": (
        build({".pred_class": NAMES[ANSWERS], **by_class(".pred_", NAMES), "label": NAMES[LABELS]}),
        THREE,
    ),
    "mlr3": (build({"target": NAMES[LABELS], **by_class("prob.", NAMES)}), THREE),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_is_read_right(name: str, tmp_path: Path) -> None:
    text, accuracy = READ[name]
    path = tmp_path / "a.csv"
    path.write_text(text, encoding="utf-8")
    assert hs.read(path).correct.mean() == pytest.approx(accuracy, abs=1e-12)


PROPOSED = {
    "P(class 1) called confidence": (
        build({"y_true": ILL, "y_pred": CALLED, "confidence": RISK}), TWO),
    "the answers name columns too": (
        build({"pred": NAMES[ANSWERS], "obs": NAMES[LABELS], **by_class("", NAMES)}), THREE),
    "answers without labels by name": (
        build({".pred_class": NAMES[ANSWERS], **by_class(".pred_", NAMES), "species": NAMES[LABELS]}), THREE),
    "truth and response": (
        build({"response": NAMES[ANSWERS], "truth": NAMES[LABELS], **by_class("prob.", NAMES)}), THREE),
    "class 1 before class 0": (build({"P_1": RISK, "P_0": 1 - RISK, "target": ILL}), TWO),
    "minus one and one": (build({"y_true": 2 * ILL - 1, "y_prob": RISK}), TWO),
    "one and two": (build({"y_true": ILL + 1, "y_prob": RISK}), TWO),
    "labels from one": (build({"label": LABELS + 1, **by_class("prob_", (0, 1, 2))}), THREE),
    "log-probabilities": (
        build({"label": LABELS, **{f"log_prob_{i}": np.log(PROBS[:, i]) for i in range(3)}}), THREE),
    "log-odds": (build({"y_true": ILL, "decision_function": np.log(RISK / (1 - RISK))}), TWO),
    "log-odds called y_score": (build({"y_true": ILL, "y_score": np.log(RISK / (1 - RISK))}), TWO),
    "y_pred is the probability": (build({"y_true": ILL, "y_pred": RISK}), TWO),
    "lists": (
        "label,probability\n" + "".join(f'{y},"{p.tolist()}"\n' for y, p in zip(LABELS, PROBS, strict=True)), THREE),
    "error": (build({"confidence": SURE, "is_wrong": 1 - RIGHT}), THREE),
}  # fmt: skip


@pytest.mark.parametrize("name", PROPOSED)
def test_is_refused_and_what_doctor_proposes_is_right(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text, accuracy = PROPOSED[name]
    Path("a.csv").write_text(text)

    def run(*args: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main(list(args))
        out, err = capsys.readouterr()
        return int(stopped.value.code or 0), out, err

    code, out, err = run("evaluate", "a.csv")
    assert (code, out, err.count("\n")) == (2, "", 1)
    proposal = json.loads(run("doctor", "a.csv", "--json")[1])[0]["proposal"]
    assert proposal is not None
    code, out, err = run(*shlex.split(proposal)[1:], "--json")
    assert code == 0, err
    metrics = json.loads(out)["metrics"]
    value = metrics["accuracy"]["value"]
    if value is None:  # of a loss
        value = 1 - metrics["risk"]["value"]
    assert value == pytest.approx(accuracy, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (build({"uncertainty": 1 - SURE, "correct": RIGHT}), "lower for surer answers"),
        (build({"entropy": 2 * (1 - SURE), "correct": RIGHT}), "lower for surer answers"),
        (build({"confidence": 1 + (4 * SURE).astype(int), "correct": RIGHT}), "--name score="),
        ("# model 3\n" + build(CONFIDENT), "a remark"),
        ("label,probs\n0,[0.9 ... 0.1]\n", r"df\['probs'\]\.map\(list\), df\.to_parquet"),
        ("label,probs\n0,[0.9 0.1]\n1,[0.2 0.3 0.5]\n", "line 3, .* a list of 2 numbers, as in the other rows"),
        ("label,probs\n0,[0.9 0.1]\n1,[nan 0.3]\n", "line 3, .* a list of 2 numbers"),
        (build({"label": np.where(np.arange(N) % 9, LABELS, -1), **by_class("prob_", (0, 1, 2))}), "without a label"),
    ],
)  # fmt: skip
def test_is_refused_with_what_to_do(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=said) as e:
        hs.read(path)
    assert "--percent" not in str(e.value)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"label": ILL, "prediction": 1 - CALLED, "prob_1": RISK}, "rows differ"),
        ({"y_true": ILL, "y_pred": CALLED, "confidence": RISK}, "exactly where the answer is '1'"),
        ({"label": NAMES[LABELS], "prediction": NAMES[ANSWERS], "prob_correct": SURE}, "confidence="),
        ({**CONFIDENT, "split": np.where(ILL, "test", "val")}, "2 splits"),
        ({**CONFIDENT, "id": ILL}, "repeated ids"),
    ],
)  # fmt: skip
def test_frames_are_refused_like_files(columns: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        hs.Predictions.from_frame(columns)


def test_frames_are_read_like_files() -> None:
    ways: list[Callable[[], hs.Predictions]] = [
        lambda: hs.Predictions.from_frame(
            {"label": ILL, "prob_positive": RISK, "prob_negative": 1 - RISK}
        ),
        lambda: hs.Predictions.from_frame(
            {"label": np.where(ILL, "ill", "well"), "prob_ill": RISK}
        ),
        lambda: hs.Predictions.from_frame(
            {"label": ILL, "prediction": 1 - CALLED, "prob_1": RISK}, answers="argmax"
        ),
    ]
    for way in ways:
        assert way().correct.mean() == pytest.approx(TWO, abs=1e-12)
    own = hs.Predictions.from_frame(
        {"label": ILL, "prediction": 1 - CALLED, "prob_1": RISK}, answers="file"
    )
    assert own.correct.mean() == pytest.approx(1 - TWO, abs=1e-12)


def test_labels_that_count_columns_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(build({"label": LABELS, **by_class("prob_", NAMES)}))
    assert "labels count these columns from 0 on (0 = 'cat')" in str(hs.read(path).receipt)


def test_probabilities_called_logits_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, logits=PROBS, labels=LABELS)
    with pytest.raises(InputError, match="so these are probabilities, not logits") as e:
        hs.read(path)
    assert "--name probs=logits" in str(e.value)
    assert hs.read(path, names={"probs": "logits"}).kind == "probs"
    assert hs.read(path, names={"logits": "logits"}).kind == "logits"


def test_log_probabilities_of_tokens_are_not_those_of_options(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [{"logprobs": [-0.1, -0.2, -0.05], "label": int(y)} for y in LABELS]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match="log-probabilities of tokens, not of options"):
        hs.read(path)
    rows = [
        {"logprobs": np.log(p).tolist(), "label": int(y)}
        for p, y in zip(PROBS, LABELS, strict=True)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert hs.read(path).correct.mean() == pytest.approx(THREE, abs=1e-12)
