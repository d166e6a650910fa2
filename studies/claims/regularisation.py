"""Vemuri 2020, chapters 3 and 5: what regularisation does to error and confidence."""

from dataclasses import replace
from functools import cache, partial

import numpy as np

import howsure as hs

from ..kept import DEPTHS, is_kept, read_learnt
from ..plans import STUDIES
from ..plans.full import is_full
from ..plans.regularisation import MAIN, SWEPT, long_label
from ..runs import Run
from ..store import Store
from ..tables.calibration import fits
from ..tables.regularisation import at_epoch, course_of
from ..tables.results import again, by_network, finished, predictions, tally
from ..tables.table import percent, signed
from . import estimates
from .claim import (
    AGREES,
    FULL,
    MIXED,
    NOT,
    OPEN,
    OURS,
    PUBLISHED,
    Claim,
    Evidence,
    rest_on,
    sided,
)
from .paired import SEVERAL, alike, on_average, paired

SAME = 0.01
MUCH = 3.0
PAPER_TRAIN_ECE = 0.016
BY_HEART = (
    "A network that answers all its training images rightly cannot be over-confident on them: at the end ours do. "
    "Judged at the stored epoch whose training ECE is nearest to the paper's 1.6, with some answers still wrong."
)
NOT_BY_HEART = (
    "A network that answers all its training images rightly cannot be over-confident on them; those that decide "
    "still have some wrong, as the paper's."
)
COURSE = (
    "Long courses are kept every fourth epoch, so that the least NLL may lie between two of them. Against a training of "
    "20 epochs, which is listed too, the NLL is higher by about half and the error is not."
)
MANY_SETTINGS = 8  # fewer leave a correlation open whatever it is
STOPPED = 2 / 3
DRAWS = 200
Groups = dict[str, list[Run]]


def regularisation(store: Store, scale: str) -> list[Claim]:
    everything = dict.fromkeys(STUDIES["regularisation"](scale))
    planned = [run for run in everything if run.settings.network == MAIN[scale]]
    first = [run for run in finished(store, everything) if run.settings.seed == 0]
    groups = by_network(run for run in first if not run.label.startswith("standard,"))
    known = [
        r for r in finished(store, everything) if r.label.startswith("standard") and fits(store, r)
    ]
    longest = [run for run in known if is_long(run)]
    fitted = longest or known
    courses = [overfits(store, run) for run in known if {"course", "long_course"} & set(run.extras)]
    overfitted = [
        e
        for run in longest
        for e in longer(store, run, standard(groups.get(run.settings.network, [])))
    ]
    whole = [run for run in longest if "long_course" in run.extras]
    shown = [predictions(store, run) for run in fitted]
    full = [run for run in finished(store, everything) if is_full(run.settings)]
    judged = lambda judge: [
        *(judge(store, run) for run in fitted),
        *rest_on([judge(store, run) for run in full], FULL),
    ]
    short = training_left(store, standard(groups.get(MAIN[scale], [])))
    return [
        Claim("The test ECE is much higher than that on training images (at least three times)",
              "16.8 against 1.6, ten times (figure 3.1)", judged(test_against_train), telling=OURS, networks=shown),
        Claim("The network is over-confident on test images", "figure 3.1",
              judged(partial(over_confident, split="test")), telling=OURS, networks=shown),
        Claim("The network is over-confident on its training images too", "figure 3.1",
              [*(on_learnt_images(store, run) for run in whole),
               *(replace(over_confident(store, run, "train"), counts=False) for run in fitted),
               *rest_on([on_learnt_images(store, run) for run in full], FULL),
               *rest_on([replace(over_confident(store, run, "train"), counts=False) for run in full], FULL),
               *published_on_learnt()],
              {AGREES: NOT_BY_HEART, OPEN: BY_HEART, NOT: BY_HEART, MIXED: BY_HEART}, telling=OURS,
              networks=shown),
        Claim("Regularisation lowers the test ECE", "16.8 to 8.0, 8.0, 4.5, 5.9 (figure 5.2)",
              [e for runs in groups.values() for e in against_standard(store, runs)],
              {OPEN: short, MIXED: short, NOT: short}),
        Claim("Label smoothing raises the training ECE", "9.4 against 1.6",
              [e for runs in groups.values() for e in smoothed(store, runs)]),
        Claim("The label smoothing with the best ECE is not the one with the best error: another has a lower ECE",
              "not the same setting (figure 5.1)", smoothing(store, planned)),
        Claim("Label smoothing changes the ECE more than the error", "no large change in the error, the ECE more "
              "drastically (chapter 5)", smoothing_moves(store, planned)),
        Claim("The dropout with the best ECE is not the one with the best error: another has a lower ECE",
              "not the same setting (figure 5.1)", best_and_best(store, planned, "dropout")),
        Claim("Dropping out so much costs accuracy", "too many dropped units hurt the accuracy (chapter 5)",
              price_of_dropout(store, planned)),
        Claim("With weight decay ECE and error rise and fall together", "mirror each other (figure 5.1)",
              together(store, planned, "weight decay")),
        Claim("AAC follows the error more closely than ECE does", "mirrors the error (figure 5.1)",
              [closer(store, runs) for runs in groups.values() if len(runs) >= MANY_SETTINGS]),
        Claim("Early stopping hardly changes the ECE (less than a point; two thirds of 100 epochs against all)",
              "16.8 after 200 and after 300 epochs", [stopped_early(store, run) for run in whole], networks=shown),
        Claim("Networks can overfit the NLL without overfitting the 0/1 error: a course of training shows it",
              "can (figure 3.2)", [*one_shows(courses), *(replace(e, counts=False) for e in overfitted)],
              {AGREES: COURSE, OPEN: COURSE}),
    ]  # fmt: skip


