"""Every example of docs/integrations.md runs, against the library that its section is about."""

import doctest
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/integrations.md"
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL))
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
ALSO = {"lightning": ["sklearn"], "tensorboard": ["torch", "matplotlib"], "transformers": ["accelerate", "sklearn"]}


def test_there_is_a_section_for_each_file() -> None:
    folder = PAGE.parents[1] / "src/howsure/integrations"
    files = {path.stem for path in folder.glob("[a-z]*.py")}
    assert set(SECTIONS) == files | {"sklearn"}


@pytest.mark.parametrize("section", SECTIONS)
def test_the_examples_run(section: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in (section, *ALSO.get(section, [])):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(SECTIONS[section].replace("```", ""), {}, section, str(PAGE), 0)
    told: list[str] = []
    result = doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=told.append)
    assert result.attempted > 5
    assert not result.failed, "".join(told)
