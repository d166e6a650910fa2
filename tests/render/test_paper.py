"""What a researcher pastes into a paper: tables as LaTeX and CSV, every picture as a file."""

import csv
import shutil
import subprocess
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import howsure as hs
from howsure.report.render.paper_figure import choose_pictures, draw_svg, find_style, save_figure
from howsure.report.result_table import escape_latex

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture(scope="module")
def preds() -> hs.Predictions:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 7, 400)
    return hs.Predictions.from_logits(
        3 * np.eye(7)[labels] + 2 * rng.standard_normal((400, 7)), labels
    )


@pytest.fixture(scope="module")
def report(preds: hs.Predictions) -> hs.Report:
    return hs.evaluate(preds)


@pytest.fixture(scope="module")
def comparison(preds: hs.Predictions) -> hs.Comparison:
    names = ("max_prob", "entropy", "energy")
    return hs.compare({f"net_{i} & 50 %": (preds, name) for i, name in enumerate(names)})


def test_every_picture_is_an_svg_of_its_own(report: hs.Report) -> None:
    for picture in report.pictures():
        root = ElementTree.fromstring(draw_svg([picture]))
        texts = [e.text for e in root.iter() if e.tag.endswith("text")]
        assert texts[0] == picture.title
        assert {name for name, _ in picture.legend} <= set(texts)
        assert "class=" not in draw_svg([picture])  # no style sheet is needed


def test_colours_are_those_of_the_page() -> None:
    assert find_style("line main")["stroke"] == "#0f5f8c"
    assert find_style("dots right")["fill"] == "none"  # not the filling of bars


def test_an_unknown_picture_is_refused_by_name(report: hs.Report) -> None:
    with pytest.raises(hs.InputError, match="no picture 'reliabilty' here; there are risk, thres"):
        choose_pictures(report.pictures(), ["reliabilty"])


@pytest.mark.parametrize("suffix", ["pdf", "png"])
def test_the_same_numbers_give_the_same_file(
    report: hs.Report, tmp_path: Path, suffix: str
) -> None:
    pytest.importorskip("matplotlib", reason="left out: matplotlib is not installed")
    pictures = choose_pictures(report.pictures(), [])
    for name in ("a", "b"):
        save_figure(pictures, tmp_path / f"{name}.{suffix}")
    assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_axes_hold_the_values_of_the_curve(report: hs.Report) -> None:
    plt = pytest.importorskip("matplotlib.pyplot", reason="left out: matplotlib is not installed")
    ax = hs.figures.risk_coverage(report).axes[0]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("share accepted", "wrong among the accepted")
    line = max(ax.patches, key=lambda patch: len(patch.get_path().vertices)).get_path().vertices
    curve = report.data["curves"]["risk_coverage"]
    np.testing.assert_allclose(line[-1], (curve["x"][-1], curve["y"][-1]), atol=2e-3)
    plt.close("all")


def test_figures_take_what_evaluate_and_compare_take(preds: hs.Predictions) -> None:
    plt = pytest.importorskip("matplotlib.pyplot", reason="left out: matplotlib is not installed")
    for draw in (hs.figures.reliability, hs.figures.odds_by_quantile, hs.figures.rejection):
        assert draw(preds).axes
    assert hs.figures.reliability(preds, bins="adaptive").axes
    assert hs.figures.reliability({"a": preds, "b": preds}).axes
    with pytest.raises(hs.InputError, match="no picture 'decision'"):
        hs.figures.decision_curve(preds)
    plt.close("all")


def test_the_csv_has_every_number_in_full(report: hs.Report) -> None:
    rows = list(csv.DictReader(StringIO(report.to_csv())))
    assert [row["score"] for row in rows] == [report.data["score"], *report.data["scores"]]
    assert float(rows[0]["aurc"]) == report["aurc"]
    assert float(rows[0]["ece_low"]) == report.data["metrics"]["ece"]["low"]


def test_a_name_is_no_formula_of_a_spreadsheet(preds: hs.Predictions) -> None:
    text = hs.compare({"=1+1": preds, "b": (preds, "entropy")}).to_csv()
    assert "'=1+1," in text
    assert "\n=1+1" not in text


def test_bold_is_the_best_and_what_is_not_told_from_it(comparison: hs.Comparison) -> None:
    table = comparison.table(["accuracy", "aurc"])
    best = comparison.data["models"][0]["name"]
    for model in comparison.data["models"]:
        # All give the same answers; AURC is told apart only where the difference is clear.
        assert "accuracy" in table.best[model["name"]]
        tied = model["name"] == best or not model["behind"]["clear"]
        assert ("aurc" in table.best[model["name"]]) == tied


def test_a_number_that_is_not_there_is_refused(report: hs.Report) -> None:
    with pytest.raises(hs.InputError, match="there is no number 'aucr' here; there are accuracy"):
        report.table(["aucr"])


def test_decimals_are_those_of_the_narrowest_limits(report: hs.Report) -> None:
    rows = [
        line
        for line in report.table(["aurc"]).to_latex().splitlines()
        if "&" in line and "pm" in line
    ]
    cells = [line.split("$")[1] for line in rows]
    assert len({len(part.split(".")[1]) for cell in cells for part in cell.split(" \\pm ")}) == 1


def test_latex_compiles(comparison: hs.Comparison, report: hs.Report, tmp_path: Path) -> None:
    if shutil.which("pdflatex") is None:
        pytest.skip("left out: pdflatex is not installed")
    document = (
        r"\documentclass{article}\usepackage{booktabs}\begin{document}"
        + comparison.to_latex()
        + report.to_latex()
        + r"\end{document}"
    )
    (tmp_path / "paper.tex").write_text(document, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout[-2000:]


def test_no_name_is_a_command_of_latex() -> None:
    assert escape_latex(r"\input{/etc/passwd} $x$ a_b") == (
        r"\textbackslash{}input\{/etc/passwd\} \$x\$ a\_b"
    )


def test_top_5_counts_labels_among_five(preds: hs.Predictions) -> None:
    found = hs.evaluate(preds, loss="top-5")
    probs = preds.probs
    rank = (probs > probs[np.arange(400), preds.labels][:, None]).sum(axis=1)
    assert found["accuracy"] == pytest.approx((rank < 5).mean())
    mass = np.sort(probs, axis=1)[:, -5:].sum(axis=1)
    assert found["ece"] == pytest.approx(hs.ece(np.minimum(mass, 1), rank < 5))
    assert "five most probable" in found.data["verdict"][0]
    assert found.data["score"] == "top_k_mass"
    assert "entropy" in found.data["scores"]


def test_the_loss_is_the_best_score(preds: hs.Predictions) -> None:
    found = hs.evaluate(preds, ["max_prob", "loss"])
    entry: Any = found.data["scores"]["loss"]["metrics"]["aurc"]
    assert entry["value"] < found.data["metrics"]["aurc"]["value"]


def test_dice_of_pixels_is_that_of_the_paper() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 500)
    preds = hs.Predictions.from_logits(
        np.eye(2)[truth] + rng.standard_normal((500, 2)), truth, group=np.arange(500) // 50
    )
    found = hs.evaluate(preds, loss="dice-pixels").data["metrics"]["dice_pixels_aurc"]
    order = np.argsort(-preds.confidence, kind="stable")
    p, t = preds.prediction[order], truth[order]
    dice = 2 * np.cumsum(p & t) / np.maximum(np.cumsum(p + t), 1)
    dice[np.cumsum(p + t) == 0] = 1
    assert found["value"] == pytest.approx((1 - dice).mean())
    assert found["why"] == "no interval is known for this number"
