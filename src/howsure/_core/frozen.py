"""Frozen dataclasses that cost a third to define, for a command defines a hundred before it does
anything.

`dataclass(frozen=True)` compiles six methods for each class. Here the first, `__init__`, is its
own; the others are the same few functions for all classes. `fields`, `replace` and `asdict` work as
ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, FrozenInstanceError, dataclass, field
from typing import Any, ClassVar, Protocol, TypeVar, dataclass_transform, overload

C = TypeVar("C")


class _Record(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


def _set_once(self: _Record, name: str, value: object) -> None:
    """`__init__` sets each field once; nothing is set after it."""
    if name in self.__dict__ or name not in self.__dataclass_fields__:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    self.__dict__[name] = value


def _refuse_delete(self: _Record, name: str) -> None:  # noqa: ARG001
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _show_fields(self: _Record) -> str:
    shown: list[str] = []
    for name, f in self.__dataclass_fields__.items():
        if f.repr:
            shown.append(f"{name}={getattr(self, name)!r}")
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _list_values(self: _Record) -> tuple[object, ...]:
    return tuple(getattr(self, name) for name in self.__dataclass_fields__)


def _compare_fields(self: _Record, other: _Record) -> bool:
    if type(self) is not type(other):
        return NotImplemented
    return _list_values(self) == _list_values(other)


def _hash_fields(self: _Record) -> int:
    return hash(_list_values(self))


SHARED_METHODS = {"__setattr__": _set_once, "__delattr__": _refuse_delete, "__repr__": _show_fields}
EQUALITY_METHODS = {"__eq__": _compare_fields, "__hash__": _hash_fields}


@overload
def frozen(cls: type[C], /) -> type[C]: ...
@overload
def frozen(*, eq: bool = True) -> Callable[[type[C]], type[C]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(
    cls: type[C] | None = None, /, *, eq: bool = True
) -> type[C] | Callable[[type[C]], type[C]]:
    """A class as a frozen dataclass; `eq=False` compares by identity, as values with arrays must.

    >>> @frozen
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1, 0), hash(Point(1)) == hash(Point(1))
    (Point(x=1, y=0), True, True)
    >>> Point(1).x = 2
    Traceback (most recent call last):
    dataclasses.FrozenInstanceError: cannot assign to field 'x'
    """

    def freeze(given: type[C]) -> type[C]:
        own = dict(vars(given))
        record = dataclass(init="__init__" not in own, repr=False, eq=False)(given)
        methods = SHARED_METHODS | EQUALITY_METHODS if eq else SHARED_METHODS
        for name, method in methods.items():
            if name not in own:
                setattr(record, name, method)
        return record

    return freeze if cls is None else freeze(cls)
