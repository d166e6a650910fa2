"""howsure app: writes the page that evaluates files in the browser.

The page is a folder of static files: Pyodide, the Python of the browser; howsure and what it needs;
and two small pages of HTML around them. What their worker calls stands at the end, `run_command`:
the command line itself, with what it printed.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from hashlib import sha256
from importlib import import_module
from importlib.resources import files
from io import BytesIO, StringIO
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypedDict, cast

import click

from howsure._core import strict_json
from howsure._core.checks import InputError
from howsure._core.file_access import replace_file
from howsure._core.text import listener
from howsure._core.version import __version__
from howsure.cli.common import READING_OPTIONS, list_reading_words, note, say
from howsure.cli.input_output import InputPath, OutputPath, PathCommand

if TYPE_CHECKING:
    from howsure.formats import FileProblem, ReadOptions

PYODIDE_VERSION = "0.28.3"
PYODIDE_RELEASE = f"https://cdn.jsdelivr.net/pyodide/v{PYODIDE_VERSION}/full/"
PYODIDE_FILES = {
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
}  # with their sha256

PURE_PACKAGES = ("howsure", "click", "jinja2", "markupsafe", "rich")
PACKAGE_SUFFIXES = (".py", ".j2", ".css", ".js", ".html", ".json", ".npz", ".typed")
UNUSED_FOLDERS = ("howsure/cli/static/", "howsure/torch/", "howsure/integrations/")
NUMPY_UNUSED = ("/tests/", "/include/", "_tests.cpython", "/_core/lib/", ".pyi", ".pyx", ".pxd")
SCIPY_FOLDERS = ("scipy/special/", "scipy/_lib/")
SCIPY_FILES = (
    "scipy/__init__.py",
    "scipy/__config__.py",
    "scipy/version.py",
    "scipy/_distributor_init.py",
)
SCIPY_UNUSED = (
    "/tests/",
    "cython_special",
    "_test_",
    "array_api_compat/torch",
    "array_api_compat/dask",
)
# scipy.special imports scipy.linalg for the roots of polynomials alone, which nothing here asks
# for.
EMPTY_LINALG = b'"""Left out: the page needs scipy.special only."""\n'
ZIP_DATE = (1980, 1, 1, 0, 0, 0)
MOST_CHOICES = 3  # ways to read a file that the page offers
PANDAS_READERS = {
    "parquet": "read_parquet",
    "pq": "read_parquet",
    "arrow": "read_feather",
    "feather": "read_feather",
    "ipc": "read_feather",
}


@click.command(cls=PathCommand)
@click.option("--to", "to", required=True, type=OutputPath(), help="The folder to write.")
@click.option(
    "--pyodide",
    type=InputPath(),
    envvar="HOWSURE_PYODIDE",
    help="A folder with Pyodide's files; without it (or HOWSURE_PYODIDE) they are downloaded from its release.",
)
@click.option(
    "--mirror",
    metavar="URL",
    help="Download Pyodide from here instead; hashes are checked all the same.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def command(to: str, pyodide: str | None, mirror: str | None, quiet: bool) -> None:
    """Write the page that evaluates files in the browser, where no byte leaves the machine.

    The folder holds static files only; any web server will do. The package itself runs there, in WebAssembly, in a
    frame that may connect to nothing.

    \b
    Examples:
      howsure app --to site && python -m http.server --directory site
      howsure app --to site --pyodide pyodide-0.28.3
    """
    sizes = write_app(to, pyodide, mirror, tell=lambda line: note(f"howsure: {line}", quiet))
    if not quiet:
        say(f"wrote {len(sizes)} files, {sum(sizes.values()) / 1e6:.1f} MB, to {to}")
        say(f"look at it:  python -m http.server --directory {to}")


def write_app(
    to: str, pyodide: str | None, mirror: str | None, tell: Callable[[str], object]
) -> dict[str, int]:
    """Write the page into a folder; returns the size of every file.

    Nothing is written unless everything is there. `tell` gets a line per download.
    """
    contents = build_app(read_pyodide(pyodide, mirror, tell))
    if Path(to).is_file():
        raise InputError(f"{to} is a file; --to names a folder.")
    # File by file under a temporary name, so that a folder that is being served has whole files.
    for name, content in contents.items():
        path = Path(to) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with replace_file(path) as temporary:
            temporary.write_bytes(content)
    return {name: len(content) for name, content in contents.items()}


def build_app(pyodide: Mapping[str, bytes]) -> dict[str, bytes]:
    """All files of the page by name."""
    # howsure as it runs here, and the pure Python that it needs.
    pure: dict[str, bytes] = {}
    for package in PURE_PACKAGES:
        root = Path(str(import_module(package).__file__)).parent
        for path in sorted(root.rglob("*")):
            name = PurePosixPath(package, *path.relative_to(root).parts)
            left_out = str(name).startswith(UNUSED_FOLDERS) or "__pycache__" in name.parts
            if path.suffix in PACKAGE_SUFFIXES and not left_out:
                pure[str(name)] = path.read_bytes()
    parts = {
        "pyodide.mjs": pyodide["pyodide.mjs"],
        "pyodide.asm.js": pyodide["pyodide.asm.js"],
        "pyodide.asm.wasm": pyodide["pyodide.asm.wasm"],
        "python_stdlib.zip": pyodide["python_stdlib.zip"],
        "numpy.zip": _pack_zip(_drop_unused(_unpack_wheel(pyodide, "numpy"), NUMPY_UNUSED)),
        "scipy.zip": _pack_zip(_select_scipy(_unpack_wheel(pyodide, "scipy"))),
        "libopenblas.zip": _pack_zip(_unpack_wheel(pyodide, "libopenblas")),
        "python.zip": _pack_zip(pure),
        "worker.js": _read_static("worker.js").encode(),
    }
    contents: dict[str, bytes] = {}
    manifest: list[dict[str, str | int]] = []
    for name, content in parts.items():
        contents[f"runtime/{name}"] = content
        digest = sha256(content).hexdigest()
        manifest.append({"name": name, "bytes": len(content), "sha256": digest})
    contents |= _build_pages()
    contents["manifest.json"] = strict_json.dump_line(
        {"howsure": __version__, "files": manifest}
    ).encode()
    # The service worker keeps this very version of all files for use without a network.
    version = sha256(b"".join(contents.values())).hexdigest()[:16]
    script = _read_static("sw.js").replace("VERSION", version)
    contents["sw.js"] = script.replace("NAMES", strict_json.dump_line([*contents, "./"])).encode()
    return contents


def _build_pages() -> dict[str, bytes]:
    """The outer page, which may load and sees no data, and the inner one, which sees data and may
    not load.
    """
    from howsure.report.render.page import hash_for_policy, read_assets

    style, script, guard = map(_read_static, ("frame.css", "frame.js", "guard.js"))
    report_style, report_script = read_assets()
    scripts = " ".join(map(hash_for_policy, (guard, script, report_script)))
    styles = " ".join(map(hash_for_policy, (style, report_style)))
    # The inner page shows reports, so the policy allows their style and script too.
    inner_policy = (
        "default-src 'none'; connect-src 'none'; frame-src 'none'; img-src data: blob:; "
        "worker-src blob:; base-uri 'none'; form-action 'none'; "
        f"script-src 'wasm-unsafe-eval' blob: {scripts}; style-src {styles}"
    )
    # A frame made by the outer page inherits its policy, which must allow all that the inner does.
    outer_policy = (
        "default-src 'none'; img-src data: blob:; base-uri 'none'; form-action 'none'; "
        "worker-src 'self' blob:; connect-src 'self'; frame-src 'none'; "
        f"script-src 'self' 'wasm-unsafe-eval' blob: {scripts}; style-src 'self' {styles}"
    )
    inner = _read_static("frame.html").replace("POLICY", inner_policy).replace("STYLE", style)
    # The look of the page is that of a report; its own style is what a report does not have.
    inner = inner.replace("LOOK", report_style).replace("GUARD", guard).replace("SCRIPT", script)
    return {
        "index.html": _read_static("index.html").replace("POLICY", outer_policy).encode(),
        "frame.html": inner.replace("RELEASE", __version__).encode(),
        "app.js": _read_static("app.js").encode(),
        "app.css": f"{report_style}\n{_read_static('app.css')}".encode(),
    }


def _read_static(name: str) -> str:
    return files("howsure.cli").joinpath("static", name).read_bytes().strip().decode()


# Pyodide


def read_pyodide(
    folder: str | None, mirror: str | None, tell: Callable[[str], object]
) -> dict[str, bytes]:
    """The files of Pyodide by name, from a folder or its release, each with the hash of the
    release.
    """
    contents: dict[str, bytes] = {}
    for name, expected in PYODIDE_FILES.items():
        if folder is not None:
            path = Path(folder) / name
            if not path.is_file():
                raise InputError(
                    f"{folder} holds no {name}; it must hold the files of Pyodide {PYODIDE_VERSION}."
                )
            content = path.read_bytes()
        else:
            tell(f"downloading {name} …")
            content = _download(mirror or PYODIDE_RELEASE, name)
        digest = sha256(content).hexdigest()
        if digest != expected:
            raise InputError(
                f"{name} is not that of Pyodide {PYODIDE_VERSION}: its sha256 is {digest}, expected {expected}."
            )
        contents[name] = content
    return contents


def _download(address: str, name: str) -> bytes:
    # Here, as the browser loads this module too and downloads nothing in Python.
    import urllib.error
    import urllib.request

    url = address.rstrip("/") + "/" + name
    # urlopen would read file:// as well.
    if not url.startswith(("https://", "http://")):
        raise InputError(
            f"{address} is no address that files can be downloaded from; it starts with https://."
        )
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.read()
    except (urllib.error.URLError, TimeoutError) as e:
        raise InputError(
            f"{url} cannot be downloaded ({getattr(e, 'reason', e)}). Give a folder that holds "
            f"Pyodide {PYODIDE_VERSION}: --pyodide FOLDER, or the variable HOWSURE_PYODIDE."
        ) from None


# Packages: what is left out makes the first visit shorter, all of it is downloaded then


def _drop_unused(wheel: Mapping[str, bytes], unused: Sequence[str]) -> dict[str, bytes]:
    """The files of a wheel whose names have none of these parts."""
    return {name: wheel[name] for name in wheel if not any(part in name for part in unused)}


def _select_scipy(wheel: Mapping[str, bytes]) -> dict[str, bytes]:
    """scipy.special and what it imports."""
    selected: dict[str, bytes] = {}
    for name, content in _drop_unused(wheel, SCIPY_UNUSED).items():
        needed = name in SCIPY_FILES or name.startswith(SCIPY_FOLDERS)
        if needed and name.endswith((".py", ".so")):
            selected[name] = content
    selected["scipy/linalg/__init__.py"] = EMPTY_LINALG
    return selected


def _unpack_wheel(pyodide: Mapping[str, bytes], start: str) -> dict[str, bytes]:
    archive = next(content for name, content in pyodide.items() if name.startswith(start))
    with zipfile.ZipFile(BytesIO(archive)) as file:
        names = [name for name in file.namelist() if not name.endswith("/")]
        return {name: file.read(name) for name in names}


def _pack_zip(contents: Mapping[str, bytes]) -> bytes:
    """A zip file; the same contents have the same bytes."""
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, content in contents.items():
            entry = zipfile.ZipInfo(name, date_time=ZIP_DATE)
            file.writestr(entry, content, zipfile.ZIP_DEFLATED, 9)
    return out.getvalue()


# What the page calls in its worker


class Button(TypedDict):
    """What a click does: reading options that are added, or the task that is chosen instead."""

    text: str
    options: Mapping[str, object]
    task: str


def run_command(
    arguments: Sequence[str],
    tell: Callable[[str], object],
    stage: Callable[[str], object] = len,
    mistake: Callable[[str], object] = len,
) -> tuple[int, str, str]:
    """Run `howsure` with these arguments: its exit code, standard output and standard error.

    `tell` gets the lines of standard error while they are written, `stage` what is being worked on,
    `mistake` the sentence and the choices of a user's mistake, as JSON.

    >>> run_command(["--version"], tell=str)[1].split(",")[0]
    'howsure'
    """
    from howsure.cli.main import main, mistakes

    # A report records the command that made it, which it reads from sys.argv.
    before, sys.argv = sys.argv, ["howsure", *arguments]
    out, err = StringIO(), _ForwardedText(tell)
    previous = listener.set(stage)
    previous_mistakes = mistakes.set(lambda e: mistake(strict_json.dump_line(_describe_mistake(e))))
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main(list(arguments))
    except SystemExit as e:
        return int(e.code or 0), out.getvalue(), err.getvalue()
    finally:
        mistakes.reset(previous_mistakes)
        listener.reset(previous)
        sys.argv = before


def _describe_mistake(error: Exception) -> dict[str, object]:
    """What the page says of a mistake, and the buttons below it."""
    from howsure.formats.assembly import SameRows

    if not isinstance(error, SameRows):
        return {"text": str(error), "choices": []}
    choices = [
        Button(text="Compare them: they are models", options={}, task="compare"),
        Button(
            text="Average them: they are members of an ensemble",
            options={"several": "ensemble"},
            task="",
        ),
        Button(
            text="Put them together: they are parts of one data set",
            options={"several": "parts"},
            task="",
        ),
    ]
    return {"text": f"{error.what} {error.got}. What are they?", "choices": choices}


def group_names(names: Sequence[str]) -> str:
    """Which files of the page are one, as JSON: the first name of each with all of them."""
    from howsure.formats.contents import group_files

    return strict_json.dump_line(group_files(names))


class ColumnRow(TypedDict):
    """One array, or the columns that belong together."""

    shown: str
    names: str
    shape: Sequence[int]
    dtype: str
    part: str


class FileCard(TypedDict):
    """What the page shows of a file; `judged` where it can be evaluated so."""

    path: str
    arguments: list[str]
    title: str
    receipt: str
    columns: list[ColumnRow]
    splits: Sequence[str]
    problems: list[dict[str, object]]
    choices: list[Button]
    unused: list[Button]
    judged: bool


def examine(name: str, given: str, others: Sequence[str]) -> str:
    """What the page shows of a file, as JSON.

    `given` are the reading options that were chosen for it, as JSON, and `labels`: the file of
    labels with the column to join by. Labels are looked for in the `others`.
    """
    from howsure.cli.questions import list_questions
    from howsure.predictions.read_options import ReadOptions

    fields = cast("dict[str, Any]", strict_json.loads(given))
    labels = fields.pop("labels", None)
    options = ReadOptions(**fields)
    card = FileCard(
        # A name that begins with a dash would be an option.
        path=f"./{name}" if name.startswith("-") else name,
        arguments=list_reading_words((), options, labels),
        title="",
        receipt="",
        columns=[],
        splits=(),
        problems=[],
        choices=[],
        unused=[],
        judged=False,
    )
    try:
        if list_questions([card["path"]], options) is None:
            _fill_card(card, options, labels, others)
        else:
            _fill_log_card(card, options, labels, others)
    except ModuleNotFoundError as e:
        # Tables are written by pandas, where Python is; they need no howsure there.
        stem, _, suffix = name.rpartition(".")
        line = f"import howsure as hs; hs.write(hs.read({name!r}), {f'{stem}.npz'!r})"
        reader = PANDAS_READERS.get(suffix.lower())
        if reader is not None:
            saved = f"{stem}.csv"
            line = f"import pandas; pandas.{reader}({name!r}).to_csv({saved!r}, index=False)"
        text = f"Reading {name} needs {e.name}, which a browser does not have."
        text += f" Save it as npz, csv or jsonl, in Python: {line}"
        card["problems"] = [{"text": text, "stops": True}]
    except InputError as e:
        card["problems"] = [{"text": str(e), "stops": True}]
    return strict_json.dump_line(card)


def _fill_card(
    card: FileCard, options: ReadOptions, labels: tuple[str, str] | None, others: Sequence[str]
) -> None:
    """What the file holds, what it is taken for, and what its unused columns may be."""
    from howsure.cli.asking import phrase_choice
    from howsure.cli.doctor import examine_file, group_items, name_group, read_first_rows
    from howsure.formats.column_names import plan_wanted
    from howsure.formats.diagnosis import DECISIONS_ONLY
    from howsure.formats.receipts import build_receipt, find_unused

    description, problems = examine_file(card["path"], options, labels)
    if description is not None:
        card["title"] = description.format
        card["splits"] = description.splits
        for group in group_items(description.items):
            column = ColumnRow(
                shown=name_group(group),
                names=",".join(item.name for item in group),
                shape=group[0].shape,
                dtype=group[0].dtype,
                part=group[0].part,
            )
            card["columns"].append(column)
    unread = [p for p in problems if p.stops or p.anyway == DECISIONS_ONLY]
    card["judged"] = not unread
    if unread:
        card["choices"] = _list_choices(card["path"], options, others)
    else:
        named = [split for split in card["splits"] if split]
        if options.split is None and len(named) > 1:
            # The one that the page proposes to evaluate.
            options = replace(options, split=named[0])
            if "test" in named:
                options = replace(options, split="test")
        contents, resolved = read_first_rows(card["path"], options)
        receipt = build_receipt(contents, resolved)
        card["receipt"] = replace(receipt, unused={}).describe()
        plan = plan_wanted(contents, resolved)[1]
        for name, part in find_unused(contents, plan, resolved).items():
            proposal = options.with_names(**{part: name})
            if part == "mc":
                proposal = replace(options, mc=True)
            text = phrase_choice(proposal, options)
            card["unused"].append(_make_choice(text, replace(proposal, split=None)))
    card["problems"] = [_phrase_problem(p, card, stops=p in unread) for p in problems]


def _fill_log_card(
    card: FileCard, options: ReadOptions, labels: tuple[str, str] | None, others: Sequence[str]
) -> None:
    """Of a decision model's log."""
    from howsure.formats.logs.decision_survey import survey_log

    path = Path(card["path"])
    survey = survey_log(path, options, labels)
    asked = [f"{question.name!r} ({question.answers:,} answers)" for question in survey.questions]
    card["title"] = survey.title
    card["receipt"] = "; ".join([f"questions {', '.join(asked)}", *survey.notes])
    card["judged"] = not any(problem.stops for problem in survey.problems)
    for other in others:
        if card["judged"]:
            break
        if not any(p.stops for p in survey_log(path, options, (other, "id")).problems):
            card["choices"].append(_choose_labels(other, "id"))
    card["problems"] = [_phrase_problem(p, card, stops=p.stops) for p in survey.problems]


