"""Laws of the public namespace: every name is there, documented, shown by example, and cheap to
import.
"""

import ast
import inspect
import re
import subprocess
import sys
from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

import howsure

TREE = ast.parse(Path(howsure.__file__).read_text())
TABLE = howsure._NAMES
PUBLIC = [
    name for name in howsure.__all__ if name not in howsure._MODULES and name != "__version__"
]
FOLDERS = ["binning", "curves", "losses", "metrics", "scores"]
SHOWN = [
    (module, name) for module in FOLDERS for name in import_module(f"howsure.{module}").__all__
]


@pytest.mark.parametrize("name", howsure.__all__)
def test_name_resolves(name: str) -> None:
    assert getattr(howsure, name) is not None


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'howsure' has no attribute 'auroc_score'"):
        _ = howsure.auroc_score  # pyright: ignore


def test_dir_lists_the_public_names() -> None:
    assert dir(howsure) == sorted(howsure.__all__)


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_is_documented(name: str) -> None:
    documented(getattr(howsure, name), name)


@pytest.mark.parametrize(("module", "name"), SHOWN, ids=lambda x: x)
def test_name_of_a_folder_is_documented(module: str, name: str) -> None:
    documented(getattr(import_module(f"howsure.{module}"), name), name)


def documented(thing: object, name: str) -> None:
    doc = inspect.getdoc(thing) or ""
    assert doc, f"{name} has no docstring"
    assert not re.match(rf"{name}\(.*\) ->", doc), f"the docstring of {name} is its signature"
    assert ">>> " in doc, f"the docstring of {name} has no example that runs"


@pytest.mark.parametrize("module", TABLE)
def test_table_agrees_with_the_module(module: str) -> None:
    names, there = TABLE[module], import_module(f"howsure.{module}")
    assert names == sorted(names)
    for name in names:
        assert hasattr(there, name), f"howsure.{module} has no {name}"
    public = set(getattr(there, "__all__", names))
    assert set(names) <= public, f"howsure.{module}.__all__ lacks {sorted(set(names) - public)}"


@pytest.mark.parametrize("module", ["curves", "metrics"])
def test_flat_modules_are_wholly_public(module: str) -> None:
    assert TABLE[module] == sorted(import_module(f"howsure.{module}").__all__)


def test_type_checkers_see_the_same_names() -> None:
    """The imports under TYPE_CHECKING and the table of names are written twice; they must not drift
    apart.
    """
    block = next(
        node
        for node in TREE.body
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
    )
    seen: set[str] = set()
    for statement in block.body:
        assert isinstance(statement, ast.ImportFrom)
        names = [alias.asname or alias.name for alias in statement.names]
        seen |= set(import_module(str(statement.module)).__all__ if names == ["*"] else names)
    assert seen == {*howsure.__all__, *howsure._EXTRAS} - {"__version__"}


def test_no_name_is_listed_twice() -> None:
    names = (
        [name for names in TABLE.values() for name in names] + howsure._MODULES + howsure._EXTRAS
    )
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", howsure._EXTRAS)
def test_a_module_that_needs_an_extra_is_found_or_says_which(name: str) -> None:
    there = find_spec(name) is not None
    said = (
        nullcontext()
        if there
        else pytest.raises(ModuleNotFoundError, match=rf"pip install 'howsure\[{name}\]'")
    )
    with said:
        assert isinstance(getattr(howsure, name), ModuleType)


def test_all_modules_are_modules() -> None:
    for name in howsure._MODULES:
        assert isinstance(getattr(howsure, name), ModuleType)


def loaded_by(code: str) -> set[str]:
    """Top-level packages in a fresh process after `code`."""
    report = "import sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    run = subprocess.run(
        [sys.executable, "-c", f"{code}; {report}"], capture_output=True, text=True, check=True
    )
    return set(run.stdout.split())


def test_import_brings_numpy_only() -> None:
    more = loaded_by("import numpy, howsure") - loaded_by("import numpy, importlib, typing")
    assert {name for name in more if not name.startswith("_")} <= {"howsure"}


def test_the_panel_needs_no_scipy() -> None:
    code = (
        "import howsure as hs; t = hs.tally([.9, .6, .6], correct=[1, 0, 1]); "
        "[f(t) for f in (hs.auroc, hs.aupr, hs.aurc, hs.e_aurc, hs.augrc, hs.ece, hs.mce, hs.aece)]"
    )
    third_party = {
        "scipy",
        "click",
        "rich",
        "jinja2",
        "torch",
        "sklearn",
        "matplotlib",
        "pyarrow",
        "pandas",
    }
    assert not loaded_by(code) & third_party


def test_every_variable_of_the_environment_is_documented() -> None:
    """Also those that a shell sets: completion has one of its own, which nobody types."""
    source = Path(howsure.__file__).parent
    found = {
        name
        for path in source.rglob("*.py")
        for name in re.findall(r"\bHOWSURE_[A-Z_]+", path.read_text("utf-8"))
    }
    page = (Path(__file__).parents[2] / "docs/contract.md").read_text("utf-8")
    assert {name for name in found if f"`{name}" not in page} == set()
