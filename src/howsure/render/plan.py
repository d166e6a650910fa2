"""A plan (`howsure threshold --json`) → terminal tables."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from howsure.render.tables import Columns

ROWS = 12  # of a long deferral table


def plan_tables(plan: dict[str, Any]) -> RenderableType:
    """Everything that is printed of a plan."""
    parts: list[RenderableType] = [Text(_headline(plan), style="bold"), *map(Text, _sentences(plan)), Text("")]
    if plan["thresholds"]:
        parts += [_own(plan), Text("")]
    for what, rows in plan["deferral"].items():
        parts += [_deferral(what, rows), Text("")]
    return Group(*parts)


def _headline(plan: dict[str, Any]) -> str:
    if plan["threshold"] is None:
        return "Nothing can be accepted: defer everything."
    return f"Accept where {plan['score']} >= {plan['threshold']:.6g}, defer the rest."


def _sentences(plan: dict[str, Any]) -> list[str]:
    out = [f"rule       {plan['promise']['rule']}"] if "promise" in plan else []
    if "n" in plan:
        shares = f"coverage {_percent(plan['coverage'])}, accuracy {_percent(plan['accuracy'])}"
        out.append(f"data       {shares} of {plan['n']:,} samples")
    promise = plan.get("promise", {})
    if promise.get("bound") is not None:
        sure = _percent(1 - promise["delta"])
        out.append(f"bound      risk below {_percent(promise['bound'])} with probability {sure}")
    if promise.get("delta") is not None and not promise["feasible"]:
        needed = promise["labels_needed"]
        more = "more labels alone would not help" if needed is None else f"about {needed:,} labels like these would do"
        out.append(f"infeasible {plan['n']:,} labels do not allow this promise; {more}")
    out += [_found("expected", plan["expected"])] if plan["expected"] else []
    if plan["test"]:
        out.append(_found("test", plan["test"]) + _verdict(plan["test"]))
    return out


def _found(name: str, e: dict[str, Any]) -> str:
    return f"{name:10} coverage {_share(e['coverage'])}, accuracy {_share(e['accuracy'])}"


def _verdict(test: dict[str, Any]) -> str:
    if test["compatible"] is None:
        return ""
    if test["observed_below"]:
        return f"; promise of risk {_percent(test['risk_promised'])} kept"
    return f"; risk above {_percent(test['risk_promised'])}" + (", within chance" if test["compatible"] else ": BROKEN")


def _own(plan: dict[str, Any]) -> Table:
    table = Table(title=f"Thresholds by {plan['by']} (others take the common one)", title_justify="left", box=None)
    for column in (plan["by"], "threshold"):
        table.add_column(column, justify="right")
    for key, value in plan["thresholds"].items():
        table.add_row(Text(key), "defer all" if value is None else f"{value:.6g}")
    return table


def _deferral(what: str, rows: list[dict[str, Any]]) -> Columns:
    some = f" (the {ROWS - 1} most deferred of {len(rows) - 1})" if len(rows) > ROWS else ""
    head = (what, "n", "deferred", "accuracy accepted", "accuracy deferred")
    shares = ("deferred", "accuracy_accepted", "accuracy_deferred")
    body = [[r["name"], f"{r['n']:,}", *(_share(r[key]) for key in shares)] for r in rows[:ROWS]]
    return Columns(head, body, [False, True, True, True, True], f"What would be deferred, by {what}{some}")


def _share(s: dict[str, Any]) -> str:
    return "–" if s["value"] is None else f"{_percent(s['value'])} ({_percent(s['low'])}–{_percent(s['high'])})"


def _percent(x: float | None) -> str:
    return "–" if x is None else f"{100 * x:.2f} %"
