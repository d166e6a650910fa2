"""isinstance for containers that come from outside: their items may be anything, and the type says
so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import TypeIs


def is_mapping(x: object) -> TypeIs[Mapping[object, object]]:
    """Whether `x` maps keys to values.

    >>> is_mapping({"a": 1}), is_mapping([1])
    (True, False)
    """
    return isinstance(x, Mapping)


def is_dict(x: object) -> TypeIs[dict[str, object]]:
    """Whether `x` is a dict; JSON has no other keys than text.

    >>> is_dict({"a": 1}), is_dict([1])
    (True, False)
    """
    return isinstance(x, dict)


def is_list(x: object) -> TypeIs[list[object]]:
    """Whether `x` is a list.

    >>> is_list([1]), is_list((1,))
    (True, False)
    """
    return isinstance(x, list)


def is_row(x: object) -> TypeIs[list[object] | tuple[object, ...]]:
    """Whether `x` is a list or a tuple.

    >>> is_row((1,)), is_row("a")
    (True, False)
    """
    return isinstance(x, (list, tuple))
