"""Vemuri 2020, chapters 3 and 5: what regularisation does to error and confidence."""

from functools import cache

import numpy as np

import howsure as hs

from ..plans import STUDIES
from ..plans.regularisation import MAIN, SWEPT
from ..runs import Run
from ..store import Store
from ..tables.regularisation import at_epoch
from ..tables.results import arrays, by_network, finished, predictions, tally
from ..tables.table import percent, signed
from . import estimates
from .claim import AGREES, MIXED, NOT, OPEN, Claim, Evidence, sided
from .paired import alike, paired

SAME = 0.01
STOPPED = 2 / 3
DRAWS = 200
Groups = dict[str, list[Run]]


def regularisation(store: Store, scale: str) -> list[Claim]:
    groups = by_network(finished(store, dict.fromkeys(STUDIES["regularisation"](scale))))
    planned = [run for run in dict.fromkeys(STUDIES["regularisation"](scale)) if run.settings.network == MAIN[scale]]
    courses = [run for runs in groups.values() for run in runs if "course" in run.extras]
    short = training_left(store, standard(groups.get(MAIN[scale], [])))
    return [
        Claim("The network is more over-confident on test than on training images", "ECE 16.8 against 1.6",
              [train_and_test(store, run) for runs in groups.values() for run in runs if run.label == "standard"]),
        Claim("Regularisation lowers the test ECE", "16.8 to 8.0, 8.0, 4.5, 5.9 (figure 5.2)",
              [e for runs in groups.values() for e in against_standard(store, runs)],
              {OPEN: short, MIXED: short, NOT: short}),
        Claim("Label smoothing raises the training ECE", "9.4 against 1.6",
              [e for runs in groups.values() for e in smoothed(store, runs)]),
        Claim("Best ECE and best error need different label smoothing", "different (figure 5.1)",
              best_and_best(store, planned, "label smoothing")),
        Claim("Best ECE and best error need different dropout", "different (figure 5.1)",
              best_and_best(store, planned, "dropout")),
        Claim("With weight decay ECE and error rise and fall together", "mirror each other (figure 5.1)",
              together(store, planned, "weight decay")),
        Claim("AAC follows the error more closely than ECE does", "mirrors the error (figure 5.1)",
              [closer(store, runs) for runs in groups.values() if len(runs) > 3]),
        Claim("Early stopping hardly changes the ECE (less than a point)", "16.8 after 200 and after 300 epochs",
              [stopped_early(store, run) for run in courses]),
        Claim("The NLL overfits, the 0/1 error does not", "figure 3.2", [overfits(store, run) for run in courses],
              {OPEN: short, NOT: short}),
    ]  # fmt: skip


def title(run: Run) -> str:
    return f"{run.settings.network}, {run.label}"


def standard(runs: list[Run]) -> list[Run]:
    return [run for run in runs if run.label == "standard"]


def training_left(store: Store, runs: list[Run]) -> str:
    """Why a network trained for a short time may not show what the paper's did."""
    if not runs:
        return ""
    s, wrong = runs[0].settings, 1 - hs.accuracy(predictions(store, runs[0], "train"))
    return (
        f"After {s.epochs} epochs on {s.train_size:,} images the error of {s.network} on its own training images is "
        f"{percent(wrong, 1)} %; the paper's network, trained for 300 epochs, fits them almost perfectly."
    )


def train_and_test(store: Store, run: Run) -> Evidence:
    """Other images on the two sides, so that these are drawn apart."""
    sides = [predictions(store, run, split) for split in ("test", "train")]
    gaps = [p.confidence - p.correct for p in sides]
    rng = np.random.default_rng(estimates.SEED)
    draws = [[gap[rng.integers(len(gap), size=len(gap))].mean() for gap in gaps] for _ in range(DRAWS)]
    low, high = np.quantile(np.subtract(*np.transpose(draws)), [0.025, 0.975])
    both = [f"{signed(gap.mean())} (ECE {percent(hs.ece(tally(p)))})" for gap, p in zip(gaps, sides, strict=True)]
    found = f"confidence minus accuracy: {both[0]} on test, {both[1]} on training images"
    return Evidence(title(run), found, float(low), float(high), sided(low, high, "+"))


def against_standard(store: Store, runs: list[Run]) -> list[Evidence]:
    """The rows of figure 5.2."""
    key = ("augmentation", "dropout 0.7", "label smoothing 0.1", "weight decay 0.001")
    chosen = [run for run in runs if run.label in key]
    return [
        paired(title(run), hs.ece, predictions(store, run), predictions(store, usual), "-")
        for usual in standard(runs)
        for run in chosen
    ]


def smoothed(store: Store, runs: list[Run]) -> list[Evidence]:
    chosen = [run for run in runs if run.label == "label smoothing 0.1"]
    return [
        paired(title(run), hs.ece, predictions(store, run, "train"), predictions(store, usual, "train"), "+")
        for usual in standard(runs)
        for run in chosen
    ]


