"""A monitor in words and pictures: a sheet for terminals and Markdown, and the page."""

from __future__ import annotations

from collections.abc import Sequence

from howsure.report.render import svg
from howsure.report.render.page import dump_pictures, render_template
from howsure.report.render.pictures import (
    Caption,
    Picture,
    add_headroom,
    build_picture,
    find_edges,
    find_middles,
)
from howsure.report.render.sentences import (
    NONE,
    describe_origin,
    format_evidence,
    format_level,
    format_number,
    format_percent,
    format_points,
    format_share,
)
from howsure.report.render.svg import Axis, make_frame
from howsure.report.render.text_tables import Sheet, TableRows, TextTable
from howsure.report.report_types import (
    Column,
    DriftData,
    EstimateData,
    MonitorData,
    MonthData,
    Number,
    PartData,
)

TABLE_PARTS = 10  # answers or groups of a long table
TABLE_PERIODS = 5  # periods side by side
ACCURACY_FLOORS = (0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.2)  # where the axis of accuracy may begin


def build_monitor_sheet(data: MonitorData) -> Sheet:
    """Everything that is printed of a monitor."""
    months, last = data["months"], data["months"][-1]
    tables = [_build_timeline(data)]

    policy = TableRows()
    if data["threshold"] is not None:
        past = data["reference"]
        shares = (format_percent(past["coverage"]), format_percent(past["risk"], 2))
        policy.append(["reference", *shares, "observed"])
        for month in months:
            coverage = format_percent(month["estimate"]["coverage"])
            policy.append([month["name"], coverage, *format_share(month["estimate"]["risk"], 2)])
    threshold = format_number(data["threshold"], 6)
    title = f"What the policy does (accepts {data['score']} >= {threshold})"
    head = ["", "accepted", "risk", "interval"]
    note = "Risk: expected share of wrong among the accepted."
    tables.append(TextTable(title=title, head=head, rows=policy, note=note))

    checked = TableRows()
    for month in months:
        labelled = month["labelled"]
        if labelled is None:
            continue
        checked.append(
            [
                month["name"],
                f"{labelled['n']:,}",
                *format_share(labelled["accuracy"], 2),
                *format_share(labelled["estimate"], 2),
                format_points(labelled["off"]),
                "yes" if labelled["held"] else "no",
            ]
        )
    head = ["", "labels", "accuracy", "interval", "estimated", "interval"]
    head += ["off by", "within its limits"]
    tables.insert(0, TextTable(title="Where labels came", head=head, rows=checked))

    limits = TableRows()
    for limit in data["limits"]:
        shares = (limit["value"], limit["compared"], limit["limit"])
        cells = [format_percent(share, 2) for share in shares]
        met = "yes" if limit["passed"] else "NO"
        limits.append([limit["month"], limit["what"], *cells, limit["note"], met])
    head = ["", "limit", "value", "compared", "least", "by", "met"]
    tables.append(TextTable(title="Stated limits", head=head, rows=limits))

    tables.append(_build_drift_table(data))
    for what, periods in (
        ("answer", [month["estimate"]["classes"] for month in months]),
        ("group", [month["estimate"]["groups"] for month in months]),
    ):
        tables.append(_build_parts_table(periods[-1], what, f", {last['name']}"))
        if len(months) > 1:
            names = [month["name"] for month in months]
            tables.append(_build_parts_timeline(what, names, periods))
    many = f"{last['n']:,} new rows" if len(months) == 1 else f"{len(months)} periods"
    reference = f"{data['reference']['n']:,} labelled rows"
    remarks: list[str] = []
    for month in months:
        remarks += [f"{month['name']}: {note}" for note in month["estimate"]["notes"]]
    for text in last["estimate"]["cannot_see"]:
        remarks.append(f"Blind spot ({last['name']}): {text}")
    return Sheet(
        headline=f"{many} beside {reference} · {format_level(data['level'])} limits",
        sentences=write_monitor_verdict(data),
        tables=[table for table in tables if table.rows],
        remarks=remarks,
    )


