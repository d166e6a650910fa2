"""The positive class and slices, from a file or from objects to the report."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize

import howsure as hs
from conftest import shared_or_skip
from howsure import InputError, Predictions
from howsure.metrics.class_calibration import fit_flexible
from howsure.uncertainty.class_limits import compute_line_limits, compute_observed_limits

NAMES = ("--name", "probs=cancerpredmarker", "--name", "labels=cancer")


def evaluate(*options: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "howsure", "evaluate", *options]
    return subprocess.run(call, capture_output=True, text=True, check=False)


def logistic(
    n: int, seed: int, slope: float = 1.0, intercept: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Claims, and outcomes whose log odds are a line of the claims' log odds."""
    rng = np.random.default_rng(seed)
    z = rng.normal(-0.5, 1.2, n)
    return 1 / (1 + np.exp(-z)), (
        rng.random(n) < 1 / (1 + np.exp(-(intercept + slope * z)))
    ).astype(int)


@pytest.mark.parametrize("stream", [(), ("--stream",)])
def test_clinical_numbers_from_the_command_line(stream: tuple[str, ...]) -> None:
    clinical = shared_or_skip("data2/clinical_dcurves/df_binary.csv")
    ran = evaluate(str(clinical), *NAMES, "--at", "0.1", "--json", *stream)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)["binary"]
    index = json.loads((clinical.parent / "index.json").read_text())["recomputed"]
    assert found["numbers"]["class_auroc"]["value"] == pytest.approx(0.8606, abs=1e-4)
    assert found["numbers"]["brier"]["value"] == pytest.approx(0.0849, abs=1e-4)
    assert found["thresholds"][0]["net_benefit"] == pytest.approx(0.08741, abs=1e-4)
    drawn = dict(zip(found["net_benefit"]["x"], found["net_benefit"]["y"], strict=True))
    everyone = dict(zip(found["net_benefit"]["x"], found["net_benefit"]["low"], strict=True))
    for at, value in index["net_benefit"].items():
        assert drawn[float(at)] == pytest.approx(value, abs=1e-9)
        assert everyone[float(at)] == pytest.approx(index["net_benefit_treat_all"][at], abs=1e-9)


def test_slope_and_intercept_are_those_of_an_independent_fit() -> None:
    p, y = logistic(700, 1, slope=0.7, intercept=-0.4)
    z = np.log(p / (1 - p))
    loss = lambda b: float(np.logaddexp(0, b[0] + b[1] * z).sum() - (y * (b[0] + b[1] * z)).sum())
    fit = minimize(loss, [0.0, 1.0], method="BFGS", options={"gtol": 1e-8})
    found = hs.evaluate(Predictions.from_probs(p, y), level=0.9).data["binary"]
    assert found is not None
    x = np.stack((np.ones(len(z)), z), axis=1)
    q = 1 / (1 + np.exp(-x @ fit.x))
    error = np.sqrt(np.diag(np.linalg.inv((x * (q * (1 - q))[:, None]).T @ x)))
    for name, value, se in zip(
        ("calibration_intercept", "calibration_slope"), fit.x, error, strict=True
    ):
        entry = found[name]
        assert entry["value"] == pytest.approx(value, abs=1e-5)
        assert entry["high"] - entry["value"] == pytest.approx(1.6448536 * se, rel=1e-4)  # 90 %


