"""Small logs that the newest releases of the tools wrote with mock models (`make fixtures`)."""

import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from howsure import InputError
from howsure.formats.logs import Outcome, is_log, read_log

MADE = Path(__file__).parent / "made"


def rows(name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (MADE / name).read_text().splitlines()]


def test_inspect_packed_with_zstd() -> None:
    pytest.importorskip("zstandard")
    log = read_log(MADE / "inspect.eval")
    assert log.title == "Inspect log, 5 questions, 10 answers, 2 confidences"
    assert log.group is not None
    assert log.group.tolist() == [str(i) for i in range(5) for _ in range(2)]
    assert [claim.theirs for claim in log.claims] == [pytest.approx(log.accuracy)]


def test_inspect_packed_with_zstd_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'howsure\[logs\]'"):
        read_log(MADE / "inspect.eval")


@pytest.mark.parametrize("claimed", [10, 10**6, 10**9])
def test_zstd_members_unpack_to_what_they_claim_or_not_at_all(claimed: int, tmp_path: Path) -> None:
    """Whatever size the directory of the archive claims: one sentence, and no more memory."""
    pytest.importorskip("zstandard")
    raw = bytearray((MADE / "inspect.eval").read_bytes())
    with zipfile.ZipFile(MADE / "inspect.eval") as archive:
        start = archive.start_dir
    raw[start + 24 : start + 28] = claimed.to_bytes(4, "little")
    path = tmp_path / "log.eval"
    path.write_bytes(raw)
    with pytest.raises(InputError):
        read_log(path)


def test_a_damaged_zstd_member(tmp_path: Path) -> None:
    pytest.importorskip("zstandard")
    raw = bytearray((MADE / "inspect.eval").read_bytes())
    raw[100:140] = bytes(40)
    path = tmp_path / "log.eval"
    path.write_bytes(raw)
    with pytest.raises(InputError, match="damaged or not complete"):
        read_log(path)


def test_a_fractional_acc_grades_answers() -> None:
    log = read_log(MADE / "lm_eval_graded.jsonl")
    assert (log.outcome == Outcome.GRADED).all()
    assert log.grade.tolist() == [row["acc"] for row in rows("lm_eval_graded.jsonl")]
    assert log.gold is None
    assert "all options of a question together" in log.doubts[0]


@pytest.mark.parametrize("metric", ["acc", "acc_mutual_info"])
def test_options_logged_twice(metric: str) -> None:
    """`acc_mutual_info` logs every option again without its question; those are no options."""
    log = read_log(MADE / "lm_eval_mutual.jsonl", metric=metric)
    assert log.options is not None
    assert log.options.shape == (8, 4)
    assert log.grade.tolist() == [row[metric] for row in rows("lm_eval_mutual.jsonl")]


def test_promptfoo_lines_are_the_document() -> None:
    assert is_log(MADE / "promptfoo.jsonl")
    lines, document = read_log(MADE / "promptfoo.jsonl"), read_log(MADE / "promptfoo.json")
    assert (
        lines.title == document.title == "promptfoo output, 6 questions, 12 answers, 2 confidences"
    )
    order = [np.lexsort((log.grade, log.confidences[0].value)) for log in (lines, document)]
    for one, other in zip(lines.confidences, document.confidences, strict=True):
        np.testing.assert_array_equal(one.value[order[0]], other.value[order[1]])
    np.testing.assert_array_equal(lines.grade[order[0]], document.grade[order[1]])


def test_deepeval_wrapped_and_not(tmp_path: Path) -> None:
    wrapped = read_log(MADE / "deepeval.json")
    path = tmp_path / "run.json"
    path.write_text(json.dumps(json.loads((MADE / "deepeval.json").read_text())["testRunData"]))
    assert wrapped.title == read_log(path).title == "deepeval test run, 6 questions"
    assert wrapped.accuracy == 0.5
