"""What to do next with a report, as commands with the user's own files."""

from __future__ import annotations

from typing import NamedTuple

from howsure.render.model import ImagesData, ReportData

OFF = (
    "over_confident_above_0.9",
    "over_confident",
    "under_confident",
    "hidden_error",
    "internal_compensation",
)


class Step(NamedTuple):
    """A line to copy, and what it is good for."""

    run: str
    why: str


def steps(report: ReportData, *, page: bool = False, full: bool = False) -> list[Step]:
    """What helps most first; `page` and `full`: the page and all numbers are there already.

    >>> from howsure import Predictions, evaluate
    >>> found = steps(evaluate(Predictions.from_confidence([0.9, 0.8], [1, 0])).data)
    >>> found[-1]
    Step(run="report.to_html('report.html')", why='the page: drag the threshold, price errors, download the policy')
    """
    reading = report["provenance"].get("reading")
    return (
        _in_python(page=page, full=full)
        if reading is None
        else _commands(report, reading, page=page, full=full)
    )


def _commands(report: ReportData, reading: str, *, page: bool, full: bool) -> list[Step]:
    names = {f["name"] for f in report["findings"]}
    corrected = "" if report["calibration"] is None else " --calibrator calibrator.json"
    found: list[Step] = []
    unit = " --loss dice" if "images" in report else ""
    if "does_not_rank" in names and report["scores"]:
        others = " ".join(f"--score {name}" for name in (report["score"], *report["scores"]))
        found.append(
            Step(f"howsure compare {reading} {others}", "whether another score ranks better")
        )
    if names & set(OFF) and report["calibration"] is None:
        found.append(
            Step(
                f"howsure calibrate --fit VAL --on {reading} -o calibrator.json",
                "make the confidence honest; VAL: labelled data that trained nothing",
            )
        )
    if "images" in report:
        promise = f"--loss dice --risk {_image_risk(report['images'])} --bound betting"
        found.append(
            Step(
                f"howsure threshold {reading} {promise} -o policy.json",
                "which images need no reader",
            )
        )
    elif "does_not_rank" not in names:
        found.append(
            Step(
                f"howsure threshold {reading} --risk {_risk(report)}{corrected} -o policy.json",
                "when it may decide alone, with a promise",
            )
        )
    if not full:
        found.append(
            Step(
                f"howsure evaluate {reading}{unit}{corrected} --full",
                f"all {len(report['metrics'])} numbers",
            )
        )
    if not page:
        found.append(
            Step(
                f"howsure evaluate {reading}{unit}{corrected} --html report.html",
                "the page: drag the threshold, price errors, download the policy",
            )
        )
    return found


def _risk(report: ReportData) -> str:
    """A risk that the data allow for a good share of answers."""
    for risk in ("0.01", "0.05"):
        kept = report["metrics"].get(f"coverage_at_risk_{risk}")
        if kept is not None and kept["value"] is not None and kept["value"] > 0.3:
            return "0.02" if risk == "0.01" else risk
    return "0.1"


def _image_risk(images: ImagesData) -> str:
    """The strictest mean 1 − Dice that can be promised, else the widest that was tried."""
    known = [p["risk"] for p in images["promises"] if p["threshold"] is not None]
    return f"{(known or [p['risk'] for p in images['promises'][-1:]])[0]:g}"


def _in_python(*, page: bool, full: bool) -> list[Step]:
    found = [] if full else [Step("print(report.to_text(full=True))", "all numbers")]
    if not page:
        found.append(
            Step(
                "report.to_html('report.html')",
                "the page: drag the threshold, price errors, download the policy",
            )
        )
    return found