def _phrase_problem(problem: FileProblem, card: FileCard, *, stops: bool) -> dict[str, object]:
    """A sentence for those who have a page and no command line."""
    from howsure.formats.contents import NO_FIX

    # The page names the file above.
    name = Path(card["path"]).name
    where = problem.where.removeprefix(name).removeprefix(", ")
    text = problem.what
    if where:
        text = f"{where}: {problem.what}"
    fix = problem.fix
    if stops and "--labels" in fix:
        fix = "drop the file of the labels too"
    elif stops and card["columns"] and "--name" in fix:
        fix = "say in the table below what each column is"
    # What the buttons do need not be said.
    if fix != NO_FIX and not (stops and card["choices"]):
        text += f"; {fix}"
    if not text.startswith(name):
        text = text[:1].upper() + text[1:]
    return {"text": f"{text.removesuffix('.')}.", "stops": stops}


def _list_choices(path: str, options: ReadOptions, others: Sequence[str]) -> list[Button]:
    """Ways to read a file that cannot be judged as it is; each was tried."""
    from howsure.cli.asking import phrase_choice
    from howsure.formats.proposals import find_label_file, list_proposals

    choices: list[Button] = []
    try:
        labels = find_label_file(Path(path), others, options)
    except InputError:
        labels = None  # the file itself cannot be opened
    if labels is not None:
        choices.append(_choose_labels(*labels))
    for proposal in islice(list_proposals(Path(path), options), MOST_CHOICES):
        choices.append(_make_choice(phrase_choice(proposal, options), proposal))
    return choices


def _choose_labels(file: str, join: str) -> Button:
    text = f"Take the labels from {file}, joined by {join}"
    return Button(text=text, options={"labels": (file, join)}, task="")


def _make_choice(text: str, proposal: ReadOptions) -> Button:
    changed: dict[str, object] = {}
    for field in READING_OPTIONS:
        value = getattr(proposal, field)
        if field in ("names", "where") or value != getattr(type(proposal), field):
            changed[field] = value
    return Button(text=text, options=changed, task="")


def run_example(source: str) -> str:
    """Run an example of the gallery: what it printed.

    >>> run_example("print(1 + 1)")
    '2\\n'
    """
    with redirect_stdout(StringIO()) as out:
        exec(compile(source, "example", "exec"), {"__name__": "__main__"})
    return out.getvalue()


class _ForwardedText(StringIO):
    """Text that is also handed on line by line while it is written."""

    def __init__(self, tell: Callable[[str], object]):
        super().__init__()
        self._tell = tell

    def write(self, s: str, /) -> int:
        if s.strip():
            self._tell(s.strip())
        return super().write(s)
