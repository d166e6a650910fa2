"""Frozen dataclass ↔ strict JSON: bit-exact floats, arrays with dtype and shape, no code from a file.

What can be stored: None, bool, int, float, str, tuples and lists, dicts with string keys, NumPy arrays of
bool, int64 or float64, and dataclasses that `find` knows by name. JSON itself has no nan and no infinity:
they are written as `{"float": "inf"}`. A dataclass is `{"class": name, field: value, ...}`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

import numpy as np

from howsure._core.check import Array, InputError

Find: TypeAlias = Callable[[str], type]
DTYPES = {"bool": bool, "int64": int, "float64": float}
SPECIAL = {"nan", "inf", "-inf"}
TAGS = {"class", "array", "float"}  # keys that a plain dict may not hold


def encode(value: Any, find: Find) -> Any:
    """`value` in JSON's own types; `find` maps the name of a class that may be stored to the class."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return _number(float(value))
    if isinstance(value, np.ndarray):
        return _encode_array(value)
    if isinstance(value, (tuple, list)):
        return [encode(v, find) for v in value]
    if isinstance(value, dict):
        return _encode_dict(value, find)
    return _encode_dataclass(value, find)


def decode(plain: Any, find: Find) -> Any:
    """The value that `encode` wrote; anything else is an error. Lists come back as tuples."""
    if isinstance(plain, list):
        return tuple(decode(v, find) for v in plain)
    if not isinstance(plain, dict):
        return plain
    if "class" in plain:
        return _decode_dataclass(plain, find)
    if "array" in plain:
        return _decode_array(plain)
    if "float" in plain:
        return _decode_special(plain)
    return {key: decode(v, find) for key, v in plain.items()}


def canonical(plain: Any) -> str:
    """The one text of a JSON value that a digest is made of: sorted keys, no spaces."""
    return json.dumps(plain, allow_nan=False, sort_keys=True, separators=(",", ":"))


def pretty(plain: Any, indent: str = "") -> str:
    """JSON text for people: one key per line, a list without objects on one line."""
    if not plain or not isinstance(plain, dict | list):
        return json.dumps(plain, allow_nan=False, ensure_ascii=False)
    if isinstance(plain, list) and not any(isinstance(v, dict | list) for v in plain):
        return json.dumps(plain, allow_nan=False, ensure_ascii=False)
    inner = indent + "  "
    if isinstance(plain, dict):
        lines = [f"{inner}{json.dumps(key, ensure_ascii=False)}: {pretty(v, inner)}" for key, v in plain.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + pretty(v, inner) for v in plain) + f"\n{indent}]"


def loads(text: str) -> Any:
    """Strict JSON: no nan, no infinity, no key twice in one object."""
    try:
        return json.loads(text, parse_constant=_constant, parse_float=_float, object_pairs_hook=_unique)
    except RecursionError:
        raise InputError("the JSON is nested too deeply") from None


def _constant(name: str) -> Any:
    raise InputError(f"{name} is not JSON")


def _float(text: str) -> float:
    x = float(text)
    if not isfinite(x):
        raise InputError(f"{text} is too large for a float")
    return x


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in pairs:
        if key in out:
            raise InputError(f"the key {key!r} stands twice in one object")
        out[key] = value
    return out


def _number(x: float) -> Any:
    return x if isfinite(x) else {"float": str(x)}


def _decode_special(plain: dict[str, Any]) -> float:
    if plain.keys() != {"float"} or plain["float"] not in SPECIAL:
        raise InputError(f"{plain!r} is not a float")
    return float(plain["float"])


def _encode_dict(value: dict[Any, Any], find: Find) -> dict[str, Any]:
    if not all(isinstance(key, str) for key in value) or TAGS & value.keys():
        raise InputError(f"a dict to store needs string keys other than {sorted(TAGS)}; got {list(value)}.")
    return {key: encode(v, find) for key, v in value.items()}


