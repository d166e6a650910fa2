"""The one JSON encoder and decoder: strict text, typed reports, and frozen dataclasses bit for bit.

Text is strict: no nan, no infinity, no key twice in one object. `check_typed` checks what was read
against the types of a report; keys that a type does not name are kept, for a later version may have
added them.

`encode` and `decode` store None, bool, int, float, str, tuples and lists, dicts with string keys,
NumPy arrays of bool, int64 or float64, and dataclasses that `find` knows by name. nan and infinity
are written as `{"float": "inf"}`, a dataclass as `{"class": name, field: value, ...}`. No code
comes from a file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    NotRequired,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)
from typing import is_typeddict as is_typed_dict

import numpy as np

from howsure._core.checks import Array, InputError, is_dict, is_mapping, is_row
from howsure._core.text import escape_json

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
Find: TypeAlias = Callable[[str], type]
T = TypeVar("T")
ARRAY_TYPES = {"bool": bool, "int64": int, "float64": float}
INT64_END = 2**63  # whole numbers beyond 64 bits are none of ours
INFINITIES = (float("inf"), float("-inf"))
SPECIAL_FLOATS = {"nan", "inf", "-inf"}
TAGS = {"class", "array", "float"}  # keys that a plain dict may not hold
SHOWN_VALUE_LETTERS = 60  # of a value that an error quotes


def dump_line(value: object) -> str:
    """JSON on one line of ASCII, as pipes and logs need it.

    >>> dump_line({"id": "é", "score": 0.5})
    '{"id": "\\\\u00e9", "score": 0.5}'
    """
    return escape_json(_LINE_ENCODER.encode(value))


def dump_canonical(value: object) -> str:
    """The one text of a JSON value, of which digests are made: sorted keys, no spaces, ASCII."""
    return json.dumps(value, allow_nan=False, sort_keys=True, separators=(",", ":"))


def dump_pretty(value: object) -> str:
    """JSON text for people: one key per line, a list without lists and objects on one line.

    >>> print(dump_pretty({"n": 2, "x": [1, 2]}), end="")
    {
     "n": 2,
     "x": [1, 2]
    }
    """
    return _indent(cast("Plain", value), "\n") + "\n"


def _indent(value: Plain, start: str) -> str:
    """`start` is the line break and the indent of the line on which the value begins."""
    inner = start + " "
    if isinstance(value, dict) and value:
        rows = [f"{_dump_text(key)}: {_indent(item, inner)}" for key, item in value.items()]
        return "{" + inner + ("," + inner).join(rows) + start + "}"
    if isinstance(value, (list, tuple)):
        nested = any(isinstance(item, (dict, list, tuple)) for item in value)
        if nested:
            rows = [_indent(item, inner) for item in value]
            return "[" + inner + ("," + inner).join(rows) + start + "]"
    return _dump_text(value)


def _dump_text(value: Plain) -> str:
    return escape_json(json.dumps(value, allow_nan=False, ensure_ascii=False))


def loads(text: str | bytes) -> Plain:
    """The value of strict JSON text; raises `InputError` for nan, infinity and a key that stands
    twice in one object.

    >>> loads('{"a": [1, null]}')
    {'a': [1, None]}
    """
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8-sig")
        value: Plain = _DECODER.decode(text)
        # Checking each float while it is parsed is slow: only if one is infinite, to name it.
        if _has_infinity(value):
            return _FLOAT_CHECKING_DECODER.decode(text)
        return value
    except RecursionError:
        raise InputError("the JSON is nested too deeply") from None
    except UnicodeDecodeError:
        raise InputError("this is not JSON: it is not UTF-8") from None
    except InputError:
        raise
    except ValueError as e:  # also a whole number with more digits than Python converts
        raise InputError(f"this is not JSON: {str(e).partition(';')[0]}") from None


def _has_infinity(value: Plain) -> bool:
    """Whether some number was too large for a float; long lists of numbers are not looked at one by
    one.
    """
    if isinstance(value, float):
        return value in INFINITIES
    if isinstance(value, dict):
        return any(map(_has_infinity, value.values()))
    if not isinstance(value, list):
        return False
    kinds = set(map(type, value))
    if float in kinds and any(infinity in value for infinity in INFINITIES):
        return True
    return bool(kinds & {list, dict}) and any(map(_has_infinity, value))


def _refuse_constant(name: str) -> Plain:
    raise InputError(f"{name} is not JSON")


def _parse_finite(text: str) -> float:
    x = float(text)
    if not isfinite(x):
        raise InputError(f"{text} is too large for a float")
    return x


def _build_object(pairs: Iterable[tuple[str, Plain]]) -> dict[str, Plain]:
    built: dict[str, Plain] = {}
    for key, value in pairs:
        if key in built:
            raise InputError(f"the key {key!r} stands twice in one object")
        built[key] = value
    return built


_LINE_ENCODER = json.JSONEncoder(allow_nan=False)
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_build_object)
_FLOAT_CHECKING_DECODER = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_float=_parse_finite, object_pairs_hook=_build_object
)


def to_plain(value: object) -> Plain:
    """`value` in JSON's own types: dataclasses as objects, NumPy scalars as numbers, null for nan
    and infinity.

    >>> to_plain({"share": np.float64(0.5), "bound": float("nan"), 3: (1, True)})
    {'share': 0.5, 'bound': None, '3': [1, True]}
    """
    if isinstance(value, np.generic):
        value = cast("object", value.item())
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
    if is_mapping(value):
        return {str(key): to_plain(item) for key, item in value.items()}
    if is_row(value):
        return [to_plain(item) for item in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    raise TypeError(f"{type(value).__name__} has no place in JSON")


# Values of frozen dataclasses, bit for bit.


def encode(value: object, find: Find) -> Plain:
    """`value` in JSON's own types; `find` maps the name of a class that may be stored to the class."""
    if isinstance(value, np.generic):
        return encode(cast("object", value.item()), find)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return _encode_float(value)
    if isinstance(value, np.ndarray):
        a = cast("Array", value)
        if a.dtype.name not in ARRAY_TYPES:
            raise InputError(
                f"an array of dtype {a.dtype} cannot be stored; convert it to one of {list(ARRAY_TYPES)}."
            )
        flat: list[Plain] = a.ravel().tolist()
        if a.dtype.kind == "f" and not np.isfinite(a).all():
            flat = [_encode_float(float(x)) for x in a.ravel()]
        return {"array": flat, "dtype": a.dtype.name, "shape": list(a.shape)}
    if is_row(value):
        return [encode(item, find) for item in value]
    encoded: dict[str, Plain] = {}
    if is_mapping(value):
        for key, item in value.items():
            if not isinstance(key, str) or key in TAGS:
                raise InputError(
                    f"a dict to store needs string keys other than {sorted(TAGS)}; got {list(value)}."
                )
            encoded[key] = encode(item, find)
        return encoded
    name = type(value).__name__
    if not is_dataclass(value) or find(name) is not type(value):
        raise InputError(f"a value of type {name} cannot be stored.")
    encoded["class"] = name
    for field in fields(value):
        if field.init:
            encoded[field.name] = encode(getattr(value, field.name), find)
    return encoded


