"""howsure demo"""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import Any

import click

from howsure.cli.common import measuring, note, say, showing, working


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
    from howsure.report import evaluate

    quiet = how_shown["quiet"]
    note("A small CNN looked at 10,000 pictures of clothes (Fashion-MNIST). How sure is it?\n", quiet)
    html, out = how_shown.pop("html"), how_shown.pop("out")
    with as_file(files("howsure") / "data" / "fashion_mnist_cnn.npz") as path:
        with working("measuring"):
            report = evaluate(read(path, split="test"), level=level, seed=seed, files=[path], command="howsure demo")
        show(report, targets=[*out, *([html] if html else [])], **how_shown)
        if not quiet and not how_shown["as_json"]:
            say("\n" + _next(str(path)))


def _next(path: str) -> str:
    return (
        "What to do next\n"
        f"  the same file is yours to try:  {path}\n"
        "  howsure doctor YOUR_FILE                        what is in it, and what is wrong with it\n"
        "  howsure evaluate YOUR_FILE --html report.html   the same numbers for your model, with pictures\n"
        "  howsure calibrate --fit VAL --on TEST           make the confidence honest\n"
        "  howsure threshold VAL --risk 0.02               when may the model decide alone?"
    )
