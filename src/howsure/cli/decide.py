"""howsure decide"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import click

from howsure._core.atomic import check_target
from howsure._core.checks import InputError
from howsure._core.frozen import frozen
from howsure.cli.common import ReadingCommand, add_reading_options, note, parse_names
from howsure.cli.paths import InputPath, OutputPath, StatePath

if TYPE_CHECKING:
    from howsure.policies.online import OnlinePolicy
    from howsure.policies.policy import Policy
    from howsure.serving.alarm_guard import AlarmGuard
    from howsure.serving.feedback import Learner
    from howsure.serving.journal import ByteSink
    from howsure.serving.stream import Decide, Served, Serving

STDIN_NAMES = ("-", "/dev/stdin")
ALARM_EXIT_CODE = 3


@frozen
class DecideCall:
    """The files of a call, and how it goes about them."""

    policy: str
    file: str
    out: str | None
    resume: bool
    on_bad: Literal["stop", "skip"]
    drift: str | None
    guarantee: str | None
    labels: str | None
    burst: str | None
    alarms: str | None
    stop_on_alarm: bool

    @property
    def piped(self) -> bool:
        """Whether rows arrive one by one."""
        return self.file in STDIN_NAMES or Path(self.file).is_fifo()


@click.command(cls=ReadingCommand)
@click.argument("policy", type=StatePath(exists=True, dir_okay=False))
@click.argument("file", metavar="FILE|-", type=InputPath())
@click.option(
    "-o", "--out", type=OutputPath(), help="Write decisions here instead of standard output."
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
    "--drift",
    type=StatePath(exists=True),
    help="A drift monitor from howsure threshold --drift; it is updated.",
)
@click.option(
    "--guarantee",
    type=StatePath(exists=True),
    help="A guarantee monitor from howsure threshold --guarantee; it follows --labels and is updated.",
)
@click.option(
    "--labels",
    type=InputPath(),
    help='Decisions with "correct" added, for --guarantee or an online policy; may grow meanwhile.',
)
@click.option(
    "--burst",
    help="Rows with the same value in this column share their fate: --drift takes the first.",
)
@click.option(
    "--alarms", type=OutputPath(), help="Append one JSON line for each alarm to this file."
)
@click.option(
    "--stop-on-alarm",
    is_flag=True,
    help="Decide nothing more once an alarm stands; a file is looked at every 100 rows.",
)
@add_reading_options
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but decisions and errors.")
def command(
    policy: str,
    file: str,
    out: str | None,
    resume: bool,
    on_bad: Literal["stop", "skip"],
    drift: str | None,
    guarantee: str | None,
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
    Exit code 3 where an alarm of --drift or --guarantee stands, until howsure alarms reset. With a policy for many
    labels (howsure threshold --multilabel) each line has a case and the decision about each of its labels, with one
    for masks (howsure threshold --loss dice) an image.

    \b
    Examples:
      model | howsure decide policy.json - | act
      howsure decide policy.json new.parquet -o decisions.jsonl
      howsure decide policy.json new.jsonl -o decisions.jsonl --resume
      howsure decide tags_policy.json tags.csv --multilabel
      howsure decide online.json - --labels labelled.jsonl --drift drift.json
      howsure decide policy.json - --guarantee kept.json --labels came.jsonl --alarms alarms.jsonl --stop-on-alarm
    """
    from howsure.policies.policy import Policy
    from howsure.serving.journal import hold_lock

    call = DecideCall(
        policy=policy,
        file=file,
        out=out,
        resume=resume,
        on_bad=on_bad,
        drift=drift,
        guarantee=guarantee,
        labels=labels,
        burst=burst,
        alarms=alarms,
        stop_on_alarm=stop_on_alarm,
    )
    first = _load_policy(call.policy)
    _check_call(call, first)
    how |= _choose_reading(call, first)
    online = None if isinstance(first, Policy) else Path(policy)
    # Nobody else may move a state that this run moves.
    with (
        hold_lock(online),
        hold_lock(_as_path(drift)),
        hold_lock(_as_path(guarantee)),
        _open_alarms(alarms) as write_line,
    ):
        # A state is read under its lock: another run may have moved it since.
        value = first if online is None else _load_policy(call.policy)
        total, raised = _serve(call, value, how, write_line)
    deferred = total.decided - total.accepted
    summary = f"{total.decided:,} decided: {total.accepted:,} accepted, {deferred:,} deferred"
    if total.skipped:
        summary += f", {total.skipped:,} decided before"
    if total.bad:
        summary += f", {total.bad:,} bad lines"
    ended = "closed pipe: what the reader was handed"
    if total.ended != "closed pipe":
        ended = total.ended
    note(f"{summary} ({ended})", quiet)
    return ALARM_EXIT_CODE if raised else 0


