"""Laves 2019: temperature scaling inside MC dropout, rejection, and the confidence penalty."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

import howsure as hs

from ..plans import runs_of
from ..plans.full import is_full
from ..runs import Run
from ..store import Store
from ..tables.mc_temperature import (
    mc_arrays,
    name_of,
    one_pass,
    one_pass_scaled,
    passes,
    scaled,
    scaling,
    swept,
)
from ..tables.results import finished
from ..tables.table import percent
from . import estimates
from .claim import (
    AGREES,
    FULL,
    MIXED,
    NOT,
    OPEN,
    OURS,
    SMALL,
    Claim,
    Evidence,
    rest_on,
    sided,
)
from .paired import SEVERAL, Metric, on_average, value

STRAIGHT = 0.95
LAW = 1e-3  # the temperature is fitted to about a millionth
REGIME = 0.05
BELOW = np.arange(0.1, 0.81, 0.05)
DRAWS = 200
HALF = 0.005
THIRD = 1 / 3  # of the ECE of one pass; the paper prints 45 to 66 %
ALREADY = "One pass with its own temperature is as well calibrated: the gain of the passes is in the scaling."
FEW = "Trainings of one network differ by about the margin."
SPREAD = "Trainings of one network gain so different amounts that few of them leave the mean open."
LITTLE = "A network that is hardly miscalibrated as trained has little to gain: its temperature is near 1."
Pair = tuple[Run, Run]
Both = tuple[hs.Predictions, hs.Predictions]
Shown = Callable[[Store, Run], hs.Predictions]
PAPER_DATA = ("cifar10", "cifar100")
RISES = (
    "The temperature that is best for single passes is too high for their average: the average becomes under-confident, "
    "and its entropy says more errors than there are. ECE falls all the same."
)


def mc_temperature(store: Store, scale: str) -> list[Claim]:
    everything = [
        run for run in finished(store, runs_of(["mc_temperature"], scale)) if not swept(run)
    ]
    pairs = with_and_without(over_confident(store, everything))
    runs = [run for run in over_confident(store, everything) if not run.settings.confidence_penalty]
    small = [run for run in runs if not is_full(run.settings)]
    usual = [run for run in small if run.settings.data in PAPER_DATA]
    shown = [one_pass(store, run) for run in usual or small]
    return [
        Claim("Temperature scaling lowers the UCE of MC dropout (the temperature of the paper's equation 9)",
              "7.60 to 5.27, 30.33 to 2.41, 29.62 to 2.69",
              differences(store, runs, hs.uce, (scaled, passes)), {OPEN: SPREAD, MIXED: LITTLE},
              telling=OURS, networks=shown),
        Claim("Temperature scaling lowers the UCE of MC dropout (the temperature that the released code fits)",
              "7.60 to 5.27, 30.33 to 2.41, 29.62 to 2.69",
              differences(store, runs, hs.uce, (scaled_as_released, passes)), {NOT: RISES},
              telling=OURS, networks=shown),
        Claim("Temperature scaling lowers the ECE of MC dropout", "8.41 to 0.47, 24.62 to 1.92, 23.98 to 2.89",
              differences(store, runs, hs.ece, (scaled, passes)), {OPEN: SPREAD, MIXED: LITTLE},
              telling=OURS, networks=shown),
        Claim("MC dropout alone lowers the ECE of one pass", "8.95 to 8.41, 29.63 to 24.62, 30.62 to 23.98",
              differences(store, runs, hs.ece, (passes, one_pass)),
              {NOT: UNDER, MIXED: UNDER, OPEN: UNDER}, telling=OURS, networks=shown),
        Claim("After scaling, MC dropout has a lower ECE than one pass (by a third of its value or more)",
              "by 45 to 66 %: 0.47 against 1.40, 1.92 against 3.50, 2.89 against 6.10",
              differences(store, runs, hs.ece, (scaled, one_pass_scaled), share=THIRD), {NOT: ALREADY, OPEN: FEW},
              telling=OURS, networks=shown),
        Claim("After scaling the error falls almost linearly with the entropy threshold (R² of a line above 0.95)",
              "almost linear below 0.8 (figure 3)", telling_data(runs, [straight(store, run) for run in runs]),
              telling=OURS, networks=shown),
        Claim("Scaling makes that relation straighter", "figure 3",
              telling_data(runs, [straighter(store, run) for run in runs]), telling=OURS, networks=shown),
        *entropy_law(store, runs),
        Claim("Scaling does not change the predicted class", "does not change the maximum",
              flips(store, everything),
              {NOT: "The mean over passes is taken after scaling, so that the maximum can move; see the definitions."}),
        Claim("The confidence penalty lowers the ECE", "5.20 to 3.37 (DenseNet-121)",
              [e for how in (one_pass, passes) for e in penalty(store, pairs, how)], {OPEN: FEW},
              telling=OURS, networks=shown),
        Claim("The penalty is less effective than temperature scaling", "less effective (figure 2)",
              [e for metric in (hs.ece, hs.uce) for e in penalty_against_scaling(store, pairs, metric)],
              telling=OURS, networks=shown),
        Claim("Penalty and temperature together are better than temperature alone (by half a point or more)",
              "left open by the paper",
              [e for metric in (hs.ece, hs.uce) for e in together(store, pairs, metric)], {OPEN: FEW}, own=True,
              telling=OURS, networks=shown),
    ]  # fmt: skip


def scaled_as_released(store: Store, run: Run) -> hs.Predictions:
    """The released code minimises the mean NLL of the single passes."""
    return scaled(store, run, "per_pass")


def entropy_law(store: Store, runs: list[Run]) -> list[Claim]:
    """Section A.2: the entropy is greatest, given equation 16, at the temperature of least NLL. The
    solution of (13) to (16) is a softmax of the logits over the temperature at which (16) holds, so
    that the law is true where it holds at the fitted temperature, on the images of the fit."""
    names = {"averaged": "the temperature of equation 9", "per_pass": "that the released code fits"}
    told = {
        NOT: "Equation 16 is the condition of least NLL for single passes, as the released code has it. The NLL of the "
        "averaged probabilities has its least value elsewhere, where the entropy is not greatest."
    }
    return [
        Claim(f"The temperature of least NLL maximises the entropy under equation 16 ({text})",
              "equivalent to maximising the entropy (equations 13 to 18)",
              telling_data(runs, [balance(store, run, how) for run in runs]), told, telling=OURS)
        for how, text in names.items()
    ]  # fmt: skip


def balance(store: Store, run: Run, how: str) -> Evidence:
    """Both sides of equation 16 over the passes of the validation images, in units of the left."""
    found = mc_arrays(store, run)
    z, labels = found["mc_val_logits"].astype(np.float64), found["val_labels"].astype(np.intp)
    t = scaling(store, run, how).temperature
    p = np.exp((z - z.max(2, keepdims=True)) / t)
    p /= p.sum(2, keepdims=True)
    left = z[:, np.arange(len(labels)), labels].mean()
    right = (z * p).sum(2).mean()
    text = (
        f"T {t:.3f}: {left:.4f} = {right:.4f}, apart by {100 * abs(left - right) / abs(left):.2f} %"
    )
    word = AGREES if abs(left - right) < LAW * abs(left) else NOT
    return Evidence(name_of(run), text, float("nan"), float("nan"), word)


def telling_data(runs: list[Run], found: list[Evidence]) -> list[Evidence]:
    """The paper's images decide where there are such; other data are listed."""
    usual = [run.settings.data in PAPER_DATA for run in runs]
    regimes = [FULL if is_full(run.settings) else SMALL for run in runs]
    return [
        replace(e, counts=ours or not any(usual), regime=regime)
        for e, ours, regime in zip(found, usual, regimes, strict=True)
    ]


