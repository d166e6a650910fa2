"""The schema: generated from the types, published in docs, and strict."""

import json
from pathlib import Path
from typing import Any, TypedDict

import jsonschema
import pytest

from howsure import InputError
from howsure._core.strict_json import dump_pretty
from howsure.report.report_types import parse_comparison, parse_report
from howsure.report.schema import build_schema
from schemas import FOLDER, KINDS, validate

GOLDEN = Path(__file__).parents[1] / "golden"
READ = {"report": parse_report, "comparison": parse_comparison}


def stored(name: str) -> dict[str, Any]:
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", KINDS)
def test_the_published_schema_is_what_the_types_say(
    name: str, request: pytest.FixtureRequest
) -> None:
    path, made = FOLDER / f"{name}.schema.json", dump_pretty(build_schema(KINDS[name]))
    if request.config.getoption("--update-golden"):
        path.write_text(made, encoding="utf-8", newline="\n")
    assert path.read_text(encoding="utf-8") == made, (
        "the types changed: run python -m howsure.report.schema"
    )
    jsonschema.Draft202012Validator.check_schema(json.loads(made))


@pytest.mark.parametrize("name", READ)
def test_what_is_stored_fits(name: str) -> None:
    validate(stored(name), name)


@pytest.mark.parametrize("name", READ)
def test_a_key_of_a_later_version_is_kept(name: str) -> None:
    data = {**stored(name), "added_later": [1]}
    assert READ[name](json.dumps(data)) == data
    jsonschema.Draft202012Validator(build_schema(KINDS[name])).validate(data)
    with pytest.raises(AssertionError, match="added_later"):
        validate(data, name)


WRONG = {
    "n": "1200",
    "k": 6.5,
    "verdict": [1],
    "metrics": {"ece": {"value": True, "better": "lower"}},
    "curves": {"roc": {"labels": ["a", "b"], "points": 1, "x": [0.0, "1"], "y": []}},
    "calibration": {},
    "findings": [{"name": "a", "text": "b", "evidence": {}}],
}
SAYS = {
    "n": "n is '1200'; int is needed",
    "k": r"k is 6.5; int | None is needed",
    "verdict": r"verdict\[0\] is 1; str is needed",
    "metrics": r"metrics.ece.value is True; float | None is needed",
    "curves": r"curves.roc.x\[1\] is '1'; float | None is needed",
    "calibration": "calibration.metrics is missing|calibration.method is missing",
    "findings": r"findings\[0\].paper is missing",
}


@pytest.mark.parametrize("key", WRONG)
def test_a_wrong_value_is_refused_with_its_place_by_reader_and_schema(key: str) -> None:
    data = {**stored("report"), key: WRONG[key]}
    with pytest.raises(InputError, match=SAYS[key]):
        parse_report(json.dumps(data))
    with pytest.raises(AssertionError, match=rf"\$\.{key}"):
        validate(data, "report")


def test_a_missing_key_is_named() -> None:
    data = stored("report")
    del data["views"]["operating"]
    with pytest.raises(InputError, match=r"views.operating is missing"):
        parse_report(json.dumps(data))


class Odd(TypedDict):
    """A type that JSON has not."""

    x: complex


def test_a_type_that_json_has_not_is_refused() -> None:
    with pytest.raises(TypeError, match="complex"):
        build_schema(Odd)
