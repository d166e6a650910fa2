"""howsure watch status, howsure watch reset"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from howsure._core import json
from howsure._core.check import InputError
from howsure._core.text import printable
from howsure.cli.common import note

if TYPE_CHECKING:
    from howsure.policies.watch import Watch
    from howsure.serving.promise import WatchedPromise

ALARM = 3  # exit code


@click.group()
def command() -> None:
    """What alarms stand, and begin again after one.

    \b
    Examples:
      howsure watch status watch.json promise.json
      howsure watch reset watch.json --reason "new scanner, threshold chosen again"
    """


@command.command()
@click.argument(
    "states",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False),
    metavar="STATE...",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line for each.")
def status(states: Sequence[str], as_json: bool) -> int:
    """What a watch or a promise has seen, and whether an alarm stands: exit code 3."""
    from howsure.serving.alarms import load_watched

    found = [(path, load_watched(path)) for path in states]
    for path, state in found:
        click.echo(
            json.line({"state": path, **_facts(state)})
            if as_json
            else printable(f"{path}: {_words(state)}")
        )
    return ALARM if any(state.alarms for _, state in found) else 0


@command.command()
@click.argument("state", type=click.Path(exists=True, dir_okay=False))
@click.option("--reason", required=True, help="Why; it is kept in the file.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def reset(state: str, reason: str, quiet: bool) -> int:
    """Begin again: the alarm no longer stands, and the lifetime rate counts from now."""
    from howsure._core.saving import save
    from howsure.serving.alarms import load_watched
    from howsure.serving.output import held

    if not reason.strip():
        raise InputError("--reason is empty; say why, for those who read the file later.")
    with held(Path(state)):
        save(load_watched(state).reset(reason), state)
    note(f"{state} begins again: {reason}", quiet)
    return 0


def _facts(state: Watch | WatchedPromise) -> dict[str, object]:
    from howsure.policies.watch import Watch

    common: dict[str, object] = {
        "false_alarms": state.false_alarms,
        "alarms": state.alarms,
        "resets": state.resets,
    }
    if isinstance(state, Watch):
        return {"kind": "watch", "seen": state.seen, **common}
    counts = {"labels": state.labels, "wrong": state.wrong, "risk": state.risk, "kept": state.kept}
    return {"kind": "promise", **counts, **common}


def _words(state: Watch | WatchedPromise) -> str:
    from howsure.policies.watch import Watch
    from howsure.serving.alarms import SAYS

    unit = "sample" if isinstance(state, Watch) else "label"
    if isinstance(state, Watch):
        seen = f"{state.seen:,} samples seen"
    else:
        shown = f", shown to be kept at label {state.kept:,}" if state.kept is not None else ""
        seen = f"{state.wrong:,} of {state.labels:,} labels wrong, {state.risk:g} promised{shown}"
    stand = "; ".join(
        f"ALARM: {SAYS[name]} (since {unit} {at:,})" for name, at in state.alarms.items()
    )
    times = "once" if len(state.resets) == 1 else f"{len(state.resets)} times, last"
    again = f"; reset {times}: {state.resets[-1]}" if state.resets else ""
    return f"{seen}; {stand or 'no alarm'}{again}"
