"""Tables on narrow terminals: columns go on below, and nothing is cut."""

from io import StringIO

import pytest
from rich.console import Console

from howsure.report.render.text_tables import Sheet, TextTable

HEAD = ["model", "AURC", "interval", "ECE", "why"]
ROWS = [
    [
        "a_network_with_a_name_of_many_letters",
        "0.009993",
        "0.00848 … 0.0115",
        "0.0513",
        "said in many plain words",
    ],
    ["b", "0.01179", "0.0101 … 0.0136", "0.0496", "briefly"],
]
TABLE = TextTable("Ranking", HEAD, ROWS)


def printed(width: int) -> str:
    out = StringIO()
    Console(file=out, width=width, no_color=True, highlight=False).print(TABLE)
    return out.getvalue()


@pytest.mark.parametrize("width", range(52, 130, 6))
def test_no_number_is_cut_and_no_line_is_too_long(width):
    text = printed(width)
    assert all(len(line) <= width for line in text.splitlines())
    for row in ROWS:
        assert all(text.count(cell) == 1 for cell in row[1:4]), text


def test_names_and_headings_stand_beside_every_part():
    text = printed(52)
    assert text.count("model") > 1
    assert text.count("\nb ") == text.count("model")
    assert text.count("Ranking") == 1


def test_an_interval_stays_with_its_number():
    line = next(line for line in printed(52).splitlines() if "0.01179" in line)
    assert "0.0101 … 0.0136" in line


def test_enough_room_gives_one_table():
    assert printed(120).count("model") == 1


def test_a_long_table_is_cut_and_says_so():
    rows = [[f"class {i}", str(i)] for i in range(30)]
    out = StringIO()
    Console(file=out, width=60, no_color=True, highlight=False).print(
        TextTable("Classes", ["class", "n"], rows)
    )
    assert "10 more rows in --json and --html" in " ".join(out.getvalue().split())
    assert "class 20" not in out.getvalue()


@pytest.mark.parametrize("width", [40, 80, 110])
def test_a_command_can_be_copied_however_long_its_file_is(width):
    path = "/" + "folder/" * 30 + "test.npz"
    steps = [
        (f"howsure evaluate {path} --split test --full", "all numbers"),
        ("howsure doctor a.npz", "look"),
    ]
    lines = Sheet("Ranking", steps=steps).text(width).splitlines()
    command = " ".join(
        line.strip().removesuffix("\\").strip() for line in lines if path in line or "--" in line
    )
    assert f"{path} --split test --full" in command
