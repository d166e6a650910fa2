"""A policy as a program: C99, a JavaScript module, an SQL expression or an ONNX graph, with its
evidence on top.

A score that is computed is compared with a threshold that is raised by 2⁻⁴¹ of itself (2⁻²¹ with
single-precision functions), so that rounding can only defer; a score that is compared as given is
compared with the threshold itself. What cannot be exported is refused in a sentence.
"""

from __future__ import annotations

from math import inf, isfinite, isnan

from howsure._core.checks import InputError
from howsure._core.frozen import frozen
from howsure._core.version import __version__
from howsure.calibrators import Calibrator
from howsure.calibrators.linear import StructuredScaling, VectorScaling
from howsure.calibrators.logistic import Beta, Platt
from howsure.calibrators.step_functions import HistogramBinning, Isotonic
from howsure.calibrators.temperature import Temperature
from howsure.policies.one_decision import LOGIT_SCORES, PROBABILITY_SCORES
from howsure.policies.policy import Policy
from howsure.serving.export_steps import Program, ProgramBuilder

# Half of the band inside which a target may only defer.
GUARD, SINGLE_GUARD = 2.0**-41, 2.0**-21
LEAST_SCALE = 2.0**-1000
MAX_CLASSES, MAX_SQL_COLUMNS = 2000, 100
INPUTS = ("logits", "probs", "confidence", "score")
ANY_SCORE = (*LOGIT_SCORES, "top_k_mass")
BOUNDED_SCORES = ("max_prob", "margin", "entropy", "top_k_mass")  # by 1
SOFTMAX_MAPS = (Temperature, StructuredScaling, VectorScaling)
CLASS_MAPS = (Platt, Beta, Isotonic, HistogramBinning)


@frozen(eq=False)
class Export:
    """What a target is written from: a policy, what it is given and computes, and where it came from."""

    policy: Policy
    given: str
    program: Program
    target: str = "c"
    precision: str = "double"
    digest: str = ""
    model: str = ""
    exported: str = ""
    expires: str = ""
    dialect: str = "sqlite"

    @property
    def size(self) -> int:
        """How many numbers it is given."""
        if self.given in ("logits", "probs"):
            return self.policy.k or 0
        return 1

    @property
    def guard(self) -> float:
        """By how much of itself the threshold of a computed score is raised."""
        if self.program.relative == 0 and self.program.absolute == 0:
            return 0.0
        if (self.target, self.precision) == ("c", "float"):
            return SINGLE_GUARD
        return GUARD

    @property
    def thresholds(self) -> list[float]:
        """The thresholds of the keys, then that of all others, with the guard of this score."""
        values = [*self.policy.thresholds, self.policy.threshold]
        scale = [max(abs(t), LEAST_SCALE) if isfinite(t) else 0.0 for t in values]
        return [t + self.guard * s for t, s in zip(values, scale, strict=True)]


def plan_export(
    policy: Policy,
    *,
    target: str = "c",
    given: str | None = None,
    precision: str = "double",
    digest: str = "",
    model: str = "",
    exported: str = "",
    expires: str = "",
    dialect: str = "sqlite",
) -> Export:
    """The export of a policy; raise where no target can hold it."""
    if given is None and policy.read is not None:
        given = policy.read.kind
    if given is None:
        listed = ", ".join(INPUTS)
        raise InputError(f"the policy does not say what it is given; say --input with {listed}.")
    if given not in INPUTS:
        raise InputError(f"--input is {given}; exports take {', '.join(INPUTS)}.")
    if policy.by is not None and (policy.by == "predicted" or not policy.by.isidentifier()):
        raise InputError(f"segments by {policy.by} cannot be exported; the values of a column can.")
    if policy.by in ("label", "image") or policy.costs is not None:
        raise InputError("policies of labels, images and costs cannot be exported; use decide.")
    if precision == "float" and target in ("js", "sql"):
        raise InputError(f"{target} knows only double; --precision float is for c and onnx.")
    calibrator = policy.calibrator
    if type(calibrator).__name__ == "Identity":
        calibrator = None
    builder = ProgramBuilder(policy.k or 1, target, precision, dialect)
    if given in ("logits", "probs"):
        program = _plan_classes(builder, policy, calibrator, given)
    else:
        program = _plan_number(builder, policy, calibrator, given)
    made = Export(
        policy=policy, given=given, program=program, target=target, precision=precision,
        digest=digest, model=model, exported=exported, expires=expires, dialect=dialect,
    )  # fmt: skip
    _refuse_rounding(made)
    return made


