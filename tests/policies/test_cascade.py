"""Cascades: against trying everything, by hand, and asking only for what is needed."""

from itertools import product
from math import inf

import numpy as np
import pytest

from howsure import InputError, Outcomes, Predictions, load, save
from howsure.policies import Cascade


def stages(n: int, seed: int, models: int = 2) -> list[Outcomes]:
    rng = np.random.default_rng(seed)
    out = []
    for i in range(models):
        s = rng.integers(0, 6, n) / 6
        out.append(Outcomes(s, correct=rng.random(n) < 0.5 + s / 2 * (i + 1) / models))
    return out


@pytest.mark.parametrize("models", [1, 2, 3])
@pytest.mark.parametrize("accuracy", [None, 0.85])
def test_equals_trying_everything(models: int, accuracy: float | None) -> None:
    data = stages(60, models, models)
    costs = (1.0, 4.0, 9.0)[:models]
    rest = {"human_cost": 15.0, "human_error": 0.1, "error_cost": 30.0}
    found = Cascade.fit(data, costs=costs, accuracy=accuracy, **rest)
    best = inf
    for thresholds in product(*([inf, *np.unique(o.score)] for o in data)):
        r = Cascade(thresholds, costs, 15.0, 0.1, 30.0).evaluate(data)
        if accuracy is None or not r.accuracy < accuracy:
            best = min(best, r.cost)
    assert found.expected.cost == pytest.approx(best, abs=1e-9)


def test_cost_by_hand() -> None:
    cheap = Outcomes([0.9, 0.1], correct=[0, 1])
    r = Cascade((0.5,), (1.0,), 10.0, 0.5, 100.0).evaluate([cheap])
    assert r.cost == pytest.approx(1 + 10 / 2 + 100 * (1 + 0.5) / 2)
    assert (r.accuracy, r.system_accuracy, r.shares) == (0.0, pytest.approx(0.25), (0.5, 0.5))


def test_an_accuracy_out_of_reach_goes_to_the_person() -> None:
    bad = Outcomes([0.9, 0.8], correct=[0, 0])
    c = Cascade.fit([bad], costs=(1,), human_cost=50, accuracy=0.9)
    assert c.thresholds == (inf,)
    assert c.expected.shares == (0.0, 1.0)


def test_the_dear_model_is_asked_only_for_the_rest() -> None:
    asked = []

    def dear(rows):
        asked.extend(rows.tolist())
        return Predictions.from_probs([[0.2, 0.8], [0.5, 0.5]])

    made = Cascade((0.8, 0.7), (1, 5), 20).decide(
        [Predictions.from_probs([[0.9, 0.1], [0.6, 0.4], [0.7, 0.3]]), dear]
    )
    assert asked == [1, 2]
    assert made.stage.tolist() == [0, 1, 2]
    assert made.prediction.tolist() == [0, 1, -1]


def test_many_scores_are_tried_on_quantiles() -> None:
    rng = np.random.default_rng(0)
    data = []
    for _ in range(2):
        s = rng.random(5000)
        data.append(Outcomes(s, correct=rng.random(5000) < s))
    c = Cascade.fit(data, costs=(1, 2), human_cost=10, error_cost=30)
    assert c.expected.cost <= Cascade((inf, inf), (1, 2), 10, 0, 30).evaluate(data).cost


def test_saved_and_loaded(tmp_path) -> None:
    c = Cascade.fit(stages(40, 1), costs=(1, 2), human_cost=9, error_cost=20)
    save(c, tmp_path / "c.json")
    assert load(tmp_path / "c.json") == c


@pytest.mark.parametrize(
    ("data", "costs", "message"),
    [
        ([], (), "0 models have 0 costs"),
        (stages(5, 0), (1,), "2 models have 1 costs"),
        ([*stages(5, 0, 1), *stages(6, 0, 1)], (1, 2), "different numbers"),
        (stages(5, 0), (1, -2), "a cost is -2; a number from 0 to"),
    ],
)
def test_bad_requests(data: list, costs: tuple, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Cascade.fit(data, costs=costs, human_cost=1)