# What R's dcurves gives for `dca(cancer ~ VARIABLE, as_probability = VARIABLE)` and for
# `famhistory` as it is, as published beside its Python version: threshold, true and false positives
# per case, net benefit.
PUBLISHED = {
    "marker": [
        (0.07, 0.132, 0.7586666666666666, 0.07489605734767024),
        (0.1, 0.104, 0.37466666666666665, 0.06237037037037038),
        (0.14, 0.08933333333333333, 0.19733333333333333, 0.05720930232558139),
        (0.2, 0.05466666666666667, 0.10266666666666667, 0.029),
        (0.25, 0.03866666666666668, 0.068, 0.016000000000000007),
        (0.3, 0.03066666666666667, 0.04133333333333333, 0.012952380952380951),
        (0.35, 0.024, 0.032, 0.006769230769230774),
    ],
    "age": [
        (0.05, 0.13066666666666668, 0.6053333333333333, 0.09880701754385966),
        (0.1, 0.112, 0.38533333333333336, 0.0691851851851852),
        (0.2, 0.07866666666666668, 0.14666666666666667, 0.042),
        (0.3, 0.04666666666666667, 0.06133333333333333, 0.02038095238095238),
        (0.5, 0.018666666666666668, 0.009333333333333332, 0.009333333333333336),
        (0.7, 0.002666666666666667, 0.0, 0.002666666666666667),
    ],
    "famhistory": [
        (0.05, 0.032, 0.12133333333333335, 0.025614035087719297),
        (0.1, 0.032, 0.12133333333333335, 0.018518518518518517),
        (0.2, 0.032, 0.12133333333333335, 0.0016666666666666635),
    ],
}


@pytest.mark.parametrize("variable", list(PUBLISHED))
def test_decision_curves_are_those_that_r_published(variable: str) -> None:
    """Of a variable that is no probability R fits a logistic regression; slope and intercept of
    ours are that fit.
    """
    path = shared_or_skip("data2/clinical_dcurves/df_binary.csv")
    with path.open() as file:
        rows = list(csv.DictReader(file))
    y = np.array([row["cancer"] == "TRUE" for row in rows]).astype(int)
    x = np.array([float(row[variable]) for row in rows])
    p = x
    if variable != "famhistory":
        z = (x - x.mean()) / x.std()
        fit = hs.metrics.recalibration(Predictions.from_probs(1 / (1 + np.exp(-z)), y))
        p = 1 / (1 + np.exp(-(fit.intercept + fit.slope * z)))
    found = hs.evaluate(
        Predictions.from_probs(p, y), thresholds=[q for q, *_ in PUBLISHED[variable]]
    ).data["binary"]
    assert found is not None
    for row, (q, hits, alarms, benefit) in zip(
        found["thresholds"], PUBLISHED[variable], strict=True
    ):
        assert row["threshold"] == q
        assert row["sensitivity"]["value"] * 0.14 == pytest.approx(hits, abs=1e-12)
        assert (1 - row["specificity"]["value"]) * 0.86 == pytest.approx(alarms, abs=1e-12)
        assert row["net_benefit"] == pytest.approx(benefit, abs=1e-12)
        assert row["treat_all"] == pytest.approx(0.14 - 0.86 * q / (1 - q), abs=1e-12)


def test_slope_and_intercept_by_hand() -> None:
    """Two claims: the fitted log odds are those of the shares, so slope and intercept follow from
    two equations.
    """
    p = np.repeat([0.2, 0.8], [50, 50])
    y = np.repeat([1, 0, 1, 0], [15, 35, 30, 20])  # shares 0.3 and 0.6
    low, high = np.log(0.3 / 0.7), np.log(0.6 / 0.4)
    slope = (high - low) / (2 * np.log(4))
    found = hs.metrics.recalibration(Predictions.from_probs(p, y))
    assert found.slope == pytest.approx(slope, abs=1e-10)
    assert found.intercept == pytest.approx((high + low) / 2, abs=1e-10)
    error = np.sqrt(1 / 15 + 1 / 35 + 1 / 30 + 1 / 20) / (
        2 * np.log(4)
    )  # of a log odds ratio: Woolf 1955
    assert found.slope_error == pytest.approx(error, abs=1e-10)


