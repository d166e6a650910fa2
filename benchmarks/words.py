"""Do the words hold? Worlds whose truth is known, many runs: how often a verdict, a gate or a
finding is wrong.

    python -m benchmarks.words                       # goes on where it stopped; writes JSON and the
    table python -m benchmarks.words --only baseline --runs 2000 python -m benchmarks.words --table
    # only writes the table

A check draws data and says whether what howsure says of them is false. Run i of a check always
draws the same data.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

import howsure as hs
from benchmarks.coverage import save
from benchmarks.worlds import (
    C10,
    C100,
    C100_ALL,
    DATA,
    EUROSAT,
    IN1K,
    MMLU,
    MNIST,
    Population,
    Random,
    World,
    clustered,
    honest,
    measured_set,
    plain,
    shuffled,
    two_decimals,
    vectors,
    verbal,
    with_errors,
    with_rights,
)
from howsure.policies import (
    expected_on_new_data,
    guaranteed_threshold,
    threshold_for_accuracy,
    threshold_for_coverage,
)
from howsure.report.gate import WATCHED_METRICS, Limit, check, list_limitable
from howsure.report.measurement import Sureness, measure_items
from howsure.report.samples import Samples
from howsure.report.score_findings import find_all
from howsure.report.summary import Summary
from howsure.report.verdict import build_case, choose_guarantee, compute_guarantees
from howsure.uncertainty.intervals import all_differences

ROOT = Path(__file__).parent
RESULTS, TABLE = ROOT / "results" / "words", ROOT / "results" / "words.md"
PAGE = ROOT.parent / "docs" / "intervals.md"
MARKS = ("<!-- words: begin -->", "<!-- words: end -->")
SAVE = 50
GATED = {
    "accuracy": "min",
    "aurc": "max",
    "auroc": "min",
    "ece": "max",
    "e_aurc": "max",
    "augrc": "max",
    "aupr_error": "min",
    "aupr_success": "min",
    "over_confidence": "max",
    "under_confidence": "max",
    "correctness_brier": "max",
    "correctness_nll": "max",
}
BY_CLASS: dict[str, tuple[Any, Callable[..., float]]] = {
    "nll": ("max", hs.nll),
    "brier": ("max", hs.brier),
    "top_5_accuracy": ("min", hs.top_k_accuracy),
    "uce": ("max", hs.uce),
}
FACTS = (
    "saturated",
    "thin_bins",
    "does_not_rank",
)  # findings that say what is there, whatever the claims


class Check(NamedTuple):
    """What is said, where, how often it may be wrong, and one draw: wrong, right, or None where
    nothing was said.
    """

    what: str
    world: str
    allowed: float
    wrong: Callable[[Random], bool | None]
    share: float = 1.0  # of the runs that are asked for: fast ones have more


def preds_of(o: hs.Outcomes) -> hs.Predictions:
    more = {} if o.group is None else {"group": o.group}
    return hs.Predictions.from_confidence(o.score, o.right, **more)


def risk_above(p: Population, threshold: float) -> float:
    """True risk of the answers that score at least this much."""
    score, share, wrong = p.columns
    row = int(np.searchsorted(-score, -threshold, side="right")) - 1
    return 0.0 if row < 0 else float(wrong[row] / share[row])


def plain_worlds() -> list[World]:
    make = partial(plain, "")
    return [
        make(C10, 200, measured_set(C10)),
        make(C10, 2000, measured_set(C10)),
        make(C100, 500, measured_set(C100)),
        make(IN1K, 500, measured_set(IN1K)),
        make(IN1K, 5000, measured_set(IN1K)),
        make(MMLU, 1000, measured_set(MMLU)),
        make("1 % errors", 500, with_errors(C10, 0.01)),
        make("5 % errors, two decimals", 1000, measured_set(C10, two_decimals)),
        make("verbalised", 500, measured_set(IN1K, verbal)),
        make("useless score", 500, measured_set(C10, shuffled)),
        make("calibrated", 1000, honest(IN1K)),
        make("few right", 300, with_rights(C100, 0.5)),
    ]


def promise(world: World, rng: Random) -> bool | None:
    """The verdict's promise is broken."""
    o = world.draw(rng)
    said = choose_guarantee(compute_guarantees(o.tally(), len(o), 0.95))
    if said is None or said["threshold"] is None:
        return None
    return risk_above(world.population(), said["threshold"]) > said["risk"]