def over_confident(store: Store, runs: list[Run]) -> list[Run]:
    """Networks that trust themselves too much as the paper's do (ECE 9 % and more; here five points
    or more on validation images), with their penalised partners. A network that is calibrated as
    trained is no test."""
    plain = {
        r.settings
        for r in runs
        if not r.settings.confidence_penalty and too_sure(store, r) > REGIME
    }
    return [run for run in runs if replace(run.settings, confidence_penalty=0.0) in plain]


def too_sure(store: Store, run: Run) -> float:
    one = one_pass(store, run, "val")
    return float((one.confidence - one.correct).mean())


UNDER = "Averaging makes probabilities softer, which helps an over-confident network and hurts an under-confident one."


def with_and_without(runs: list[Run]) -> list[Pair]:
    """The penalised networks, each with its partner that differs in nothing else."""
    plain = {run.settings: run for run in runs}
    partners = [(run, plain.get(replace(run.settings, confidence_penalty=0.0))) for run in runs]
    return [
        (run, partner) for run, partner in partners if partner and run.settings.confidence_penalty
    ]


def differences(
    store: Store, runs: list[Run], metric: Metric, how: tuple[Shown, Shown], share: float = 0.0
) -> list[Evidence]:
    """Two treatments of the same networks; the claim is that the first has the lower value, by this
    share of the second or more."""
    names = {
        one_pass: "one pass",
        passes: "passes",
        scaled: "scaled passes",
        scaled_as_released: "passes scaled as released",
        one_pass_scaled: "one scaled pass",
    }
    case = " against ".join(names[one] for one in how)
    return by_kind(
        case, metric, {r: (how[0](store, r), how[1](store, r)) for r in runs}, "-", share=share
    )