def _encode_array(a: Array) -> dict[str, Any]:
    if a.dtype.name not in DTYPES:
        raise InputError(f"an array of dtype {a.dtype} cannot be stored; convert it to one of {list(DTYPES)}.")
    flat = a.ravel().tolist()
    if a.dtype.kind == "f" and not np.isfinite(a).all():
        flat = [_number(x) for x in flat]
    return {"array": flat, "dtype": a.dtype.name, "shape": list(a.shape)}


def _decode_array(plain: dict[str, Any]) -> Array:
    if plain.keys() != {"array", "dtype", "shape"} or plain["dtype"] not in DTYPES:
        raise InputError("an array needs the keys array, dtype and shape")
    kind, shape = DTYPES[plain["dtype"]], plain["shape"]
    if not isinstance(shape, list) or not all(type(s) is int and s >= 0 for s in shape):
        raise InputError(f"{shape!r} is not the shape of an array")
    if not isinstance(plain["array"], list) or len(plain["array"]) != np.prod(shape, dtype=object):
        raise InputError(f"an array of shape {tuple(shape)} does not have that many numbers")
    flat = [_decode_special(v) if isinstance(v, dict) else v for v in plain["array"]]
    if not all(type(v) is kind for v in flat):
        raise InputError(f"an array of {plain['dtype']} holds something else")
    try:
        out = np.array(flat, dtype=plain["dtype"]).reshape(shape)
    except OverflowError:
        raise InputError("an array holds a whole number beyond 64 bits") from None
    out.flags.writeable = False
    return out


def _encode_dataclass(value: Any, find: Find) -> dict[str, Any]:
    name = type(value).__name__
    if not is_dataclass(value) or find(name) is not type(value):
        raise InputError(f"a value of type {name} cannot be stored.")
    return {"class": name} | {f.name: encode(getattr(value, f.name), find) for f in fields(value) if f.init}


def _decode_dataclass(plain: dict[str, Any], find: Find) -> Any:
    name = plain["class"]
    if not isinstance(name, str):
        raise InputError(f"{name!r} is not the name of a class")
    cls = find(name)
    known = {f.name for f in fields(cls) if f.init}
    if plain.keys() - {"class"} != known:
        odd = sorted((plain.keys() - {"class"}) ^ known)
        raise InputError(f"{name} has other fields than these: {', '.join(odd)} missing or unknown")
    values = {key: decode(v, find) for key, v in plain.items() if key != "class"}
    hints = get_type_hints(cls)
    for key, v in values.items():
        if not fits(v, hints[key]):
            raise InputError(f"{name}.{key} is {_short(v)}, which is not {hints[key]}")
    return cls(**values)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def fits(value: Any, hint: Any) -> bool:
    """Whether a decoded `value` is what the annotation `hint` of a dataclass field says."""
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(fits(value, arg) for arg in args)
    if origin is Literal:
        return any(type(value) is type(arg) and value == arg for arg in args)
    if origin in (tuple, list):
        return isinstance(value, tuple) and _items_fit(value, args)
    if origin is dict:
        return isinstance(value, dict) and all(fits(v, args[1]) for v in value.values())
    if origin is np.ndarray:
        dtype = get_args(args[1])[0]
        return isinstance(value, np.ndarray) and (dtype is Any or value.dtype == dtype)
    return _is_a(value, hint)


def _items_fit(value: tuple[Any, ...], args: tuple[Any, ...]) -> bool:
    if len(args) == 1 or args[1:] == (...,):
        return all(fits(v, args[0]) for v in value)
    return len(value) == len(args) and all(fits(v, arg) for v, arg in zip(value, args, strict=True))


def _is_a(value: Any, cls: Any) -> bool:
    if cls is None or cls is NoneType:
        return value is None
    if cls is float:
        return type(value) in (float, int)
    if cls in (bool, int, str):
        return type(value) is cls
    if getattr(cls, "_is_protocol", False):  # any stored dataclass may play a role; its own fields were checked
        return is_dataclass(value)
    return isinstance(value, cls)
