"""The parts of a report in words: a sheet for terminals and Markdown, rows for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from howsure.render.catalogue import MAIN, SHARES
from howsure.render.model import (
    Band,
    Binary,
    CalibrationData,
    CallRow,
    Candidate,
    ChangeData,
    Changes,
    ClassRow,
    Confusion,
    CorpData,
    CurveData,
    ImagePromise,
    LabelPair,
    LabelPromise,
    Metrics,
    Number,
    Operating,
    ReportData,
    Slice,
    Slices,
    Suspect,
)
from howsure.render.steps import steps
from howsure.render.tables import Sheet, Table
from howsure.render.words import (
    ARROWS,
    about_limits,
    between,
    between_percent,
    between_points,
    between_signed,
    by_question,
    heading,
    headline,
    interval,
    level,
    limits,
    meaning,
    measured,
    note,
    number,
    percent,
    points,
    reasons,
    shared,
    signed,
    value,
)

SCORES = ("aurc", "auroc", "aupr_error", "coverage_at_risk_0.01", "eor_smooth")
LISTED = {
    "coverage": "decided alone",
    "threshold": "threshold",
    "accuracy": "right among these",
    "limits": "with limits",
    "wrong": "wrong among these",
}
BANDS = (
    "The surest answers that together are 99 % right, the next ones that together are 95 % right, and the rest "
    "(Finlay & Oberman, tables 3 to 5)."
)
POSITIVE = {
    "class_auroc": "AUC of the class",
    "prevalence": "prevalence",
    "observed_expected": "observed / expected (1 is perfect)",
    "brier": "Brier of this probability",
    "ece": "ECE of the positive class",
}
CALLED = ("sensitivity", "specificity", "PPV", "NPV")
CALLS = (
    "Called positive where the probability reaches the threshold. Net benefit: true positives per case, minus false "
    "positives weighed by the odds of the threshold; treating none has 0 (Vickers & Elkin 2006)."
)
SLICED = ("accuracy", "AURC", "ECE", "accepted")
ACCEPTED = ("images accepted", "their 1 − Dice", "at most")
PROMISED = (
    "The mean 1 − Dice of accepted images, each row a promise by itself (threshold --loss dice --bound betting); the "
    "others go to a reader."
)
EMPTY_MASKS = "Both masks empty: Dice 1. One of them empty: Dice 0."
SCORES_OF_IMAGES = {
    "mean_confidence": "mean confidence of pixels",
    "mean_certainty": "1 − mean scaled entropy",
    "sure_pixels": "share of pixels above 0.9",
}
TOGETHER = "Pairs that are wrong in the same case more often than each by itself, beyond chance."
UNLIMITED = "Without an interval: the number jumps when single samples change, so whether it moved is not told."
UNKNOWN = "not known"
TABLE = 20  # rows of the operating table
CONFUSED = 10  # classes of a printed table of labels and answers


def sheet(report: ReportData, *, full: bool = False, page: bool = False) -> Sheet:
    """What is printed of a report: verdict, findings, numbers, what to do next.

    `full`: all numbers and tables, else the dozen that matter; `page`: it is written already.
    """
    main = {name: e for name, e in report["metrics"].items() if name in MAIN}
    shown = by_question(report["metrics"]) if full else [("The numbers that matter", main)]
    told = shared(report["metrics"])
    numbers = [_metrics(question, metrics, told) for question, metrics in shown]
    if numbers:  # once, below the last of them
        numbers[-1] = replace(numbers[-1], note=about_limits(report["metrics"]))
    found = [
        changes(report["calibration"]),
        *numbers,
        *images(report),
        *labels(report),
        binary(report["binary"]),
        calls(report["binary"]),
        slices(report.get("slices")),
        *((scores(report), bands(report), classes(report["views"]["classes"])) if full else ()),
        *(confusions(report["views"].get("confusion")) if full else ()),
    ]
    remarks = [finding["text"] for finding in report["findings"]]
    tables, verdict = [table for table in found if table is not None], ["", *report["verdict"]]
    return Sheet(headline(report), verdict, tables, remarks, steps(report, page=page, full=full))


def _metrics(question: str, metrics: Metrics, told: Sequence[str]) -> Table:
    rows = [
        [
            meaning(name).title,
            ARROWS[e["better"]],
            value(name, e),
            limits(name, e),
            note(name, e, told),
        ]
        for name, e in metrics.items()
    ]
    return Table(question, ["", "", "value", "interval", "what it says"], rows)


def scores(report: ReportData) -> Table | None:
    """Ranking metrics of all scores side by side: the same predictions, so all of them compare."""
    if not report["scores"]:
        return None
    found = {
        report["score"]: report["metrics"],
        **{name: s["metrics"] for name, s in report["scores"].items()},
    }
    head = ["score", *(heading(m, report["metrics"][m]["better"]) for m in SCORES)]
    rows = [[name, *(value(m, metrics[m]) for m in SCORES)] for name, metrics in found.items()]
    return Table("Which score ranks best?", head, rows)


def binary(found: Binary | None) -> Table | None:
    """The numbers of the positive class."""
    if found is None:
        return None
    slope, intercept, brier = (
        found["calibration_slope"],
        found["calibration_intercept"],
        found["brier_decomposition"],
    )
    alone: dict[str, Number] = {
        "prevalence": {"value": found["prevalence"]},
        "ece": {"value": found["ece"]},
    }
    numbers = found.get("numbers", alone)
    why = reasons([slope, intercept, *numbers.values()])
    rows = [
        *([title, *_positive(n, numbers[n])] for n, title in POSITIVE.items() if n in numbers),
        ["calibration slope (1 is perfect)", measured(slope), interval(slope)],
        ["calibration intercept (0 is perfect)", measured(intercept), interval(intercept)],
        ["Brier, reliability", number(brier["reliability"]), ""],
        ["Brier, resolution", number(brier["resolution"]), ""],
        ["Brier, uncertainty", number(brier["uncertainty"]), ""],
        ["Brier, within", number(brier["within"]), ""],
    ]
    return Table(
        f"The probability of {called(found['positive_class'])}",
        ["number", "value", "interval"],
        rows,
        why,
    )


def called(name: str) -> str:
    """A class in a sentence: a name speaks for itself, a number does not.

    >>> called("malignant"), called("1")
    ('malignant', 'class 1')
    """
    return f"class {name}" if name.isdigit() else name


def _positive(name: str, entry: Number) -> tuple[str, str]:
    if name != "prevalence":
        return measured(entry), interval(entry)
    return percent(entry["value"], 2), between_percent(entry.get("low"), entry.get("high"), 2)


def calls(found: Binary | None) -> Table | None:
    """What happens where cases are called positive from a threshold on."""
    rows = [] if found is None else [_call(row) for row in found.get("thresholds", [])]
    if found is None or not rows:
        return None
    head = ["threshold", "called", *(cell for name in CALLED for cell in (name, "interval"))]
    title, thresholds = (
        f"Who is called {called(found['positive_class'])}?",
        found.get("thresholds", []),
    )
    why = reasons(share for row in thresholds for share in _shares(row))
    return Table(title, [*head, "net benefit", "of treating all"], rows, f"{CALLS} {why}".strip())


def _shares(row: CallRow) -> list[Number]:
    return [row["sensitivity"], row["specificity"], row["ppv"], row["npv"]]


def _call(row: CallRow) -> list[str]:
    cells = [cell for share in _shares(row) for cell in _percents(share)]
    return [
        level(row["threshold"]),
        percent(row["called"]),
        *cells,
        number(row["net_benefit"]),
        number(row["treat_all"]),
    ]


def _percents(share: Number) -> tuple[str, str]:
    return percent(share["value"]), between_percent(share.get("low"), share.get("high"))


def slices(found: Slices | None) -> Table | None:
    """Slices side by side, the least accurate first."""
    if found is None:
        return None
    head = ["slice", "samples", *(cell for name in SLICED for cell in (name, "interval")), ""]
    said = (
        f"Intervals hold at {level(found['level'])} for all {found['of']:,} slices together. Accepted: score of at "
        f"least {number(found['threshold'])} ({found['rule']})."
    )
    rows = found["rows"]
    why = reasons(
        entry
        for row in rows
        for entry in (row["accuracy"], row["aurc"], row["ece"], row["coverage"])
    )
    return Table(
        f"Slices by {', '.join(found['columns'])}",
        head,
        [_slice(row) for row in rows],
        f"{said} {why}".strip(),
    )


def _slice(row: Slice) -> list[str]:
    numbers = [cell for entry in (row["aurc"], row["ece"]) for cell in _brief(entry)]
    name = f"{row['column']}: {row['value']}"
    mark = "worse than all" if row["worse"] else ""
    return [
        name,
        f"{row['n']:,}",
        *_percents(row["accuracy"]),
        *numbers,
        *_percents(row["coverage"]),
        mark,
    ]


def _brief(entry: Number) -> tuple[str, str]:
    return number(entry["value"], 3), between(entry.get("low"), entry.get("high"), 3)


def confusions(found: Confusion | None) -> list[Table]:
    """Labels against answers where the classes are few, and the commonest wrong answers."""
    if found is None:
        return []
    tables: list[Table] = []
    if found["counts"] is not None and len(found["classes"]) <= CONFUSED:
        rows = [
            [name, *(f"{n:,}" for n in row)]
            for name, row in zip(found["classes"], found["counts"], strict=True)
        ]
        tables.append(Table("Labels and answers", ["label", *found["classes"]], rows))
    if found["top"] and len(found["classes"]) != 2:
        tables.append(taken(found))
    return tables


def taken(found: Confusion) -> Table:
    """The commonest wrong answers."""
    head = ["label", "answer", "samples", "share of the label", "mean confidence"]
    rows = [
        [
            c["label"],
            c["prediction"],
            f"{c['count']:,}",
            percent(c["share"]),
            percent(c.get("confidence")),
        ]
        for c in found["top"]
    ]
    return Table("What is taken for what", head, rows)


def images(report: ReportData) -> list[Table]:
    """Images as units: which may be accepted, which score orders them, each class, and the worst of
    them.
    """
    found = report.get("images")
    if found is None:
        return []
    first = found["scores"][0]["name"]
    trusted = (
        "mean confidence" if first == "mean_confidence" else SCORES_OF_IMAGES.get(first, first)
    )
    promises = [[number(p["risk"]), *_accepted(p)] for p in found["promises"]]
    scores = [
        [SCORES_OF_IMAGES.get(s["name"], s["name"]), *_with_limits(s["aurc"])]
        for s in found["scores"]
    ]
    classes = [
        [c["name"], *_with_limits(c["dice"]), f"{c['missed']:,}", f"{c['perfect']:,}"]
        for c in found["classes"]
    ]
    worst = [
        [
            r["name"],
            number(r["dice"]),
            number(r["score"]),
            percent(r["predicted"]),
            percent(r["true"]),
        ]
        for r in found["rows"]
    ]
    tables = [
        Table(
            "Which images may it decide alone?",
            ["mean 1 − Dice at most", f"{trusted} from", *ACCEPTED],
            promises,
            PROMISED,
        ),
        Table(
            "Which score orders images best?",
            ["score of an image", "AURC\N{NO-BREAK SPACE}↓", "interval"],
            scores,
            _unsafe([s["aurc"] for s in found["scores"]]),
        ),
        Table(
            "Dice of each class over images",
            ["class", "Dice", "interval", "Dice 0", "Dice 1"],
            classes,
            " ".join(filter(None, (EMPTY_MASKS, _unsafe([c["dice"] for c in found["classes"]])))),
        ),
        Table("The worst images", ["image", "Dice", trusted, "predicted", "true"], worst),
    ]
    return [table for table in tables if table.rows]


def _accepted(p: ImagePromise) -> list[str]:
    if p["threshold"] is None:
        needed = p["images_needed"]
        return [
            "no threshold" if needed is None else f"about {needed:,} images are needed",
            "none",
            "",
            "",
        ]
    return [
        number(p["threshold"], 6),
        percent(p["coverage"]),
        number(p["observed"]),
        number(p["bound"]),
    ]


def labels(report: ReportData) -> list[Table]:
    """Each of many labels: what its probability is worth, what it may decide alone, and errors that
    come together.
    """
    found = report.get("labels")
    if found is None:
        return []
    head = [
        "label",
        "positive",
        "AUC\N{NO-BREAK SPACE}↑",
        "interval",
        "ECE\N{NO-BREAK SPACE}↓",
        "interval",
    ]
    told = [
        [r["name"], f"{r['positives']:,}", *_with_limits(r["auc"]), *_with_limits(r["ece"])]
        for r in found["rows"]
    ]
    sure = f"all {len(found['rows'])} at once, {level(found['sure'])} sure"
    alone = ["label", "alone above", "decided alone", "wrong", "at most", "positives missed"]
    pairs = [[f"{p['a']}, {p['b']}", f"{p['cases']:,}", *_together(p)] for p in found["together"]]
    tables = [
        Table(
            "Label by label",
            head,
            told,
            _unsafe([n for r in found["rows"] for n in (r["auc"], r["ece"])]),
        ),
        Table(
            f"Which label may it decide alone, at most {percent(found['risk'], 0)} wrong? ({sure})",
            alone,
            [[r["name"], *_alone(r["promise"])] for r in found["rows"]],
            "Positives missed: positive cases that are then called absent and that nobody looks at.",
        ),
        Table(
            "Wrong together",
            ["labels", "cases", "wrong on the second then", "interval", "otherwise"],
            pairs,
            TOGETHER,
        ),
    ]
    return [table for table in tables if table.rows]


def _with_limits(n: Number) -> tuple[str, str]:
    return (
        (number(n["value"]), interval(n))
        if n["value"] is not None
        else ("none", n.get("why", "none"))
    )


def _unsafe(numbers: Sequence[Number]) -> str:
    """What makes limits of a table unsafe, each reason once."""
    said = dict.fromkeys(n["note"] for n in numbers if "note" in n)
    return " ".join(f"{word[:1].upper()}{word[1:]}." for word in said)


def _together(p: LabelPair) -> list[str]:
    return [percent(p["share"]), between_percent(p["low"], p["high"]), percent(p["otherwise"])]


def _alone(p: LabelPromise) -> list[str]:
    if p["threshold"] is None:
        return ["none", p.get("why", "none"), "", "", ""]
    shares = (
        percent(p["coverage"]),
        percent(p["wrong"]),
        percent(p["bound"]),
        percent(p["missed"]),
    )
    return [number(p["threshold"]), *shares]


def changes(found: Changes | CalibrationData | None) -> Table | None:
    """What a calibrator changed on the same samples."""
    if found is None:
        return None
    head = ["number", "before", "after", "difference", "interval", "verdict"]
    rows = [
        [meaning(name).title, *_change(name, change)] for name, change in found["metrics"].items()
    ]
    return Table(
        "What calibration changed", head, rows, UNLIMITED if any(not row[4] for row in rows) else ""
    )


def _change(name: str, c: ChangeData) -> list[str]:
    d = c["difference"]
    low, high = d.get("low"), d.get("high")
    write, both = (points, between_points) if name in SHARES else (signed, between_signed)
    limits = "" if low is None or high is None else both(low, high)
    return [
        value(name, c["before"]),
        value(name, c["after"]),
        write(d["value"]),
        limits,
        c["verdict"],
    ]


def methods(found: Changes | CalibrationData | None) -> Table | None:
    """What every calibrator would have done to the same samples, where more than one was tried."""
    if found is None or "methods" not in found or len(found["methods"]) <= 2:
        return None
    names = list(found["metrics"])
    rows = [
        [name, *(value(m, {"value": values[m]}) for m in names)]
        for name, values in found["methods"].items()
    ]
    return Table(
        "All calibrators on the same data", ["calibrator", *(meaning(m).title for m in names)], rows
    )


def candidates(found: Changes | CalibrationData | None) -> Table | None:
    """How the calibrator was chosen: each one on held-out folds, and what it costs in changed
    answers.
    """
    if found is None or "choice" not in found or found["choice"] is None:
        return None
    choice = found["choice"]
    rows = [
        [
            name,
            number(c["value"]),
            signed(c["gain"]["value"]),
            ""
            if c["gain"].get("low") is None
            else between_signed(c["gain"].get("low"), c["gain"].get("high")),
            f"{c['changed']:,}" if "changed" in c else "none",
            "chosen" if name == choice["winner"] else _standing(c),
        ]
        for name, c in choice["table"].items()
    ]
    title = f"How it was chosen: {meaning(choice['criterion']).title} on {choice['folds']} held-out folds"
    note = (
        f"Fitted on {found['n_fit']:,} samples that the test data have nothing to do with; doing nothing is none. "
        "Chosen is the simplest with a real gain that is not clearly worse than the best."
    )
    head = [
        "calibrator",
        meaning(choice["criterion"]).title,
        "gain",
        "interval",
        "answers changed",
        "",
    ]
    return Table(title, head, rows, note)


def _standing(c: Candidate) -> str:
    if not c["real"]:
        return c["note"] or ""
    return "real gain, clearly worse than the best" if c.get("behind") else "real gain"


def calibrated(data: CalibrationData) -> Sheet:
    """What `howsure calibrate` prints: the change first, then how it was chosen and what each would
    have done.
    """
    tables = [changes(data), candidates(data), methods(data)]
    groups = f" in {data['groups']:,} groups" if "groups" in data else ""
    title = f"{data['method']}, fitted on {data['n_fit']:,} and judged on {data['n_test']:,} predictions{groups}"
    remarks = [*(f["text"] for f in data["findings"]), *data["notes"]]
    return Sheet(
        title,
        ["", *data.get("lead", [])],
        [table for table in tables if table is not None],
        remarks,
    )


def bands(report: ReportData) -> Table:
    """Bands of promised accuracy, one row per score."""
    found = {
        report["score"]: report["views"]["bands"],
        **{name: s["bands"] for name, s in report["scores"].items()},
    }
    rows = [
        [name, *map(_band, rows), percent(rows[-1]["accuracy"])] for name, rows in found.items()
    ]
    head = ["score", "99 % right", "95 % right", "the rest", "right among the rest"]
    return Table("Bands of trust", head, rows, BANDS)


def _band(b: Band) -> str:
    """The share of a band and where it begins."""
    start = "" if b["threshold"] is None else f" from {number(b['threshold'])}"
    return f"{percent(b['share'])}{start}" if b["share"] else "none"


def classes(found: list[ClassRow]) -> Table | None:
    """Recall, precision and confidence per class."""
    head = ["class", "samples", "recall", "interval", "answers", "precision", "confidence"]
    rows = [
        [
            c["name"],
            f"{c['count']:,}",
            percent(c["recall"]),
            between_percent(c["low"], c["high"]),
            f"{c['given']:,}",
            percent(c["precision"]),
            percent(c["confidence"]),
        ]
        for c in found
    ]
    return Table("Class by class", head, rows) if rows else None


class Doubt(NamedTuple):
    """A sure and wrong answer in words; `image` is empty where there is none."""

    id: str
    score: str
    answer: str
    label: str
    image: str


def doubts(found: list[Suspect], images: Sequence[str]) -> list[Doubt]:
    """Sure and wrong answers with their pictures; an empty text is none."""
    return [
        Doubt(
            s["id"], number(s["score"], 6), s["prediction"] or UNKNOWN, s["label"] or UNKNOWN, image
        )
        for s, image in zip(found, images, strict=True)
    ]


def bins(curve: CurveData) -> list[list[str]]:
    """From, answers, confidence, accuracy and what chance allows, per bin."""
    none = [None] * len(curve["x"])
    weight, start = curve.get("weight", none), curve.get("threshold", none)
    low, high = curve.get("low", none), curve.get("high", none)
    return [
        [
            number(start[i]),
            "none" if n is None else f"{n:,.0f}",
            percent(x),
            percent(y),
            "" if low[i] is None else between_percent(low[i], high[i]),
        ]
        for i, (n, x, y) in enumerate(zip(weight, curve["x"], curve["y"], strict=True))
    ]


def corp(found: CorpData) -> list[tuple[str, str, str]]:
    """The parts of the Brier score of the confidence, with what each says."""
    return [
        (
            "Brier of the confidence",
            number(found["score"]),
            "= miscalibration − discrimination + uncertainty",
        ),
        (
            "miscalibration",
            number(found["miscalibration"]),
            "what the isotonic map would save; 0 is perfect",
        ),
        (
            "discrimination",
            number(found["discrimination"]),
            "what telling cases apart gains; more is better",
        ),
        ("uncertainty", number(found["uncertainty"]), "of always saying the accuracy"),
    ]


def cases(per_thousand: float) -> str:
    """Whole cases of 1,000.

    >>> cases(50.5), cases(0.2), cases(0)
    ('50', 'fewer than 1', '0')
    """
    return "fewer than 1" if 0 < per_thousand < 0.5 else f"{per_thousand:.0f}"


def operating(o: Operating, n: int) -> dict[str, list[str]]:
    """The operating points in words, column by column."""
    shown = {
        "coverage": [percent(v) for v in o["coverage"]],
        "threshold": [
            number(v, 7 if v is not None and 0.99 <= v < 1 else 4) for v in o["threshold"]
        ],
        "accuracy": [percent(v, 2) for v in o["accuracy"]],
        "errors": [cases(v) for v in o["errors"]],
        "deferred": [cases(v) for v in o["deferred"]],
    }
    if "kept" in o and "wrong" in o:
        pairs = zip(o["wrong"], o["kept"], strict=True)
        shown["wrong"] = [f"{wrong:,.0f} of {kept:,.0f}" for wrong, kept in pairs]
        shown["of"] = [f"{n:,}"] * len(o["kept"])
    if o["low"] is not None and o["high"] is not None:
        shown["limits"] = [
            between_percent(*limits, 2) for limits in zip(o["low"], o["high"], strict=True)
        ]
    pairs = zip(shown["coverage"], shown["accuracy"], strict=True)
    shown["said"] = [
        f"{coverage} decided alone, {accuracy} of these right" for coverage, accuracy in pairs
    ]
    return shown


def listed(points: int) -> list[int]:
    """The operating points that a table lists, from all samples down to the surest."""
    return list(range(points - 1, -1, -max(1, points // TABLE)))