def is_long(run: Run) -> bool:
    """Two thirds of 20 epochs, before the last fall of the rate, is not what the paper compares."""
    return run.label == long_label(run.settings)


def title(run: Run) -> str:
    return f"{run.settings.network}, {run.label}{again(run)}"


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


def test_against_train(store: Store, run: Run) -> Evidence:
    """The ratio of the two ECEs. Other images on the two sides, so that these are drawn apart."""
    sides = [predictions(store, run, split) for split in ("test", "train")]
    rng = np.random.default_rng(estimates.SEED)
    draws = [ece_of(sides[0], rng) / ece_of(sides[1], rng) for _ in range(DRAWS)]
    low, high = np.quantile(draws, [0.025, 0.975])
    test, train = (hs.ece(tally(p)) for p in sides)
    found = f"ECE {percent(test)} on test, {percent(train)} on training images: {test / train:.1f} times"
    word = sided(float(low), float(high), "+", MUCH)
    return Evidence(
        title(run), found, float(low), float(high), word, scale=1, digits=1, edges=(MUCH,)
    )


def ece_of(preds: hs.Predictions, rng: np.random.Generator) -> float:
    """Of one bootstrap draw."""
    rows = rng.integers(preds.n, size=preds.n)
    return hs.ece(hs.tally(preds.confidence[rows], correct=preds.correct[rows]))


def over_confident(store: Store, run: Run, split: str) -> Evidence:
    preds = predictions(store, run, split)
    middle, low, high = estimates.mean(preds.confidence - preds.correct)
    return Evidence(
        title(run), f"confidence minus accuracy {signed(middle)}", low, high, sided(low, high, "+")
    )


def published_on_learnt() -> list[Evidence]:
    """10,000 images that the published networks were trained on. They are known by heart, so that
    these cases are listed and do not vote."""
    if not is_kept("train"):
        return []
    found: list[Evidence] = []
    for depth in DEPTHS:
        preds = read_learnt(depth)
        middle, low, high = estimates.mean(preds.confidence - preds.correct)
        text = f"accuracy {percent(hs.accuracy(preds), 1)} %: confidence minus accuracy {signed(middle)}"
        word = sided(low, high, "+")
        case = f"published ResNet-{depth}, {preds.n:,} training images"
        found.append(Evidence(case, text, low, high, word, counts=False, regime=PUBLISHED))
    return found


def on_learnt_images(store: Store, run: Run) -> Evidence:
    """At the epoch whose training ECE is nearest to the paper's, among those with wrong answers
    left: without any a network cannot be over-confident."""
    found = course_of(store, run)
    confidence, correct = found["train_confidence"].astype(np.float64), found["train_correct"]
    eces = [hs.ece(hs.tally(c, correct=k)) for c, k in zip(confidence, correct, strict=True)]
    away = np.abs(np.array(eces) - PAPER_TRAIN_ECE)
    away[correct.all(1)] = np.inf
    row = int(away.argmin())
    middle, low, high = estimates.mean(confidence[row] - correct[row])
    text = (
        f"training ECE {percent(eces[row])}, accuracy {percent(correct[row].mean(), 1)} %: confidence minus accuracy "
        f"{signed(middle)}"
    )
    case = f"{title(run)}, after epoch {found['epochs'][row]}"
    return Evidence(case, text, low, high, sided(low, high, "+"), edges=(0.0,))


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
        paired(
            title(run),
            hs.ece,
            predictions(store, run, "train"),
            predictions(store, usual, "train"),
            "+",
        )
        for usual in standard(runs)
        for run in chosen
    ]


