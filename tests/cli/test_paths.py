"""No command writes over what it reads, or two results into one file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
import pytest

from howsure.cli.input_output import InputPath, OutputPath, PathCommand
from howsure.cli.main import COMMANDS
from howsure.cli.main import howsure as group

REQUIRE = ["--require", "accuracy>=0"]
COLLISIONS = {
    "threshold": ["threshold", "c.csv", "--risk", "0.3", "-o", "c.csv"],
    "threshold_on": ["threshold", "c.csv", "--on", "d.csv", "--risk", "0.3", "-o", "./d.csv"],
    "threshold_costs": ["threshold", "c.csv", "--costs", "d.csv", "-o", "d.csv"],
    "three_outputs": ["threshold", "c.csv", "--risk", "0.3", "-o", "s", "--drift", "s", "--guarantee", "s"],
    "calibrate": ["calibrate", "--fit", "c.csv", "--on", "d.csv", "-o", "c.csv"],
    "calibrate_html": ["calibrate", "--fit", "c.csv", "--on", "d.csv", "-o", "x", "--html", "x"],
    "cascade": ["cascade", "c.csv", "d.csv", "--costs", "1,5", "--person", "9", "--error", "50", "-o", "d.csv"],
    "check": ["check", "c.csv", *REQUIRE, "--junit", "c.csv"],
    "check_against": ["check", "c.csv", *REQUIRE, "--against", "d.csv", "--junit", "d.csv"],
    "check_link": ["check", "c.csv", *REQUIRE, "--junit", "link.csv"],
    "check_hard_link": ["check", "link.csv", *REQUIRE, "--junit", "hard.csv"],
    "check_folder": ["check", "c.csv", *REQUIRE, "--junit", "folder/../c.csv"],
    "check_pattern": ["check", "[cd].csv", *REQUIRE, "--junit", "d.csv"],
    "evaluate": ["evaluate", "c.csv", "-o", "r.json", "-o", "r.json"],
    "evaluate_html": ["evaluate", "c.csv", "-o", "r.html", "--html", "r.html"],
    "compare": ["compare", "c.csv", "d.csv", "--html", "d.csv"],
    "compare_shift": ["compare", "c.csv", "d.csv", "--shift", "c=e.csv", "--html", "e.csv"],
    "monitor": ["monitor", "c.csv", "d.csv", "--html", "c.csv"],
    "decide": ["decide", "p.json", "c.csv", "-o", "c.csv"],
    "decide_state": ["decide", "p.json", "c.csv", "--drift", "m.json", "--guarantee", "m.json"],
    "decide_policy": ["decide", "p.json", "c.csv", "-o", "p.json"],
    "decide_labels": ["decide", "p.json", "c.csv", "--drift", "m.json", "--labels", "m.json"],
}  # fmt: skip


@pytest.fixture
def collisions(files: Path) -> Path:
    rng = np.random.default_rng(3)
    for name in ("c.csv", "d.csv", "e.csv"):
        confidence = rng.uniform(0.5, 1, 200)
        rows = [f"{c:.3f},{int(rng.uniform() < c)}" for c in confidence]
        (files / name).write_text("confidence,correct\n" + "\n".join(rows) + "\n")
    (files / "link.csv").symlink_to("c.csv")
    os.link(files / "c.csv", files / "hard.csv")
    (files / "folder").mkdir()
    for name in ("p.json", "m.json"):
        (files / name).write_text("{}")
    return files


@pytest.mark.parametrize("name", COLLISIONS)
def test_one_file_for_two_things_is_refused(name: str, howsure: Callable, collisions: Path) -> None:
    before = {p.name: p.read_bytes() for p in collisions.iterdir() if p.is_file()}
    ran = howsure(*COLLISIONS[name])
    assert (ran.code, ran.out) == (2, "")
    assert "are one file; what is written needs a file of its own." in ran.err
    assert ran.err.count("\n") == 1
    assert {p.name: p.read_bytes() for p in collisions.iterdir() if p.is_file()} == before


def test_the_sentence(howsure: Callable, collisions: Path) -> None:
    ran = howsure(*COLLISIONS["threshold"])
    assert ran.err == (
        "howsure: --out c.csv and the input c.csv are one file; "
        "what is written needs a file of its own.\n"
    )


def test_one_input_twice_is_no_collision(howsure: Callable, collisions: Path) -> None:
    ran = howsure("threshold", "c.csv", "--on", "c.csv", "--risk", "0.3", "-o", "p.json")
    assert ran.code == 0
    assert ran.err.count("one file") == 0


def test_every_command_says_what_it_reads_and_writes() -> None:
    context = click.Context(group)
    for name in COMMANDS:
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group) or name == "completion":
            continue
        assert isinstance(command, PathCommand), name
        for parameter in command.params:
            if isinstance(parameter.type, click.Path):
                assert isinstance(parameter.type, (InputPath, OutputPath)), (name, parameter.name)
