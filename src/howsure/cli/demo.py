"""howsure demo"""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import Any

import click

from howsure.cli.common import measuring, note, read_again, say, showing, working


@click.command()
@measuring
@showing
def command(level: float, seed: int, **how_shown: Any) -> None:
    """See howsure at work on real predictions that come with it.

    The predictions are those of a small convolutional network on the 10,000 test images of Fashion-MNIST; it was
    trained for this purpose by `python -m studies demo`.

    \b
    Examples:
      howsure demo
      howsure demo --html demo.html
    """
    from howsure.cli.evaluate import show
    from howsure.formats import read
    from howsure.report.evaluation import evaluate

    quiet = how_shown["quiet"]
    note(
        "A small CNN looked at 10,000 pictures of clothes (Fashion-MNIST). How sure is it?\n", quiet
    )
    html, out = how_shown.pop("html"), how_shown.pop("out")
    with as_file(files("howsure") / "data" / "fashion_mnist_cnn.npz") as path:
        with working("measuring"):
            report = evaluate(
                read(path, split="test"),
                level=level,
                seed=seed,
                files=[path],
                command="howsure demo",
            )
        report.data["provenance"]["reading"] = read_again([str(path)], {"split": "test"})
        show(report, targets=[*out, *([html] if html else [])], **how_shown)
        if not quiet and not how_shown["as_json"]:
            say(
                "\nWith a file of your own begin with  howsure doctor YOUR_FILE: what is in it, what is wrong with it."
            )
