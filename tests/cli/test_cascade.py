"""howsure cascade, and the join of models by ids that it rests on."""

import json
import sqlite3
from collections.abc import Callable
from math import inf
from pathlib import Path

import numpy as np
import pytest

import howsure as hs
from conftest import shared_or_skip
from howsure.policies.cascades import Cascade, join_stages


def write(folder: Path, name: str, rows: list[tuple[str, float, int]]) -> str:
    lines = ["id,confidence,correct", *(f"{i},{c},{r}" for i, c, r in rows)]
    (folder / name).write_text("\n".join(lines) + "\n")
    return str(folder / name)


def test_models_are_joined_by_ids(tmp_path: Path, howsure: Callable) -> None:
    small = write(
        tmp_path, "small.csv", [("a", 0.9, 1), ("b", 0.8, 1), ("c", 0.4, 0), ("d", 0.3, 0)]
    )
    large = write(
        tmp_path, "large.csv", [("d", 0.2, 0), ("c", 0.9, 1), ("b", 0.9, 1), ("a", 0.9, 1)]
    )
    args = ["cascade", small, large, "--costs", "1,5", "--person", "20", "--error", "100"]
    found = json.loads(howsure(*args, "--json").out)
    assert (found["thresholds"], found["expected"]["shares"], found["expected"]["cost"]) == (
        [0.8, 0.9],
        [0.5, 0.25, 0.25],
        8.5,
    )
    ran = howsure(*args, "--on", small, "--on", large, "-o", str(tmp_path / "c.json"))
    assert ran.code == 0
    assert "On new data: mean cost 8.5; 1 of the models' own answers are right" in ran.out
    assert hs.load(tmp_path / "c.json").thresholds == (0.8, 0.9)


def test_what_a_model_did_not_answer_goes_on() -> None:
    small = hs.Predictions.from_confidence([0.9, 0.8], [1, 1], ids=["a", "b"])
    large = hs.Predictions.from_confidence([0.7, 0.6, 0.5], [1, 1, 0], ids=["c", "b", "a"])
    stages = join_stages([small, large])
    assert [o.score.tolist() for o in stages] == [[0.9, 0.8, -inf], [0.5, 0.6, 0.7]]
    found = Cascade.fit(stages, costs=(1, 5), human_cost=50, error_cost=1000)
    assert found.thresholds == (0.8, 0.7)
    assert found.expected is not None
    assert found.expected.shares == pytest.approx((2 / 3, 1 / 3, 0))


def test_a_model_that_answers_nothing() -> None:
    nothing = hs.predictions.Outcomes(np.full(2, -inf), correct=[False, False])
    other = hs.predictions.Outcomes([0.9, 0.8], correct=[True, True])
    assert Cascade.fit([nothing, other], costs=(1, 1), human_cost=9).thresholds[0] == inf


def test_everything_goes_to_the_person(tmp_path: Path, howsure: Callable) -> None:
    path = write(tmp_path, "a.csv", [("a", 0.9, 0), ("b", 0.8, 0)])
    ran = howsure("cascade", path, path, "--costs", "1,1", "--person", "2", "--error", "100")
    assert ran.code == 1
    assert "never" in ran.out
    assert json.loads(
        howsure("cascade", path, "--costs", "1", "--person", "2", "--error", "100", "--json").out
    )["thresholds"] == [None]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--costs", "1"], "--costs has 1 numbers for 2 models"),
        (["--costs", "1,x"], "is not a list of numbers"),
        (["--costs", "1,2", "--on", "a.csv"], "--on is given 1 times for 2 models"),
    ],
)
def test_refusals(options: list[str], words: str, tmp_path: Path, howsure: Callable) -> None:
    path = write(tmp_path, "a.csv", [("a", 0.9, 1), ("b", 0.8, 0)])
    ran = howsure("cascade", path, path, "--person", "2", *options)
    assert ran.code == 2
    assert words in ran.err


def test_models_without_ids(tmp_path: Path) -> None:
    one, two = (hs.Predictions.from_confidence(c, [1] * len(c)) for c in ([0.9], [0.9, 0.8]))
    with pytest.raises(hs.InputError, match="cannot be joined; give each of them ids"):
        join_stages([one, two])
    assert len(join_stages([two, two])) == 2