def _serve(
    call: DecideCall,
    value: Policy | OnlinePolicy,
    how: dict[str, Any],
    write_line: Callable[[str], None],
) -> tuple[Served, bool]:
    """Decide everything; what happened, and whether an alarm stands."""
    from howsure._core.saving import identify_saved, save
    from howsure.policies.policy import Policy

    learner: Learner | None = None
    stamp = ""
    if isinstance(value, Policy):
        # The name of a fixed policy in each decision: the start of its digest.
        decide, stamp = value.decide, identify_saved(call.policy)[1][:12]
    else:
        from howsure.serving.feedback import Learner

        learner = Learner(
            value,
            _as_path(call.labels),
            lambda state: save(state, call.policy),
            on_bad=call.on_bad,
            report=note,
        )
        decide = learner.decide
    guard = _make_guard(call, stamp, write_line)
    if guard is not None:
        output = None if call.out is None or call.piped else Path(call.out)
        guard.follow(output, resume=call.resume)
    serving = _make_serving(call, stamp, guard, how)
    if learner is not None and call.resume and call.out is not None:
        learner.resume(Path(call.out))
    try:
        # Labels that are there already may raise an alarm before the first row.
        if guard is not None:
            guard.learn()
        total = _decide_all(call, decide, serving)
        if guard is not None:
            guard.learn()
    except BaseException:  # Ctrl-C too: what was not written was not decided
        if learner is not None:
            learner.undo()
        raise
    finally:
        if learner is not None:
            learner.close()
        if guard is not None:
            guard.close()
    return total, guard is not None and guard.raised


def _as_path(name: str | None) -> Path | None:
    return None if name is None else Path(name)


def _load_policy(path: str) -> Policy | OnlinePolicy:
    from howsure._core.saving import load
    from howsure.policies.policy import Policy

    value = load(path)
    if isinstance(value, Policy):
        return value
    from howsure.policies.online import OnlinePolicy

    if isinstance(value, OnlinePolicy):
        return value
    raise InputError(
        f"{path} holds a saved {type(value).__name__}, not a policy; make one with howsure threshold."
    )


def _check_call(call: DecideCall, policy: Policy | OnlinePolicy) -> None:
    """Refuse options that mean nothing together, or without another one."""
    from howsure.policies.policy import Policy

    if call.burst is not None and call.drift is None:
        raise InputError("--burst says which rows --drift takes; give --drift too.")
    if call.guarantee is not None and call.labels is None:
        raise InputError(
            '--guarantee is judged by labels; give --labels, a file of decisions with "correct" added.'
        )
    if isinstance(policy, Policy):
        if call.labels is not None and call.guarantee is None:
            raise InputError(
                f"{call.policy} is a fixed policy; --labels needs one from howsure threshold --online."
            )
    elif call.guarantee is not None:
        raise InputError(
            f"{call.policy} is an online policy, which learns from --labels itself; "
            "--guarantee is for a fixed one."
        )
    if call.alarms is None:
        return
    check_target(Path(call.alarms))
    # A line about an alarm would spoil decisions or a state.
    others = (call.policy, call.file, call.out, call.drift, call.guarantee, call.labels)
    if os.path.realpath(call.alarms) in [os.path.realpath(name) for name in others if name]:
        raise InputError(
            f"--alarms {call.alarms} is named for something else too; "
            "give alarms a file of their own."
        )


