"""A policy as a program: C99, a JavaScript module, or an SQL expression, with its evidence on top.

A score that is computed (a softmax of logits) is compared with a threshold that is raised by
2⁻⁴¹ of itself, so that rounding can only defer; a score that is compared as given is compared with
the threshold itself. What cannot be exported is refused in a sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isnan

from howsure._core import strict_json
from howsure._core.checks import LARGEST_NUMBER, InputError
from howsure._core.frozen import frozen
from howsure._core.version import __version__
from howsure.policies.policy import Policy

GUARD = 2.0**-41  # half of the band inside which a target may only defer
MAX_CLASSES, MAX_SQL_COLUMNS = 2000, 100
INPUTS = ("logits", "confidence", "score")
# How each calls the largest of several numbers, and infinity.
SQL_DIALECTS = {
    "sqlite": ("max", "9e999"),
    "duckdb": ("greatest", "CAST('Infinity' AS DOUBLE)"),
    "postgres": ("greatest", "CAST('Infinity' AS double precision)"),
}


@frozen
class Export:
    """What a target is written from: a policy, what it is given, and where it came from."""

    policy: Policy
    given: str
    digest: str = ""
    model: str = ""
    expires: str = ""
    dialect: str = "sqlite"

    @property
    def temperature(self) -> float:
        """What logits are divided by."""
        return float(getattr(self.policy.calibrator, "temperature", 1.0))

    @property
    def keys(self) -> tuple[str, ...]:
        """Those that have thresholds of their own."""
        return self.policy.keys

    @property
    def thresholds(self) -> list[float]:
        """The thresholds of the keys, then that of all others, with the guard of this input."""
        values = [*self.policy.thresholds, self.policy.threshold]
        if self.given == "logits":
            values = [t + GUARD * max(abs(t), 2.0**-1000) for t in values]
        return values


def plan_export(
    policy: Policy,
    *,
    given: str | None = None,
    digest: str = "",
    model: str = "",
    expires: str = "",
    dialect: str = "sqlite",
) -> Export:
    """The export of a policy; raise where no target can hold it."""
    if given is None and policy.read is not None:
        given = policy.read.kind
    if given not in INPUTS:
        raise InputError(f"--input is {given}; exports take {', '.join(INPUTS)}.")
    name = type(policy.calibrator).__name__
    if policy.by is not None and (policy.by == "predicted" or not policy.by.isidentifier()):
        raise InputError(f"segments by {policy.by} cannot be exported; the values of a column can.")
    if policy.by in ("label", "image") or policy.costs is not None:
        raise InputError("policies of labels, images and costs cannot be exported; use decide.")
    if name not in ("NoneType", "Identity", "Temperature"):
        raise InputError(f"{name} cannot be exported; Temperature and no calibrator can.")
    if getattr(policy.calibrator, "samples", None) is not None:
        raise InputError("a Temperature that mixes cannot be exported; a plain one can.")
    if given != "logits" and name == "Temperature":
        raise InputError("a Temperature needs all classes; export with --input logits.")
    if given == "logits":
        if policy.score != "max_prob":
            raise InputError(
                f"of logits max_prob is exported, not {policy.score}; use --input score."
            )
        if policy.k is None or policy.k > MAX_CLASSES:
            raise InputError(
                f"the policy has {policy.k} classes; 2 to {MAX_CLASSES:,} are exported."
            )
        near = [t for t in (policy.threshold, *policy.thresholds) if 1 - 2.0**-40 <= t < inf]
        if near:
            raise InputError(
                f"the threshold {near[0]!r} is 1 but for rounding; "
                "make the policy with --score log_max_prob and export --input score."
            )
    elif given == "confidence" and policy.score != "max_prob":
        raise InputError(f"a confidence is max_prob, and this policy has {policy.score}.")
    return Export(
        policy=policy, given=given, digest=digest, model=model, expires=expires, dialect=dialect
    )


def list_evidence(export: Export) -> list[str]:
    """What the policy promises and what it rests on, line by line, for the head of an export."""
    policy, basis, guarantee = export.policy, export.policy.basis, export.policy.guarantee
    lines = [
        f"Made by howsure {__version__}. Accept where {policy.score} >= threshold, else defer."
    ]
    if guarantee is not None:
        lines.append(f"Rule: {guarantee.rule}.")
        if not isnan(guarantee.delta):
            lines.append(
                f"Risk {guarantee.risk:g}, delta {guarantee.delta:g}, bound {guarantee.bound:.6g}."
            )
    if basis is not None:
        kept = round(basis.n * basis.coverage)
        errors = "unknown" if isnan(basis.accuracy) else f"{round(kept * (1 - basis.accuracy)):,}"
        lines.append(
            f"On {basis.n:,} samples: {kept:,} accepted (coverage {basis.coverage:.6g}), {errors} errors."
        )
        lines.append(f"Data: {basis.source or 'not named'}, sha256 {basis.sha256 or 'not known'}.")
    for what in ("digest", "model", "expires"):
        value: str = getattr(export, what)
        if value:
            lines.append(f"{what.capitalize()}: {value}.")
    # No text of a file may end a comment or a line of it.
    return ["".join(c if c.isprintable() else "?" for c in x).replace("*/", "* /") for x in lines]


def write_c(export: Export) -> str:
    """One C99 header: no allocation, and no call but of exp and strcmp."""
    head = "\n".join(f" * {line}" for line in list_evidence(export))
    values = ", ".join("INFINITY" if t == inf else t.hex() for t in export.thresholds)
    names: list[str] = []
    for key in export.keys:
        if "\0" in key:
            raise InputError(f"the segment {key!r} holds a NUL, which ends a string of C.")
        # Bytes of UTF-8; a question mark could begin a trigraph.
        letters = key.encode("utf-8", "surrogatepass")
        plain = [f"\\{c:03o}" if c < 32 or c > 126 or c in b'"\\?' else chr(c) for c in letters]
        names.append(f'"{"".join(plain)}"')
    body = _write_body(export, "double", "int")
    return C_TEMPLATE.format(
        head=head,
        values=values,
        names=", ".join(names) or '""',
        count=len(names),
        body=body.replace("Math.exp", "exp").replace("Infinity", "INFINITY"),
    )


def write_javascript(export: Export) -> str:
    """A JavaScript module with `decide(values, segment)`."""
    head = "\n".join(f" * {line}" for line in list_evidence(export))
    values = ", ".join("Infinity" if t == inf else repr(t) for t in export.thresholds)
    size = 1
    if export.given == "logits":
        size = export.policy.k
    return JS_TEMPLATE.format(
        head=head,
        values=values,
        names=", ".join(strict_json.dump_line(key) for key in export.keys),
        size=size,
        body=_write_body(export, "let", "let"),
    )


def write_sql(export: Export) -> str:
    """An expression over the columns logit_0 …, confidence or score: 'accept' or 'defer'."""
    largest, infinity = SQL_DIALECTS[export.dialect]
    value, most, valid = export.given, "1.0", ""
    if value == "score":
        most = infinity
    elif value == "logits":
        k = export.policy.k or 0
        if k > MAX_SQL_COLUMNS:
            raise InputError(
                f"the policy has {k} classes; at most {MAX_SQL_COLUMNS} columns are exported."
            )
        scaled = [f"(logit_{i} / {export.temperature!r})" for i in range(k)]
        peak = f"{largest}({', '.join(scaled)})"
        # PostgreSQL refuses an exp that underflows.
        terms = [
            f"CASE WHEN {z} - {peak} < -700 THEN 0.0 ELSE exp({z} - {peak}) END" for z in scaled
        ]
        value = f"(1.0 / ({' + '.join(terms)}))"
        # A class may be ruled out (minus infinity), but not all of them.
        large, columns = repr(LARGEST_NUMBER), [f"logit_{i}" for i in range(k)]
        valid = f" AND {largest}({', '.join(columns)}) BETWEEN -{large} AND {large}"
        for column in columns:
            valid += f" AND ({column} >= -{large} OR {column} = -{infinity})"
    write: Callable[[float], str] = lambda t: infinity if t == inf else repr(t)
    at = write(export.thresholds[-1])
    if export.keys:
        column = export.policy.by
        pairs = zip(export.keys, export.thresholds, strict=False)
        cases = [f"WHEN '{key.replace(chr(39), chr(39) * 2)}' THEN {write(t)}" for key, t in pairs]
        at = f"CASE CAST({column} AS TEXT) {' '.join(cases)} ELSE {at} END"
    # NaN is above infinity in PostgreSQL and DuckDB, and NULL in SQLite: both defer.
    if inf in export.thresholds:
        valid += f" AND {at} < {infinity}"
    head = "\n".join(f"-- {line}" for line in list_evidence(export))
    return f"{head}\nCASE WHEN {value} >= {at} AND {value} <= {most}{valid} THEN 'accept' ELSE 'defer' END\n"


EXPORTS: dict[str, Callable[[Export], str]] = {
    "c": write_c,
    "js": write_javascript,
    "sql": write_sql,
}


def _write_body(export: Export, real: str, whole: str) -> str:
    """From the values to `answer`, `score` and the place of the threshold, in words that C and
    JavaScript share.
    """
    if export.given == "logits":
        k, t = export.policy.k, export.temperature
        return f"""  {whole} answer = 0, i, valid = 1;
  {real} peak, total = 0, score;
  for (i = 0; i < {k}; i++) {{
    if (!(values[i] >= -{LARGEST_NUMBER!r} || values[i] == -Infinity)) valid = 0;
    if (values[i] > values[answer]) answer = i;
  }}
  if (!(values[answer] >= -{LARGEST_NUMBER!r} && values[answer] <= {LARGEST_NUMBER!r})) valid = 0;
  peak = values[answer] / {t!r};
  for (i = 0; i < {k}; i++) total += Math.exp(values[i] / {t!r} - peak);
  score = 1 / total;
  {whole} place = segment;"""
    low, limit = "-Infinity", "Infinity"
    if export.given == "confidence":
        low, limit = "0", "1"
    return f"""  {whole} answer = -1;
  {real} score = values[0];
  {whole} valid = score >= {low} && score <= {limit};
  {whole} place = segment;"""


C_TEMPLATE = """/*
{head}
 * values: one number for each class, or one score. Whatever is not a number defers. segment: from howsure_segment.
 */
