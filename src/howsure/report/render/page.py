"""A report → one offline HTML file: inline SVG, a little script, and a policy that lets nothing
else run.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, metadata
from importlib.resources import files
from shlex import quote
from typing import NamedTuple, TypeVar

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from howsure._core import strict_json
from howsure._core.checks import InputError
from howsure._core.text import escape_page, make_printable, name_class
from howsure._core.version import __version__
from howsure.report.render import curve_pictures, pictures, sections
from howsure.report.render.pictures import Picture, find_opening, keep_fitting_images, thin_curve
from howsure.report.render.report_sheet import suggest_steps
from howsure.report.render.sentences import (
    build_headline,
    describe_origin,
    describe_streaming,
    explain_limits,
    find_shared_notes,
    format_evidence,
    format_level,
    format_number,
    format_percent,
    group_by_question,
)
from howsure.report.render.text_tables import (
    Sheet,
    TextTable,
    build_image_tables,
    build_label_tables,
)
from howsure.report.report_types import THRESHOLDS, Binary, ReportData, Scatter, Views

TILES = ("accuracy", "aurc", "coverage_at_risk_0.01", "ece")
IMAGE_TILES = ("dice_loss", "image_aurc", "accuracy", "ece")
LABEL_TILES = ("macro_auroc", "hamming_loss", "exact_match", "ece")
COSTS = (
    ("error", "Cost of a wrong answer", 10),
    ("deferral", "Cost of a deferral", 1),
    ("expert", "Error rate of the expert", 0),
)
CALL_NUMBERS = (
    ("missed", "missed"),
    ("sensitivity", "sensitivity"),
    ("specificity", "specificity"),
    ("ppv", "right among the called (PPV)"),
    ("npv", "right among the others (NPV)"),
    ("counts", "called"),
)
BINNINGS = {"equal_range": "equal range", "equal_size": "equal size", "adaptive": "adaptive"}
PAGE_BYTES = 290_000  # above, a page is drawn more coarsely
PAGE_CLASSES, PAGE_BINS = 100, 30  # rows of the tables of classes, and of bins
COARSE_POINTS, COARSE_DOTS = 90, 250  # of a page that would grow too large
COARSE_LETTERS, COARSE_CLASSES = 15_000, 8
OPERATING_COLUMNS = (
    "coverage",
    "threshold",
    "accuracy",
    "low",
    "high",
    "asked",
    "kept",
    "wrong",
)  # what the script reads


Part = TypeVar("Part", TextTable, Picture)


def render_page(report: ReportData) -> str:
    """The whole page; everything on it comes from the report. One that grows too large is drawn
    more coarsely.
    """
    html = render_template("report.html.j2", report=report, **_build_parts(report))
    if len(html.encode()) <= PAGE_BYTES:
        return html
    report = draw_coarsely(report)
    return render_template("report.html.j2", report=report, **_build_parts(report))


def wrap_in_iframe(html: str) -> str:
    """A page in a frame for notebooks; sandboxed, so it can reach nothing of the notebook."""
    rights = "allow-scripts allow-downloads"
    frame = Markup('<iframe srcdoc="{}" sandbox="{}" width="100%" height="900"></iframe>')
    return str(frame.format(html, rights))


def render_fragment(sheet: Sheet) -> str:
    """A sheet as a piece of a notebook's page, in the notebook's own style."""
    return escape_page(_load_templates().get_template("fragment.html.j2").render(sheet=sheet))


# Templates, and what a page may do


def render_template(template: str, **parts: object) -> str:
    """A template with the shared style, script and policy."""
    css, js = map(Markup, read_assets())
    found = _load_templates().get_template(template)
    made = f"{find_date()} · howsure {__version__}"
    page = found.render(
        css=css, js=js, policy=build_policy(css, js), made=made, docs=find_docs_address(), **parts
    )
    return f"{escape_page(page)}\n"


def find_date() -> str:
    """The day on which a page is written; SOURCE_DATE_EPOCH sets it, so that pages can be
    reproduced.
    """
    seconds = os.environ.get("SOURCE_DATE_EPOCH", "")
    day = datetime.now().astimezone()
    if seconds.isdigit():
        day = datetime.fromtimestamp(int(seconds), UTC)
    return f"{day.day} {day:%B %Y}"


def find_docs_address() -> str:
    """Where the documentation of this package is, by its metadata; empty where they do not say."""
    with suppress(PackageNotFoundError):
        for line in metadata("howsure").get_all("Project-URL") or []:
            name, _, address = line.partition(", ")
            if name == "Documentation":
                return address
    return ""


def read_assets() -> tuple[str, str]:
    """The style and the script that every page has."""
    return _read_source("report.css"), _read_source("page.js") + "\n" + _read_source("decide.js")


@cache
def _read_source(name: str) -> str:
    """A style or a script without indentation and empty lines."""
    folder = files("howsure.report.render").joinpath("templates")
    lines = folder.joinpath(name).read_text(encoding="utf-8").splitlines()
    return "\n".join(line.strip() for line in lines if line.strip())


@cache
def _load_templates() -> Environment:
    folder = files("howsure.report.render").joinpath("templates")
    templates = [file for file in folder.iterdir() if file.name.endswith(".j2")]
    sources = {file.name: file.read_text(encoding="utf-8") for file in templates}
    # A name that a template misspells is an error, not an empty text.
    return Environment(autoescape=True, loader=DictLoader(sources), undefined=StrictUndefined)


def build_policy(css: str, js: str) -> str:
    """A policy by which nothing loads from anywhere, and only this very style and script act."""
    style, script = hash_for_policy(css), hash_for_policy(js)
    allowed = f"script-src {script}; style-src {style}; img-src data:"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def hash_for_policy(text: str) -> str:
    """How a policy names a text that may act."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def escape_json(data: object) -> Markup:
    """JSON that cannot end the script element it stands in."""
    text = strict_json.dump_canonical(data)
    for mark in "<>&'\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return Markup(text)


