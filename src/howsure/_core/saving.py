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

from howsure._core import strict_json
from howsure._core.checks import InputError
from howsure._core.file_access import write_text
from howsure._core.strict_json import Plain

__all__ = ["load", "save"]

SAVED_SCHEMA = 1
KEY_VARIABLE = "HOWSURE_KEY"  # of the environment, with a secret
SIGNATURE_PREFIX = "hmac-sha256:"
SAVED_FILE_BYTES = 1 << 28  # of a file: a matrix of 1,000 classes takes 20 MB
SAVABLE = {
    "Asked": "howsure.predictions.read_options",
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
    "ReadOptions": "howsure.predictions.read_options",
    "SecondOpinion": "howsure.calibrators",
    "StructuredScaling": "howsure.calibrators",
    "Suggestions": "howsure.policies",
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
DOCUMENT_KEYS = {"howsure", "schema", "digest", "value"}
# What has a JSON of its own, and the key that marks it.
OWN_JSON = {"Report": "metrics", "Comparison": "comparison", "Monitor": "monitor"}


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
    if name in OWN_JSON and type(value) is _find_public(name):
        value.to_json(path)
        return
    encoded = strict_json.encode(value, _find_savable)
    head: dict[str, Plain] = {"howsure": _find_public("__version__"), "schema": SAVED_SCHEMA}
    digest = compute_digest({**head, "value": encoded})
    write_text(path, strict_json.dump_pretty({**head, "digest": digest, "value": encoded}))


def load(path: str | os.PathLike[str]) -> Any:
    """Return what `save` wrote; raise where the file was changed, is of another schema or is not
    ours.

    >>> load("nowhere.json")
    Traceback (most recent call last):
    howsure.InputError: nowhere.json cannot be loaded: No such file or directory.
    """
    try:
        text = _read_saved_text(Path(path))
        document = strict_json.loads(text)
        if not isinstance(document, dict):
            raise InputError("it is not a file that howsure saved")
        for name, mark in OWN_JSON.items():
            if mark in document and "digest" not in document:
                return _find_public(name).from_json(text)
        if "howsure" not in document or "schema" not in document:
            raise InputError("it is not a file that howsure saved")
        schema = document["schema"]
        if type(schema) is not int or schema != SAVED_SCHEMA:
            this = (
                f"this is howsure {_find_public('__version__')}, which reads schema {SAVED_SCHEMA}"
            )
            raise InputError(
                f"it has schema {schema!r}, written by howsure {document['howsure']!r}; "
                f"{this}. Use a matching version"
            )
        if document.keys() != DOCUMENT_KEYS:
            raise InputError(
                f"it needs exactly the keys {sorted(DOCUMENT_KEYS)}, and has {sorted(document)}"
            )
        _check_digest(document.pop("digest"), document)
        _refuse_renamed(document["value"])
        return strict_json.decode(document["value"], _find_savable)
    except RecursionError:
        raise InputError(f"{os.fspath(path)} cannot be loaded: it is nested too deeply.") from None
    except ValueError as e:  # InputError included; json's own error too
        raise InputError(f"{os.fspath(path)} cannot be loaded: {str(e).rstrip('.')}.") from None


def identify_saved(path: str | os.PathLike[str]) -> tuple[str, str]:
    """The class of a saved value and its digest, which names this very value."""
    document = strict_json.loads(_read_saved_text(Path(path)))
    if isinstance(document, dict) and document.keys() == DOCUMENT_KEYS:
        value = document["value"]
        if isinstance(value, dict):
            return str(value.get("class")), str(document["digest"]).rpartition(":")[2]
    raise InputError(f"{os.fspath(path)} is not a file that howsure saved.")


def _find_public(name: str) -> Any:
    # By name, and when it is asked for: the package itself stands above this module.
    return getattr(import_module("howsure"), name)


def _find_savable(name: str) -> type:
    """The class of that name, from the fixed table."""
    if name not in SAVABLE:
        raise InputError(f"{name!r} is not a class that can be saved or loaded")
    return getattr(import_module(SAVABLE[name]), name)


def _refuse_renamed(value: Plain) -> None:
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


def _read_saved_text(path: Path) -> str:
    try:
        if path.exists() and not path.is_dir() and not path.is_file():
            raise InputError("it is a pipe or a device; a file is needed")
        if path.is_file() and path.stat().st_size > SAVED_FILE_BYTES:
            size = path.stat().st_size
            raise InputError(f"it has {size:,} bytes; at most {SAVED_FILE_BYTES:,} are read")
        return path.read_bytes().decode("utf-8")
    except OSError as e:
        raise InputError(e.strerror or str(e)) from None
    except UnicodeDecodeError:
        raise InputError("it is not a text file; howsure saves JSON") from None


def compute_digest(content: dict[str, Plain]) -> str:
    text = strict_json.dump_canonical(content).encode("ascii")
    key = os.environ.get(KEY_VARIABLE, "").encode("utf-8", "surrogateescape")
    if key:
        return SIGNATURE_PREFIX + hmac.new(key, text, hashlib.sha256).hexdigest()
    return "sha256:" + hashlib.sha256(text).hexdigest()


def _check_digest(digest: Plain, content: dict[str, Plain]) -> None:
    if not isinstance(digest, str):
        digest = ""
    signed = digest.startswith(SIGNATURE_PREFIX)
    has_key = bool(os.environ.get(KEY_VARIABLE))
    if has_key and not signed:
        raise InputError(
            f"it is not signed, and {KEY_VARIABLE} is set. "
            f"Save it again with the key, or unset {KEY_VARIABLE}"
        )
    if signed and not has_key:
        raise InputError(f"it is signed. Set {KEY_VARIABLE} to the key that it was saved with")
    # In constant time: how long it takes must not tell how much of a forged signature is right.
    if hmac.compare_digest(digest.encode(), compute_digest(content).encode()):
        return
    what = "its digest does not match its content: the file was changed or damaged"
    if has_key:
        what = "its signature does not belong to its content and this key"
    raise InputError(f"{what}. Save it again")
