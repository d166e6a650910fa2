"""The types of a report, a comparison, a calibration report and a monitor, as their JSON holds them.

`docs/schema` is generated from these types, docstrings included (`howsure.report.schema`). Schema 2:
keys may be added; none is removed or changes its meaning. nan and infinity are null (None).
"""

from __future__ import annotations

from math import isfinite
from typing import Literal, NotRequired, TypedDict, final, get_args

import numpy as np

from howsure._core import strict_json
from howsure._core.checks import Floats, InputError
from howsure._core.indices import sort_distinct
from howsure._core.version import __version__
from howsure.curves import Curve

SCHEMA = 2
VERBS = {"report": "evaluate", "comparison": "compare", "monitor": "monitor"}
CURVE_POINTS = 300  # of a curve in a report; a picture needs no more

Better = Literal["lower", "higher", "zero"]
Column = list[float | None]  # null where a number is not finite
Value = str | int | float | bool | list[int] | list[float] | list[str] | None  # a piece of evidence


# Numbers and curves, of which everything else is made.


class Number(TypedDict):
    """A number with its limits; `why` says why the number or its limits are missing, `note` what
    makes them unsafe.
    """

    value: float | None
    low: NotRequired[float | None]
    high: NotRequired[float | None]
    why: NotRequired[str]
    note: NotRequired[str]


class Entry(Number):
    """A metric: a `Number`, which side is better, and bounds that contain the exact value of
    compacted data.

    `note` says what makes the limits unsafe; `floor` is what a calibrated model would show of a
    calibration error.
    """

    floor: NotRequired[float]
    better: Better
    # What this number is where the order is "random" and where it is "best".
    anchors: NotRequired[dict[str, float]]
    bounds: NotRequired[list[float | None] | None]
    bounds_why: NotRequired[str]


Metrics = dict[str, Entry]


class CurveData(TypedDict):
    """A curve as columns, thinned to at most 300 of its `points`; `labels` are the names of both
    axes.
    """

    labels: list[str]
    points: int
    x: Column
    y: Column
    weight: NotRequired[Column]
    threshold: NotRequired[Column]
    low: NotRequired[Column]
    high: NotRequired[Column]


# A score: its order, its operating points, and what thresholds guarantee.


class Band(TypedDict):
    """The surest answers that keep an accuracy of `level`, null for the rest; `threshold` is their
    lowest score.
    """

    level: float | None
    share: float | None
    accuracy: float | None
    threshold: float | None


class ScoreData(TypedDict):
    """What a further score is worth: its order alone."""

    metrics: Metrics
    bands: list[Band]
    odds_by_quantile: CurveData


class ClassDeferral(TypedDict):
    """The share of a class that is deferred at each operating point."""

    name: str
    count: int
    deferred: list[float]


class Operating(TypedDict):
    """Operating points, most trusted first: columns of equal length; errors and deferred are per
    1,000 cases.

    `low` and `high` are limits of the accuracy, null where samples are weighted or grouped.
    """

    coverage: list[float]
    threshold: Column
    accuracy: list[float]
    low: list[float] | None
    high: list[float] | None
    errors: list[float]
    deferred: list[float]
    classes: list[ClassDeferral]
    # The coverage by which `howsure threshold --coverage` finds this point.
    asked: NotRequired[list[float]]
    kept: NotRequired[list[float]]
    wrong: NotRequired[list[float]]


class Points(TypedDict):
    """Thresholds with what they accept: columns, most trusted first; a threshold of null accepts
    nothing.

    `low` and `high` are limits of the accuracy, null where samples are weighted or grouped.
    """

    threshold: Column
    kept: list[float]
    wrong: list[float]
    low: list[float] | None
    high: list[float] | None


class GuaranteeStep(TypedDict):
    """The place among `points` of the threshold that keeps a risk with probability 1 - delta, and
    the upper bound of its risk; both null where these labels allow none.
    """

    risk: float
    delta: float
    point: int | None
    bound: float | None


