"""howsure threshold"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from howsure.cli.common import ReadingCommand

from howsure._core import json
from howsure._core.check import InputError
from howsure._core.paths import existing
from howsure.cli.common import FILES, note, of_logs, read_files, reading, say, working

if TYPE_CHECKING:
    from howsure.policies.policy import Policy
    from howsure.predictions import Predictions

METHODS = ["fixed_sequence", "fallback", "sgr"]
BOUNDS = ["hoeffding_bentkus", "betting"]


def _rules(f: Callable[..., Any]) -> Callable[..., Any]:
    """The ways to choose a threshold."""
    number = partial(click.option, type=float)
    options = [
        number("--accuracy", help="The most coverage at this accuracy of the accepted."),
        number("--coverage", help="Accept at least this share."),
        number("--risk", help="Guarantee: true risk of the accepted at most this, with probability 1 - delta."),
        number("--delta", default=0.05, show_default=True, help="How often the guarantee may fail."),
        click.option("--method", type=click.Choice(METHODS), default=METHODS[0], show_default=True),
        click.option("--bound", type=click.Choice(BOUNDS), help="Of losses other than right and wrong, with --risk."),
        number("--error-cost", help="Least cost: what a wrong answer costs."),
        number("--deferral-cost", default=1.0, show_default=True, help="What asking the expert costs."),
        number("--expert-error", default=0.0, show_default=True, help="How often the expert is wrong."),
        click.option("--costs", type=click.Path(), help="CSV matrix: rows truth, columns answer."),
        number("--uncertainty", help="Reject above this normalised entropy (Laves)."),
    ]  # fmt: skip
    for option in reversed(options):
        f = option(f)
    return f


@click.command(cls=ReadingCommand)
@FILES
@_rules
@click.option("--score", default="max_prob", show_default=True, help="Which score to threshold.")
@click.option(
    "--loss",
    type=click.Choice(["dice"]),
    help="Masks: a threshold on images, whose loss is 1 - Dice.",
)
@click.option(
    "--image-score",
    metavar="NAME",
    help="With --loss dice: a column or array in [0, 1] to threshold.",
)
@click.option(
    "--by",
    type=click.Choice(["class", "group"]),
    help="Own thresholds by predicted class or by group.",
)
@click.option(
    "--minimum",
    default=100,
    show_default=True,
    help="Samples below which --by uses the common threshold.",
)
@click.option("--calibrator", type=click.Path(), help="Apply a saved calibrator first.")
@click.option("--on", "on", type=click.Path(), help="Check the result on this file.")
@click.option("--on-split", help="... or on this split (of FILE, where --on is not given).")
@click.option("-o", "--out", type=click.Path(), help="Write the policy (JSON) for howsure decide.")
@click.option("--watch", type=click.Path(), help="Write a drift watch for howsure decide --watch.")
@click.option(
    "--promise", type=click.Path(), help="Write a promise of --risk for howsure decide --promise."
)
@click.option(
    "--false-alarms",
    default=0.01,
    show_default=True,
    help="Lifetime false-alarm rate of --watch and of --promise.",
)
@click.option(
    "--online", type=click.Path(), help="Write an online policy that keeps --risk under drift."
)
@click.option(
    "--audit",
    default=0.1,
    show_default=True,
    help="Share of accepted that --online asks labels for.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@reading
def command(
    files: Sequence[str], score: str, loss: str | None, image_score: str | None, by: Any, minimum: int,
    calibrator: str | None, on: str | None, on_split: str | None, out: str | None, watch: str | None,
    promise: str | None, false_alarms: float, online: str | None, audit: float, as_json: bool, quiet: bool,
    split: str | None, mc: bool, renormalise: bool, names: Sequence[str], **rule: Any,
) -> int:  # fmt: skip
    """Above which confidence may the model decide alone?

    Chooses a threshold on labelled data (that trained neither the model nor the calibrator), says what to
    expect on new data, what would be deferred, and writes a policy. Exit code 1 where nothing can be
    accepted, or where the data of --on contradict the promise.

    \b
    Examples:
      howsure threshold val.npz --accuracy 0.99
      howsure threshold val.npz --risk 0.02 --delta 0.05 -o policy.json
      howsure threshold all.npz --split val --on-split test --risk 0.02
      howsure threshold val.csv --error-cost 50 --deferral-cost 1 --expert-error 0.01
      howsure threshold val.npz --accuracy 0.98 --by class
      howsure threshold tags.npz --multilabel --risk 0.05 -o policy.json
      howsure threshold scans.npz --loss dice --risk 0.15 --bound betting -o policy.json
    """
    from howsure._core.saving import load
    from howsure.policies.planning import plan
    from howsure.policies.policy import Policy
    from howsure.predictions.images import SCORES, images_of
    from howsure.report.focus import Focus

    log = of_logs(rule)
    costs = _matrix(rule.pop("costs"))
    chosen, score = _choose(rule, score, costs)
    log |= {"attributes": Focus.of(None, (), loss, image_score).columns}
    preds = read_files(files, split, mc, renormalise, names, **log)
    test = _test(on, on_split, files, mc=mc, renormalise=renormalise, names=names, **log)
    if loss is not None:
        if by is not None or log["multilabel"] or calibrator or online:
            raise InputError(
                "--loss dice is about whole images: leave out --by, --multilabel, --calibrator, --online."
            )
        preds = images_of(preds, score=image_score).predictions()
        test = None if test is None else images_of(test, score=image_score).predictions()
    if rule["bound"] is not None and not preds.graded:
        raise InputError(
            "--bound is for losses in [0, 1], such as --loss dice; right and wrong are counted exactly."
        )
    correct = load(calibrator) if calibrator else None
    with working("choosing"):
        how: dict[str, Any] = {
            "score": score,
            "calibrator": correct,
            "by": by,
            "costs": costs,
            "minimum": minimum,
        }
        policy = (
            _of_labels(preds, rule, how, _source(files), (watch, promise, online))
            if log["multilabel"]
            else Policy.fit(preds, chosen, source=_source(files), **how)
        )
        if loss is not None:
            policy = replace(
                policy, by="image", keys=(image_score or SCORES[0],), thresholds=(policy.threshold,)
            )
        found = plan(policy, chosen, preds, test=test)
    extras = {
        "watch": watch,
        "promise": promise,
        "false_alarms": false_alarms,
        "online": online,
        "audit": audit,
        "risk": rule["risk"],
    }
    _write(policy, preds, out, quiet, **extras)
    if as_json:
        click.echo(json.pretty(found), nl=False)
    elif not quiet:
        from howsure.render.plan import sheet

        say(sheet(found))
    broken = found["test"] is not None and found["test"]["compatible"] is False
    return 1 if broken or not found["feasible"] else 0


def _of_labels(
    preds: Predictions,
    rule: dict[str, Any],
    how: dict[str, Any],
    source: tuple[str, str],
    more: Sequence[str | None],
) -> Policy:
    """A threshold for each of many labels, which needs a promise."""
    from howsure.policies import label_policy

    if any(more):
        raise InputError(
            "--watch, --promise and --online count independent decisions; the labels of one case are not."
        )
    if rule["risk"] is None or how["by"] is not None or how["costs"] is not None:
        raise InputError(
            "--multilabel gives each label a threshold with a promise: say --risk, and leave out --by."
        )
    asked = {name: rule[name] for name in ("risk", "delta", "method")}
    return label_policy(
        preds, **asked, score=how["score"], calibrator=how["calibrator"], source=source
    )


def _choose(rule: dict[str, Any], score: str, costs: Any) -> tuple[Callable[..., Any], str]:
    """The rule as a function of a tally, and the score it goes with."""
    from howsure import policies as p

    asked = [
        name
        for name in ("accuracy", "coverage", "risk", "error_cost", "uncertainty")
        if rule[name] is not None
    ]
    if len(asked) + (costs is not None) != 1:
        rules = "--accuracy, --coverage, --risk, --error-cost, --costs, --uncertainty"
        raise InputError(f"say what the threshold is for: exactly one of {rules}.")
    deferral = rule["deferral_cost"]
    if costs is not None:
        return partial(p.threshold_for_cost, error=1.0, deferral=deferral), score
    x = rule[asked[0]]
    choices: dict[str, Callable[..., Any]] = {
        "accuracy": partial(p.threshold_for_accuracy, accuracy=x),
        "coverage": partial(p.threshold_for_coverage, coverage=x),
        "risk": partial(
            p.guaranteed_threshold,
            risk=x,
            delta=rule["delta"],
            method=rule["method"],
            bound=rule["bound"],
        ),
        "error_cost": partial(
            p.threshold_for_cost, error=x, deferral=deferral, expert_error=rule["expert_error"]
        ),
        "uncertainty": partial(p.threshold_at, value=1.0 - x),
    }
    return choices[asked[0]], "entropy" if asked == ["uncertainty"] else score


def _matrix(path: str | None) -> list[list[float]] | None:
    if path is None:
        return None
    try:
        return [
            [float(x) for x in line.split(",")]
            for line in existing(path).read_text().splitlines()
            if line.strip()
        ]
    except ValueError as e:
        raise InputError(f"{path} is not a matrix of numbers: {e}.") from None


def _test(
    on: str | None, split: str | None, files: Sequence[str], **how: Any
) -> Predictions | None:
    if on is None and split is None:
        return None
    return read_files([on] if on else files, split, **how)


def _source(files: Sequence[str]) -> tuple[str, str]:
    """The names of the files and the hash of the first, or of all hashes."""
    from hashlib import sha256

    from howsure.report.provenance import file_digest

    digests = [file_digest(f) for f in files if Path(f).is_file()]
    joined = digests[0] if len(digests) == 1 else sha256("".join(digests).encode()).hexdigest()
    return ", ".join(Path(f).name for f in files), joined


def _write(policy: Policy, preds: Predictions, out: str | None, quiet: bool, **more: Any) -> None:
    """The policy, and what goes with it."""
    from howsure._core.saving import save, saved_as
    from howsure.policies import OnlinePolicy, Watch
    from howsure.serving import Promise

    if more["promise"] and more["risk"] is None:
        raise InputError("--promise watches a promised risk; give --risk.")
    if more["online"] and more["risk"] is None:
        raise InputError("--online keeps a risk under drift; give --risk.")
    parts: dict[str, Any] = {}
    stamp = ""
    if out is not None:
        save(policy, out)
        note(f"wrote {out}", quiet)
        stamp = saved_as(out)[1][:12]
    if more["watch"]:
        begun = Watch.start(policy.decide(preds), false_alarms=more["false_alarms"])
        parts[more["watch"]] = replace(begun, policy=stamp)
    if more["online"]:
        parts[more["online"]] = OnlinePolicy.start(
            policy, policy.decide(preds).score, risk=more["risk"], audit=more["audit"]
        )
    if more["promise"]:
        parts[more["promise"]] = Promise.start(
            risk=more["risk"], false_alarms=more["false_alarms"], policy=stamp
        )
    for path, value in parts.items():
        save(value, path)
        note(f"wrote {path}", quiet)
