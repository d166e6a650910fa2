"""Files that could be read as something they are not: each is read right, or refused with what to say."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure import InputError
from howsure.cli.main import main
from howsure.formats import ReadOptions
from howsure.policies import Policy, guaranteed_threshold

OWN_ANSWERS = "label,prediction,prob_0,prob_1\n0,1,0.9,0.1\n0,0,0.8,0.2\n1,0,0.3,0.7\n"


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., Path]:
    def write(text: str, name: str = "a.csv") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command: its exit code, what it printed, and its remarks."""

    def call(*args: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main(list(args))
        out, err = capsys.readouterr()
        return int(stopped.value.code or 0), out, err

    return call


def test_answers_beside_probabilities_are_compared(table: Callable[..., Path]) -> None:
    path = table(OWN_ANSWERS)
    with pytest.raises(InputError) as e:
        hs.read(path)
    assert "a.csv: prediction[0] (line 2)" in str(e.value)
    assert "is '1', the most probable class is '0' (2 of 3 rows differ)" in str(e.value)
    assert "--answers" in str(e.value)


def test_the_file_or_the_probabilities_may_answer(table: Callable[..., Path]) -> None:
    path = table(OWN_ANSWERS)
    argmax = hs.read(path, options=ReadOptions(answers="argmax"))
    assert argmax.correct.tolist() == [True, True, True]
    own = hs.read(path, options=ReadOptions(answers="file"))
    assert "right = 'prediction' against 'label'" in str(own.receipt)
    assert own.correct.tolist() == [False, True, False]
    np.testing.assert_allclose(own.confidence, [0.1, 0.8, 0.3])


def test_ties_and_names_are_no_difference(table: Callable[..., Path]) -> None:
    text = "label,prediction,prob_cat,prob_dog\ncat,dog,0.5,0.5\ndog,dog,0.2,0.8\n"
    assert hs.read(table(text)).n == 2


def test_two_classes_given_once(table: Callable[..., Path]) -> None:
    preds = hs.read(table("label,prob_ill\nwell,0.1\nill,0.9\nwell,0.6\n"))
    assert preds.class_names == ("well", "ill")
    assert preds.correct.tolist() == [True, True, False]
    for end in ("1", "yes", "true", "positive"):
        assert hs.read(table(f"label,prob_{end}\n0,0.1\n1,0.9\n")).correct.all()


@pytest.mark.parametrize("name", ["prob_correct", "logit_conf", "prob_right"])
def test_a_single_column_of_something_else_is_not_class_1(
    table: Callable[..., Path], name: str
) -> None:
    path = table(f"id,label,prediction,{name}\n1,a,a,0.9\n2,b,a,0.4\n")
    with pytest.raises(InputError, match=f"confidence={name}"):
        hs.read(path)
    preds = hs.read(path, names={"confidence": name})
    assert preds.correct.tolist() == [True, False]


def test_what_one_column_means_is_kept_by_a_policy(
    table: Callable[..., Path], run: Callable[..., Any], tmp_path: Path
) -> None:
    rows = "".join(f"{'ill' if i % 2 else 'well'},{0.05 + 0.9 * (i % 2)}\n" for i in range(60))
    path = table(f"label,prob_ill\n{rows}")
    policy = tmp_path / "p.json"
    assert run("threshold", str(path), "--coverage", "0.5", "-o", str(policy))[0] == 0
    new = table("prob_ill\n0.97\n0.5\n", "new.csv")
    code, out, _ = run("decide", str(policy), str(new))
    assert code == 0
    assert [json.loads(line)["prediction"] for line in out.splitlines()] == ["ill", "well"]


def test_counts_are_repetition(table: Callable[..., Path]) -> None:
    counted = hs.read(table("confidence,correct,count\n0.9,1,3\n0.4,0,2\n0.7,1,1\n"))
    assert counted.correct.tolist() == [True] * 3 + [False] * 2 + [True]
    assert "count = 'count'" in str(counted.receipt)
    assert hs.evaluate(counted).data["n"] == 6


@pytest.mark.parametrize(
    "command",
    [
        ("evaluate", "{}"),
        ("evaluate", "{}", "--stream"),
        ("threshold", "{}", "--accuracy", "0.8"),
        ("check", "{}", "--require", "ece<=1"),
    ],
)
def test_counted_rows_are_repeated_rows(
    table: Callable[..., Path], run: Callable[..., Any], command: tuple[str, ...]
) -> None:
    rng = np.random.default_rng(5)
    confidence = rng.random(40).round(2)
    correct = (rng.random(40) < confidence).astype(int)
    times = rng.integers(0, 6, 40)
    rows = list(zip(confidence, correct, times, strict=True))
    counted = "".join(f"{c},{r},{n}\n" for c, r, n in rows)
    repeated = "".join(f"{c},{r}\n" * n for c, r, n in rows)
    found: list[Any] = []
    for name, text in (
        ("counted.csv", f"confidence,correct,count\n{counted}"),
        ("repeated.csv", f"confidence,correct\n{repeated}"),
    ):
        path = str(table(text, name))
        code, out, _ = run(*(word.format(path) for word in command), "--json")
        # Sums of claims are rounded in another order, and counts know no single rows.
        value = json.loads(out, parse_float=lambda digits: float(f"{float(digits):.9g}"))
        for key in ("provenance", "streamed", "basis", "source", "command"):
            value.pop(key, None)
        value.get("views", {}).pop("label_errors", None)
        found.append((code, json.dumps(value).replace(name, "")))
    assert found[0] == found[1]


def test_percent_only_where_values_are_percentages(table: Callable[..., Path]) -> None:
    rows = "".join(f"{0.5 + i / 1000},1\n" for i in range(400))
    few = table(f"confidence,correct\n{rows}1.2,0\n")
    with pytest.raises(InputError) as e:
        hs.read(few)
    assert "--percent" not in str(e.value)
    with pytest.raises(InputError, match="1 of 401 values above 1; so it is not in percent"):
        hs.read(few, percent=True)
    many = table("confidence,correct\n85,1\n60,0\n99,1\n")
    with pytest.raises(InputError, match="--percent"):
        hs.read(many)
    assert hs.read(many, percent=True).confidence.tolist() == [0.85, 0.6, 0.99]


def test_columns_that_sum_to_1_are_proposed_together(table: Callable[..., Path]) -> None:
    path = table("y,a,b,c\n0,0.5,0.3,0.2\n1,0.1,0.8,0.1\n2,0.3,0.3,0.4\n")
    with pytest.raises(InputError, match="try --name probs=a,b,c"):
        hs.read(path)
    assert hs.read(path, names={"probs": "a,b,c"}).correct.all()


def test_telling_columns_that_play_no_part_are_named(table: Callable[..., Path]) -> None:
    path = table("confidence,correct,freq,prob_other,age\n0.9,1,4,0.1,40\n0.8,0,2,0.1,50\n")
    receipt = hs.read(path).receipt
    assert receipt is not None
    assert receipt.unused == {
        "freq": "--name count=freq",
        "prob_other": "--name confidence=prob_other",
    }


@pytest.fixture
def members(tmp_path: Path) -> list[Path]:
    """Two models on the same images."""
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 3, 50)
    paths: list[Path] = []
    for name in ("a", "b"):
        logits = 2 * np.eye(3)[labels] + rng.normal(size=(50, 3))
        path = tmp_path / f"{name}.npz"
        np.savez(path, logits=logits, labels=labels)
        paths.append(path)
    return paths


