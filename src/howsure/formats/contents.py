"""Which files a path, pattern or address names, what a file holds before anything is known about
its meaning, and what may be wrong with it.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, NoReturn, TypeAlias, cast

from howsure._core.checks import Array, InputError, Ints, need
from howsure._core.frozen import frozen
from howsure.predictions.read_options import Asked, ReadOptions

Cells: TypeAlias = Sequence[Any]  # the values of a text column, not yet numbers
# Columns that tell apart who answered the same records, and columns that name a record.
ARM_NAMES = ("model", "provider", "arm", "variant", "run", "draw", "experiment", "prompt_version")
ID_NAMES = ("ids", "id", "idx", "item_id", "record_id", "request_id", "uid", "custom_id")
SAVE_AGAIN = "save or copy it again"


class Damaged(InputError):
    """The bytes of a file are broken, whatever it was meant to hold."""


@frozen
class FileEntry:
    """One array or column: what the header says of it, and how to get it, whole or in runs of rows."""

    shape: tuple[int, ...]
    dtype: str
    load: Callable[[], Array | Cells]
    blocks: Callable[[int], Iterator[Array]] | None = None

    @property
    def rows(self) -> int:
        """Length along the first axis."""
        return self.shape[0] if self.shape else 0


@frozen
class Contents:
    """The entries of a file, or of a run of rows of it that begins with row `first`.

    `lines` are the line numbers of a text file's rows.
    """

    path: Path
    entries: dict[str, FileEntry]
    table: bool = False
    lines: Ints | None = None
    numbered: bool = True  # columns such as logit_0, prob_cat hold a value for each class
    class_names: tuple[str, ...] | None = None  # where the format keeps them outside its arrays
    first: int = 0
    commas: bool = False  # a number may have a comma in place of its point
    size: int = 0  # about the bytes of its cells, where the file is packed text
    digits: int | None = None  # of its probabilities, where the reader knows
    asked: Asked | None = None  # of a decision model's log
    notes: tuple[str, ...] = ()  # what the reader left out

    def get_line(self, row: int) -> int | None:
        """The line that a row stands on, where the file has lines."""
        return None if self.lines is None else int(self.lines[row])

    def describe_place(self, row: int) -> str:
        """Where a row stands, in the words of the file."""
        return f"row {row}" if self.lines is None else f"line {self.get_line(row)}"


NO_FIX = "repair the file"  # where an error says nothing better


@frozen
class FileProblem:
    """One thing that is wrong with a file: where, what, how to repair it, and what can be evaluated
    without a repair.

    `stops` tells a problem that `read` refuses from one that only makes some numbers undefined or
    doubtful.
    """

    where: str
    what: str
    fix: str
    anyway: str = ""
    stops: bool = True
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.fix}."

    @classmethod
    def of(cls, error: InputError, path: Path) -> FileProblem:
        """A refusal as a problem."""
        where = error.where or path.name
        if error.line is not None and error.row is not None:
            where = f"{where}, line {error.line}"
        what = f"{error.what} {error.got}".strip().removesuffix(".")
        fix = "; ".join(part.removesuffix(".") for part in (error.need, error.hint) if part)
        # An error without a fix is one whole sentence, which needs its subject.
        if fix:
            what = what.removeprefix(f"{path.name} ")
        return cls(
            where=where,
            what=what,
            fix=fix or NO_FIX,
            anyway="nothing",
            line=error.line,
        )


Report: TypeAlias = Callable[[FileProblem], None]  # called with every problem of a cell


def refuse(problem: FileProblem) -> NoReturn:
    """Raise the first problem that is reported: what `read` does, unlike the doctor."""
    raise InputError(problem.what, hint=problem.fix).at(problem.where, problem.line)


def make_array_entry(array: Array) -> FileEntry:
    """An entry whose array is in memory already."""

    def read_blocks(step: int) -> Iterator[Array]:
        return (array[i : i + step] for i in range(0, len(array), step))

    return FileEntry(
        shape=array.shape,
        dtype=str(array.dtype),
        load=lambda: array,
        blocks=read_blocks if array.ndim else None,
    )


def make_text_entry(cells: Cells) -> FileEntry:
    """An entry of a text table."""
    return FileEntry(shape=(len(cells),), dtype="text", load=lambda: cells)


def select_where(contents: Contents, where: Mapping[str, str]) -> Contents | None:
    """The rows whose columns have these values; None where there are none."""
    import numpy as np

    keep: list[int] | None = None
    for name, value in where.items():
        if name not in contents.entries:
            need = f"it has {', '.join(map(repr, list(contents.entries)[:12]))}"
            raise InputError(contents.path.name, got=f"has no column {name!r}", need=need)
        cells = contents.entries[name].load()
        rows = range(len(cells)) if keep is None else keep
        keep = [i for i in rows if str(cells[i]).strip() == value]
    if not keep:
        return None
    at = np.array(keep)
    entries: dict[str, FileEntry] = {}
    for name, entry in contents.entries.items():
        values = entry.load()
        if isinstance(values, np.ndarray):
            entries[name] = make_array_entry(values[at])
        else:
            entries[name] = make_text_entry([values[i] for i in keep])
    lines = None if contents.lines is None else contents.lines[at]
    return replace(contents, entries=entries, lines=lines)


class SeveralArms(InputError):
    """A file holds the answers of several models, runs or variants to the same ids."""

    column: str
    values: tuple[str, ...]
    ids: str

    @classmethod
    def of(cls, path: Path, column: str, values: Sequence[str], ids: str) -> SeveralArms:
        """Which column tells them apart, and what their ids are called."""
        error = cls(
            path.name,
            got=f"has the same {ids!r} for {len(values)} values of {column!r} "
            f"({', '.join(values[:6])})",
            need=f"say which: --where {column}={values[0]}",
            hint="howsure compare compares them",
        )
        error.column, error.values, error.ids = column, tuple(values), ids
        return error

    def choose(self, options: ReadOptions, value: str) -> ReadOptions:
        """How one of them is read, so that it can be joined with the others."""
        where = {**options.where, self.column: value}
        return replace(options.with_names(ids=self.ids), where=where)


def check_arms(contents: Contents) -> Contents:
    """The same; refused where the same ids stand there for several models, runs or variants."""
    arms = [name for name in ARM_NAMES if name in contents.entries]
    if not contents.table or not arms:
        return contents
    for id_name in ID_NAMES:
        if id_name not in contents.entries:
            continue
        keys = list(map(str, contents.entries[id_name].load()))
        distinct = len(set(keys))
        if distinct == len(keys):
            continue
        for name in arms:
            cells = [str(cell).strip() for cell in contents.entries[name].load()]
            if len(set(zip(keys, cells, strict=True))) == distinct:
                continue  # every id has one value
            raise SeveralArms.of(contents.path, name, sorted(set(cells)), id_name)
    return contents


def select_runs_where(
    runs: Iterable[Contents], where: Mapping[str, str], path: Path
) -> Iterator[Contents]:
    """The rows of all runs with these values; refused where there are none."""
    found = False
    for run in runs:
        chosen = select_where(run, where)
        if chosen is not None:
            found = True
            yield chosen
    if not found:
        asked = ", ".join(f"{name}={value}" for name, value in where.items())
        raise InputError(path.name, got=f"has no row with {asked}", need="check --where")


def as_list(value: object) -> list[Any] | None:
    """`value` where it is a list."""
    return cast("list[Any]", value) if isinstance(value, list) else None


def as_record(value: object) -> dict[str, Any] | None:
    """`value` where it is a dictionary, as every object of JSON is."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def describe_error(error: BaseException) -> str:
    """What another library says, in one line."""
    if not str(error):
        return type(error).__name__
    return str(error).splitlines()[0][:120].rstrip(".")