def build_estimate_sheet(
    data: EstimateData,
    n: int,
    reference_n: int,
    reference_accuracy: float | None,
    level: float,
) -> Sheet:
    """An estimate without a monitor around it."""
    accuracy = format_share(data["accuracy"], 2)
    reference = (format_percent(reference_accuracy, 2), f"{reference_n:,}")
    tables = [
        TextTable(
            title="Accuracy",
            head=[
                "",
                "rows",
                "accuracy",
                "interval",
                "in the reference",
                "its rows",
                "rows beyond the reference",
            ],
            rows=[["new data", f"{n:,}", *accuracy, *reference, format_percent(data["outside"])]],
            note="Limits of the accuracy that labels would show.",
        )
    ]
    if data["coverage"] != 1:  # without a policy everything is accepted
        row = [format_percent(data["coverage"]), *format_share(data["risk"], 2)]
        head = ["accepted", "risk", "interval"]
        tables.append(TextTable(title="What the policy would do", head=head, rows=[row]))
    tables.append(_build_parts_table(data["classes"], "answer"))
    tables.append(_build_parts_table(data["groups"], "group"))
    sentence = (
        f"Accuracy {_write_share(data['accuracy'])}, estimated without labels; the reference has "
        f"{format_percent(reference_accuracy)}."
    )
    return Sheet(
        headline=f"{n:,} new rows beside {reference_n:,} labelled rows · {format_level(level)} limits",
        sentences=[sentence],
        tables=[table for table in tables if table.rows],
        remarks=[*data["notes"], *(f"Blind spot: {text}" for text in data["cannot_see"])],
    )


# Sentences


def write_monitor_verdict(data: MonitorData) -> list[str]:
    """What a reader should know first: stated limits, the last month beside the reference by its
    labels or else by the estimate, and drift.
    """
    sentences: list[str] = []
    failed = [limit for limit in data["limits"] if not limit["passed"]]
    if failed:
        names = ", ".join(limit["month"] for limit in failed)
        sentences.append(f"FAILED: {failed[0]['what']} ({names}).")
    elif data["limits"]:
        sentences.append("The stated limit is met.")
    last, past = data["months"][-1], data["reference"]["accuracy"]
    now, reference = last["estimate"]["accuracy"], f"the reference has {_write_share(past)}"
    # Labels that came say what is; an estimate stands behind them.
    labelled, beside = last["labelled"], f"; {reference}"
    if labelled is not None:
        count = "one label"
        if labelled["n"] > 1:
            count = f"{labelled['n']:,} labels"
        accuracy = _write_share(labelled["accuracy"])
        change = _compare_limits(labelled["accuracy"], past)
        came = f"accuracy {accuracy} by the {count} that came"
        sentences.append(f"In {last['name']}: {came}{beside}{change}.")
    if labelled is not None and now["value"] is not None:
        within = "agrees with them" if labelled["held"] else "does not agree with them"
        sentences.append(f"The estimate without labels, {_write_share(now)}, {within}.")
    elif now["value"] is not None:
        estimate = f"accuracy {_write_share(now)}, estimated without labels"
        change = _compare_limits(now, past)
        sentences.append(f"In {last['name']}: {estimate}{beside}{change}.")
    elif labelled is None:
        sentences.append(f"In {last['name']}: the accuracy cannot be estimated{beside}.")
    # Which columns look different, in which months, whatever their accuracy.
    drifted: dict[str, list[str]] = {}
    for month in data["months"]:
        for column in _get_drifted(month):
            drifted.setdefault(column["column"], []).append(month["name"])
    if not drifted:
        sentences.append("Nothing drifted beyond chance.")
        return sentences
    columns = ", ".join(drifted)
    if len(data["months"]) > 1:
        texts: list[str] = []
        for column, names in drifted.items():
            texts.append(
                f"{column} in {len(names)} of {len(data['months'])} periods, first in {names[0]}"
            )
        columns = "; ".join(texts)
    sentences.append(f"Drift beyond chance: {columns}.")
    return sentences


def _compare_limits(now: Number, past: Number) -> str:
    """Whether both lie apart beyond their limits; nothing where limits are missing."""
    low, high, then = now.get("low"), now.get("high"), past["value"]
    if low is None or high is None or then is None:
        return ""
    # A reference without limits is compared as a number.
    if high < (past.get("low") or then):
        return ": clearly less"
    if low > (past.get("high") or then):
        return ": clearly more"
    return ": no clear change"


def _get_drifted(month: MonthData) -> list[DriftData]:
    return [column for column in month["drift"] if column["drifted"]]


def _write_share(share: Number) -> str:
    """A share with its limits as they stand in a sentence: 91.2 % (89.9 to 92.4)."""
    value, limits = format_share(share, 1)
    if limits == NONE:
        return value
    return f"{value} ({limits.removesuffix(' %').replace(' … ', ' to ')})"


# Tables


