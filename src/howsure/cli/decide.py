"""howsure decide"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from howsure._core.check import InputError
from howsure.cli.common import note

if TYPE_CHECKING:
    from howsure.policies.policy import Decisions
    from howsure.serving.stream import Served, Serving


@click.command()
@click.argument("policy", type=click.Path(exists=True, dir_okay=False))
@click.argument("file", metavar="FILE|-", type=click.Path())
@click.option("-o", "--out", type=click.Path(), help="Write decisions here instead of standard output.")
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
    "--labels", type=click.Path(), help='Decisions with "correct" added, for an online policy; may grow meanwhile.'
)
@click.option("--split", help="Which split, where a file holds several (val, test, ...).")
@click.option("--mc", is_flag=True, help="Use the Monte-Carlo or ensemble samples (mc_logits).")
@click.option("--renormalise", is_flag=True, help="Divide rows of probabilities by their sum.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but decisions and errors.")
def command(
    policy: str, file: str, out: str | None, resume: bool, on_bad: Any, watch: str | None, labels: str | None,
    split: str | None, mc: bool, renormalise: bool, quiet: bool,
) -> int:  # fmt: skip
    """Accept or defer each prediction by a saved policy.

    Reads JSON lines or CSV from standard input (-) as they arrive, or any file, and writes one JSON line per
    sample: accept or defer, prediction, confidence. SIGTERM, Ctrl-C and a closed pipe end it cleanly. With
    an online policy (howsure threshold --online) the threshold follows --labels and its file is updated.

    \b
    Examples:
      model | howsure decide policy.json - | act
      howsure decide policy.json new.parquet -o decisions.jsonl
      howsure decide policy.json new.jsonl -o decisions.jsonl --resume
      howsure decide online.json - --labels labelled.jsonl --watch watch.json
    """
    from howsure.serving.stream import Serving

    decide, close = _decider(policy, labels)
    watching = _Watching(watch, quiet) if watch else None
    how = Serving(on_bad, lambda m: note(m), renormalise, _stamp(policy, labels), watching.see if watching else None)
    reading = {name: value for name, value in (("split", split), ("mc", mc)) if value}
    try:
        total = _run(decide, file, out, resume, how, reading)
    finally:
        close()
        if watching:
            watching.close()
    note(_summary(total), quiet)
    return 0


def _summary(total: Served) -> str:
    deferred = total.decided - total.accepted
    again = f", {total.skipped:,} decided before" if total.skipped else ""
    bad = f", {total.bad:,} bad lines" if total.bad else ""
    what = f"{total.accepted:,} accepted, {deferred:,} deferred{again}{bad}"
    return f"{total.decided:,} decided: {what} ({total.ended})"


def _run(decide: Any, file: str, out: str | None, resume: bool, how: Serving, reading: dict[str, Any]) -> Served:
    from howsure.serving.resume import decide_file, decide_rows, is_text
    from howsure.serving.stream import decide_stream

    if file != "-" and out is not None:
        return decide_file(decide, file, out, resume=resume, how=how, **reading)
    if resume:
        raise InputError("--resume goes on with a file into a file; give FILE and --out.")
    if file == "-" and out is not None:
        with open(out, "xb", buffering=0) as sink:
            return decide_stream(decide, sys.stdin.buffer, sink, how=how)
    stdout = sys.stdout.buffer
    if file == "-":
        total = decide_stream(decide, sys.stdin.buffer, stdout, how=how)
    elif is_text(file):
        with open(file, "rb") as source:
            total = decide_stream(decide, source, stdout, how=how)
    else:
        total = decide_rows(decide, file, stdout, how, **reading)
    if total.ended == "closed pipe":  # nothing may be flushed into it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return total


def _decider(path: str, labels: str | None) -> tuple[Callable[..., Any], Callable[[], None]]:
    """How to decide, and what to do at the end."""
    from howsure._core.saving import load, save
    from howsure.policies.online import OnlinePolicy
    from howsure.policies.policy import Policy
    from howsure.serving.feedback import Learner

    value = load(path)
    if isinstance(value, OnlinePolicy):
        learner = Learner(value, Path(labels) if labels else None, lambda state: save(state, path))
        return learner.decide, learner.close
    if not isinstance(value, Policy):
        raise InputError(f"{path} holds a {type(value).__name__}, not a policy; make one with howsure threshold.")
    if labels is not None:
        raise InputError(f"{path} is a fixed policy; --labels needs one from howsure threshold --online.")
    return value.decide, lambda: None


def _stamp(path: str, labels: str | None) -> str:
    """The name of a fixed policy in each decision: the start of its digest."""
    import json

    document = json.loads(Path(path).read_bytes())
    fixed = labels is None and document["value"]["class"] == "Policy"
    return document["digest"].removeprefix("sha256:")[:12] if fixed else ""


class _Watching:
    """A watch that is shown every decision, speaks up once per alarm, and is saved now and then."""

    def __init__(self, path: str, quiet: bool):
        from howsure._core.saving import load
        from howsure.policies.watch import Watch

        self.path, self.quiet, self.saved = path, quiet, monotonic()
        found = load(path)
        if not isinstance(found, Watch):
            raise InputError(f"{path} is not a drift watch; make one with howsure threshold --watch.")
        self.watch = found

    def see(self, made: Decisions) -> None:
        before = self.watch.alarms
        self.watch = self.watch.see(made)
        for name in self.watch.alarms.keys() - before.keys():
            note(f"ALARM: the {name} has drifted (sample {self.watch.alarms[name]:,} of the stream)", self.quiet)
        if monotonic() - self.saved >= 1.0:
            self.close()

    def close(self) -> None:
        from howsure._core.saving import save

        save(self.watch, self.path)
        self.saved = monotonic()
