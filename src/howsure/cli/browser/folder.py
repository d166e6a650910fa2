"""The static files of the page: the runtime, the packages, and three small pages of HTML."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from hashlib import sha256
from importlib import import_module
from importlib.resources import files
from io import BytesIO
from pathlib import Path, PurePosixPath

from howsure._core import json
from howsure._core.atomic import replacing
from howsure._core.check import InputError
from howsure._core.version import __version__
from howsure.cli.browser.runtime import runtime

PACKAGES = ("howsure", "click", "jinja2", "markupsafe", "rich")
KEPT = (".py", ".j2", ".css", ".js", ".html", ".json", ".npz", ".typed")
SPECIAL = ("scipy/special/", "scipy/_lib/")
TOP = ("scipy/__init__.py", "scipy/__config__.py", "scipy/version.py", "scipy/_distributor_init.py")
NOT_USED = (
    "/tests/",
    "cython_special",
    "_test_",
    "array_api_compat/torch",
    "array_api_compat/dask",
)
DATE = (1980, 1, 1, 0, 0, 0)
# scipy.special imports scipy.linalg for the roots of polynomials alone, which nothing here asks
# for.
LINALG = '"""Left out: the page needs scipy.special only."""\n'
OUTSIDE = "default-src 'none'; img-src data: blob:; base-uri 'none'; form-action 'none'; worker-src 'self' blob:; "


def write(
    to: str, pyodide: str | None, mirror: str | None, tell: Callable[[str], object]
) -> dict[str, int]:
    """Write the page into a folder; returns the size of every file. Nothing is written unless
    everything is there.
    """
    made = page(runtime(pyodide, mirror, tell))
    if Path(to).is_file():
        raise InputError(f"{to} is a file; --to names a folder.")
    for name, content in made.items():
        path = Path(to) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_bytes(content)
    return {name: len(content) for name, content in made.items()}


def page(pyodide: Mapping[str, bytes]) -> dict[str, bytes]:
    """All files of the page by name."""
    parts = {
        "pyodide.mjs": pyodide["pyodide.mjs"],
        "pyodide.asm.js": pyodide["pyodide.asm.js"],
        "pyodide.asm.wasm": pyodide["pyodide.asm.wasm"],
        "python_stdlib.zip": pyodide["python_stdlib.zip"],
        "numpy.zip": _packed(_numpy(_unpacked(pyodide, "numpy"))),
        "scipy.zip": _packed(_special(_unpacked(pyodide, "scipy"))),
        "libopenblas.zip": _packed(_unpacked(pyodide, "libopenblas")),
        "python.zip": _packed(_pure()),
        "worker.js": _static("worker.js"),
    }
    listed = [
        {"name": n, "bytes": len(c), "sha256": sha256(c).hexdigest()} for n, c in parts.items()
    ]
    manifest = json.line({"howsure": __version__, "files": listed}).encode()
    made = {f"runtime/{name}": content for name, content in parts.items()}
    made |= _pages() | {"manifest.json": manifest}
    names = json.line([*made, "./"])
    version = sha256(b"".join(made.values())).hexdigest()[:16]
    script = _static("sw.js").decode().replace("VERSION", version).replace("NAMES", names)
    return made | {"sw.js": script.encode()}


def _pages() -> dict[str, bytes]:
    """The outer page, which may load and sees no data, and the inner one, which sees data and may
    not load.
    """
    from howsure.render.html import assets, digest

    style, script, guard = (
        _static(name).decode() for name in ("frame.css", "frame.js", "guard.js")
    )
    report_style, report_script = assets()
    scripts, styles = (
        [digest(text) for text in of]
        for of in ((guard, script, report_script), (style, report_style))
    )
    inner = (
        " ".join(["script-src 'wasm-unsafe-eval' blob:", *scripts])
        + "; "
        + " ".join(["style-src", *styles])
    )
    both = inner.replace("script-src", "script-src 'self'").replace("style-src", "style-src 'self'")
    closed = "default-src 'none'; connect-src 'none'; frame-src 'none'; img-src data: blob:; worker-src blob:; "
    frame = _static("frame.html").decode()
    frame = frame.replace("POLICY", closed + "base-uri 'none'; form-action 'none'; " + inner)
    frame = (
        frame.replace("STYLE", style)
        .replace("GUARD", guard)
        .replace("SCRIPT", script)
        .replace("RELEASE", __version__)
    )
    outer = (
        _static("index.html")
        .decode()
        .replace("POLICY", f"{OUTSIDE}connect-src 'self'; frame-src 'none'; {both}")
    )
    return {
        "index.html": outer.encode(),
        "frame.html": frame.encode(),
        "app.js": _static("app.js"),
        "app.css": _static("app.css"),
    }


def _static(name: str) -> bytes:
    return files("howsure.cli.browser").joinpath("static", name).read_bytes().strip()


def _pure() -> dict[str, bytes]:
    """howsure as it runs here, and the pure Python that it needs."""
    found: dict[str, bytes] = {}
    for name in PACKAGES:
        root = Path(str(import_module(name).__file__)).parent
        for path in sorted(root.rglob("*")):
            inside = PurePosixPath(name, *path.relative_to(root).parts)
            if path.suffix in KEPT and "__pycache__" not in inside.parts:
                found[str(inside)] = path.read_bytes()
    return found


def _numpy(wheel: dict[str, bytes]) -> dict[str, bytes]:
    """NumPy without what only its developers use."""
    unused = ("/tests/", "/include/", "_tests.cpython", "/_core/lib/", ".pyi", ".pyx", ".pxd")
    return {
        name: content for name, content in wheel.items() if not any(part in name for part in unused)
    }


def _special(wheel: dict[str, bytes]) -> dict[str, bytes]:
    """scipy.special and what it imports."""
    kept = {
        name: content
        for name, content in wheel.items()
        if (name in TOP or name.startswith(SPECIAL))
        and name.endswith((".py", ".so"))
        and not any(part in name for part in NOT_USED)
    }
    return kept | {"scipy/linalg/__init__.py": LINALG.encode()}


def _unpacked(pyodide: Mapping[str, bytes], start: str) -> dict[str, bytes]:
    archive = next(content for name, content in pyodide.items() if name.startswith(start))
    with zipfile.ZipFile(BytesIO(archive)) as file:
        return {name: file.read(name) for name in file.namelist() if not name.endswith("/")}


def _packed(content: Mapping[str, bytes]) -> bytes:
    """A zip file; the same content has the same bytes."""
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, data in content.items():
            file.writestr(zipfile.ZipInfo(name, DATE), data, zipfile.ZIP_DEFLATED, 9)
    return out.getvalue()
