"""The JSON schema of what we write, made from its types."""

from __future__ import annotations

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

from howsure._core.json import Plain

DIALECT = "https://json-schema.org/draft/2020-12/schema"
NAMES = {float: "number", int: "integer", str: "string", bool: "boolean", NoneType: "null"}
Schema: TypeAlias = dict[str, Plain]


def schema_of(kind: type, *, closed: bool = False) -> Schema:
    """The JSON schema (2020-12) of a TypedDict; `closed` refuses keys that it does not name.

    Docstrings become descriptions. Published schemas are open, because a later version may add
    keys.

    >>> from howsure.render.model import Fairness
    >>> found = schema_of(Fairness)
    >>> found["properties"], found["required"]
    ({'fair': {'type': 'boolean'}, 'why': {'type': 'string'}}, ['fair', 'why'])
    """
    defined: Schema = {}
    top = _object(kind, defined, closed)
    return {
        "$schema": DIALECT,
        "title": f"howsure {kind.__name__}",
        **top,
        "$defs": dict(sorted(defined.items())),
    }


def _object(kind: type, defined: Schema, closed: bool) -> Schema:
    """A TypedDict; the types that it refers to go into `defined`."""
    hints = get_type_hints(kind, include_extras=True)
    required: list[Plain] = [
        key for key, hint in hints.items() if get_origin(hint) is not NotRequired
    ]
    return {
        "type": "object",
        "description": " ".join((kind.__doc__ or "").split()),
        "properties": {key: _of(hint, defined, closed) for key, hint in hints.items()},
        "required": required,
        **({"additionalProperties": False} if closed else {}),
    }


def _of(hint: Any, defined: Schema, closed: bool) -> Schema:
    origin, args = get_origin(hint), get_args(hint)
    if hint in NAMES:
        return {"type": NAMES[hint]}
    if is_typeddict(hint):
        if hint.__name__ not in defined:
            defined[hint.__name__] = _object(hint, defined, closed)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    if origin in (Union, UnionType):
        return _any_of([_of(arg, defined, closed) for arg in args])
    if origin is NotRequired:
        return _of(args[0], defined, closed)
    if origin is list:
        return {"type": "array", "items": _of(args[0], defined, closed)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of(args[1], defined, closed)}
    if origin is Literal:
        return {"enum": list(args)}
    raise TypeError(f"{hint} has no JSON schema")


def _any_of(found: list[Schema]) -> Schema:
    """Plain types side by side, others as alternatives."""
    if all(schema.keys() == {"type"} for schema in found):
        return {"type": [schema["type"] for schema in found]}
    return {"anyOf": [*found]}
