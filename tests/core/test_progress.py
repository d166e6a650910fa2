"""Progress: the stages of a job, as the browser app hears them."""

from collections.abc import Iterator

import pytest
from numpy.typing import ArrayLike

import howsure as hs
from howsure._core.text import StagedJob, listener


@pytest.fixture
def heard() -> Iterator[list[str]]:
    messages: list[str] = []
    token = listener.set(messages.append)
    yield messages
    listener.reset(token)


def test_a_report_announces_its_stages_even_where_a_score_is_called_like_one(
    heard: list[str],
) -> None:
    def numbers(preds: hs.Predictions) -> ArrayLike:
        return preds.confidence

    preds = hs.Predictions.from_confidence([0.9, 0.8, 0.7], [1, 0, 1])
    hs.evaluate(preds, ["max_prob", numbers])
    assert heard == [
        "measuring 1 of 6: numbers",
        "measuring 2 of 6: findings",
        "measuring 3 of 6: guarantees",
        "measuring 4 of 6: numbers",
        "measuring 5 of 6: pictures",
        "measuring 6 of 6: parts",
    ]


def test_a_comparison_and_a_choice_announce_theirs(heard: list[str]) -> None:
    preds = hs.Predictions.from_confidence([0.9, 0.8, 0.7, 0.6] * 9, [1, 0, 1, 1] * 9)
    hs.compare({"a": preds, "b": preds})
    assert heard == [
        "comparing 1 of 3: differences",
        "comparing 2 of 3: numbers",
        "comparing 3 of 3: pictures",
    ]
    heard.clear()
    hs.choose_calibrator(preds, folds=2)
    assert heard[0] == f"fitting 1 of {len(heard)}: none"


def test_a_stage_that_is_none_of_the_job_is_refused() -> None:
    with pytest.raises(ValueError, match="pictures"):
        StagedJob("measuring", ["numbers"]).stage("pictures")
