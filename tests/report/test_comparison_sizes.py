"""Many models on one page."""

from __future__ import annotations

import numpy as np

import howsure as hs
from howsure.report.render.comparison_page import PAGE_MODELS


def test_a_page_of_many_models_draws_the_best_and_lists_all():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 60)
    made: dict[str, hs.Predictions] = {}
    for i in range(PAGE_MODELS + 5):
        made[f"model{i:02}"] = hs.Predictions.from_logits(rng.normal(size=(60, 3)), labels)
    comparison = hs.compare(made)
    page = comparison.to_html()
    ranked = [row["name"] for row in comparison.data["models"]]
    assert f"The {PAGE_MODELS} models with the lowest AURC of {len(made)} are drawn" in page
    for name in ranked[:PAGE_MODELS]:
        assert f'data-shows="{name}"' in page
    for name in ranked[PAGE_MODELS:]:
        assert f'data-shows="{name}"' not in page
        assert f">{name}</th>" in page  # in the ranking
    few = hs.compare({name: made[name] for name in ranked[:3]}).to_html()
    assert "are drawn, here and in the matrix" not in few