class GuaranteeSteps(TypedDict):
    """What `guaranteed_threshold(method="band")` finds for some risks and deltas."""

    points: Points
    steps: list[GuaranteeStep]


class SuggestedData(TypedDict):
    """What `howsure threshold --risk RISK --suggest LEVEL` would suggest for the deferred: the
    threshold rests on one half of the samples, what is said in `text` on the other half.
    """

    risk: float
    level: float
    text: str


class Deciding(TypedDict):
    """What thresholds cost and promise.

    `corners` are those of the convex hull of (kept, wrong): for any costs the cheapest threshold is
    one of them. `guarantee` is null where `why` says that none can rest on these samples.
    """

    n: float
    corners: Points
    guarantee: GuaranteeSteps | None
    why: str | None


# What the page shows of the confidence and of single answers.


class CorpData(TypedDict):
    """The isotonic reliability curve, and the Brier score of the confidence in parts.

    score = miscalibration - discrimination + uncertainty.
    """

    curve: CurveData
    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


class HistogramData(TypedDict):
    """Counts in bars of equal width from `low` to `high`: right, wrong but near the label, and
    other wrong answers.
    """

    low: float
    high: float
    right: list[float]
    top_5: list[float]
    wrong: list[float]


class Scatter(TypedDict):
    """Loss against score of a sample `of` all rows; fate 0 right, 1 label among the top 5, 2 wrong."""

    score: list[float]
    loss: list[float]
    fate: list[int]
    of: int


class Suspect(TypedDict):
    """A wrong answer with a high score; `image` is a small picture as a data address."""

    id: str
    row: int
    score: float | None
    prediction: str | None
    label: str | None
    image: NotRequired[str]


class ClassRow(TypedDict):
    """A class: its samples, its recall with limits, how often it was the answer, precision and
    confidence then.
    """

    name: str
    count: int
    given: int
    recall: float | None
    low: float | None
    high: float | None
    precision: float | None
    confidence: float | None


class Confused(TypedDict):
    """How often samples of class `label` were answered with class `prediction`; `share` is that of
    the class.

    `confidence` is the mean confidence of these answers.
    """

    label: str
    prediction: str
    count: int
    share: float
    confidence: NotRequired[float]


class Confusion(TypedDict):
    """Counts of labels (rows) and answers (columns) of `classes`, and the commonest wrong answers.

    `confidence` is the mean confidence in each cell, null where the cell is empty. Both tables are
    null where there are too many classes for them; `top` is there all the same.
    """

    classes: list[str]
    counts: list[list[int]] | None
    confidence: NotRequired[list[Column] | None]
    top: list[Confused]


class BeforeViews(TypedDict):
    """Histogram and scatter before calibration."""

    histogram: HistogramData
    scatter: Scatter | None


class Views(TypedDict):
    """What a page shows beside metrics and curves."""

    operating: Operating
    histogram: HistogramData
    scatter: Scatter | None
    label_errors: list[Suspect]
    classes: list[ClassRow]
    bands: list[Band]
    confusion: NotRequired[Confusion | None]
    before: NotRequired[BeforeViews]
    deciding: NotRequired[Deciding]
    corp: NotRequired[CorpData | None]


# The probability of the positive class, as a clinician asks about it.


class BrierData(TypedDict):
    """Murphy's parts: Brier = reliability - resolution + uncertainty + within."""

    reliability: float
    resolution: float
    uncertainty: float
    within: float


THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.5)  # at which the positive class is called unless asked


class CallRow(TypedDict):
    """Cases are called positive where their probability reaches `threshold`; `called` is their
    share.

    `net_benefit` is that of treating those, `treat_all` that of treating everyone; treating none
    has 0.
    """

    threshold: float
    called: float
    sensitivity: Number
    specificity: Number
    ppv: Number
    npv: Number
    net_benefit: float | None
    net_benefit_limits: NotRequired[list[float]]
    treat_all: float | None


