"""Whatever takes predictions, a tally or outcomes says so at its door, where something else is
given.
"""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import howsure as hs

GIVEN = (np.array([[0.9, 0.1], [0.2, 0.8]]), [0.9, 0.1], None, "predictions.npz")
TALLY = hs.tally([0.9, 0.1], correct=[1, 0])
PREDS = hs.Predictions.from_probs([[0.9, 0.1], [0.2, 0.8]], [0, 1])


def first(function: Callable[..., Any]) -> str:
    """The type of the first argument, as it is written."""
    given = [
        p for p in inspect.signature(function).parameters.values() if p.name not in ("self", "cls")
    ]
    return str(given[0].annotation) if given else ""


def of_predictions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for room in (hs, hs.scores, hs.losses, hs.calibrators, hs.policies):
        for name in room.__all__:
            thing = getattr(room, name)
            if inspect.isfunction(thing) and first(thing) == "Predictions":
                yield name, thing
            elif inspect.isclass(thing) and not getattr(thing, "_is_protocol", False):
                fit = inspect.getattr_static(thing, "fit", None)
                if isinstance(fit, classmethod) and first(fit.__func__) == "Predictions":
                    yield f"{name}.fit", thing.fit


def called(function: Callable[..., Any], given: object) -> None:
    """With something for every further argument that must be there."""
    further = list(inspect.signature(function).parameters.values())[1:]
    must = [
        p
        for p in further
        if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]
    options = {
        p.name: hs.policies.threshold_for_coverage if p.name == "rule" else 0.5 for p in must
    }
    function(given, **options)


FUNCTIONS = dict(of_predictions())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_takes_predictions_says_so(name: str) -> None:
    for given in (*GIVEN, TALLY):
        with pytest.raises(hs.InputError, match=rf"^{name} needs predictions, this is a \w+; "):
            called(FUNCTIONS[name], given)


def test_the_law_looks_at_many() -> None:
    assert len(FUNCTIONS) > 55


@pytest.mark.parametrize("given", [*GIVEN, PREDS], ids=lambda given: type(given).__name__)
@pytest.mark.parametrize(
    "function",
    [
        lambda t: hs.policies.threshold_for_accuracy(t, 0.9),
        lambda t: hs.policies.threshold_for_coverage(t, 0.9),
        lambda t: hs.policies.threshold_for_cost(t, error=1, deferral=0.1),
        lambda t: hs.policies.guaranteed_threshold(t, risk=0.1, delta=0.1),
    ],
)
def test_a_threshold_needs_a_table(function: Callable[[Any], Any], given: object) -> None:
    with pytest.raises(
        hs.InputError, match=r"needs a tally or Outcomes, this is a .*; make one with tally\("
    ):
        function(given)


@pytest.mark.parametrize("given", GIVEN[:1] + GIVEN[2:], ids=lambda given: type(given).__name__)
def test_numbers_of_something_else_are_refused(given: object) -> None:
    with pytest.raises(hs.InputError, match="an interval needs a tally or Outcomes"):
        hs.interval(hs.aurc, given)
    with pytest.raises(hs.InputError, match=r"a difference of a .* cannot be told"):
        hs.paired_difference(hs.aurc, given, given)
    with pytest.raises(hs.InputError, match="comparing 'a' needs predictions"):
        hs.compare({"a": given, "b": given})
    with pytest.raises(hs.InputError, match="compare needs names"):
        hs.compare([given, given])
    with pytest.raises(hs.InputError, match="skill needs predictions"):
        hs.skill(hs.brier, given)


@pytest.mark.parametrize("given", GIVEN, ids=lambda given: type(given).__name__)
def test_what_takes_several_things_refuses_others(given: object) -> None:
    for name in (
        "accuracy",
        "brier_decomposition",
        "calibration_in_the_large",
        "calibration_slope",
        "recalibration",
        "observed_expected",
    ):
        with pytest.raises(hs.InputError, match="needs predictions"):
            getattr(hs, name)(given)
    for name in ("calibration_test", "flexible_calibration"):
        with pytest.raises(hs.InputError, match="needs a tally"):
            getattr(hs, name)(given)