#ifndef howsure_policy_h
#define howsure_policy_h
#include <math.h>
#include <string.h>
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

typedef struct {{ int accept; int answer; double score; double threshold; }} howsure_decision;
static const double howsure_thresholds[] = {{{values}}};
static const char *const howsure_names[] = {{{names}}};

static inline int howsure_segment(const char *name) {{
  int i;
  for (i = 0; i < {count}; i++) if (strcmp(howsure_names[i], name) == 0) return i;
  return {count};
}}

static inline howsure_decision howsure_decide(const double *values, int segment) {{
{body}
  howsure_decision made;
  if (place < 0 || place > {count}) place = {count};
  made.answer = answer;
  made.score = score;
  made.threshold = howsure_thresholds[place];
  made.accept = valid && score >= made.threshold && made.threshold < INFINITY;
  return made;
}}
#endif
"""

JS_TEMPLATE = """/*
{head}
 * values: an array of one number for each class, or of one score. Whatever is not a number defers.
 */
const thresholds = [{values}];
const names = [{names}];

export function decide(values, segmentName) {{
  const segment = names.indexOf(segmentName);
{body}
  if (place < 0 || place >= names.length) place = names.length;
  const threshold = thresholds[place];
  // null and text would be taken for numbers.
  const numbers = values.length === {size} && Array.from(values).every((v) => typeof v === "number");
  const accept = numbers && Boolean(valid) && score >= threshold && threshold < Infinity;
  return {{ accept, answer, score, threshold }};
}}
"""
