"""howsure decide"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

import click
from click.core import ParameterSource

from howsure._core.checks import InputError
from howsure._core.file_access import check_target
from howsure._core.frozen import frozen
from howsure.cli.common import (
    READING_OPTIONS,
    ReadingCommand,
    add_reading_options,
    note,
    remember_receipt,
)
from howsure.cli.input_output import InputPath, OutputPath, StatePath

if TYPE_CHECKING:
    from howsure.formats.streams import StreamBatch
    from howsure.policies.online import OnlinePolicy
    from howsure.policies.policy import Decisions, Policy
    from howsure.predictions import Predictions
    from howsure.predictions.read_options import ReadOptions
    from howsure.serving.alarm_guard import AlarmGuard
    from howsure.serving.feedback import LabelFeed, Learner
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
    join: str | None  # None: a label stands in the line of its decision
    label_column: str | None
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
    help="A file of labels, joined by ids, for --guarantee or an online policy; it may grow meanwhile.",
)
@click.option(
    "--join",
    default="id",
    show_default=True,
    metavar="COLUMN",
    help="The column of ids by which --labels are joined, or OURS=THEIRS.",
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
    help="Decide nothing more once an alarm is active; a file is looked at every 100 rows.",
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
    join: str,
    burst: str | None,
    alarms: str | None,
    stop_on_alarm: bool,
    quiet: bool,
    options: ReadOptions,
) -> int:
    """Accept or defer each prediction by a saved policy.

    Reads JSON lines or CSV from standard input (-) as they arrive, or any file, and writes one JSON line per
    sample: accept or defer, prediction, confidence. SIGTERM, Ctrl-C and a closed pipe end it cleanly. With
    an online policy (howsure threshold --online) the threshold follows --labels and its file is updated.
    Exit code 3 where an alarm of --drift or --guarantee stands, until howsure alarms reset. With a policy for many
    labels (howsure threshold --multilabel) each line has a case and the decision about each of its labels, with one
    for masks (howsure threshold --loss dice) an image. With a cascade (howsure cascade) the column model says whose
    answer a row is, and a deferred line says who is next. The file is read as the one that the policy was made from
    (howsure threshold --name, --percent, ...), unless an option says otherwise.

    \b
    Examples:
      model | howsure decide policy.json - | act
      howsure decide policy.json new.parquet -o decisions.jsonl
      howsure decide policy.json new.jsonl -o decisions.jsonl --resume
      howsure decide tags_policy.json tags.csv --multilabel
      howsure decide cascade.json small.jsonl
      howsure decide online.json - --labels came.csv --drift drift.json
      howsure decide policy.json - --guarantee kept.json --labels came.csv --join case=id --stop-on-alarm
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
        join=join,
        label_column=options.get_column("labels"),
        burst=burst,
        alarms=alarms,
        stop_on_alarm=stop_on_alarm,
    )
    first = load_policy(call.policy)
    check_call(call, first)
    options = choose_options(call, first, options)
    online = None if isinstance(first, Policy) else Path(policy)
    # Nobody else may move a state that this run moves.
    with (
        hold_lock(online),
        hold_lock(as_path(drift)),
        hold_lock(as_path(guarantee)),
        open(alarms or os.devnull, "ab", buffering=0) as alarm_file,
    ):
        # A state is read under its lock: another run may have moved it since.
        value = first if online is None else load_policy(call.policy)
        total, raised = _serve(call, value, options, alarm_file)
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
    call: DecideCall, value: Policy | OnlinePolicy, options: ReadOptions, alarm_file: IO[bytes]
) -> tuple[Served, bool]:
    """Decide everything; what happened, and whether an alarm is active."""
    from howsure._core.saving import identify_saved, save
    from howsure.policies.policy import Policy
    from howsure.serving.stream import Serving

    learner: Learner | None = None
    stamp = ""
    if isinstance(value, Policy):
        # The name of a fixed policy in each decision: the start of its digest.
        decide, stamp = value.decide, identify_saved(call.policy)[1][:12]
    else:
        from howsure.serving.feedback import Learner

        learner = Learner(value, make_feed(call, value.policy), lambda x: save(x, call.policy))
        decide = learner.decide
    told: list[str] = []

    def decide_and_tell(preds: Predictions) -> Decisions:
        """Decide; of the first rows remember what they were taken for."""
        if not told and preds.receipt is not None:
            told.append(preds.receipt.describe())
            remember_receipt(told[0])
            now = preds.receipt.asked
            if isinstance(value, Policy) and value.asked is not None and now is not None:
                for change in value.asked.list_changes(now):
                    note(f"howsure: {change}; its guarantee is not about these answers.")
        return decide(preds)

    guard = make_guard(call, stamp, alarm_file, value if isinstance(value, Policy) else None)

    def show(decisions: Decisions, batch: StreamBatch) -> None:
        """Show what was delivered to all who follow it."""
        for follower in (learner, guard):
            if follower is not None:
                follower.see(decisions, batch)

    serving = Serving(
        on_bad=call.on_bad,
        report=note,
        stamp=stamp,
        wanted=options,
        bursts=call.burst is not None,
        see=show,
    )
    if guard is not None:
        output = None if call.out is None or call.piped else Path(call.out)
        guard.follow(output, resume=call.resume)
        if call.stop_on_alarm:
            serving = replace(serving, halt=lambda: guard.raised)
    if learner is not None and call.resume and call.out is not None:
        learner.resume(Path(call.out))
    try:
        # Labels that are there already may raise an alarm before the first row.
        if guard is not None:
            guard.learn()
        total = _decide_all(call, decide_and_tell, serving)
        for follower in (learner, guard):
            if follower is not None:
                follower.learn()
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