def test_the_flexible_curve_is_an_independent_spline_fit() -> None:
    """The same family in other columns: natural cubic splines that are 1 at one knot each, fitted
    by another method.
    """
    p, y = logistic(900, 3, slope=0.8, intercept=0.2)
    z = np.log(p / (1 - p))
    knots = np.quantile(z, [0.05, 0.275, 0.5, 0.725, 0.95], method="inverted_cdf")

    def columns(at: np.ndarray) -> np.ndarray:
        spline = CubicSpline(knots, np.eye(5), bc_type="natural")
        inside, ends = spline(np.clip(at, knots[0], knots[-1])), spline(knots[[0, -1]], 1)
        return (
            inside
            + np.outer(np.minimum(at - knots[0], 0), ends[0])
            + np.outer(np.maximum(at - knots[-1], 0), ends[1])
        )

    x = columns(z)
    loss = lambda b: float(np.logaddexp(0, x @ b).sum() - (y * (x @ b)).sum())
    slope = lambda b: x.T @ (1 / (1 + np.exp(-x @ b)) - y)
    fit = minimize(loss, np.zeros(5), jac=slope, method="BFGS", options={"gtol": 1e-9})
    q = 1 / (1 + np.exp(-x @ fit.x))
    covariance = np.linalg.inv((x * (q * (1 - q))[:, None]).T @ x)
    curve = hs.flexible_calibration(Predictions.from_probs(p, y), level=0.9)
    there = columns(np.log(curve.x / (1 - curve.x)))
    reach = 1.6448536269514722 * np.sqrt(np.einsum("ij,jk,ik->i", there, covariance, there))
    for side, drawn in ((0, curve.y), (-1, curve.low), (1, curve.high)):
        assert drawn == pytest.approx(1 / (1 + np.exp(-(there @ fit.x + side * reach))), abs=1e-6)


def test_limits_of_copies_in_groups_are_those_of_the_originals() -> None:
    p, y = logistic(400, 2)
    alone, copied = (
        hs.Outcomes(np.repeat(p, m), correct=np.repeat(y, m), group=np.repeat(np.arange(400), m))
        for m in (1, 4)
    )
    for of in (
        lambda o: compute_line_limits(o, 0.95)[1],
        lambda o: compute_observed_limits(o, 0.95),
    ):
        a, b, naive = (
            of(alone),
            of(copied),
            of(hs.Outcomes(np.repeat(p, 4), correct=np.repeat(y, 4))),
        )
        assert b.high - b.low == pytest.approx(a.high - a.low, rel=0.05)
        assert naive.high - naive.low < 0.6 * (b.high - b.low)


@pytest.mark.slow
@pytest.mark.parametrize("groups", [False, True])
def test_limits_of_slope_intercept_and_ratio_hold_as_often_as_they_say(groups: bool) -> None:
    """Claims are honest, so the truth is 1, 0 and 1; in groups, patients come with five equal
    outcomes.
    """
    held = np.zeros(3)
    runs = 400
    for seed in range(runs):
        p, y = logistic(250, 10_000 + seed)
        o = hs.Outcomes(p, correct=y)
        if groups:
            o = hs.Outcomes(
                np.repeat(p, 5), correct=np.repeat(y, 5), group=np.repeat(np.arange(250), 5)
            )
        intercept, slope = compute_line_limits(o, 0.95)
        found = ((intercept, 0.0), (slope, 1.0), (compute_observed_limits(o, 0.95), 1.0))
        held += [limits.low <= truth <= limits.high for limits, truth in found]
    assert (held / runs >= 0.925).all(), held / runs
    assert (held / runs <= 0.985).all(), held / runs


def test_the_band_of_the_flexible_curve_holds_the_truth() -> None:
    """Outcomes are a bend of the claims that no line can follow; pointwise, at three claims."""
    bend = lambda p: 0.15 + 0.7 * p**2
    held = np.zeros(3)
    for seed in range(120):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.05, 0.95, 600)
        curve = hs.flexible_calibration(
            Predictions.from_probs(p, (rng.random(600) < bend(p)).astype(int))
        )
        at = np.searchsorted(curve.x, [0.25, 0.5, 0.75])
        assert curve.low is not None
        assert curve.high is not None
        held += (curve.low[at] <= bend(curve.x[at])) & (bend(curve.x[at]) <= curve.high[at])
    assert (held / 120 >= 0.88).all(), held / 120


