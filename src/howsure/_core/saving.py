"""save, load: calibrators, policies, reports and comparisons as versioned JSON.

Reports and comparisons are their own JSON (`docs/schema`). Any other file is `{"howsure": version,
"schema": 1, "digest": "sha256:...", "value": {"class": ..., field: ...}}`. The digest covers
everything else in canonical form, so a file that was changed by accident is refused; so are unknown
schemas, classes and fields, and values of the wrong type or outside their range. Loading executes
nothing from the file: classes come from the fixed table below. Whoever changes a file on purpose
can write the right digest too. Where the environment holds a secret in HOWSURE_KEY, the digest is a
signature with that key (HMAC-SHA-256), and only files that carry it are loaded.

To make a class savable: write it as a `frozen` class whose fields are None, bool, int, float, str,
tuples, dicts with string keys, NumPy arrays (bool, int64, float64) or other savable classes,
annotated with types that exist at run time (not under `if TYPE_CHECKING`); check the values in
`__post_init__`; add its name and module to `SAVABLE`. Fields with `init=False` are left out.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from importlib import import_module
from pathlib import Path
from typing import Any

from howsure._core import json
from howsure._core.atomic import write_text
from howsure._core.check import InputError

__all__ = ["load", "save"]

SCHEMA = 1
KEY = "HOWSURE_KEY"  # of the environment, with a secret
SIGNED = "hmac-sha256:"
DIFFERS = "its digest does not match its content: the file was changed or damaged"
LARGEST = 1 << 28  # bytes of a file: a matrix of 1,000 classes takes 20 MB
SAVABLE = {
    "Basis": "howsure.policies",
    "Beta": "howsure.calibrators",
    "Cascade": "howsure.policies",
    "CascadeResult": "howsure.policies",
    "Dirichlet": "howsure.calibrators",
    "DriftMonitor": "howsure.policies",
    "Evidence": "howsure.policies",
    "Fitted": "howsure.calibrators",
    "Guarantee": "howsure.policies",
    "GuaranteeMonitor": "howsure.serving",
    "HistogramBinning": "howsure.calibrators",
    "Identity": "howsure.calibrators",
    "Isotonic": "howsure.calibrators",
    "MatrixScaling": "howsure.calibrators",
    "OnlinePolicy": "howsure.policies",
    "PerLabel": "howsure.calibrators",
    "Platt": "howsure.calibrators",
    "Policy": "howsure.policies",
    "Temperature": "howsure.calibrators",
    "VectorScaling": "howsure.calibrators",
}
# Classes that 0.3 renamed: what they were, what they are called now, and what makes a new one.
RENAMED = {
    "Policy": ("a policy", "'promise' 'guarantee'", "howsure threshold -o"),
    "Watch": ("a drift watch", "it DriftMonitor", "howsure threshold --drift"),
    "WatchedPromise": (
        "a watched promise",
        "it GuaranteeMonitor",
        "howsure threshold --guarantee",
    ),
}
KEYS = {"howsure", "schema", "digest", "value"}
DOCUMENTS = {
    "Report": "metrics",
    "Comparison": "comparison",
    "Monitor": "monitor",
}  # what has a JSON of its own, and the key that marks it


def save(value: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted calibrator, a policy, a report or a comparison as JSON that `load` reads back
    bit for bit.

    The file appears whole or not at all: it is written under a temporary name and renamed.

    >>> from howsure.calibrators import Temperature
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Temperature(1.7), f"{folder}/c.json")
    ...     load(f"{folder}/c.json").temperature
    1.7
    """
    name = type(value).__name__
    if name in DOCUMENTS and type(value) is _document(name):
        value.to_json(path)
        return
    content: dict[str, json.Plain] = {
        "howsure": _version(),
        "schema": SCHEMA,
        "value": json.encode(value, _find),
    }
    write_text(
        path, json.pretty({**content, "digest": _digest(content), "value": content["value"]})
    )


def load(path: str | os.PathLike[str]) -> Any:
    """Return what `save` wrote; raise where the file was changed, is of another schema or is not
    ours.

    >>> load("nowhere.json")
    Traceback (most recent call last):
    howsure.InputError: nowhere.json cannot be loaded: No such file or directory.
    """
    try:
        return _read(_text(Path(path)))
    except RecursionError:
        raise InputError(f"{os.fspath(path)} cannot be loaded: it is nested too deeply.") from None
    except ValueError as e:  # InputError included; json's own error too
        raise InputError(f"{os.fspath(path)} cannot be loaded: {str(e).rstrip('.')}.") from None


