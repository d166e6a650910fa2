"""The published schemas, and how a test holds what it made against them."""

from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from howsure.report.schema import PUBLISHED_TYPES as KINDS
from howsure.report.schema import build_schema

FOLDER = Path(__file__).parents[1] / "docs" / "schema"


@cache
def _validator(name: str) -> Any:
    return jsonschema.Draft202012Validator(build_schema(KINDS[name], closed=True))


def validate(data: object, name: str) -> None:
    """Fails where the data lack a key, have one that the types do not name, or hold a value of
    another type.
    """
    problem = jsonschema.exceptions.best_match(_validator(name).iter_errors(_short(data)))
    assert problem is None, f"{problem.json_path}: {problem.message[:300]}"


def _short(data: Any) -> Any:
    """The same with one number of each type in a column of numbers: schemas look at types only,
    columns are long.
    """
    if isinstance(data, dict):
        return {key: _short(value) for key, value in data.items()}
    if isinstance(data, list):
        plain = all(isinstance(value, float | int | None) for value in data)
        return (
            [*{type(value): value for value in data}.values()]
            if plain
            else [_short(value) for value in data]
        )
    return data