class Calling(TypedDict):
    """Cases called positive from each threshold on, against their labels: columns of counts."""

    threshold: list[float]
    true_positive: list[float]
    false_positive: list[float]
    false_negative: list[float]
    true_negative: list[float]


class ClaimsTest(TypedDict):
    """Whether outcomes fall as claimed: how often true claims look as bad or worse.

    `gap` (mean claim minus the share that is right) and `tilt` (above 0: too extreme) have p-values
    of their own. A `detectable_gap` would probably have been found. `worst_group` looks worst,
    where groups are few.
    """

    statistic: float
    p: float
    gap: NotRequired[float]
    p_gap: NotRequired[float]
    tilt: NotRequired[float]
    p_tilt: NotRequired[float]
    detectable_gap: NotRequired[float]
    errors: NotRequired[int]
    expected_errors: NotRequired[float]
    no_error_chance: NotRequired[float]
    worst_group: NotRequired[str | None]


class DistanceData(TypedDict):
    """Mean, median, 90 % quantile and maximum of the distance between the smooth calibration curve
    and the diagonal; `floor` is what true probabilities would show.
    """

    ici: float | None
    e50: float | None
    e90: float | None
    emax: float | None
    floor: NotRequired[dict[str, float | None]]


class Binary(TypedDict):
    """The probability of the positive class, against all other classes where there are more than
    two.

    `numbers` with limits: `class_auroc` (the AUC of the class), `prevalence`, `observed_expected`,
    `brier` (squared distance of this one probability to the outcome) and `ece`. `flexible` is a
    calibration curve without bins, with a band, null where there is none. In `net_benefit` `low` is
    the net benefit of treating all. `calibration_test` is that of the probability of the class.
    """

    positive_class: str
    prevalence: float
    ece: float
    calibration_intercept: Number
    calibration_slope: Number
    brier_decomposition: BrierData
    reliability: CurveData
    net_benefit: CurveData
    numbers: dict[str, Number]
    thresholds: NotRequired[list[CallRow]]
    calling: NotRequired[Calling]
    flexible: NotRequired[CurveData | None]
    calibration_test: NotRequired[ClaimsTest]
    distance: NotRequired[DistanceData]
    spiegelhalter_z: NotRequired[float | None]


# Slices of the data by the values of a column.


class PositiveSlice(TypedDict):
    """The probability of the positive class in one slice; `sensitivity` is that of calling positive
    from 0.5 on, `cases` the number of positive cases.
    """

    cases: int
    class_auroc: Number
    observed_expected: Number
    calibration_in_the_large: Number
    sensitivity: Number


class Slice(TypedDict):
    """The samples of one value, or of one bin, of a column; `coverage` is the share accepted at the
    threshold.

    `worse`: less accurate than all samples together, beyond chance.
    """

    column: str
    value: str
    n: int
    accuracy: Number
    aurc: Number
    ece: Number
    coverage: Number
    worse: bool
    positive: NotRequired[PositiveSlice]


class Slices(TypedDict):
    """Slices, the least accurate first; their limits hold at `level` for all `of` slices together
    (Bonferroni).

    Samples are accepted where the score reaches `threshold`; `rule` says why there.
    """

    columns: list[str]
    threshold: float
    rule: str
    level: float
    of: int
    rows: list[Slice]


# Masks: images as units.


class ImageScore(TypedDict):
    """A score of whole images: AURC of 1 - Dice."""

    name: str
    aurc: Number


class ImageGuarantee(TypedDict):
    """Images accepted above a threshold have a mean 1 - Dice of at most `risk`; null where that
    cannot be guaranteed. All guarantees of a report hold at once with probability `sure`.
    """

    risk: float
    sure: float
    threshold: float | None
    coverage: float
    observed: float | None
    bound: float | None
    images_needed: int | None


class ImageClass(TypedDict):
    """The mean Dice of one class over images; in how many it is 0 (`missed`) and 1 (`perfect`, both
    empty included).
    """

    name: str
    dice: Number
    missed: int
    perfect: int


