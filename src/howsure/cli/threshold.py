"""howsure threshold"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from howsure._core import strict_json
from howsure._core.checks import InputError
from howsure._core.file_access import check_readable
from howsure._core.frozen import frozen
from howsure.cli.common import (
    FILES,
    ReadingCommand,
    add_label_options,
    add_options,
    add_reading_options,
    get_fitted_reading,
    note,
    read_counts,
    read_files,
    record_reading,
    say,
    show_spinner,
)
from howsure.cli.input_output import InputPath, OutputPath
from howsure.cli.questions import (
    choose_case_rule,
    list_questions,
    prepare_questions,
    round_down,
)

if TYPE_CHECKING:
    from howsure.formats.count_tables import CountTable
    from howsure.policies.deployment import PlanData
    from howsure.policies.policy import Policy, Rest
    from howsure.predictions import Predictions
    from howsure.predictions.read_options import ReadOptions

BY_PLACE = "{by}"  # in the name of a file: which of several segmentations it is of
RULES = ("accuracy", "coverage", "risk", "error_cost", "uncertainty")
METHOD_CHOICES = ["band", "fixed_sequence", "fallback", "sgr"]
METHOD_HELP = "How --risk searches [default: band; other losses: fixed_sequence]."
LOSS_BOUNDS = ["hoeffding_bentkus", "betting"]


def _add_rules(f: Callable[..., Any]) -> Callable[..., Any]:
    """The ways to choose a threshold."""
    number = partial(click.option, type=float)
    options = [
        number("--accuracy", help="The most coverage at this accuracy."),
        number("--coverage", help="Accept at least this share."),
        number("--risk", help="Guarantee: true risk of the accepted at most this, with probability 1 - delta."),
        number("--max-missed", help="With --risk: positives passed as negative."),
        number("--delta", default=0.05, show_default=True, help="How often the guarantee may fail."),
        click.option("--method", type=click.Choice(METHOD_CHOICES), help=METHOD_HELP),
        click.option("--bound", type=click.Choice(LOSS_BOUNDS), help="Of losses other than right and wrong, with --risk."),
        number("--error-cost", help="Least cost: what a wrong answer costs."),
        number("--deferral-cost", default=1.0, show_default=True, help="Cost of the expert."),
        number("--expert-error", default=0.0, show_default=True, help="Expert's error rate."),
        click.option("--costs", type=InputPath(), help="CSV matrix: rows truth, columns answer."),
        number("--uncertainty", help="Reject above this normalised entropy."),
    ]  # fmt: skip
    return add_options(f, options)


@click.command(cls=ReadingCommand)
@FILES
@_add_rules
@click.option("--score", help="Which score to threshold [default: max_prob, or the file's].")
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
    "segmentations",
    multiple=True,
    metavar="COLUMN",
    help="Own thresholds: hospital, age:40,60, crossed hospital,age:40,60, predicted (class); repeatable.",
)
@click.option(
    "--together", "at_once", is_flag=True, help="All guarantees of segments hold at once."
)
@click.option(
    "--case",
    metavar="COLUMN",
    help="Guarantee whole cases of several answers: a column, or record.",
)
@click.option("--partial", "by_answer", is_flag=True, help="With --case: single answers of a case.")
@click.option("--digits", type=click.IntRange(0, 12), help="Decimals of a threshold, rounded up.")
@click.option(
    "--rest",
    type=click.Choice(["defer", "common"]),
    default="defer",
    show_default=True,
    help="Small or new segments: defer them, or use the common threshold.",
)
@click.option("--minimum", type=int, help="Samples that a segment needs [default: 100].")
@click.option(
    "--cluster",
    metavar="COLUMN",
    help="Rows that belong together, the unit of a guarantee [default: the column group].",
)
@click.option(
    "--suggest",
    type=float,
    metavar="SHARE",
    help="Lists for the deferred that hold the truth in this share (0.95); uses half of the labels.",
)
@click.option("--calibrator", type=InputPath(), help="Apply a saved calibrator first.")
@click.option("--on", "on", type=InputPath(), help="Check the result on this file.")
@click.option("--on-split", help="... or on this split (of FILE, where --on is not given).")
@click.option("-o", "--out", type=OutputPath(), help="Write the policy (JSON) for howsure decide.")
@click.option("--drift", type=OutputPath(), help="Write a monitor for decide --drift.")
@click.option(
    "--guarantee",
    type=OutputPath(),
    help="Write a monitor for decide --guarantee.",
)
@click.option(
    "--false-alarms",
    default=0.01,
    show_default=True,
    help="Lifetime false-alarm rate of --drift and of --guarantee.",
)
@click.option(
    "--online", type=OutputPath(), help="Write an online policy that keeps --risk under drift."
)
@click.option(
    "--audit",
    default=0.1,
    show_default=True,
    help="Share of accepted that --online asks labels for.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@add_reading_options
@add_label_options
def command(
    files: Sequence[str], score: str | None, loss: str | None, image_score: str | None,
    segmentations: Sequence[str],
    at_once: bool, rest: Rest, minimum: int | None, cluster: str | None, suggest: float | None,
    calibrator: str | None, on: str | None, on_split: str | None, out: str | None,
    drift: str | None, guarantee: str | None, false_alarms: float, online: str | None, audit: float,
    as_json: bool, quiet: bool, case: str | None, by_answer: bool, digits: int | None,
    options: ReadOptions, **rule: Any,
) -> int:  # fmt: skip
    """Above which confidence may the model decide alone?

    Chooses a threshold on labelled data (that trained neither the model nor the calibrator), says what to
    expect on new data, what would be deferred, and writes a policy. Exit code 1 where nothing can be
    accepted, or where the data of --on contradict the guarantee.

    \b
    Examples:
      howsure threshold val.npz --accuracy 0.99
      howsure threshold val.npz --risk 0.02 --delta 0.05 -o policy.json
      howsure threshold all.npz --split val --on-split test --risk 0.02
      howsure threshold val.csv --error-cost 50 --deferral-cost 1 --expert-error 0.01
      howsure threshold val.npz --risk 0.02 --suggest 0.95 -o policy.json
      howsure threshold val.csv --risk 0.05 --by hospital --by age:40,60
      howsure threshold val.csv --risk 0.05 --by hospital,age:40,60 --together -o policy.json
      howsure threshold tags.npz --multilabel --risk 0.05 -o policy.json
      howsure threshold scans.npz --loss dice --risk 0.15 --bound betting -o policy.json
      howsure threshold log.jsonl --labels truth.csv --case record --risk 0.05 -o policy.json
    """
    from howsure._core.saving import load
    from howsure.formats.count_tables import MAX_REPEATED_ROWS
    from howsure.policies import few_missed_policy, fit_suggestions, label_policy, split_halves
    from howsure.policies.deployment import plan
    from howsure.policies.policy import Policy
    from howsure.predictions.images import IMAGE_SCORES, images_of
    from howsure.report.focus import Focus

    if len(segmentations) > 1:
        if at_once or drift or guarantee or online:
            raise InputError(
                "a policy has one segmentation: cross several, as in --by hospital,age:40,60, or leave out "
                "--together, --drift, --guarantee and --online."
            )
        return choose_by_each(segmentations, out)
    by = next(iter(segmentations), None)
    extras = StateOptions(
        drift=drift,
        guarantee=guarantee,
        online=online,
        false_alarms=false_alarms,
        audit=audit,
        risk=rule["risk"],
    )
    choose, score, costs = _find_rule(rule, score)
    asked = list_questions(files, options)
    if asked is not None:
        options, by = prepare_questions(options, asked, by, case)
    elif case is not None:
        cluster = case
    if case is not None:
        choose, score = choose_case_rule(rule, choose, by_answer, digits)
    elif by_answer:
        raise InputError("--partial is about cases; say --case.")
    columns = Focus.of(None, (), loss, image_score).columns
    if asked is not None:
        columns.append("probability")
    if asked is not None and len(asked) > 1 and case is not None:
        columns.append("question")
    if at_once and by is None:
        raise InputError("--together is about segments; say --by.")
    if cluster is not None:
        options = replace(options, names={**options.names, "group": cluster})
    by = _find_segments(by, options.get_column("group"), columns)
    fitted = load(calibrator) if calibrator else None
    options = options.read_values_like(get_fitted_reading(fitted))
    # A calibrator may need columns of its own, such as a second opinion.
    options = replace(options, attributes=(*columns, *getattr(fitted, "columns", ())))
    table = read_counts(files, options)
    if table is not None and not table.merged and table.n > MAX_REPEATED_ROWS:
        needs_rows = {
            "--by": by,
            "--on": on or on_split,
            "--calibrator": calibrator,
            "--suggest": suggest,
            "--case": case,
            "--costs": costs,
            "--digits": digits,
            "--max-missed": rule["max_missed"],
            "--drift": drift,
            "--online": online,
            "--score": score,
        }
        policy, data = choose_from_counts(table, choose, needs_rows, source=_name_source(files))
        _write_states(policy, None, out, extras, quiet)
        return show_plan(data, as_json=as_json, quiet=quiet)
    preds = read_files(files, options).drop_equal_weights()
    if case is not None and preds.graded:
        raise InputError(
            "--case counts right and wrong answers, and these are graded; leave it out."
        )
    test: Predictions | None = None
    if on is not None or on_split is not None:
        test = read_files([on] if on else files, replace(options, split=on_split))
    if loss is not None:
        if by is not None or options.multilabel or calibrator or online:
            raise InputError(
                "--loss dice is about whole images: leave out --by, --multilabel, --calibrator, --online."
            )
        preds = images_of(preds, score=image_score).predictions()
        if test is not None:
            test = images_of(test, score=image_score).predictions()
    if digits is not None:
        preds = round_down(preds, digits)
    if rule["bound"] is not None and not preds.graded:
        raise InputError(
            "--bound is for losses in [0, 1], such as --loss dice; right and wrong are counted exactly."
        )
    with show_spinner("choosing"):
        spare: Predictions | None = None
        if suggest is not None:
            preds.needs_vector("--suggest")
            preds, spare = split_halves(preds, by)
        if rule["max_missed"] is not None:
            if rule["risk"] is None or by is not None or costs is not None or options.multilabel:
                raise InputError("--max-missed goes with --risk and two classes, without --by.")
            fit = partial(
                few_missed_policy,
                risk=rule["risk"],
                max_missed=rule["max_missed"],
                delta=rule["delta"],
                score=score or preds.score_name,
            )
        elif options.multilabel:
            _check_multilabel(rule, extras, by, costs)
            fit = partial(
                label_policy,
                risk=rule["risk"],
                delta=rule["delta"],
                method=rule["method"],
                score=score or preds.score_name,
            )
        else:
            fit = partial(
                Policy.fit,
                choose=choose,
                score=score,
                by=by,
                together=at_once,
                rest=rest,
                costs=costs,
                minimum=minimum,
            )
        policy = fit(preds, calibrator=fitted, source=_name_source(files))
        if preds.receipt is not None:
            policy = replace(policy, asked=preds.receipt.asked)
        if loss is not None:
            keys = (image_score or IMAGE_SCORES[0],)
            policy = replace(policy, by="image", keys=keys, thresholds=(policy.threshold,))
        if suggest is not None and spare is not None:
            policy = fit_suggestions(policy, spare, suggest)
        data = plan(policy, choose, preds, test=test)
        if rule["max_missed"] is not None:
            data["expected"] = None  # that of another rule, which knows no positives
    policy = replace(policy, read=record_reading(options, preds))
    _write_states(policy, preds, out, extras, quiet)
    return show_plan(data, as_json=as_json, quiet=quiet)


def choose_by_each(segmentations: Sequence[str], out: str | None) -> int:
    """The command once for each segmentation, with a policy of its own; the worst of their exit
    codes.
    """
    if out is not None and BY_PLACE not in out:
        path = Path(out)
        each = path.with_name(f"{path.stem}_{BY_PLACE}{path.suffix}")
        raise InputError(
            f"a policy has one segmentation, and -o {out} is one file; say -o '{each}' for a policy of each, "
            f"or cross them: --by {','.join(segmentations)}."
        )
    context = click.get_current_context()
    given = {name: value for name, value in context.params.items() if name != "segmentations"}
    codes: list[int] = []
    for one in segmentations:
        given["out"] = fill_place(out, one)
        codes.append(context.invoke(command, segmentations=(one,), **given))
    return max(codes)


def choose_from_counts(
    table: CountTable,
    choose: Callable[..., Any],
    needs_rows: Mapping[str, object],
    *,
    source: tuple[str, str],
) -> tuple[Policy, PlanData]:
    """The policy of counts whose rows are too many to be held, and what to expect of it."""
    from howsure.policies.deployment import plan_counts
    from howsure.policies.policy import Policy
    from howsure.predictions.read_options import ReadOptions

    for option, given in needs_rows.items():
        if given is not None:
            raise InputError(
                f"{option} needs single rows, and these are counts of {table.n:,} answers; leave it out."
            )
    score = "max_prob"
    if table.kind == "score":
        score = "score"
    t = table.tally()
    policy = Policy.of_choice(choose(t), table.n, score=score, source=source)
    policy = replace(policy, read=ReadOptions(kind=table.kind))
    return policy, plan_counts(policy, choose, t)


def show_plan(data: PlanData, *, as_json: bool, quiet: bool) -> int:
    """Print a plan; the exit code says whether anything can be accepted and nothing contradicts it."""
    if as_json:
        # Of several segmentations each is a line.
        context = click.get_current_context()
        several = context.parent is not None and context.parent.command is context.command
        click.echo(
            strict_json.dump_line(data) if several else strict_json.dump_pretty(data).rstrip()
        )
    elif not quiet:
        from howsure.report.render.report_sheet import build_plan_sheet

        say(build_plan_sheet(data))
    contradicted = data["test"] is not None and data["test"]["compatible"] is False
    return 1 if contradicted or not data["feasible"] else 0


def fill_place(out: str | None, by: str) -> str | None:
    """The file of one segmentation.

    >>> fill_place("policy_{by}.json", "hospital,age:40,60")
    'policy_hospital_age_40_60.json'
    """
    return None if out is None else out.replace(BY_PLACE, re.sub(r"\W+", "_", by).strip("_"))


def _find_segments(by: str | None, cluster: str | None, columns: list[str]) -> str | None:
    """The segmentation, in which the column of clusters is called "group"; its other columns are
    added to those that are read.
    """
    from howsure.predictions.segments import PREDICTED, parse_segments

    if by is None:
        return None
    for cut in parse_segments(by):
        if cut.column == cluster and not cut.edges and cut.bins is None:
            by = ",".join("group" if part == cluster else part for part in by.split(","))
        elif cut.column not in (PREDICTED, "group"):
            columns.append(cut.column)
    return by


def _name_source(files: Sequence[str]) -> tuple[str, str]:
    """The names of the files and the hash of the first, or of all hashes."""
    from howsure.report.report import hash_file

    digests = [hash_file(f) for f in files if Path(f).is_file()]
    digest = sha256("".join(digests).encode()).hexdigest()
    if len(digests) == 1:
        digest = digests[0]
    return ", ".join(Path(f).name for f in files), digest


@frozen
class StateOptions:
    """What is written beside a policy: files of states, and how they are started."""

    drift: str | None
    guarantee: str | None
    online: str | None
    false_alarms: float
    audit: float
    risk: float | None


def _check_multilabel(
    rule: dict[str, Any], extras: StateOptions, by: object, costs: object
) -> None:
    """A threshold for each of many labels needs a risk, and nothing that counts decisions."""
    if extras.drift or extras.guarantee or extras.online:
        raise InputError(
            "--drift, --guarantee and --online count independent decisions; the labels of one case are not."
        )
    if rule["risk"] is None or by is not None or costs is not None:
        raise InputError(
            "--multilabel gives each label a threshold with a guarantee: say --risk, and leave out --by."
        )


def _find_rule(
    rule: dict[str, Any], score: str | None
) -> tuple[Callable[..., Any], str | None, list[list[float]] | None]:
    """The rule as a function of a tally, the score it goes with, and the matrix of --costs."""
    from howsure.policies import guarantee, thresholds

    costs: list[list[float]] | None = None
    if rule["costs"] is not None:
        costs = []
        try:
            for line in check_readable(rule["costs"]).read_text().splitlines():
                if line.strip():
                    costs.append([float(x) for x in line.split(",")])
        except ValueError as e:
            raise InputError(f"{rule['costs']} is not a matrix of numbers: {e}.") from None
    asked = [name for name in RULES if rule[name] is not None]
    if len(asked) + (costs is not None) != 1:
        rules = "--accuracy, --coverage, --risk, --error-cost, --costs, --uncertainty"
        raise InputError(f"say what the threshold is for: exactly one of {rules}.")
    cost_rule = partial(thresholds.threshold_for_cost, deferral=rule["deferral_cost"])
    if costs is not None:  # the loss is a cost already
        return partial(cost_rule, error=1.0), score, costs
    name = asked[0]
    value = rule[name]
    if name == "accuracy":
        return partial(thresholds.threshold_for_accuracy, accuracy=value), score, None
    if name == "coverage":
        return partial(thresholds.threshold_for_coverage, coverage=value), score, None
    if name == "error_cost":
        return partial(cost_rule, error=value, expert_error=rule["expert_error"]), score, None
    if name == "uncertainty":
        return partial(thresholds.threshold_at, value=1.0 - value), "entropy", None
    choose = partial(
        guarantee.guaranteed_threshold,
        risk=value,
        delta=rule["delta"],
        method=rule["method"],
        bound=rule["bound"],
    )
    return choose, score, None


def _write_states(
    policy: Policy, preds: Predictions | None, out: str | None, extras: StateOptions, quiet: bool
) -> None:
    """The policy, and what goes with it."""
    from howsure._core.saving import identify_saved, save
    from howsure.policies import DriftMonitor, OnlinePolicy

    if extras.guarantee and extras.risk is None:
        raise InputError("--guarantee monitors a guaranteed risk; give --risk.")
    if extras.online and extras.risk is None:
        raise InputError("--online keeps a risk under drift; give --risk.")
    stamp = ""
    if out is not None:
        save(policy, out)
        note(f"wrote {out}", quiet)
        stamp = identify_saved(out)[1][:12]
    states: dict[str, object] = {}
    if extras.drift and preds is not None:
        begun = DriftMonitor.start(policy.decide(preds), false_alarms=extras.false_alarms)
        states[extras.drift] = replace(begun, policy=stamp)
    if extras.online and extras.risk is not None and preds is not None:
        score = policy.decide(preds).score
        states[extras.online] = OnlinePolicy.start(
            policy, score, risk=extras.risk, audit=extras.audit
        )
    if extras.guarantee and extras.risk is not None:
        from howsure.serving import GuaranteeMonitor

        states[extras.guarantee] = GuaranteeMonitor.start(
            risk=extras.risk, false_alarms=extras.false_alarms, policy=stamp
        )
    for path, state in states.items():
        save(state, path)
        note(f"wrote {path}", quiet)
