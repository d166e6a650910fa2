"""howsure app"""

from __future__ import annotations

import click

from howsure.cli.common import note, say


@click.command()
@click.option("--to", "to", required=True, type=click.Path(), help="The folder to write.")
@click.option(
    "--pyodide",
    type=click.Path(),
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
    from howsure.cli.browser.folder import write

    sizes = write(to, pyodide, mirror, tell=lambda line: note(f"howsure: {line}", quiet))
    if not quiet:
        say(f"wrote {len(sizes)} files, {sum(sizes.values()) / 1e6:.1f} MB, to {to}")
        say(f"look at it:  python -m http.server --directory {to}")