# Files on this machine, and at an address such as s3://bucket/a.parquet, which fsspec opens

# Above either limit a command streams.
LARGE_BYTES = 1 << 30
LARGE_ROWS = 10_000_000

# Tables whose footers tell their rows.
ARROW_SUFFIXES = (".parquet", ".pq", ".arrow", ".feather", ".ipc")

# What file systems call the version of a file.
VERSION_KEYS = ("ETag", "etag", "LastModified", "mtime", "updated", "created")


def list_matching_files(path: str) -> list[str]:
    """The files that a path or pattern names, in the order of their names."""
    remote = is_remote(path)
    # A file may be called a[1].csv: what exists is no pattern.
    if not glob.has_magic(path) or (not remote and os.path.exists(path)):
        return [path]
    if remote:
        file_system, pattern = open_file_system(path)
        files = [file_system.unstrip_protocol(key) for key in sorted(file_system.glob(pattern))]
    else:
        files = sorted(glob.glob(path, recursive=True))
    if not files:
        raise InputError(f"no file matches {path!r}.")
    return files


def group_files(files: Sequence[str]) -> dict[str, list[str]]:
    """Every file once, with those that are read with it: NumPy files that belong together are one.

    The same file twice is a mistake, whatever its two names are.
    """
    seen: set[str] = set()
    groups: dict[str, list[str]] = {}
    for file in files:
        real = file
        # A name with \0 is refused with a sentence when it is opened; realpath would raise here.
        if not is_remote(file) and "\0" not in file:
            real = os.path.realpath(file)
        if real in seen:
            raise InputError(
                f"{file} is given twice; its rows would count twice, so name every file once."
            )
        seen.add(real)
        # A family of NumPy files is known by the first of them.
        if not is_remote(file) and (file.lower().endswith(".npy") or not os.path.exists(file)):
            from howsure.formats.npy import find_family

            family = find_family(Path(file)).values()
            real = min(map(os.path.realpath, family), default=real)
        groups.setdefault(real, []).append(file)
    return {group[0]: group for group in groups.values()}