def saved_as(path: str | os.PathLike[str]) -> tuple[str, str]:
    """The class of a saved value and its digest, which names this very value."""
    document = json.loads(_text(Path(path)))
    if (
        not isinstance(document, dict)
        or document.keys() != KEYS
        or not isinstance(document["value"], dict)
    ):
        raise InputError(f"{os.fspath(path)} is not a file that howsure saved.")
    return str(document["value"].get("class")), str(document["digest"]).rpartition(":")[2]


def _version() -> str:
    return import_module(
        "howsure"
    ).__version__  # by name: the package itself stands above this module


def _document(name: str) -> Any:
    return getattr(import_module("howsure"), name)


def _find(name: str) -> type:
    """The class of that name, from the fixed table."""
    if name not in SAVABLE:
        raise InputError(f"{name!r} is not a class that can be saved or loaded")
    return getattr(import_module(SAVABLE[name]), name)


def _digest(content: dict[str, json.Plain]) -> str:
    text, key = json.canonical(content).encode("ascii"), os.environ.get(KEY, "")
    if key:
        return (
            SIGNED
            + hmac.new(key.encode("utf-8", "surrogateescape"), text, hashlib.sha256).hexdigest()
        )
    return "sha256:" + hashlib.sha256(text).hexdigest()


def _check_digest(found: json.Plain, content: dict[str, json.Plain]) -> None:
    signed, key = isinstance(found, str) and found.startswith(SIGNED), bool(os.environ.get(KEY))
    if key and not signed:
        raise InputError(
            f"it is not signed, and {KEY} is set. Save it again with the key, or unset {KEY}"
        )
    if signed and not key:
        raise InputError(f"it is signed. Set {KEY} to the key that it was saved with")
    if not isinstance(found, str) or not hmac.compare_digest(
        found.encode(), _digest(content).encode()
    ):
        what = "its signature does not belong to its content and this key" if key else DIFFERS
        raise InputError(f"{what}. Save it again")


def _read(text: str) -> Any:
    document = json.loads(text)
    for name, mark in DOCUMENTS.items():
        if isinstance(document, dict) and mark in document and "digest" not in document:
            return _document(name).from_json(text)
    if not isinstance(document, dict) or "howsure" not in document or "schema" not in document:
        raise InputError("it is not a file that howsure saved")
    if type(document["schema"]) is not int or document["schema"] != SCHEMA:
        raise InputError(
            f"it has schema {document['schema']!r}, written by howsure {document['howsure']!r}; "
            f"this is howsure {_version()}, which reads schema {SCHEMA}. Use a matching version"
        )
    if document.keys() != KEYS:
        raise InputError(f"it needs exactly the keys {sorted(KEYS)}, and has {sorted(document)}")
    _check_digest(document.pop("digest"), document)
    _refuse_renamed(document["value"])
    return json.decode(document["value"], _find)


def _refuse_renamed(value: json.Plain) -> None:
    """Raise for a state with the names of 0.2; an online policy holds a policy inside."""
    if not isinstance(value, dict):
        return
    name = value.get("class")
    if name in ("Watch", "WatchedPromise") or (name == "Policy" and "promise" in value):
        what, new, command = RENAMED[str(name)]
        raise InputError(
            f"it holds {what} of howsure 0.2 or older, and 0.3 calls {new}. "
            f"Start a new one with {command}"
        )
    _refuse_renamed(value.get("policy"))


def _text(path: Path) -> str:
    try:
        if path.exists() and not path.is_dir() and not path.is_file():
            raise InputError("it is a pipe or a device; a file is needed")
        if path.is_file() and path.stat().st_size > LARGEST:
            raise InputError(f"it has {path.stat().st_size:,} bytes; at most {LARGEST:,} are read")
        return path.read_bytes().decode("utf-8")
    except OSError as e:
        raise InputError(e.strerror or str(e)) from None
    except UnicodeDecodeError:
        raise InputError("it is not a text file; howsure saves JSON") from None
