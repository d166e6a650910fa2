"""Every file of the corpus is refused with one clear line, nothing is run, nothing is left behind."""

import re
from pathlib import Path

import pytest
from tests.formats.bad_files import CORPUS, Bad

from howsure import InputError, Predictions, read, scan
from howsure.cli import main
from howsure.formats import describe, problems, suffixes, write

TORN = re.compile(r"Traceback|0x[0-9a-f]{6}|\n")


def made(bad: Bad, folder: Path) -> Path:
    if bad.package is not None:
        pytest.importorskip(bad.package)
    return bad.make(folder)


@pytest.mark.parametrize("bad", CORPUS, ids=lambda bad: bad.name)
def test_bad_file_is_refused_in_one_line(bad: Bad, tmp_path: Path) -> None:
    path = made(bad, tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError) as caught:
        read(path, **bad.options)
    message = str(caught.value)
    assert bad.says in message
    assert not TORN.search(message)
    assert message.endswith((".", "?"))
    assert len(message) < 1000 or "long_name" in bad.name
    assert sorted(tmp_path.rglob("*")) == before  # no payload ran, nothing was written


TYPED = [bad for bad in CORPUS if bad.name != "at_nul"]  # no argument of a process can hold a NUL


@pytest.mark.parametrize("bad", TYPED, ids=lambda bad: bad.name)
def test_the_command_says_it_in_one_line(
    bad: Bad, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = made(bad, tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(SystemExit) as stop:
        main(["evaluate", str(path), *flags(bad), "-o", str(tmp_path / "report.json")])
    out, err = capsys.readouterr()
    assert (stop.value.code, out) == (2, "")
    assert err.startswith("howsure: ")
    assert len(err.splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before


def flags(bad: Bad) -> list[str]:
    """The options of `read` as a user types them."""
    o = bad.options
    names = [f"--name={part}={name}" for part, name in o.get("names", {}).items()]
    switches = [f"--{switch}" for switch in ("mc", "renormalise") if o.get(switch)]
    return [*([f"--split={o['split']}"] if o.get("split") else []), *switches, *names]


@pytest.mark.parametrize("bad", CORPUS, ids=lambda bad: bad.name)
def test_bad_file_is_refused_when_streamed(bad: Bad, tmp_path: Path) -> None:
    path = made(bad, tmp_path)
    if "repeat" in bad.name:
        pytest.skip("a stream sees repeated ids only within a part")
    with pytest.raises(InputError):
        list(scan(path, rows=2, **bad.options))


@pytest.mark.parametrize("bad", CORPUS, ids=lambda bad: bad.name)
def test_doctor_finds_what_read_refuses(bad: Bad, tmp_path: Path) -> None:
    path = made(bad, tmp_path)
    if "two_splits" in bad.name or "several_splits" in bad.name:
        pytest.skip("nothing is wrong with the file: the doctor looks at both splits")
    found = problems(path, **bad.options)
    assert any(problem.stops for problem in found)
    assert all(problem.where and problem.what and problem.fix for problem in found)
    assert sorted(p for p in tmp_path.rglob("executed")) == []


def test_corpus_is_large_and_its_names_are_distinct() -> None:
    assert len({bad.name for bad in CORPUS}) == len(CORPUS) >= 200


@pytest.mark.parametrize("suffix", sorted(suffixes()))
def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = {
        ".parquet": "pyarrow",
        ".pq": "pyarrow",
        ".arrow": "pyarrow",
        ".feather": "pyarrow",
        ".ipc": "pyarrow",
    }
    pytest.importorskip(package.get(suffix, "torch" if suffix in (".pt", ".pth") else "numpy"))
    preds = Predictions.from_probs([[0.9, 0.1], [0.2, 0.8]], [0, 1])
    write(preds, tmp_path / f"a{suffix}")
    before = {p: p.read_bytes() for p in tmp_path.iterdir()}

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(InputError, match="No space left"):
        write(preds[:1], tmp_path / f"a{suffix}")
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_writing_into_a_missing_folder_or_over_a_folder(tmp_path: Path) -> None:
    preds = Predictions.from_probs([[0.9, 0.1]], [0])
    with pytest.raises(InputError, match="does not exist"):
        write(preds, tmp_path / "none" / "a.npz")
    (tmp_path / "b.npz").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        write(preds, tmp_path / "b.npz")
    with pytest.raises(InputError, match="unknown suffix"):
        write(preds, tmp_path / "a.pkl")


def test_describing_a_bad_file_is_refused_too(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(b"no")
    with pytest.raises(InputError, match="damaged"):
        describe(tmp_path / "a.npz")
