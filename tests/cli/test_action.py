"""action.yml: its steps run here as they would on GitHub, with the same shell and environment."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import howsure as hs

ACTION = (Path(__file__).parents[2] / "action.yml").read_text()


def steps() -> dict[str, tuple[dict[str, str], str]]:
    """Name → environment and script of each step that runs a script."""
    found: dict[str, tuple[dict[str, str], str]] = {}
    for step in re.split(r"^    - name: ", ACTION, flags=re.MULTILINE)[1:]:
        name, _, body = step.partition("\n")
        env = dict(
            re.findall(
                r"^        (HOWSURE_\w+): \$\{\{ inputs\.(\w+) \}\}$", body, flags=re.MULTILINE
            )
        )
        script = re.search(r"^      run: \|\n((?:        .*\n?)+)", body, flags=re.MULTILINE)
        if script is not None:
            found[name] = env, re.sub(r"^        ", "", script[1], flags=re.MULTILINE)
    return found


@pytest.fixture
def runner(tmp_path: Path) -> dict[str, str]:
    """What a runner sets; `howsure` is the one under test."""
    tool = tmp_path / "bin" / "howsure"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m howsure "$@"\n')
    tool.chmod(0o755)
    names = {"GITHUB_STEP_SUMMARY": "summary.md", "GITHUB_OUTPUT": "output", "RUNNER_TEMP": "."}
    paths = {name: str(tmp_path / path) for name, path in names.items()}
    return {**os.environ, **paths, "PATH": f"{tool.parent}:{os.environ['PATH']}"}


def run(
    name: str, inputs: dict[str, str], runner: dict[str, str], folder: Path
) -> subprocess.CompletedProcess[str]:
    env, script = steps()[name]
    given = {variable: inputs[key] for variable, key in env.items()}
    return subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
                          env={**runner, **given}, cwd=folder, capture_output=True, text=True)  # fmt: skip


def test_the_steps_are_those_we_know():
    assert list(steps()) == ["Install", "Report", "Check"]


@pytest.mark.parametrize(
    ("version", "installed"),
    [("", "/checkout of howsure[files]"), ("howsure[files]==0.3.0", "howsure[files]==0.3.0")],
)
def test_install_takes_the_checkout_unless_a_version_is_given(
    version: str, installed: str, runner: dict[str, str], tmp_path: Path
):
    python = tmp_path / "bin" / "python"
    python.write_text('#!/bin/sh\nfor word in "$@"; do echo "$word"; done\n')
    python.chmod(0o755)
    environment = {**runner, "GITHUB_ACTION_PATH": "/checkout of howsure"}
    done = run("Install", {"version": version}, environment, tmp_path)
    assert done.stdout.splitlines() == ["-m", "pip", "install", "--quiet", installed]


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    s = rng.beta(5, 1.2, 1000)
    correct = rng.random(1000) < s
    for name, rows in (("first half.csv", slice(0, 500)), ("second.csv", slice(500, None))):
        hs.write(hs.Predictions.from_confidence(s[rows], correct[rows]), tmp_path / name)
    return tmp_path


@pytest.mark.parametrize(("limit", "code"), [("0.7", 0), ("0.99", 1)])
def test_report_and_check(limit: str, code: int, runner: dict[str, str], predictions: Path):
    inputs = {"files": "second.csv", "require": f"accuracy>={limit}", "page": "howsure.html"}
    report = run("Report", inputs, runner, predictions)
    assert report.returncode == 0, report.stderr
    assert (predictions / "output").read_text() == "page=howsure.html\n"
    assert "<html" in (predictions / "howsure.html").read_text()
    check = run("Check", inputs, runner, predictions)
    assert check.returncode == code, check.stderr
    summary = (predictions / "summary.md").read_text()
    assert "<summary>Report</summary>" in summary
    assert "accuracy" in summary.partition("</details>")[2]


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_every_line_of_the_inputs_is_used(end: str, runner: dict[str, str], predictions: Path):
    """Only the first line was read: a limit in the second never failed."""
    lines = ["accuracy>=0.5", "", "  coverage_at_risk(0.3) >= 0.1", "ece <= 0.000001"]
    inputs = {
        "files": "first half.csv\n\n  second.csv" + end,
        "require": (end or "\n").join(lines) + end,
        "page": "p.html",
    }
    assert run("Report", inputs, runner, predictions).returncode == 0
    assert "1,000" in (predictions / "howsure.md").read_text()
    check = run("Check", inputs, runner, predictions)
    assert check.returncode == 1, check.stderr
    summary = (predictions / "summary.md").read_text().partition("</details>")[2]
    rows = [line.split("|")[1:3] for line in summary.splitlines() if line.startswith("|")][2:]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["pass", "accuracy ≥ 0.5"],
        ["pass", "coverage\\_at\\_risk\\_0.3 ≥ 0.1"],
        ["**FAIL**", "ece ≤ 1e-06"],
    ]


@pytest.mark.parametrize("require", ["", " \n", "accuracy", "accuracy>=0.5\n--point"])
def test_a_limit_that_is_none_is_a_mistake(require: str, runner: dict[str, str], predictions: Path):
    inputs = {"files": "second.csv", "require": require, "page": "p.html"}
    assert run("Check", inputs, runner, predictions).returncode == 2


def test_a_file_that_is_not_there_is_a_mistake(runner: dict[str, str], tmp_path: Path):
    inputs = {
        "files": "none.csv; touch broken",
        "require": "accuracy>=0.5 $(touch broken)",
        "page": "p.html",
    }
    assert run("Check", inputs, runner, tmp_path).returncode == 2
    inputs["require"] = "accuracy>=0.5"
    assert run("Check", inputs, runner, tmp_path).returncode == 2
    assert not (tmp_path / "broken").exists()
