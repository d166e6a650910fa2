"""A policy for a decision model as settings of a gateway: one condition of Vercel's, checks of
LiteLLM's guardrail, or a plain table. What a gateway cannot hold is refused or said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from math import inf, isnan, nextafter
from typing import TypedDict

from howsure._core import strict_json
from howsure._core.checks import InputError
from howsure._core.frozen import frozen
from howsure._core.version import __version__
from howsure.formats.logs.decision_bodies import subtract_from_one
from howsure.policies.policy import CASE_SCORE, Guarantee, Policy
from howsure.predictions.read_options import Asked
from howsure.predictions.segments import CROSSING

DECIMALS = 12  # a threshold with more is that of probabilities in full precision
Comparison = dict[str, str | float | None]


class GatewayRow(TypedDict):
    """One threshold: the question, its type, the values of the columns that choose it, the comparisons that
    accept an answer (none: all are deferred), and what is guaranteed on how many records.
    """

    question: str
    type: str
    segment: str
    accept: list[Comparison]
    risk: float | None
    delta: float | None
    n: int | None


@frozen
class GatewayPolicy:
    """What a target is written from."""

    policy: Policy
    asked: Asked
    evidence: Mapping[str, object]
    rows: tuple[GatewayRow, ...]
    model: str

    def choose_row(self, question: str | None, types: tuple[str, ...], target: str) -> GatewayRow:
        """The one row that a target holds; raise where there are several or none."""
        rows = [row for row in self.rows if row["type"] in types and row["accept"]]
        if question is not None:
            if question not in self.asked.questions:
                known = ", ".join(map(repr, self.asked.questions))
                raise InputError(f"the policy has no question {question!r}; it has {known}.")
            rows = [row for row in rows if row["question"] == question]
        if not rows:
            wanted = " or ".join(types)
            raise InputError(
                f"{target} compares answers of type {wanted}, and the policy accepts none of these."
            )
        if len(rows) > 1:
            listed = ", ".join(sorted({row["question"] for row in rows}))
            raise InputError(
                f"{target} holds one condition, the policy has {len(rows)} ({listed}); say --question."
            )
        return rows[0]


def plan_gateway(policy: Policy, *, digest: str = "", model: str = "") -> GatewayPolicy:
    """The thresholds of a policy and what they rest on; raise where it is about no decision model."""
    asked = policy.asked
    if asked is None or policy.calibrator is not None:
        raise InputError(
            "a gateway compares fields of a decision model's answers; make the policy from its log, "
            "without --calibrator."
        )
    guarantee = policy.guarantee
    evidence: dict[str, object] = {
        "howsure": __version__,
        "exported": date.today().isoformat(),
        "policy": digest,
        "models": list(asked.models),
        "questions": {name: facts[2] for name, facts in asked.questions.items()},
        "rule": "" if guarantee is None else guarantee.rule,
    }
    if policy.basis is not None:
        evidence["data"] = {"file": policy.basis.source, "sha256": policy.basis.sha256}
    if policy.keys:
        evidence["others"] = "deferred" if policy.threshold == inf else policy.threshold
    own = dict(zip(policy.keys, policy.thresholds, strict=True))
    guarantees = dict(zip(policy.keys, policy.guarantees, strict=False))
    rows: list[GatewayRow] = []
    for key, question, segment in list_places(policy, asked):
        threshold = own.get(key, policy.threshold)
        promised = guarantees.get(key, guarantee)
        rows.append(build_row(policy, question, segment, threshold=threshold, guarantee=promised))
    return GatewayPolicy(
        policy=policy, asked=asked, evidence=evidence, rows=tuple(rows), model=model
    )


def list_places(policy: Policy, asked: Asked) -> list[tuple[str, str, str]]:
    """Key, question and segment of each threshold; a whole case has no question."""
    keys = policy.keys or ("",)
    if policy.score == CASE_SCORE:
        return [(key, "", key) for key in keys]
    if policy.by == "question":
        return [(key, key, "") for key in keys]
    if policy.by is not None and policy.by.startswith("question,"):
        pairs = [(key, key.partition(CROSSING)) for key in keys]
        return [(key, parts[0], parts[2]) for key, parts in pairs]
    return [(key, question, key) for key in keys for question in asked.questions]


def build_row(
    policy: Policy,
    question: str,
    segment: str,
    *,
    threshold: float,
    guarantee: Guarantee | None,
) -> GatewayRow:
    """A threshold as comparisons of fields that a runtime sees."""
    kind, field = "case", ""
    if policy.asked is not None and question:
        kind, field, _ = policy.asked.questions[question]
    n = None
    if guarantee is not None and guarantee.groups is not None:
        n = guarantee.groups
    elif policy.basis is not None and not segment:
        n = policy.basis.n
    risk = delta = None
    if guarantee is not None and guarantee.feasible and not isnan(guarantee.risk):
        risk, delta = guarantee.risk, guarantee.delta
    accept: list[Comparison] = []
    if threshold < inf and kind == "yes/no":
        yes, no = find_band(threshold)
        accept = [
            {"answer": "yes", "field": "probability", "operator": ">=", "threshold": yes},
            {"answer": "no", "field": "probability", "operator": "<=", "threshold": no},
        ]
    elif threshold < inf:
        if kind == "case":
            field = "sum of ln(confidence) of all answers, the least first"
        accept = [{"field": field, "operator": ">=", "threshold": threshold}]
    return {
        "question": question,
        "type": kind,
        "segment": segment,
        "accept": accept,
        "risk": risk,
        "delta": delta,
        "n": n,
    }


def find_band(threshold: float) -> tuple[float, float]:
    """The least P(yes) that is accepted as yes, and the largest that is accepted as no.

    >>> find_band(0.93)
    (0.93, 0.07)
    """
    # One half is answered with no.
    yes = max(threshold, nextafter(0.5, 1))
    exact = 1 - Decimal(repr(threshold))
    no = min(float(exact), 0.5)
    digits = exact.as_tuple().exponent
    if isinstance(digits, int) and -digits <= DECIMALS:
        return yes, no
    # In full precision several numbers have the same complement: the largest of them.
    low, high = max(0.0, no - 1e-12), min(0.5, no + 1e-12)
    if subtract_from_one(high) >= threshold:
        return yes, high
    while (middle := (low + high) / 2) not in (low, high):
        if subtract_from_one(middle) >= threshold:
            low = middle
        else:
            high = middle
    return yes, low


def write_table(plan: GatewayPolicy, question: str | None) -> str:
    """Question → threshold, field and operator, as JSON."""
    rows = [row for row in plan.rows if question in (None, row["question"])]
    if not rows:
        plan.choose_row(question, ("yes/no", "choice", "score"), "the table")
    return strict_json.dump_pretty({**plan.evidence, "by": plan.policy.by, "thresholds": rows})


def write_vercel(plan: GatewayPolicy, question: str | None) -> str:
    """The condition below which Vercel's gateway asks another model."""
    check_alone(plan, "vercel")
    if not plan.model:
        raise InputError("vercel asks another model below the threshold; name it with --model.")
    row = plan.choose_row(question, ("choice", "score"), "vercel")
    compared = row["accept"][0]
    if compared["field"] != "confidence":
        raise InputError(
            f"vercel compares the field confidence, which the answers to {row['question']!r} lack."
        )
    when = {"question": row["question"], "confidenceBelow": compared["threshold"]}
    settings = {"models": [{"model": plan.model, "when": when}]}
    evidence = {**plan.evidence, **row}
    return strict_json.dump_pretty({"gateway": settings, "howsure": evidence})


