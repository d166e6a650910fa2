"""The commands of docs/language_models.md run, on the log that its examples write."""

import doctest
import re
import shlex
from pathlib import Path

import pytest

from howsure.cli.main import main

PAGE = Path(__file__).parents[3] / "docs/language_models.md"


def commands() -> list[list[str]]:
    block = re.search(r"```console\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)
    assert block is not None
    return [shlex.split(line.removeprefix("$ howsure ")) for line in block[1].splitlines()]


@pytest.fixture(scope="module")
def folder() -> Path:
    """Where the first example of the page puts its logs."""
    examples = doctest.DocTestParser().get_examples(PAGE.read_text("utf-8"))
    scope: dict[str, object] = {}
    for example in examples:
        exec(example.source, scope)
        if isinstance(scope.get("folder"), Path) and (scope["folder"] / "samples_exam.jsonl").exists():
            break
    return Path(str(scope["folder"]))


@pytest.mark.parametrize("command", commands(), ids=lambda c: c[0])
def test_command(
    command: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as stopped:
        main(command)
    out, err = capsys.readouterr()
    assert not stopped.value.code, err
    assert out
    targets = [word for word in command if word.endswith((".html", "policy.json"))]
    assert all((folder / target).stat().st_size > 100 for target in targets)


def test_every_tool_is_on_the_page() -> None:
    from howsure.formats.logs.reading import TOOLS

    page = PAGE.read_text("utf-8")
    assert [tool for tool in (*TOOLS, "helm", "table") if f"| `{tool}` |" not in page] == []
