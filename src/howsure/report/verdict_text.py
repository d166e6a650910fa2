"""What a reader is told first: how good the answers are beside always giving the same one, what may
be automated, and whether the confidence can be read as a probability.

The sentences are written from the report itself, so that no row of it can say anything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10
from typing import NamedTuple

import numpy as np

from howsure._core.text import format_rounded_up, name_class
from howsure.bounds import clopper_pearson, compute_proportion_limits
from howsure.report.report_types import (
    THRESHOLDS,
    BaseRate,
    Binary,
    ClaimsTest,
    Entry,
    GuaranteeData,
    Metrics,
    Number,
    ReportData,
)
from howsure.report.samples import list_class_names
from howsure.report.summary import Summary
from howsure.report.verdict import USEFUL_COVERAGE, choose_guarantee, format_expected
from howsure.uncertainty.means import UNSAFE_BELOW_GROUPS
from howsure.uncertainty.paired import limit_accuracy_difference

CALIBRATION_FINDINGS = (
    "over_confident_above_0.9",
    "over_confident",
    "under_confident",
    "hidden_error",
    "internal_compensation",
)
RARE_CLASS = 0.3  # below this share of the rarer of two classes accuracy says little
COMMON_CLASS = 0.5  # from this share on always answering the commonest class is worth naming
TEST_LEVEL = 0.05
LARGE_GAP = 0.1  # where smaller gaps would not show, there are too few answers to tell
ABSENT = "absent"  # the constant answer of a label
# Numbers of the confidence whose perfect value is 0, with what a limit beyond it hints at.
HINTS = {"ece": "ECE", "aece": "adaptive ECE", "debiased_ece": "debiased ECE"}


# The constant answer


class ConstantCounts(NamedTuple):
    """These answers beside always giving the commonest one."""

    answer: str
    total: float
    right: float
    constant: float  # right by always giving this answer
    only_ours: float  # right here alone
    only_constant: float
    positives: float
    missed: float


def count_constant_answer(s: Summary) -> ConstantCounts | None:
    """Counts of the commonest class, or of "absent" for many labels; None where they are not
    known.
    """
    if s.labels is not None:
        positives = missed = right = total = 0.0
        for t in s.labels.present:
            present, called = t.count - t.loss, t.score > 0.5
            positives += float(present.sum())
            missed += float(present[~called].sum())
            right += float(present[called].sum() + t.loss[~called].sum())
            total += float(t.n)
        return ConstantCounts(
            answer=ABSENT,
            total=total,
            right=right,
            constant=total - positives,
            only_ours=positives - missed,
            only_constant=total - right - missed,
            positives=positives,
            missed=missed,
        )
    classes = s.known_classes
    if classes is None:
        return None
    common, positive = int(np.argmax(classes.count)), s.shape.positive
    right, constant = float(classes.hits.sum()), float(classes.count[common])
    hits = float(classes.hits[common])
    positives = missed = 0.0
    if positive is not None:
        positives = float(classes.count[positive])
        missed = positives - float(classes.hits[positive])
    return ConstantCounts(
        answer=list_class_names(classes, s.shape)[common],
        total=float(classes.count.sum()),
        right=right,
        constant=constant,
        only_ours=right - hits,
        only_constant=constant - hits,
        positives=positives,
        missed=missed,
    )


def measure_base_rate(s: Summary, accuracy: Entry, level: float) -> BaseRate | None:
    """What always giving the commonest answer would get, beside these answers; None where classes
    are not known or samples carry weights.

    It is named for two classes, many labels, a commonest share of at least ½, or where the accuracy
    is not clearly above it; the limits are Bonett & Price's, widened as those of the accuracy are
    where samples come in groups. AUC and missed positives lead for many labels, and for two classes
    where the rarer one is below 30 % or the accuracy is not clearly above.

    >>> from howsure import Predictions
    >>> s = Summary.of(Predictions.from_probs([0.9, 0.2, 0.3, 0.1], [1, 0, 1, 0]))
    >>> base = measure_base_rate(s, {"value": 0.75, "better": "higher"}, 0.95)
    >>> base["answer"], base["accuracy"], base["missed"], base["leads"]
    ('0', 0.5, 1, True)
    """
    counts = None if s.shape.weighted else count_constant_answer(s)
    if counts is None:
        return None
    total, half = counts.total, (1 - level) / 2
    # Clusters count as the limits of the accuracy say: as so many independent samples fewer.
    effect = 1.0
    low, high = accuracy.get("low"), accuracy.get("high")
    if s.shape.grouped and low is not None and high is not None:
        plain_low, plain_high = compute_proportion_limits(counts.right, total, half)
        effect = max(1.0, ((high - low) / float(plain_high - plain_low)) ** 2)
    below, above = limit_accuracy_difference(
        counts.only_ours / effect, counts.only_constant / effect, total / effect, half
    )
    share = counts.constant / total
    many, two = s.labels is not None, is_two_classes(s)
    base: BaseRate = {
        "answer": counts.answer,
        "accuracy": share,
        "above": {"value": (counts.right - counts.constant) / total, "low": below, "high": above},
        "wrong_at_most": clopper_pearson(
            (total - counts.constant) / effect, total / effect, 1 - level
        ),
        "named": two or many or share >= COMMON_CLASS or below <= 0,
        "leads": many or (two and (1 - share < RARE_CLASS or below <= 0)),
    }
    if many or two:
        base["positives"], base["missed"] = round(counts.positives), round(counts.missed)
    return base


def is_two_classes(s: Summary) -> bool:
    """Whether the probability of one of two classes is known."""
    return s.shape.vectors and s.shape.k == 2 and s.labels is None


def qualify_guarantees(
    guarantees: Sequence[GuaranteeData], s: Summary, base: BaseRate | None
) -> None:
    """Mark guarantees that always giving the same answer keeps too, and those under which no
    positive call is accepted.
    """
    if base is None or not (is_two_classes(s) or s.labels is not None):
        return
    for g in guarantees:
        if base["wrong_at_most"] < g["risk"]:
            g["empty"] = base["answer"]
        # The confidence of a positive call is the probability itself, up to its rounding.
        if g["feasible"] and g["threshold"] is not None and s.first == "max_prob":
            from_here = np.array([max(0.5, g["threshold"] - 1e-12)])
            calls = s.labels.present if s.labels is not None else (s.positive,)
            if not any(t is not None and t.above(from_here)[0] for t in calls):
                g["only_negative"] = True


# The verdict


def write_verdict(report: ReportData, counted: int | None) -> list[str]:
    """Three sentences, for those who read nothing else; before them AUC and missed positives where
    accuracy says little. `counted` is the number of answers where they may be counted.
    """
    sentences: list[str] = []
    base = report.get("base_rate")
    if base is not None and base["leads"]:
        sentences.append(describe_positives(report, base))
    sentences.append(describe_accuracy(report, base, counted))
    sentences.append(describe_decisions(report))
    sentences.append(describe_confidence(report, counted))
    return sentences


def describe_positives(report: ReportData, base: BaseRate) -> str:
    """How well the class or the labels are told apart, and how many are missed."""
    positives, missed = base.get("positives", 0), base.get("missed", 0)
    if "labels" in report:
        what, auc = "Mean AUC of the labels", report["metrics"].get("macro_auroc")
        one, many = "label that is present", "labels that are present"
    else:
        assert report["binary"] is not None
        name = name_class(report["binary"]["positive_class"])
        what, auc = f"AUC of {name}", report["binary"]["numbers"]["class_auroc"]
        one, many = f"case of {name}", f"cases of {name}"
    lead = f"{what} does not exist here"
    if auc is not None and auc["value"] is not None:
        lead = f"{what}: {format_between(auc)}"
    if positives == 0:
        return f"{lead}; there is no {one}."
    cases = many if positives > 1 else one
    asked = [] if report["binary"] is None else report["binary"].get("thresholds", [])
    if [call["threshold"] for call in asked] == list(THRESHOLDS):
        asked = []  # nobody asked for these
    said: list[str] = []
    for call in asked[:2]:
        kept = call["sensitivity"]["value"]
        if kept is not None:
            missed = round((1 - kept) * positives)
            at = f"called from {format_share(call['threshold'])} on, "
            said.append(
                f"{at}it misses {missed:,} of {positives:,} {cases} ({format_share(1 - kept)})"
            )
    if not said:
        said = [
            f"it misses {missed:,} of {positives:,} {cases} ({format_share(missed / positives)})"
        ]
    return f"{lead}; {'; '.join(said)}."


def describe_accuracy(report: ReportData, base: BaseRate | None, counted: int | None) -> str:
    """How many answers are right, and what always giving the same one would get."""
    entry = report["metrics"]["accuracy"]
    value = entry["value"] or 0.0
    labels = " labels" if report.get("labels") is not None else ""
    if counted is None:
        said = f"It got {format_between(entry, percent=True, of=f'{labels} right')}."
    else:
        right = round(value * counted)
        share = format_between(entry, percent=True)
        said = f"It got {right:,} of {counted:,}{labels} right: {share}."
    if base is not None and base["named"]:
        decimals = choose_decimals(entry, percent=True)
        said += f' Always answering "{base["answer"]}" would get {base["accuracy"] * 100:.{decimals}f} %'
        low, high = base["above"].get("low"), base["above"].get("high")
        if high is not None and high < 0:
            said += ", which is clearly more"
        elif low is not None and low <= 0:
            said += ", which is not clearly less"
        said += "."
    groups = report.get("groups")
    if groups is not None and groups < UNSAFE_BELOW_GROUPS:
        which = f"these {groups} groups in this mix"
        if groups == 1:
            which = "this one group"
        said += f" The limits are for {which}."
    return said


def describe_decisions(report: ReportData) -> str:
    """What may be automated, with its guarantee; or what such a guarantee would take."""
    guarantees = report.get("guarantees", [])
    if not guarantees:
        return "How much may be automated was not looked at."
    offered = [g for g in guarantees if "empty" not in g]
    if not offered:
        last = guarantees[-1]
        return (
            f"A guarantee of at most {format_share(last['risk'])} errors would be empty: always "
            f'answering "{last.get("empty")}" keeps it.'
        )
    g = choose_guarantee(guarantees)
    if g is not None:
        share = "all answers"
        if g["coverage"] < 1:
            share = f"the most confident {format_share(g['coverage'])}"
        promise = (
            f"guaranteed at most {format_share(g['risk'])} wrong among such answers "
            f"({g['sure'] * 100:g} % confidence)"
        )
        if g.get("only_negative"):
            return f"It may be left to say no to {share}, among which it makes no positive call: {promise}."
        return f"Automate {share}: {promise}."
    last = offered[-1]
    if "why" in last:
        return f"No guarantee: {last['why'].rstrip('.')}."
    risk = format_share(last["risk"])
    reachable = report["metrics"].get(f"coverage_at_risk_{last['risk']:g}")
    if reachable is not None and reachable.get("high") == 0:
        return f"Even the most confident answers are wrong more than {risk} of the time."
    ranks = {f["name"]: f["evidence"].get("enough") for f in report["findings"]}
    if ranks.get("does_not_rank"):
        return "Its confidence does not tell right answers from wrong ones, so deferring by it would not help."
    if reachable is not None and (reachable.get("high") or 1.0) < USEFUL_COVERAGE:
        most = format_share(reachable.get("high") or 0.0)
        return f"No more than {most} of such answers could be automated with at most {risk} errors."
    if "does_not_rank" in ranks:
        return "Too few answers to tell whether its confidence separates right answers from wrong ones."
    unit = "groups" if "groups" in last else "labels"
    if "labels" in report:
        unit = "cases"
    if last["labels_needed"] is None:
        return (
            f"Not enough {unit} to guarantee at most {risk} errors, or to tell how many would be."
        )
    needed = format_rounded_up(last["labels_needed"])
    return f"Not enough {unit} to guarantee at most {risk} errors; about {needed} would usually be enough."


def describe_confidence(report: ReportData, counted: int | None) -> str:
    """Whether its confidence can be read as a probability of being right."""
    metrics = report["metrics"]
    entry = metrics.get("ece")
    if entry is None or entry["value"] is None:
        return (
            "Its score is not a probability: it ranks answers, but states no chance of being right."
        )
    signed, accuracy = metrics.get("signed_calibration_error"), metrics["accuracy"]["value"]
    constant = any(finding["evidence"].get("constant") for finding in report["findings"])
    if constant and signed is not None and signed["value"] is not None and accuracy is not None:
        return (
            "Its confidence is the same for every answer, so it cannot rank them: it claims "
            f"{format_share(accuracy + signed['value'])} where {format_share(accuracy)} are right."
        )
    ece = f"ECE {entry['value']:.3f}"
    if "floor" in entry:
        ece += f"; {entry['floor']:.3f} would be chance"
    still = ""
    if report["calibration"] is not None:
        still = " after calibration"
    test = report.get("calibration_test")
    binary = None
    if report["k"] == 2:
        binary = report["binary"]
    what, role = "its confidence", " as a probability"
    if binary is not None:
        # Of two classes only the probability of the positive one speaks.
        what, role = name_probability(report), ""
        test = binary.get("calibration_test", test)
    answers = report.get("calibration_test")
    if answers is not None and answers.get("errors") == 0 and "expected_errors" in answers:
        if answers["expected_errors"] == 0:
            return f"No answer is wrong, and its confidence expects no error ({ece})."
        sure = "It is underconfident: no" if answers["p"] <= TEST_LEVEL else "No"
        expected = f"{format_expected(answers['expected_errors'])} wrong ones"
        chance = format_chance(answers.get("no_error_chance", 1.0))
        return (
            f"{sure} answer is wrong, where its confidence expects {expected}; if that is true, "
            f"it happens {chance} ({ece})."
        )
    if test is not None and test["p"] <= TEST_LEVEL:
        if binary is not None:
            defects = " and ".join(describe_defects(binary))
            if defects:
                return f"{what[:1].upper()}{what[1:]} is {defects}{still}."
            return f"{what[:1].upper()}{what[1:]} is off in places{still} ({ece})."
        return describe_defect(test, metrics, ece, still)
    if any(finding["name"] in CALIBRATION_FINDINGS for finding in report["findings"]):
        return f"Its confidence is off in places{still} ({ece}); see the findings."
    hint = find_hint(report)
    if hint is not None:
        unsure = (
            "it was not tested"
            if test is None
            else f"the test does not confirm it, {format_p(test['p'])}"
        )
        return f"There is a hint that {hint}; {unsure} ({ece})."
    if test is None:
        why = "the samples carry weights" if counted is None else "single samples are not held"
        return f"Whether {what} can be trusted{role} was not tested: {why} ({ece})."
    gap = test.get("detectable_gap")
    if gap is None:
        return f"Nothing contradicts {what}{role} ({ece}; {format_p(test['p'])})."
    points = format_points(gap)
    if gap > LARGE_GAP:
        too_few = f"Too few answers to tell whether {what} can be trusted{role}"
        if gap >= 1:
            return f"{too_few}."
        return f"{too_few}: only a gap of about {100 * gap:.0f} points would probably show."
    return (
        f"Nothing contradicts {what}{role}; a gap of {points} points would probably "
        f"have shown ({ece})."
    )


def name_probability(report: ReportData) -> str:
    """What is tested where a case is positive or negative."""
    if "labels" in report or report["binary"] is None:
        return "its probability of a label"
    return f"its probability of {name_class(report['binary']['positive_class'])}"


def describe_defect(test: ClaimsTest, metrics: Metrics, said: str, still: str) -> str:
    """In which way claims are off that a test refuses."""
    gap, tilt = test.get("gap", 0.0), test.get("tilt", 0.0)
    ece = metrics["ece"]["value"] or 0.0
    group = test.get("worst_group")
    where = "" if group is None else f" Group {group} is furthest off."
    if test.get("p_gap", 1.0) <= TEST_LEVEL:
        way = "overconfident" if gap > 0 else "underconfident"
        return f"It is {way} by {format_points(abs(gap))} points on average{still} ({said}).{where}"
    if test.get("p_tilt", 1.0) <= TEST_LEVEL:
        # The sign of the tilt is that of what the Brier score gains by moving towards one half.
        way, better = "too timid", "further from"
        if tilt > 0:
            way, better = "too extreme", "closer to"
        return f"Its confidence is {way}{still}: values {better} 50 % would fit better ({said}).{where}"
    points = format_points(ece)
    return f"Its confidence is off in places{still}, by {points} points on average ({said}).{where}"


def describe_defects(binary: Binary) -> list[str]:
    """In which ways the probability of the positive class is off, by limits that leave out the
    perfect value.
    """
    said: list[str] = []
    slope = binary["calibration_slope"]
    if is_below(slope, 1):
        said.append(f"too extreme (calibration slope {list_between(slope)})")
    elif is_above(slope, 1):
        said.append(f"too timid (calibration slope {list_between(slope)})")
    large = binary["numbers"].get("calibration_in_the_large")
    if large is not None and is_below(large, 0):
        said.append(f"too high on average (calibration in the large {list_between(large)})")
    elif large is not None and is_above(large, 0):
        said.append(f"too low on average (calibration in the large {list_between(large)})")
    return said


def find_hint(report: ReportData) -> str | None:
    """What a limit hints at that leaves out the perfect value of its number, where the test of all
    claims sees nothing.
    """
    metrics = report["metrics"]
    if report["k"] == 2 and report["binary"] is not None:
        defects = describe_defects(report["binary"])
        ratio = report["binary"]["numbers"].get("observed_expected")
        if not defects and ratio is not None and (is_below(ratio, 1) or is_above(ratio, 1)):
            way = "high" if is_below(ratio, 1) else "low"
            defects = [f"too {way} on average (observed / expected {list_between(ratio)})"]
        if defects:
            return f"{name_probability(report)} is {' and '.join(defects)}"
    signed = metrics.get("signed_calibration_error")
    if signed is not None and (is_above(signed, 0) or is_below(signed, 0)):
        way = "overconfident" if is_above(signed, 0) else "underconfident"
        return f"it is {way} (confidence − accuracy {list_between(signed)})"
    for name, title in HINTS.items():
        entry = metrics.get(name)
        if entry is not None and is_above(entry, 0):
            return f"its confidence is off ({title} {list_between(entry)})"
    return None


# Numbers in sentences


def is_above(number: Number | Entry, perfect: float) -> bool:
    """Whether both limits lie above the perfect value."""
    low = number.get("low")
    return low is not None and low > perfect


def is_below(number: Number | Entry, perfect: float) -> bool:
    """Whether both limits lie below the perfect value."""
    high = number.get("high")
    return high is not None and high < perfect


def choose_decimals(number: Number | Entry, *, percent: bool = False) -> int:
    """As many decimals as the half-width of the limits allows: its first digit, two where that is 1
    or 2.
    """
    low, high = number.get("low"), number.get("high")
    if low is None or high is None or not high > low:
        return 1 if percent else 3
    half = (high - low) / 2 * (100 if percent else 1)
    decimals = -floor(log10(half))
    if half * 10**decimals < 3:
        decimals += 1
    return min(max(decimals, 0), 4)


def format_between(number: Number | Entry, *, percent: bool = False, of: str = "") -> str:
    """A value with its limits, as many digits as these allow.

    >>> format_between({"value": 0.9242, "low": 0.9188, "high": 0.9293}, percent=True)
    '92.4 % (91.9–92.9)'
    >>> format_between({"value": 0.9123, "low": 0.89, "high": 0.93})
    '0.912 (0.890–0.930)'
    >>> format_between({"value": -0.31, "low": -0.52, "high": -0.1})
    '-0.31 (-0.52 to -0.10)'
    """
    value, low, high = number["value"] or 0.0, number.get("low"), number.get("high")
    scale, unit = (100, " %") if percent else (1, "")
    decimals = choose_decimals(number, percent=percent)
    while percent and value < 1 and round(100 * value, decimals) >= 100 and decimals < 6:
        decimals += 1
    text = f"{value * scale:.{decimals}f}{unit}{of}"
    if low is None or high is None:
        return text
    between = "–"
    if low < 0:
        between = " to "
    return f"{text} ({low * scale:.{decimals}f}{between}{high * scale:.{decimals}f})"


def list_between(number: Number | Entry) -> str:
    """The same without brackets of its own.

    >>> list_between({"value": 0.82, "low": 0.67, "high": 0.98})
    '0.82, 0.67–0.98'
    """
    return format_between(number).replace(" (", ", ").removesuffix(")")


def format_share(share: float) -> str:
    """A share in percent, whole where it is whole; never 100 % where some are left out.

    >>> format_share(0.72), format_share(0.0523), format_share(0.99996)
    ('72 %', '5.2 %', '99.996 %')
    """
    decimals = 1
    while 0 < share < 1 and round(100 * share, decimals) in (0, 100) and decimals < 6:
        decimals += 1
    return f"{100 * share:.{decimals}f}".removesuffix(".0") + " %"


def format_points(share: float) -> str:
    """Percentage points: one decimal, two digits below one point.

    >>> format_points(0.0546), format_points(0.00123)
    ('5.5', '0.12')
    """
    points = 100 * share
    if points >= 0.95 or points <= 0:
        return f"{points:.1f}"
    return f"{points:.{1 - floor(log10(points))}f}"


def format_chance(chance: float) -> str:
    """How often something happens, in words.

    >>> format_chance(0.043), format_chance(1e-9)
    ('4.3 % of the time', 'less than 0.1 % of the time')
    """
    if chance < 0.001:
        return "less than 0.1 % of the time"
    if chance > 0.99:
        return "more than 99 % of the time"
    return f"{100 * chance:.2g} % of the time"


def format_p(p: float) -> str:
    """A p-value as it is written in a sentence."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"
