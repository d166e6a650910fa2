"""The one JSON encoder and decoder: strict text, typed reports, and frozen dataclasses bit for bit.

Text is strict: no nan, no infinity, no key twice in one object. `typed` checks what was read
against the types of `howsure.render.model`; keys that a type does not name are kept, for a later
version may have added them.

`encode` and `decode` store None, bool, int, float, str, tuples and lists, dicts with string keys,
NumPy arrays of bool, int64 or float64, and dataclasses that `find` knows by name. nan and infinity
are written as `{"float": "inf"}`, a dataclass as `{"class": name, field: value, ...}`. No code
comes from a file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
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

from howsure._core.check import Array, InputError
from howsure._core.text import json_safe

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
Find: TypeAlias = Callable[[str], type]
T = TypeVar("T")
DTYPES = {"bool": bool, "int64": int, "float64": float}
WHOLE = 2**63  # whole numbers beyond 64 bits are none of ours
ENDS = (float("inf"), float("-inf"))
SPECIAL = {"nan", "inf", "-inf"}
TAGS = {"class", "array", "float"}  # keys that a plain dict may not hold


def line(value: object) -> str:
    """JSON on one line of ASCII, as pipes and logs need it.

    >>> line({"id": "é", "score": 0.5})
    '{"id": "\\\\u00e9", "score": 0.5}'
    """
    return json_safe(_LINE.encode(value))


def canonical(value: object) -> str:
    """The one text of a JSON value, of which digests are made: sorted keys, no spaces, ASCII."""
    return json.dumps(value, allow_nan=False, sort_keys=True, separators=(",", ":"))


def pretty(value: object) -> str:
    """JSON text for people: one key per line, a list without lists and objects on one line.

    >>> print(pretty({"n": 2, "x": [1, 2]}), end="")
    {
     "n": 2,
     "x": [1, 2]
    }
    """
    return _lines(cast("Plain", value), "\n") + "\n"


def _lines(plain: Plain, start: str) -> str:
    """`start` is the line break and the indent of the line on which the value begins."""
    inner = start + " "
    if isinstance(plain, dict) and plain:
        rows = [f"{_text(key)}: {_lines(value, inner)}" for key, value in plain.items()]
        return "{" + inner + ("," + inner).join(rows) + start + "}"
    if isinstance(plain, (list, tuple)) and any(
        isinstance(value, (dict, list, tuple)) for value in plain
    ):
        return (
            "[" + inner + ("," + inner).join(_lines(value, inner) for value in plain) + start + "]"
        )
    return _text(plain)


def _text(plain: Plain) -> str:
    return json_safe(json.dumps(plain, allow_nan=False, ensure_ascii=False))


def loads(text: str | bytes) -> Plain:
    """The value of strict JSON text; raises `InputError` for nan, infinity and a key that stands
    twice in one object.

    >>> loads('{"a": [1, null]}')
    {'a': [1, None]}
    """
    try:
        found = text if isinstance(text, str) else text.decode("utf-8-sig")
        value: Plain = _QUICK.decode(found)
        return _STRICT.decode(found) if _infinite(value) else value
    except RecursionError:
        raise InputError("the JSON is nested too deeply") from None
    except UnicodeDecodeError:
        raise InputError("this is not JSON: it is not UTF-8") from None
    except json.JSONDecodeError as e:
        raise InputError(f"this is not JSON: {e}") from None


def plain(value: object) -> Plain:
    """`value` in JSON's own types: dataclasses as objects, NumPy scalars as numbers, null for nan
    and infinity.

    >>> plain({"share": np.float64(0.5), "bound": float("nan"), 3: (1, True)})
    {'share': 0.5, 'bound': None, '3': [1, True]}
    """
    if isinstance(value, np.generic):
        value = cast("object", value.item())
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(v) for key, v in cast("Mapping[object, object]", value).items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in cast("Sequence[object]", value)]
    if isinstance(value, float):
        return value if isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    raise TypeError(f"{type(value).__name__} has no place in JSON")


def typed(read: Plain, kind: type[T]) -> T:
    """Return what was read as the TypedDict `kind`; raise with the place and the value where it is
    not one.

    >>> from howsure.render.model import Fairness
    >>> typed({"fair": True, "why": "same answers"}, Fairness)["fair"]
    True
    """
    if wrong := misfit(read, kind):
        raise InputError(wrong)
    return cast("T", read)


def _constant(name: str) -> Plain:
    raise InputError(f"{name} is not JSON")


def _infinite(value: Plain) -> bool:
    """Whether some number was too large for a float; long lists of numbers are not looked at one by
    one.
    """
    if isinstance(value, float):
        return value in ENDS
    if isinstance(value, dict):
        return any(map(_infinite, value.values()))
    if not isinstance(value, list):
        return False
    kinds = set(map(type, value))
    if float in kinds and any(end in value for end in ENDS):
        return True
    return bool(kinds & {list, dict}) and any(map(_infinite, value))


def _float(text: str) -> float:
    x = float(text)
    if not isfinite(x):
        raise InputError(f"{text} is too large for a float")
    return x


def _unique(pairs: Iterable[tuple[str, Plain]]) -> dict[str, Plain]:
    out: dict[str, Plain] = {}
    for key, value in pairs:
        if key in out:
            raise InputError(f"the key {key!r} stands twice in one object")
        out[key] = value
    return out


_LINE = json.JSONEncoder(allow_nan=False)
_QUICK = json.JSONDecoder(parse_constant=_constant, object_pairs_hook=_unique)
_STRICT = json.JSONDecoder(parse_constant=_constant, parse_float=_float, object_pairs_hook=_unique)


def encode(value: object, find: Find) -> Plain:
    """`value` in JSON's own types; `find` maps the name of a class that may be stored to the class."""
    if isinstance(value, np.generic):
        return encode(cast("object", value.item()), find)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, np.ndarray):
        return _encode_array(cast("Array", value))
    if isinstance(value, (tuple, list)):
        return [encode(v, find) for v in cast("list[object]", value)]
    if isinstance(value, dict):
        return _encode_dict(cast("dict[object, object]", value), find)
    return _encode_dataclass(value, find)


