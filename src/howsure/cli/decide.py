"""howsure decide"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from howsure.cli.common import ReadingCommand

from howsure._core.atomic import check_target
from howsure._core.check import InputError
from howsure.cli.common import name_table, note, reading

if TYPE_CHECKING:
    from howsure.serving.alarms import Guard
    from howsure.serving.feedback import Learner
    from howsure.serving.pipes import Sink
    from howsure.serving.stream import Decide, Served, Serving

PIPES = ("-", "/dev/stdin")
ALARM = 3  # exit code


@click.command(cls=ReadingCommand)
@click.argument("policy", type=click.Path(exists=True, dir_okay=False))
@click.argument("file", metavar="FILE|-", type=click.Path())
@click.option(
    "-o", "--out", type=click.Path(), help="Write decisions here instead of standard output."
)
@click.option("--resume", is_flag=True, help="Go on where an earlier run into --out ended.")
@click.option(
    "--on-bad",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    show_default=True,
    help="A malformed line ends the run, or is reported and skipped.",
)
@click.option(
    "--watch",
    "watch",
    type=click.Path(exists=True),
    help="A drift watch from howsure threshold --watch; it is updated.",
)
@click.option(
    "--promise",
    type=click.Path(exists=True),
    help="A promise from howsure threshold --promise; it follows --labels and is updated.",
)
@click.option(
    "--labels",
    type=click.Path(),
    help='Decisions with "correct" added, for --promise or an online policy; may grow meanwhile.',
)
@click.option(
    "--burst",
    help="Rows with the same value in this column share their fate: --watch takes the first.",
)
@click.option(
    "--alarms", type=click.Path(), help="Append one JSON line for each alarm to this file."
)
@click.option(
    "--stop-on-alarm",
    is_flag=True,
    help="Decide nothing more once an alarm stands; a file is looked at every 100 rows.",
)
@reading
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but decisions and errors.")
def command(
    policy: str,
    file: str,
    out: str | None,
    resume: bool,
    watch: str | None,
    promise: str | None,
    labels: str | None,
    burst: str | None,
    alarms: str | None,
    stop_on_alarm: bool,
    quiet: bool,
    **how: Any,
) -> int:
    """Accept or defer each prediction by a saved policy.

    Reads JSON lines or CSV from standard input (-) as they arrive, or any file, and writes one JSON line per
    sample: accept or defer, prediction, confidence. SIGTERM, Ctrl-C and a closed pipe end it cleanly. With
    an online policy (howsure threshold --online) the threshold follows --labels and its file is updated.
    Exit code 3 where an alarm of --watch or --promise stands, until howsure watch reset. With a policy for many
    labels (howsure threshold --multilabel) each line has a case and the decision about each of its labels, with one
    for masks (howsure threshold --loss dice) an image.

    \b
    Examples:
      model | howsure decide policy.json - | act
      howsure decide policy.json new.parquet -o decisions.jsonl
      howsure decide policy.json new.jsonl -o decisions.jsonl --resume
      howsure decide tags_policy.json tags.csv --multilabel
      howsure decide online.json - --labels labelled.jsonl --watch watch.json
      howsure decide policy.json - --promise promise.json --labels came.jsonl --alarms alarms.jsonl --stop-on-alarm
    """
    _belong(watch, promise, labels, burst, policy)
    _apart(alarms, (policy, file, out, watch, promise, labels))
    how |= _many(policy, file, watch, promise)
    with (
        _alone(policy if _learns(policy) else None),
        _alone(watch),
        _alone(promise),
        _lines(alarms) as line,
    ):
        decide, learner = _decider(policy, None if promise else labels, how["on_bad"])
        stamp = _stamp(policy, None if promise else labels)
        guard = _guard(watch, promise, labels, burst, line, how["on_bad"], stamp)
        guard.follow(None if out is None or _piped(file) else Path(out), resume=resume)
        halt = (lambda: guard.raised) if stop_on_alarm else None
        serving = _serving(stamp, guard, halt, burst, **how)
        if learner is not None and resume and out is not None:
            learner.resume(Path(out))
        try:
            guard.learn()
            total = _run(decide, file, out, resume, serving)
            guard.learn()
        except BaseException:
            if learner is not None:
                learner.undo()
            raise
        finally:
            if learner is not None:
                learner.close()
            guard.close()
    note(_summary(total), quiet)
    return ALARM if guard.raised else 0


def _belong(
    watch: str | None, promise: str | None, labels: str | None, burst: str | None, policy: str
) -> None:
    """Refuse options that mean nothing without another one."""
    if burst is not None and watch is None:
        raise InputError("--burst says which rows --watch takes; give --watch too.")
    if promise is not None and labels is None:
        raise InputError(
            '--promise is judged by labels; give --labels, a file of decisions with "correct" added.'
        )
    if promise is not None and _learns(policy):
        raise InputError(
            f"{policy} is an online policy, which learns from --labels itself; --promise is for a fixed one."
        )


def _apart(alarms: str | None, others: Sequence[str | None]) -> None:
    """Alarms are appended to a file of their own: a line of them would spoil decisions or a state."""
    if alarms is None:
        return
    check_target(Path(alarms))
    if os.path.realpath(alarms) in {
        os.path.realpath(other) for other in others if other is not None
    }:
        raise InputError(
            f"--alarms {alarms} is named for something else too; give alarms a file of their own."
        )


def _many(path: str, file: str, watch: str | None, promise: str | None) -> dict[str, Any]:
    """A policy for images or for many labels says by itself how its input is read."""
    from howsure._core.saving import load
    from howsure.policies.policy import Policy
    from howsure.predictions.images import SCORES

    value = load(path)
    if isinstance(value, Policy) and value.by == "image":
        if _piped(file):
            raise InputError(
                "images are decided from a file of arrays (image, class, height, width), not from a pipe."
            )
        score = value.keys[0]
        return {"image_score": score, "attributes": () if score in SCORES else (score,)}
    if not isinstance(value, Policy) or value.by != "label":
        return {}
    if watch is not None or promise is not None:
        raise InputError(
            "--watch and --promise count independent decisions; the labels of one case are not."
        )
    return {"multilabel": True, "sums_to_one": True}


def _guard(
    watch: str | None,
    promise: str | None,
    labels: str | None,
    burst: str | None,
    line: Callable[[str], None],
    on_bad: Any,
    stamp: str,
) -> Guard:
    from howsure.serving.alarms import Guard

    path: Callable[[str | None], Path | None] = lambda name: None if name is None else Path(name)
    came = path(labels) if promise else None
    return Guard(
        path(watch), path(promise), came, burst is not None, note, line, note, on_bad, policy=stamp
    )


@contextmanager
def _lines(path: str | None) -> Generator[Callable[[str], None]]:
    """Where lines of JSON about alarms go: appended at once, and nowhere without a file."""
    if path is None:
        yield lambda _: None
        return
    with open(path, "ab", buffering=0) as file:

        def line(text: str) -> None:
            file.write(f"{text}\n".encode())

        yield line


def _alone(path: str | None) -> AbstractContextManager[None]:
    """Nobody else may move this state meanwhile."""
    from howsure.serving.output import held

    return nullcontext() if path is None else held(Path(path))


def _learns(path: str) -> bool:
    """Whether a file holds a policy that changes while it decides."""
    from howsure._core.saving import load
    from howsure.policies.online import OnlinePolicy

    return isinstance(load(path), OnlinePolicy)


def _serving(
    stamp: str,
    guard: Guard,
    halt: Callable[[], bool] | None,
    burst: str | None,
    *,
    on_bad: Any,
    names: Sequence[str],
    **how: Any,
) -> Serving:
    from howsure.formats.names import UNLABELLED, Wanted
    from howsure.serving.stream import Serving

    table = name_table(names) if burst is None else {**name_table(names), "group": burst}
    wanted = Wanted(names=table, beside=UNLABELLED, **how)
    return Serving(
        on_bad, note, stamp, guard.see if guard.states else None, wanted, halt, burst is not None
    )


def _summary(total: Served) -> str:
    deferred = total.decided - total.accepted
    again = f", {total.skipped:,} decided before" if total.skipped else ""
    bad = f", {total.bad:,} bad lines" if total.bad else ""
    what = f"{total.accepted:,} accepted, {deferred:,} deferred{again}{bad}"
    handed = ": what the reader was handed" if total.ended == "closed pipe" else ""
    return f"{total.decided:,} decided: {what} ({total.ended}{handed})"


def _run(decide: Decide, file: str, out: str | None, resume: bool, how: Serving) -> Served:
    from howsure.serving.resume import decide_file, decide_path
    from howsure.serving.stream import decide_stream

    pipe = _piped(file)
    if out is not None and not pipe:
        return decide_file(decide, file, out, resume=resume, how=how)
    if resume:
        raise InputError("--resume goes on with a file into a file; give FILE and --out.")
    with _source(file) if pipe else nullcontext() as source, _sink(out) as sink:
        total = (
            decide_path(decide, file, sink, how)
            if source is None
            else decide_stream(decide, source, sink, how=how)
        )
    if total.ended == "closed pipe":  # nothing may be flushed into it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return total


def _piped(file: str) -> bool:
    return file in PIPES or Path(file).is_fifo()


@contextmanager
def _source(file: str) -> Generator[IO[bytes]]:
    if file in PIPES:
        yield sys.stdin.buffer
        return
    with open(file, "rb", buffering=0) as source:
        yield source


@contextmanager
def _sink(out: str | None) -> Generator[Sink]:
    if out is None:
        buffer = sys.stdout.buffer
        yield getattr(
            buffer, "raw", buffer
        )  # unbuffered, so that it is known what a reader was handed
        return
    from howsure.serving.output import new

    check_target(Path(out))
    with new(Path(out)) as sink:
        yield sink


def _decider(path: str, labels: str | None, on_bad: Any) -> tuple[Decide, Learner | None]:
    """How to decide, and who learns from it."""
    from howsure._core.saving import load, save
    from howsure.policies.online import OnlinePolicy
    from howsure.policies.policy import Policy
    from howsure.serving.feedback import Learner

    value = load(path)
    if isinstance(value, OnlinePolicy):
        file = Path(labels) if labels else None
        learner = Learner(value, file, lambda state: save(state, path), on_bad=on_bad, report=note)
        return learner.decide, learner
    if not isinstance(value, Policy):
        raise InputError(
            f"{path} holds a saved {type(value).__name__}, not a policy; make one with howsure threshold."
        )
    if labels is not None:
        raise InputError(
            f"{path} is a fixed policy; --labels needs one from howsure threshold --online."
        )
    return value.decide, None


def _stamp(path: str, labels: str | None) -> str:
    """The name of a fixed policy in each decision: the start of its digest."""
    from howsure._core.saving import saved_as

    kind, digest = saved_as(path)
    return digest[:12] if labels is None and kind == "Policy" else ""
