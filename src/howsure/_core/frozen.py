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


def _set(self: _Record, name: str, value: object) -> None:
    """`__init__` sets each field once; nothing is set after it."""
    if name in self.__dict__ or name not in self.__dataclass_fields__:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    self.__dict__[name] = value


def _delete(self: _Record, name: str) -> None:  # noqa: ARG001
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _repr(self: _Record) -> str:
    shown = [
        f"{name}={getattr(self, name)!r}" for name, f in self.__dataclass_fields__.items() if f.repr
    ]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _values(self: _Record) -> tuple[object, ...]:
    return tuple(getattr(self, name) for name in self.__dataclass_fields__)


def _equal(self: _Record, other: _Record) -> bool:
    return _values(self) == _values(other) if type(self) is type(other) else NotImplemented


def _hash(self: _Record) -> int:
    return hash(_values(self))


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
    if cls is None:
        return lambda given: _frozen(given, eq=eq)
    return _frozen(cls, eq=eq)


def _frozen(cls: type[C], *, eq: bool) -> type[C]:
    made = dataclass(init="__init__" not in vars(cls), repr=False, eq=False)(cls)
    shared = {"__setattr__": _set, "__delattr__": _delete, "__repr__": _repr}
    if eq:
        shared |= {"__eq__": _equal, "__hash__": _hash}
    for name, method in shared.items():
        if name not in vars(cls):
            setattr(made, name, method)
    return made
