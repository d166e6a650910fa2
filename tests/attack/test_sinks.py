"""Whatever a file calls its classes, ids, columns or itself, nothing of it acts where it is shown."""

import csv
import io
import json
import re
import xml.dom.minidom
from itertools import islice
from pathlib import Path

import click
import numpy as np
import pytest
from benchmarks.attack import counts

import howsure as hs
from howsure import InputError, Predictions
from howsure._core import strict_json
from howsure._core.text import (
    HIDDEN_CATEGORIES,
    format_spreadsheet_cell,
    make_printable,
    make_printable_lines,
)
from howsure.cli import main
from howsure.cli.check import format_junit, write_github_output
from howsure.cli.main import howsure
from howsure.policies import Policy
from howsure.report.gate import Verdict

HOSTILE = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x9b31m",
    "\r\nsecond line",
    "\n::error::stop",
    "::add-mask::x",
    " ::set-output name=a::b",
    "##[error]no",
    "\u202eright to left\u202c",
    "\u2066isolated\u2069",
    "\u2028line\u2029paragraph",
    "\x00nul",
    "\x7f\x85",
    "\ufeff\U000e0041tag",
    "=cmd|' /C calc'!A0",
    "+1+2",
    "@SUM(A1)",
    "<script>alert(1)</script>",
    "| a | b |",
    "](javascript:alert(1))",
    "[bold]markup[/bold]",
]
ACTS = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|[\ud800-\udfff]"
)
COMMANDS = re.compile(r"^\s*::[a-z]|##\[", re.MULTILINE | re.IGNORECASE)


def harmless(text: str) -> None:
    assert not ACTS.search(text), ACTS.search(text)
    assert not COMMANDS.search(text), text


