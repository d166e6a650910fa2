"""One version and one set of bounds, wherever they are written; fragments of the changelog that fit
together.
"""

import re
import tomllib
from pathlib import Path

import pytest
from release import matrix, sizes
from release.changes import NEXT, build_section, insert_section, list_fragments

import howsure

ROOT = Path(__file__).parents[1]
BOUNDS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_version_is_written_once():
    assert "version" not in BOUNDS
    assert BOUNDS["dynamic"] == ["version"]
    found = {
        name: (ROOT / name).read_text(encoding="utf-8")
        for name in ("CITATION.cff", "release/recipe.yaml")
    }
    assert re.findall(r"(?m)^version: (.*)$", found["CITATION.cff"]) == [NEXT]
    assert re.findall(r"(?m)^  version: (\d.*)$", found["release/recipe.yaml"]) == [
        howsure.__version__
    ]


def test_no_exact_pin_for_users():
    ours = {"test", "dev", "release", "docs", "browser", "peers", "studies", "interop"}
    extras = BOUNDS["optional-dependencies"]
    needs = [
        *BOUNDS["dependencies"],
        *(need for name in extras.keys() - ours for need in extras[name]),
    ]
    assert not [need for need in needs if "==" in need]
    assert all(">=" in need or need.startswith("howsure[") for need in needs)


def test_the_recipe_has_the_bounds_of_the_package():
    text = (
        (ROOT / "release/recipe.yaml")
        .read_text(encoding="utf-8")
        .split("  run:")[1]
        .split("tests:")[0]
    )
    recipe = {
        line.strip("- ").replace(" ", "")
        for line in text.splitlines()
        if ">=" in line and "python" not in line
    }
    assert recipe == {need for need in BOUNDS["dependencies"] if ";" not in need}


def test_every_fragment_is_made_of_bullets(tmp_path: Path):
    assert list_fragments()
    (tmp_path / "bad.md").write_text("- good\nno bullet\n")
    with pytest.raises(SystemExit, match=r"bad.md:2 is no bullet line"):
        list_fragments(tmp_path)


def test_a_section_stands_above_the_others(tmp_path: Path):
    (tmp_path / "a.md").write_text("- one\n  goes on\n")
    (tmp_path / "b.md").write_text("- two\n")
    new = build_section(list_fragments(tmp_path))
    assert new == f"## {NEXT}, unreleased\n\n- one\n  goes on\n- two\n"
    old = "# Changelog\n\n## 0.1.0\n\n- old\n"
    assert insert_section(old, new) == f"# Changelog\n\n{new}\n## 0.1.0\n\n- old\n"


def test_the_same_pythons_everywhere():
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(BOUNDS["classifiers"]))
    workflow = (ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8")
    recipe = (ROOT / "release/recipe.yaml").read_text(encoding="utf-8")
    assert BOUNDS["requires-python"] == f">={named[0]}"
    assert re.findall(r'(?m)^  python_min: "(.*?)"', recipe) == named[:1]
    assert re.findall(r'"(3\.\d+)"', re.findall(r"python: \[(.*)\]", workflow)[0]) == named
    assert re.findall(r"(?m)^            (3\.\d+)$", workflow) == named
    assert [*named, *re.findall(r'python: "(3\.\d+)", tentative', workflow)[:1]] == matrix.PYTHONS


def test_workflows_and_hooks_run_what_is_there():
    targets = set(
        re.findall(r"(?m)^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"))[
            0
        ].split()
    )
    texts = [
        p.read_text(encoding="utf-8")
        for p in [*(ROOT / ".github/workflows").iterdir(), ROOT / ".ci/run"]
    ]
    asked = re.findall(r"(?m)^(?:\s*- run: )?make ([\w-]+)", "\n".join(texts))
    assert (
        {"check", "test", "test-all", "test-long", "docs", "release-files", "release-check"}
        == set(asked)
        <= targets
    )
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    check = (ROOT / "Makefile").read_text(encoding="utf-8").replace("$(VENV)", ".venv")
    assert all(
        hook in check or "release.changes" in hook
        for hook in re.findall(r"entry: (.*?)(?: --|,)", hooks)
    )


def test_every_action_is_pinned_by_its_commit():
    files = [*(ROOT / ".github" / "workflows").glob("*.yml"), ROOT / "action.yml"]
    loose: list[str] = []
    used = 0
    for file in files:
        for line in file.read_text().splitlines():
            if "uses:" not in line:
                continue
            used += 1
            # A tag can be moved; behind the commit stands the release that it is.
            if not re.search(r"uses: [\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", line):
                loose.append(f"{file.name}: {line.strip()}")
    assert used > 10
    assert loose == []


def test_the_locked_environment_has_what_the_project_asks_for():
    text = (ROOT / "release" / "dev.txt").read_text()
    locked = {name.lower() for name in re.findall(r"(?m)^([\w.-]+)==", text)}
    extras = BOUNDS["optional-dependencies"]
    asked = [*BOUNDS["dependencies"], *extras["test"], *extras["dev"]]
    names = {re.split(r"[<>=;\[ ]", line)[0] for line in asked} - {"howsure"}
    assert names <= locked
    # Every version has its hashes, and no line says where it came from.
    assert text.count("==") - text.count(" == '") <= text.count("--hash=sha256:")
    assert "://" not in text


def test_ci_prints_the_measured_branches():
    text = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert re.findall(r"(?m)^make (test\S*) COVER=1$", text) == ["test-all"]
    assert "\nmake test\n" in text


SUMMARY = """
s.s                                     [100%]
SKIPPED [1] tests/a.py: could not import 'torch': No module named 'torch'
SKIPPED [2] tests/conftest.py:62: left out: data is not there
1 passed, 3 skipped in 0.10s
"""


def rooms(failed: list[str]) -> list[matrix.Ran]:
    same = {"python": "3.11", "kind": "lowest", "installed": "numpy 2.0.0"}
    first = matrix.Ran(
        **same, room="tests/a", counts={"passed": 1000, "skipped": 3}, failed=[], reasons={"b": 3}
    )
    return [
        first,
        matrix.Ran(
            **same, room="tests/c", counts={"skipped": 2}, failed=failed, reasons={"needs torch": 2}
        ),
    ]


def test_the_matrix_says_why_tests_were_skipped():
    why = {"left out: data is not there": 2, "could not import 'torch': No module named 'torch'": 1}
    assert matrix.reasons(SUMMARY.splitlines()) == why


def test_the_matrix_is_one_line_per_environment_and_one_per_room():
    assert matrix.row(rooms([])) == "| 3.11 | lowest | numpy 2.0.0 | 2 | 1,000 passed, 5 skipped |"
    assert list(matrix.by_room([rooms([])]))[1:] == [
        "| tests/a | 1,000 passed, 3 skipped |  |",
        "| tests/c | 2 skipped | needs torch |",
    ]


def test_a_failure_or_nothing_at_all_is_no_pass():
    assert matrix.good(rooms([]))
    assert not matrix.good(rooms(["FAILED tests/c"]))
    assert not matrix.good(rooms([])[1:])


def test_a_large_file_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert sizes.main(["README.md"]) == 0
    monkeypatch.setattr(sizes, "LARGEST_FILE_BYTES", 10)
    assert sizes.main(["README.md", "studies/predictions/nuclei_unet.npz"]) == 1
    assert capsys.readouterr().err.startswith("README.md: ")
