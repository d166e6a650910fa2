"""The story of one network: its committed files, and the page that is made from them."""

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("PIL")
pytest.importorskip("matplotlib")
hs = pytest.importorskip("howsure")

from studies.batches import Normaliser, in_order  # noqa: E402
from studies.pages.story import laves_table, write_story  # noqa: E402
from studies.store import Store  # noqa: E402
from studies.story import RUN, error_auroc  # noqa: E402
from studies.tables.mc_temperature import one_pass, passes, scaling  # noqa: E402
from studies.tables.results import arrays  # noqa: E402

STORE = Store(Path(__file__).parents[2] / "studies")


def test_the_boundary_distance_ranks_errors():
    distance = arrays(STORE, RUN, "boundary")["test_boundary_distance"]
    assert error_auroc(distance, one_pass(STORE, RUN).correct) > 0.7


def test_passes_differ_and_agree_with_one_pass_on_average():
    many, one = passes(STORE, RUN), one_pass(STORE, RUN)
    assert many.samples == 25
    assert np.asarray(many.values).std(0).max() > 0
    assert (many.prediction == one.prediction).mean() > 0.95


def test_the_two_temperatures_differ():
    assert scaling(STORE, RUN, "per_pass").temperature > 1.1 * scaling(STORE, RUN).temperature


def test_the_page_has_the_shape_of_laves_table(tmp_path):
    text = write_story(STORE, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "story.md",
        "story_reliability.svg",
        "story_rejection.svg",
    }
    table = laves_table(STORE)
    assert [len(row) for row in table.rows] == [8] * 4
    assert table.rows[0][2] == f"{100 * hs.ece(hs.Outcomes.of(one_pass(STORE, RUN)).tally()):.2f}"
    assert all(
        title in text
        for title in ("UCE against the number of passes", "Error after rejection", "AUROC")
    )


def test_batches_are_normalised_and_in_order():
    images = np.random.default_rng(0).integers(0, 256, (700, 1, 4, 4)).astype(np.uint8)
    labels = np.arange(700) % 10
    found = list(in_order(images, labels, Normaliser.of(images)))
    assert [len(y) for _, y in found] == [500, 200]
    assert torch.cat([y for _, y in found]).tolist() == labels.tolist()
    assert torch.cat([x for x, _ in found]).mean().abs() < 1e-5