def as_path(name: str | None) -> Path | None:
    return None if name is None else Path(name)


def load_policy(path: str) -> Policy | OnlinePolicy:
    from howsure._core.saving import load
    from howsure.policies.policy import Policy

    value = load(path)
    if isinstance(value, Policy):
        return value
    from howsure.policies.online import OnlinePolicy

    if isinstance(value, OnlinePolicy):
        return value
    from howsure.policies.cascades import Cascade

    if isinstance(value, Cascade):
        return value.to_policy()
    raise InputError(
        f"{path} holds a saved {type(value).__name__}, not a policy; make one with howsure threshold."
    )


def check_call(call: DecideCall, policy: Policy | OnlinePolicy) -> None:
    """Refuse options that mean nothing together, or without another one."""
    from howsure.policies.policy import Policy

    if call.burst is not None and call.drift is None:
        raise InputError("--burst says which rows --drift takes; give --drift too.")
    if call.guarantee is not None and call.labels is None:
        raise InputError(
            "--guarantee is judged by labels; give --labels, a file with ids and labels."
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


def choose_options(
    call: DecideCall, policy: Policy | OnlinePolicy, given: ReadOptions
) -> ReadOptions:
    """How the input is read: as the file that the policy was made from, unless the command line
    says otherwise.
    """
    from howsure.policies.policy import CASE_SCORE, Policy
    from howsure.predictions.read_options import UNLABELLED_PARTS, ReadOptions

    fixed = policy if isinstance(policy, Policy) else policy.policy
    options = fixed.read or ReadOptions()
    context = click.get_current_context()
    for name in READING_OPTIONS:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            options = replace(options, **{name: getattr(given, name)})
    # Names are given part by part. Those of the truth, and of groups that have no thresholds of
    # their own, are about the file of the policy; but a log needs to know its metric.
    names = dict(fixed.read.names) if fixed.read else {}
    unneeded = {"labels", "correct", "grade", "loss", "weight", "group"}
    columns: list[str] = []
    if fixed.segmented:
        from howsure.predictions.segments import PREDICTED, parse_segments

        columns = [cut.column for cut in parse_segments(fixed.by or "")]
        if "group" in columns:
            unneeded.remove("group")
        columns = [name for name in columns if name not in ("group", PREDICTED)]
    if "correct" in names and not call.piped:
        from howsure.formats.logs import is_log

        if is_log(Path(call.file), options.format):
            unneeded.remove("correct")
    names = {part: columns for part, columns in names.items() if part not in unneeded}
    names |= {part: columns for part, columns in given.names.items() if part != "labels"}
    if call.burst is not None:
        names["group"] = call.burst
    if call.labels is not None and call.join is not None:
        ours = call.join.partition("=")[0].strip()
        if ours != "id":
            names.setdefault("ids", ours)
    # The split says which rows of that file were used, nothing about this one.
    options = replace(
        options,
        names=names,
        split=given.split,
        beside=UNLABELLED_PARTS,
        attributes=(*columns, *getattr(fixed.calibrator, "columns", ())),
    )
    # A policy for images or for many labels says by itself how its input is read.
    if policy is fixed and fixed.by == "image":
        from howsure.predictions.images import IMAGE_SCORES

        if call.piped:
            raise InputError(
                "images are decided from a file of arrays (image, class, height, width), not from a pipe."
            )
        score = fixed.keys[0]
        further = () if score in IMAGE_SCORES else (score,)
        options = replace(options, image_score=score, attributes=further)
    if fixed.score == CASE_SCORE:
        monitored = call.drift is not None or call.guarantee is not None
        if monitored or call.resume or call.stop_on_alarm:
            raise InputError(
                "a case is decided as a whole: leave out --drift, --guarantee, --resume, --stop-on-alarm."
            )
    if fixed.asked is not None:
        columns = list(options.attributes)
        if len(fixed.asked.questions) > 1 and "question" not in columns and not options.question:
            columns.append("question")
        options = replace(options, attributes=tuple(columns))
    if policy is fixed and fixed.by == "label":
        if call.drift is not None or call.guarantee is not None:
            raise InputError(
                "--drift and --guarantee count independent decisions; the labels of one case are not."
            )
        options = replace(options, multilabel=True, sums_to_one=True)
    return options


def make_feed(call: DecideCall, policy: Policy, stamp: str = "") -> LabelFeed | None:
    """The labels that come, where a file of them was named."""
    if call.labels is None:
        return None
    from howsure.serving.feedback import LabelFeed

    return LabelFeed(
        Path(call.labels),
        join=call.join,
        column=call.label_column,
        stamp=stamp,
        class_names=policy.class_names,
        on_bad=call.on_bad,
        report=note,
    )


def make_guard(
    call: DecideCall, stamp: str, alarm_file: IO[bytes], policy: Policy | None
) -> AlarmGuard | None:
    if call.drift is None and call.guarantee is None:
        return None
    from howsure.serving.alarm_guard import AlarmGuard, AlarmInputs

    inputs = AlarmInputs(
        drift=as_path(call.drift),
        guarantee=as_path(call.guarantee),
        labels=make_feed(call, policy, stamp) if policy and call.guarantee else None,
        bursts=call.burst is not None,
        policy=stamp,
    )

    def write_line(text: str) -> None:
        alarm_file.write(f"{text}\n".encode())

    return AlarmGuard(inputs, tell=note, write_line=write_line)


def _decide_all(call: DecideCall, decide: Decide, serving: Serving) -> Served:
    """From a file or a pipe, into a file or standard output."""
    from howsure.serving.journal import open_new
    from howsure.serving.stream import decide_file, decide_path, decide_stream

    if call.out is not None and not call.piped:
        return decide_file(decide, call.file, call.out, resume=call.resume, how=serving)
    if call.resume:
        raise InputError("--resume goes on with a file into a file; give FILE and --out.")
    with ExitStack() as opened:
        source: IO[bytes] | None = None
        if call.file in STDIN_NAMES:
            source = sys.stdin.buffer
        elif call.piped:
            source = opened.enter_context(open(call.file, "rb", buffering=0))
        if call.out is None:
            # Unbuffered, so that it is known what a reader was handed.
            sink: ByteSink = getattr(sys.stdout.buffer, "raw", sys.stdout.buffer)
        else:
            check_target(Path(call.out))
            sink = opened.enter_context(open_new(Path(call.out)))
        if source is None:
            total = decide_path(decide, call.file, sink, serving)
        else:
            total = decide_stream(decide, source, sink, how=serving)
    if total.ended == "closed pipe":  # nothing may be flushed into it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return total
