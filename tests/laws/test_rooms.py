"""Laws about rooms that no type checker knows: renderers do no arithmetic, and JSON has one door."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "howsure"
RENDERERS = SOURCE / "report" / "render"
DRAW = {"svg", "pictures", "curve_pictures", "figure", "paper_figure"}  # the others write words
ARITHMETIC = (ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Pow)
WRITE_SHARES = {"format_percent", "format_points", "format_level", "format_percent_range"}
COUNT_ROWS = {
    "split_columns",
    "_wrap_heading",
    "__rich_console__",
    "choose_operating_rows",
    "build_plan_sheet",
    "style_model",
}  # places and rows, no number of a report
ALLOWED = WRITE_SHARES | COUNT_ROWS | {"_write_sentences"}  # with probability 1 - delta
FOREIGN = {"formats"}  # reads and writes JSON that others define


def arithmetic(path: Path) -> Iterator[str]:
    """Functions of a file that compute, by the place where they do."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        inside = [
            n
            for n in ast.walk(function)
            if isinstance(n, ast.BinOp) and isinstance(n.op, ARITHMETIC)
        ]
        computes = [
            n for n in inside if not isinstance(n.left, ast.List)
        ]  # [None] * n is a column of nothing
        draws = function.name.lstrip("_").startswith("draw_")  # where a mark lies on the paper
        if computes and not draws and function.name not in ALLOWED:
            yield f"{path.name}, line {computes[0].lineno}: {ast.unparse(computes[0])}"


def test_renderers_do_no_arithmetic() -> None:
    paths = [path for path in sorted(RENDERERS.glob("*.py")) if path.stem not in DRAW]
    found = [place for path in paths for place in arithmetic(path)]
    assert len(paths) > 5
    assert found == [], "numbers are made in report/; renderers write them"


def imports_json(path: Path) -> bool:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    ]
    return "json" in named or any(
        isinstance(n, ast.ImportFrom) and n.module == "json" for n in ast.walk(tree)
    )


def test_json_has_one_door() -> None:
    paths = [
        path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] not in FOREIGN
    ]
    found = [str(path.relative_to(SOURCE)) for path in paths if imports_json(path)]
    assert found == ["_core/strict_json.py"], "use howsure._core.strict_json"
