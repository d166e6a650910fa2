"""Every command: what it prints, what it writes, how it fails."""

from __future__ import annotations

import html
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import howsure as hs
from howsure.cli.main import COMMANDS


def test_help(howsure: Callable, snapshot: Callable) -> None:
    ran = howsure("--help")
    assert ran.code == 0
    snapshot(ran.out)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of(command: str, howsure: Callable, snapshot: Callable) -> None:
    ran = howsure(command, "--help")
    assert ran.code == 0
    assert "Example" in ran.out, "every --help teaches with an example"
    snapshot(ran.out)


def test_unknown_command_suggests(howsure: Callable) -> None:
    ran = howsure("evalute")
    assert ran.code == 2
    assert "Did you mean 'evaluate'?" in ran.err


def test_evaluate(howsure: Callable, snapshot: Callable, files: Path) -> None:
    ran = howsure("evaluate", "test.npz")
    assert ran.code == 0
    assert ran.err == (
        "howsure: 400 answers: logits of 6 classes = 'logits', "
        "right = most probable class against 'labels'\n"
    )
    snapshot(ran.out)


def test_evaluate_binary(howsure: Callable, snapshot: Callable, files: Path) -> None:
    ran = howsure("evaluate", "binary.npz")
    assert ran.code == 0
    snapshot(ran.out)


def test_evaluate_json_is_strict_and_complete(howsure: Callable, files: Path) -> None:
    ran = howsure("evaluate", "test.npz", "--json")
    data = json.loads(ran.out, parse_constant=lambda name: pytest.fail(f"{name} in the JSON"))
    assert data["n"] == 400
    assert data["provenance"]["command"] == "howsure evaluate test.npz --json"
    for name, entry in data["metrics"].items():
        assert entry["value"] is not None or entry["why"], name
        assert entry.get("low") is not None or entry["why"], (
            f"{name} has neither interval nor reason"
        )


def test_evaluate_several_files_are_one_data_set(howsure: Callable, files: Path) -> None:
    whole = np.load("test.npz")
    for name, rows in (("a", slice(0, 150)), ("b", slice(150, None))):
        np.savez(f"{name}.npz", logits=whole["logits"][rows], labels=whole["labels"][rows])
    one, two = (
        json.loads(howsure("evaluate", *args, "--json").out)
        for args in (["test.npz"], ["a.npz", "b.npz"])
    )
    assert one["metrics"] == two["metrics"]


def test_evaluate_asks_for_the_split(howsure: Callable, files: Path) -> None:
    ran = howsure("evaluate", "both.npz")
    assert (ran.code, ran.out) == (2, "")
    assert "--split" in ran.err
    assert "test" in ran.err
    assert howsure("evaluate", "both.npz", "--split", "test", "-q").code == 0


@pytest.mark.parametrize("suffix", [".json", ".md", ".txt"])
def test_evaluate_writes(suffix: str, howsure: Callable, files: Path) -> None:
    ran = howsure("evaluate", "test.npz", "-q", "-o", f"report{suffix}")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert Path(f"report{suffix}").stat().st_size > 500


def test_unknown_suffix_is_refused_before_anything_is_read(howsure: Callable) -> None:
    ran = howsure("evaluate", "not_there.npz", "-o", "report.pdf")
    assert ran.code == 2
    assert ".json" in ran.err


def test_missing_file(howsure: Callable) -> None:
    ran = howsure("evaluate", "not_there.npz")
    assert (ran.code, ran.out) == (2, "")
    assert "not_there.npz" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_unknown_score(howsure: Callable, files: Path) -> None:
    ran = howsure("evaluate", "test.npz", "--score", "entropie")
    assert ran.code == 2
    assert "Did you mean entropy?" in ran.err


def test_check_passes_and_fails(howsure: Callable, snapshot: Callable, files: Path) -> None:
    good = howsure(
        "check",
        "test.npz",
        "--require",
        "accuracy>=0.5",
        "--require",
        "coverage_at_risk(0.2) >= 0.3",
    )
    assert good.code == 0
    bad = howsure("check", "test.npz", "--require", "ece<=0.01", "--require", "aurc<=0.5")
    assert bad.code == 1
    snapshot(good.out + "---\n" + bad.out)


