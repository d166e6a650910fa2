"""Files appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from howsure._core.check import InputError


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Generator[Path, None, None]:
    """A temporary path in the same folder, renamed to `path` when the block ends well and deleted
    when it fails.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "a.txt") as temporary:
    ...         _ = temporary.write_text("whole")
    ...     print([(p.name, p.read_text()) for p in Path(folder).iterdir()])
    [('a.txt', 'whole')]
    """
    target = Path(path)
    check_target(target)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        _to_disk(temporary)
        os.replace(temporary, target)
    except OSError as e:
        raise InputError(f"{target} cannot be written: {e.strerror or e}.") from None
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """`text` as a UTF-8 file at `path`, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def check_target(target: Path) -> None:
    """Refuse a path that no file can be written to, before the work for it is done."""
    if target.is_dir():
        raise InputError(f"{target} is a folder; a file name is needed.")
    if (
        target.exists() and not target.is_file()
    ):  # a rename would put a file in the place of the device
        raise InputError(f"{target} is a pipe or a device; a file name is needed.")
    if not target.parent.is_dir():
        raise InputError(f"the folder {target.parent} does not exist; make it first.")


def _to_disk(path: Path) -> None:
    """A rename must not reach the disk before the bytes it stands for."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
