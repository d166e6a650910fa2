"""The one question of a command on a terminal, where a file can be read in a way that its names do
not say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
from howsure.predictions.read_options import VALUE_WORDS, ReadOptions, quote_columns

# What a column may be.
COLUMN_MEANINGS = {
    "confidence": "how sure it is",
    "score": "a score that is higher where it is surer",
    "probs": "the probability of class 1",
    "logits": "the log-odds of class 1",
    "logprobs": "the log-probability of each option",
    "labels": "the label",
    "correct": "what says right or wrong",
    "loss": "what says wrong (1) or right (0)",
    "count": "how often each row counts",
    "weight": "the weight of each row",
    "group": "what rows belong together by",
    "class_names": "the names of the classes",
}
# What else may be meant: as a question, and as what is then done.
WAYS = {
    "percent": ("is the confidence in percent", "These are percentages"),
    "renormalise": (
        "shall each row be divided by its sum",
        "Divide each row of probabilities by its sum",
    ),
    "multilabel": ("can a case have many labels", "A case can have many labels"),
    "mc": ("shall the samples be used", "Use the samples"),
    "answers": ("shall {} count as the answer", "Count {} as the answer"),
}
ANSWERS = {"file": "what the file says", "argmax": "the most probable class"}


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
    """What is asked about all that a proposal adds.

    >>> names = {"probs": "risk", "labels": "sick"}
    >>> phrase_question(ReadOptions(names=names), ReadOptions())
    "Is 'risk' the probability of class 1, and is 'sick' the label?"
    """
    asked: list[str] = []
    for columns, meaning in _list_named(proposal, options):
        verb = "are" if len(columns) > 1 else "is"
        asked.append(f"{verb} {quote_columns(columns)} {meaning}")
    asked += [question for question, _ in _list_ways(proposal, options)]
    text = ", and ".join(asked)
    return f"{text[:1].upper()}{text[1:]}?"


def phrase_choice(proposal: ReadOptions, options: ReadOptions) -> str:
    """What a button says of all that a proposal adds.

    >>> names = {"probs": "benign,malignant", "labels": "truth"}
    >>> phrase_choice(ReadOptions(names=names), ReadOptions())
    "Use 'benign', 'malignant' as the probabilities of the classes, 'truth' as the label"
    """
    done: list[str] = []
    named = _list_named(proposal, options)
    used = [f"{quote_columns(columns)} as {meaning}" for columns, meaning in named]
    if used:
        done.append(f"Use {', '.join(used)}")
    done += [way for _, way in _list_ways(proposal, options)]
    return ". ".join(done)


def _list_named(proposal: ReadOptions, options: ReadOptions) -> Iterator[tuple[list[str], str]]:
    """The columns that a proposal names, and what they are."""
    for part, given in proposal.names.items():
        if part in options.names:
            continue
        columns = given.split(",") if isinstance(given, str) else list(given)
        meaning = COLUMN_MEANINGS.get(part, part)
        if part == "classes":
            meaning = "the classes in the order of the columns"
        elif len(columns) > 1:
            meaning = f"the {VALUE_WORDS[part]} of the classes"
        yield columns, meaning


def _list_ways(proposal: ReadOptions, options: ReadOptions) -> Iterator[tuple[str, str]]:
    """What a proposal adds beside names, as a question and as what is done."""
    for field, (question, way) in WAYS.items():
        value = getattr(proposal, field)
        if value != getattr(options, field):
            meant = ANSWERS.get(value, "")
            yield question.format(meant), way.format(meant)


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
