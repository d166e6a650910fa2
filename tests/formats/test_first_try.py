"""Files as users' tools write them, through evaluate, threshold and decide: read right at the first
try, or refused with a proposal that then works. None is read as something that it is not.

To add one: a function that writes the file, and its line in `CASES`.
"""

import csv
import gzip
import json
import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import howsure as hs
from howsure import Predictions
from howsure.cli.main import main
from howsure.policies import Policy, threshold_for_coverage
from howsure.predictions.frames import FixedClassifier

N = 120
RNG = np.random.default_rng(11)
LABELS = RNG.integers(0, 3, N)
LOGITS = (2.5 * np.eye(3)[LABELS] + RNG.normal(size=(N, 3))).round(4)
PROBS = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)
ANSWERS = PROBS.argmax(axis=1)
SURE = PROBS.max(axis=1)
RIGHT = (ANSWERS == LABELS).astype(int)
RISK = PROBS[:, 1] + PROBS[:, 2]  # of two classes
ILL = (LABELS > 0).astype(int)
NAMES = np.array(["cat", "dog", "owl"])
WORDS = np.array(["well", "ill"])
ACCURACY = RIGHT.mean()
BINARY = ((RISK > 0.5) == ILL).mean()


def write_table(path: Path, columns: dict[str, Iterable[object]], mark: str = ",") -> None:
    rows = [mark.join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join([mark.join(columns), *rows]) + "\n", encoding="utf-8")


def write_lines(path: Path, columns: dict[str, Iterable[object]]) -> None:
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    path.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows))


def vectors(start: str, ends: Iterable[object] = range(3)) -> dict[str, Iterable[object]]:
    return {f"{start}{end}": PROBS[:, i].tolist() for i, end in enumerate(ends)}


def write_german(path: Path) -> None:
    """As a spreadsheet writes it where numbers have commas."""
    numbers = [f"{x:.6f}".replace(".", ",") for x in SURE]
    write_table(path, {"confidence": numbers, "correct": RIGHT}, ";")


def write_r_table(path: Path) -> None:
    """As R's write.csv does: names in quotes, row numbers without a heading."""
    rows = [f'"{i + 1}",{RISK[i]:.15g},"{WORDS[ILL[i]]}"' for i in range(N)]
    path.write_text('"","prob_ill","label"\n' + "\n".join(rows) + "\n")


def write_pandas_index(path: Path) -> None:
    rows = [f"{i},{SURE[i]},{bool(RIGHT[i])}" for i in range(N)]
    path.write_text(",confidence,correct\n" + "\n".join(rows) + "\n")


def write_records(path: Path) -> None:
    """As pandas' to_json(orient="records") does."""
    rows = zip(SURE.tolist(), ANSWERS.tolist(), LABELS.tolist(), strict=True)
    records = [{"confidence": c, "prediction": p, "label": y} for c, p, y in rows]
    path.write_text(json.dumps(records))


def write_printed(path: Path, texts: Iterable[str]) -> None:
    """As pandas' to_csv writes a column of arrays or lists: each as it is printed."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("label", "probs"))
        writer.writerows(zip(LABELS, texts, strict=True))


def write_printed_arrays(path: Path) -> None:
    """Long ones stand on several lines."""
    write_printed(path, (np.array2string(row, max_line_width=24) for row in PROBS))


def write_printed_lists(path: Path) -> None:
    lists = [", ".join(f"np.float64({x!r})" for x in row) for row in PROBS.tolist()]
    write_printed(path, (f"[{one}]" for one in lists))


def write_frame(path: Path) -> None:
    """As pandas writes tables."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({**vectors("prob_", NAMES), "label": NAMES[LABELS]})
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_feather(path)


def write_polars(path: Path) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"confidence": SURE, "correct": RIGHT.astype(bool)})
    frame.write_parquet(path)


