"""Finlay & Oberman, tables 1 to 5: what each uncertainty method is worth to a bettor."""

from dataclasses import dataclass

import numpy as np

import howsure as hs

from ..plans import runs_of
from ..provided import NAMES, here, provided
from ..runs import Run
from ..store import Store
from .published_odds import pool_bins, published_table
from .results import arrays, finished, predictions, progress
from .table import Table, percent

LEVELS = (0.99, 0.95)
COARSE = 0.975
HUNDREDTHS = hs.equal_size(100)
HUNDRED = "netcal_densenet_bc_100_c100"
THOUSAND = ("in1k_tv_resnext101_32x8d", "in1k_timm_efficientnet_b3a")
EVERY = "ensemble of all sizes"
HIDDEN = "loss (not available in use)"
PAPER = {"entropy": "4.29", "U1": "4.22", "dropout 0.002": "10.39", "dropout 0.01": "4.67",
         "dropout 0.05": "1.69", "ensemble": "16.66"}  # fmt: skip
PAPER_BRIER = {"entropy": "0.033", "U1": "0.033", "dropout 0.002": "0.036", "dropout 0.01": "0.04",
               "dropout 0.05": "0.043", "ensemble": "0.040", HIDDEN: "0"}  # fmt: skip
PAPER_SHARE = {"entropy": "95", "U1": "95", "dropout 0.002": "92", "ensemble": "88"}
PAPER_HUNDRED = {"entropy": ("3.64", "0.067", "24 / 50 / 26"), "U1": ("3.77", "0.067", "24 / 49 / 27"),
                 "U5": ("4.25", "0.067", "19 / 57 / 24")}  # fmt: skip
PAPER_THOUSAND = ("8.87", "0.042", "52 / 26 / 22")
WORTH = (
    "EOR smoothed",
    "EOR pooled",
    "Brier",
    "shares at 99 / 95 % / rest",
    "a / b",
    "paper: EOR",
    "Brier",
    "shares",
)


def odds(store: Store, scale: str) -> list[Table]:
    """All methods rank the answers of the first network, so that they are compared on the same
    predictions.
    """
    runs = runs_of(["odds"], scale)
    done = members_of(finished(store, runs))
    members = (
        f"Ensembles of {len(done)}, and of all {len(sizes(store, scale))} networks of `complexity`"
    )
    note = f"{progress(store, runs)} {members}; 100 bins of equal size."
    others = (
        [hundred_table(f"{NAMES[HUNDRED]} (tables 1, 2 and 5)", provided(HUNDRED))]
        if here(HUNDRED)
        else []
    )
    others += [thousand_table()] if here(*THOUSAND) else []
    others = [*published_table(), *others]
    if not done:
        return [Table("Expected odds ratio", ["method"], [], note), *others]
    correct = predictions(store, done[0]).correct
    found = {
        name: hs.tally(score, correct=correct)
        for name, score in methods(store, done, scale).items()
    }
    return [
        odds_table(found, note),
        bands_table(found, note),
        blocks_table(in_blocks(store, scale)),
        *others,
    ]


def members_of(runs: list[Run]) -> list[Run]:
    """The repeats of one network; those with dropout in their blocks are others."""
    return [run for run in runs if not run.settings.block_dropout]


@dataclass(frozen=True)
class Block:
    """A network trained with dropout in every block: minus the variance over passes with it, and
    without it what all networks have. Each rate is another network with answers of its own."""

    variance: np.ndarray
    preds: hs.Predictions

    @property
    def scores(self) -> dict[str, np.ndarray]:
        return {"variance": self.variance, "entropy": hs.scores.neg_entropy(self.preds)}


def in_blocks(store: Store, scale: str) -> dict[str, Block]:
    """By rate."""
    runs = [run for run in finished(store, runs_of(["odds"], scale)) if run.settings.block_dropout]
    found = {run: -arrays(store, run, "block_passes")["test_dropout_variance"] for run in runs}
    return {
        f"{run.settings.block_dropout}": Block(v, predictions(store, run))
        for run, v in found.items()
    }


def blocks_table(blocks: dict[str, Block]) -> Table:
    """Dropout at work in training and when asked; the paper has it only when asked."""
    rows = [
        [
            rate,
            name,
            percent(block.preds.correct.mean(), 1),
            *block_cells(rate, name, score, block.preds.correct),
        ]
        for rate, block in sorted(blocks.items(), key=lambda pair: float(pair[0]))
        for name, score in block.scores.items()
    ]
    header = [
        "rate",
        "score",
        "accuracy",
        "EOR smoothed",
        "EOR pooled",
        "paper EOR",
        "Brier",
        "paper Brier",
    ]
    note = "Each rate is a network of its own; variance over 30 passes, entropy of the one pass without dropout."
    return Table("Dropout in every block (tables 1 and 2)", header, rows, note)


def block_cells(rate: str, name: str, score: np.ndarray, correct: np.ndarray) -> list[str]:
    smooth, pooled, brier = worth(hs.tally(score, correct=correct))
    paper = [
        found.get(f"dropout {rate}", "") if name == "variance" else ""
        for found in (PAPER, PAPER_BRIER)
    ]
    return [smooth, pooled, paper[0], brier, paper[1]]


def sizes(store: Store, scale: str) -> list[Run]:
    """The networks of all sizes, which saw the same images."""
    return finished(store, runs_of(["complexity"], scale))