def write_litellm(plan: GatewayPolicy, question: str | None) -> str:
    """Checks of LiteLLM's guardrail, as YAML: a yes/no question is flagged where P(yes) reaches the
    threshold. There is no place for the other side.
    """
    check_alone(plan, "litellm")
    rows = [row for row in plan.rows if row["type"] == "yes/no" and row["accept"]]
    if question is not None or not rows:
        rows = [plan.choose_row(question, ("yes/no",), "litellm")]
    lines = [f"# {name}: {strict_json.dump_line(value)}" for name, value in plan.evidence.items()]
    lines += [
        "# A check is flagged at or above its threshold, which is the yes side of the policy alone:",
        "# an answer that is not flagged may be an automatic no, or one for people.",
        "checks:",
    ]
    for row in rows:
        no = row["accept"][1]["threshold"]
        lines += [
            f"  # risk {row['risk']}, delta {row['delta']}, n {row['n']}; automatic no: P(yes) <= {no}",
            f"  - name: {strict_json.dump_line(row['question'])}",
            '    instructions: "the text of this question, as it was asked"',
            f"    threshold: {row['accept'][0]['threshold']!r}",
            "    action: block",
        ]
    return "\n".join([*lines, ""])


def check_alone(plan: GatewayPolicy, target: str) -> None:
    """Refuse what no gateway compares: whole cases and segments."""
    if plan.policy.score == CASE_SCORE:
        raise InputError(
            f"{target} compares single answers, and this policy compares whole cases; "
            "make one with --partial, or use howsure decide or --to table."
        )
    if plan.policy.by not in (None, "question"):
        raise InputError(
            f"{target} knows no segments, and this policy has thresholds by {plan.policy.by}; "
            "use howsure decide or --to table."
        )


GATEWAYS: dict[str, Callable[[GatewayPolicy, str | None], str]] = {
    "vercel": write_vercel,
    "litellm": write_litellm,
    "table": write_table,
}
