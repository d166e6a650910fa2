"""What a command reads and writes: its files, of which no two may be the same, and the standard
streams, which take whatever it prints, in any encoding, and also where they are closed.

Imported before anything else of a command, so it imports little itself.
"""

from __future__ import annotations

import codecs
import glob
import os
import sys
from collections.abc import Sequence
from importlib.resources import files
from io import TextIOBase
from pathlib import Path
from typing import Any, NoReturn, TextIO, cast

import click

from howsure._core.errors import InputError
from howsure._core.frozen import frozen

# Characters that howsure prints itself, for encodings that lack them; any other is escaped.
PLAIN_CHARACTERS = {
    "\u00a0": " ",
    "…": "...",
    "–": "-",
    "—": "-",
    "−": "-",
    "•": "*",
    "·": "*",
    "×": "x",
    "±": "+/-",
    "≤": "<=",
    "≥": ">=",
    "≈": "~",
    "∞": "inf",
    "→": "->",
    "↑": "^",
    "↓": "v",
    "²": "2",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
}
BOX_DRAWING, BLOCKS = range(0x2500, 0x2580), range(0x2580, 0x25A0)
HANDLER = "howsure_plain"  # as `errors` of a stream
# click takes a stream whose encoding is "ascii" for a mistake and writes UTF-8 into it.
ASCII = "howsure_ascii"


# Files.


DEMO_FILE = "demo"  # names the predictions that come with howsure, where no file is called so


class InputPath(click.Path):
    """A file that is read: its name, a pattern of names, NAME=FILE, or `-`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; `demo` is the file that comes with howsure."""
        if value == DEMO_FILE and not Path(value).exists():
            return str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
        return super().convert(value, param, ctx)


class OutputPath(click.Path):
    """A file that is written."""


class FigurePath(OutputPath):
    """A file that is written, or NAME=FILE."""


class StatePath(OutputPath):
    """A file that is read and written again, as the state of a monitor."""


@frozen
class NamedFile:
    """A file of a call, as it was given there."""

    given: str
    path: str
    written: bool


class PathCommand(click.Command):
    """A command that does not begin where something that it writes is also something else."""

    def invoke(self, ctx: click.Context) -> Any:
        files = list_files(self.get_params(ctx), ctx.params)
        for i, file in enumerate(files):
            for other in files[:i]:
                if (file.written or other.written) and is_same_file(file.path, other.path):
                    # The output first, whichever of them was given first.
                    first, second = (file, other) if file.written else (other, file)
                    raise InputError(
                        f"{first.given} and {second.given} are one file; "
                        "what is written needs a file of its own."
                    )
        return super().invoke(ctx)


def list_files(parameters: Sequence[click.Parameter], values: dict[str, Any]) -> list[NamedFile]:
    """All files that the values of these parameters name."""
    files: list[NamedFile] = []
    for parameter in parameters:
        kind, value = parameter.type, values.get(parameter.name or "")
        if not isinstance(kind, (InputPath, OutputPath)) or value is None:
            continue
        names: Sequence[str] = (value,)
        if isinstance(value, (tuple, list)):
            names = cast("Sequence[str]", value)
        label = "the input"
        if isinstance(parameter, click.Option):
            label = max(parameter.opts, key=len)
        for name in names:
            paths = [name]
            if isinstance(kind, InputPath | FigurePath):
                paths = list_input_paths(name)
            for path in paths:
                files.append(
                    NamedFile(
                        given=f"{label} {path}", path=path, written=isinstance(kind, OutputPath)
                    )
                )
    return files


def list_input_paths(name: str) -> list[str]:
    """The files that the name of an input may mean."""
    if name == "-":
        return ["/dev/stdin"]
    paths = [name]
    if not os.path.exists(name):
        if glob.has_magic(name):
            paths += glob.glob(name, recursive=True)
        _, sign, path = name.partition("=")
        if sign:
            paths.append(path)
    return paths


def is_same_file(a: str, b: str) -> bool:
    """Whether two names lead to one file, which need not be there yet.

    >>> is_same_file("a.csv", "./a.csv"), is_same_file("a.csv", "b.csv")
    (True, False)
    """
    try:
        return os.path.samefile(a, b)
    except (OSError, ValueError):  # one of them is not there
        return os.path.realpath(a) == os.path.realpath(b)


# Standard streams.


class ClosedStream(TextIOBase):
    """In the place of a stream that was closed when the command began."""

    def __init__(self, name: str):
        self.stream_name = name

    def refuse(self) -> NoReturn:
        """Say that there is nothing to read from or to write to."""
        raise InputError(f"standard {self.stream_name} is closed; open it, or name a file.")

    @property
    def buffer(self) -> NoReturn:
        self.refuse()

    def read(self, size: int | None = -1, /) -> NoReturn:  # noqa: ARG002
        self.refuse()

    def write(self, s: str, /) -> int:
        if s:
            self.refuse()
        return 0


def prepare_streams() -> None:
    """Let every stream take every character, and stand in for streams that are closed."""
    # A file opened later must not get the number of a closed stream: libraries print into it.
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    # Python has None for a stream that was closed when it began.
    if cast("TextIO | None", sys.stdin) is None:
        sys.stdin = cast("TextIO", ClosedStream("input"))
    if cast("TextIO | None", sys.stdout) is None:
        sys.stdout = cast("TextIO", ClosedStream("output"))
    if cast("TextIO | None", sys.stderr) is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the process ends
    codecs.register_error(HANDLER, replace_characters)
    codecs.register(find_codec)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is None:  # text in memory takes everything
            continue
        if codecs.lookup(stream.encoding).name == "ascii":
            reconfigure(encoding=ASCII)
        reconfigure(errors=HANDLER)


def flush_streams() -> OSError | None:
    """Hand on what is held back; where that fails nothing is tried again at exit, which would change
    the exit code.
    """
    failure: OSError | None = None
    for stream in (sys.stderr, sys.stdout):
        try:
            stream.flush()
        except OSError as e:
            failure = e
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return failure


def find_codec(name: str) -> codecs.CodecInfo | None:
    """ASCII under a name of its own."""
    if name != ASCII:
        return None
    ascii_codec = codecs.lookup("ascii")
    return codecs.CodecInfo(
        name=ASCII,
        encode=ascii_codec.encode,
        decode=ascii_codec.decode,
        incrementalencoder=ascii_codec.incrementalencoder,
        incrementaldecoder=ascii_codec.incrementaldecoder,
        streamreader=ascii_codec.streamreader,
        streamwriter=ascii_codec.streamwriter,
    )


def replace_characters(error: UnicodeError) -> tuple[str, int]:
    """What stands for characters that an encoding lacks.

    >>> codecs.register_error(HANDLER, replace_characters)
    >>> print("p ≤ 0.05 … 中 😀".encode("ascii", HANDLER).decode())
    p <= 0.05 ... \\u4e2d \\ud83d\\ude00
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    plain = "".join(map(replace_character, error.object[error.start : error.end]))
    return plain, error.end


def replace_character(character: str) -> str:
    """One character in ASCII."""
    if not is_printing_json():
        if character in PLAIN_CHARACTERS:
            return PLAIN_CHARACTERS[character]
        if ord(character) in BOX_DRAWING:
            return "|" if character in "│┃║" else "-"
        if ord(character) in BLOCKS:
            return "#"
    # As JSON escapes it, so that JSON stays JSON and means the same.
    pairs = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{pairs[i : i + 2].hex()}" for i in range(0, len(pairs), 2))


def is_printing_json() -> bool:
    """Whether the command that runs was given --json."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get("as_json"))
