"""Standard streams that take whatever a command prints: in any encoding, and also where they are
closed.

Imported before anything else of a command, so it imports little itself.
"""

from __future__ import annotations

import codecs
import os
import sys
from io import TextIOBase
from typing import NoReturn, TextIO, cast

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


class ClosedStream(TextIOBase):
    """In the place of a stream that was closed when the command began."""

    def __init__(self, name: str):
        self.stream_name = name

    def refuse(self) -> NoReturn:
        """Say that there is nothing to read from or to write to."""
        from howsure._core.checks import InputError

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
    from click import get_current_context

    context = get_current_context(silent=True)
    return context is not None and bool(context.params.get("as_json"))
