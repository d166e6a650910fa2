"""Build the site from nothing: run its code, make its pages, check its links.

`python -m docs.build [--pyodide FOLDER]` writes docs/_build/site. Whatever is wrong ends it: an
example that prints something else than its page says, a warning of Sphinx, a link or an anchor that
leads nowhere, a public name or an error that has no place.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import inspect
import io
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit

import howsure
from docs import blocks
from docs.adapters import ADAPTERS, LACKING
from docs.llms import write_llms

DOCS = Path(__file__).parent
ROOT = DOCS.parent
SOURCE, SITE = DOCS / "_build" / "source", DOCS / "_build" / "site"
PLACED = {
    "index",
    "tutorial",
    "app",
    "which_number",
    "metrics",
    "intervals",
    "architecture",
    "benchmarks",
    "contract",
    "stability",
}
MODULES = [
    "binning",
    "bounds",
    "calibrators",
    "curves",
    "formats",
    "losses",
    "metrics",
    "policies",
    "scores",
    "serving",
    "workers",
]


def fail(lines: list[str], what: str) -> None:
    if lines:
        raise SystemExit("\n".join([f"{what}:", *lines]))


def assemble() -> None:
    """The Markdown of docs/, and what is made: gallery, API, errors, changelog."""
    shutil.rmtree(DOCS / "_build", ignore_errors=True)
    keep = shutil.ignore_patterns("_build", "__pycache__", "gallery", "*.py")
    shutil.copytree(DOCS, SOURCE, ignore=keep)
    shutil.copy(DOCS / "conf.py", SOURCE)
    how_to = sorted(p.stem for p in DOCS.glob("*.md") if p.stem not in PLACED)
    index = (DOCS / "index.md").read_text(encoding="utf-8").replace("HOWTO", "\n".join(how_to))
    (SOURCE / "index.md").write_text(index, encoding="utf-8")
    (SOURCE / "changelog.md").write_text(
        (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), encoding="utf-8"
    )
    (SOURCE / "gallery.md").write_text(gallery(), encoding="utf-8")
    (SOURCE / "errors.md").write_text(errors(), encoding="utf-8")
    api()
    for page in SOURCE.rglob("*.md"):
        page.write_text(_local(page.read_text(encoding="utf-8")), encoding="utf-8")


def _local(text: str) -> str:
    """Links out of docs/ point to files of the repository, which the site does not hold: they
    become plain code.
    """
    text = re.sub(r"\]\(gallery/\w+\.py\)", "](gallery.md)", text)
    text = re.sub(
        r"\[(\w+\.md)\]\(\1\)", r"[](\1)", text
    )  # a page is called by its title, not by its file
    text = re.sub(
        r"(?m)\n\n```$", "\n```", text
    )  # sessions end with an empty line, which nobody needs to see
    return re.sub(r"\[([^\]]*)\]\((?:\.\./)+([^)]*)\)", r"`\2`", text)


def run_pages() -> None:
    """Every block of every page, exactly as written, in a folder of its own."""
    wrong: list[str] = []
    for page in blocks.PAGES:
        with tempfile.TemporaryDirectory() as folder:
            ran = blocks.run(page, Path(folder))
        if ran.blocks or ran.left_out:
            print(
                "; ".join(
                    [
                        f"{page.name}: {ran.blocks} blocks",
                        *(f"left to make test-all: {x}" for x in ran.left_out),
                    ]
                )
            )
        wrong += [
            *ran.faults,
            *(f"{where}: commands of a kind that is not run" for where in blocks.strangers(page)),
        ]
    fail(wrong, "blocks that do not do what their page says")


def gallery() -> str:
    """Each example: its words, its code, and what it really printed; drawings are shown."""
    parts = [
        "# Gallery\n\nShort examples, each run when this page was built; what it printed stands below it. "
        "*Run it here* runs one in your "
        "browser, as it stands or as you change it (the first one loads 20 MB of Python).\n"
    ]
    (SOURCE / "drawn").mkdir()
    scripts = sorted((DOCS / "gallery").glob("*.py"))
    titles: dict[str, str] = {}
    wrong: list[str] = []
    for script in scripts:
        code = script.read_text(encoding="utf-8")
        words = ast.get_docstring(ast.parse(code)) or ""
        title, _, rest = words.partition("\n")
        body = code.split('"""', 2)[2].strip()
        out = io.StringIO()
        drawn = SOURCE / "drawn" / f"{script.stem}.svg"
        before, sys.argv = sys.argv, [script.name, str(drawn)]
        try:
            with (
                tempfile.TemporaryDirectory() as folder,
                contextlib.chdir(folder),
                contextlib.redirect_stdout(out),
            ):
                runpy.run_path(str(script), run_name="__main__")
        except Exception as e:
            wrong.append(f"{script.name}: {type(e).__name__}: {e}")
        finally:
            sys.argv = before
        rest = re.sub(r"(?m)^    python .*\n", "", rest).strip()
        kind = "{code-block} python\n:class: here\n" if runs_here(code) else "python"
        titles[script.stem] = title.rstrip(".")
        parts.append(
            f"(example-{script.stem})=\n## {titles[script.stem]}\n\n{rest}\n\n```{kind}\n{body}\n```\n"
        )
        if text := out.getvalue().rstrip():
            parts.append(f"```{{code-block}} text\n:class: output\n\n{text}\n```\n")
        if drawn.exists():
            parts.append(f"![{title.rstrip('.')}](drawn/{drawn.name})\n")
    fail(wrong, "examples of the gallery that fail")
    if len(scripts) < 30:
        raise SystemExit(f"the gallery has {len(scripts)} examples; 30 are promised")
    print(f"gallery: {len(scripts)} examples run")
    links = "\n".join(f"- [{title}](#example-{stem})" for stem, title in titles.items())
    return "\n".join([parts[0], f":::{{container}} toc-here\n{links}\n:::\n", *parts[1:]])