def explain_streaming(paths: Sequence[str]) -> str | None:
    """Why these files are streamed unless told otherwise: where they are, their bytes or their
    rows; None: they fit.
    """
    for path in paths:
        if is_remote(path) or (not os.path.exists(path) and glob.has_magic(path)):
            return "a pattern or an address"
    files = [path for path in paths if os.path.isfile(path)]
    size = sum(map(os.path.getsize, files))
    if size >= LARGE_BYTES:
        return f"{size / 2**30:.1f} GiB"
    rows = 0
    for path in files:
        if path.lower().endswith(ARROW_SUFFIXES):
            from howsure.formats.arrow import read_outline

            try:
                rows += sum(read_outline(Path(path)).pieces or ())
            except (InputError, ModuleNotFoundError):  # reading them will say it better
                return None
    return f"{rows:,} rows" if rows >= LARGE_ROWS else None


def is_remote(path: str) -> bool:
    """Whether this is an address and not a local path."""
    return "://" in path


class RemoteStat(NamedTuple):
    """The part of a file's state that readers ask for."""

    st_size: int


@frozen
class Remote:
    """Plays the part of a path for readers that open it, ask for its size, or name it."""

    address: str

    @property
    def name(self) -> str:
        """The last part of the address."""
        return PurePosixPath(self.address).name

    @property
    def suffix(self) -> str:
        """How the name ends."""
        return PurePosixPath(self.address).suffix

    @property
    def suffixes(self) -> list[str]:
        """All its ends."""
        return PurePosixPath(self.address).suffixes

    @cached_property
    def _place(self) -> tuple[Any, str]:
        return open_file_system(self.address)

    def info(self) -> dict[str, Any]:
        """What the file system knows of the file."""
        file_system, key = self._place
        try:
            return file_system.info(key)
        except FileNotFoundError:
            raise InputError(self.address, got="does not exist") from None

    def stat(self) -> RemoteStat:
        """Its size."""
        return RemoteStat(int(self.info()["size"]))

    def open(self, mode: str = "rb") -> Any:
        """The bytes, fetched when they are asked for."""
        file_system, key = self._place
        return file_system.open(key, mode)

    def fetch(self, to: Path) -> None:
        """Copy the whole file."""
        file_system, key = self._place
        file_system.get_file(key, str(to))

    def stamp(self) -> str:
        """What changes when the file does."""
        info = self.info()
        for name in VERSION_KEYS:
            if info.get(name) is not None:
                return str(info[name])
        return ""


def open_file_system(address: str) -> tuple[Any, str]:
    """The file system and the key of an address; whatever it raises while connecting becomes one
    sentence.
    """
    fsspec = need("fsspec", for_=address, extra="dask")
    try:
        return fsspec.core.url_to_fs(address)
    except ImportError as e:
        raise ModuleNotFoundError(f"{address}: {e}", name=e.name) from None
    except Exception as e:
        raise InputError(address, got=f"cannot be opened: {describe_error(e)}") from None
