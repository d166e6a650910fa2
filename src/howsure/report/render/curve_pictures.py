"""The curves of a report, each drawn from its part of the JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from markupsafe import Markup

from howsure.report.render.pictures import (
    BEFORE_POINTS,
    BY_CHANCE,
    CALIBRATION_LEGEND,
    CURVE_POINTS,
    Caption,
    Legend,
    Picture,
    add_headroom,
    build_picture,
    describe_curve,
    draw_before,
    draw_curve,
    draw_deferred,
    draw_guaranteed,
    draw_operating_point,
    find_opening,
    get_before,
    get_columns,
    get_limits,
    get_points,
    thin_curve,
)
from howsure.report.render.svg import UNIT, Axis, format_plain_tick, format_short, make_frame
from howsure.report.report_types import Column, CorpData, CurveData, ReportData


def draw_risk_coverage(report: ReportData) -> Picture:
    """Risk against coverage with the operating point."""
    c, opening = thin_curve(report["curves"]["risk_coverage"], CURVE_POINTS), find_opening(report)
    before = get_before(report, "risk_coverage")
    f = make_frame(
        Axis(label="share accepted"),
        Axis(ends=(0, add_headroom(c["y"])), label="wrong among the accepted"),
    )
    marks = [
        draw_before(f, before),
        draw_curve(f, c, "main"),
        draw_guaranteed(f, opening),
        draw_operating_point(f, opening.coverage, 1 - opening.accuracy),
    ]
    series = {report["score"]: get_columns(c)}
    if before is not None:
        series["before"] = get_columns(before)
    caption = Caption(
        name="risk",
        title="Risk and coverage",
        read="Accept fewer, and fewer of them are wrong. A lower curve is better.",
        alt=describe_curve(c, "Risk"),
        legend=CALIBRATION_LEGEND if before is not None else (),
    )
    return build_picture(caption, f, marks, series)


def draw_threshold_diagram(report: ReportData) -> Picture:
    """Accuracy of the kept against the share deferred, with the ideal curve."""
    c = thin_curve(report["curves"]["threshold_diagram"], CURVE_POINTS)
    ideal = thin_curve(report["curves"]["ideal_threshold_diagram"], CURVE_POINTS)
    before, opening = get_before(report, "threshold_diagram"), find_opening(report)
    low = min([y for y in c["y"] if y is not None], default=0.0)
    bottom = 0.0
    if low < 1:
        bottom = max(0.0, low - 0.08 * (1 - low))
    f = make_frame(
        Axis(label="share deferred"),
        Axis(ends=(bottom, 1.0), label="right among the kept"),
    )
    marks = [
        f.draw_line([1.0, *ideal["x"]], [1.0, *ideal["y"]], "ideal"),
        draw_before(f, before),
        draw_curve(f, c, "main"),
        draw_guaranteed(f, opening, deferred=True),
        draw_operating_point(f, 1 - opening.coverage, opening.accuracy),
    ]
    series = {report["score"]: get_columns(c), "ideal": get_points(ideal)}
    if before is not None:
        series["before"] = get_columns(before)
    caption = Caption(
        name="threshold",
        title="Threshold diagram",
        read="Defer more, and more of the rest is right. Dashed: a score that knows every error.",
        alt=describe_curve(c, "Accuracy of the kept"),
        legend=CALIBRATION_LEGEND if before is not None else (),
    )
    return build_picture(caption, f, marks, series)


def draw_method_diagrams(report: ReportData) -> Picture | None:
    """The threshold diagrams of all methods in one frame (Vemuri 2020, figure 6.2)."""
    calibration = report["calibration"]
    if calibration is None or "diagrams" not in calibration or len(calibration["diagrams"]) < 2:
        return None
    diagrams = {name: thin_curve(c, BEFORE_POINTS) for name, c in calibration["diagrams"].items()}
    low = min(y for c in diagrams.values() for y in c["y"] if y is not None)
    f = make_frame(
        Axis(label="share deferred"),
        Axis(
            ends=(max(0.0, low - 0.08 * (1 - low)) if low < 1 else 0.0, 1.0),
            label="right among the kept",
        ),
    )
    styles = {name: f"c{rank % 8} d{rank // 8}" for rank, name in enumerate(diagrams)}
    caption = Caption(
        name="methods",
        title="Threshold diagrams of all methods",
        read="A higher curve orders better; the area above it is the AAC. Methods that keep the order share one line.",
        alt="Accuracy of the kept against the share deferred, one line for each method",
        legend=tuple(styles.items()),
    )
    marks = [draw_curve(f, c, styles[name]) for name, c in diagrams.items()]
    return build_picture(caption, f, marks, {name: get_points(c) for name, c in diagrams.items()})


def draw_reliability(report: ReportData, c: CurveData, name: str) -> Picture:
    """Accuracy against confidence with consistency bars and counts."""
    f = make_frame(Axis(label="confidence"), Axis(label="accuracy"))
    none: Column = [None] * len(c["x"])
    # Counts stand on the same axis, the highest a quarter of the height.
    counts = [n or 0.0 for n in c.get("weight", none)]
    highest = max(counts, default=1.0) or 1.0
    count_frame = replace(f, y=replace(f.y, low=0, high=4))
    before = get_before(report, f"reliability_{name}")
    shares = [n / highest for n in counts]
    marks = [
        count_frame.draw_whiskers(c["x"], [0.0] * len(shares), shares, kind="counts"),
        f.draw_line(UNIT, UNIT, "ideal"),
        f.draw_whiskers(c["x"], *get_limits(c)),
        draw_before(f, before),
        draw_curve(f, c, "thin"),
        f.draw_dots(c["x"], c["y"], "main"),
        draw_deferred(f, report),
    ]
    series = {name: {**get_columns(c), "answers": c.get("weight", none)}}
    if before is not None:
        series["before"] = {**get_points(before), "answers": before.get("weight", none)}
    caption = Caption(
        name=f"reliability-{name}",
        title="Reliability",
        read="",
        alt=describe_curve(c, "Accuracy"),
        legend=CALIBRATION_LEGEND if before is not None else (),
    )
    return build_picture(caption, f, marks, series, band=BY_CHANCE)


def draw_corp(report: ReportData, corp: CorpData) -> Picture:
    """The isotonic reliability curve with its band; before calibration too where it is known."""
    c, before = thin_curve(corp["curve"], BEFORE_POINTS), get_before(report, "reliability")
    f = make_frame(Axis(label="confidence"), Axis(label="accuracy"))
    marks = [
        f.draw_band(c["x"], *get_limits(c)),
        f.draw_line(UNIT, UNIT, "ideal"),
        draw_before(f, before),
        draw_curve(f, c, "main"),
        draw_deferred(f, report),
    ]
    if before is None:
        series, legend = {"isotonic": get_columns(c)}, ()
    else:
        series = {"after": get_columns(c), "before": get_columns(before)}
        legend = CALIBRATION_LEGEND
    caption = Caption(
        name="corp",
        title="Reliability without bins",
        read="",
        alt=describe_curve(c, "Isotonic accuracy"),
        legend=legend,
    )
    return build_picture(caption, f, marks, series, band=BY_CHANCE)


def draw_uncertainty_reliability(report: ReportData) -> Picture | None:
    """Error rate against normalised entropy."""
    c = report["curves"].get("uncertainty_reliability")
    if c is None:
        return None
    before = get_before(report, "uncertainty_reliability")
    f = make_frame(
        Axis(label="normalised entropy", write=format_plain_tick),
        Axis(label="error rate"),
    )
    marks = [
        f.draw_line(UNIT, UNIT, "ideal"),
        draw_before(f, before),
        draw_curve(f, c, "thin"),
        f.draw_dots(c["x"], c["y"], "main"),
    ]
    series, legend = _pair_with_before("15 bins", c, before)
    caption = Caption(
        name="uncertainty",
        title="Uncertainty reliability",
        read="On the dashed line the entropy is the error rate, which UCE asks for and calibration "
        "does not.",
        alt=describe_curve(c, "Error rate"),
        legend=legend,
    )
    return build_picture(caption, f, marks, series)


def _pair_with_before(
    name: str, c: CurveData, before: CurveData | None
) -> tuple[Mapping[str, Mapping[str, Column]], Legend]:
    """Points and legend of a curve, beside the one before calibration where it is known."""
    if before is None:
        return {name: get_points(c)}, ()
    (after_name, _), (before_name, _) = CALIBRATION_LEGEND
    series = {after_name: get_points(c), before_name: get_points(before)}
    return series, CALIBRATION_LEGEND


def draw_rejection(report: ReportData) -> Picture | None:
    """Error of the kept against the entropy kept; before calibration too where it is known."""
    c, before = report["curves"].get("rejection"), get_before(report, "rejection")
    if c is None:
        return None
    c = thin_curve(c, CURVE_POINTS)
    errors = [*c["y"]]
    if before is not None:
        errors += before["y"]
    f = make_frame(
        Axis(label="largest normalised entropy kept", write=format_plain_tick),
        Axis(ends=(0, add_headroom(errors)), label="error of the kept"),
    )
    marks = [draw_before(f, before), draw_curve(f, c, "main")]
    series, legend = _pair_with_before(report["score"], c, before)
    caption = Caption(
        name="rejection",
        title="Rejection by entropy",
        read="Reject what is less sure than this.",
        alt=describe_curve(c, "Error of the kept"),
        legend=legend,
    )
    return build_picture(caption, f, marks, series)


def draw_odds(report: ReportData) -> Picture | None:
    """Odds ratio of each quantile of the first score on a log axis; infinite ones at the top."""
    c, before = report["curves"]["odds_by_quantile"], get_before(report, "odds_by_quantile")
    ratios = [*c["y"]]
    if before is not None:
        ratios += before["y"]
    known = [y for y in ratios if y is not None and y > 0]
    if not known:
        return None
    low, high = min(known) / 1.3, max(known) * 2
    f = make_frame(
        Axis(label="quantile, most trusted first"),
        Axis(ends=(low, high), label="odds ratio (log scale)", write=format_short, log=True),
    )
    marks: list[Markup] = []
    if low < 1 < high:
        marks.append(f.draw_line(UNIT, (1.0, 1.0), "ideal"))
    if before is not None:
        marks.append(f.draw_dots(before["x"], before["y"], "small c1"))
    infinite = [x for x, y in zip(c["x"], c["y"], strict=True) if y is None]
    marks.append(f.draw_dots(infinite, [high] * len(infinite), "small hollow c0"))
    marks.append(f.draw_dots(c["x"], c["y"], "small c0"))
    read = "How much better a bet becomes when the score is known: one dot per hundredth of the answers."
    if infinite:
        read += f" Faint, at the top: {len(infinite)} that are infinite, all right or all wrong."
    series, legend = _pair_with_before(report["score"], c, before)
    caption = Caption(
        name="odds",
        title="Odds by quantile",
        read=read,
        alt=describe_curve(c, "Odds ratio"),
        legend=legend,
    )
    return build_picture(caption, f, marks, series)


def draw_rate(report: ReportData, name: str, title: str) -> Picture | None:
    """ROC or precision-recall."""
    c, before = report["curves"].get(name), get_before(report, name)
    if c is None or not any(y is not None for y in c["y"]) or None in (c["x"][-1], c["y"][-1]):
        return None
    c = thin_curve(c, CURVE_POINTS)
    across, up = c["labels"]
    f = make_frame(Axis(label=across), Axis(label=up))
    marks = [draw_before(f, before), draw_curve(f, c, "main")]
    if name == "roc":
        marks.insert(0, f.draw_line(UNIT, UNIT, "ideal"))
    series, legend = _pair_with_before(report["score"], c, before)
    caption = Caption(
        name=name,
        title=title,
        read="Finding errors by low confidence. Compare scores of one model with it, never two "
        "models.",
        alt=describe_curve(c, up),
        legend=legend,
    )
    return build_picture(caption, f, marks, series)


def draw_decision_curve(report: ReportData) -> Picture | None:
    """Net benefit against the threshold probability, beside treating all and treating none."""
    binary = report["binary"]
    if binary is None:
        return None
    c = binary["net_benefit"]
    treat_all = c.get("low", [None] * len(c["x"]))
    high = add_headroom([*c["y"], binary["prevalence"]])
    f = make_frame(
        Axis(label="threshold probability"),
        Axis(ends=(-high / 4, high), label="net benefit", write=format_plain_tick),
    )
    # Treating all soon falls far below zero; there its line leaves the picture.
    visible = [None if v is None or v < -high / 4 else v for v in treat_all]
    marks = [
        f.draw_line(UNIT, (0.0, 0.0), "ideal"),
        f.draw_line(c["x"], visible, "before"),
        draw_curve(f, c, "main"),
    ]
    series = {
        "by this probability": get_points(c),
        "treat all": {"x": c["x"], "y": treat_all},
    }
    name = binary["positive_class"]
    caption = Caption(
        name="decision",
        title="Decision curve",
        read=f"Net benefit of acting on the probability of {name}, in true positives per case; act where "
        "the line is highest.",
        alt=describe_curve(c, "Net benefit"),
        legend=(("by this probability", "main"), ("treat all", "before"), ("treat none", "ideal")),
    )
    return build_picture(caption, f, marks, series)


def draw_positive_reliability(report: ReportData) -> Picture | None:
    """Observed frequency of the positive class against its probability, without bins, with its band."""
    binary = report["binary"]
    if binary is None:
        return None
    c = binary.get("flexible")
    if c is None:
        return None
    f = make_frame(
        Axis(label=f"probability of {binary['positive_class']}"),
        Axis(label="observed frequency"),
    )
    marks = [
        f.draw_band(c["x"], *get_limits(c)),
        f.draw_line(UNIT, UNIT, "ideal"),
        draw_curve(f, c, "main"),
    ]
    caption = Caption(
        name="positive",
        title="Calibration of the positive class",
        read="The dashed line is perfect calibration. Shaded: limits of the curve.",
        alt=describe_curve(c, "Observed frequency"),
    )
    return build_picture(caption, f, marks, {"flexible": get_columns(c)})