class ImageRow(TypedDict):
    """An image: its score, its Dice, the predicted and true share of foreground; `overlay` is a
    small picture.
    """

    name: str
    score: float
    dice: float
    predicted: float
    true: float
    overlay: NotRequired[str]


class ImagesData(TypedDict):
    """Per-image results: scores, promises, classes, and the rows of the worst images."""

    images: int
    scores: list[ImageScore]
    guarantees: list[ImageGuarantee]
    classes: list[ImageClass]
    rows: list[ImageRow]


# Many labels per case.


class LabelGuarantee(TypedDict):
    """What a label may decide alone: `wrong` of these on the data, `bound` is promised; `missed` is
    the share of its positive cases that are called absent then. Without a threshold `why` says
    why."""

    threshold: float | None
    coverage: float
    wrong: float | None
    bound: float | None
    missed: float | None
    why: NotRequired[str]


class LabelRow(TypedDict):
    """A label as a question of two answers: its positive cases, AUC and ECE of its probability,
    accuracy at 1/2.
    """

    name: str
    positives: int
    missed: NotRequired[int]  # positive cases that are answered with absent
    auc: Number
    ece: Number
    accuracy: Number
    guarantee: LabelGuarantee


class LabelPair(TypedDict):
    """Two labels that are wrong together: `share` of the cases wrong on a that are wrong on b, and
    of all cases.
    """

    a: str
    b: str
    cases: int
    share: float
    low: float
    high: float
    otherwise: float


class LabelsData(TypedDict):
    """Many labels per case. All promises, at most `risk` wrong, hold at once with probability
    `sure`.
    """

    cases: int
    risk: float
    sure: float
    rows: list[LabelRow]
    together: list[LabelPair]


# Findings in words, and where the numbers come from.


class FindingData(TypedDict):
    """Something beyond chance, in words, with its evidence and the argument behind it."""

    name: str
    text: str
    evidence: dict[str, Value]
    paper: str


class Input(TypedDict):
    """What was read: a file with its hash, arrays with theirs, or a streamed file with its size and
    date.
    """

    file: NotRequired[str]
    arrays: NotRequired[str]
    sha256: NotRequired[str]
    bytes: NotRequired[int]
    modified: NotRequired[str]


class ReceiptData(TypedDict):
    """What the columns of a file were taken for: part → columns, which telling ones play no part and
    the option that uses them, and all of it in words.
    """

    rows: int
    kind: str
    columns: dict[str, list[str]]
    classes: int | None
    right: str
    unused: dict[str, str]
    notes: list[str]
    text: str


class Provenance(TypedDict):
    """What must be known to make the same report again."""

    inputs: list[Input]
    command: str | None
    seed: int
    level: float
    versions: dict[str, str]
    calibrator: NotRequired[str]  # the file of the calibrator that was applied
    fitting: NotRequired[str]  # the same where `calibrate` finds splits to fit and to judge on
    reading: NotRequired[str]  # files and options by which a command reads the same data
    receipt: NotRequired[ReceiptData]


class Streamed(TypedDict):
    """How a report was read in parts: how many of how many, what was skipped, and what it leaves
    out and why.
    """

    files: int
    parts: int
    of: int
    resumed: int
    partial: bool
    skipped: list[str]
    left_out: dict[str, str]


# Calibration: before, after, and the choice of a calibrator.


class ChangeData(TypedDict):
    """A metric before and after calibration, and the paired difference."""

    before: Number
    after: Number
    difference: Number
    verdict: str


@final
class Changes(TypedDict):
    """What a correction changed; `changed` counts the answers that are others now."""

    metrics: dict[str, ChangeData]
    changed: NotRequired[int]


