"""The one question of a command on a terminal, where a file can be read in a way that its names do
not say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import split
from typing import Any

import click

from howsure._core.errors import InputError
from howsure._core.text import make_printable
from howsure.cli.common import format_reading_call, note
from howsure.formats.assembly import SameRows
from howsure.formats.proposals import propose_options
from howsure.predictions.read_options import VALUE_WORDS, ReadOptions

# What is asked of a column.
QUESTIONS = {
    "confidence": "how sure it is",
    "score": "higher where it is surer",
    "probs": "the probability of class 1",
    "logits": "the log-odds of class 1",
    "logprobs": "the log-probability of each option",
    "labels": "the label",
    "correct": "what says right or wrong",
    "loss": "1 where it is wrong",
}


def run_again(
    error: InputError, run: Callable[[ReadOptions], Any], files: Sequence[str], options: ReadOptions
) -> Any:
    """Ask how the files are meant and run the command so; raise the error where nobody knows."""
    if isinstance(error, SameRows):
        return _run_same_rows(error, run, files, options)
    proposal = None
    if files:
        proposal = propose_options(Path(files[0]), options)
    if proposal is None or proposal == options:
        raise error
    question = phrase_question(proposal, options)
    if not click.confirm(make_printable(question), default=True, err=True):
        raise error
    note(f"Without the question: {format_reading_call((), proposal)}")
    return run(proposal)


def phrase_question(proposal: ReadOptions, options: ReadOptions) -> str:
    """What is asked about the names that a proposal adds.

    >>> names = {"probs": "risk", "labels": "sick"}
    >>> phrase_question(ReadOptions(names=names), ReadOptions())
    "Is 'risk' the probability of class 1, and is 'sick' the label?"
    """
    asked: list[str] = []
    for part, given in proposal.names.items():
        if part in options.names:
            continue
        columns = given.split(",") if isinstance(given, str) else list(given)
        listed = ", ".join(map(repr, columns))
        if part == "classes":
            asked.append(f"are {listed} the classes in the order of the columns")
        elif len(columns) > 1:
            asked.append(f"are {listed} the {VALUE_WORDS[part]} of the classes")
        else:
            asked.append(f"is {listed} {QUESTIONS[part]}")
    text = ", and ".join(asked)
    return f"{text[:1].upper()}{text[1:]}?"


def _run_same_rows(
    error: SameRows,
    run: Callable[[ReadOptions], Any],
    files: Sequence[str],
    options: ReadOptions,
) -> Any:
    """Ask what several files of the same rows are."""
    click.echo(make_printable(f"{error.what} {error.got}."), err=True)
    question = "Models to [c]ompare, members of an [e]nsemble, or [p]arts of one data set?"
    answer = click.prompt(
        question, type=click.Choice(["c", "e", "p"]), err=True, show_choices=False
    )
    if answer == "e":
        return run(replace(options, several="ensemble"))
    if answer == "p":
        return run(replace(options, several="parts"))
    from howsure.cli.compare import command

    words = split(format_reading_call(files, options))
    given = click.get_current_context().params
    if given.get("as_json"):
        words.append("--json")
    if given.get("html"):
        words += ["--html", given["html"]]
    if isinstance(given.get("out"), tuple):  # of a report; a policy is no comparison
        targets: tuple[str, ...] = given["out"]
        for target in targets:
            words += ["--out", target]
    return command.main(words, standalone_mode=False)