def runs_here(code: str) -> bool:
    """Whether an example can be run on its page: it draws nothing and imports nothing that is not
    there.
    """
    imported = re.findall(r"(?m)^(?:import|from) (\w+)", code)
    return "sys.argv" not in code and {"howsure", "numpy", *sys.stdlib_module_names}.issuperset(
        imported
    )


def errors() -> str:
    """Every refusal of the package with an anchor of its own, read from the source: none can be
    forgotten.
    """
    parts = [
        "# Errors\n\nEvery way in which howsure refuses; … is what is filled in. On the command line: exit code 2.\n"
    ]
    seen: set[str] = set()
    source = ROOT / "src" / "howsure"
    for path in sorted(source.rglob("*.py")):
        found = list(_refusals(ast.parse(path.read_text(encoding="utf-8"))))
        if found:
            parts.append(f"## howsure/{path.relative_to(source)}\n")
        for text in found:
            name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].strip("-")
            anchor = next(
                a
                for a in (f"{name}{'-' + str(i) if i else ''}" for i in range(1000))
                if a not in seen
            )
            seen.add(anchor)
            parts.append(
                f'<p id="error-{anchor}"><a href="#error-{anchor}">¶</a> <code>{_escaped(text)}</code></p>\n'
            )
    print(f"errors: {len(seen)}, each with an anchor")
    return "\n".join(parts)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\n", " ")


def _refusals(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and getattr(node.func, "id", getattr(node.func, "attr", "")) == "InputError"
        ):
            values = [
                *node.args[:1],
                *(k.value for k in node.keywords if k.arg in ("got", "need", "hint")),
            ]
            words = [_template(value) for value in values]
            if text := " · ".join(word for word in words if word.strip("… ")):
                yield text


