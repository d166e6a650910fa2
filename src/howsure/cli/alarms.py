"""howsure alarms status, howsure alarms reset"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from howsure._core import strict_json
from howsure._core.checks import InputError
from howsure._core.text import make_printable
from howsure.cli.common import note
from howsure.cli.input_output import InputPath, StatePath

if TYPE_CHECKING:
    from howsure.serving.alarm_guard import AlarmState

ALARM_EXIT_CODE = 3


@click.group()
def command() -> None:
    """What alarms stand, and begin again after one.

    \b
    Examples:
      howsure alarms status drift.json kept.json
      howsure alarms reset drift.json --reason "new scanner, threshold chosen again"
    """


@command.command()
@click.argument(
    "states",
    nargs=-1,
    required=True,
    type=InputPath(exists=True, dir_okay=False),
    metavar="STATE...",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line for each.")
def status(states: Sequence[str], as_json: bool) -> int:
    """What a drift or guarantee monitor has seen, and whether an alarm is active: exit code 3."""
    from howsure.policies.drift_monitor import DriftMonitor
    from howsure.serving.alarm_guard import load_state

    loaded = [load_state(path) for path in states]
    for path, state in zip(states, loaded, strict=True):
        if not as_json:
            click.echo(make_printable(f"{path}: {_describe(state)}"))
            continue
        facts: dict[str, object] = {"state": path}
        if isinstance(state, DriftMonitor):
            facts |= {"kind": "drift", "seen": state.seen}
        else:
            facts |= {"kind": "guarantee", "labels": state.labels, "wrong": state.wrong}
            facts |= {"risk": state.risk, "kept": state.kept}
        facts |= {"false_alarms": state.false_alarms, "alarms": state.alarms}
        click.echo(strict_json.dump_line(facts | {"resets": state.resets}))
    return ALARM_EXIT_CODE if any(state.alarms for state in loaded) else 0


@command.command()
@click.argument("state", type=StatePath(exists=True, dir_okay=False))
@click.option("--reason", required=True, help="Why; it is kept in the file.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def reset(state: str, reason: str, quiet: bool) -> int:
    """Begin again: the alarm no longer stands, and the lifetime rate counts from now."""
    from howsure._core.saving import save
    from howsure.serving.alarm_guard import load_state
    from howsure.serving.journal import hold_lock

    if not reason.strip():
        raise InputError("--reason is empty; say why, for those who read the file later.")
    with hold_lock(Path(state)):
        save(load_state(state).reset(reason), state)
    note(f"{state} begins again: {reason}", quiet)
    return 0


def _describe(state: AlarmState) -> str:
    from howsure.policies.drift_monitor import DriftMonitor
    from howsure.serving.alarm_guard import ALARM_TEXTS

    if isinstance(state, DriftMonitor):
        unit, text = "sample", f"{state.seen:,} samples seen"
    else:
        unit = "label"
        text = f"{state.wrong:,} of {state.labels:,} labels wrong, {state.risk:g} guaranteed"
        if state.kept is not None:
            text += f", shown to be kept at label {state.kept:,}"
    for name, at in state.alarms.items():
        text += f"; ALARM: {ALARM_TEXTS[name]} (since {unit} {at:,})"
    if not state.alarms:
        text += "; no alarm"
    if state.resets:
        times = "once" if len(state.resets) == 1 else f"{len(state.resets)} times, last"
        text += f"; reset {times}: {state.resets[-1]}"
    return text