def test_two_harness_logs(howsure: Callable) -> None:
    """The small model first on 1,267 real questions costs less than either alone, and less than a
    person.
    """
    paths = [
        str(
            shared_or_skip(
                f"data2/llm_lmeval_winogrande_old/winogrande_llama2-{size}_write_out_info.json"
            )
        )
        for size in ("7b", "13b")
    ]
    found = json.loads(
        howsure(
            "cascade", *paths, "--costs", "1,2", "--person", "20", "--error", "50", "--json"
        ).out
    )
    accuracies = (0.7379636937647988, 0.7616416732438832)
    alone = [cost + 50 * (1 - accuracy) for cost, accuracy in zip((1, 2), accuracies, strict=True)]
    assert found["expected"]["cost"] < min(*alone, 20)
    assert sum(found["expected"]["shares"]) == pytest.approx(1)


def test_what_it_wrote_is_applied(tmp_path: Path, howsure: Callable) -> None:
    rng = np.random.default_rng(0)
    files: dict[str, str] = {}
    for model, power in (("small", 0.4), ("large", 0.1)):
        for part in ("val", "test"):
            (tmp_path / part).mkdir(exist_ok=True)
            c = rng.random(500).round(4)
            right = rng.random(500) < c**power
            rows = [(f"{part}{i}", c[i], int(right[i])) for i in range(500)]
            files[part + model] = write(tmp_path / part, f"{model}.csv", rows)
    args = [files["valsmall"], files["vallarge"], "--costs", "1,5", "--person", "30"]
    args += ["--on", files["testsmall"], "--on", files["testlarge"], "-o", "cascade.json"]
    ran = howsure("cascade", *args, "--error", "200")
    assert "% are wrong (95% confidence)" in " ".join(ran.out.split())
    cascade = hs.load(tmp_path / "cascade.json")
    assert cascade.names == ("small", "large")
    assert cascade.expected.bound is None
    # The bound of the whole, counted by hand.
    models = [hs.read(files[f"test{name}"]) for name in cascade.names]
    first = models[0].confidence >= cascade.thresholds[0]
    answered = first | (models[1].confidence >= cascade.thresholds[1])
    right = np.where(first, models[0].correct, models[1].correct)
    wrong = int((answered & ~right).sum())
    assert cascade.judged.bound == hs.bounds.clopper_pearson(wrong, int(answered.sum()), 0.05)
    # One row at a time: who decides, in a file, in a program and as SQL.
    low = min(cascade.thresholds) / 2
    rows = [
        ("small", 1.0, None),
        ("small", low, "large"),
        ("large", 1.0, None),
        ("large", low, "a person"),
        ("huge", 1.0, "a person"),
    ]
    lines = [json.dumps({"model": name, "confidence": c}) for name, c, _ in rows]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines) + "\n")
    made = [json.loads(x) for x in howsure("decide", "cascade.json", "rows.jsonl").out.splitlines()]
    assert [row.get("next") for row in made] == [follower for *_, follower in rows]
    policy = cascade.to_policy()
    for row, (name, c, follower) in zip(made, rows, strict=True):
        one = policy.decide_one(confidence=c, segment=name)
        assert (one.next, one.accept) == (follower, row["decision"] == "accept")
    assert made[4]["known"] is False
    sql = ["--to", "sql", "--input", "confidence", "-o", "cascade.sql"]
    assert howsure("export", "cascade.json", *sql).code == 0
    text = (tmp_path / "cascade.sql").read_text()
    assert "of the whole cascade" in text
    with sqlite3.connect(":memory:") as base:
        for row, (name, c, _) in zip(made, rows, strict=True):
            query = f"SELECT\n{text}\nFROM (SELECT ? AS model, ? AS confidence)"
            said = base.execute(query, (name, c)).fetchone()[0]
            assert said.partition(":")[0] == row["decision"]
    refused = howsure("decide", "cascade.json", files["testsmall"])
    assert refused.code == 2
    assert "has no 'model'" in refused.err


def test_samples_that_belong_together_bound_nothing() -> None:
    models = [
        hs.Predictions.from_confidence([0.9, 0.8], [1, 1], ids=["a", "b"], group=["x", "x"])
        for _ in range(2)
    ]
    found = Cascade((0.5, 0.5), (1, 5), 20).evaluate(join_stages(models))
    assert found.bound is None
    assert found.n == 2
    assert Cascade((0.5, 0.5), (1, 5), 20, judged=found).to_policy().guarantee is None


def test_names_that_are_not_different_are_refused() -> None:
    with pytest.raises(hs.InputError, match="different names"):
        Cascade((0.5, 0.5), (1, 5), 20, names=("a", "a"))
