"""Every block of every page runs as it is written."""

from pathlib import Path

import pytest
from docs import blocks
from docs.llms import write_llms


@pytest.mark.parametrize("page", blocks.PAGES, ids=lambda p: p.stem)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    assert blocks.strangers(page) == []
    ran = blocks.run(page, tmp_path)
    assert not ran.faults, "\n".join(ran.faults)
    if ran.left_out and not ran.blocks:
        pytest.skip("left out: " + "; ".join(ran.left_out))


def test_what_is_wrong_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\n>>> round(1 / 3, 2)\n0.3\n\n```\n```python\nmissing\n```\n"
        "```sh\nhowsure evaluate nothing.npz\n```\n<!-- python\nkept = 1\n-->\n```python\nassert kept\n```\n"
        "## One\n<!-- needs no_such_package -->\n```python\nmissing\n```\n## Two\n```\nhowsure demo\n```\n"
    )
    ran = blocks.run(page, tmp_path)
    assert ran.blocks == 5
    session, script, command = ran.faults
    assert "Expected:\n    0.3\nGot:\n    0.33" in session
    assert "NameError" in script
    assert "exit code 2" in command
    assert ran.left_out == ["## One needs no_such_package"]
    assert blocks.strangers(page) == ["page.md:24"]


def test_llms_txt_names_every_command_and_page(tmp_path: Path) -> None:
    write_llms(tmp_path / "llms.txt")
    text = (tmp_path / "llms.txt").read_text(encoding="utf-8")
    assert text.startswith("# howsure\n\n> How sure is your classifier")
    for name in ("evaluate", "calibrate", "threshold", "decide", "compare", "monitor"):
        assert f"### howsure {name}\n" in text
    assert "--risk" in text
    assert "(research.html): " in text
    missing = [p.stem for p in blocks.PAGES if p.parent.name == "docs" and p.stem != "index"]
    assert [stem for stem in missing if f"({stem}.html)" not in text] == []
