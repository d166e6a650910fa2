"""Where runs leave their files under `--out`, and which of them are finished."""

import fcntl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .checkpoints import Checkpoints
from .manifest import read_manifest
from .runs import Run
from .settings import Settings


@dataclass(frozen=True)
class Store:
    """`predictions/` holds what finished runs left; `checkpoints/` may be deleted, at the price of
    training again.
    """

    root: Path

    def predictions(self, settings: Settings, extra: str = "") -> Path:
        return self.root / "predictions" / f"{settings.name}{extra and '.' + extra}.npz"

    def checkpoints(self, settings: Settings) -> Checkpoints:
        return Checkpoints(self.root / "checkpoints" / settings.name)

    def missing(self, run: Run) -> list[str]:
        """What is still to be written: "" is the file of logits, the others are extras. What the
        manifest lists was written once and can be fetched."""
        paths = {extra: self.predictions(run.settings, extra) for extra in ("", *run.extras)}
        listed = read_manifest(self.root).files
        return [e for e, path in paths.items() if path.name not in listed and not path.exists()]

    def elsewhere(self, runs: Iterable[Run]) -> list[str]:
        """Files of finished runs that are not here: `fetch` brings them."""
        paths = [self.predictions(r.settings, e) for r in runs for e in ("", *r.extras)]
        listed = read_manifest(self.root).files
        return [path.name for path in paths if path.name in listed and not path.exists()]

    def finished(self, run: Run) -> bool:
        return not self.missing(run)

    def unfinished(self, runs: Iterable[Run]) -> list[Run]:
        return [run for run in runs if not self.finished(run)]

    @contextmanager
    def claim(self, run: Run) -> Iterator[bool]:
        """True when no other process has this run; the lock goes with the process, however that
        ends.
        """
        folder = self.checkpoints(run.settings).folder
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / "lock", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
