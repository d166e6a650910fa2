"""The figures of docs/benchmarks.md are those that were stored when they were measured."""

from pathlib import Path

from benchmarks.write_docs import PAGE, write_page


def test_no_figure_is_written_by_hand() -> None:
    assert write_page(PAGE.read_text("utf-8")) == PAGE.read_text("utf-8")


def test_a_changed_figure_is_noticed() -> None:
    text = Path(PAGE).read_text("utf-8")
    row = next(line for line in text.splitlines() if line.startswith("| import howsure |"))
    assert write_page(text.replace(row, row.replace("0", "1"))) == text