def false_pass(world: World, limit: Limit, rng: Random) -> bool:
    """A model that just misses the limit passes."""
    return check(preds_of(world.draw(rng)), [limit])[0].passed


def class_pass(source: str, n: int, limit: Limit, rng: Random) -> bool:
    """The same for numbers that need all classes."""
    whole = vectors(source)
    return check(whole[rng.integers(0, len(whole), n)], [limit])[0].passed


def class_gates() -> Iterator[Check]:
    few = ((C100_ALL, 20), (C10, 60), (C10, 100))
    for source, n in (
        *few,
        (C10, 1000),
        (EUROSAT, 500),
        (C100_ALL, 300),
        (C100_ALL, 2000),
        (MNIST, 2000),
    ):
        for name, (side, metric) in BY_CLASS.items():
            limit = Limit(name, side, metric(vectors(source)) + (1e-9 if side == "min" else -1e-9))
            what = f"a model just worse than the required {name} passes"
            yield Check(
                what, f"{source}, n = {n:,}", 0.025, partial(class_pass, source, n, limit), 2.0
            )


def just_missed(world: World) -> list[Limit]:
    """Limits that the truth misses by a hair."""
    true = world.population().ranking() | world.population().claims()
    return [
        Limit(
            name, "min" if side == "min" else "max", true[name] + (1e-9 if side == "min" else -1e-9)
        )
        for name, side in GATED.items()
    ]


def baseline(old: World, new: World, rng: Random) -> bool:
    """The same model on a fresh sample fails."""
    samples = Samples.of(preds_of(old.draw(rng)), ["max_prob"])
    known = list_limitable(samples.preds)
    found = measure_items(
        [known[name] for name in WATCHED_METRICS], samples, samples.first, Sureness()
    )
    report: Any = {"metrics": found, "provenance": {"level": 0.95}}
    return not all(v.passed for v in check(preds_of(new.draw(rng)), [], baseline=report))


def equal_models(many: int, n: int, rng: Random) -> list[tuple[Any, Any]]:
    """Models that are equally good: questions are hard for all of them, the rest is their own luck."""
    hardness = rng.beta(6, 1.5, n)
    claims = np.clip(hardness + rng.normal(0, 0.08, (many, n)), 0.01, 0.999)
    luck = ndtr(0.7 * rng.standard_normal(n) + np.sqrt(0.51) * rng.standard_normal((many, n)))
    return [(c, u < hardness) for c, u in zip(claims, luck, strict=True)]


def clear_pair(metric: Callable[..., float], many: int, n: int, rng: Random) -> bool:
    return any(p.clear for p in all_differences(metric, equal_models(many, n, rng)))


def pair_differs(metric: Callable[..., float], n: int, rng: Random) -> bool:
    a, b = equal_models(2, n, rng)
    _, low, high = hs.paired_difference(metric, a, b)
    return low > 0 or high < 0


def against(n: int, rng: Random) -> bool:
    """An equally good model on the same samples fails."""
    a, b = (hs.Predictions.from_confidence(*m) for m in equal_models(2, n, rng))
    return not all(v.passed for v in check(a, [], against=b))


def constant_better(world: World, rng: Random) -> bool:
    """A constant claim is called better calibrated than honest ones."""
    o = world.draw(rng)
    flat = np.full(len(o), min(0.999, max(0.001, float(o.right.mean()))))
    _, low, _ = hs.paired_difference(hs.ece, (o.score, o.right), (flat, o.right))
    return low > 0