def methods(store: Store, runs: list[Run], scale: str) -> dict[str, np.ndarray]:
    """Confidence in the answers of the first of `runs`, which are repeats."""
    preds, every = predictions(store, runs[0]), sizes(store, scale)
    variance = arrays(store, runs[0], "dropout_variance")
    scores = {
        "entropy": hs.scores.neg_entropy(preds),
        "U1": hs.scores.log_max_prob(preds),
        "U5": np.log(hs.scores.top_k_mass(preds, k=5)),
        **{
            f"dropout {name.rsplit('_', 1)[1]}, last layer": -values
            for name, values in variance.items()
        },
        HIDDEN: -hs.losses.nll(preds),
    }
    if len(runs) > 1:
        scores["ensemble"] = hs.scores.variance(ensemble(store, runs))
    if len(every) > len(runs):
        scores[EVERY] = hs.scores.variance(ensemble(store, every))
    return scores


def ensemble(store: Store, runs: list[Run]) -> hs.Predictions:
    logits = np.stack([arrays(store, run)["test_logits"] for run in runs])
    return hs.Predictions.from_samples(logits=logits, labels=arrays(store, runs[0])["test_labels"])


def odds_table(found: dict[str, hs.Tally], note: str) -> Table:
    header = [
        "method",
        "EOR smoothed",
        "EOR pooled",
        "paper EOR",
        "Brier",
        "paper Brier",
        "AUROC",
        "AURC",
        "bits left",
    ]
    rows = [odds_row(name, t) for name, t in found.items()]
    title = "Expected odds ratio and Brier score (tables 1 and 2)"
    about = " Bins without errors make the plain EOR infinite. AUROC is that of finding errors."
    return Table(title, header, rows, note + about)


def odds_row(name: str, t: hs.Tally) -> list[str]:
    smooth, pooled, brier = worth(t)
    left = hs.conditional_entropy(hs.histogram(t, HUNDREDTHS))
    rest = [percent(hs.auroc(t)), percent(hs.aurc(t)), f"{left:.3f}"]
    return [name, smooth, pooled, PAPER.get(name, ""), brier, PAPER_BRIER.get(name, ""), *rest]


def worth(t: hs.Tally) -> list[str]:
    """The expected odds ratio with two treatments of bins without errors (the second is the
    authors'), and the Brier score."""
    h = hs.histogram(t, HUNDREDTHS)
    pooled = hs.eor(hs.Histogram(weight=h.weight, p=pool_bins(h.p)), base=h.base)
    return [
        f"{hs.eor(h, degenerate='smooth'):.2f}",
        f"{pooled:.2f}",
        f"{hs.histogram_brier(h):.4f}",
    ]


def bands_table(found: dict[str, hs.Tally], note: str) -> Table:
    header = ["method", *(f"share at {level:.0%}" for level in LEVELS), "share of the rest", "accuracy of the rest",
              "a", "b", f"share at {COARSE:.1%}", "paper"]  # fmt: skip
    thresholds = " Scores of at least a are in the first band, of at least b in the second."
    return Table(
        "Bands of certainty (table 4)",
        header,
        [bands_row(n, t) for n, t in found.items()],
        note + thresholds,
    )


def bands_row(name: str, t: hs.Tally) -> list[str]:
    found = hs.bands(t, LEVELS)
    coarse = percent(hs.bands(t, (COARSE,)).weight[0], 1)
    fine = [*(percent(w, 1) for w in found.weight), percent(found.accuracy[-1], 1)]
    return [name, *fine, *limits_of(found), coarse, PAPER_SHARE.get(name, "")]


def limits_of(found: hs.Bands) -> list[str]:
    """The lowest scores of the first two bands; an empty band has none."""
    return [
        f"{v:.4g}" if w else "none"
        for v, w in zip(found.threshold[:2], found.weight[:2], strict=True)
    ]


def hundred_methods(preds: hs.Predictions) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Scores of one network with 100 classes, and whether the label is among its five most
    probable.
    """
    scores = {
        "entropy": hs.scores.neg_entropy(preds),
        "U1": hs.scores.log_max_prob(preds),
        "U5": np.log(hs.scores.top_k_mass(preds, k=5)),
    }
    own = np.take_along_axis(preds.probs, preds.labels[:, None], axis=1)
    return scores, (preds.probs > own).sum(1) < 5


def hundred_table(title: str, preds: hs.Predictions) -> Table:
    """Tables 1, 2 and 5 for 100 classes and the five best answers."""
    scores, correct = hundred_methods(preds)
    header = ["method", *WORTH]
    rows = [hundred_row(name, hs.tally(score, correct=correct)) for name, score in scores.items()]
    return Table(
        title,
        header,
        rows,
        f"The label is among the five best in {percent(correct.mean(), 1)} % (paper 91.6 %).",
    )


def hundred_row(name: str, t: hs.Tally) -> list[str]:
    return [name, *worth_cells(t), *PAPER_HUNDRED[name]]


def thousand_table() -> Table:
    """Tables 1 to 3 as far as they can be had: of these networks only the first answer and its
    probability is known.
    """
    sets = {NAMES[name]: provided(name) for name in THOUSAND}
    tallies = {
        name: hs.tally(hs.scores.log_max_prob(p), correct=p.correct) for name, p in sets.items()
    }
    rows = [[f"U1, {name}", *worth_cells(t), *PAPER_THOUSAND] for name, t in tallies.items()]
    right = ", ".join(percent(1 - t.total / t.n, 1) for t in tallies.values())
    note = f"Right is the first answer ({right} %), in the paper the five best (94.1 %): only the first is published."
    return Table("ImageNet-1K (tables 1, 2 and 3)", ["method", *WORTH], rows, note)


def worth_cells(t: hs.Tally) -> list[str]:
    found = hs.bands(t, LEVELS)
    return [
        *worth(t),
        " / ".join(percent(w, 0) for w in found.weight),
        " / ".join(limits_of(found)),
    ]
