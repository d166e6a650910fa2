"""howsure serve"""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

import click

from howsure._core.checks import InputError, need
from howsure._core.file_access import check_target
from howsure.cli.common import ReadingCommand, add_reading_options, is_quiet, note
from howsure.cli.decide import (
    ALARM_EXIT_CODE,
    DecideCall,
    as_path,
    check_call,
    choose_options,
    load_policy,
    make_guard,
)
from howsure.cli.input_output import InputPath, OutputPath, StatePath

if TYPE_CHECKING:
    from howsure.policies.policy import Policy
    from howsure.predictions.read_options import ReadOptions
    from howsure.serving.service import DecisionService
    from howsure.serving.web import RequestLimits

TOKEN_VARIABLE = "HOWSURE_TOKEN"


@click.command(cls=ReadingCommand)
@click.argument("policy", type=InputPath(exists=True, dir_okay=False))
@click.option(
    "-o",
    "--out",
    type=OutputPath(),
    default="decisions.jsonl",
    show_default=True,
    help="The journal of decisions; it is continued where it exists.",
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on: this machine."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)
@click.option("--drift", type=StatePath(exists=True), help="A drift monitor; it is updated.")
@click.option(
    "--guarantee", type=StatePath(exists=True), help="A guarantee monitor; it follows --labels."
)
@click.option("--labels", type=OutputPath(), help="Labels that come back are added to this file.")
@click.option("--alarms", type=OutputPath(), help="Append one JSON line for each alarm.")
@click.option(
    "--token-file",
    type=InputPath(exists=True, dir_okay=False),
    help="Answer only who sends this token [default: HOWSURE_TOKEN].",
)
@click.option(
    "--max-body",
    type=click.IntRange(1),
    default=1 << 20,
    show_default=True,
    help="Bytes that a request may have.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0.001),
    default=10.0,
    show_default=True,
    help="Seconds that a request may take.",
)
@click.option(
    "--commit-ms",
    type=click.FloatRange(0, 1000),
    default=0.0,
    show_default=True,
    help="Milliseconds that a decision waits for others beyond those that come while the disk works.",
)
@click.option(
    "--remember",
    type=click.IntRange(1),
    default=250_000,
    show_default=True,
    help="How many ids are known again.",
)
@add_reading_options
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but alarms and errors.")
def command(
    policy: str, out: str, host: str, port: int, drift: str | None, guarantee: str | None,
    labels: str | None, alarms: str | None, token_file: str | None, max_body: int, timeout: float,
    commit_ms: float, remember: int, quiet: bool, options: ReadOptions,
) -> int:  # fmt: skip
    """Answer requests by a saved policy, over HTTP on this machine.

    POST /decide takes one prediction as a JSON object, or a list of them, as lines of howsure decide, and answers
    with the lines that decide writes. Each decision is in the journal before it is answered, once; an id that
    comes again gets its first answer. POST /labels takes {"id": ..., "correct": 0 or 1} for --guarantee.
    GET /metrics is for Prometheus, GET /healthz for whoever restarts it. SIGTERM and Ctrl-C end it when what was
    taken in is answered. Exit code 3 where an alarm is active.

    \b
    Examples:
      howsure serve policy.json
      howsure serve policy.json -o decisions.jsonl --drift drift.json --guarantee kept.json --labels came.jsonl
      curl -d '{"id": "a", "probs": [0.9, 0.1]}' http://127.0.0.1:8080/decide
    """
    from howsure.policies.policy import Policy

    for package in ("starlette", "uvicorn"):
        need(package, for_="howsure serve", extra="serve")
    from howsure.serving.web import RequestLimits

    call = DecideCall(
        policy=policy,
        file="-",
        out=out,
        resume=True,
        on_bad="skip",
        drift=drift,
        guarantee=guarantee,
        labels=labels,
        join=None,
        label_column=None,
        burst=None,
        alarms=alarms,
        stop_on_alarm=False,
    )
    fixed = load_policy(policy)
    if not isinstance(fixed, Policy):
        raise InputError(f"{policy} is an online policy; howsure decide applies it.")
    if fixed.following:
        raise InputError(
            f"{policy} is a cascade, which is asked about one id more than once; "
            "howsure decide applies it, and decide_one in a service of your own."
        )
    check_call(call, fixed)
    check_target(Path(out))
    token = os.environ.get(TOKEN_VARIABLE, "")
    if token_file is not None:
        token = Path(token_file).read_text("utf-8").strip()
        if not token:
            raise InputError(f"{token_file} is empty; it should hold the token.")
    limits = RequestLimits(
        body_bytes=max_body, seconds=timeout, token=token, commit_seconds=commit_ms / 1000
    )
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family)
    except OSError as e:
        reason = (e.strerror or str(e)).lower()
        raise InputError(f"cannot listen on {host}, port {port}: {reason}.") from None
    # Answers are small; one that waits for another packet takes 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with listener:
        service = _serve(call, fixed, options, limits=limits, listener=listener, remember=remember)
    counts = service.counts
    note(
        f"{counts['accept'] + counts['defer']:,} decided: {counts['accept']:,} accepted, "
        f"{counts['defer']:,} deferred, {counts['repeated']:,} asked again, in "
        f"{service.commits.count:,} commits of {service.commits.mean * 1000:.1f} ms on average; "
        f"{out} has {service.lines:,} lines",
        quiet,
    )
    return ALARM_EXIT_CODE if service.guard is not None and service.guard.raised else 0


def _serve(
    call: DecideCall,
    policy: Policy,
    options: ReadOptions,
    *,
    limits: RequestLimits,
    listener: socket.socket,
    remember: int,
) -> DecisionService:
    """Answer until somebody ends it."""
    from howsure._core.saving import identify_saved
    from howsure.serving.journal import hold_lock
    from howsure.serving.service import DecisionService
    from howsure.serving.stream import Serving
    from howsure.serving.web import run_server

    stamp = identify_saved(call.policy)[1][:12]
    how = Serving(report=note, stamp=stamp, wanted=choose_options(call, policy, options))
    with ExitStack() as opened:
        for path in (call.out, call.drift, call.guarantee, call.labels):
            opened.enter_context(hold_lock(as_path(path)))
        alarm_file = opened.enter_context(open(call.alarms or os.devnull, "ab", buffering=0))
        service = DecisionService(
            policy.decide,
            Path(call.out or ""),
            how,
            guard=make_guard(call, stamp, alarm_file, policy),
            labels=as_path(call.labels),
            class_names=policy.class_names,
            remember=remember,
        )

        def announce() -> None:
            host, port = listener.getsockname()[:2]
            waits = f"what arrives within {limits.commit_seconds * 1000:g} ms"
            if not limits.commit_seconds:
                waits = "what arrives while the disk works"
            place = f"[{host}]" if ":" in host else host
            note(
                f"howsure: {call.policy} answers on http://{place}:{port}. "
                f"Group commit: {waits} is written and synced together.",
                is_quiet(),
            )
            if not limits.token and not ip_address(host).is_loopback:
                note("howsure: whoever reaches this address may ask; --token-file sets a token.")

        run_server(service, limits, listener, announce)
        service.close()
    return service
