"""howsure count, and what is made of its tables: the numbers of the rows, bounds that hold, and
sentences for tables that cannot be.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from howsure import InputError
from howsure.cli.main import main
from howsure.formats import read
from howsure.formats.count_tables import MAX_ANSWERS

N = 3000
# Made of counts and ranks alone; sums of claims are rounded in another order.
TO_THE_BIT = ("accuracy", "aurc", "e_aurc", "augrc", "auroc", "aupr_error", "coverage_at_risk_0.05")


def assert_same(a: object, b: object) -> None:
    """The same JSON, numbers up to rounding."""
    if isinstance(a, dict) and isinstance(b, dict):
        assert list(a) == list(b)
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, list) and isinstance(b, list):
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif isinstance(a, float):
        assert a == pytest.approx(b, rel=1e-9, abs=1e-12)
    else:
        assert a == b


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    out, err = capsys.readouterr()
    return stopped.value.code or 0, out, err


def report(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, object]:
    code, out, err = run(capsys, "evaluate", *words, "--json")
    assert code == 0, err
    return json.loads(out)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    score = rng.beta(4, 1, N)
    correct = rng.random(N) < score**1.5
    site = rng.choice(["north", "south"], N)
    lines = [
        f"{s!r},{int(c)},{w}"
        for s, c, w in zip(score.tolist(), correct, site.tolist(), strict=True)
    ]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["confidence,correct,site", *lines]) + "\n")
    return path


def write(folder: Path, *lines: str, head: str = "confidence,correct,count") -> Path:
    path = folder / "counts.csv"
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


def test_counts_give_the_numbers_of_the_rows(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "counts.csv"
    code, _, err = run(capsys, "count", rows, "-o", table, "--by", "site")
    assert (code, f"{N:,} answers" in err) == (0, True)
    by_rows, by_counts = report(capsys, rows, "--by", "site"), report(capsys, table, "--by", "site")
    assert [by_counts["metrics"][name] for name in TO_THE_BIT] == [
        by_rows["metrics"][name] for name in TO_THE_BIT
    ]
    for key in ("metrics", "slices", "guarantees", "verdict", "curves"):
        assert_same(by_counts[key], by_rows[key])
    assert list(by_counts["streamed"]["left_out"]) == ["views.label_errors"]


@pytest.mark.parametrize(
    "options", [("--grid", "300"), ("--min-count", "5"), ("--grid", "100", "--min-count", "7")]
)
def test_bounds_of_merged_cells_contain_the_exact_number(
    options: tuple[str, ...], rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "counts.csv"
    assert run(capsys, "count", rows, "-o", table, *options)[0] == 0
    exact, merged = report(capsys, rows)["metrics"], report(capsys, table)["metrics"]
    bounded = {name: entry["bounds"] for name, entry in merged.items() if entry.get("bounds")}
    assert {"aurc", "auroc", "coverage_at_risk_0.05"} <= set(bounded)
    if "--min-count" not in options:
        assert {"ece", "mce"} <= set(bounded)  # the usual bins are whole buckets
    for name, (low, high) in bounded.items():
        assert low <= exact[name]["value"], name
        assert high is None or exact[name]["value"] <= high, name  # null: no end


def test_no_small_count_leaves_the_house(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "counts.csv"
    assert run(capsys, "count", rows, "-o", table, "--min-count", 9, "--by", "site")[0] == 0
    cells = [line.split(",") for line in table.read_text().splitlines()[1:]]
    assert min(int(cell[2]) for cell in cells) >= 9
    assert sum(int(cell[2]) for cell in cells) == N
    code, _, err = run(capsys, "threshold", table, "--risk", "0.2")
    assert (code, "counts cells of several scores" in err) == (2, True)


def test_too_few_errors_cannot_be_shared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write(tmp_path, "0.9,1,40", "0.8,0,3")
    out = tmp_path / "out.csv"
    code, _, err = run(capsys, "count", table, "-o", out, "--min-count", 5)
    assert (code, out.exists()) == (2, False)
    assert "40 right and 3 wrong" in err


def test_files_of_several_owners_are_pooled_and_slices(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head, *lines = rows.read_text().splitlines()
    owners: list[Path] = []
    for i in range(12):
        part = tmp_path / f"part{i}.csv"
        part.write_text("\n".join([head, *lines[i::12]]) + "\n")
        owners.append(tmp_path / f"owner{i}.csv")
        assert run(capsys, "count", part, "-o", owners[-1])[0] == 0
    pooled = report(capsys, *owners)
    assert_same(pooled["metrics"], report(capsys, rows)["metrics"])
    assert sorted(row["value"] for row in pooled["slices"]["rows"]) == sorted(
        path.stem for path in owners
    )
    assert sum(row["n"] for row in pooled["slices"]["rows"]) == N
    # The sum of tables is a table again.
    assert run(capsys, "count", *owners, "-o", tmp_path / "sum.csv")[0] == 0
    assert run(capsys, "count", rows, "-o", tmp_path / "whole.csv")[0] == 0
    assert (tmp_path / "sum.csv").read_text() == (tmp_path / "whole.csv").read_text()


def test_a_cell_that_is_there_twice_is_added_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = write(tmp_path, "0.9,1,40", "0.9,1,2", "0.8,0,3")
    code, out, err = run(capsys, "evaluate", table, "--json")
    assert (code, json.loads(out)["n"]) == (0, 45)
    assert "1 cell is there twice, its count is added" in err


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["0.9,1,40", "0.8,0,-3"], "count"),
        (["0.9,1,40", "0.8,0,2.5"], "count"),
        (["0.9,1,nan", "0.8,0,2"], "count"),
        (["0.9,1,0", "0.8,0,0"], "0 everywhere"),
        (["1.9,1,4", "0.8,0,2"], "[0, 1]"),
        (["0.9,1,9000000000000000000", "0.8,0,9000000000000000000"], "count"),
        ([f"0.9,1,{MAX_ANSWERS}", "0.8,0,1"], "count sums up to 1e+13"),
        (["0.9,2,4", "0.8,0,2"], "correct"),
    ],
)
def test_tables_that_cannot_be(
    lines: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "evaluate", write(tmp_path, *lines))
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "line",
    ["0.9,1,4,0.5,0.8", "0.7,1,4,0.8,0.6", "0.7,1,4,nan,0.8", "0.7,1,4,-1,1", "0.7,1,4,0,2"],
    ids=["out", "turned", "nan", "below 0", "above 1"],
)
def test_scores_outside_their_cell(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = "confidence,correct,count,score_low,score_high"
    table = write(tmp_path, "0.3,0,9,0.2,0.4", line, head=head)
    code, _, err = run(capsys, "evaluate", table)
    assert (code, len(err.splitlines())) == (2, 1)


def test_a_cell_has_both_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = write(tmp_path, "0.7,1,4,0.6", head="confidence,correct,count,score_low")
    code, _, err = run(capsys, "evaluate", table)
    assert (code, "has score_low alone" in err) == (2, True)


def test_what_a_report_of_merged_cells_says_is_true(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, table = shared / "data" / "nn_resnet110_c10.npz", tmp_path / "counts.csv"
    options = ("--grid", 300, "--min-count", 5)
    assert run(capsys, "count", rows, "--split", "test", "-o", table, *options)[0] == 0
    preds = read(rows, split="test")
    found = {one["name"]: one for one in report(capsys, table)["findings"]}
    top = found["over_confident_above_0.9"]
    cut = float(top["text"].split("above ")[1].split(":")[0])
    above = preds.confidence > cut
    assert (top["evidence"]["n"], top["evidence"]["wrong"]) == (
        int(above.sum()), int((above & ~preds.correct).sum()),
    )  # fmt: skip
    # The highest cell begins below 0.999, so that nobody knows how many are above.
    assert "label_errors" not in found
    low, high = found["hidden_error"]["evidence"]["piece"]
    assert low == pytest.approx(round(low * 300) / 300, abs=1e-9)
    assert high == pytest.approx(round(high * 300) / 300, abs=1e-9)
    code, out, _ = run(capsys, "evaluate", table)
    assert (code, "howsure threshold" in out, "howsure calibrate" in out) == (0, False, False)


def test_a_billion_answers_have_a_threshold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"{i / 100},1,{i * 10**7}\n{i / 100},0,{(100 - i) * 10**6}" for i in range(1, 100)]
    table = write(tmp_path, *lines)
    policy = tmp_path / "policy.json"
    code, out, _ = run(capsys, "threshold", table, "--risk", "0.01", "--json", "-o", policy)
    plan = json.loads(out)
    assert (code, plan["feasible"]) == (0, True)
    assert plan["n"] > 10**10
    expected = plan["expected"]
    assert expected["coverage"]["value"] == plan["coverage"]
    assert expected["accuracy"]["low"] < plan["accuracy"] < expected["accuracy"]["high"]
    code, out, err = run(capsys, "threshold", table, "--risk", "0.01", "--digits", "2")
    assert (code, "--digits needs single rows" in err) == (2, True)
    rows = tmp_path / "new.csv"
    rows.write_text("confidence\n0.99\n0.02\n")
    code, out, _ = run(capsys, "decide", policy, rows)
    assert [json.loads(line)["decision"] for line in out.splitlines()] == ["accept", "defer"]


def test_counts_of_two_models_are_compared_without_pairs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    head = "confidence,correct,count\n"
    good.write_text(head + "0.9,1,900000\n0.4,0,100000\n")
    bad.write_text(head + "0.4,1,600000\n0.9,0,400000\n")
    code, out, _ = run(capsys, "compare", good, bad, "--json")
    data = json.loads(out)
    assert (code, data["models"][0]["name"], data["models"][1]["behind"]["clear"]) == (
        0,
        "good",
        True,
    )
    assert "same sample" in data["unpaired"]
    code, out, _ = run(capsys, "check", bad, "--against", good, "--json")
    assert (code, json.loads(out)["passed"]) == (1, False)
    bad.write_text(head + "0.4,1,6\n0.9,0,4\n")
    code, _, err = run(capsys, "compare", good, bad)
    assert (code, "not the same samples" in err) == (2, True)


def test_groups_are_lost_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("confidence,correct,group\n0.9,1,a\n0.8,0,a\n0.7,1,b\n")
    code, _, err = run(capsys, "count", rows, "-o", tmp_path / "counts.csv")
    assert (code, "counts know no groups" in err) == (0, True)


def test_a_mean_is_never_taken_for_the_score_of_an_answer(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "counts.csv"
    assert run(capsys, "count", rows, "-o", table, "--grid", 100)[0] == 0
    calls = [
        ("monitor", table, rows), ("monitor", rows, table),
        ("calibrate", "--fit", table, "--on", rows), ("calibrate", "--fit", rows, "--on", table),
        ("threshold", table, "--risk", 0.2), ("evaluate", table, "--score", "max_prob"),
    ]  # fmt: skip
    for words in calls:
        code, out, err = run(capsys, *words)
        assert (code, out, len(err.splitlines())) == (2, "", 1), words
        assert "counts cells of several scores" in err
    with pytest.raises(InputError, match="cells of several scores"):
        read(table)
    assert "stops" not in run(capsys, "doctor", table)[1]
    policy = tmp_path / "policy.json"
    assert run(capsys, "threshold", rows, "--accuracy", 0.5, "-o", policy)[0] == 0
    code, out, err = run(capsys, "decide", policy, table)
    assert (code, out, "counts cells of several scores" in err) == (2, "", True)


@pytest.fixture
def graded(tmp_path: Path) -> Path:
    rng = np.random.default_rng(2)
    score = np.round(rng.beta(4, 1, N), 3)
    loss = np.round(np.clip(1 - score + rng.normal(0, 0.2, N), 0, 1), 2)
    loss[:1200] = loss[:1200] > 0.3  # a part of right and wrong alone
    lines = [f"{s!r},{x!r}" for s, x in zip(score.tolist(), loss.tolist(), strict=True)]
    path = tmp_path / "graded.csv"
    path.write_text("\n".join(["confidence,loss", *lines]) + "\n")
    return path


def test_losses_are_counted_like_the_rows(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head, *lines = graded.read_text().splitlines()
    owners: list[Path] = []
    for i in range(3):
        part = tmp_path / f"part{i}.csv"
        part.write_text("\n".join([head, *lines[i * 1000 : (i + 1) * 1000]]) + "\n")
        owners.append(tmp_path / f"owner{i}.csv")
        assert run(capsys, "count", part, "-o", owners[-1])[0] == 0
    table = tmp_path / "counts.csv"
    assert run(capsys, "count", graded, "-o", table)[0] == 0
    assert table.read_text().startswith("confidence,loss,count\n")
    by_rows = report(capsys, graded)
    assert_same(report(capsys, table), by_rows)
    assert_same(report(capsys, *owners), by_rows)
    assert run(capsys, "count", *owners, "-o", tmp_path / "sum.csv")[0] == 0
    assert (tmp_path / "sum.csv").read_text() == table.read_text()
    plans = [run(capsys, "threshold", f, "--risk", 0.2, "--json")[1] for f in (graded, table)]
    assert_same(*map(json.loads, plans))
    for option in (("--grid", 100), ("--min-count", 5)):
        code, _, err = run(capsys, "count", graded, "-o", tmp_path / "x.csv", *option)
        assert (code, "these answers have a loss" in err) == (2, True)
    for words in (("compare", table, owners[2]), ("check", table, "--require", "ece<=0.1")):
        code, _, err = run(capsys, *words)
        assert (code, "counts graded answers" in err) == (2, True)


def test_a_billion_losses_are_not_repeated(
    graded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, large = tmp_path / "counts.csv", tmp_path / "large.csv"
    assert run(capsys, "count", graded, "-o", table)[0] == 0
    head, *lines = table.read_text().splitlines()
    large.write_text("\n".join([head, *(line + "000000" for line in lines)]) + "\n")
    few, many = report(capsys, table)["metrics"], report(capsys, large)["metrics"]
    for name in ("accuracy", "ece", "signed_calibration_error", "correctness_brier"):
        assert many[name]["value"] == pytest.approx(few[name]["value"], abs=1e-12)
    assert many["accuracy"]["high"] - many["accuracy"]["low"] < 1e-4
    assert "single ones" in many["correctness_brier"]["why"]
    code, out, _ = run(capsys, "threshold", large, "--risk", "0.2", "--json")
    assert (code, json.loads(out)["n"]) == (0, N * 10**6)


def test_counts_are_monitored_like_the_rows(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head, *lines = rows.read_text().splitlines()
    table, many = tmp_path / "counts.csv", tmp_path / "many.csv"
    many.write_text("\n".join([head, *(lines[:1000] * 150)]) + "\n")
    assert run(capsys, "count", many, "-o", table)[0] == 0
    policy = tmp_path / "policy.json"
    assert run(capsys, "threshold", rows, "--accuracy", 0.85, "-o", policy)[0] == 0
    found: list[dict[str, object]] = []
    for past, new in ((many, rows), (table, rows), (table, table), (many, many)):
        code, out, err = run(capsys, "monitor", past, new, "--policy", policy, "--json")
        assert code == 0, err
        found.append(json.loads(out))
    for by_rows, by_counts in ((found[0], found[1]), (found[3], found[2])):
        assert_same(by_counts["reference"], by_rows["reference"])
        month, same = by_rows["months"][0], by_counts["months"][0]
        for key in ("n", "drift", "bars"):
            assert_same(same[key], month[key])
        # Only the folds are dealt in another way.
        ours, theirs = same["estimate"], month["estimate"]
        for key in ("accuracy", "risk"):
            for end in ("value", "low", "high"):
                assert ours[key][end] == pytest.approx(theirs[key][end], abs=1e-3)
        assert ours["coverage"] == pytest.approx(theirs["coverage"], abs=1e-12)


def test_a_billion_answers_are_monitored_and_not_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"{i / 100},1,{i * 10**7}\n{i / 100},0,{(100 - i) * 10**7}" for i in range(1, 100)]
    table = write(tmp_path, *lines)
    code, out, err = run(capsys, "monitor", table, table, "--json")
    assert code == 0, err
    data = json.loads(out)
    assert data["reference"]["n"] == data["months"][0]["n"] == 99 * 10**9
    assert data["months"][0]["estimate"]["accuracy"]["value"] == pytest.approx(0.5, abs=1e-4)
    code, _, err = run(capsys, "calibrate", "--fit", table, "--on", table)
    assert (code, "calibrate takes answers one by one" in err) == (2, True)
