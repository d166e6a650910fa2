"""What follows the first dropout layer, run again without what comes before it."""

# pyright: reportMissingImports=false, reportUnknownParameterType=false, reportUnknownLambdaType=false
from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

from torch import Tensor, nn


class Call(NamedTuple):
    """A layer that ran: what it was given, if that was one tensor and nothing else, and what it made."""

    layer: nn.Module
    given: Tensor | None
    made: Any


@contextmanager
def recording(model: nn.Module, droppers: Sequence[nn.Module]) -> Generator[list[Call]]:
    """The calls of all layers without parts, from the first dropout layer on; nothing earlier is kept alive."""
    calls: list[Call] = []
    starts = set(droppers)

    def note(layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], made: Any) -> None:
        if calls or layer in starts:
            alone = len(args) == 1 and not kwargs and isinstance(args[0], Tensor)
            calls.append(Call(layer, args[0] if alone else None, made))

    leaves = [module for module in model.modules() if next(module.children(), None) is None]
    hooks = [leaf.register_forward_hook(note, with_kwargs=True) for leaf in leaves]
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()


def tail(calls: Sequence[Call], output: Tensor) -> Callable[[], Tensor] | None:
    """All from the first dropout on as a function, if each layer takes what the one before made and nothing else."""
    start = calls[0].given if calls else None
    if start is None or calls[-1].made is not output:
        return None
    if any(later.given is not earlier.made for earlier, later in pairwise(calls)):
        return None
    return lambda: reduce(lambda x, call: call.layer(x), calls, start)