def sweep(store: Store, planned: list[Run], name: str) -> list[Run]:
    """The settings of one regulariser, plain training included, in order; none unless all of them are finished."""
    chosen = [run for run in planned if run.label == "standard" or run.label.startswith(name)]
    whole = len(finished(store, chosen)) == len(chosen)
    return sorted(chosen, key=lambda run: getattr(run.settings, SWEPT[name])) if whole else []


def best_and_best(store: Store, planned: list[Run], name: str) -> list[Evidence]:
    """Both settings are chosen on validation images and compared on test images, so that chance makes no difference."""
    points = sweep(store, planned, name)
    if not points:
        return []
    ece = min(points, key=lambda run: hs.ece(tally(predictions(store, run, "val"))))
    error = max(points, key=lambda run: hs.accuracy(predictions(store, run, "val")))
    if ece == error:
        return [Evidence(title(ece), "one setting has both on validation images", float("nan"), float("nan"), NOT)]
    pair, names = (predictions(store, ece), predictions(store, error)), f"{ece.label} against {error.label}"
    return [
        paired(f"ECE is lower: {names}", hs.ece, *pair, "-"),
        paired(f"accuracy is lower: {names}", hs.accuracy, *pair, "-"),
    ]


def together(store: Store, planned: list[Run], name: str) -> list[Evidence]:
    """Correlation of ECE and error over the settings; the same images are drawn again for all of them."""
    points = sweep(store, planned, name)
    if not points:
        return []
    sides = [predictions(store, run) for run in points]
    number = lambda rows: estimates.correlation(*np.transpose([pair_of(p, rows) for p in sides]))
    value, low, high = estimates.resampled(sides[0].n, number, DRAWS)
    case = f"{points[0].settings.network}, {len(points)} settings"
    return [Evidence(case, f"correlation {value:+.2f}", low, high, sided(low, high, "+"), scale=1)]


def pair_of(preds: hs.Predictions, rows: np.ndarray) -> tuple[float, float]:
    t = hs.tally(preds.confidence[rows], correct=preds.correct[rows])
    return hs.ece(t), t.total / t.n


def closer(store: Store, runs: list[Run]) -> Evidence:
    """Rank correlation with the error over all settings of a network; settings are drawn again."""
    rows = np.array([three_of(tally(predictions(store, run))) for run in runs])
    number = lambda some: (
        estimates.correlation(rows[some, 0], rows[some, 1]) - estimates.correlation(rows[some, 0], rows[some, 2])
    )
    value, low, high = estimates.resampled(len(rows), number)
    both = [f"{estimates.correlation(rows[:, 0], rows[:, i]):+.2f}" for i in (1, 2)]
    found = f"correlation with the error {both[0]} for AAC, {both[1]} for ECE: {value:+.2f}"
    case = f"{runs[0].settings.network}, {len(runs)} settings"
    return Evidence(case, found, low, high, sided(low, high, "+"), scale=1)


def three_of(t: hs.Tally) -> tuple[float, float, float]:
    return t.total / t.n, hs.aac(t), hs.ece(t)


@cache
def course_epochs(store: Store, run: Run) -> list[hs.Outcomes]:
    found = arrays(store, run, "course")
    return [at_epoch(found, epoch) for epoch in range(len(found["test_correct"]))]


def stopped_early(store: Store, run: Run) -> Evidence:
    """The paper stops at 200 of 300 epochs: the same share of ours."""
    epochs = course_epochs(store, run)
    stop = round(STOPPED * len(epochs))
    case = f"{run.settings.network}: epoch {stop} against {len(epochs)}"
    return alike(case, hs.ece, epochs[stop - 1], epochs[-1], SAME)


def overfits(store: Store, run: Run) -> Evidence:
    """The last epoch against that of the least NLL, chosen on one half of the images and compared on the other."""
    found = arrays(store, run, "course")
    loss, wrong = found["test_nll"].astype(np.float64), 1.0 - found["test_correct"]
    best = int(loss[:, ::2].mean(1).argmin())
    rise, low, high = estimates.mean(loss[-1, 1::2] - loss[best, 1::2])
    error, error_low, error_high = estimates.mean(wrong[-1, 1::2] - wrong[best, 1::2])
    text = f"NLL {rise:+.3f}, error {100 * error:+.2f} ({100 * error_low:+.2f} to {100 * error_high:+.2f})"
    case = f"{run.settings.network}: epoch {len(loss)} against {best + 1}"
    return Evidence(case, text, low, high, overfitting_word((low, high), (error_low, error_high)), scale=1, digits=3)


def overfitting_word(loss: tuple[float, float], error: tuple[float, float]) -> str:
    """The NLL must rise, and the error must not rise with it by a point or more."""
    if loss[1] < 0 or error[0] > 0:
        return NOT
    return AGREES if loss[0] > 0 and error[1] < SAME else OPEN
