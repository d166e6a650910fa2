"""docs/language_models.md names every tool; what it shows is run with all pages (tests/pages)."""

from pathlib import Path

from howsure.formats.logs import TOOLS

PAGE = Path(__file__).parents[3] / "docs/language_models.md"


def test_every_tool_is_on_the_page() -> None:
    page = PAGE.read_text("utf-8")
    assert [tool for tool in (*TOOLS, "helm", "table") if f"| `{tool}` |" not in page] == []
