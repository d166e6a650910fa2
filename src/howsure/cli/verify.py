"""howsure verify"""

from __future__ import annotations

import click

from howsure._core.checks import InputError
from howsure.cli.common import note
from howsure.cli.input_output import OutputPath, PathCommand, StatePath


@click.command(cls=PathCommand)
@click.argument("policy", type=StatePath(exists=True, dir_okay=False))
@click.option("--js", type=OutputPath(), help="Write the JavaScript module of these checks too.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; only the exit code tells.")
def command(policy: str, js: str | None, quiet: bool) -> int:
    """Is a policy as it was saved, and does its bound follow from its counts?

    Checks the digest (the signature where HOWSURE_KEY is set) and searches the threshold and its bound again
    among the counts that were tested. The digest guards against accidents, a key against edits. Exit code 1
    where the bound does not follow, 2 where the file was changed.

    \b
    Examples:
      howsure verify policy.json
    """
    from pathlib import Path

    from howsure._core.file_access import write_text
    from howsure._core.saving import load
    from howsure.policies.policy import Policy
    from howsure.policies.policy_check import derive_bounds

    if js is not None:
        source = Path(__file__).parent / "static" / "verify.mjs"
        write_text(js, source.read_text(encoding="utf-8"))
        note(f"wrote {js}", quiet)
    value = load(policy)
    if not isinstance(value, Policy):
        raise InputError(f"{policy} holds a saved {type(value).__name__}, not a policy.")
    note("The digest matches: the file is as it was saved.", quiet)
    derived = derive_bounds(value)
    if not derived:
        note("The bound was not derived again: this policy does not hold the counts for it.", quiet)
    for made in derived:
        of = f" of {made.name!r}" * bool(made.name)
        if made.follows:
            note(f"The bound {made.said:.6g}{of} follows from {made.counts}.", quiet)
            continue
        note(
            f"FAILED: the threshold and the bound {made.said:.6g}{of} do not follow from {made.counts}.",
            quiet,
        )
    return int(not all(made.follows for made in derived))
