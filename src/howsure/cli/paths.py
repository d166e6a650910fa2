"""Which files a command reads and which it writes, and that none of them are the same."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from typing import Any, cast

import click

from howsure._core.checks import InputError
from howsure._core.frozen import frozen


class InputPath(click.Path):
    """A file that is read: its name, a pattern of names, NAME=FILE, or `-`."""


class OutputPath(click.Path):
    """A file that is written."""


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
            if isinstance(kind, InputPath):
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