def _encode_float(x: float) -> Plain:
    return x if isfinite(x) else {"float": str(x)}


def decode(plain: Plain, find: Find) -> object:
    """The value that `encode` wrote; anything else is an error. Lists come back as tuples."""
    if isinstance(plain, list):
        return tuple(decode(item, find) for item in plain)
    if not isinstance(plain, dict):
        return plain
    if "class" in plain:
        return _decode_dataclass(plain, find)
    if "array" in plain:
        return _decode_array(plain)
    if "float" in plain:
        return _decode_special_float(plain)
    return {key: decode(item, find) for key, item in plain.items()}


def _decode_special_float(plain: dict[str, Plain]) -> float:
    text = None
    if plain.keys() == {"float"}:
        text = plain["float"]
    if not isinstance(text, str) or text not in SPECIAL_FLOATS:
        raise InputError(f"{plain!r} is not a float")
    return float(text)


def _decode_array(plain: dict[str, Plain]) -> Array:
    dtype, shape, flat = plain.get("dtype"), plain.get("shape"), plain["array"]
    wrong_keys = plain.keys() != {"array", "dtype", "shape"}
    if wrong_keys or not isinstance(dtype, str) or dtype not in ARRAY_TYPES:
        raise InputError("an array needs the keys array, dtype and shape")
    sizes: list[int] = []
    if isinstance(shape, list):
        sizes = [size for size in shape if type(size) is int and size >= 0]
    if sizes != shape:
        raise InputError(f"{shape!r} is not the shape of an array")
    if not isinstance(flat, list) or len(flat) != np.prod(sizes, dtype=object):
        raise InputError(f"an array of shape {tuple(sizes)} does not have that many numbers")
    numbers: list[object] = list(flat)
    if dict in set(map(type, flat)):
        numbers = [_decode_special_float(x) if isinstance(x, dict) else x for x in flat]
    if not set(map(type, numbers)) <= {ARRAY_TYPES[dtype]}:
        raise InputError(f"an array of {dtype} holds something else")
    try:
        a = np.array(numbers, dtype=dtype).reshape(sizes)
    except OverflowError:
        raise InputError("an array holds a whole number beyond 64 bits") from None
    a.flags.writeable = False
    return a


def _decode_dataclass(plain: dict[str, Plain], find: Find) -> object:
    name = plain["class"]
    if not isinstance(name, str):
        raise InputError(f"{name!r} is not the name of a class")
    cls = find(name)
    values = {key: decode(item, find) for key, item in plain.items() if key != "class"}
    known: set[str] = set()
    missing: set[str] = set()
    for field in fields(cls):
        if not field.init:
            continue
        known.add(field.name)
        # A field that a later version added may be missing; it takes its default.
        has_default = field.default is not MISSING or field.default_factory is not MISSING
        if field.name not in values and not has_default:
            missing.add(field.name)
    odd = sorted(missing | (values.keys() - known))
    if odd:
        raise InputError(f"{name} has other fields than these: {', '.join(odd)} missing or unknown")
    hints = _read_hints(cls)
    for key, value in values.items():
        if explain_misfit(value, hints[key]):
            raise InputError(f"{name}.{key} is {_quote(value)}, which is not {hints[key]}")
    return cls(**values)


