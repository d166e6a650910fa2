"""The page after calibration leads with the change, and never says that one should calibrate."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from howsure import Predictions, calibration_report
from howsure.report.calibration_report import count_changed_answers
from howsure.report.evaluation import evaluate


@pytest.fixture(scope="module")
def both() -> tuple[Predictions, Predictions]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 1600)
    z = 6 * (rng.normal(size=(1600, 4)) + 1.6 * np.eye(4)[y] + [0.5, 0, 0, 0])
    return Predictions.from_logits(z[:800], y[:800]), Predictions.from_logits(z[800:], y[800:])


def test_it_leads_with_the_change_and_the_answers_that_changed(
    both: tuple[Predictions, Predictions],
) -> None:
    val, test = both
    found = calibration_report(val, test, "vector")
    after = found.calibrator(test)
    moved = int((after.prediction != test.prediction).sum())
    ece = found.changes[0]
    assert moved > 0
    assert found.changed == count_changed_answers(test, after) == moved
    first = found.to_text().splitlines()[2:4]
    assert " ".join(first).startswith(
        f"Vector scaling cut the calibration error (ECE) from {ece.before[0]:.3f} to {ece.after[0]:.3f}"
    )
    assert f"{moved:,} of 800 answers changed." in " ".join(first)
    assert found.to_dict()["lead"][0] in found._repr_html_()


def test_nothing_says_calibrate_afterwards_and_pictures_show_both(
    both: tuple[Predictions, Predictions],
) -> None:
    val, test = both
    found = calibration_report(val, test, "temperature")
    weak = Predictions.from_logits(0.4 * found.calibrator(test).logits[0], test.labels)  # still off
    for after in (found.calibrator(test), weak):
        report = evaluate(after, before=test)
        report.data["calibration"] = found.to_dict()
        html = report.to_html().replace("\u00a0%", " %")
        text = re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", html, flags=re.S)
        assert "calibrate it" not in text
        assert "howsure calibrate --fit" not in text
        assert text.index(found.lead[0]) < text.index(report.data["verdict"][0])
        drawn = json.loads(html.split('id="drawn">')[1].split("</script>")[0])
        told = {
            name for name, d in drawn.items() if any("before" in s["name"] for s in d["series"])
        }
        assert {
            "risk",
            "threshold",
            "histogram",
            "corp",
            "scatter",
            "odds",
            "roc",
            "reliability-adaptive",
        } <= told
        # The diagrams of all calibrators have the one before among them by its name, none.
        assert told == set(drawn) - {"methods"}
        assert "none" in {s["name"] for s in drawn["methods"]["series"]}
    assert "after calibration" in evaluate(weak, before=test).data["verdict"][2]


def test_the_command_writes_the_page(
    both: tuple[Predictions, Predictions],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Callable,
) -> None:
    from howsure.cli import main

    val, test = both
    monkeypatch.chdir(tmp_path)
    np.savez("val.npz", logits=val.logits[0], labels=val.labels)
    np.savez("test.npz", logits=test.logits[0], labels=test.labels)
    with pytest.raises(SystemExit) as stop:
        main(["calibrate", "--fit", "val.npz", "--on", "test.npz", "--html", "page.html"])
    assert not stop.value.code
    html = Path("page.html").read_text(encoding="utf-8")
    assert "fitted on val.npz" in html
    assert "judged on test.npz" in html
    assert "How it was chosen: NLL on 5 held-out folds" in html
    assert "answers changed" in html