def test_where_an_end_has_one_outcome_only_the_curve_has_fewer_knots() -> None:
    p = np.linspace(0.01, 0.99, 500)
    y = (np.random.default_rng(0).random(500) < p).astype(int)
    y[p < 0.35] = 0
    found = fit_flexible(hs.tally(p, correct=y))
    assert found is not None
    assert len(found.knots) == 3
    curve = hs.flexible_calibration(hs.tally(p, correct=y))
    assert curve.low is not None
    assert curve.high is not None
    assert (
        curve.high - curve.low
    ).max() < 0.3  # with five knots the band is all of [0, 1] at the low end


PAGE = Path(__file__).parents[2] / "docs/clinic.md"


@pytest.fixture
def patients(tmp_path: Path) -> Path:
    rng = np.random.default_rng(7)
    p, y = logistic(400, 7)
    rows = zip(
        p.tolist(),
        y.tolist(),
        rng.choice(["north", "south"], 400),
        rng.normal(62, 9, 400).round(),
        strict=True,
    )
    lines = [f"{risk!r},{'yes' if ill else 'no'},{site},{age:.0f}" for risk, ill, site, age in rows]
    path = tmp_path / "patients.csv"
    path.write_text("\n".join(["risk,cancer,hospital,age", *lines]) + "\n")
    return path


@pytest.mark.parametrize("more", [[], ["--stream"]])
def test_the_command_of_the_page_runs(patients: Path, more: list[str]) -> None:
    line = next(
        line
        for line in PAGE.read_text().splitlines()
        if line.startswith("howsure evaluate patients.csv")
    )
    _, _, _, *options = line.split()
    ran = evaluate(str(patients), *options, "--json", *more)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["binary"]["positive_class"] == "yes"
    assert [row["threshold"] for row in found["binary"]["thresholds"]] == [0.1, 0.2]
    assert len(found["slices"]["rows"]) == 5


NAMED = ("--name", "probs=risk", "--name", "labels=cancer")


@pytest.mark.parametrize(
    ("cell", "value", "options", "message"),
    [
        (None, "", NAMED, "labels are 'no', 'yes'; of a file, --name classes=no,yes"),
        (
            0,
            "",
            (*NAMED, "--name", "classes=no,yes"),
            "line 6, column 'risk': the value is empty; a number is needed",
        ),
        (
            0,
            "high",
            (*NAMED, "--name", "classes=no,yes"),
            "line 6, column 'risk': the value is 'high'; a number",
        ),
        (
            1,
            "",
            (*NAMED, "--name", "classes=no,yes"),
            "line 6, column 'cancer': the value is empty",
        ),
        (
            1,
            "maybe",
            (*NAMED, "--name", "classes=no,yes"),
            "(line 6) is 'maybe', which is none of the classes",
        ),
        (0, "1.4", (*NAMED, "--name", "classes=no,yes"), "(line 6) lies outside [0, 1]"),
        (None, "", (*NAMED, "--name", "classes=no"), "class_names has 1 names for 2 classes"),
        (None, "", (*NAMED, "--name", "classes=no,no"), "different names are needed"),
        (
            None,
            "",
            (*NAMED, "--name", "classes=no,yes", "--positive", "ill"),
            "no class is called 'ill'; they are no",
        ),
        (
            None,
            "",
            (*NAMED, "--name", "classes=no,yes", "--at", "1.5"),
            "the threshold 1.5 is none",
        ),
        (
            None,
            "",
            (*NAMED, "--name", "classes=no,yes", "--by", "ward"),
            "has no 'ward'; it holds 'risk', 'cancer'",
        ),
        (None, "", ("--name", "probs=riks"), "has no 'riks'; it holds"),
    ],
)
def test_what_a_clinic_may_get_wrong_is_one_sentence(
    patients: Path, cell: int | None, value: str, options: tuple[str, ...], message: str
) -> None:
    if cell is not None:
        lines = patients.read_text().splitlines()
        cells = lines[5].split(",")
        cells[cell] = value
        lines[5] = ",".join(cells)
        patients.write_text("\n".join(lines) + "\n")
    ran = evaluate(str(patients), *options)
    assert ran.returncode == 2
    assert message in " ".join(ran.stderr.split())
    assert ran.stderr.count("\n") == 1


