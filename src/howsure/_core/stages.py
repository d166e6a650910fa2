"""What is being worked on, told to whoever listens: the page in the browser, which shows it while
it waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar

hearer: ContextVar[Callable[[str], object]] = ContextVar("hearer", default=len)


def told(what: str, parts: Iterable[str]) -> Iterator[str]:
    """The parts of a long job; each is told when it is asked for.

    >>> heard = hearer.set(print)
    >>> for part in told("measuring", ["numbers", "findings"]):
    ...     pass
    measuring 1 of 2: numbers
    measuring 2 of 2: findings
    >>> hearer.reset(heard)
    """
    every = list(parts)
    for i, part in enumerate(every, 1):
        hearer.get()(f"{what} {i} of {len(every)}: {part}")
        yield part
