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
    assert "pip install" in steps()["Install"][1]


@pytest.mark.parametrize(("limit", "code"), [("0.7", 0), ("0.99", 1)])
def test_report_and_check(limit: str, code: int, runner: dict[str, str], tmp_path: Path):
    rng = np.random.default_rng(0)
    s = rng.beta(5, 1.2, 1000)
    hs.write(hs.Predictions.from_confidence(s, rng.random(1000) < s), tmp_path / "test.csv")
    inputs = {"files": "test.csv", "limits": f"--min-accuracy {limit}", "page": "howsure.html"}
    report = run("Report", inputs, runner, tmp_path)
    assert report.returncode == 0, report.stderr
    assert (tmp_path / "output").read_text() == "page=howsure.html\n"
    assert "<html" in (tmp_path / "howsure.html").read_text()
    check = run("Check", inputs, runner, tmp_path)
    assert check.returncode == code, check.stderr
    summary = (tmp_path / "summary.md").read_text()
    assert "<summary>Report</summary>" in summary
    assert "accuracy" in summary.partition("</details>")[2]


def test_a_file_that_is_not_there_is_a_mistake(runner: dict[str, str], tmp_path: Path):
    inputs = {"files": "none.csv; touch broken", "limits": "--min-accuracy 0.5", "page": "p.html"}
    assert run("Check", inputs, runner, tmp_path).returncode == 2
    assert not (tmp_path / "broken").exists()
