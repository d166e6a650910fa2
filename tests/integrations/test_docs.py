"""Every example of docs/integrations.md runs, against the library that its section is about."""

import re
from pathlib import Path

import pytest
from docs import blocks

PAGE = Path(__file__).parents[2] / "docs/integrations.md"
SECTIONS = re.findall(r"^## (\w+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)


def test_there_is_a_section_for_each_file() -> None:
    folder = PAGE.parents[1] / "src/howsure/integrations"
    files = {path.stem for path in folder.glob("[a-z]*.py")}
    assert set(SECTIONS) == files | {"sklearn"}


def test_the_examples_run(tmp_path: Path) -> None:
    ran = blocks.run(PAGE, tmp_path)
    assert not ran.faults, "\n".join(ran.faults)
    if ran.left_out:
        pytest.skip("left out: " + "; ".join(ran.left_out))
