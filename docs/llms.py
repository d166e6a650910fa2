"""llms.txt: what a language model needs to use howsure, from the help of its commands and the pages
of its docs. `python -m docs.llms FILE` writes it; the site has it at its root.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from docs import blocks
from howsure.cli.main import howsure

README = blocks.ROOT / "README.md"


def write_llms(to: Path) -> None:
    """Purpose, pages with what they are about, and the help of every command."""
    title, summary = _read_head(README)
    lines = [f"# {title}", "", f"> {summary}", "", "## Docs", ""]
    for page in blocks.PAGES:
        if page == README or page.stem in ("README", "index"):
            continue
        name, about = _read_head(page)
        place = page.relative_to(blocks.ROOT / "docs").with_suffix(".html").as_posix()
        lines.append(f"- [{name}]({place}): {about}")
    lines += ["", "## Commands", ""]
    parent = click.Context(howsure, info_name="howsure")
    for name in howsure.list_commands(parent):
        command = howsure.get_command(parent, name)
        assert command is not None
        text = command.get_help(click.Context(command, info_name=name, parent=parent))
        lines += [f"### howsure {name}", "", "```", text.strip(), "```", ""]
    to.write_text("\n".join(lines), encoding="utf-8")


def _read_head(page: Path) -> tuple[str, str]:
    """The title of a page, and its first paragraph as one line without marks."""
    text = re.sub(r"<!--.*?-->|```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    paragraphs = [part for part in text.split("\n\n") if re.match(r"[\w*`\[]", part.strip())]
    plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", " ".join(paragraphs[0].split()))
    return (title[1] if title else page.stem), plain.replace("**", "")


if __name__ == "__main__":
    write_llms(Path(sys.argv[1]))