def test_check_compares_the_unfavourable_end(howsure: Callable, files: Path) -> None:
    entry = json.loads(howsure("evaluate", "test.npz", "--json").out)["metrics"]["accuracy"]
    between = (
        entry["low"] + entry["value"]
    ) / 2  # the value is better than this, the lower end is not
    assert howsure("check", "test.npz", "--require", f"accuracy>={between}").code == 1
    assert howsure("check", "test.npz", "--require", f"accuracy>={entry['low'] - 1e-9}").code == 0


def test_check_baseline(howsure: Callable, files: Path) -> None:
    howsure("evaluate", "test.npz", "-q", "-o", "old.json")
    assert howsure("check", "test.npz", "--baseline", "old.json").code == 0
    better = json.loads(Path("old.json").read_text())
    better["metrics"]["accuracy"].update(value=1.0, low=0.99, high=1.0)
    Path("better.json").write_text(json.dumps(better))
    ran = howsure("check", "test.npz", "--baseline", "better.json")
    assert ran.code == 1
    assert "accuracy not worse than the baseline" in ran.out
    assert "other side" in ran.out


def test_check_against_and_point(howsure: Callable, files: Path) -> None:
    ran = howsure("check", "test.npz", "--against", "test.npz")
    assert ran.code == 0
    assert "ece not worse than the other model" in ran.out
    assert howsure("check", "test.npz", "--require", "mce<=1").code == 1
    assert howsure("check", "test.npz", "--require", "mce<=1", "--point").code == 0