def sweep(store: Store, planned: list[Run], name: str) -> list[Run]:
    """The settings of one regulariser, plain training included, in order; none unless all of them
    are finished, those apart that were added later (a turn of their own)."""
    first = [run for run in planned if run.settings.seed == 0]
    chosen = [run for run in first if run.label == "standard" or run.label.startswith(name)]
    done = finished(store, chosen)
    whole = set(chosen) - set(done) <= {run for run in chosen if run.turn}
    return sorted(done, key=lambda run: getattr(run.settings, SWEPT[name])) if whole else []


def best_and_best(store: Store, planned: list[Run], name: str) -> list[Evidence]:
    """Both settings are chosen on validation images and compared on test images, so that chance
    makes no difference.
    """
    points = sweep(store, planned, name)
    if not points:
        return []
    ece = min(points, key=lambda run: hs.ece(tally(predictions(store, run, "val"))))
    error = max(points, key=lambda run: hs.accuracy(predictions(store, run, "val")))
    if ece == error:
        return [
            Evidence(
                title(ece),
                "one setting has both on validation images",
                float("nan"),
                float("nan"),
                NOT,
            )
        ]
    pair, names = (
        (predictions(store, ece), predictions(store, error)),
        f"{ece.label} against {error.label}",
    )
    return [
        paired(f"ECE: {names}", hs.ece, *pair, "-"),
        replace(paired(f"accuracy: {names}", hs.accuracy, *pair, "-", SAME), counts=False),
    ]


def price_of_dropout(store: Store, planned: list[Run]) -> list[Evidence]:
    """The accuracy at the dropout with the best ECE, against that at the one with the best error."""
    return [
        replace(e, counts=True)
        for e in best_and_best(store, planned, "dropout")
        if e.case.startswith("accuracy")
    ]


def smoothing(store: Store, planned: list[Run]) -> list[Evidence]:
    """The mean over seeds decides where there is one; the first seed is listed after it."""
    first, seeds = best_and_best(store, planned, "label smoothing"), over_seeds(store, planned)
    return [*seeds, *(replace(e, counts=e.counts and not seeds) for e in first)]


def group_seeds(store: Store, planned: list[Run]) -> dict[float, list[Run]]:
    """The trainings of each smoothing, of the seeds that all of them have; none for few seeds."""
    chosen = [r for r in planned if r.label == "standard" or r.label.startswith("label smoothing")]
    found = {r.settings.label_smoothing: dict[int, Run]() for r in chosen}
    for run in finished(store, chosen):
        found[run.settings.label_smoothing][run.settings.seed] = run
    seeds = sorted(set.intersection(*(set(runs) for runs in found.values()))) if found else []
    if len(seeds) < SEVERAL:
        return {}
    return {value: [runs[seed] for seed in seeds] for value, runs in found.items()}


def over_seeds(store: Store, planned: list[Run]) -> list[Evidence]:
    """The two settings that are best on average over the seeds, and their differences seed by seed."""
    groups = group_seeds(store, planned)
    if not groups:
        return []
    mean = lambda value, number: float(
        np.mean([number(predictions(store, run, "val")) for run in groups[value]])
    )
    ece = min(groups, key=lambda value: mean(value, lambda p: hs.ece(tally(p))))
    error = max(groups, key=lambda value: mean(value, hs.accuracy))
    return seed_by_seed(store, groups[ece], groups[error], f"smoothing {ece:g} against {error:g}")


def smoothing_moves(store: Store, planned: list[Run]) -> list[Evidence]:
    """Largest minus smallest mean over the settings, of the ECE and of the error; seeds are drawn
    again."""
    groups = group_seeds(store, planned)
    if not groups:
        return []
    numbers = lambda p: (hs.ece(tally(p)), 1 - hs.accuracy(p))
    table = np.array([[numbers(predictions(store, r)) for r in runs] for runs in groups.values()])
    reach = lambda rows: np.ptp(table[:, rows].mean(1), axis=0)
    value, low, high = estimates.resampled(
        table.shape[1], lambda rows: float(reach(rows)[0] - reach(rows)[1])
    )
    ece, error = reach(np.arange(table.shape[1]))
    found = (
        f"over {len(groups)} settings the ECE moves by {percent(ece)} points, the error by "
        f"{percent(error)}: {signed(value)}"
    )
    case = f"{planned[0].settings.network}, {table.shape[1]} seeds"
    return [Evidence(case, found, low, high, sided(low, high, "+"))]