def by_kind(
    case: str,
    metric: Metric,
    pairs: dict[Run, Both],
    sign: str,
    margin: float = 0.0,
    *,
    share: float = 0.0,
) -> list[Evidence]:
    """The mean over the trainings of each network; networks and data sets differ too much for one
    mean. The margin, and a share of the mean with the second treatment, must be passed.
    """
    kinds: dict[tuple[str, str, int, bool], dict[str, Both]] = {}
    for run, both in pairs.items():
        s = run.settings
        kinds.setdefault((s.network, s.data, s.epochs, is_full(s)), {})[name_of(run)] = both
    usual = any(data in PAPER_DATA for _, data, _, _ in kinds)
    found: list[Evidence] = []
    for (network, data, epochs, full), some in kinds.items():
        of = f"trainings of {network} {data} {epochs} epochs"
        limit = margin
        if share:
            limit += share * float(np.mean([value(metric, second) for _, second in some.values()]))
        cases = on_average(case, metric, some, sign, limit, of=of)
        first, *single = rest_on(cases, FULL if full else SMALL)
        # The paper's images decide where there are such; other data are listed.
        votes = first.counts and (data in PAPER_DATA or not usual)
        found.append(replace(first, found=f"{effect(metric, some)}{first.found}", counts=votes))
        found += [replace(e, counts=e.counts and votes) for e in single]
    return found


def effect(metric: Metric, some: dict[str, Both]) -> str:
    """Both means, and the difference in standard deviations between trainings, where there are
    several."""
    if len(some) < SEVERAL:
        return ""
    one, two = (np.array([value(metric, both[i]) for both in some.values()]) for i in (0, 1))
    apart = (one - two).mean() / (one - two).std(ddof=1)
    return f"{percent(two.mean())} to {percent(one.mean())}, {apart:+.1f} standard deviations: "


def penalty(store: Store, pairs: list[Pair], how: Shown) -> list[Evidence]:
    case = f"{'one pass' if how is one_pass else 'passes'}, with against without"
    return by_kind(case, hs.ece, {b: (how(store, a), how(store, b)) for a, b in pairs}, "-")


def penalty_against_scaling(store: Store, pairs: list[Pair], metric: Metric) -> list[Evidence]:
    case = f"{metric.__name__.upper()}, penalty alone against scaling alone"
    return by_kind(case, metric, {b: (passes(store, a), scaled(store, b)) for a, b in pairs}, "+")


def together(store: Store, pairs: list[Pair], metric: Metric) -> list[Evidence]:
    case = f"{metric.__name__.upper()}, both against scaling alone"
    return by_kind(
        case, metric, {b: (scaled(store, a), scaled(store, b)) for a, b in pairs}, "-", HALF
    )


def flips(store: Store, runs: list[Run]) -> list[Evidence]:
    """One changed answer is enough against a claim without exception."""
    changed = {run: scaled(store, run).prediction != passes(store, run).prediction for run in runs}
    if not runs:
        return []
    some = sum(bool(answers.any()) for answers in changed.values())
    single = [flipped(name_of(run), answers) for run, answers in changed.items()]
    every = flipped(f"{len(runs)} networks together", np.concatenate(list(changed.values())))
    found = f"{every.found}, in {some} of {len(runs)} networks"
    return [replace(every, found=found), *(replace(e, counts=False) for e in single)]


def flipped(case: str, answers: np.ndarray) -> Evidence:
    found = f"{answers.sum()} of {len(answers):,} answers change"
    return Evidence(case, found, float("nan"), float("nan"), NOT if answers.any() else AGREES)


def straight(store: Store, run: Run) -> Evidence:
    preds = scaled(store, run)
    entropy, wrong = columns(preds)
    value, low, high = estimates.resampled(
        preds.n, lambda rows: straightness(entropy[rows], wrong[rows]), DRAWS
    )
    word = sided(low, high, "+", STRAIGHT)
    return Evidence(
        name_of(run), f"R² {value:.3f}", low, high, word, scale=1, digits=3, edges=(STRAIGHT,)
    )


def straighter(store: Store, run: Run) -> Evidence:
    after, before = columns(scaled(store, run)), columns(passes(store, run))
    of = lambda columns, rows: straightness(columns[0][rows], columns[1][rows])
    value, low, high = estimates.resampled(
        len(after[0]), lambda rows: of(after, rows) - of(before, rows), DRAWS
    )
    found = f"R² {straightness(*after):.3f} against {straightness(*before):.3f}: {value:+.3f}"
    return Evidence(name_of(run), found, low, high, sided(low, high, "+"), scale=1, digits=3)


def columns(preds: hs.Predictions) -> tuple[np.ndarray, np.ndarray]:
    """Normalised entropy, and whether the answer is wrong."""
    return 1 - hs.scores.entropy(preds), ~preds.correct.astype(bool)


def straightness(entropy: np.ndarray, wrong: np.ndarray) -> float:
    """R² of the least-squares line through the error of what is kept, at thresholds up to the
    paper's 0.8.
    """
    order = np.argsort(entropy, kind="stable")
    kept = np.searchsorted(entropy[order], BELOW, side="right")
    some = kept > 0
    errors = np.cumsum(wrong[order])[kept[some] - 1] / kept[some]
    return estimates.correlation(BELOW[some], errors) ** 2
