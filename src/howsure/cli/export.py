"""howsure export"""

from __future__ import annotations

import click

from howsure._core.checks import InputError
from howsure.cli.common import note
from howsure.cli.input_output import OutputPath, PathCommand, StatePath


@click.command(cls=PathCommand)
@click.argument("policy", type=StatePath(exists=True, dir_okay=False))
@click.option(
    "--to",
    "target",
    required=True,
    type=click.Choice(["c", "js", "sql", "onnx", "vercel", "litellm", "table"]),
    help="The language, or the gateway of a decision model.",
)
@click.option("-o", "--out", required=True, type=OutputPath(), help="The file to write.")
@click.option(
    "--input",
    "given",
    type=click.Choice(["logits", "probs", "confidence", "score"]),
    help="What it is given [default: as the policy's file].",
)
@click.option(
    "--precision",
    default="double",
    show_default=True,
    type=click.Choice(["double", "float"]),
    help="Of the values; in C also of exp and log.",
)
@click.option(
    "--dialect",
    default="sqlite",
    show_default=True,
    type=click.Choice(
        ["sqlite", "duckdb", "postgres", "snowflake", "bigquery", "redshift", "databricks"]
    ),
    help="Of --to sql; the last four are parsed by our tests, not run.",
)
@click.option("--question", help="Of --to vercel and litellm: the one question it is about.")
@click.option(
    "--model",
    default="",
    help="Name of the model, for the head of the file; vercel: the one that answers below.",
)
@click.option(
    "--expires", default="", help="Date until which it may be used, for the head of the file."
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def command(
    policy: str, target: str, out: str, given: str | None, precision: str, dialect: str,
    question: str | None, model: str, expires: str, quiet: bool,
) -> None:  # fmt: skip
    """Write a policy as a program (C99, JavaScript, SQL, ONNX) or as the settings of a gateway.

    The file carries the guarantee and what it rests on. A score that is compared as given (confidence, score) is
    decided as howsure decide does; one that is computed may be deferred within 2^-40 of its threshold, or
    2^-20 in C with --precision float.

    \b
    Examples:
      howsure export policy.json --to c -o policy.h
      howsure export policy.json --to sql --input confidence --dialect duckdb -o policy.sql
      howsure export policy.json --to vercel --question team --model big/model -o gateway.json
    """
    from datetime import UTC, date, datetime

    from howsure._core.file_access import replace_file, write_text
    from howsure._core.saving import identify_saved, load
    from howsure.policies.cascades import Cascade
    from howsure.policies.policy import Policy
    from howsure.serving.export_text import TEXT_EXPORTS
    from howsure.serving.exports import plan_export
    from howsure.serving.gateways import GATEWAYS, plan_gateway

    value = load(policy)
    if isinstance(value, Cascade):
        value = value.to_policy()
    if not isinstance(value, Policy):
        raise InputError(f"{policy} holds a saved {type(value).__name__}, not a policy.")
    digest = identify_saved(policy)[1]
    if expires:
        try:
            date.fromisoformat(expires)
        except ValueError:
            raise InputError(
                f"--expires is {expires!r}; a date such as 2027-01-31 is needed."
            ) from None
    if target in GATEWAYS:
        settings = plan_gateway(value, digest=digest, model=model)
        write_text(out, GATEWAYS[target](settings, question))
        note(f"wrote {out}", quiet)
        return
    made = plan_export(
        value, target=target, given=given, precision=precision, dialect=dialect,
        digest=digest, model=model, exported=datetime.now(UTC).date().isoformat(), expires=expires,
    )  # fmt: skip
    if target == "onnx":
        from howsure.serving.export_onnx import write_onnx

        graph = write_onnx(made).SerializeToString()
        with replace_file(out) as temporary:
            temporary.write_bytes(graph)
    else:
        write_text(out, TEXT_EXPORTS[target](made))
    note(f"wrote {out}", quiet)