class Candidate(TypedDict):
    """A calibrator on held-out folds: the criterion, and its gain over doing nothing.

    `behind`: clearly worse than the best; `changed` counts the answers that are not those of doing
    nothing.
    """

    value: float | None
    low: float | None
    high: float | None
    gain: Number
    real: bool
    behind: NotRequired[bool]
    changed: NotRequired[int]
    note: str | None


class ChoiceData(TypedDict):
    """How a calibrator was chosen."""

    criterion: str
    folds: int
    seed: int
    winner: str
    table: dict[str, Candidate]


@final
class CalibrationData(TypedDict):
    """What a calibrator changed on test data, what the others would have done, and how it was
    chosen.
    """

    method: str
    status: str | None
    n_fit: int
    n_test: int
    level: float
    metrics: dict[str, ChangeData]
    methods: dict[str, dict[str, float | None]]
    choice: ChoiceData | None
    findings: list[FindingData]
    notes: list[str]
    lead: NotRequired[list[str]]  # what changed, in two sentences
    changed: NotRequired[int]  # answers on the test data that are others now
    groups: NotRequired[int]  # clusters of the test data, where they come in clusters
    diagrams: NotRequired[dict[str, CurveData]]  # threshold diagram of each method on the test data


# The report on one model.


class GuaranteeData(TypedDict):
    """The surest share whose risk is guaranteed to be at most `risk`, by the band: all guarantees of
    a report at once with probability `sure`, so each has its share of 1 − `sure`.

    Where nothing can be promised `coverage` is 0, and `labels_needed` says how many labels of the
    same kind would usually be enough (null: these labels cannot tell). `why` says what kept it from
    being looked for. It is `empty` where always giving the answer named there keeps it too, and
    `only_negative` where no positive call is accepted. Where samples come in groups the promise
    rests on one sample of each of `groups`, and `labels_needed` counts groups.
    """

    risk: float
    sure: float
    feasible: bool
    coverage: float
    kept: int
    threshold: float | None
    labels_needed: int | None
    groups: NotRequired[int]
    why: NotRequired[str]
    empty: NotRequired[str]
    only_negative: NotRequired[bool]


class BaseRate(TypedDict):
    """What always giving the same `answer` would get, and how much more these answers get.

    `wrong_at_most` is the upper limit of its error rate. A verdict names it where it is `named`,
    and `leads` with AUC and `missed` positives where accuracy says little.
    """

    answer: str
    accuracy: float
    above: Number
    wrong_at_most: float
    named: bool
    leads: bool
    positives: NotRequired[int]
    missed: NotRequired[int]


class ReportData(TypedDict):
    """A report. `metrics` and `views` are about `score`, further scores stand under `scores`.

    `groups` is the number of clusters, where samples come in clusters.
    """

    howsure: str
    schema: int
    provenance: Provenance
    n: int
    k: int | None
    kind: str
    samples: int
    class_names: list[str] | None
    score: str
    verdict: list[str]
    base_rate: NotRequired[BaseRate]
    guarantees: NotRequired[list[GuaranteeData]]
    # For the guarantee of the verdict, where every class has a probability and samples are held.
    suggestions: NotRequired[SuggestedData]
    calibration_test: NotRequired[ClaimsTest]
    groups: NotRequired[int]
    metrics: Metrics
    scores: dict[str, ScoreData]
    curves: dict[str, CurveData]
    views: Views
    binary: Binary | None
    calibration: Changes | CalibrationData | None
    findings: list[FindingData]
    slices: NotRequired[Slices]
    streamed: NotRequired[Streamed]
    approximate: NotRequired[str]
    labels: NotRequired[LabelsData]
    images: NotRequired[ImagesData]


# A comparison of several models.


class Fairness(TypedDict):
    """Whether models may be compared by a number, and why."""

    fair: bool
    why: str


class Difference(TypedDict):
    """A paired difference; `clear` where it is beyond chance although all pairs of models were
    looked at.
    """

    value: float
    low: float | None
    high: float | None
    clear: bool
    why: NotRequired[str]