def _plan_classes(
    builder: ProgramBuilder, policy: Policy, calibrator: Calibrator | None, given: str
) -> Program:
    """The steps from the numbers of all classes."""
    if policy.k is None or not 2 <= policy.k <= MAX_CLASSES:
        raise InputError(f"the policy has {policy.k} classes; 2 to {MAX_CLASSES:,} are exported.")
    known = ANY_SCORE
    if given == "probs":
        known = (*PROBABILITY_SCORES, "top_k_mass")
    if policy.score not in known:
        raise InputError(
            f"{policy.score} of {given} cannot be exported; {', '.join(known)} can, "
            "and with --input score any score that you compute."
        )
    name = type(calibrator).__name__
    fitted_on = None
    if calibrator and calibrator.fitted:
        fitted_on = calibrator.fitted.kind
    if calibrator is not None and not isinstance(calibrator, SOFTMAX_MAPS + CLASS_MAPS):
        names = ", ".join(kind.__name__ for kind in SOFTMAX_MAPS + CLASS_MAPS)
        raise InputError(f"{name} cannot be exported; {names} can.")
    if isinstance(calibrator, VectorScaling) and fitted_on not in (None, given):
        raise InputError(f"this {name} was fitted on {fitted_on}; export with --input {fitted_on}.")
    if isinstance(calibrator, CLASS_MAPS):
        if given == "logits":
            raise InputError(
                f"{name} maps probabilities, and the last digit of a softmax could move one over a step; "
                "export with --input probs and give it the softmax."
            )
        if getattr(calibrator, "top_label", False):
            raise InputError(f"this {name} maps a confidence; export with --input confidence.")
    if given == "logits":
        builder.take_logits(ruled_out=calibrator is None or isinstance(calibrator, Temperature))
        builder.calibrate_logits(calibrator)
        return builder.score_logits(policy.score)
    builder.take_probabilities()
    builder.calibrate_probabilities(calibrator)
    return builder.score_probabilities(policy.score)


def _plan_number(
    builder: ProgramBuilder, policy: Policy, calibrator: Calibrator | None, given: str
) -> Program:
    """The steps from a confidence or a score."""
    name = type(calibrator).__name__
    if given == "confidence" and policy.score != "max_prob":
        raise InputError(f"a confidence is max_prob, and this policy has {policy.score}.")
    if given == "score" and calibrator is not None:
        raise InputError(
            f"this policy applies {name} before it scores; export with another --input."
        )
    if calibrator is not None and not getattr(calibrator, "top_label", False):
        raise InputError(f"this {name} needs all classes; export with --input logits or probs.")
    if policy.score == "max_prob":
        builder.take_number("0.0", "1.0", mapped=calibrator is not None)
    else:
        builder.take_number("-inf", "inf", mapped=False)
    if isinstance(calibrator, (Platt, Beta, Isotonic)):
        builder.map_each(calibrator)
    return builder.score_number()


def _refuse_rounding(export: Export) -> None:
    """Raise where the last digits of a score alone could decide."""
    program, policy, guard, score = export.program, export.policy, export.guard, export.policy.score
    if guard == 0:
        return
    for t in (policy.threshold, *policy.thresholds):
        if score in BOUNDED_SCORES and 1 - 2 * guard <= t < inf:
            raise InputError(
                f"the threshold {t!r} of {score} is 1 but for rounding in {export.precision}; "
                "make the policy with --score log_max_prob, which keeps its digits there."
            )
        error = program.relative * abs(t) + program.absolute
        if isfinite(t) and error > guard * max(abs(t), LEAST_SCALE):
            advice = (
                "use howsure decide, or compute the score yourself and export with --input score"
            )
            if guard == SINGLE_GUARD:
                advice = "export with --precision double"
            raise InputError(
                f"with the threshold {t!r} of {score} rounding in {export.precision} could decide "
                f"({error:.1g}, at most {guard * abs(t):.1g} is allowed); {advice}."
            )


def list_evidence(export: Export) -> list[str]:
    """What the policy promises and what it rests on, line by line, for the head of an export."""
    policy, basis, guarantee = export.policy, export.policy.basis, export.policy.guarantee
    lines = [
        f"Made by howsure {__version__}. Accept where {policy.score} >= threshold, else defer."
    ]
    if policy.calibrator is not None:
        lines.append(f"After {type(policy.calibrator).__name__}.")
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
    for what in ("digest", "model", "exported", "expires"):
        value: str = getattr(export, what)
        if value:
            lines.append(f"{what.capitalize()}: {value}.")
    # No text of a file may begin or end a comment or a line of it.
    shown = ["".join(c if c.isprintable() else "?" for c in line) for line in lines]
    return [line.replace("*/", "* /").replace("/*", "/ *") for line in shown]