def seed_by_seed(store: Store, first: list[Run], second: list[Run], names: str) -> list[Evidence]:
    """The mean difference over trainings, on test images."""
    if first == second:
        return [
            Evidence(
                f"{names}, {len(first)} seeds",
                "one setting has both",
                float("nan"),
                float("nan"),
                NOT,
            )
        ]
    both = zip(first, second, strict=True)
    pairs = {
        f"seed {a.settings.seed}": (predictions(store, a), predictions(store, b)) for a, b in both
    }
    ece, *_ = on_average(f"ECE: {names}", hs.ece, pairs, "-", of="seeds")
    accuracy, *_ = on_average(f"accuracy: {names}", hs.accuracy, pairs, "-", SAME, of="seeds")
    return [ece, replace(accuracy, counts=False)]


def together(store: Store, planned: list[Run], name: str) -> list[Evidence]:
    """Correlation of ECE and error over the settings; the same images are drawn again for all of
    them.
    """
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
        estimates.correlation(rows[some, 0], rows[some, 1])
        - estimates.correlation(rows[some, 0], rows[some, 2])
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
    found = course_of(store, run)
    return [at_epoch(found, row) for row in range(len(found["test_correct"]))]


def stopped_early(store: Store, run: Run) -> Evidence:
    """The paper stops at 200 of 300 epochs: the same share of ours."""
    outcomes, epochs = course_epochs(store, run), course_of(store, run)["epochs"]
    row = int(np.abs(epochs - STOPPED * epochs[-1]).argmin())
    case = f"{run.settings.network}: epoch {epochs[row]} against {epochs[-1]}"
    return alike(case, hs.ece, outcomes[row], outcomes[-1], SAME)


def overfits(store: Store, run: Run) -> Evidence:
    """The last epoch against that of the least NLL, chosen on one half of the images and compared
    on the other.
    """
    found = course_of(store, run)
    loss, wrong = found["test_nll"].astype(np.float64), 1.0 - found["test_correct"]
    best = int(loss[:, ::2].mean(1).argmin())
    case = f"{run.settings.network}: epoch {found['epochs'][-1]} against {found['epochs'][best]}"
    return overfitting(case, loss[-1, 1::2] - loss[best, 1::2], wrong[-1, 1::2] - wrong[best, 1::2])


def one_shows(courses: list[Evidence]) -> list[Evidence]:
    """The paper says "can": one course is enough, and the others are listed."""
    if not courses:
        return []
    best = next((e for e in courses if e.word == AGREES), courses[0])
    found = (
        f"{sum(e.word == AGREES for e in courses)} of {len(courses)} courses show it; {best.found}"
    )
    word = OPEN if best.word == NOT else best.word
    others = [replace(e, counts=False) for e in courses if e is not best]
    return [replace(best, found=found, word=word), *others]


def longer(store: Store, run: Run, short: list[Run]) -> list[Evidence]:
    """A long training against a short one of the same network, both with their rate lowered to the
    end: the epochs before that, at a high rate, go up and down too much to be compared."""
    found: list[Evidence] = []
    for other in short:
        both = [predictions(store, one) for one in (run, other)]
        loss, wrong = (
            [one(p).astype(np.float64) for p in both] for one in (hs.losses.nll, hs.losses.zero_one)
        )
        case = f"{title(run)} against {other.settings.epochs} epochs"
        found.append(overfitting(case, loss[0] - loss[1], wrong[0] - wrong[1]))
    return found


def overfitting(case: str, loss: np.ndarray, wrong: np.ndarray) -> Evidence:
    """Differences image by image."""
    rise, low, high = estimates.mean(loss)
    error, error_low, error_high = estimates.mean(wrong)
    text = f"NLL {rise:+.3f}, error {100 * error:+.2f} ({100 * error_low:+.2f} to {100 * error_high:+.2f})"
    return Evidence(
        case,
        text,
        low,
        high,
        overfitting_word((low, high), (error_low, error_high)),
        scale=1,
        digits=3,
    )


def overfitting_word(loss: tuple[float, float], error: tuple[float, float]) -> str:
    """The NLL must rise, and the error must not rise with it by a point or more."""
    if loss[1] < 0 or error[0] > 0:
        return NOT
    return AGREES if loss[0] > 0 and error[1] < SAME else OPEN
