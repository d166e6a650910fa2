"""Files are written whole, by one writer or by many, with the mode they had, where their links lead."""

import os
import stat
import threading
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import pytest

import howsure
from howsure._core import file_access
from howsure._core.checks import InputError
from howsure._core.file_access import replace_file, write_text
from howsure.policies.policy import Policy

SAVES = 200


def _policy(tau: float) -> Policy:
    return Policy("max_prob", tau)


def _save_often(path: Path, saves: int = SAVES) -> None:
    for i in range(saves):
        howsure.save(_policy(i / SAVES), path)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_two_threads_save_one_path_while_others_load(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    howsure.save(_policy(0.5), path)
    failures: list[BaseException] = []

    def run() -> None:
        try:
            _save_often(path)
        except BaseException as e:
            failures.append(e)

    writers = [threading.Thread(target=run) for _ in range(2)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert isinstance(howsure.load(path), Policy)
    assert failures == []
    assert [p.name for p in tmp_path.iterdir()] == ["policy.json"]


def _save_as_process_1(path: Path) -> None:
    os.getpid = lambda: 1  # as in a container
    _save_often(path)


def test_two_processes_with_one_number_save_one_path(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    howsure.save(_policy(0.5), path)
    context = get_context("spawn")
    writers = [context.Process(target=_save_as_process_1, args=(path,)) for _ in range(2)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert isinstance(howsure.load(path), Policy)
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert [p.name for p in tmp_path.iterdir()] == ["policy.json"]


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / f".a.txt.{os.getpid()}.tmp").symlink_to(victim)
    write_text(tmp_path / "a.txt", "new")
    assert (victim.read_text(), (tmp_path / "a.txt").read_text()) == ("mine", "new")


def test_a_link_under_the_very_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    monkeypatch.setattr(file_access.os, "urandom", bytes)
    link = tmp_path / f".a.txt.{bytes(8).hex()}.tmp"
    link.symlink_to(victim)
    with pytest.raises(InputError, match="cannot be written"):
        write_text(tmp_path / "a.txt", "new")
    assert link.is_symlink()
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o400])
def test_the_mode_is_kept_and_set_before_any_content(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(mode)
    with replace_file(path) as temporary:
        assert (_mode(temporary), temporary.stat().st_size) == (mode | 0o600, 0)
        temporary.write_text("new")
    assert (_mode(path), path.read_text()) == (mode, "new")


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_a_new_file_follows_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        write_text(tmp_path / "a.txt", "new")
    finally:
        os.umask(before)
    assert _mode(tmp_path / "a.txt") == 0o666 & ~umask


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_a_link(tmp_path: Path, there: bool) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "state.json", tmp_path / "state.json"
    if there:
        target.write_text("old")
    link.symlink_to(Path("folder") / "state.json")
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert not target.is_symlink()


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "a.txt"
    link.symlink_to(link)
    with pytest.raises(InputError, match="leads to itself"):
        write_text(link, "new")
    assert link.is_symlink()


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "😀" * 63], ids=["one", "two", "four"])
def test_the_longest_names(tmp_path: Path, name: str) -> None:
    write_text(tmp_path / name, "new")
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_nothing_is_left_after_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with suppress(KeyboardInterrupt), replace_file(path) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("a.txt", "old")]
