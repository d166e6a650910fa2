"""howsure verify"""

from __future__ import annotations

from math import isnan

import click

from howsure._core.checks import InputError
from howsure.cli.common import note
from howsure.cli.input_output import PathCommand, StatePath

ALLOWED_ROUNDING = 1e-9
# Those whose bound is that of the counts at the threshold, with the whole of delta.
COUNTED_METHODS = ("joint limits", "fixed-sequence testing")


@click.command(cls=PathCommand)
@click.argument("policy", type=StatePath(exists=True, dir_okay=False))
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; only the exit code tells.")
def command(policy: str, quiet: bool) -> int:
    """Is a policy as it was saved, and does its bound follow from its counts?

    Checks the digest (the signature where HOWSURE_KEY is set) and derives the bound again from the accepted
    answers and their errors. The digest guards against accidents, a key against edits. Exit code 1 where the
    bound does not follow, 2 where the file was changed.

    \b
    Examples:
      howsure verify policy.json
    """
    from howsure import bounds
    from howsure._core.saving import load
    from howsure.policies.policy import Policy

    value = load(policy)
    if not isinstance(value, Policy):
        raise InputError(f"{policy} holds a saved {type(value).__name__}, not a policy.")
    note("The digest matches: the file is as it was saved.", quiet)
    promised, basis = value.guarantee, value.basis
    if (
        promised is None
        or basis is None
        or promised.groups
        or value.keys
        or isnan(basis.accuracy)
        or isnan(promised.bound)
        or not any(name in promised.rule for name in COUNTED_METHODS)
    ):
        note("The bound was not derived again: this policy does not hold the counts for it.", quiet)
        return 0
    kept = round(basis.n * basis.coverage)
    errors = round(kept * (1 - basis.accuracy))
    derived = bounds.clopper_pearson(errors, kept, promised.delta)
    counts = f"{errors:,} errors among {kept:,} of {basis.n:,} (delta {promised.delta:g})"
    if abs(derived - promised.bound) > ALLOWED_ROUNDING or derived > promised.risk:
        note(f"FAILED: {counts} give a bound of {derived:.6g}, the policy says {promised.bound:.6g}.", quiet)  # fmt: skip
        return 1
    note(f"The bound {promised.bound:.6g} follows from {counts}.", quiet)
    return 0