def _choose_reading(call: DecideCall, policy: Policy | OnlinePolicy) -> dict[str, Any]:
    """A policy for images or for many labels says by itself how its input is read."""
    from howsure.policies.policy import Policy

    if not isinstance(policy, Policy) or policy.by not in ("image", "label"):
        return {}
    if policy.by == "image":
        from howsure.predictions.images import IMAGE_SCORES

        if call.piped:
            raise InputError(
                "images are decided from a file of arrays (image, class, height, width), not from a pipe."
            )
        score = policy.keys[0]
        return {"image_score": score, "attributes": () if score in IMAGE_SCORES else (score,)}
    if call.drift is not None or call.guarantee is not None:
        raise InputError(
            "--drift and --guarantee count independent decisions; the labels of one case are not."
        )
    return {"multilabel": True, "sums_to_one": True}


@contextmanager
def _open_alarms(path: str | None) -> Generator[Callable[[str], None]]:
    """Where lines of JSON about alarms go: appended at once, and nowhere without a file."""
    if path is None:
        yield lambda _: None
        return
    with open(path, "ab", buffering=0) as file:

        def write_line(text: str) -> None:
            file.write(f"{text}\n".encode())

        yield write_line


def _make_guard(
    call: DecideCall, stamp: str, write_line: Callable[[str], None]
) -> AlarmGuard | None:
    if call.drift is None and call.guarantee is None:
        return None
    from howsure.serving.alarm_guard import AlarmGuard, AlarmInputs

    inputs = AlarmInputs(
        drift=_as_path(call.drift),
        guarantee=_as_path(call.guarantee),
        labels=_as_path(call.labels) if call.guarantee else None,
        bursts=call.burst is not None,
        policy=stamp,
    )
    return AlarmGuard(inputs, tell=note, write_line=write_line, report=note, on_bad=call.on_bad)


def _make_serving(
    call: DecideCall, stamp: str, guard: AlarmGuard | None, how: dict[str, Any]
) -> Serving:
    from howsure.predictions.read_options import UNLABELLED_PARTS, ReadOptions
    from howsure.serving.stream import Serving

    names = parse_names(how.pop("names"))
    if call.burst is not None:
        names["group"] = call.burst
    halt = None
    if guard is not None and call.stop_on_alarm:
        halt = lambda: guard.raised
    return Serving(
        on_bad=call.on_bad,
        report=note,
        stamp=stamp,
        see=None if guard is None else guard.see,
        wanted=ReadOptions(names=names, beside=UNLABELLED_PARTS, **how),
        halt=halt,
        bursts=call.burst is not None,
    )


def _decide_all(call: DecideCall, decide: Decide, serving: Serving) -> Served:
    """From a file or a pipe, into a file or standard output."""
    from howsure.serving.stream import decide_file, decide_path, decide_stream

    if call.out is not None and not call.piped:
        return decide_file(decide, call.file, call.out, resume=call.resume, how=serving)
    if call.resume:
        raise InputError("--resume goes on with a file into a file; give FILE and --out.")
    with _open_input(call) as source, _open_output(call.out) as sink:
        if source is None:
            total = decide_path(decide, call.file, sink, serving)
        else:
            total = decide_stream(decide, source, sink, how=serving)
    if total.ended == "closed pipe":  # nothing may be flushed into it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return total


@contextmanager
def _open_input(call: DecideCall) -> Generator[IO[bytes] | None]:
    """The pipe that rows come from; None where they are in a file."""
    if not call.piped:
        yield None
    elif call.file in STDIN_NAMES:
        yield sys.stdin.buffer
    else:
        with open(call.file, "rb", buffering=0) as source:
            yield source


@contextmanager
def _open_output(out: str | None) -> Generator[ByteSink]:
    if out is None:
        buffer = sys.stdout.buffer
        # Unbuffered, so that it is known what a reader was handed.
        yield getattr(buffer, "raw", buffer)
        return
    from howsure.serving.journal import open_new

    check_target(Path(out))
    with open_new(Path(out)) as sink:
        yield sink