def guarantee(world: World, risk: float, method: Any, bound: Any, rng: Random) -> bool | None:
    """A promise for samples in groups, at delta = 0.1, is broken."""
    g = guaranteed_threshold(world.draw(rng), risk=risk, delta=0.1, method=method, bound=bound)
    return risk_above(world.population(), g.threshold) > risk if g.feasible else False


def together(n: int, clusters: int, alike: float, rng: Random) -> hs.Predictions:
    """Calibrated claims whose outcomes are lucky or unlucky together in clusters of unequal size."""
    score = honest(IN1K)().score
    size = rng.lognormal(0, 0.5, clusters)
    group = rng.choice(clusters, n, p=size / size.sum())
    z = np.sqrt(alike) * rng.standard_normal(clusters)[group] + np.sqrt(
        1 - alike
    ) * rng.standard_normal(n)
    claim = rng.choice(score, n)
    return hs.Predictions.from_confidence(claim, ndtr(z) < claim, group=group)


def false_finding(draw: Callable[[Random], hs.Predictions], rng: Random) -> bool:
    """Something is found in calibrated claims."""
    found = find_all(build_case(Summary.of(draw(rng), ["max_prob"])))
    return any(f["name"] not in FACTS for f in found)


def worse_group(draw: Callable[[Random], hs.Predictions], rng: Random) -> bool:
    return any(
        f["name"] == "worse_group"
        for f in find_all(build_case(Summary.of(draw(rng), ["max_prob"])))
    )


def surprised(draw: Callable[[Random], hs.Predictions], rng: Random) -> bool:
    """`calibration_test` refuses true claims at 5 %."""
    return hs.calibration_test(draw(rng)).p <= 0.05


def rounded(source: str, n: int, digits: int, rng: Random) -> hs.Predictions:
    claim = rng.choice(honest(source)().score, n).round(digits)
    return hs.Predictions.from_confidence(claim, rng.random(n) < claim)


def missed(world: World, choose: Callable[[hs.Tally], Any], part: str, rng: Random) -> bool | None:
    """A new sample shows a coverage or an accuracy outside the interval that was predicted."""
    o, new = world.draw(rng), world.draw(rng)
    expected = getattr(expected_on_new_data(o, choose), part)
    kept = new.score >= choose(o.tally()).threshold
    if part == "accuracy" and not kept.any():
        return None
    seen = kept.mean() if part == "coverage" else new.right[kept].mean()
    return not expected.low - 1e-12 <= seen <= expected.high + 1e-12


