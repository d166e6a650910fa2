"""Whatever is missing or of another type in a log: it is read, or refused in one sentence."""

import copy
import json
import random
import warnings
from pathlib import Path
from typing import Any

import pytest
from benchmarks.attack.logs import DECIDED, LOGS, SAMPLE, archive

import howsure as hs

ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1e400,
    "",
    "x",
    [],
    {},
    [1],
    {"a": 1},
    "1_0",
    [[]],
    10**400,
    "nan",
    -5.5,
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    below = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [path, *(place for key, one in below for place in places(one, (*path, key)))]


def broken(log: Any, rng: random.Random) -> Any:
    """The log with one to three of its values gone or replaced."""
    log = copy.deepcopy(log)
    for _ in range(rng.randint(1, 3)):
        path = rng.choice([place for place in places(log) if place] or [()])
        if not path:
            return log
        parent = log
        for key in path[:-1]:
            parent = parent[key]
        if rng.random() < 0.4:
            del parent[path[-1]]
        else:
            parent[path[-1]] = copy.deepcopy(rng.choice(ODD))
    return log


@pytest.mark.parametrize("name", LOGS)
def test_broken_log(name: str, tmp_path: Path) -> None:
    rng, path = random.Random(name), tmp_path / "log.json"
    read, refused = 0, list[str]()
    for _ in range(60):
        path.write_text(json.dumps(broken(LOGS[name], rng)))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a constant confidence, say
                read += hs.read(path).n > 0
        except hs.InputError as error:
            refused.append(str(error))
    assert read + len(refused) == 60
    assert len(refused) > 10
    assert not [sentence for sentence in refused if "\n" in sentence]


@pytest.mark.parametrize("name", LOGS)
def test_whole_log(name: str, tmp_path: Path) -> None:
    """The logs that are broken above are logs."""
    path = tmp_path / "log.json"
    path.write_text(json.dumps(LOGS[name]))
    assert hs.formats.read_log(path).accuracy == 1.0


def test_broken_decisions(tmp_path: Path) -> None:
    """A log of a decision model is read or refused, whatever stands in it."""
    rng, path, read, refused = random.Random(0), tmp_path / "log.jsonl", 0, list[str]()
    for _ in range(150):
        lines = [broken(DECIDED, rng), {**DECIDED, "id": "r2"}]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read += hs.read(path).n > 0
        except hs.InputError as error:
            refused.append(str(error))
    assert read + len(refused) == 150
    assert min(read, len(refused)) > 15
    assert not [sentence for sentence in refused if "\n" in sentence]


def test_broken_archive(tmp_path: Path) -> None:
    """The samples of an archive are put into an order, whatever their ids are."""
    rng, refused = random.Random(0), list[str]()
    for i in range(200):
        samples = [broken(SAMPLE, rng), {**SAMPLE, "id": ODD[i % len(ODD)]}]
        path = archive(
            tmp_path / "log.eval", {**LOGS["inspect"], "results": {}, "samples": samples}
        )
        try:
            assert hs.read(path).n > 0
        except hs.InputError as error:
            refused.append(str(error))
    assert 5 < len(refused) < 195
    assert not [sentence for sentence in refused if "\n" in sentence]


def test_an_archive_of_several_disks(tmp_path: Path) -> None:
    """The record before the end of a large archive says on how many it lies."""
    path = archive(tmp_path / "log.eval", LOGS["inspect"])
    raw = path.read_bytes()
    end = raw.rindex(b"PK\x05\x06")
    path.write_bytes(raw[:end] + b"PK\x06\x07" + bytes(12) + b"\x02\0\0\0" + raw[end:])
    with pytest.raises(hs.InputError, match=r"log\.eval is damaged or not complete"):
        hs.read(path)
