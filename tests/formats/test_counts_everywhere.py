"""A column `count` is the same as repeated rows, in every command."""

import json
from pathlib import Path

import numpy as np
import pytest

from howsure.cli.main import main

COMMANDS = {
    "evaluate": ("evaluate", "{}", "--json"),
    "threshold": ("threshold", "{}", "--risk", "0.2", "--json"),
    "check": ("check", "{}", "--require", "aurc<=0.9", "--json"),
    "compare": ("compare", "{}", "other_{}", "--json"),
    "calibrate": ("calibrate", "--fit", "{}", "--on", "other_{}", "--method", "platt", "--json"),
    "monitor": ("monitor", "{}", "other_{}", "--json"),
}


def write_both(folder: Path, start: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sure = rng.random(150).round(3)
    right = (rng.random(150) < sure).astype(int)
    count = rng.integers(1, 5, 150)
    counted = [f"{s},{r},{n}" for s, r, n in zip(sure, right, count, strict=True)]
    repeated = [f"{sure[i]},{right[i]}" for i in np.repeat(np.arange(150), count)]
    (folder / f"{start}counted.csv").write_text("\n".join(["confidence,correct,count", *counted]))
    (folder / f"{start}repeated.csv").write_text("\n".join(["confidence,correct", *repeated]))


# Counts know no single rows, and not which answers of two models are to the same sample.
OF_SINGLE_ROWS = ("streamed", "label_errors", "unpaired", "pairs", "behind", "ties", "same_answers")
OF_SINGLE_ROWS += ("comparable", "auroc", "aupr_error", "aupr_success", "e_aurc")


def strip(value: object, name: str, left_out: tuple[str, ...]) -> object:
    """Without what tells the files apart."""
    if isinstance(value, dict):
        return {
            key.replace(name, "FILE"): strip(one, name, left_out)
            for key, one in value.items()
            if key != "provenance" and key not in left_out
        }
    if isinstance(value, list):
        return [strip(one, name, left_out) for one in value]
    if isinstance(value, float):
        return float(f"{value:.9g}")  # sums of claims are rounded in another order
    return value.replace(name, "FILE") if isinstance(value, str) else value


@pytest.mark.parametrize("command", COMMANDS)
def test_count_is_repetition(
    command: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_both(tmp_path, "", 1)
    write_both(tmp_path, "other_", 1 if command == "compare" else 2)
    left_out = OF_SINGLE_ROWS[:2] if command == "evaluate" else ()
    if command == "compare":
        left_out = OF_SINGLE_ROWS
    results: list[object] = []
    for name in ("counted", "repeated"):
        with pytest.raises(SystemExit) as stopped:
            main([word.format(f"{name}.csv") for word in COMMANDS[command]])
        out, err = capsys.readouterr()
        assert stopped.value.code in (0, None), err
        results.append(strip(json.loads(out), name, left_out))
    assert results[0] == results[1]


def test_a_policy_of_counted_rows_decides_like_that_of_repeated_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_both(tmp_path, "", 1)
    made: list[list[object]] = []
    for name in ("counted", "repeated"):
        for call in (
            ["threshold", f"{name}.csv", "--risk", "0.2", "-o", f"{name}.json", "-q"],
            ["decide", f"{name}.json", "counted.csv"],
        ):
            with pytest.raises(SystemExit) as stopped:
                main(call)
            assert stopped.value.code in (0, None)
        decisions = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        made.append([(one["line"], one["decision"], one["score"]) for one in decisions])
    assert made[0] == made[1]
    assert len(made[0]) == 150  # a row is one case to decide, however often it was seen