def checks() -> Iterator[Check]:
    """All of them, the fast ones first."""
    for w in plain_worlds():
        yield Check("a verdict's promise is broken", w.name, 0.05, partial(promise, w))
    for n in (1, 2, 5, 10, 50, 200, 1000, 5000):
        w = plain("", C10, n, measured_set(C10))
        yield Check(
            "a model just below the required accuracy passes",
            w.name,
            0.025,
            partial(false_pass, w, just_missed(w)[0]),
            2.0,
        )
    for w, first in (
        (plain("", C10, 1000, measured_set(C10)), 4),
        (plain("", IN1K, 300, measured_set(IN1K)), None),
        (plain("", IN1K, 3000, honest(IN1K)), 4),
        (plain("", IN1K, 10, measured_set(IN1K)), None),
        (plain("", "verbalised", 500, measured_set(IN1K, verbal)), None),
        (plain("", C10, 5000, measured_set(C10)), None),
    ):
        for limit in just_missed(w)[1:first]:
            what = f"a model just worse than the required {limit.name} passes"
            yield Check(what, w.name, 0.025, partial(false_pass, w, limit), 2.0)
    yield from class_gates()
    for (m, source), (old, new) in (
        ((measured_set, C10), (2000, 2000)),
        ((measured_set, C10), (10_000, 500)),
        ((measured_set, IN1K), (1000, 1000)),
        ((honest, IN1K), (5000, 500)),
        ((measured_set, C100), (300, 300)),
    ):
        worlds = plain("", source, old, m(source)), plain("", source, new, m(source))
        name = f"{source}{'' if m is measured_set else ', calibrated'}, {old:,} then {new:,}"
        yield Check("--baseline fails the same model", name, 0.05, partial(baseline, *worlds))
    for n in (200, 1000):
        yield Check(
            "--against fails an equally good model", f"n = {n:,}", 0.05, partial(against, n)
        )
    for w in [
        plain("", s, n, honest(s))
        for s, n in ((IN1K, 300), (IN1K, 3000), (C100, 1000), (C10, 1000))
    ]:
        yield Check(
            "a constant claim is called better calibrated",
            w.name,
            0.07,
            partial(constant_better, w),
        )
    for many, size, noise in ((40, 25.0, 2.0), (40, 25.0, 0.8), (100, 20.0, 0.8), (200, 10.0, 1.0)):
        w = clustered(f"{IN1K}, noise {noise:g}", IN1K, many, size, noise)
        for method, bound in (
            ("fixed_sequence", None),
            ("fallback", None),
            ("fixed_sequence", "groups"),
        ):
            what = f"a promise for groups is broken ({method}{', whole groups' if bound else ''})"
            yield Check(what, w.name, 0.1, partial(guarantee, w, 0.1, method, bound))
    yield from calibrated()
    for metric in (
        hs.accuracy,
        hs.aurc,
        hs.e_aurc,
        hs.augrc,
        hs.auroc,
        hs.aupr,
        hs.ece,
        hs.correctness_nll,
    ):
        for n in (200, 1000):
            what = f"two equal models differ by {metric.__name__}"
            yield Check(
                what,
                f"n = {n:,}",
                0.05 if metric is not hs.ece else 0.07,
                partial(pair_differs, metric, n),
            )
    for w in (
        plain("", C10, 1000, measured_set(C10)),
        plain("", IN1K, 500, measured_set(IN1K)),
        clustered(C10, C10, 40, 25.0),
        clustered(f"{IN1K}, strong", IN1K, 40, 25.0, 0.8),
        clustered(IN1K, IN1K, 100, 20.0),
    ):
        rules = {"95 % accuracy": partial(threshold_for_accuracy, accuracy=0.95)}
        rules["70 % coverage"] = partial(threshold_for_coverage, coverage=0.7)
        for rule, choose in rules.items():
            for part in ("coverage", "accuracy"):
                what = f"new {part} outside what was expected ({rule})"
                yield Check(what, w.name, 0.07, partial(missed, w, choose, part))
    for metric in (hs.accuracy, hs.aurc, hs.ece):
        for n in (300, 1000):
            what = f"a clear pair among ten equal models by {metric.__name__}"
            yield Check(what, f"n = {n:,}", 0.06, partial(clear_pair, metric, 10, n))


def calibrated() -> Iterator[Check]:
    """Findings and the test of calibration on claims that are true."""
    sets: dict[str, Callable[[Random], hs.Predictions]] = {
        "independent, n = 500": partial(rounded, IN1K, 500, 12),
        "independent, n = 5,000": partial(rounded, IN1K, 5000, 12),
        "two decimals, n = 2,000": partial(rounded, IN1K, 2000, 2),
        "40 clusters, n = 1,000": lambda rng: together(1000, 40, 0.2, rng),
        "100 clusters, n = 3,000": lambda rng: together(3000, 100, 0.4, rng),
        "15 clusters, n = 600": lambda rng: together(600, 15, 0.2, rng),
    }
    for name, draw in sets.items():
        yield Check(
            "something is found in calibrated claims", name, 0.05, partial(false_finding, draw)
        )
        if "clusters" in name:
            yield Check(
                "a group of calibrated clusters is called worse",
                name,
                0.05,
                partial(worse_group, draw),
            )
        yield Check(
            "calibration_test refuses true claims at 5 %", name, 0.05, partial(surprised, draw)
        )


