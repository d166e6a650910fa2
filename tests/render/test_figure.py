"""Figures: each curve on the caller's Axes, in the caller's style, with the numbers of the JSON."""

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="left out: matplotlib is not installed")
import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from howsure import InputError
from howsure.report.render import figure
from howsure.report.render.figure import (
    ReliabilityDisplay,
    RiskCoverageDisplay,
    RocDisplay,
    ThresholdDisplay,
)
from howsure.report.report import Report

ROOT = Path(__file__).parents[2]


@pytest.fixture
def report() -> dict[str, Any]:
    return json.loads((ROOT / "tests/golden/report.json").read_text(encoding="utf-8"))


@pytest.fixture
def ax() -> Any:
    _, axes = plt.subplots()
    yield axes
    plt.close("all")


@pytest.mark.parametrize("name", ["risk_coverage", "threshold_diagram", "roc"])
def test_a_curve_is_drawn_on_the_given_axes_with_its_own_numbers(
    report: dict[str, Any], ax: Any, name: str
) -> None:
    curve = report["curves"][name]
    assert getattr(figure, name)(curve, ax) is ax
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), curve["x"])
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), curve["y"])
    assert (ax.get_xlabel(), ax.get_ylabel()) == tuple(curve["labels"])


def test_the_style_is_the_callers(report: dict[str, Any], ax: Any) -> None:
    with mpl.rc_context({"lines.linewidth": 7}):
        figure.risk_coverage(report["curves"]["risk_coverage"], ax, color="red")
    assert ax.lines[0].get_linewidth() == 7
    assert ax.lines[0].get_color() == "red"


def test_without_axes_the_current_ones_are_used(report: dict[str, Any], ax: Any) -> None:
    assert figure.line(report["curves"]["rejection"]) is ax


def test_reliability_shows_its_consistency_bars(report: dict[str, Any], ax: Any) -> None:
    curve = report["curves"]["reliability_adaptive"]
    figure.reliability(curve, ax)
    assert len(ax.collections[0].get_segments()) == len(curve["x"])


def test_the_histogram_is_stacked(report: dict[str, Any], ax: Any) -> None:
    figure.confidence_histogram(report["views"]["histogram"], ax)
    assert sum(bar.get_height() for bar in ax.patches) == report["n"]


def test_curves_are_overlaid_with_a_legend(report: dict[str, Any], ax: Any) -> None:
    curve = report["curves"]["risk_coverage"]
    figure.overlaid({"a": curve, "b": curve}, ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]


def test_a_report_has_a_figure(report: dict[str, Any]) -> None:
    assert len(Report(report).figure().axes) == 5  # the histogram has two panels
    plt.close("all")


@pytest.mark.parametrize(
    "display", [ReliabilityDisplay, RiskCoverageDisplay, RocDisplay, ThresholdDisplay]
)
def test_displays_are_made_and_drawn_as_in_scikit_learn(display: Any, ax: Any) -> None:
    rng = np.random.default_rng(0)
    p = rng.random(50)
    found = display.from_predictions((rng.random(50) < p).astype(int), p, name="model")
    assert found.plot(ax=ax).ax_ is ax
    assert found.figure_ is ax.figure
    assert "model" in [line.get_label() for line in ax.lines]


def test_a_display_of_an_estimator_takes_any_labels(ax: Any) -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2))
    y = np.where(x[:, 0] + 0.3 * rng.normal(size=80) > 0, "yes", "no")
    model = linear.LogisticRegression().fit(x, y)
    found = RiskCoverageDisplay.from_estimator(model, x, y).plot(ax)
    assert found.name == "LogisticRegression"
    assert found.curve["y"][-1] == pytest.approx(1 - model.score(x, y))
    with pytest.raises(InputError, match="never seen"):
        RiskCoverageDisplay.from_estimator(model, x, np.where(y == "yes", "maybe", y))
    with pytest.raises(InputError, match="object has no predict_proba"):
        RiskCoverageDisplay.from_estimator(object(), x, y)


@pytest.mark.parametrize(
    "script", sorted((ROOT / "docs/gallery").glob("*.py")), ids=lambda p: p.stem
)
def test_the_gallery_runs(
    script: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An example prints what it shows, or draws it into the file that it is given."""
    drawn = tmp_path / "figure.png"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [script.name, str(drawn)])
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.strip() or drawn.read_bytes().startswith(b"\x89PNG")
    plt.close("all")