def write_lists(path: Path) -> None:
    """A column of lists, as datasets are kept."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"logits": LOGITS.tolist(), "label": LABELS}), path)


def write_torch(path: Path) -> None:
    torch = pytest.importorskip("torch")
    torch.save({"logits": torch.tensor(LOGITS), "labels": torch.tensor(LABELS)}, path)


def write_packed(path: Path) -> None:
    with gzip.open(path, "wt") as file:
        file.write("confidence,correct\n")
        file.writelines(f"{c},{r}\n" for c, r in zip(SURE, RIGHT, strict=True))


def write_rounded(path: Path) -> None:
    """With two digits, so that rows sum to 0.99 or 1.01."""
    columns = {f"prob_{i}": [f"{x:.2f}" for x in PROBS[:, i]] for i in range(3)}
    write_table(path, {**columns, "label": LABELS})


ROUNDED = float((PROBS.round(2).argmax(axis=1) == LABELS).mean())


@dataclass(frozen=True)
class Case:
    """A file, what is right of it, and what must be said first where it is refused."""

    write: Callable[[Path], None]
    accuracy: float = float(ACCURACY)
    say: tuple[str, ...] = ()  # the proposal, which must stand in the refusal


def table(columns: dict[str, Iterable[object]], **more: object) -> Case:
    return Case(lambda path: write_table(path, columns), **more)  # type: ignore[arg-type]


def lines(columns: dict[str, Iterable[object]], **more: object) -> Case:
    return Case(lambda path: write_lines(path, columns), **more)  # type: ignore[arg-type]


def arrays(**named: np.ndarray) -> Case:
    return Case(lambda path: np.savez(path, **named))


MADE = Path(__file__).parent / "logs" / "made"
XGBOOST = {
    name: np.array(cells, dtype=np.int64 if name in ("labels", "positive") else np.float32)
    for name, cells in json.loads((MADE / "xgboost.json").read_text()).items()
}
HUGGING_FACE = json.loads((MADE / "transformers.json").read_text())
BOOSTED = float((XGBOOST["predict_proba"].argmax(axis=1) == XGBOOST["labels"]).mean())
PIPED = float(
    np.mean(
        [
            x["label"] == y
            for x, y in zip(HUGGING_FACE["pipeline"], HUGGING_FACE["gold"], strict=True)
        ]
    )
)


def write_boosted(path: Path) -> None:
    """As pandas writes DataFrame(model.predict_proba(X)).assign(y=y)."""
    columns = {str(i): XGBOOST["predict_proba"][:, i] for i in range(3)}
    write_table(path, {"": range(60), **columns, "y": XGBOOST["labels"]})


def list_piped(**more: Iterable[object]) -> dict[str, Iterable[object]]:
    """The answers of a pipeline with the right ones, as records or columns."""
    answers = HUGGING_FACE["pipeline"]
    columns = {name: [one[name] for one in answers] for name in ("label", "score")}
    return {**columns, **more, "gold": HUGGING_FACE["gold"]}


FLIPPED = np.where(np.arange(N) % 7 == 0, (ANSWERS + 1) % 3, ANSWERS)
CASES: dict[str, Case] = {
    # Arrays
    "logits.npz": arrays(logits=LOGITS, labels=LABELS),
    "logits32.npz": arrays(logits=LOGITS.astype(np.float32), labels=LABELS.astype(np.int32)),
    "probs.npz": arrays(probs=PROBS, labels=LABELS),
    "probs32.npz": arrays(probs=PROBS.astype(np.float32), y=LABELS),
    "half.npz": arrays(probs=PROBS.astype(np.float16), y_true=LABELS),
    "one_hot.npz": arrays(probs=PROBS, labels=np.eye(3)[LABELS]),
    "float_labels.npz": arrays(logits=LOGITS, targets=LABELS.astype(np.float64)),
    "named.npz": arrays(probs=PROBS, labels=NAMES[LABELS], class_names=NAMES),
    "top.npz": arrays(confidence=SURE, correct=RIGHT),
    "bools.npz": arrays(conf=SURE, correct=RIGHT.astype(bool)),
    # Tables of probabilities
    "numbered.csv": table({**vectors("prob_"), "label": LABELS}),
    "named.csv": table({**vectors("prob_", NAMES), "label": NAMES[LABELS]}),
    "proba.csv": table({**vectors("proba_"), "y_true": LABELS}),
    "probability.csv": table({**vectors("probability_"), "target": LABELS}),
    "logits.csv": table({f"logit_{i}": LOGITS[:, i] for i in range(3)} | {"label": LABELS}),
    "tabs.tsv": Case(lambda p: write_table(p, {**vectors("prob_"), "label": LABELS}, "\t")),
    "own_answers.csv": table({"label": LABELS, "prediction": ANSWERS, **vectors("prob_")}),
    "other_answers.csv": table(
        {"label": LABELS, "prediction": FLIPPED, **vectors("prob_")},
        accuracy=float((FLIPPED == LABELS).mean()),
        say=("--answers file",),
    ),
    "argmax_answers.csv": table(
        {"label": LABELS, "prediction": FLIPPED, **vectors("prob_")}, say=("--answers argmax",)
    ),
    "plain_names.csv": table(
        {"animal": NAMES[LABELS], **vectors("", NAMES)},
        say=("--name probs=cat,dog,owl --name labels=animal",),
    ),
    "three_columns.csv": table({"y": LABELS, **vectors("", "abc")}, say=("--name probs=a,b,c",)),
    # Two classes
    "risk_1.csv": table({"prob_1": RISK, "label": ILL}, accuracy=float(BINARY)),
    "risk_ill.csv": table({"prob_ill": RISK, "label": WORDS[ILL]}, accuracy=float(BINARY)),
    "risk_yes.csv": table({"prob_yes": RISK, "label": ILL}, accuracy=float(BINARY)),
    "y_prob.csv": table({"y_true": ILL, "y_prob": RISK}, accuracy=float(BINARY)),
    "two_columns.csv": table(
        {"prob_0": 1 - RISK, "prob_1": RISK, "label": ILL}, accuracy=float(BINARY)
    ),
    "r.csv": Case(write_r_table, accuracy=float(BINARY)),
    "risk_names.csv": table(
        {"outcome": ILL, "risk": RISK},
        accuracy=float(BINARY),
        say=("--name probs=risk", "--name labels=outcome"),
    ),
    # A confidence
    "confidence.csv": table({"confidence": SURE, "correct": RIGHT}),
    "words.csv": table({"confidence": SURE, "correct": np.where(RIGHT, "yes", "no")}),
    "true_false.csv": table({"conf": SURE, "is_correct": RIGHT.astype(bool)}),
    "answers.csv": table({"answer": NAMES[ANSWERS], "gold": NAMES[LABELS], "confidence": SURE}),
    "percent_sign.csv": table({"confidence": [f"{100 * x:.4f}%" for x in SURE], "correct": RIGHT}),
    "percent.csv": table({"confidence": 100 * SURE, "correct": RIGHT}, say=("--percent",)),
    "german.csv": Case(write_german),
    "pandas_index.csv": Case(write_pandas_index),
    "prob_correct.csv": table(
        {
            "id": range(N),
            "label": NAMES[LABELS],
            "prediction": NAMES[ANSWERS],
            "prob_correct": SURE,
        },
        say=("--name confidence=prob_correct",),
    ),
    "counted.csv": table(
        {"confidence": SURE, "correct": RIGHT, "count": 1 + LABELS},
        accuracy=float((RIGHT * (1 + LABELS)).sum() / (1 + LABELS).sum()),
    ),
    # Names of scikit-learn, Keras, pandas and others
    "max_proba.csv": table({"y_true": LABELS, "y_pred": ANSWERS, "max_proba": SURE}),
    "max_prob.csv": table({"target": LABELS, "pred": ANSWERS, "max_prob": SURE}),
    "expected.csv": table(
        {"expected": NAMES[LABELS], "answer": NAMES[ANSWERS], "confidence": SURE}
    ),
    "is_correct.csv": table({"is_correct": RIGHT.astype(bool), "confidence": SURE}),
    "y_score.csv": table({"y_true": ILL, "y_score": RISK}, accuracy=float(BINARY)),
    "y_score_beside.csv": table(
        {"y_true": LABELS, "y_pred": ANSWERS, "y_score": SURE},
        say=("--name confidence=y_score",),
    ),
    "proba_beside.csv": table(
        {"y_true": LABELS, "y_pred": ANSWERS, "proba": SURE}, say=("--name confidence=proba",)
    ),
    "two_proba_beside.csv": table(
        {"y_true": ILL, "y_pred": (RISK > 0.5).astype(int), "proba": np.maximum(RISK, 1 - RISK)},
        accuracy=float(BINARY),
        say=("--name confidence=proba",),
    ),
    "truth.csv": table({"truth": LABELS, **vectors("prob_")}, say=("--name labels=truth",)),
    "savetxt.csv": Case(
        lambda path: np.savetxt(
            path,
            np.column_stack([PROBS, LABELS]),
            delimiter=",",
            header="prob_0,prob_1,prob_2,label",
        )
    ),
    "preds.npz": arrays(preds=PROBS, target=LABELS),
    "y_score.npz": arrays(y_score=PROBS, y_true=LABELS),
    "records.json": Case(write_records),
    # Other formats
    "pandas.parquet": Case(write_frame),
    "pandas.feather": Case(write_frame),
    "polars.parquet": Case(write_polars),
    "lists.parquet": Case(write_lists),
    "tensors.pt": Case(write_torch),
    "packed.csv.gz": Case(write_packed),
    "rounded.csv": Case(write_rounded, accuracy=ROUNDED),
    # XGBoost and Hugging Face
    "xgboost.csv": Case(write_boosted, accuracy=BOOSTED, say=("--name probs=0,1,2",)),
    "xgboost.npz": Case(
        lambda path: np.savez(path, probs=XGBOOST["softprob"], labels=XGBOOST["labels"]),
        accuracy=float((XGBOOST["softprob"].argmax(axis=1) == XGBOOST["labels"]).mean()),
    ),
    "trainer.npz": Case(
        lambda path: np.savez(
            path,
            predictions=np.array(HUGGING_FACE["predictions"], dtype=np.float32),
            label_ids=np.array(HUGGING_FACE["label_ids"]),
        ),
        accuracy=PIPED,
        say=("--name logits=predictions --name labels=label_ids",),
    ),
    "pipeline.csv": table(
        list_piped(), accuracy=PIPED, say=("--name prediction=label --name labels=gold",)
    ),
    "pipeline.jsonl": lines(
        list_piped(), accuracy=PIPED, say=("--name prediction=label --name labels=gold",)
    ),
    "printed_arrays.csv": Case(write_printed_arrays),
    "printed_lists.csv": Case(write_printed_lists),
    # JSON lines
    "lists.jsonl": lines({"probs": PROBS.tolist(), "label": LABELS.tolist()}),
    "logits.jsonl": lines({"logits": LOGITS.tolist(), "label": LABELS.tolist()}),
    "objects.jsonl": lines(
        {
            "probs": [dict(zip(NAMES.tolist(), p, strict=True)) for p in PROBS.tolist()],
            "label": NAMES[LABELS].tolist(),
        }
    ),
    "confidence.jsonl": lines({"confidence": SURE.tolist(), "correct": RIGHT.tolist()}),
    "text_confidence.jsonl": lines(
        {"confidence": [str(x) for x in SURE.tolist()], "correct": RIGHT.astype(bool).tolist()}
    ),
    "logprob.jsonl": lines({"logprob": np.log(SURE).tolist(), "correct": RIGHT.tolist()}),
    "answers.jsonl": lines(
        {
            "id": [f"q{i}" for i in range(N)],
            "answer": NAMES[ANSWERS].tolist(),
            "gold": NAMES[LABELS].tolist(),
            "confidence": SURE.tolist(),
        }
    ),
}


def call(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main(list(args))
    out, err = capsys.readouterr()
    return int(stopped.value.code or 0), out, err


@pytest.mark.parametrize("name", CASES)
def test_first_try(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[name]
    monkeypatch.chdir(tmp_path)
    case.write(tmp_path / name)
    said: list[str] = []
    for proposal in case.say:
        for command in (("evaluate",), ("threshold", "--coverage", "0.5", "-o", "policy.json")):
            code, out, err = call(capsys, *command, name, *said)
            assert (code, out, err.count("\n")) == (2, "", 1)
        # The whole proposal stands there, as it is typed, or doctor gives the command.
        if proposal not in err:
            examined = json.loads(call(capsys, "doctor", name, *said, "--json")[1])
            assert proposal in examined[0]["proposal"], (err, examined[0]["proposal"])
        said += shlex.split(proposal)
    code, out, err = call(capsys, "evaluate", name, *said, "--json")
    assert code == 0, err
    report = json.loads(out)
    assert report["metrics"]["accuracy"]["value"] == pytest.approx(case.accuracy, abs=1e-9)
    assert report["provenance"]["receipt"]["text"] in err
    code, _, err = call(
        capsys, "threshold", name, *said, "--coverage", "0.5", "-o", "policy.json", "-q"
    )
    assert code == 0, err
    # The policy knows how its file was read.
    code, out, err = call(capsys, "decide", "policy.json", name)
    assert code == 0, err
    decisions = [json.loads(line) for line in out.splitlines()]
    assert len(decisions) in (N, report["n"])  # a row that counts twice is decided once
    accepted = sum(one["decision"] == "accept" for one in decisions)
    assert 0.3 < accepted / len(decisions) < 0.7


# Logs that tools wrote, with the share of right answers that they state.
LOGS = {
    "deepeval.json": 0.5,
    "inspect.eval": 0.3,
    "lm_eval_mutual.jsonl": 0.625,
    "promptfoo.json": 2 / 3,
    "promptfoo.jsonl": 2 / 3,
}


@pytest.mark.filterwarnings("default")  # a log may be read with a remark
@pytest.mark.parametrize("name", LOGS)
def test_first_try_with_a_log(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = str(MADE / name)
    code, out, err = call(capsys, "evaluate", path, "--json")
    if name.endswith(".eval") and "howsure[logs]" in err:
        pytest.skip("needs the extra logs")
    assert code == 0, err
    report = json.loads(out)
    assert report["metrics"]["accuracy"]["value"] == pytest.approx(LOGS[name], abs=1e-12)
    code, _, err = call(capsys, "threshold", path, "--coverage", "0.5", "-o", "policy.json", "-q")
    assert code == 0, err
    code, out, err = call(capsys, "decide", "policy.json", path)
    assert code == 0, err
    assert len(out.splitlines()) == report["n"]


def make_pandas() -> object:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({**vectors("prob_", NAMES), "label": NAMES[LABELS]})


def make_categories() -> object:
    pandas = pytest.importorskip("pandas")
    labels = pandas.Series(NAMES[LABELS], dtype="category")
    return pandas.DataFrame({**vectors("prob_", NAMES), "label": labels})


def make_polars() -> object:
    polars = pytest.importorskip("polars")
    return polars.DataFrame({"confidence": SURE, "correct": RIGHT.astype(bool)})


def make_arrow() -> object:
    pa = pytest.importorskip("pyarrow")
    return pa.table({**vectors("proba_"), "y_true": LABELS})


class Trained(NamedTuple):
    """What Trainer.predict of transformers returns."""

    predictions: np.ndarray
    label_ids: np.ndarray
    metrics: dict[str, float]


TRAINED = Trained(
    np.array(HUGGING_FACE["predictions"], dtype=np.float32),
    np.array(HUGGING_FACE["label_ids"]),
    {},
)
BOOSTED_ANSWERS = FixedClassifier(["0", "1", "2"], XGBOOST["predict_proba"].tolist())
# What people hold in Python, and what is right of it.
OBJECTS: dict[str, tuple[Callable[[], object], float]] = {
    "dictionary": (lambda: {**vectors("prob_"), "label": LABELS}, ACCURACY),
    "pandas": (make_pandas, ACCURACY),
    "pandas with categories": (make_categories, ACCURACY),
    "polars": (make_polars, ACCURACY),
    "arrow": (make_arrow, ACCURACY),
    "XGBClassifier.predict_proba": (
        lambda: Predictions.from_probs(XGBOOST["predict_proba"], XGBOOST["labels"]),
        BOOSTED,
    ),
    "XGBClassifier": (
        lambda: Predictions.from_estimator(BOOSTED_ANSWERS, None, XGBOOST["labels"].astype(str)),
        BOOSTED,
    ),
    "Booster.predict, softprob": (
        lambda: {"probs": XGBOOST["softprob"], "label": XGBOOST["labels"]},
        float((XGBOOST["softprob"].argmax(axis=1) == XGBOOST["labels"]).mean()),
    ),
    "Booster.predict, margins": (
        lambda: Predictions.from_logits(XGBOOST["margin"], XGBOOST["labels"]),
        float((XGBOOST["margin"].argmax(axis=1) == XGBOOST["labels"]).mean()),
    ),
    "Booster.predict, logistic": (
        lambda: Predictions.from_probs(XGBOOST["logistic"], XGBOOST["positive"]),
        float(((XGBOOST["logistic"] > 0.5) == XGBOOST["positive"]).mean()),
    ),
    "Booster.predict, logitraw": (
        lambda: Predictions.from_logits(XGBOOST["logitraw"], XGBOOST["positive"]),
        float(((XGBOOST["logitraw"] > 0) == XGBOOST["positive"]).mean()),
    ),
    "Trainer.predict": (
        lambda: Predictions.from_logits(TRAINED.predictions, TRAINED.label_ids),
        PIPED,
    ),
    "pipeline with right answers": (
        lambda: {
            "confidence": [one["score"] for one in HUGGING_FACE["pipeline"]],
            "prediction": [one["label"] for one in HUGGING_FACE["pipeline"]],
            "label": HUGGING_FACE["gold"],
        },
        PIPED,
    ),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_first_try_with_an_object(name: str) -> None:
    make, accuracy = OBJECTS[name]
    table = make()
    report = hs.evaluate(table)
    assert report.data["metrics"]["accuracy"]["value"] == pytest.approx(accuracy, abs=1e-12)
    preds = table if isinstance(table, Predictions) else Predictions.from_frame(table)
    policy = Policy.fit(preds, lambda t: threshold_for_coverage(t, 0.5))
    assert 0.3 < policy.decide(preds).accept.mean() < 0.7


def number_columns() -> object:
    """As pandas numbers the columns of a matrix."""
    columns = {str(i): XGBOOST["predict_proba"][:, i] for i in range(3)}
    return {**columns, "y": XGBOOST["labels"]}


def evaluate_sorted(out: list[list[dict[str, Any]]], y: list[str]) -> object:
    rows = [sorted(one, key=lambda x: x["label"]) for one in out]
    return hs.evaluate(
        probs=[[x["score"] for x in row] for row in rows],
        labels=y,
        class_names=[x["label"] for x in rows[0]],
    )


# What is typed first, what it says, and what is typed then.
REFUSED: dict[str, tuple[Callable[[], object], str, Callable[[], object], float]] = {
    "evaluate(probs, y)": (
        lambda: hs.evaluate(XGBOOST["predict_proba"], XGBOOST["labels"]),  # type: ignore[arg-type]
        "hs.evaluate(probs=P, labels=y)",
        lambda: hs.evaluate(probs=XGBOOST["predict_proba"], labels=XGBOOST["labels"]),
        BOOSTED,
    ),
    "margins as probabilities": (
        lambda: hs.evaluate(probs=XGBOOST["margin"], labels=XGBOOST["labels"]),
        "Are these logits? Use Predictions.from_logits",
        lambda: hs.evaluate(Predictions.from_logits(XGBOOST["margin"], XGBOOST["labels"])),
        float((XGBOOST["margin"].argmax(axis=1) == XGBOOST["labels"]).mean()),
    ),
    "classes as probabilities": (
        lambda: hs.evaluate(probs=XGBOOST["softmax"], labels=XGBOOST["labels"]),
        "Are these class numbers? Give the probabilities of the classes",
        lambda: hs.evaluate(probs=XGBOOST["softprob"], labels=XGBOOST["labels"]),
        float((XGBOOST["softprob"].argmax(axis=1) == XGBOOST["labels"]).mean()),
    ),
    "texts as labels": (
        lambda: hs.evaluate(probs=XGBOOST["predict_proba"], labels=NAMES[XGBOOST["labels"]]),
        "texts need class_names=, in the order of the columns",
        lambda: hs.evaluate(
            probs=XGBOOST["predict_proba"],
            labels=NAMES[XGBOOST["labels"]],
            class_names=["cat", "dog", "owl"],
        ),
        BOOSTED,
    ),
    "a booster": (
        lambda: Predictions.from_estimator(SimpleNamespace(predict=None), None, XGBOOST["labels"]),
        "no classifier of scikit-learn's kind; write hs.evaluate(probs=",
        lambda: hs.evaluate(probs=XGBOOST["softprob"], labels=XGBOOST["labels"]),
        float((XGBOOST["softprob"].argmax(axis=1) == XGBOOST["labels"]).mean()),
    ),
    "numbered columns": (
        lambda: hs.evaluate(number_columns()),
        "Predictions.from_frame(df, probs=['0', '1', '2'], label='y')",
        lambda: hs.evaluate(
            Predictions.from_frame(number_columns(), probs=["0", "1", "2"], label="y")
        ),
        BOOSTED,
    ),
    "the output of a Trainer": (
        lambda: hs.evaluate(TRAINED),
        "write hs.evaluate(logits=out.predictions, labels=out.label_ids)",
        lambda: hs.evaluate(logits=TRAINED.predictions, labels=TRAINED.label_ids),
        PIPED,
    ),
    "the output of a pipeline": (
        lambda: hs.evaluate(HUGGING_FACE["pipeline"]),
        "{'confidence': [one['score'] for one in out], 'prediction': [one['label'] for one in out], 'label': y}",
        lambda: hs.evaluate(OBJECTS["pipeline with right answers"][0]()),
        PIPED,
    ),
    "all scores of a pipeline": (
        lambda: hs.evaluate(HUGGING_FACE["pipeline_top_k"]),
        "hs.evaluate(probs=[[x['score'] for x in row] for row in rows], labels=y, class_names=",
        lambda: evaluate_sorted(HUGGING_FACE["pipeline_top_k"], HUGGING_FACE["gold"]),
        PIPED,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_object_is_refused_with_a_proposal_that_works(name: str) -> None:
    first, said, then, accuracy = REFUSED[name]
    with pytest.raises(hs.InputError, match=re.escape(said)):
        first()
    report = then()
    assert isinstance(report, hs.Report)
    assert report.data["metrics"]["accuracy"]["value"] == pytest.approx(accuracy, abs=1e-12)


def test_an_array_of_names_names_the_labels(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    probs = rng.random((30, 3))
    path = tmp_path / "tags.npz"
    np.savez(path, probs=probs, labels=(rng.random((30, 3)) < probs).astype(int), names=NAMES)
    layout = hs.read(path, multilabel=True).layout
    assert layout is not None
    assert layout.names == ("cat", "dog", "owl")
    np.savez(path, probs=PROBS, labels=LABELS, names=np.array(["a"] * N))
    assert hs.read(path).class_names is None  # names of the rows
