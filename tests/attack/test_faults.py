"""Kills and full disks at named points: every write, flush and rename fails once, and going on
gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure as hs
from attack.faults import Faults, run, watching
from howsure import InputError, Predictions
from howsure.cli import main
from howsure.policies import DriftMonitor, OnlinePolicy, Policy
from howsure.scale.many_files import expand_paths, gather, plan_parts
from howsure.scale.parts import Settings, load_or_summarise
from howsure.serving import stream
from howsure.serving.stream import decide_file

KINDS = [pytest.param(False, id="full disk"), pytest.param(True, id="kill")]
Job = Callable[[Path], object]


def every_point(
    first: Job,
    again: Job,
    result: Callable[[Path], bytes],
    tmp_path: Path,
    *,
    kill: bool,
    ready: Job = lambda _: None,
    savers: Sequence[tuple[Any, str]] = (),
) -> list[str]:
    """The names of all points; the job fails once at each of them and is done `again`.

    Of many writes into one file the first and the last are tried, and some between them.
    """

    def begun(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        ready(folder)
        return folder

    folder = begun("whole")
    with watching(Faults(folder), *savers) as counted:
        first(folder)
    expected, passed = result(folder), counted.passed
    for k in chosen(passed):
        folder = begun(f"{k}")
        code = run(lambda folder=folder: first(folder), Faults(folder, k, kill), *savers)
        assert code == (9 if kill else 2), (k, passed[k - 1])
        again(folder)
        assert result(folder) == expected, (k, passed[k - 1])
        left = {path.name for path in folder.rglob("*") if path.name.endswith(".tmp")}
        assert kill or not left, left
    return passed


def chosen(passed: Sequence[str]) -> list[int]:
    """Numbers of points, from 1: every flush and rename; every write, but of a long run of them
    every k-th one.
    """
    out: list[int] = []
    for name, run_of in groupby(enumerate(passed, start=1), key=lambda point: point[1]):
        numbers = [number for number, _ in run_of]
        step = max(1, len(numbers) // 8) if name.startswith("write") else 1
        out += sorted({*numbers[::step], numbers[-1]})
    return out


def rows(n: int = 900) -> str:
    confidence = np.random.default_rng(0).random(n).round(3).tolist()
    return "".join(f'{{"id": "x{i}", "confidence": {c}}}\n' for i, c in enumerate(confidence))


@pytest.mark.parametrize("kill", KINDS)
@pytest.mark.parametrize("suffix", ["jsonl", "npz"])
def test_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kill: bool, suffix: str) -> None:
    monkeypatch.setattr(stream, "FILE_BATCH_ROWS", 200)
    monkeypatch.setattr("howsure.formats.json_lines.READ_BLOCK_BYTES", 4_000)
    source = tmp_path / f"in.{suffix}"
    if suffix == "jsonl":
        source.write_text(rows())
    else:
        hs.write(
            Predictions.from_confidence(np.random.default_rng(0).random(900), ids=np.arange(900)),
            source,
        )
    decide = Policy("max_prob", 0.6).decide
    passed = every_point(
        lambda folder: decide_file(decide, source, folder / "out.jsonl"),
        lambda folder: decide_file(decide, source, folder / "out.jsonl", resume=True),
        lambda folder: (folder / "out.jsonl").read_bytes(),
        tmp_path,
        kill=kill,
    )
    assert sum(name.startswith("write out.jsonl") for name in passed) > 3
    assert "flush out.jsonl" in passed


@pytest.mark.parametrize("kill", KINDS)
def test_saved_states(tmp_path: Path, kill: bool) -> None:
    """A state is the old one or the new one at every point, and saving again gives the new one."""
    decided = Policy("max_prob", 0.5).decide(Predictions.from_confidence(np.linspace(0, 1, 100)))
    before = DriftMonitor.start(decided)
    after = before.see(decided)

    def first(folder: Path) -> None:
        if not (folder / "watch.json").exists():
            hs.save(before, folder / "old.json")
            (folder / "old.json").rename(folder / "watch.json")
        hs.save(after, folder / "watch.json")

    def again(folder: Path) -> None:
        assert not (folder / "watch.json").exists() or hs.load(folder / "watch.json").seen in (
            0,
            100,
        )
        first(folder)

    passed = every_point(
        first, again, lambda folder: (folder / "watch.json").read_bytes(), tmp_path, kill=kill
    )
    assert [name.split()[0] for name in passed] == [
        "write",
        "flush",
        "flush",
        "rename",
        "rename",
        "write",
        "flush",
        "flush",
        "rename",
    ]


@pytest.mark.parametrize("kill", KINDS)
def test_resume_folder(tmp_path: Path, kill: bool) -> None:
    """`evaluate --resume FOLDER`: what is stored, and what is summed from it."""
    rng = np.random.default_rng(3)
    paths = [tmp_path / f"part{i}.npz" for i in range(2)]
    for path in paths:
        p = rng.random(40)
        hs.write(Predictions.from_probs(p, (rng.random(40) < p).astype(int)), path)
    settings = Settings()
    job = plan_parts(expand_paths(paths), settings)
    whole = gather(job, partial(load_or_summarise, settings=settings), map).summary
    assert whole is not None

    def gathered(folder: Path) -> None:
        found = gather(
            job, partial(load_or_summarise, settings=settings, folder=str(folder)), map
        ).summary
        assert found is not None
        for name, t in whole.tallies.items():
            assert all(
                np.array_equal(getattr(t, c), getattr(found.tallies[name], c))
                for c in ("score", "count", "loss")
            )
        assert (found.losses, found.files, found.suspects) == (
            whole.losses,
            whole.files,
            whole.suspects,
        )

    def stored(folder: Path) -> bytes:
        files = {path.name: dict(np.load(path)) for path in sorted(folder.glob("*.npz"))}
        columns = [
            (name, key, a.tobytes())
            for name, found in files.items()
            for key, a in sorted(found.items())
        ]
        return repr(columns).encode()

    passed = every_point(gathered, gathered, stored, tmp_path, kill=kill)
    assert sum(name.startswith("rename") for name in passed) == 2


def labelled(path: Path, every: int) -> str:
    """Audited decisions that came back with their labels."""
    made = [json.loads(line) for line in path.read_text().splitlines()]
    asked = [row for row in made if row["audit"]]
    return "".join(
        json.dumps({**row, "correct": int(i % every > 0)}) + "\n" for i, row in enumerate(asked)
    )


@pytest.mark.parametrize("kill", KINDS)
def test_online_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kill: bool) -> None:
    """`decide` by an online policy into a file, with labels: decisions and state are those of an
    undisturbed run.
    """
    monkeypatch.setattr("howsure.formats.json_lines.READ_BLOCK_BYTES", 4_000)
    monkeypatch.setattr(
        "howsure.serving.journal.SAVE_SECONDS", 0.0
    )  # the state is saved with every batch
    start = OnlinePolicy.start(
        Policy("max_prob", 0.6), np.linspace(0.3, 1, 500), risk=0.1, audit=0.5
    )
    (tmp_path / "in.jsonl").write_text(rows(300))
    hs.save(start, tmp_path / "earlier.json")
    call(
        [
            "decide",
            tmp_path / "earlier.json",
            tmp_path / "in.jsonl",
            "-o",
            tmp_path / "earlier.jsonl",
            "-q",
        ]
    )
    (tmp_path / "labels.jsonl").write_text(labelled(tmp_path / "earlier.jsonl", 7))
    begun = (tmp_path / "earlier.json").read_bytes()
    (tmp_path / "in.jsonl").write_text(rows(500))

    def decided(folder: Path, *more: str) -> None:
        files = [folder / "online.json", tmp_path / "in.jsonl", "-o", folder / "out.jsonl"]
        call(["decide", *files, *more, "--labels", tmp_path / "labels.jsonl", "-q"])

    passed = every_point(
        decided,
        lambda folder: decided(folder, "--resume"),
        lambda folder: (folder / "out.jsonl").read_bytes() + (folder / "online.json").read_bytes(),
        tmp_path,
        kill=kill,
        ready=lambda folder: (folder / "online.json").write_bytes(begun),
    )
    assert sum(name.startswith("rename online.json") for name in passed) > 3


@pytest.mark.parametrize("kill", KINDS)
@pytest.mark.parametrize(
    ("every", "burst"),
    [
        pytest.param(1e9, False, id="rows, saved at the end"),
        pytest.param(0.0, True, id="bursts, saved with every batch"),
    ],
)
def test_watch_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kill: bool, every: float, burst: bool
) -> None:
    """`decide` with a watch into a file: once resumed, decisions and watch are those of an
    undisturbed run.
    """
    monkeypatch.setattr("howsure.formats.json_lines.READ_BLOCK_BYTES", 4_000)
    monkeypatch.setattr("howsure.serving.journal.SAVE_SECONDS", every)
    policy, rng = Policy("max_prob", 0.6), np.random.default_rng(5)
    hs.save(policy, tmp_path / "policy.json")
    hs.save(
        DriftMonitor.start(policy.decide(Predictions.from_confidence(rng.random(400)))),
        tmp_path / "watch.json",
    )
    sure = (
        np.concatenate([rng.random(150), rng.random(250) ** 4]).round(3).tolist()
    )  # it drifts on the way
    lines = [
        f'{{"id": "x{i}", "confidence": {c}, "scan": "s{i // 2}"}}\n' for i, c in enumerate(sure)
    ]
    (tmp_path / "in.jsonl").write_text("".join(lines))

    def decided(folder: Path, *more: str) -> None:
        files = [tmp_path / "policy.json", tmp_path / "in.jsonl", "-o", folder / "out.jsonl"]
        bursts = ["--burst", "scan"] if burst else []
        call(
            ["decide", *files, *more, *bursts, "--drift", folder / "watch.json", "-q"],
            ends=(0, None, 3),
        )

    passed = every_point(
        decided,
        lambda folder: decided(folder, "--resume"),
        lambda folder: (folder / "out.jsonl").read_bytes() + (folder / "watch.json").read_bytes(),
        tmp_path,
        kill=kill,
        ready=lambda folder: (folder / "watch.json").write_bytes(
            (tmp_path / "watch.json").read_bytes()
        ),
    )
    seen = hs.load(tmp_path / "whole" / "watch.json")
    assert (seen.output, seen.written, seen.seen) == ("out.jsonl", 400, 200 if burst else 400)
    assert "score" in seen.alarms
    assert sum(name == "rename watch.json" for name in passed) == (3 if every else 8)


def call(args: list[Any], ends: Sequence[int | None] = (0, None)) -> None:
    """A command; what it refuses is an error."""
    with pytest.raises(SystemExit) as ended:
        main([str(arg) for arg in args])
    if ended.value.code not in ends:
        raise InputError(f"exit {ended.value.code}")


@pytest.mark.slow
@pytest.mark.parametrize("kill", KINDS)
def test_study(tmp_path: Path, kill: bool) -> None:
    """A network of a study: checkpoints and predictions, each written through a temporary file."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    pytest.importorskip("PIL")
    from studies.runner import carry_out_one
    from studies.runs import Run
    from studies.settings import Settings as Training
    from studies.store import Store

    torch.set_num_threads(1)  # a child of fork has no threads
    quick = Training(
        data="digits", network="resnet-8", train_size=64, val_size=32, epochs=2, batch=32
    )
    run_of = Run("quick", quick)

    def trained(folder: Path) -> None:
        with Store(folder).claim(run_of):
            if not Store(folder).finished(run_of):
                carry_out_one(run_of, Path(), Store(folder))

    def written(folder: Path) -> bytes:
        with np.load(Store(folder).predictions(quick)) as file:
            return repr(
                [(name, file[name].tobytes()) for name in sorted(file) if name != "history_seconds"]
            ).encode()

    passed = every_point(trained, trained, written, tmp_path, kill=kill, savers=[(torch, "save")])
    assert (
        sum(name.startswith("rename") for name in passed) == 5
    )  # weights and state of two epochs, predictions