def _build_timeline(data: MonitorData) -> TextTable:
    """The accuracy of each period; rows without an answer have a column where there are any."""
    past, months = data["reference"], data["months"]
    unanswered = any(side["unanswered"] for side in (past, *months))
    row = ["reference", f"{past['n']:,}", *format_share(past["accuracy"], 2)]
    head = ["", "rows", "accuracy", "interval"]
    if unanswered:
        row.append(format_percent(past["unanswered"]))
        head.append("no answer")
    rows = [[*row, NONE, NONE]]
    for month in months:
        row = [month["name"], f"{month['n']:,}", *format_share(month["estimate"]["accuracy"], 2)]
        if unanswered:
            row.append(format_percent(month["unanswered"]))
        drift = ", ".join(column["column"] for column in _get_drifted(month)) or NONE
        rows.append([*row, format_percent(month["estimate"]["outside"]), drift])
    note = "Estimated without labels; the limits are those of the accuracy that labels would show."
    return TextTable(title="Accuracy", head=[*head, "never seen", "drift"], rows=rows, note=note)


def _build_drift_table(data: MonitorData) -> TextTable:
    """All tests of one period; of several periods those that found something."""
    months, rows = data["months"], TableRows()
    level = format_level(data["drift_level"])
    title = f"Drift ({level} for all {data['tests']} tests together)"
    if len(months) == 1:
        for d in months[0]["drift"]:
            name, effect, p, moved = _format_drift(d)
            drifted = "yes" if d["drifted"] else "no"
            rows.append([name, effect, d["measure"], p, drifted, moved if d["drifted"] else ""])
        head = ["column", "effect", "which is", "p", "drifted", "moved most (reference to now)"]
        return TextTable(title=title, head=head, rows=rows)
    measures: dict[str, str] = {}
    for month in months:
        for d in _get_drifted(month):
            rows.append([month["name"], *_format_drift(d)])
            measures[d["column"]] = d["measure"]
    effects = "; ".join(f"of {column} the {measure}" for column, measure in measures.items())
    return TextTable(
        title=title,
        head=["", "column", "effect", "p", "moved most"],
        rows=rows,
        note=f"Those beyond chance; the JSON has all. Effect: {effects}.",
    )


def _format_drift(d: DriftData) -> list[str]:
    """Column, effect, p-value and the values whose shares moved most."""
    moved: list[str] = []
    for value in d["moved"][:3]:
        shares = f"{format_percent(value['reference'])} to {format_percent(value['new'])}"
        moved.append(f"{value['name']}: {shares}")
    return [
        d["column"],
        format_number(d["effect"], 3),
        format_evidence("p_value", d["p"]),
        ", ".join(moved),
    ]


def _build_parts_table(parts: Sequence[PartData], what: str, period: str = "") -> TextTable:
    """Accuracy by answer or by group, largest fall first."""
    rows = TableRows()
    for part in parts[:TABLE_PARTS]:
        rows.append(
            [
                part["name"],
                f"{part['n']:,}",
                *format_share(part["accuracy"], 2),
                format_percent(part["reference"], 2),
                f"{part['reference_n']:,}",
                "all of it" if part["borrowed"] else "the same",
            ]
        )
    order = "largest fall first"
    if len(parts) > TABLE_PARTS:
        order = f"the {TABLE_PARTS} that fell most of {len(parts)}"
    numbers = ["rows", "accuracy", "interval", "in the reference", "its rows", "estimated from"]
    return TextTable(title=f"By {what}{period}, {order}", head=[what, *numbers], rows=rows)


def _build_parts_timeline(
    what: str, names: Sequence[str], periods: Sequence[Sequence[PartData]]
) -> TextTable:
    """The same parts as in the table of the last period, beside the periods before it."""
    columns: list[dict[str, str]] = []
    for parts in periods[-TABLE_PERIODS:]:
        columns.append({p["name"]: format_percent(p["accuracy"]["value"], 2) for p in parts})
    rows = TableRows()
    for part in periods[-1][:TABLE_PARTS]:
        cells = [column.get(part["name"], NONE) for column in columns]
        rows.append([part["name"], format_percent(part["reference"], 2), *cells])
    some = " in each period"
    if len(periods) > TABLE_PERIODS:
        some = f", the last {TABLE_PERIODS} of {len(periods)} periods"
    head = [what, "in the reference", *names[-TABLE_PERIODS:]]
    return TextTable(title=f"Accuracy by {what}{some}", head=head, rows=rows)


# The page


