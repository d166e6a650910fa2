"""howsure demo"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import as_file, files

import click

from howsure.cli.common import (
    add_interval_options,
    add_output_options,
    format_reading_call,
    list_targets,
    note,
    say,
    show_report,
    show_spinner,
)
from howsure.cli.input_output import DEMO_FILE, PathCommand


@click.command(cls=PathCommand)
@add_interval_options
@add_output_options
def command(
    level: float, seed: int, as_json: bool, out: Sequence[str], html: str | None, quiet: bool
) -> None:
    """See howsure at work on real predictions that come with it.

    The predictions are those of a small convolutional network on the 10,000 test images of Fashion-MNIST; it was
    trained for this purpose by `python -m studies demo`.

    \b
    Examples:
      howsure demo
      howsure demo --html demo.html
    """
    from howsure.formats import ReadOptions, read
    from howsure.report.evaluation import evaluate

    targets = list_targets(out, html)
    options = ReadOptions(split="test")
    note(
        "A small CNN looked at 10,000 pictures of clothes (Fashion-MNIST). How sure is it?\n", quiet
    )
    with as_file(files("howsure") / "data" / "fashion_mnist_cnn.npz") as path:
        with show_spinner("measuring"):
            report = evaluate(
                read(path, options=options),
                level=level,
                seed=seed,
                files=[path],
                command="howsure demo",
            )
        report.data["provenance"]["reading"] = format_reading_call([DEMO_FILE], options)
        report.data["provenance"]["fitting"] = DEMO_FILE
        show_report(report, as_json=as_json, targets=targets, quiet=quiet)
    if not quiet and not as_json:
        say(
            "\nWith a file of your own begin with  howsure doctor YOUR_FILE: what is in it, what is wrong with it."
        )
