"""The JSON schemas of what howsure writes, made from its types.

`python -m howsure.report.schema [FOLDER]` writes them, into `docs/schema` unless told otherwise.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    NotRequired,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from howsure._core.file_access import write_text
from howsure._core.strict_json import Plain, dump_pretty
from howsure.policies.deployment import PlanData
from howsure.report.report_types import CalibrationData, ComparisonData, MonitorData, ReportData

PUBLISHED_TYPES: dict[str, type] = {
    "report": ReportData,
    "comparison": ComparisonData,
    "calibration": CalibrationData,
    "monitor": MonitorData,
    "plan": PlanData,
}
SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"
JSON_TYPES = {float: "number", int: "integer", str: "string", bool: "boolean", NoneType: "null"}
Schema: TypeAlias = dict[str, Plain]


def build_schema(kind: type, *, closed: bool = False) -> Schema:
    """The JSON schema (2020-12) of a TypedDict; `closed` refuses keys that it does not name.

    Docstrings become descriptions. Published schemas are open, because a later version may add
    keys.

    >>> from howsure.report.report_types import Fairness
    >>> schema = build_schema(Fairness)
    >>> schema["properties"], schema["required"]
    ({'fair': {'type': 'boolean'}, 'why': {'type': 'string'}}, ['fair', 'why'])
    """
    definitions: Schema = {}
    top = _build_object(kind, definitions, closed)
    return {
        "$schema": SCHEMA_DIALECT,
        "title": f"howsure {kind.__name__}",
        **top,
        "$defs": dict(sorted(definitions.items())),
    }


def _build_object(kind: type, definitions: Schema, closed: bool) -> Schema:
    """A TypedDict; the types that it refers to go into `definitions`."""
    properties: Schema = {}
    required: list[Plain] = []
    for key, hint in get_type_hints(kind, include_extras=True).items():
        properties[key] = _build_type(hint, definitions, closed)
        if get_origin(hint) is not NotRequired:
            required.append(key)
    schema: Schema = {
        "type": "object",
        "description": " ".join((kind.__doc__ or "").split()),
        "properties": properties,
        "required": required,
    }
    if closed:
        schema["additionalProperties"] = False
    return schema


def _build_type(hint: Any, definitions: Schema, closed: bool) -> Schema:
    origin, args = get_origin(hint), get_args(hint)
    if hint in JSON_TYPES:
        return {"type": JSON_TYPES[hint]}
    if is_typeddict(hint):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = _build_object(hint, definitions, closed)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    if origin in (Union, UnionType):
        options = [_build_type(arg, definitions, closed) for arg in args]
        if all(option.keys() == {"type"} for option in options):
            return {"type": [option["type"] for option in options]}
        return {"anyOf": [*options]}
    if origin is NotRequired:
        return _build_type(args[0], definitions, closed)
    if origin is list:
        return {"type": "array", "items": _build_type(args[0], definitions, closed)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _build_type(args[1], definitions, closed)}
    if origin is Literal:
        return {"enum": list(args)}
    raise TypeError(f"{hint} has no JSON schema")


def write_schemas(folder: Path) -> None:
    """Write the schema of every published type into a folder."""
    for name, kind in PUBLISHED_TYPES.items():
        write_text(folder / f"{name}.schema.json", dump_pretty(build_schema(kind)))


if __name__ == "__main__":
    write_schemas(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/schema"))