def dump_pictures(pictures: Iterable[Picture]) -> Markup:
    """What is drawn, for the pointer and for files, by the names that the page shows."""
    return escape_json({p.name: _make_page_safe(strict_json.to_plain(p.data)) for p in pictures})


def _make_page_safe(data: strict_json.Plain) -> strict_json.Plain:
    if isinstance(data, str):
        return escape_page(data)
    if isinstance(data, dict):
        return {escape_page(key): _make_page_safe(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_make_page_safe(value) for value in data]
    return data


# What the template of a report shows


class BinsOption(NamedTuple):
    """One way to bin: its reliability diagram and its table."""

    name: str
    title: str
    bins: int
    picture: Picture
    rows: list[list[str]]


def _build_parts(report: ReportData) -> dict[str, object]:
    """Everything that the template of a report names."""
    views, calibration = report["views"], report["calibration"]
    shared = find_shared_notes(report["metrics"])
    sources = [source["file"] for source in report["provenance"]["inputs"] if "file" in source]
    title = "How sure is it?"
    if sources:
        title += f" {', '.join(sources)}"
    images = keep_fitting_images(s.get("image", "") for s in views["label_errors"])
    # The numbers at the top: of images or of whole cases where these are the units.
    tile_names, metrics = TILES, report["metrics"]
    overlays: list[tuple[str, str, str]] = []  # name, Dice and picture of the worst images
    if "images" in report:
        tile_names = IMAGE_TILES
        rows = report["images"]["rows"]
        kept = keep_fitting_images(row.get("overlay", "") for row in rows)
        for row, image in zip(rows, kept, strict=True):
            if image:
                overlays.append((row["name"], format_number(row["dice"]), image))
    elif "labels" in report:
        tile_names = LABEL_TILES
    tiles = [sections.describe_metric(m, metrics[m]) for m in tile_names if m in metrics]
    if report["binary"] is not None and is_about_one_class(report):
        tiles = sections.describe_positive_class(report["binary"])
    origin = describe_origin(report["howsure"], report["provenance"])
    confusion, binary = views.get("confusion"), report["binary"]
    questions: list[tuple[str, list[sections.MetricRow]]] = []
    for question, entries in group_by_question(metrics):
        described = [sections.describe_metric(name, e, shared) for name, e in entries.items()]
        questions.append((question, described))
    return {
        "title": title,
        "headline": " · ".join([build_headline(report), *shared]),
        "level": format_level(report["provenance"]["level"]),
        "tiles": tiles,
        **_build_operating_parts(report),
        **_build_picture_parts(report),
        "evidence": format_evidence,
        "metric_groups": questions,
        "limits_note": explain_limits(report["metrics"]),
        "heat_table": pictures.build_heat_table(confusion),
        "confusion_tables": _drop_none([sections.build_confusions_table(confusion)]),
        "slice_tables": _drop_none(
            [
                sections.build_slices_table(report.get("slices")),
                sections.build_positive_slices_table(report.get("slices"), report["binary"]),
            ]
        ),
        "label_tables": build_label_tables(report),
        "image_tables": build_image_tables(report),
        "overlays": overlays,
        "further_tables": _drop_none(
            [
                sections.build_scores_table(report),
                sections.build_positive_class_table(binary),
                sections.build_calls_table(binary),
                sections.build_bands_table(report),
            ]
        ),
        "calibration_tables": _drop_none(
            [
                sections.build_changes_table(calibration),
                sections.build_candidates_table(calibration),
                sections.build_calibrators_table(calibration),
            ]
        ),
        "lead": [] if calibration is None or "lead" not in calibration else calibration["lead"],
        "notes": [] if calibration is None or "notes" not in calibration else calibration["notes"],
        "steps": suggest_steps(report, page=True, full=True),
        "doubts": sections.list_doubts(views["label_errors"], images),
        "classes": sections.build_classes_table(views["classes"][:PAGE_CLASSES]),
        "unlisted": len(views["classes"]) > PAGE_CLASSES,
        "origin": [*origin, *describe_streaming(report.get("streamed"))],
    }


def _drop_none(items: Iterable[Part | None]) -> list[Part]:
    """The tables or pictures that the data allow."""
    return [item for item in items if item is not None]


def _build_operating_parts(report: ReportData) -> dict[str, object]:
    """The operating points in words, and what the script needs to move between them."""
    points, start = report["views"]["operating"], find_opening(report).row
    columns = sections.format_operating_points(points, report["n"])
    deferred: list[tuple[str, float, str]] = []
    for c in points["classes"]:
        share = c["deferred"][start]
        deferred.append((c["name"], share, format_percent(share)))
    note = "Share of each true class that is deferred at this threshold."
    if len(deferred) < (report["k"] or len(report["views"]["classes"])):
        note = f"The {len(deferred)} classes that are deferred most."
    # What the script needs to price, and to write the command and the policy of it. A policy names
    # the files that it rests on; arrays have no name to be found by.
    provenance = report["provenance"]
    sources = [source["file"] for source in provenance["inputs"] if "file" in source]
    hashes = [source.get("sha256", "") for source in provenance["inputs"]]
    calibrator = None
    if report["calibration"] is not None:
        calibrator = make_printable(quote(provenance.get("calibrator", "calibrator.json")))
    decide = {
        "deciding": report["views"].get("deciding"),
        "reading": None if "reading" not in provenance else make_printable(provenance["reading"]),
        "score": report["score"],
        "calibrator": calibrator,
        "policy": {
            "howsure": report["howsure"],
            "score": report["score"],
            "k": report["k"],
            "class_names": report["class_names"],
            "n": report["n"],
            "source": ", ".join(sources),
            "sha256": hashes if sources else [],
        },
    }
    script_rows = {
        **{name: points.get(name) for name in OPERATING_COLUMNS},
        "n": report["n"],
        "classes": [c["deferred"] for c in points["classes"]],
        "decide": decide,
    }
    headings = sections.OPERATING_HEADINGS.items()
    suggested = report.get("suggestions")
    suggesting = ""
    if suggested is not None:
        suggesting = f"howsure threshold {decide['reading'] or 'FILE'}"
        suggesting += f" --risk {suggested['risk']:g} --suggest {suggested['level']:g}"
        if report["score"] != "max_prob":
            suggesting += f" --score {report['score']}"
        if calibrator is not None:
            suggesting += f" --calibrator {calibrator}"
        suggesting += " -o policy.json"
    return {
        "operating_columns": columns,
        "suggested": suggested,
        "suggesting": suggesting,
        "costs": COSTS,
        "start": start,
        "operating_rows": sections.choose_operating_rows(len(points["coverage"])),
        "operating_headings": [(name, heading) for name, heading in headings if name in columns],
        "deferred": deferred,
        "deferred_note": note,
        "operating_json": escape_json(script_rows),
    }


class ReportPictures(NamedTuple):
    """All pictures of a report, by the section that they stand in."""

    linked: list[Picture]
    binnings: list[BinsOption]
    more: list[Picture]
    corp: list[Picture]
    positive: list[Picture]
    slices: list[Picture]
    confusions: list[Picture]
    methods: list[Picture]

    @property
    def every(self) -> list[Picture]:
        """All of them."""
        reliability = [option.picture for option in self.binnings]
        first, last = [*self.linked, *reliability, *self.more], [*self.slices, *self.confusions]
        return [*first, *self.corp, *self.methods, *self.positive, *last]


def draw_pictures(report: ReportData) -> ReportPictures:
    """Every picture that the report's data allow."""
    if "risk_coverage" not in report["curves"]:
        raise InputError(
            "this report was made for text (page=False) and has no pictures; evaluate with page=True."
        )
    corp, confusion = report["views"].get("corp"), report["views"].get("confusion")
    linked = [
        curve_pictures.draw_risk_coverage(report),
        curve_pictures.draw_threshold_diagram(report),
        pictures.draw_histogram(report),
    ]
    binnings: list[BinsOption] = []
    for name, title in BINNINGS.items():
        curve = report["curves"].get(f"reliability_{name}")
        if curve is None:
            continue
        binnings.append(
            BinsOption(
                name=name,
                title=title,
                bins=len(curve["x"]),
                picture=curve_pictures.draw_reliability(report, curve, name),
                rows=sections.list_bins(thin_curve(curve, PAGE_BINS)),
            )
        )
    more = _drop_none(
        [
            pictures.draw_scatter(report),
            curve_pictures.draw_uncertainty_reliability(report),
            curve_pictures.draw_rejection(report),
            curve_pictures.draw_odds(report),
            curve_pictures.draw_rate(report, "roc", "ROC of finding errors"),
            curve_pictures.draw_rate(
                report, "precision_recall", "Precision and recall of finding errors"
            ),
        ]
    )
    positive = _drop_none(
        [
            curve_pictures.draw_decision_curve(report),
            curve_pictures.draw_positive_reliability(report),
        ]
    )
    confusions: list[Picture] = []
    # Few classes have a table of all labels and answers instead.
    if confusion is not None and not pictures.has_heat_table(confusion):
        confusions = _drop_none([pictures.draw_confusions(confusion)])
    return ReportPictures(
        linked=linked,
        binnings=binnings,
        more=more,
        corp=[] if corp is None else [curve_pictures.draw_corp(report, corp)],
        positive=positive,
        slices=pictures.draw_slices(report.get("slices")),
        confusions=confusions,
        methods=_drop_none([curve_pictures.draw_method_diagrams(report)]),
    )


def _build_picture_parts(report: ReportData) -> dict[str, object]:
    """All pictures, and what is drawn in them for the pointer and for files."""
    binary, corp, drawn = report["binary"], report["views"].get("corp"), draw_pictures(report)
    parts: dict[str, object] = {
        "positive_pictures": drawn.positive,
        "positive_class": None,
        "calls_json": None,
        "call_start": 50,
        "positive_first": is_about_one_class(report),
        "call_numbers": CALL_NUMBERS,
        "linked_pictures": drawn.linked,
        "binnings": drawn.binnings,
        "more_pictures": drawn.more,
        "slice_pictures": drawn.slices,
        "confusion_pictures": drawn.confusions,
        "corp_picture": next(iter(drawn.corp), None),
        "method_pictures": drawn.methods,
        "corp_parts": [] if corp is None else sections.list_corp_parts(corp),
        "pictures_json": dump_pictures(drawn.every),
    }
    if binary is not None:
        parts["positive_class"] = name_class(binary["positive_class"])
        parts["call_start"] = find_call_start(binary)
        if "calling" in binary:
            parts["calls_json"] = escape_json(binary["calling"])
    return parts


def is_about_one_class(report: ReportData) -> bool:
    """Whether cases are of two classes: not the pixels of images, nor single labels of many."""
    return report["k"] == 2 and "images" not in report and "labels" not in report


def find_call_start(binary: Binary) -> int:
    """The percent at which the slider of the positive class starts: the first threshold that was
    asked for.
    """
    asked = [call["threshold"] for call in binary.get("thresholds", [])]
    if not asked or asked == list(THRESHOLDS):
        return 50
    return int(format_percent(asked[0], 0).split(" ")[0]) or 1


# Pages that would grow too large


def draw_coarsely(report: ReportData) -> ReportData:
    """The same report with fewer points, dots, small pictures and classes; no number changes."""
    views = report["views"]
    suspects, operating = views["label_errors"], views["operating"]
    # The classes that are deferred most, in their order.
    classes = operating["classes"]
    ranks = sorted(range(len(classes)), key=lambda i: sum(classes[i]["deferred"]), reverse=True)
    most_deferred = [classes[i] for i in sorted(ranks[:COARSE_CLASSES])]
    kept = keep_fitting_images((s.get("image", "") for s in suspects), COARSE_LETTERS)
    coarse_views: Views = {
        **views,
        "scatter": _cut_scatter(views["scatter"]),
        "label_errors": [{**s, "image": i} for s, i in zip(suspects, kept, strict=True)],
        "operating": {**operating, "classes": most_deferred},
    }
    if "before" in views:
        before = views["before"]
        coarse_views["before"] = {**before, "scatter": _cut_scatter(before["scatter"])}
    curves = {name: thin_curve(c, COARSE_POINTS) for name, c in report["curves"].items()}
    coarse: ReportData = {**report, "views": coarse_views, "curves": curves}
    if "images" in report:
        images = report["images"]
        overlays = (row.get("overlay", "") for row in images["rows"])
        pairs = zip(images["rows"], keep_fitting_images(overlays, COARSE_LETTERS), strict=True)
        coarse["images"] = {**images, "rows": [{**row, "overlay": o} for row, o in pairs]}
    return coarse


def _cut_scatter(scatter: Scatter | None) -> Scatter | None:
    if scatter is None:
        return None
    return {
        "score": scatter["score"][:COARSE_DOTS],
        "loss": scatter["loss"][:COARSE_DOTS],
        "fate": scatter["fate"][:COARSE_DOTS],
        "of": scatter["of"],
    }