def test_two_models_are_not_one_data_set(members: list[Path], run: Callable[..., Any]) -> None:
    code, out, err = run("evaluate", *map(str, members))
    assert (code, out, err.count("\n")) == (2, "", 1)
    for way in ("howsure compare a.npz b.npz", "--ensemble", "--parts"):
        assert way in err
    code, out, _ = run("evaluate", *map(str, members), "--parts", "--json")
    assert (code, json.loads(out)["n"]) == (0, 100)
    code, out, err = run("evaluate", *map(str, members), "--ensemble", "--json")
    report = json.loads(out)
    assert (code, report["n"], report["samples"]) == (0, 50, 2)
    assert "average of 2 files (a.npz, b.npz)" in err


def test_two_models_that_are_streamed_are_not_one_data_set(
    members: list[Path], run: Callable[..., Any]
) -> None:
    code, out, err = run("evaluate", *map(str, members), "--stream")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "begin with the same 50 rows (identical labels)" in err
    code, out, _ = run("evaluate", *map(str, members), "--stream", "--parts", "--json")
    assert (code, json.loads(out)["n"]) == (0, 100)


def test_an_ensemble_is_the_mean_of_its_members(members: list[Path]) -> None:
    both = hs.read(members, options=ReadOptions(several="ensemble"))
    apart = [hs.read(path) for path in members]
    np.testing.assert_allclose(both.probs, (apart[0].probs + apart[1].probs) / 2)
    assert hs.scores.mutual_information(both).min() < 0