class ModelRow(TypedDict):
    """A model, its numbers, and how far its AURC is behind the best."""

    name: str
    score: str
    metrics: Metrics
    behind: Difference


class PairData(TypedDict):
    """The paired differences a - b of two models; that of the Brier score shows what a better ECE
    may have lost.
    """

    a: str
    b: str
    accuracy: Difference
    aurc: Difference
    ece: NotRequired[Difference]
    correctness_brier: NotRequired[Difference]


class Beaten(TypedDict):
    """By metric: a model that costs no more and is better, null where there is none."""

    aurc: NotRequired[str | None]
    ece: NotRequired[str | None]
    aece: NotRequired[str | None]
    mce: NotRequired[str | None]
    amce: NotRequired[str | None]


CostMetric = Literal["aurc", "ece", "aece", "mce", "amce"]
COST_METRICS: tuple[CostMetric, ...] = get_args(CostMetric)


class CostRow(TypedDict):
    """What a model costs and what it is worth."""

    name: str
    cost: float
    aurc: float | None
    ece: float | None
    aece: NotRequired[float | None]
    mce: NotRequired[float | None]
    amce: NotRequired[float | None]
    beaten_by: Beaten


class FurtherRow(TypedDict):
    """A model on a further data set."""

    set: str
    model: str
    n: int
    metrics: Metrics


class SliceRow(TypedDict):
    """A model on one group; `gap` is confidence minus accuracy, `worse`: below the model's accuracy
    beyond chance.
    """

    model: str
    group: str
    n: int
    accuracy: float
    low: float | None
    high: float | None
    aurc: float
    gap: float | None
    worse: bool


class RecallRow(TypedDict):
    """The recall of one class by each model."""

    name: str
    count: int
    recall: dict[str, float | None]


class TieData(TypedDict):
    """A number in which one of two models that AURC does not tell apart is better: the limits of
    the paired difference, `better` minus `over`, exclude 0.
    """

    metric: str
    better: str
    over: str
    difference: Number


class BenefitRow(TypedDict):
    """Net benefit of model `a` minus that of `b`, cases called positive from `threshold` on."""

    a: str
    b: str
    threshold: float
    difference: Number


class ComparisonData(TypedDict):
    """A comparison. `models` are in order of AURC, the best first. `unpaired` says why differences
    are as of independent samples.
    """

    howsure: str
    schema: int
    comparison: bool
    provenance: dict[str, Provenance]
    n: int
    unpaired: NotRequired[str]
    groups: NotRequired[int]
    level: float
    same_answers: bool
    comparable: dict[str, Fairness]
    models: list[ModelRow]
    ties: NotRequired[list[TieData]]
    findings: NotRequired[list[FindingData]]
    net_benefit: NotRequired[list[BenefitRow]]
    pairs: list[PairData]
    curves: dict[str, CurveData]
    reliability: dict[str, CurveData]
    cost: list[CostRow]
    cost_name: str
    shifted: list[FurtherRow]
    outside: list[FurtherRow]
    slices: list[SliceRow]
    classes: list[RecallRow]


# New data without labels beside a labelled reference.


class PartData(TypedDict):
    """Some of the new data: the estimate, the same part of the reference, and whether all of it had
    to serve.
    """

    name: str
    n: int
    accuracy: Number
    reference: float | None
    reference_n: int
    borrowed: bool


class EstimateData(TypedDict):
    """What to expect without labels; `cannot_see` says what no number here would show.

    `coverage` and `risk` are those of the policy, `outside` the share of rows beyond what the
    reference has shown, `effective` the reference rows that look like these, `shares` by which
    factor each class became likelier.
    """

    accuracy: Number
    coverage: float
    risk: Number
    outside: float
    effective: float
    shares: dict[str, float]
    classes: list[PartData]
    groups: list[PartData]
    cannot_see: list[str]
    notes: list[str]


