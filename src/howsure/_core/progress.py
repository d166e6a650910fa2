"""Progress of long jobs: each stage is announced to a listener, such as the page in the browser."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar

# A context variable, so that two jobs in two threads do not hear each other. By default nobody
# listens: `len` accepts any message and does nothing with it.
listener: ContextVar[Callable[[str], object]] = ContextVar("listener", default=len)


class StagedJob:
    """A long job with named stages, which are announced as "measuring 2 of 5: findings".

    >>> token = listener.set(print)
    >>> job = StagedJob("measuring", ["numbers", "findings"])
    >>> job.stage("numbers")
    measuring 1 of 2: numbers
    >>> job.stage("findings")
    measuring 2 of 2: findings
    >>> listener.reset(token)
    """

    def __init__(self, name: str, stages: Iterable[str]):
        self.name = name
        self.stages = list(stages)
        self.begun = 0

    def stage(self, name: str) -> None:
        """Announce that this stage begins; stages begin in their order."""
        # The search starts after the last stage: a user's score may be called "numbers" too.
        self.begun = self.stages.index(name, self.begun) + 1
        listener.get()(f"{self.name} {self.begun} of {len(self.stages)}: {name}")