def decode(plain: Plain, find: Find) -> object:
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


def _number(x: float) -> Plain:
    return x if isfinite(x) else {"float": str(x)}


def _decode_special(plain: dict[str, Plain]) -> float:
    text = plain["float"] if plain.keys() == {"float"} else None
    if not isinstance(text, str) or text not in SPECIAL:
        raise InputError(f"{plain!r} is not a float")
    return float(text)


def _encode_dict(value: Mapping[object, object], find: Find) -> dict[str, Plain]:
    out: dict[str, Plain] = {}
    for key, v in value.items():
        if not isinstance(key, str) or key in TAGS:
            raise InputError(
                f"a dict to store needs string keys other than {sorted(TAGS)}; got {list(value)}."
            )
        out[key] = encode(v, find)
    return out


def _encode_array(a: Array) -> dict[str, Plain]:
    if a.dtype.name not in DTYPES:
        raise InputError(
            f"an array of dtype {a.dtype} cannot be stored; convert it to one of {list(DTYPES)}."
        )
    flat: list[Plain] = a.ravel().tolist()
    if a.dtype.kind == "f" and not np.isfinite(a).all():
        flat = [_number(float(x)) for x in a.ravel()]
    return {"array": flat, "dtype": a.dtype.name, "shape": list(a.shape)}


def _decode_array(plain: dict[str, Plain]) -> Array:
    dtype, shape, flat = plain.get("dtype"), plain.get("shape"), plain["array"]
    if (
        plain.keys() != {"array", "dtype", "shape"}
        or not isinstance(dtype, str)
        or dtype not in DTYPES
    ):
        raise InputError("an array needs the keys array, dtype and shape")
    sizes = [s for s in shape if type(s) is int and s >= 0] if isinstance(shape, list) else None
    if sizes is None or sizes != shape:
        raise InputError(f"{shape!r} is not the shape of an array")
    if not isinstance(flat, list) or len(flat) != np.prod(sizes, dtype=object):
        raise InputError(f"an array of shape {tuple(sizes)} does not have that many numbers")
    numbers: list[object] = list(flat)
    if dict in set(map(type, flat)):
        numbers = [_decode_special(v) if isinstance(v, dict) else v for v in flat]
    if not set(map(type, numbers)) <= {DTYPES[dtype]}:
        raise InputError(f"an array of {dtype} holds something else")
    try:
        out = np.array(numbers, dtype=dtype).reshape(sizes)
    except OverflowError:
        raise InputError("an array holds a whole number beyond 64 bits") from None
    out.flags.writeable = False
    return out


def _encode_dataclass(value: object, find: Find) -> dict[str, Plain]:
    name = type(value).__name__
    if not is_dataclass(value) or find(name) is not type(value):
        raise InputError(f"a value of type {name} cannot be stored.")
    return {
        "class": name,
        **{f.name: encode(getattr(value, f.name), find) for f in fields(value) if f.init},
    }


def _decode_dataclass(plain: dict[str, Plain], find: Find) -> object:
    """A field that a later version added may be missing; it takes its default."""
    name = plain["class"]
    if not isinstance(name, str):
        raise InputError(f"{name!r} is not the name of a class")
    cls = find(name)
    known = {f.name: f for f in fields(cls) if f.init}
    values = {key: decode(v, find) for key, v in plain.items() if key != "class"}
    odd = sorted(
        values.keys() - known.keys()
        | {key for key in known.keys() - values.keys() if _needed(known[key])}
    )
    if odd:
        raise InputError(f"{name} has other fields than these: {', '.join(odd)} missing or unknown")
    hints = _hints(cls)
    for key, v in values.items():
        if misfit(v, hints[key]):
            raise InputError(f"{name}.{key} is {_short(v)}, which is not {hints[key]}")
    return cls(**values)


