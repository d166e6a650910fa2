"""The page of one network's story: Laves' table 1, figure 3, the number of passes, and a promise
kept or broken.
"""

from functools import cache
from pathlib import Path

from matplotlib.figure import Figure

import howsure as hs

from ..figures.drawing import draw, panels, save
from ..figures.passes import reliability
from ..store import Store
from ..story import RUN, error_auroc
from ..tables import Table
from ..tables.mc_temperature import (
    PASSES,
    one_pass,
    one_pass_scaled,
    one_pass_scaling,
    passes,
    rejection_table,
    scaled,
    scaling,
)
from ..tables.promise import Kept, Promised, promised
from ..tables.results import arrays, predictions, tally
from ..tables.table import percent

HEADER = ["data set", "model", "one-pass ECE", "MC ECE", "MC UCE", "scaled one-pass ECE", "scaled MC ECE",
          "scaled MC UCE"]  # fmt: skip
PAPER = [
    ["CIFAR-10 (paper)", "ResNet-18", "8.95", "8.41", "7.60", "1.40", "0.47", "5.27"],
    ["CIFAR-100 (paper)", "ResNet-101", "29.63", "24.62", "30.33", "3.50", "1.92", "2.41"],
    ["CIFAR-100 (paper)", "DenseNet-169", "30.62", "23.98", "29.62", "6.10", "2.89", "2.69"],
]


def write_story(store: Store, folder: Path) -> str:
    """The page as text; it is written with its figures beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    save(reliability(store, RUN), folder / "story_reliability.svg")
    save(curves(store), folder / "story_rejection.svg")
    text = story_page(store)
    (folder / "story.md").write_text(text, encoding="utf-8")
    return text


def story_page(store: Store) -> str:
    parts = [
        "# story: one network from training to a promise",
        setting(),
        "## What the report says",
        "\n".join(
            f"- {sentence}" for sentence in hs.evaluate(predictions(store, RUN)).data["verdict"]
        ),
        laves_table(store).to_markdown(),
        temperatures(store),
        "![reliability](story_reliability.svg)",
        passes_table(store).to_markdown(),
        rejection_table(store, [RUN]).to_markdown(),
        "![rejection and passes](story_rejection.svg)",
        distance_table(store).to_markdown(),
        promise_table(store).to_markdown(),
        kept_text(store),
        "Made by `python -m studies story --data DIR --docs DIR`.",
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def setting() -> str:
    s = RUN.settings
    return (
        f"A small CNN with dropout {s.dropout} before its last layer, {s.train_size:,} images of Fashion-MNIST, "
        f"{s.epochs} epochs. `howsure.torch` collects one pass, 25 dropout passes and the distance to the decision "
        "boundary; all numbers come from the files that are left."
    )


def laves_table(store: Store) -> Table:
    """Table 1: one pass and MC dropout, as trained and after temperature scaling."""
    row = ["Fashion-MNIST", "CNN"]
    for single, many in (
        (one_pass(store, RUN), passes(store, RUN)),
        (one_pass_scaled(store, RUN), scaled(store, RUN)),
    ):
        row += [percent(hs.ece(tally(single))), percent(hs.ece(tally(many))), percent(hs.uce(many))]
    n = one_pass(store, RUN).n
    return Table(
        "Confidence and uncertainty (Laves, table 1)",
        HEADER,
        [row, *PAPER],
        f"In per cent, {n:,} images.",
    )


def temperatures(store: Store) -> str:
    one, many = one_pass_scaling(store, RUN).temperature, scaling(store, RUN).temperature
    per_pass = scaling(store, RUN, "per_pass").temperature
    return (
        f"Temperatures: {one:.2f} for one pass, {many:.2f} inside the average over passes, {per_pass:.2f} where the "
        "mean likelihood of the passes is fitted instead, as the paper's released code does."
    )


def uces(store: Store) -> dict[str, list[float]]:
    """UCE of the first passes, as trained and with the temperature of all passes."""
    some = [passes(store, RUN, count=count) for count in PASSES]
    temperature = scaling(store, RUN)
    return {
        "as trained": [hs.uce(p) for p in some],
        "scaled": [hs.uce(temperature(p)) for p in some],
    }


def passes_table(store: Store) -> Table:
    rows = [[name, *map(percent, values)] for name, values in uces(store).items()]
    return Table("UCE against the number of passes", ["", *map(str, PASSES)], rows, "In per cent.")


def distance_table(store: Store) -> Table:
    """How well each score ranks right answers above wrong ones."""
    preds = one_pass(store, RUN)
    distance = arrays(store, RUN, "boundary")["test_boundary_distance"]
    scores = {
        "boundary distance": distance,
        "top probability": hs.scores.max_prob(preds),
        "entropy of 25 passes": hs.scores.entropy(passes(store, RUN)),
    }
    rows = [[name, f"{error_auroc(score, preds.correct):.3f}"] for name, score in scores.items()]
    note = (
        "AUROC of finding errors: right answers against wrong ones; 0.5 says nothing, 1 is perfect."
    )
    return Table("Which score finds the errors?", ["score", "AUROC"], rows, note)


@cache
def story_promise(store: Store) -> Promised:
    return promised("Fashion-MNIST", predictions(store, RUN, "val"), predictions(store, RUN))


def promise_table(store: Store) -> Table:
    """From validation images to a promise, and what became of it on test images."""
    p = story_promise(store)
    rows = [
        [
            "that kept it on validation",
            *promise_cells(p, p.plain),
            f"{percent(p.low)} to {percent(p.high)}",
        ],
        ["guaranteed, 95 %", *promise_cells(p, p.guaranteed), f"at most {percent(p.risk)}"],
    ]
    header = [
        "threshold",
        "promised error",
        "answers kept",
        "error of the kept on test",
        "said beforehand",
    ]
    n = predictions(store, RUN, "val").n
    note = f"In per cent. The thresholds were chosen on {n:,} validation images; half of their error is promised."
    return Table("A promise, and whether it was kept", header, rows, note)


def promise_cells(p: Promised, kept: Kept) -> list[str]:
    return [percent(p.risk), percent(kept.coverage, 1), percent(kept.risk)]


def kept_text(store: Store) -> str:
    """The last sentence of the story, from the numbers."""
    p = story_promise(store)
    plain = "lies" if p.inside else "does not lie"
    sure = "broken" if p.guaranteed.risk > p.risk else "kept"
    return (
        f"The error on test {plain} in the interval that was predicted for it. The guaranteed promise was {sure}: "
        f"{percent(p.guaranteed.risk)} % of {p.guaranteed.count:,} answers are wrong, at most {percent(p.risk)} % was "
        "the promise."
    )


def curves(store: Store) -> Figure:
    """Laves, figure 3, and the UCE against the number of passes."""
    labels = [("largest entropy kept", "error of what is kept"), ("passes", "UCE in per cent")]
    figure, axes = panels(["Rejection", "Number of passes"], labels)
    for name, preds in (("as trained", passes(store, RUN)), ("scaled", scaled(store, RUN))):
        draw(axes[0], hs.rejection(preds), name)
    for name, values in uces(store).items():
        axes[1].plot(PASSES, [100 * v for v in values], "o-", label=name, markersize=3)
    for ax in axes:
        ax.legend(fontsize=7)
    return figure
