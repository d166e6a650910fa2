"""A user's mistake is one line on standard error, exit code 2, and nothing on standard output or
disk.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

MISTAKES = {
    "evaluate_no_file": ["evaluate", "not_there.npz"],
    "evaluate_format": ["evaluate", "notes.docx"],
    "evaluate_folder": ["evaluate", "."],
    "evaluate_split": ["evaluate", "both.npz"],
    "evaluate_unknown_split": ["evaluate", "both.npz", "--split", "train"],
    "evaluate_name": ["evaluate", "test.npz", "--name", "labels"],
    "evaluate_score": ["evaluate", "test.npz", "--score", "confidense"],
    "evaluate_level": ["evaluate", "test.npz", "--level", "95"],
    "evaluate_suffix": ["evaluate", "test.npz", "-o", "report.pdf"],
    "evaluate_out_folder": ["evaluate", "test.npz", "-o", "nowhere/report.json"],
    "evaluate_calibrator": ["evaluate", "test.npz", "--calibrator", "test.npz"],
    "evaluate_nan": ["evaluate", "nan.npz"],
    "evaluate_logits_as_probs": ["evaluate", "logits_as_probs.npz"],
    "evaluate_no_labels": ["evaluate", "month.csv", "--name", "probs=risk"],
    "evaluate_no_labels_at_all": ["evaluate", "new.npz"],
    "evaluate_own_names": ["evaluate", "month.csv"],
    "check_nothing": ["check", "test.npz"],
    "check_pair": ["check", "test.npz", "--require", "coverage_at_risk>=0.8"],
    "check_baseline": ["check", "test.npz", "--baseline", "test.npz"],
    "check_top_label": ["check", "top.npz", "--require", "nll<=1"],
    "calibrate_no_test": ["calibrate", "--fit", "test.npz"],
    "calibrate_top_label": [
        "calibrate",
        "--fit",
        "top.npz",
        "--on",
        "top.npz",
        "--method",
        "temperature",
    ],
    "threshold_nothing": ["threshold", "test.npz"],
    "threshold_risk": ["threshold", "test.npz", "--risk", "1.5"],
    "threshold_delta": ["threshold", "test.npz", "--risk", "0.1", "--delta", "0"],
    "decide_no_policy": ["decide", "policy.json", "test.npz"],
    "compare_one": ["compare", "test.npz"],
    "unknown_option": ["evaluate", "test.npz", "--jsn"],
    "option_as_command": ["--", "--renormalise"],
    "seed": ["evaluate", "test.npz", "--seed", "-1"],
    "monitor_seed": ["monitor", "test.npz", "test.npz", "--seed", "-1"],
    "compare_nothing": ["compare", "", "test.npz", "/"],
}


@pytest.fixture
def bad_files(files: Path) -> Path:
    good = np.load(files / "test.npz")
    logits = good["logits"].copy()
    np.savez(files / "logits_as_probs.npz", probs=logits, labels=good["labels"])
    np.savez(files / "top.npz", confidence=np.linspace(0.4, 1, 50), correct=np.arange(50) % 4 > 0)
    logits[17, 2] = np.nan
    np.savez(files / "nan.npz", logits=logits, labels=good["labels"])
    np.savez(files / "new.npz", logits=good["logits"])
    (files / "month.csv").write_text(
        "patient,age,risk,sick,male\na,41,0.25,0,1\nb,57,0.5,1,0\nc,63,0.75,1,1\n"
    )
    (files / "notes.docx").write_bytes(b"not predictions")
    return files


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake(mistake: str, howsure: Callable, snapshot: Callable, bad_files: Path) -> None:
    before = {p.name for p in bad_files.iterdir()}
    ran = howsure(*MISTAKES[mistake])
    assert (ran.code, ran.out) == (2, "")
    assert "Traceback" not in ran.err
    assert {p.name for p in bad_files.iterdir()} == before
    snapshot(_words(ran.err).replace(str(bad_files), "FOLDER"))


def _words(text: str) -> str:
    """The text in the words of the newest click; older ones say the same a little differently."""
    text = text.replace(" -h' for help.", " --help' for help.")
    return re.sub(
        r"No such option: (\S+) Did you mean (\S+)\?",
        r"No such option '\1'. Did you mean '\2'?",
        text,
    )