def _needed(field: Field[object]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def misfit(value: object, hint: Any, where: str = "") -> str:
    """Where and why `value` is not what an annotation says; empty where it is.

    >>> misfit({"a": [1.0, "x"]}, dict[str, list[float]], "curves")
    "curves.a[1] is 'x'; float is needed"
    """
    hint = _spelled_out(hint)
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return ""
    if origin is NotRequired:
        return misfit(value, args[0], where)
    if origin in (Union, UnionType):
        return _misfit_union(value, hint, where)
    if is_typed_dict(hint):
        return _misfit_keys(value, hint, where)
    if origin in (tuple, list) and isinstance(value, (tuple, list)):
        return _misfit_items(cast("list[object]", value), hint, where)
    if origin is dict and isinstance(value, dict):
        each = cast("dict[str, object]", value).items()
        return next(filter(None, (misfit(v, args[1], f"{where}.{key}") for key, v in each)), "")
    return "" if _is_a(value, hint) else _says(value, hint, where)


def _spelled_out(hint: Any) -> Any:
    """What an alias with parameters stands for: `NDArray[np.float64]` is one since NumPy 2.5."""
    alias = get_origin(hint)
    return alias.__value__[get_args(hint)] if hasattr(alias, "__value__") else hint


def _misfit_union(value: object, hint: Any, where: str) -> str:
    """An object that fits none of the alternatives is held against the last one that is an object."""
    found = {arg: misfit(value, arg, where) for arg in get_args(hint)}
    if "" in found.values():
        return ""
    says = [_says(value, hint, where), *(text for arg, text in found.items() if is_typed_dict(arg))]
    return says[-1] if isinstance(value, dict) else says[0]


def _misfit_keys(value: object, kind: type, where: str) -> str:
    """Of a TypedDict: keys that it does not name may be there."""
    if not isinstance(value, dict):
        return _says(value, kind, where)
    data = cast("dict[str, object]", value)
    for key, hint in _hints(kind).items():
        here = f"{where}.{key}" if where else key
        if key in data:
            if found := misfit(data[key], hint, here):
                return found
        elif get_origin(hint) is not NotRequired:
            return f"{here} is missing"
    return ""


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _misfit_items(value: list[object], hint: Any, where: str) -> str:
    args = get_args(hint)
    if len(args) == 1 or args[1:] == (...,):
        if (kinds := set(map(type, value))) <= _plain_types(args[0]) and int not in kinds:
            return ""
        args = args[:1] * len(value)
    if len(args) != len(value):
        return _says(value, hint, where)
    pairs = zip(value, args, strict=True)
    return next(
        filter(None, (misfit(v, arg, f"{where}[{i}]") for i, (v, arg) in enumerate(pairs))), ""
    )


@cache
def _plain_types(hint: Any) -> frozenset[type]:
    """The types of values that need no closer look: a column of numbers is long."""
    kinds = (
        frozenset(get_args(hint)) if get_origin(hint) in (Union, UnionType) else frozenset((hint,))
    )
    kinds &= {bool, int, float, str, NoneType}
    return kinds | {int} if float in kinds else kinds


@cache
def _role(protocol: type) -> tuple[str, ...]:
    """What a protocol asks for."""
    return tuple(name for name in vars(protocol) if name == "__call__" or not name.startswith("_"))


def _says(value: object, hint: Any, where: str) -> str:
    needed = hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
    return f"{where or 'it'} is {_short(value)}; {needed} is needed"


def _is_a(value: object, cls: Any) -> bool:
    if cls is None or cls is NoneType:
        return value is None
    if get_origin(cls) is Literal:
        return any(type(value) is type(arg) and value == arg for arg in get_args(cls))
    if get_origin(cls) is np.ndarray:
        dtype = get_args(get_args(cls)[1])[0]
        return isinstance(value, np.ndarray) and (
            dtype is Any or cast("Array", value).dtype == dtype
        )
    if cls is float or cls is int:
        return (type(value) is float and cls is float) or (
            type(value) is int and -WHOLE <= value < WHOLE
        )
    if cls in (bool, str):
        return type(value) is cls
    if getattr(
        cls, "_is_protocol", False
    ):  # its own fields were checked; here it must be able to play the role
        return is_dataclass(value) and all(hasattr(value, name) for name in _role(cls))
    return isinstance(value, get_origin(cls) or cls)
