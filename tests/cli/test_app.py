"""`howsure app`: where the runtime comes from, and that nothing is written unless everything is
there.
"""

import functools
import http.server
import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import howsure as hs
from conftest import shared_or_skip
from howsure import InputError
from howsure.cli.app import (
    PYODIDE_FILES,
    PYODIDE_RELEASE,
    PYODIDE_VERSION,
    build_app,
    examine,
    read_pyodide,
    run_command,
    write_app,
)


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A server on this machine with files that stand for a release."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/", tmp_path
    server.shutdown()
    server.server_close()


def test_the_real_release_is_taken_from_a_server(mirror: tuple[str, Path]):
    address, folder = mirror
    for name in PYODIDE_FILES:
        (folder / name).symlink_to(shared_or_skip(f"pyodide/{name}"))
    told: list[str] = []
    found = read_pyodide(None, address, told.append)
    assert {name: len(found[name]) for name in PYODIDE_FILES} == {
        name: (folder / name).stat().st_size for name in PYODIDE_FILES
    }
    assert told == [f"downloading {name} …" for name in PYODIDE_FILES]


def test_other_bytes_are_refused_and_nothing_is_written(mirror: tuple[str, Path], tmp_path: Path):
    address, folder = mirror
    for name in PYODIDE_FILES:
        (folder / name).write_bytes(b"not it")
    with pytest.raises(InputError, match=r"pyodide\.mjs is not that of Pyodide .*: its sha256 is"):
        write_app(str(tmp_path / "site"), None, address, tell=str)
    assert not (tmp_path / "site").exists()


def test_a_missing_file_says_what_to_give_instead(mirror: tuple[str, Path]):
    with pytest.raises(
        InputError,
        match=r"cannot be downloaded .*--pyodide FOLDER, or the variable HOWSURE_PYODIDE",
    ):
        read_pyodide(None, mirror[0], tell=str)


def test_a_folder_without_the_runtime(tmp_path: Path):
    with pytest.raises(InputError, match=r"holds no pyodide\.mjs"):
        read_pyodide(str(tmp_path), None, tell=str)


def test_only_addresses_are_downloaded_from(tmp_path: Path):
    with pytest.raises(InputError, match="starts with https://"):
        read_pyodide(None, tmp_path.as_uri(), tell=str)


def test_two_pages_are_the_same_bytes():
    content = read_pyodide(str(shared_or_skip("pyodide")), None, tell=str)
    first = build_app(content)
    assert first == build_app(content)
    assert b"connect-src 'none'" in first["frame.html"]
    assert b"POLICY" not in first["frame.html"] + first["index.html"]


def test_the_release_is_asked_for_over_https():
    assert f"https://cdn.jsdelivr.net/pyodide/v{PYODIDE_VERSION}/full/" == PYODIDE_RELEASE


def look(name: str, others: Sequence[str] = (), **options: object) -> dict[str, Any]:
    return json.loads(examine(name, json.dumps(options), others))


def test_a_log_is_described_by_what_is_read_of_it(monkeypatch: pytest.MonkeyPatch):
    """Its raw fields have telling names too, which play no part."""
    folder = "data2/llm_lmeval_winogrande_old"
    name = "winogrande_llama2-7b_write_out_info.json"
    monkeypatch.chdir(shared_or_skip(folder))
    found = look(name)
    receipt = hs.read(name).receipt
    assert receipt is not None
    assert found["judged"]
    assert found["receipt"] in str(receipt).replace(f" of {receipt.classes} classes", "")
    assert found["unused"] == []
    assert json.loads(run_command(["doctor", name, "--json"], tell=str)[1])[0]["unused"] == {}


def test_the_labels_of_a_decision_log_are_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(shared_or_skip("data2/llm_decisions/decidebench"))
    name, labels = "results_v1.0_jev.first26.jsonl", "labels_action_review.csv"
    (problem,) = look(name)["problems"]
    assert problem["text"].endswith("drop the file of the labels too.")
    (choice,) = look(name, [labels])["choices"]
    assert choice["text"] == f"Take the labels from {labels}, joined by id"
    found = look(name, [labels], **choice["options"])
    assert (found["judged"], found["problems"]) == (True, [])
    call = ["evaluate", name, *found["arguments"], "--json", "--quiet"]
    code, out, err = run_command(call, tell=str)
    assert (code, json.loads(out)["n"]) == (0, 17), err