def test_check_junit_and_github(
    howsure: Callable, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    ran = howsure("check", "test.npz", "--require", "ece<=0.001", "--junit", "out.xml", "--github")
    assert ran.code == 1
    assert ran.out.startswith("::error title=howsure check::ece ≤ 0.001")
    suite = ElementTree.parse("out.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert "**FAIL**" in Path("summary.md").read_text(encoding="utf-8")


def test_check_without_limits_is_a_mistake(howsure: Callable, files: Path) -> None:
    ran = howsure("check", "test.npz")
    assert ran.code == 2
    assert "nothing to check" in ran.err


REFUSED_REQUIREMENTS = {
    "ece": "is not NAME<=NUMBER or NAME>=NUMBER",
    "ece=0.05": "is not NAME<=NUMBER or NAME>=NUMBER",
    "ece<=0.05 --point": "is not NAME<=NUMBER or NAME>=NUMBER",
    "ec<=0.05": "there is no number 'ec'. Did you mean ece?",
    "top-5-accuracy>=0.9": "is not NAME<=NUMBER or NAME>=NUMBER",
    "worth>=0.9": "Known: accuracy,",
    "ece<=low": "'low' is not a number",
    "ece<=nan": "a finite number is needed",
    "ece>=0.05": "ece is better where it is lower; write ece<=",
    "accuracy<0.9": "accuracy is better where it is higher; write accuracy>=",
    "ece(0.1)<=0.05": "ece takes no argument",
    "coverage_at_risk>=0.8": "coverage_at_risk needs a risk, as in 'coverage_at_risk(0.05)>=0.8'",
    "coverage_at_risk(low)>=0.8": "'low' is not a number",
    "risk_at_coverage(2)<=0.8": "a coverage between 0 and 1 is needed",
}


@pytest.mark.parametrize("text", REFUSED_REQUIREMENTS)
def test_check_refuses_what_is_no_requirement(text: str, howsure: Callable, files: Path) -> None:
    ran = howsure("check", "test.npz", "--require", text)
    assert (ran.code, ran.out) == (2, "")
    assert REFUSED_REQUIREMENTS[text] in ran.err
    assert len(ran.err.splitlines()) == 1


def test_check_says_where_the_old_options_have_gone(howsure: Callable, files: Path) -> None:
    ran = howsure("check", "test.npz", "--max-ece", "0.05")
    assert ran.code == 2
    assert "No such option: --max-ece" in ran.err
    assert "--require 'ece<=0.05'" in ran.err
    assert "--require" not in howsure("check", "test.npz", "--jsn").err


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_short_and_lists_reading_options_last(command: str, howsure: Callable) -> None:
    lines = howsure(command, "--help").out.splitlines()
    assert len(lines) <= 100
    before, _, after = "\n".join(lines).partition("\nReading the file:\n")
    assert "--renormalise" not in before
    if after:
        assert "\nOptions:\n" in before
        names = [line.split()[0] for line in after.splitlines() if line.startswith("  --")]
        assert names == [
            "--split",
            "--mc",
            "--renormalise",
            "--name",
            "--format",
            "--percent",
            "--no-answer",
            "--drop-outside",
            "--multilabel",
            "--sums-to-one",
            "--answers",
            "--ensemble",
            "--parts",
            "--where",
            "--question",
            "--tolerance",
            *(["--labels", "--join"] if "--join" in names else []),
        ]


def test_demo(howsure: Callable, snapshot: Callable) -> None:
    ran = howsure("demo")
    assert ran.code == 0
    assert "What to do next" in ran.out
    snapshot(ran.out)


def test_the_next_steps_of_the_demo_run_as_printed(howsure: Callable) -> None:
    steps = [line.strip() for line in howsure("demo").out.splitlines()]
    commands = [step for step in steps if step.startswith("howsure ") and "YOUR_FILE" not in step]
    assert len(commands) == 4
    for command in commands:
        assert howsure(*command.split()[1:]).code == 0
    assert sorted(path.name for path in Path.cwd().iterdir()) == [
        "calibrator.json",
        "policy.json",
        "report.html",
    ]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, howsure: Callable) -> None:
    ran = howsure("completion", shell)
    assert ran.code == 0
    assert "_HOWSURE_COMPLETE" in ran.out


def test_a_bug_of_ours_is_70_and_no_traceback(
    howsure: Callable, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("howsure.report.evaluation.evaluate", lambda *a, **k: 1 / 0)
    ran = howsure("evaluate", "test.npz")
    assert ran.code == 70
    assert "bug in howsure (ZeroDivisionError" in ran.err
    assert "Traceback" not in ran.err


def test_images_become_thumbnails(howsure: Callable, files: Path) -> None:
    np.save("images.npy", np.random.default_rng(0).integers(0, 255, (400, 12, 12), dtype=np.uint8))
    assert (
        howsure(
            "evaluate", "test.npz", "--images", "images.npy", "--html", "report.html", "-q"
        ).code
        == 0
    )
    assert "data:image/png;base64," in Path("report.html").read_text(encoding="utf-8")


def test_a_pattern_is_streamed_and_has_a_page(howsure: Callable) -> None:
    """It ended with exit 70, KeyError: 'sha256'."""
    for name in ("a", "b"):
        Path(f"{name}.csv").write_text(
            "confidence,correct\n" + "0.9,1\n0.8,0\n0.7,1\n" * 5, encoding="utf-8"
        )
    ran = howsure("evaluate", "[ab].csv", "--html", "o.html")
    assert ran.code == 0
    page = Path("o.html").read_text(encoding="utf-8")
    assert "a.csv" in page
    assert "b.csv" in page


@pytest.mark.parametrize("content", [b"", b"\x80\x04pickle", b"PK\x03\x04"])
def test_what_is_no_picture_is_refused(content: bytes, howsure: Callable, files: Path) -> None:
    Path("images.npy").write_bytes(content)
    ran = howsure("evaluate", "test.npz", "--images", "images.npy", "-q")
    assert (ran.code, ran.out) == (2, "")
    assert "images.npy" in ran.err


@pytest.mark.filterwarnings("always")
def test_a_warning_is_one_line(howsure: Callable) -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 3, (20, 200, 3))
    np.savez(
        "mc.npz",
        mc_logits=logits,
        logits=logits.mean(axis=0),
        labels=(logits.mean(axis=(0, 2)) > 0).astype(int),
    )
    ran = howsure(
        "calibrate", "--mc", "--method", "temperature", "--fit", "mc.npz", "--on", "mc.npz"
    )
    told = [line for line in ran.err.splitlines() if "predictions change at temperature" in line]
    assert ran.code == 0
    assert len(told) == 1
    assert told[0].startswith("howsure: ")
    assert "UserWarning" not in ran.err


def test_a_distance_to_the_boundary_is_taken_where_it_is_given(howsure: Callable) -> None:
    rng = np.random.default_rng(0)
    arrays = {}
    for split in ("val", "test"):
        labels = rng.integers(0, 3, 200)
        arrays[f"{split}_logits"] = rng.normal(size=(200, 3)) + 2 * np.eye(3)[labels]
        arrays[f"{split}_labels"] = labels
    np.savez("both.npz", **arrays)
    np.savez("far.npz", **arrays, test_boundary_distance=rng.random(200))
    assert "howsure.torch.boundary_distance(model" in howsure("calibrate", "both.npz").out
    methods = json.loads(howsure("calibrate", "far.npz", "--json").out)["methods"]
    assert list(methods)[-2:] == ["entropy", "boundary distance"]
    # Two files are one data set where both have it.
    for name, further in (("a", {"boundary_distance": np.ones(200)}), ("b", {})):
        np.savez(
            f"{name}.npz",
            logits=arrays["test_logits"] + len(name),
            labels=rng.permutation(200) % 3,
            **further,
        )
    ran = howsure("calibrate", "--fit", "b.npz", "--on", "a.npz", "--on", "b.npz")
    assert ran.code == 2
    assert "b.npz has no boundary_distance, others do" in ran.err


@pytest.mark.parametrize("saved", [None, "own name.json"])
def test_what_to_do_after_calibration_runs_as_printed(saved: str | None, howsure: Callable) -> None:
    """The calibrator that the next commands name is there, or the first of them writes it."""
    rng = np.random.default_rng(0)
    arrays = {}
    for split in ("val", "test"):
        labels = rng.integers(0, 3, 400)
        arrays[f"{split}_logits"] = 3 * rng.normal(size=(400, 3)) + 5 * np.eye(3)[labels]
        arrays[f"{split}_labels"] = labels
    np.savez("both.npz", **arrays)
    written = () if saved is None else ("-o", saved)
    assert howsure("calibrate", "both.npz", "--html", "after.html", "-q", *written).code == 0
    steps = re.findall(r"<code>(howsure [^<]*)</code>", Path("after.html").read_text())
    commands = [shlex.split(html.unescape(step)) for step in steps]
    assert [words[1] for words in commands] == ["calibrate", "threshold"][bool(saved) :]
    for words in commands:
        assert howsure(*words[1:]).code == 0, words


def test_calibrate_names_the_split_that_is_missing(howsure: Callable) -> None:
    parts = {
        f"{split}_{name}": a
        for split in ("val", "test")
        for name, a in (("logits", np.eye(3)), ("labels", [0, 1, 2]))
    }
    np.savez("both.npz", **parts)
    assert (
        "choose one with split= (--split)."
        in howsure("calibrate", "--fit", "both.npz", "--on", "both.npz").err
    )
    ran = howsure("calibrate", "--fit", "both.npz", "--split", "val", "--on", "both.npz")
    assert ran.code == 2
    assert "choose one with split= (--on-split)." in ran.err


def test_a_second_opinion_from_calibrate_to_decide(howsure: Callable, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 3000)
    parts = {"val": slice(1000), "test": slice(1000, 2000), "new": slice(2000, 3000)}
    own, other = (rng.normal(size=(3000, 3)) + 1.8 * np.eye(3)[y] for _ in range(2))
    for name, rows in parts.items():
        np.savez(tmp_path / f"{name}.npz", logits=own[rows], labels=y[rows])
        np.savez(tmp_path / f"other_{name}.npz", logits=other[rows], labels=y[rows])
    files = {path.stem: str(path) for path in tmp_path.glob("*.npz")}
    opinion, policy = str(tmp_path / "opinion.json"), str(tmp_path / "policy.json")
    fit = ("calibrate", "--fit", files["val"], "--on", files["test"])
    ran = howsure(*fit, "--with", files["other_val"], "--with", files["other_test"], "-o", opinion)
    assert ran.code == 0, ran.err
    assert "The second opinion" in ran.out
    assert "automated, fell from" in " ".join(ran.out.split())
    ran = howsure(*fit, "--with", files["other_val"])
    assert ran.code == 2
    assert "1 given with --with, 2 needed: one for --fit" in ran.err

    new, said = (hs.read(files[name]) for name in ("new", "other_new"))
    column = hs.calibrators.attach_opinion(new, said).attributes["second_opinion"]
    asked = tmp_path / "asked.npz"
    np.savez(asked, logits=new.values, labels=new.labels, second_opinion=column)
    choose = ("--risk", "0.1", "--calibrator", opinion, "-o", policy)
    ran = howsure("threshold", str(asked), *choose)
    assert ran.code == 0, ran.err
    ran = howsure("decide", policy, str(asked))
    assert ran.code == 0, ran.err
    assert '"decision":"accept"' in ran.out
    ran = howsure("decide", policy, files["new"])
    assert ran.code == 2
    assert "new.npz has no 'second_opinion'" in ran.err
    assert "It must hold the other model's probability of each answer." in ran.err