def hostile(k: int = len(HOSTILE)) -> Predictions:
    rng = np.random.default_rng(0)
    y = np.arange(4 * k) % k
    ids = [f"{name}{i}" for i in range(4) for name in HOSTILE[:k]]
    return Predictions.from_logits(
        rng.normal(size=(4 * k, k)) + np.eye(k)[y], y, class_names=HOSTILE[:k], ids=ids, group=ids
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_printable_is_one_line_in_which_nothing_acts(text: str) -> None:
    harmless(make_printable(text))
    assert "\n" not in make_printable(text)
    assert make_printable(make_printable(text)) == make_printable(text)


def test_printable_leaves_what_people_write() -> None:
    for text in ("Ärger", "std::vector", "日本語", "👩\u200d🔬", "a – b", "0.5 ± 0.1", "C:\\data"):
        assert make_printable(text) == text
    assert {"Cc", "Cf", "Cs", "Zl", "Zp"} == HIDDEN_CATEGORIES
    assert make_printable_lines("a\nb\x1b") == "a\nb\\x1b"


@pytest.mark.parametrize("form", ["to_text", "to_markdown"])
def test_reports_and_comparisons(form: str) -> None:
    preds = hostile()
    harmless(getattr(hs.evaluate(preds), form)())
    models = dict.fromkeys(HOSTILE[:4], preds) | {HOSTILE[4]: (preds, "margin")}
    harmless(getattr(hs.compare(models), form)())


def test_pages_hold_nothing_that_acts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names of classes, models, files, groups and months; a mark of direction would turn the
    numbers beside it.
    """
    path, strange = tmp_path / "a.npz", tmp_path / "b\x1b[31m\u202e.npz"
    lines = tmp_path / "c\x9b.jsonl"
    for file in (path, strange):
        hs.write(hostile(), file)
    hs.write(
        Predictions.from_confidence(
            np.linspace(0, 1, 84), np.arange(84) % 3 > 0, group=HOSTILE * 4
        ),
        lines,
    )
    calls: list[list[str | Path]] = [
        ["evaluate", strange],
        ["evaluate", lines, "--by", "group"],
        ["compare", path, strange],
        ["monitor", path, strange],
        ["monitor", lines, lines, "--month", "group"],
        ["calibrate", "--fit", path, "--on", strange],
    ]
    for call in calls:
        page = tmp_path / "page.html"
        said(capsys, *call, "--html", page)
        text = page.read_text(encoding="utf-8")
        page.unlink()
        assert not ACTS.search(text), (call, ACTS.search(text))
        assert "<script>alert" not in text
    assert not ACTS.search(hs.evaluate(hostile())._repr_html_())


def test_markdown_keeps_its_cells() -> None:
    found = hs.compare(
        {"| a | b |": hostile(), "<script>x</script>": (hostile(), "margin")}
    ).to_markdown()
    assert "<script>" not in found
    assert "| a | b |" not in found


def said(capsys: pytest.CaptureFixture[str], *args: str | Path) -> tuple[str, str]:
    with pytest.raises(SystemExit):
        main([str(arg) for arg in args])
    return capsys.readouterr()


def test_every_command_on_hostile_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, strange = tmp_path / "a.npz", tmp_path / "b\x1b[31m\n::error::c.npz"
    hs.write(hostile(), path)
    hs.write(hostile(), strange)
    hs.save(Policy("max_prob", 0.5), tmp_path / "policy.json")
    calls = [
        ["evaluate", path],
        ["evaluate", strange],
        ["evaluate", strange, "-o", tmp_path / "r.txt", "-o", tmp_path / "r.md"],
        ["compare", path, strange],
        ["check", strange, "--require", "ece<=0.5"],
        ["check", strange, "--require", "ece<=0.001", "--junit", tmp_path / "j.xml"],
        ["doctor", path],
        ["doctor", strange],
        ["threshold", strange, "--risk", "0.5", "-o", tmp_path / "p\x1b.json"],
        ["calibrate", "--fit", strange, "--on", path],
        ["decide", tmp_path / "policy.json", strange, "-o", tmp_path / "d\x1b.jsonl"],
        ["evaluate", tmp_path / "none\x1b.npz"],
        ["evaluate", path, "--split", "\x1b[31m"],
        ["evaluate", path, "--name", "labels=\x1b\n::error::x"],
        ["evaluate", path, "--no-such\x1b-option"],
        ["\x1b[31m"],
    ]
    for call in calls:
        out, err = said(capsys, *call)
        harmless(out)
        harmless(err)
    for name in ("r.txt", "r.md"):
        harmless((tmp_path / name).read_text(encoding="utf-8"))
    xml.dom.minidom.parse(str(tmp_path / "j.xml"))


def test_errors_of_files_and_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for i, text in enumerate(HOSTILE):
        lines = tmp_path / f"{i}.jsonl"
        lines.write_text(
            json.dumps({text: 1, "confidence": text, "correct": 1}) + "\n", encoding="utf-8"
        )
        labels = tmp_path / f"{i}_labels.jsonl"
        labels.write_text(
            json.dumps({"prob_a": 0.5, "prob_b": 0.5, "label": text}) + "\n", encoding="utf-8"
        )
        for path in (lines, labels):
            for command in ("evaluate", "doctor"):
                out, err = said(capsys, command, path)
                harmless(out + err)


def test_an_error_quotes_no_more_than_a_line() -> None:
    long = InputError(
        "a" * 10**6, where="b" * 10**6, got="c" * 10**6, need="d" * 10**6, hint="e\n" * 10**6
    )
    assert len(str(long)) < 5000
    assert "\n" not in str(long)
    harmless(str(long.at("f\x1b")))


def test_the_gate_writes_valid_xml_and_one_annotation(capsys: pytest.CaptureFixture[str], tmp_path: Path,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    verdicts = [Verdict(text, 0.1, 0.2, 0.3, False, text) for text in HOSTILE]
    found = format_junit(verdicts)
    harmless(found)
    assert len(xml.dom.minidom.parseString(found.encode()).getElementsByTagName("testcase")) == len(
        HOSTILE
    )
    write_github_output(verdicts)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(HOSTILE)
    for line in lines:
        assert line.startswith("::error title=howsure check::")
        harmless(line.removeprefix("::"))
    harmless((tmp_path / "summary.md").read_text(encoding="utf-8"))


def test_spreadsheets_do_not_run_cells() -> None:
    out = io.StringIO()
    csv.writer(out).writerows([[format_spreadsheet_cell(text), -0.5] for text in HOSTILE])
    for row in csv.reader(io.StringIO(out.getvalue())):
        assert row[0][0] not in "=+-@\t\r"
        assert row[1] == "-0.5"


def test_epochs_for_a_spreadsheet(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from howsure.torch import EpochLog

    epochs = EpochLog(torch.nn.Linear(2, 2), {}, path=tmp_path / "epochs.csv")
    epochs.add({"=1+2": hostile(2)}, note="@x")
    text = (tmp_path / "epochs.csv").read_text()
    assert "'=1+2" in text
    assert "'@x" in text


def options(command: click.Command) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts}


def commands_with(
    option: str, group: click.Group, before: tuple[str, ...] = ()
) -> set[tuple[str, ...]]:
    """Every command, also inside groups, that takes an option."""
    found: set[tuple[str, ...]] = set()
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        here = (*before, name)
        if isinstance(command, click.Group):
            found |= commands_with(option, command, here)
        elif option in options(command):
            found.add(here)
    return found


def leaves(value: object) -> list[str]:
    """Every text in a JSON value."""
    if isinstance(value, dict):
        return [text for key, inner in value.items() for text in (key, *leaves(inner))]
    if isinstance(value, list):
        return [text for inner in value for text in leaves(inner)]
    return [value] if isinstance(value, str) else []


def test_every_command_with_json_is_harmless_and_means_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The law over all JSON that is printed: a new command with `--json` must be added here."""
    path = tmp_path / "a.npz"
    hs.write(hostile(), path)
    binary = Predictions.from_probs(
        [0.1, 0.9] * 40, [0, 1, 1, 1] * 20, class_names=HOSTILE[2:4], ids=ids_of(80)
    )
    two = tmp_path / "two.npz"
    hs.write(binary, two)
    log = tmp_path / "c\x9bd\u202e.jsonl"
    hs.write(
        Predictions.from_confidence(np.linspace(0, 1, 80), np.arange(80) % 3 > 0, ids=ids_of(80)),
        log,
    )
    policy, watch = tmp_path / "p.json", tmp_path / "w\x9b\u202e.json"
    hs.save(Policy("max_prob", 0.5), policy)
    hs.save(hs.policies.DriftMonitor.start(Policy("max_prob", 0.5).decide(binary)), watch)
    calls: dict[tuple[str, ...], list[str | Path]] = {
        ("evaluate",): [path],
        ("compare",): [two, copied(two, tmp_path / "\x9b\u202e ##[error].npz")],
        ("check",): [path, "--require", "ece<=0.9"],
        ("threshold",): [path, "--risk", "0.9"],
        ("calibrate",): ["--fit", path, "--on", path],
        ("cascade",): [path, path, "--costs", "1,10", "--person", "50", "--error", "20"],
        ("doctor",): [log],
        ("monitor",): [path, path],
        ("alarms", "status"): [watch],
        ("demo",): [],
    }
    assert set(calls) == commands_with("--json", howsure), "every command with --json belongs here"
    for command, given in calls.items():
        out, err = said(capsys, *command, *given, "--json")
        harmless(out)
        harmless(err)
        whole = out.startswith(("{\n", "[\n"))
        texts = [
            text
            for line in ([out] if whole else out.splitlines())
            for text in leaves(json.loads(line))
        ]
        if command in {("evaluate",), ("compare",)}:
            assert any(ACTS.search(text) for text in texts), (
                command
            )  # the text is kept, only its writing changed
    out, _ = said(capsys, "decide", policy, path)
    harmless(out)
    assert {json.loads(line)["prediction"] for line in out.splitlines()} <= set(HOSTILE)


def copied(path: Path, to: Path) -> Path:
    to.write_bytes(path.read_bytes())
    return to


def ids_of(n: int) -> list[str]:
    return [f"{HOSTILE[i % len(HOSTILE)]}{i}" for i in range(n)]


@pytest.mark.parametrize("text", HOSTILE)
def test_json_means_the_same_however_it_is_written(text: str, tmp_path: Path) -> None:
    for written in (
        strict_json.dump_line({text: [text]}),
        strict_json.dump_pretty({text: [text, {"a": text}]}),
    ):
        harmless(written)
        assert set(leaves(json.loads(written))) <= {text, "a"}
    path = tmp_path / "a.jsonl"
    hs.write(Predictions.from_confidence([0.5], [1], ids=[text]), path)
    harmless(path.read_text(encoding="utf-8"))
    ids = hs.read(path).ids
    assert ids is not None
    assert ids[0] == text.strip()  # readers take the blanks off


def test_queries_slices_and_count_tables(tmp_path: Path) -> None:
    """Every seventh of the attacks of `python -m benchmarks.attack --only s`."""
    attacks = islice(counts.list_attacks(tmp_path), 0, None, 7)
    faults = {name: attack() for name, attack in attacks}
    assert len(faults) > 70
    assert {name: fault for name, fault in faults.items() if fault} == {}