def test_members_must_answer_the_same_rows(members: list[Path], tmp_path: Path) -> None:
    np.savez(tmp_path / "c.npz", logits=np.zeros((50, 3)), labels=np.zeros(50, dtype=int))
    with pytest.raises(InputError, match="differ in their labels"):
        hs.read([members[0], tmp_path / "c.npz"], options=ReadOptions(several="ensemble"))


def test_identical_ids_that_are_no_row_numbers_tell_models(table: Callable[..., Path]) -> None:
    first = table("id,confidence,correct\nq7,0.9,1\nq3,0.8,0\n", "a.csv")
    second = table("id,confidence,correct\nq7,0.7,1\nq3,0.6,1\n", "b.csv")
    with pytest.raises(InputError, match="same 2 rows \\(identical ids\\)"):
        hs.read([first, second])


@pytest.mark.parametrize("words", [["a", "b"], ["an answer " * 40, "another " * 40]])
def test_texts_as_python_objects_are_evaluated(words: list[str]) -> None:
    said = np.array(words * 20, dtype=object)
    truth = np.array([words[0]] * 40, dtype=object)
    preds = hs.Predictions.from_confidence(np.linspace(0.3, 0.9, 40), prediction=said, labels=truth)
    assert hs.evaluate(preds).data["n"] == 40
    assert hs.compare({"a": preds, "b": preds}).data["n"] == 40
    assert len(hs.monitor(preds, preds).data["months"]) == 1


ROUNDED = "prob_0,prob_1,prob_2,label\n0.33,0.33,0.33,0\n0.5,0.3,0.2,1\n0.62,0.2,0.19,2\n"


def test_rounded_rows_are_read_as_printed(table: Callable[..., Path]) -> None:
    preds = hs.read(table(ROUNDED))
    assert preds.confidence.tolist() == [0.33, 0.5, 0.62]  # scores as printed
    # Losses of the divided row.
    p = np.array([0.33 / 0.99, 0.3, 0.19 / 1.01])
    np.testing.assert_allclose(hs.losses.nll(preds), -np.log(p), rtol=1e-12)
    divided = hs.Predictions.from_probs(preds.values, preds.labels, renormalise=True)
    np.testing.assert_allclose(hs.losses.brier(preds), hs.losses.brier(divided), rtol=1e-12)
    assert hs.classwise_ece(preds) == pytest.approx(hs.classwise_ece(divided), rel=1e-12)
    assert "rounding of their digits" in str(preds.receipt)


def test_rows_that_miss_1_by_more_than_their_digits_are_refused(
    table: Callable[..., Path],
) -> None:
    for text in (
        "prob_0,prob_1,prob_2,label\n0.333,0.333,0.32,0\n",  # three digits allow 0.0015
        "prob_0,prob_1,label\n0.9,0.2,0\n",
        "prob_0,prob_1,prob_2,label\n3.3e-1,0.33,0.33,0\n",
    ):
        with pytest.raises(InputError, match="sums to"):
            hs.read(table(text))


def test_a_rounded_row_does_not_depend_on_those_it_is_read_with(
    table: Callable[..., Path], run: Callable[..., Any]
) -> None:
    path = str(table(ROUNDED * 1 + "0.4,0.3,0.3,0\n" * 30))
    loaded = json.loads(run("evaluate", path, "--json")[1])["metrics"]
    streamed = json.loads(run("evaluate", path, "--stream", "--json")[1])["metrics"]
    for name in ("nll", "brier", "aurc"):
        assert loaded[name]["value"] == pytest.approx(streamed[name]["value"], rel=1e-12)


def test_equal_weights_weigh_nothing() -> None:
    rng = np.random.default_rng(0)
    sure = rng.random(200)
    right = rng.random(200) < sure
    plain = hs.Predictions.from_confidence(sure, right)
    equal = hs.Predictions.from_confidence(sure, right, weight=np.full(200, 2.5))
    one, two = hs.evaluate(plain).data, hs.evaluate(equal).data
    assert one["verdict"] == two["verdict"]
    assert one["metrics"] == two["metrics"]
    rule = lambda t: guaranteed_threshold(t, risk=0.4, delta=0.1)
    assert Policy.fit(plain, rule).threshold == Policy.fit(equal, rule).threshold
    unequal = hs.Predictions.from_confidence(sure, right, weight=1 + sure)
    with pytest.raises(hs.InputError, match="weights are refused"):
        Policy.fit(unequal, rule)