class DriftData(TypedDict):
    """A column beside the reference: effect size, p-value, and whether it is below the level of all
    columns together.

    `moved` are the values whose shares changed most, with their shares in the reference and now.
    """

    column: str
    effect: float
    measure: str
    p: float
    drifted: bool
    moved: list[Moved]


class Moved(TypedDict):
    """The share of a value in the reference and now."""

    name: str
    reference: float
    new: float


class LabelledData(TypedDict):
    """The rows whose labels came: their accuracy with limits, and what was estimated for these very
    rows.
    """

    n: int
    accuracy: Number
    estimate: Number
    off: float | None
    held: bool


class MonthData(TypedDict):
    """One set of new data. `bars` are the shares of its scores in the bars of the reference."""

    name: str
    n: int
    unanswered: float
    estimate: EstimateData
    drift: list[DriftData]
    labelled: LabelledData | None
    bars: list[float]


class LimitData(TypedDict):
    """A stated limit: the unfavourable end is compared with it."""

    month: str
    what: str
    value: float | None
    compared: float | None
    limit: float
    passed: bool
    note: str


class PastData(TypedDict):
    """The labelled reference: its accuracy, and the policy's coverage and risk there."""

    n: int
    accuracy: Number
    coverage: float
    risk: float | None
    unanswered: float
    bars: list[float]


class MonitorData(TypedDict):
    """New data beside a labelled reference. `low` and `high` are the ends of the bars of `score`."""

    howsure: str
    schema: int
    monitor: bool
    provenance: dict[str, Provenance]
    level: float
    drift_level: float
    tests: int
    score: str
    threshold: float | None
    low: float
    high: float
    reference: PastData
    months: list[MonthData]
    limits: list[LimitData]
    passed: bool


# Reading them back.


def parse_report(text: str | bytes) -> ReportData:
    """A report from its JSON text; raise `InputError` where it is none, or where a key has another
    type.
    """
    return strict_json.check_typed(_parse_document(text, mark="metrics", what="report"), ReportData)


def parse_comparison(text: str | bytes) -> ComparisonData:
    """A comparison from its JSON text; raise `InputError` where it is none, or where a key has
    another type.
    """
    return strict_json.check_typed(
        _parse_document(text, mark="comparison", what="comparison"), ComparisonData
    )


def parse_monitor(text: str | bytes) -> MonitorData:
    """A monitor from its JSON text; raise `InputError` where it is none, or where a key has another
    type.
    """
    return strict_json.check_typed(
        _parse_document(text, mark="monitor", what="monitor"), MonitorData
    )


def _parse_document(text: str | bytes, mark: str, what: str) -> strict_json.Plain:
    """What howsure wrote, known by its key `mark` and of a schema that this version reads."""
    data = strict_json.loads(text)
    if not isinstance(data, dict) or mark not in data or "howsure" not in data:
        raise InputError(f"this JSON is not a howsure {what}; it lacks 'howsure' or {mark!r}.")
    schema = data.get("schema")
    if schema != SCHEMA:
        raise InputError(
            f"this {what} was written by howsure {data['howsure']} with schema {schema}; this is "
            f"howsure {__version__}, which reads schema {SCHEMA}: {VERBS[what]} again."
        )
    return data


def build_curve_data(curve: Curve) -> CurveData:
    """A curve as lists, thinned to rows that are evenly spread; nan and infinity become null."""
    rows = min(len(curve), CURVE_POINTS)
    pick = sort_distinct(np.linspace(0, len(curve) - 1, rows).round().astype(int))
    data = CurveData(
        labels=list(curve.labels),
        points=len(curve),
        x=_build_column(curve.x[pick]),
        y=_build_column(curve.y[pick]),
    )
    for name in ("weight", "threshold", "low", "high"):
        column: Floats | None = getattr(curve, name)
        if column is not None:
            data[name] = _build_column(column[pick])
    return data


def _build_column(values: Floats) -> Column:
    # Twelve digits: the same report on another machine differs in the last bits only.
    return [float(f"{value:.12g}") if isfinite(value) else None for value in values.tolist()]