# Values against annotations.


def check_typed(read: Plain, kind: type[T]) -> T:
    """Return what was read as the TypedDict `kind`; raise with the place and the value where it is
    not one.

    >>> from howsure.report.report_types import Fairness
    >>> check_typed({"fair": True, "why": "same answers"}, Fairness)["fair"]
    True
    """
    if wrong := explain_misfit(read, kind):
        raise InputError(wrong)
    return cast("T", read)


def explain_misfit(value: object, hint: Any, where: str = "") -> str:
    """Where and why `value` is not what an annotation says; empty where it is.

    >>> explain_misfit({"a": [1.0, "x"]}, dict[str, list[float]], "curves")
    "curves.a[1] is 'x'; float is needed"
    """
    alias = get_origin(hint)
    if hasattr(alias, "__value__"):  # `NDArray[np.float64]` is such an alias since NumPy 2.5
        hint = alias.__value__[get_args(hint)]
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return ""
    if origin is NotRequired:
        return explain_misfit(value, args[0], where)
    if origin in (Union, UnionType):
        explanation = ""
        for arg in args:
            wrong = explain_misfit(value, arg, where)
            if not wrong:
                return ""
            # An object that fits no alternative is held against the last that is an object.
            if is_dict(value) and is_typed_dict(arg):
                explanation = wrong
        return explanation or _say_needed(value, hint, where)
    if is_typed_dict(hint):
        if not is_dict(value):
            return _say_needed(value, hint, where)
        # Keys that it does not name may be there.
        for key, of_key in _read_hints(hint).items():
            here = f"{where}.{key}" if where else key
            if key in value:
                if wrong := explain_misfit(value[key], of_key, here):
                    return wrong
            elif get_origin(of_key) is not NotRequired:
                return f"{here} is missing"
        return ""
    if origin in (tuple, list) and is_row(value):
        return _explain_items(value, hint, where)
    if origin is dict and is_dict(value):
        for key, item in value.items():
            if wrong := explain_misfit(item, args[1], f"{where}.{key}"):
                return wrong
        return ""
    return "" if _fits(value, hint) else _say_needed(value, hint, where)


def _explain_items(value: Sequence[object], hint: Any, where: str) -> str:
    args = get_args(hint)
    if len(args) == 1 or args[1:] == (...,):
        # A column of numbers is long: its types tell enough, but for whole numbers beyond 64 bits.
        kinds = set(map(type, value))
        if kinds <= _list_plain_types(args[0]) and int not in kinds:
            return ""
        args = args[:1] * len(value)
    if len(args) != len(value):
        return _say_needed(value, hint, where)
    for i, (item, arg) in enumerate(zip(value, args, strict=True)):
        if wrong := explain_misfit(item, arg, f"{where}[{i}]"):
            return wrong
    return ""


@cache
def _read_hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


@cache
def _list_plain_types(hint: Any) -> frozenset[type]:
    """The types of values that need no closer look."""
    kinds = frozenset((hint,))
    if get_origin(hint) in (Union, UnionType):
        kinds = frozenset(get_args(hint))
    kinds &= {bool, int, float, str, NoneType}
    return kinds | {int} if float in kinds else kinds


def _fits(value: object, cls: Any) -> bool:
    """Whether a value is of a type that has no parts."""
    origin = get_origin(cls)
    if cls is None or cls is NoneType:
        return value is None
    if origin is Literal:
        return any(type(value) is type(arg) and value == arg for arg in get_args(cls))
    if origin is np.ndarray:
        dtype = get_args(get_args(cls)[1])[0]
        if not isinstance(value, np.ndarray):
            return False
        return dtype is Any or cast("Array", value).dtype == dtype
    if type(value) is int and cls in (int, float):
        return -INT64_END <= value < INT64_END
    if cls in (bool, int, float, str):
        return type(value) is cls
    if getattr(cls, "_is_protocol", False):
        # Its own fields were checked; here it must have what the protocol asks for.
        members = vars(cast("type", cls))
        asked = [name for name in members if name == "__call__" or not name.startswith("_")]
        return is_dataclass(value) and all(hasattr(value, name) for name in asked)
    return isinstance(value, origin or cls)


def _say_needed(value: object, hint: Any, where: str) -> str:
    needed = hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
    return f"{where or 'it'} is {_quote(value)}; {needed} is needed"


def _quote(value: object) -> str:
    text = repr(value)
    if len(text) <= SHOWN_VALUE_LETTERS:
        return text
    return text[: SHOWN_VALUE_LETTERS - 3] + "..."
