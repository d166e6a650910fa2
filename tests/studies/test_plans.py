"""Run lists: named by their settings, shared between studies, within the papers' bounds."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

from studies.__main__ import main
from studies.hours import plan_text, predicted_hours
from studies.plans import STUDIES, runs_of
from studies.plans.scales import SCALES
from studies.runs import Run, merged
from studies.settings import Settings

SOME = Settings(data="digits", network="resnet-8", train_size=300, epochs=3)


def test_the_name_follows_from_the_settings():
    assert SOME.name == replace(SOME).name
    assert SOME.name != replace(SOME, seed=1).name
    assert SOME.name.startswith("resnet-8_digits_")
    assert Settings.from_json(SOME.to_json()) == SOME


def test_defaults_do_not_enter_the_name():
    """So that a field added later does not rename the runs that exist."""
    assert set(SOME.changed()) == {"data", "network", "train_size", "epochs"}


def test_merged_runs_keep_all_extras():
    found = merged(
        [Run("a", SOME, ("mc",)), Run("b", SOME, ("course",)), Run("c", replace(SOME, seed=1))]
    )
    assert [run.extras for run in found] == [("course", "mc"), ()]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", STUDIES)
def test_every_study_has_runs_at_every_scale(name, scale):
    assert runs_of([name], scale)


def test_studies_share_networks():
    alone = sum(len(runs_of([name], "cpu")) for name in STUDIES)
    assert len(runs_of(list(STUDIES), "cpu")) < alone
    first = {run.settings for run in runs_of(["odds"], "cpu") if "dropout_variance" in run.extras}
    assert first < {run.settings for run in runs_of(["complexity"], "cpu")}


def test_complexity_has_five_sizes_and_two_repeats():
    runs = runs_of(["complexity"], "cpu")
    assert len({run.settings.network for run in runs}) >= 5
    assert {run.settings.seed for run in runs} == {0, 1}


def test_small_networks_come_first_and_the_plan_fits():
    runs = runs_of(list(STUDIES), "cpu")
    assert [(run.turn, predicted_hours(run)) for run in runs] == sorted(
        (r.turn, predicted_hours(r)) for r in runs
    )
    assert max(map(predicted_hours, runs)) < 2
    assert sum(map(predicted_hours, runs)) < 25


def test_a_turn_comes_before_the_length():
    short, long = Run("a", SOME, turn=1), Run("b", replace(SOME, epochs=300))
    assert merged([short, long, replace(short, turn=0)])[0].turn == 0
    assert min([short, long], key=lambda run: (run.turn, predicted_hours(run))) == long


def test_laves_settings():
    """A.3: batch 256, AdamW, rate and weight decay 0.01, plateau schedule, 5,000 validation images,
    dropout 0.5.
    """
    s = runs_of(["mc_temperature"], "paper")[0].settings
    assert (s.batch, s.optimiser, s.lr, s.weight_decay, s.schedule) == (
        256,
        "adamw",
        0.01,
        0.01,
        "plateau",
    )
    assert (s.val_size, s.dropout) == (5_000, 0.5)


def test_long_runs_can_be_left_out():
    some = runs_of(["complexity"], "cpu", at_most=0.1)
    assert 0 < len(some) < len(runs_of(["complexity"], "cpu"))
    assert max(predicted_hours(run) for run in some) <= 0.1


def test_plan_counts_what_is_left():
    runs = runs_of(["odds"], "smoke")
    text = plan_text(runs, {runs[0].settings.name})
    assert "done" in text.splitlines()[0]
    assert f"{len(runs)} networks, 1 finished" in text


def test_unknown_study_is_one_line(capsys):
    assert main(["nonsense"]) == 2
    assert "study 'nonsense' is unknown; there are complexity" in capsys.readouterr().err


def test_missing_data_is_one_line(tmp_path, capsys):
    code = main(
        ["complexity", "--scale", "cpu", "--data", str(tmp_path / "no"), "--out", str(tmp_path)]
    )
    assert code == 2
    assert "studies: CIFAR-10 is not in" in capsys.readouterr().err


def test_a_plan_trains_nothing(tmp_path, capsys):
    assert main(["all", "--scale", "paper", "--plan", "--out", str(tmp_path)]) == 0
    assert "hours left" in capsys.readouterr().out
    assert not list(Path(tmp_path).iterdir())
