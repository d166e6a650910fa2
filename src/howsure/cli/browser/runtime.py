"""Pyodide, the Python of the browser: found in a folder, or taken from its release; checked by hash
either way.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from howsure._core.check import InputError

VERSION = "0.28.3"
RELEASE = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/"
FILES = {
    "pyodide.mjs": "635a6da3218fe4e5668da595acfe8b5ce77453d597d602f19a423dd250653441",
    "pyodide.asm.js": "b22e5831eade9ff10e6fe2c811c68688cd91f10154377b4f80debcf5bafa1e56",
    "pyodide.asm.wasm": "5effb6a1a6cc4a1a85bec4622701aa797c031e1de923cbbaf2ad47abdc4ab325",
    "python_stdlib.zip": "71fee17f88a6260ec8c9c7c063533ee59c021fdc88a1ce76247378d3c4a35f4c",
    "numpy-2.2.5-cp313-cp313-pyodide_2025_0_wasm32.whl": (
        "3db3c4f3e0448f4d62a85c262692f1260ccd8a91335442bd2442f21ffeddb558"
    ),
    "scipy-1.14.1-cp313-cp313-pyodide_2025_0_wasm32.whl": (
        "6c4277bb1902f2064f5f4bd0ffbea67cf9aaf89a3fdc49e9ac1e078d9b574ef0"
    ),
    "libopenblas-0.3.26.zip": "15c2c82b0fdfdde83a81190f35f5f4a0d15bf236a7e93944c433ae5ac6bf3ee5",
}


def runtime(
    folder: str | None, mirror: str | None, tell: Callable[[str], object]
) -> dict[str, bytes]:
    """The files of the runtime by name, each with the hash of the release."""
    return {name: _checked(name, _content(name, folder, mirror or RELEASE, tell)) for name in FILES}


def _content(name: str, folder: str | None, address: str, tell: Callable[[str], object]) -> bytes:
    if folder is not None:
        path = Path(folder) / name
        if not path.is_file():
            raise InputError(
                f"{folder} holds no {name}; it must hold the files of Pyodide {VERSION}."
            )
        return path.read_bytes()
    tell(f"downloading {name} …")
    where = address.rstrip("/") + "/" + name
    if not where.startswith(("https://", "http://")):
        raise InputError(
            f"{address} is no address that files can be downloaded from; it starts with https://."
        )
    try:
        with urllib.request.urlopen(where, timeout=60) as answer:
            return answer.read()
    except (urllib.error.URLError, TimeoutError) as e:
        raise InputError(
            f"{where} cannot be downloaded ({getattr(e, 'reason', e)}). Give a folder that holds Pyodide {VERSION}: "
            "--pyodide FOLDER, or the variable HOWSURE_PYODIDE."
        ) from None


def _checked(name: str, content: bytes) -> bytes:
    found = sha256(content).hexdigest()
    if found != FILES[name]:
        raise InputError(
            f"{name} is not that of Pyodide {VERSION}: its sha256 is {found}, expected {FILES[name]}."
        )
    return content