def _template(node: ast.expr) -> str:
    """The text of an expression, with … for what is only known when it is raised."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_template(v) if isinstance(v, ast.Constant) else "…" for v in node.values)
    if isinstance(node, ast.BinOp):
        return _template(node.left) + _template(node.right)
    return "…"


def api() -> None:
    """A page for each public module and one for the names of `howsure` itself."""
    from sphinx.ext.autodoc.mock import mock

    with mock(LACKING):
        _api(SOURCE / "api")


def _api(folder: Path) -> None:
    folder.mkdir()
    own = {name for name in howsure.__all__ if name not in MODULES and name != "__version__"}
    pages = {"howsure": sorted(own)}
    for module in [*MODULES, *ADAPTERS]:
        there = importlib.import_module(f"howsure.{module}").__all__
        pages[f"howsure.{module}"] = sorted(name for name in there if name not in own)
    for page, names in pages.items():
        (folder / f"{page}.rst").write_text(_api_page(page, names, pages), encoding="utf-8")
    toctree = "\n".join(pages)
    total = sum(map(len, pages.values()))
    intro = f"# API\n\nEvery public name, {total} of them, from its docstring.\n"
    intro += f"\n```{{toctree}}\n:maxdepth: 1\n\n{toctree}\n```\n"
    (folder / "index.md").write_text(intro, encoding="utf-8")
    print(f"api: {total} names")


def _api_page(page: str, names: list[str], pages: dict[str, list[str]]) -> str:
    module = importlib.import_module(page)
    words = (inspect.getdoc(module) or "").partition("\n")[0]
    lines = [
        page,
        "=" * len(page),
        "",
        words,
        "",
        f".. py:module:: {page}",
        "",
        *_overview(module, names),
    ]
    for name in names:
        value = getattr(module, name)
        kind = (
            "autoclass"
            if inspect.isclass(value)
            else "autofunction"
            if callable(value)
            else "autodata"
        )
        lines += [
            f".. {kind}:: {page}.{name}",
            *(["   :members:"] if kind == "autoclass" else []),
            "",
        ]
    also = [
        n for n in getattr(module, "__all__", []) if page != "howsure" and n in pages["howsure"]
    ]
    if also:
        lines += [
            "Also here, described under ``howsure``: "
            + ", ".join(f":py:obj:`howsure.{n}`" for n in also)
            + ".",
            "",
        ]
    return "\n".join(lines)


def _overview(module: ModuleType, names: list[str]) -> list[str]:
    """A table of what is on a page: every name with the first sentence of its docstring."""
    lines = [".. list-table::", "   :class: overview", ""]
    for name in names:
        value = getattr(module, name)
        words = (
            (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ")
            if callable(value)
            else ""
        )
        words = re.sub(":+$", ".", words)  # a formula or a list follows there, not here
        lines += [f"   * - :py:obj:`{name} <{module.__name__}.{name}>`", f"     - {words}"]
    return [*lines, ""] if names else []


class _Page(HTMLParser):
    """The anchors that a page has and the links that it makes."""

    def __init__(self, text: str):
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for key, value in attrs:
            if key in ("id", "name") and value:
                self.ids.add(value)
            if key in ("href", "src") and value:
                self.links.append(value)
            if value and (
                key == "src"
                or (key == "href" and tag == "link" and dict(attrs).get("rel") == "stylesheet")
            ):
                self.loads.add(value)


def check_links() -> None:
    """Every internal link leads to a file, and every anchor to a place in it; nothing is loaded
    from elsewhere.
    """
    pages = {
        p: _Page(p.read_text(encoding="utf-8"))
        for p in SITE.rglob("*.html")
        if "app" not in p.relative_to(SITE).parts
    }
    wrong: list[str] = []
    count = 0
    for page, found in pages.items():
        for link in found.links:
            parts = urlsplit(link)
            if link in found.loads and (parts.netloc or parts.scheme not in ("", "data")):
                wrong.append(f"{page.relative_to(SITE)}: loads {link} from elsewhere")
            if parts.scheme or parts.netloc:
                continue
            count += 1
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                wrong.append(f"{page.relative_to(SITE)}: {link} leads nowhere")
            elif (
                parts.fragment
                and target in pages
                and unquote(parts.fragment) not in pages[target].ids
            ):
                wrong.append(f"{page.relative_to(SITE)}: {link} has no such anchor")
    fail(wrong, "links")
    print(f"links: {count} internal links of {len(pages)} pages, all lead somewhere")


def sphinx() -> None:
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-b",
        "html",
        str(SOURCE),
        str(SITE),
    ]
    if subprocess.run(
        command, env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    ).returncode:
        raise SystemExit("sphinx warns; warnings are errors")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pyodide")
    asked = options.parse_args()
    began = time.monotonic()
    run_pages()
    assemble()
    sphinx()
    from howsure.cli.app import write_app

    write_app(str(SITE / "app"), asked.pyodide, None, tell=print)
    write_llms(SITE / "llms.txt")
    check_links()
    print(f"built {SITE} in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