def render_monitor_page(data: MonitorData) -> str:
    """The whole page; everything on it comes from the monitor."""
    pictures = draw_monitor_pictures(data)
    origin: dict[tuple[str, str], None] = {}  # sources share most lines: each once, in order
    for provenance in data["provenance"].values():
        origin |= dict.fromkeys(describe_origin(data["howsure"], provenance))
    return render_template(
        "monitor.html.j2",
        data=data,
        title="Is it still as good?",
        sheet=build_monitor_sheet(data),
        pictures=pictures,
        pictures_json=dump_pictures(pictures),
        origin=list(origin),
    )


def draw_monitor_pictures(data: MonitorData) -> list[Picture]:
    """Accuracy over time, and the scores."""
    return [_draw_accuracy(data), _draw_scores(data)]


def _draw_accuracy(data: MonitorData) -> Picture:
    """Accuracy over the months, the reference as a dashed line."""
    months, past = data["months"], data["reference"]["accuracy"]["value"]
    names = [month["name"] for month in months]
    x: Column = [float(i) for i in range(1, len(months) + 1)]
    estimates = [month["estimate"]["accuracy"] for month in months]
    value: Column = [estimate["value"] for estimate in estimates]
    low: Column = [estimate.get("low") for estimate in estimates]
    high: Column = [estimate.get("high") for estimate in estimates]
    labelled_x, labelled_y = list[float](), list[float]()
    for i, month in enumerate(months, start=1):
        labelled = month["labelled"]
        if labelled is not None and labelled["accuracy"]["value"] is not None:
            labelled_x.append(float(i))
            labelled_y.append(labelled["accuracy"]["value"])
    lowest = min(v for v in (*low, *labelled_y, past) if v is not None)
    floor = next((floor for floor in ACCURACY_FLOORS if floor < lowest), 0.0)
    ends = (0.5, len(months) + 0.5)
    label = "periods, numbered in order" if svg.needs_numbers(names) else ""
    f = make_frame(
        Axis(ends=ends, label=label, write=svg.format_plain_tick, names=names),
        Axis(ends=(floor, 1.0), label="accuracy"),
    )
    beside = [at + 0.16 for at in labelled_x]  # so that no dot lies on another
    marks = [
        f.draw_line(ends, (past, past), "ideal"),
        f.draw_whiskers(x, low, high),
        f.draw_line(x, value, "thin"),
        f.draw_dots(x, value, "main"),
        f.draw_dots(beside, labelled_y, "worse"),
    ]
    series: dict[str, dict[str, Column]] = {
        "estimated": {"x": x, "y": value, "low": low, "high": high}
    }
    legend = [("estimated, with limits", "main")]
    if labelled_x:
        series["by labels"] = {"x": [*labelled_x], "y": [*labelled_y]}
        legend.append(("by labels", "wrong"))
    caption = Caption(
        name="accuracy",
        title="Accuracy",
        read="Bars: limits of the accuracy that labels would show.",
        alt=f"Accuracy: {', '.join(names)}",
        legend=(*legend, ("reference", "ideal")),
    )
    return build_picture(caption, f, marks, series)


def _draw_scores(data: MonitorData) -> Picture:
    """Scores of the reference as bars, of the last period as a line, of those before it as thin
    ones; the threshold.
    """
    bars, (*before, last) = data["reference"]["bars"], data["months"]
    shares = [*bars]
    for month in data["months"]:
        shares += month["bars"]
    f = make_frame(
        Axis(ends=(data["low"], data["high"]), label=data["score"], write=svg.format_plain_tick),
        Axis(ends=(0, add_headroom(shares)), label="share of rows"),
    )
    edges = find_edges(data["low"], data["high"], len(bars))
    middles: Column = [*find_middles(edges)]
    marks = [f.draw_bars(edges, base=[0.0] * len(bars), top=bars, kind="right")]
    series: dict[str, dict[str, Column]] = {"reference": {"x": middles, "y": [*bars]}}
    for month in data["months"]:
        kind = "main" if month is last else "thin"
        marks.append(f.draw_steps(edges, month["bars"], kind))
        series[month["name"]] = {"x": middles, "y": [*month["bars"]]}
    legend, earlier = [("reference", "right")], ""
    if before:
        legend.append(("earlier periods", "thin"))
        earlier = " and the periods before it"
    legend.append((last["name"], "main"))
    if data["threshold"] is not None:
        at = data["threshold"]
        marks.append(f.draw_line((at, at), (f.y.low, f.y.high), "ideal"))
        legend.append(("threshold", "ideal"))
    caption = Caption(
        name="scores",
        title="Scores",
        read="Where a line leaves the bars, scores have moved.",
        alt=f"Scores of {last['name']}{earlier} beside the reference",
        legend=tuple(legend),
    )
    return build_picture(caption, f, marks, series)
