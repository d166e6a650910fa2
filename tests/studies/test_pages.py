"""Pages: written from prediction files alone, whatever is there, the same bytes each time."""

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")
pytest.importorskip("PIL")
pytest.importorskip("matplotlib")
pytest.importorskip("howsure")

from studies.__main__ import main
from studies.claims.claim import AGREES, MISSING, MIXED, NOT, OPEN
from studies.pages.counterparts import COUNTERPARTS, counterparts_page, files
from studies.pages.words import AFTERWARDS
from studies.plans import STUDIES, runs_of

pytestmark = pytest.mark.usefixtures("alone")
WORDS = {f"**{word}**" for word in (AGREES, MISSING, NOT, MIXED, OPEN)}


def pages(out, folder, *names):
    assert main([*names, "--docs", str(folder), "--out", str(out)]) == 0
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def verdicts(text):
    """The last cell of each row of the table of verdicts, or of that of our own questions."""
    title = "## Verdicts" if "## Verdicts" in text else "## Our own questions"
    table = text.split(title)[1].split("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][2:]
    return {line.split(" | ")[-1].removesuffix(" |") for line in rows}


def test_nothing_was_run_and_nothing_breaks(tmp_path):
    found = pages(tmp_path, tmp_path / "docs", "all")
    assert {f"{name}.md" for name in STUDIES} | {"README.md"} <= set(found)
    overview = found["README.md"].decode()
    assert verdicts(overview) <= WORDS
    assert "0 of " in overview
    assert (
        "Missing: resnet-8 digits (2 repeats), wrn-10-1 digits (2 repeats)."
        in found["complexity.md"].decode()
    )


def test_pages_of_finished_runs(tmp_path, smoke):
    once = pages(smoke, tmp_path, "all")
    for name in STUDIES:
        text = once[f"{name}.md"].decode()
        assert verdicts(text) <= WORDS
        assert "all finished" in text
        assert ("not at hand" in text) == (
            name in ("complexity", "calibration", "odds", "densenet_m", "promise")
        )
        assert f"]({next(n for n in once if n.startswith(name) and n.endswith('.svg'))})" in text


@pytest.mark.parametrize("name", STUDIES)
def test_the_committed_pages_show_every_network_of_the_plan(name):
    """A run that two parts of a study ask for is one network."""
    docs = Path(__file__).parents[2] / "docs" / "studies"
    text = (docs / f"{name}.md").read_text(encoding="utf-8")
    count = len(runs_of([name], "cpu"))
    assert f" {count} network{'s' * (count > 1)}, all finished." in text.splitlines()[2]
    assert f"| {count} of {count} |" in next(
        line
        for line in (docs / "README.md")
        .read_text(encoding="utf-8")
        .split("## The studies")[1]
        .splitlines()
        if line.startswith(f"| [{name}]")
    )


def test_every_figure_and_table_of_the_papers_has_a_counterpart_or_a_reason():
    """The files are those of the committed pages."""
    docs = Path(__file__).parents[2] / "docs" / "studies"
    assert len({(c.paper, c.item) for c in COUNTERPARTS}) == len(COUNTERPARTS)
    assert all(c.here or c.note for c in COUNTERPARTS)
    assert [name for c in COUNTERPARTS for name in files(c) if not (docs / name).exists()] == []
    assert counterparts_page() == (docs / "figures.md").read_text(encoding="utf-8")


def test_the_same_files_give_the_same_page(tmp_path, smoke):
    assert pages(smoke, tmp_path / "one", "odds") == pages(smoke, tmp_path / "two", "odds")


def test_criteria_that_were_set_afterwards_are_named():
    """Each names one claim of the committed overview, and stands there."""
    text = (Path(__file__).parents[2] / "docs" / "studies" / "README.md").read_text("utf-8")
    verdicts, _, named = text.partition("## Criteria that were set")
    for begins, note in AFTERWARDS.items():
        assert verdicts.count(f"| {begins}") >= 1, begins
        assert named.count(f"| {begins}") == 1, begins
        assert note in named


def test_at_most_six_claims_are_open():
    text = (Path(__file__).parents[2] / "docs" / "studies" / "README.md").read_text("utf-8")
    count = int(re.search(r"(\d+) claims are open, 0 wait", text)[1])
    assert count <= 6
