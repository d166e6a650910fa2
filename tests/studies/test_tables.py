"""Tables: the arithmetic of their own, and that they come from prediction files alone."""

import shutil

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")
pytest.importorskip("PIL")
hs = pytest.importorskip("howsure")

from studies.__main__ import main  # noqa: E402
from studies.plans import runs_of  # noqa: E402
from studies.store import Store  # noqa: E402
from studies.tables.densenet_m import worsened  # noqa: E402
from studies.tables.shift import middle  # noqa: E402
from studies.tables.table import Table, mean_ranks, rank_correlation, spread  # noqa: E402

pytestmark = pytest.mark.usefixtures("alone")


def test_markdown():
    text = Table("T", ["a", "b"], [["x", "1"]], "note").to_markdown()
    assert text == "## T\n\nnote\n\n| a | b |\n| --- | --: |\n| x | 1 |\n"


def test_spread_is_mean_and_half_range():
    assert spread([0.1, 0.2]) == "15.00 ± 5.00"
    assert spread([0.1]) == "10.00"


def test_rank_correlation_with_ties():
    assert mean_ranks([3, 1, 1]).tolist() == [2.0, 0.5, 0.5]
    assert rank_correlation([1, 2, 3], [2, 4, 9]) == pytest.approx(1)
    assert rank_correlation([1, 2, 3], [9, 4, 2]) == pytest.approx(-1)
    assert np.isnan(rank_correlation([1, 2, 3], [5, 5, 5]))


def test_worsened_makes_the_least_confident_right_answers_wrong():
    preds = hs.Predictions.from_probs(
        [[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.55, 0.45]], [0, 0, 1, 0]
    )
    tallies = [worsened(preds, m).tally() for m in (0, 1, 2)]
    assert [t.total for t in tallies] == [1, 2, 3]
    assert hs.aurc(tallies[1]) > hs.aurc(tallies[0])
    assert hs.aupr(tallies[1]) > hs.aupr(tallies[0])


def test_the_middle_delay_counts_streams_without_an_alarm():
    assert middle([5, None, 3]) == 5
    assert middle([5, 1, 3, 7]) == 3
    assert middle([5, None, None]) is None


def test_what_is_seen_of_changed_images(smoke, capsys):
    """Blurred digits: the watch is quiet on images as they are and not on the strongest blur."""
    assert main(["shift", "--tables", "--out", str(smoke)]) == 0
    rows = [
        line.split(" | ")
        for line in capsys.readouterr().out.partition("without labels")[2].splitlines()
    ]
    found = {cells[0].strip("| "): cells for cells in rows if len(cells) == 9}
    assert len(found) == 18  # header, line, as they are, three kinds in five strengths
    assert found["as they are"][3].endswith("yes")
    assert (found["as they are"][7], found["blur 5"][7] == "never") == ("never", False)


def test_tables_need_prediction_files_only(tmp_path, smoke, capsys):
    (tmp_path / "predictions").mkdir()
    for run in runs_of(["odds"], "smoke"):
        for extra in ("", *run.extras):
            shutil.copy(Store(smoke).predictions(run.settings, extra), tmp_path / "predictions")
    assert main(["odds", "complexity", "--tables", "--out", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert f"{len(runs_of(['odds'], 'smoke'))} networks, all finished." in text
    assert "2 of 4 networks finished." in text
    assert "Missing: wrn-10-1 digits (2 repeats)." in text
    assert "| ensemble |" in text
    check_figures(tmp_path)


def check_figures(out):
    """From the same files, and the same bytes each time."""
    pytest.importorskip("matplotlib")
    for folder in ("one", "two"):
        assert main(["odds", "complexity", "--figures", str(out / folder), "--out", str(out)]) == 0
    names = {path.name for path in (out / "one").iterdir()}
    assert {
        "odds.svg",
        "odds_ratio.svg",
        "odds_loss.svg",
        "complexity.svg",
        "complexity_hidden.svg",
    } <= names
    assert all(
        (out / "one" / name).read_bytes() == (out / "two" / name).read_bytes() for name in names
    )


@pytest.mark.parametrize(
    "name", ["complexity", "segmentation", "regularisation", "calibration", "odds", "densenet_m"]
)
def test_a_study_that_was_not_run_has_empty_tables(name, tmp_path, capsys):
    assert main([name, "--tables", "--out", str(tmp_path)]) == 0
    assert name in capsys.readouterr().out