def key(c: Check) -> str:
    return "_".join(
        "".join(x if x.isalnum() or x == "." else " " for x in f"{c.what} {c.world}").split()
    )


def run(c: Check, runs: int) -> dict[str, Any]:
    """Go on from what is stored."""
    path = RESULTS / f"{key(c)}.json"
    done: dict[str, Any] = (
        json.loads(path.read_text()) if path.exists() else {"runs": 0, "said": 0, "wrong": 0}
    )
    for i in range(done["runs"], round(runs * c.share)):
        found = c.wrong(np.random.default_rng([*key(c).encode(), i]))
        done["runs"], done["said"] = i + 1, done["said"] + (found is not None)
        done["wrong"] += bool(found)
        if done["runs"] % SAVE == 0:
            save(path, done)
    save(path, done)
    return done


def stored() -> list[tuple[Check, dict[str, Any]]]:
    return [
        (c, json.loads(f.read_text()))
        for c in checks()
        if (f := RESULTS / f"{key(c)}.json").exists()
    ]


def beyond(c: Check, done: dict[str, Any]) -> bool:
    """Whether a share is above what is allowed, beyond two standard errors of the simulation."""
    n = max(1, done["runs"])
    return done["wrong"] / n > c.allowed + 2 * np.sqrt(c.allowed * (1 - c.allowed) / n)


def table() -> str:
    lines = ["| what | world | runs | wrong | allowed |", "|---|---|---:|---:|---:|"]
    for c, done in stored():
        share = 100 * done["wrong"] / max(1, done["runs"])
        mark = " **above**" if beyond(c, done) else ""
        lines.append(
            f"| {c.what} | {c.world} | {done['runs']:,} | {share:.1f} %{mark} | {100 * c.allowed:g} % |"
        )
    return "\n".join(lines) + "\n"


def summary() -> str:
    found: dict[str, list[tuple[Check, dict[str, Any]]]] = {}
    for c, done in stored():
        found.setdefault(c.what, []).append((c, done))
    runs = sum(done["runs"] for _, done in stored())
    lines = [f"{len(stored())} checks, {runs:,} runs in all, {time.strftime('%Y-%m-%d')}.", ""]
    lines += [
        "| what | worlds | runs each | wrong at most | where | allowed |",
        "|---|---:|---:|---:|---|---:|",
    ]
    for what, of in found.items():
        c, done = max(of, key=lambda pair: pair[1]["wrong"] / max(1, pair[1]["runs"]))
        cells = [
            str(len(of)),
            f"{min(d['runs'] for _, d in of):,}",
            f"{100 * done['wrong'] / done['runs']:.1f} %",
        ]
        lines.append(
            f"| {what} | " + " | ".join([*cells, c.world, f"{100 * c.allowed:g} %"]) + " |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="only those whose name contains this")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--table", action="store_true", help="only write the table")
    chosen = parser.parse_args()
    if not DATA.exists():
        parser.error(
            f"the real predictions are not at {DATA}; set HOWSURE_SHARED to the folder that holds data/"
        )
    for c in () if chosen.table else checks():
        if chosen.only in f"{c.what} {c.world}":
            start = time.monotonic()
            done = run(c, chosen.runs)
            mark = "ABOVE" if beyond(c, done) else ""
            took = time.monotonic() - start
            print(
                f"{c.what} | {c.world} | {done['wrong']} of {done['runs']} {mark} {took:.0f} s",
                flush=True,
            )
    TABLE.write_text(table())
    text = PAGE.read_text()
    start, end = (text.index(mark) for mark in MARKS)
    PAGE.write_text(text[: start + len(MARKS[0])] + "\n" + summary() + text[end:])


if __name__ == "__main__":
    main()