def sliced(seed: int = 0, **beside: Any) -> Predictions:
    rng = np.random.default_rng(seed)
    p, y = logistic(300, seed)
    columns = {
        "site": rng.choice(["a", "b", "c"], 300),
        "age": rng.integers(20, 90, 300).astype(float),
    }
    return Predictions.from_probs(p, y, attributes=columns, class_names=["well", "ill"], **beside)


@pytest.mark.parametrize(
    "beside", [{}, {"weight": np.arange(1, 301) / 100}, {"group": np.arange(300) // 3}]
)
def test_a_slice_is_the_report_on_its_rows(beside: dict[str, Any]) -> None:
    preds = sliced(**beside)
    found = hs.evaluate(preds, by=["site", "age:40,60"], threshold=0.7).data["slices"]
    assert found["of"] == 6
    alone = preds[preds.attributes["site"] == "b"]
    row = next(r for r in found["rows"] if r["value"] == "b")
    other = hs.evaluate(alone, level=1 - 0.05 / 6)
    for name in ("accuracy", "aurc", "ece"):
        expected = other.data["metrics"][name]
        assert row[name]["value"] == pytest.approx(expected["value"], rel=1e-12)
        assert [row[name]["low"], row[name]["high"]] == pytest.approx(
            [expected["low"], expected["high"]], rel=1e-9
        )
    clinic = row["positive"]
    section = other.data["binary"]
    assert clinic["cases"] == (alone.labels == 1).sum()
    for name in ("class_auroc", "observed_expected", "calibration_in_the_large"):
        assert clinic[name] == section["numbers"][name], name
    at_half = next(call for call in section["thresholds"] if call["threshold"] == 0.5)
    assert clinic["sensitivity"] == at_half["sensitivity"]
    weight = np.ones(alone.n) if alone.weight is None else alone.weight
    assert row["coverage"]["value"] == pytest.approx(
        np.average(alone.confidence >= 0.7, weights=weight)
    )


@pytest.mark.parametrize("column", ["", "group", "weight"])
def test_streams_have_the_same_class_and_slices(column: str, tmp_path: Path) -> None:
    preds = sliced()
    lines = ["risk,label,site,age" + (f",{column}" if column else "")]
    rows = zip(
        preds.probs[:, 1],
        preds.labels,
        preds.attributes["site"],
        preds.attributes["age"],
        strict=True,
    )
    lines += [
        f"{p!r},{y},{s},{a}" + (f",{i // 3 + 1}" if column else "")
        for i, (p, y, s, a) in enumerate(rows)
    ]
    text = "\n".join(line.replace("np.float64(", "").replace(")", "") for line in lines) + "\n"
    (tmp_path / "a.csv").write_text(text)
    asked: dict[str, Any] = {"by": ["site", "age:40,60"], "positive": "1"}
    streamed = hs.evaluate_files(tmp_path / "a.csv", names={"probs": "risk"}, **asked).data
    read = hs.read(tmp_path / "a.csv", names={"probs": "risk"}, attributes=["site", "age"])
    loaded = hs.evaluate(read, **asked).data
    for key in ("binary", "slices"):
        assert json.dumps(streamed[key]) == json.dumps(loaded[key])
    assert streamed["views"]["confusion"] == loaded["views"]["confusion"]


def make_two_models(n: int, seed: int, **beside: Any) -> tuple[Predictions, Predictions]:
    """Two models on the same cases, one of them noisier."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.2).astype(int)
    x = rng.normal(size=n) + 1.5 * y
    noisy = x + 0.6 * rng.normal(size=n)
    a, b = (1 / (1 + np.exp(-1.3 * z + 2.5)) for z in (x, noisy))
    return Predictions.from_probs(a, y, **beside), Predictions.from_probs(b, y, **beside)


@pytest.mark.parametrize("threshold", [0.1, 0.2, 0.5])
def test_the_difference_of_net_benefits_is_that_of_plain_counts(threshold: float) -> None:
    a, b = make_two_models(600, 3)
    n, odds, y = 600, threshold / (1 - threshold), a.labels == 1
    ours, theirs = (m.probs[:, 1] >= threshold for m in (a, b))
    value, low, high = hs.net_benefit_difference(a, b, threshold)
    each = [hs.net_benefit(m, thresholds=np.array([threshold])).y[0] for m in (a, b)]
    assert value == pytest.approx(each[0] - each[1], abs=1e-12)

    def bonett_price(f12: int, f21: int) -> tuple[float, float, float, float]:
        p12, p21 = (f12 + 1) / (n + 2), (f21 + 1) / (n + 2)
        reach = 1.959963985 * np.sqrt((p12 + p21 - (p12 - p21) ** 2) / (n + 2))
        share = (f12 - f21) / n
        return share, p12 - p21 - reach, p12 - p21 + reach, (f12 + f21) / n - share**2

    f12, f21 = ours & ~theirs, theirs & ~ours
    gain, gain_low, gain_high, gain_var = bonett_price((f12 & y).sum(), (f21 & y).sum())
    harm, harm_low, harm_high, harm_var = bonett_price((f12 & ~y).sum(), (f21 & ~y).sum())
    rho = -gain * harm / np.sqrt(gain_var * harm_var)
    down, up = gain - gain_low, odds * (harm_high - harm)
    assert low == pytest.approx(value - np.sqrt(down**2 + up**2 - 2 * rho * down * up), abs=1e-9)
    down, up = gain_high - gain, odds * (harm - harm_low)
    assert high == pytest.approx(value + np.sqrt(down**2 + up**2 - 2 * rho * down * up), abs=1e-9)


def test_the_difference_of_net_benefits_joins_by_ids_and_minds_groups() -> None:
    ids = np.arange(400)
    a, b = make_two_models(400, 4, ids=ids)
    there, low, high = hs.net_benefit_difference(a, b, 0.2)
    assert hs.net_benefit_difference(a, b[::-1], 0.2) == (there, low, high)
    back = hs.net_benefit_difference(b, a, 0.2)
    assert back == pytest.approx((-there, -high, -low), abs=1e-12)
    twice = [m[np.repeat(ids, 2)] for m in make_two_models(400, 4, group=ids)]
    _, wide_low, wide_high = hs.net_benefit_difference(twice[0], twice[1], 0.2)
    assert wide_high - wide_low == pytest.approx(high - low, rel=0.05)


def test_a_difference_of_net_benefits_is_refused_in_one_sentence() -> None:
    a, b = make_two_models(50, 5)
    with pytest.raises(InputError, match="threshold 1 is none"):
        hs.net_benefit_difference(a, b, 1)
    with pytest.raises(InputError, match="different labels"):
        hs.net_benefit_difference(a, Predictions.from_probs(b.probs, 1 - b.labels), 0.2)
    weighted = make_two_models(50, 5, weight=np.arange(1, 51))
    with pytest.raises(InputError, match="weights"):
        hs.net_benefit_difference(*weighted, 0.2)


def test_a_comparison_of_two_classes_has_the_differences_of_net_benefits() -> None:
    a, b = make_two_models(600, 3)
    compared = hs.compare({"a": a, "b": b})
    rows = compared.data["net_benefit"]
    assert [row["threshold"] for row in rows] == [0.05, 0.1, 0.2, 0.3, 0.5]
    models = {"a": a, "b": b}
    for row in rows:
        number = row["difference"]
        expected = hs.net_benefit_difference(models[row["a"]], models[row["b"]], row["threshold"])
        assert (number["value"], number["low"], number["high"]) == expected
    assert "Net benefit" in compared.to_text()
    assert "net_benefit" not in hs.compare({"one": a, "again": (a, "entropy")}).data


def test_a_slice_that_is_worse_is_marked_and_no_other() -> None:
    rng = np.random.default_rng(0)
    site = np.repeat(["good", "bad"], 300)
    correct = rng.random(600) < np.where(site == "good", 0.95, 0.6)
    preds = Predictions.from_confidence(
        rng.uniform(0.5, 1, 600), correct, attributes={"site": site}
    )
    rows = hs.evaluate(preds, by="site").data["slices"]["rows"]
    assert [(r["value"], r["worse"]) for r in rows] == [("bad", True), ("good", False)]


def test_the_text_shows_distances_of_the_curve_and_the_class_by_slice() -> None:
    text = hs.evaluate(sliced(), by="site").to_text(width=140, full=True)
    assert "ICI, mean distance of the calibration curve" in text
    assert "would be chance" in text
    assert "The probability of ill, slice by slice" in text
    assert "Spiegelhalter's z" in text


def test_the_positive_class_of_three_stands_against_the_rest() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    p = rng.dirichlet(np.ones(3), 200) * 0.6 + 0.4 * np.eye(3)[y]
    preds = Predictions.from_probs(p, y, class_names=["a", "b", "c"])
    assert hs.evaluate(preds).data["binary"] is None
    found = hs.evaluate(preds, positive="c").data["binary"]
    assert found is not None
    assert found["numbers"]["class_auroc"]["value"] == hs.class_auroc(preds, "c")
    assert found["prevalence"] == pytest.approx((y == 2).mean())


def test_labels_and_answers_are_counted() -> None:
    y, said = np.array([0, 0, 1, 2, 2, 2]), np.array([0, 1, 1, 0, 0, 2])
    found = hs.evaluate(Predictions.from_probs(np.eye(3)[said], y)).data["views"]["confusion"]
    assert found["counts"] == [[1, 1, 0], [0, 1, 0], [2, 0, 1]]
    expected = {
        "label": "2",
        "prediction": "0",
        "count": 2,
        "share": pytest.approx(2 / 3),
        "confidence": 1,
    }
    assert found["top"][0] == expected


def test_every_form_shows_the_class_the_slices_and_what_is_taken_for_what() -> None:
    report = hs.evaluate(sliced(), positive="ill", by="site")
    for text in (report.to_text(), report.to_markdown(), report.to_html()):
        for words in (
            "AUC of the class",
            "Who is called ill?",
            "Slices by site",
            "AUROC of spotting errors",
        ):
            assert words in text
    assert "Confusion matrix" in report.to_html()


FRAME = {"p_well": [0.9, 0.2], "p_ill": [0.1, 0.8], "y": ["well", "ill"], "site": ["a", None]}
PREDS = Predictions.from_frame(FRAME, probs=["p_well", "p_ill"], label="y")
DOORS: dict[str, tuple[Any, str]] = {
    "unnamed columns": (lambda: hs.evaluate(FRAME), "say which columns hold the probabilities"),
    "y and P": (
        lambda: hs.evaluate([0, 1], [[0.9, 0.1], [0.2, 0.8]]),
        "write hs.evaluate\\(probs=P, labels=y\\)",
    ),
    "a tuple": (
        lambda: hs.evaluate(([0, 1], np.eye(2))),
        "write hs.evaluate\\(probs=P",
    ),
    "an array": (
        lambda: hs.evaluate(np.eye(2)),
        "does not say whether it holds logits or probabilities",
    ),
    "a path": (lambda: hs.evaluate("a.csv"), "hs.read\\('a.csv'\\)"),
    "missing label": (
        lambda: Predictions.from_frame(FRAME, probs="p_ill", label="site"),
        "column 'site' has 1 missing",
    ),
    "unknown column": (
        lambda: Predictions.from_frame(FRAME, probs="risk"),
        "no column 'risk' for probs",
    ),
    "two kinds": (
        lambda: Predictions.from_frame(FRAME, probs="p_ill", logits="p_well"),
        "both given",
    ),
    "texts": (
        lambda: Predictions.from_frame(FRAME, probs="p_ill", label="y"),
        "texts need class_names=",
    ),
    "no frame": (lambda: Predictions.from_frame(3), "a int is no table"),
    "no classifier": (
        lambda: Predictions.from_estimator(object(), []),
        "no classifier of scikit-learn",
    ),
    "positive": (
        lambda: hs.evaluate(PREDS, positive="sick"),
        "no class is called 'sick'; they are well, ill",
    ),
    "top label": (
        lambda: hs.evaluate(Predictions.from_confidence([0.9], [1]), positive=1),
        "only the top label",
    ),
    "threshold": (lambda: hs.evaluate(PREDS, thresholds=[1.5]), "the threshold 1.5 is none"),
    "by": (
        lambda: hs.evaluate(PREDS, by="hospital"),
        "there is no column 'hospital'; there are 'site'",
    ),
    "length": (lambda: hs.evaluate(PREDS, by={"age": [1]}), "age has 1 rows"),
    "bins of text": (lambda: hs.evaluate(PREDS, by="site:3"), "only numbers fall into bins"),
    "edges": (lambda: hs.evaluate(PREDS, by="site:60,40"), "must rise"),
    "one bin": (lambda: hs.evaluate(PREDS, by="site:1"), "at least 2"),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_refuses_in_one_sentence(door: str) -> None:
    call, words = DOORS[door]
    with pytest.raises(InputError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--positive", "ill"), "no class is called 'ill'"),
        (("--by", "hospital"), "has no 'hospital'"),
        (("--by", "age"), "age:4"),
        (("--at", "2"), "the threshold 2 is none"),
        (("--by", "age:4", "--stream"), "for a stream give the edges"),
    ],
)
def test_the_command_line_refuses_with_2(
    options: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    rows = "".join(f"{(i + 1) / 80},{i % 2},{i + 0.5}\n" for i in range(60))
    (tmp_path / "a.csv").write_text("risk,label,age\n" + rows)
    ran = evaluate(str(tmp_path / "a.csv"), "--name", "probs=risk", *options)
    assert ran.returncode == 2
    assert words in ran.stderr
    assert ran.stdout == ""
    assert len(ran.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames_of_every_library_give_the_same(kind: str) -> None:
    library = pytest.importorskip(kind, reason=f"left out: {kind} is not installed")
    frame = library.table(FRAME) if kind == "pyarrow" else library.DataFrame(FRAME)
    preds = Predictions.from_frame(frame, probs=["p_well", "p_ill"], label="y")
    assert preds.class_names == ("well", "ill")
    assert preds.probs.tolist() == PREDS.probs.tolist()
    assert preds.labels.tolist() == [0, 1]
    assert [r["value"] for r in hs.evaluate(preds, by="site").data["slices"]["rows"]] == [
        "a",
        "missing",
    ]


def test_logits_are_taken_back() -> None:
    z = np.random.default_rng(0).normal(size=(4, 3))
    one = Predictions.from_logits(z, [0, 1, 2, 0])
    assert Predictions.from_logits(one.logits, one.labels).values.tolist() == z.tolist()
    many = Predictions.from_samples(np.stack((z, -z)), [0, 1, 2, 0])
    assert Predictions.from_logits(many.logits, many.labels).probs.tolist() == many.probs.tolist()


@pytest.mark.parametrize("variant", ["expected", "step", "trapezoid"])
def test_the_best_order_has_no_excess_in_any_variant(variant: Any) -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 30):
        correct, loss = rng.random(n) < 0.6, rng.random(n)
        best = hs.tally(correct + rng.random(n) * 1e-3, correct=correct)
        assert hs.optimal_aurc(best, variant) == pytest.approx(hs.aurc(best, variant), abs=1e-12)
        graded = hs.tally(-loss, loss=loss)
        assert hs.e_aurc(graded, variant) == pytest.approx(0, abs=1e-12)


def test_a_set_loss_has_no_best_order() -> None:
    with pytest.raises(InputError, match="no order of them is known to be the best"):
        hs.e_aurc(hs.dice_tally([0.9, 0.8], [1, 0], [1, 1]))


def test_class_wise_ece_takes_any_binning() -> None:
    rng = np.random.default_rng(0)
    preds = Predictions.from_probs(rng.dirichlet(np.ones(3), 200), rng.integers(0, 3, 200))
    assert hs.classwise_ece(preds, hs.equal_range(15)) == pytest.approx(
        hs.classwise_ece(preds), abs=1e-12
    )
    expected = np.mean([hs.ece(hs.positive_tally(preds, c), hs.equal_size(10)) for c in range(3)])
    assert hs.classwise_ece(preds, hs.equal_size(10)) == pytest.approx(expected, abs=1e-12)
