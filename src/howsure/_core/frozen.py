"""Frozen dataclasses that cost a third to define, for a command defines a hundred before it does
anything.

`dataclass(frozen=True)` compiles six methods for each class. Here the first, `__init__`, is its
own; the others are the same few functions for all classes. `fields`, `replace` and `asdict` work as
ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, FrozenInstanceError, dataclass, field
from typing import Any, ClassVar, TypeVar, dataclass_transform, overload

C = TypeVar("C")


class _SharedMethods:
    """What every frozen class gets, but for what it defines itself."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __setattr__(self, name: str, value: object) -> None:
        # `__init__` sets each field once; nothing is set after it.
        if name in self.__dict__ or name not in self.__dataclass_fields__:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __repr__(self) -> str:
        shown: list[str] = []
        for name, f in self.__dataclass_fields__.items():
            if f.repr:
                shown.append(f"{name}={getattr(self, name)!r}")
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return _list_values(self) == _list_values(other)

    def __hash__(self) -> int:
        return hash(_list_values(self))


def _list_values(record: Any) -> tuple[object, ...]:
    return tuple(getattr(record, name) for name in record.__dataclass_fields__)


SHARED_METHODS = ("__setattr__", "__delattr__", "__repr__")
EQUALITY_METHODS = ("__eq__", "__hash__")


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
        methods = SHARED_METHODS + EQUALITY_METHODS if eq else SHARED_METHODS
        for name in methods:
            if name not in own:
                setattr(record, name, vars(_SharedMethods)[name])
        return record

    return freeze if cls is None else freeze(cls)
