"""Do the limits hold what they say? Draw from worlds whose true values are known, many times, and
count.

    python -m benchmarks.coverage --minutes 60           # goes on where it stopped; writes JSON and
    the table python -m benchmarks.coverage --worlds clusters --runs 2000 python -m
    benchmarks.coverage --again aurc,ece       # counts these anew over the runs that are stored
    python -m benchmarks.coverage --table                # only writes the table

Every run draws a sample, asks for 95 % limits and notes on which side of them the truth is.
Percentile limits of a Poisson bootstrap stand beside them, from every 50th run. Run i of a world
always draws the same sample.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

import howsure as hs
from benchmarks.worlds import DATA, Population, World, worlds
from howsure.metrics.metric_facts import unwrap_metric
from howsure.uncertainty.bootstrap import draw_rows, draw_units
from howsure.uncertainty.intervals import Interval, compute_percentiles, evaluate_draws

ROOT = Path(__file__).parent
RESULTS, TABLE = ROOT / "results" / "coverage", ROOT / "results" / "coverage.md"
PAGE = ROOT.parent / "docs" / "intervals.md"
MARKS = ("<!-- coverage: begin -->", "<!-- coverage: end -->")
OLD_EVERY, SAVE = 50, 50  # runs
Metric = Callable[..., float]
Found = dict[str, dict[str, float]]
RANKING: dict[str, Metric] = {
    "accuracy": hs.accuracy,
    "aurc": hs.aurc,
    "e_aurc": hs.e_aurc,
    "augrc": hs.augrc,
    "auroc": hs.auroc,
    "aupr_error": hs.aupr,
    "aupr_success": partial(hs.aupr, positive="success"),
    "coverage_at_risk_0.01": partial(hs.coverage_at_risk, risk=0.01),
    "coverage_at_risk_0.05": partial(hs.coverage_at_risk, risk=0.05),
    "risk_at_coverage_0.8": partial(hs.risk_at_coverage, coverage=0.8),
}
CLAIMS: dict[str, Metric] = {
    "ece": hs.ece,
    "aece": hs.aece,
    "over_confidence": hs.over_confidence,
    "under_confidence": hs.under_confidence,
    "signed_calibration_error": hs.signed_calibration_error,
    "debiased_ece": hs.debiased_ece,
    "correctness_brier": hs.correctness_brier,
    "correctness_nll": hs.correctness_nll,
}
GATED_END = {
    "higher": "low",
    "lower": "high",
}  # the end that a gate looks at: a miss there is a false pass
AT_ITS_BINS = {
    "aece": hs.adaptive(),
    "debiased_ece": hs.equal_size(15),
}  # their truth depends on the bins of the sample


def truths(
    p: Population, t: hs.Tally, fixed: dict[str, float], names: Sequence[str]
) -> dict[str, float]:
    """The truth of every number; where bins follow the sample, that of the population in these
    bins.
    """
    found = dict(fixed)
    for name in names:
        if name in AT_ITS_BINS:
            low = np.sort(t.between(AT_ITS_BINS[name].cuts(t)).low)
            share, gap = p.gaps_in(low)
            root = np.sqrt((gap**2 / np.maximum(share, 1e-300)).sum())
            found[name] = float(root if name == "debiased_ece" else np.abs(gap).sum())
    return found


def old_limits(
    metrics: dict[str, Metric], o: hs.Outcomes, t: hs.Tally, seed: int
) -> list[Interval]:
    """Percentiles over bootstrap draws."""
    stack = draw_rows(t, seed) if o.group is None and o.weight is None else draw_units(o, seed)
    return [compute_percentiles(evaluate_draws(m, stack), 0.95) for m in metrics.values()]


def count(found: Found, name: str, limits: Interval, truth: float) -> None:
    """Where the truth is: below the limits, inside, above them; or there were none."""
    side = (
        "none"
        if limits.why
        else "low"
        if truth < limits.low - 1e-12
        else "high"
        if truth > limits.high + 1e-12
        else "inside"
    )
    of = found.setdefault(name, {"low": 0, "inside": 0, "high": 0, "none": 0, "width": 0.0})
    of[side] += 1
    of["width"] += 0.0 if limits.why else limits.high - limits.low


def one_run(
    world: World, fixed: dict[str, float], i: int, done: dict[str, Found], every: int
) -> None:
    rng = np.random.default_rng([*world.key.encode(), i])
    o = world.draw(rng)
    t = o.tally()
    metrics = RANKING | (CLAIMS if world.claims else {})
    if t.weighted:
        metrics = {name: m for name, m in metrics.items() if name not in AT_ITS_BINS}
    truth = truths(world.population(), t, fixed, list(metrics))
    for name, limits in zip(metrics, hs.each_interval(list(metrics.values()), o), strict=True):
        count(done["new"], name, limits, truth[name])
    if every and i % every == 0:
        for name, limits in zip(metrics, old_limits(metrics, o, t, i), strict=True):
            count(done["old"], name, limits, truth[name])


def run(world: World, runs: int, until: float, every: int) -> int:
    """Go on from what is stored; how many runs are stored then."""
    path = RESULTS / f"{world.key}.json"
    done = json.loads(path.read_text()) if path.exists() else {"runs": 0, "new": {}, "old": {}}
    fixed = world.population().ranking() | (world.population().claims() if world.claims else {})
    for i in range(done["runs"], runs):
        one_run(world, fixed, i, done, every)
        done["runs"] = i + 1
        if done["runs"] % SAVE == 0 or done["runs"] == runs or time.monotonic() > until:
            save(path, done)
        if time.monotonic() > until:
            break
    return done["runs"]


def run_again(world: World, names: Sequence[str]) -> None:
    """Count some metrics anew, over the runs that are stored; percentile limits stay as they are."""
    path = RESULTS / f"{world.key}.json"
    done = json.loads(path.read_text())
    fixed = world.population().ranking() | (world.population().claims() if world.claims else {})
    metrics = {
        name: m for name, m in (RANKING | CLAIMS).items() if name in names and name in done["new"]
    }
    found: Found = {}
    for i in range(done["runs"] if metrics else 0):
        o = world.draw(np.random.default_rng([*world.key.encode(), i]))
        truth = truths(world.population(), o.tally(), fixed, list(metrics))
        for name, limits in zip(metrics, hs.each_interval(list(metrics.values()), o), strict=True):
            count(found, name, limits, truth[name])
    save(path, {**done, "new": done["new"] | found})


def save(path: Path, done: dict[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(done) + "\n")
    beside.replace(path)


def share(of: dict[str, float]) -> float:
    """How often the limits held, of the times they were given."""
    given = of["low"] + of["inside"] + of["high"]
    return of["inside"] / given if given else float("nan")


def table() -> str:
    """Coverage in percent, width over that of percentile limits in brackets."""
    stored = [
        (w, json.loads(f.read_text()))
        for w in worlds()
        if (f := RESULTS / f"{w.key}.json").exists()
    ]
    lines = []
    for names in (list(RANKING), list(CLAIMS)):
        lines += [
            "",
            "| world | runs | " + " | ".join(names) + " |",
            "|---|---:|" + "---:|" * len(names),
        ]
        for world, done in stored:
            cells = [cell(done, name) for name in names]
            lines.append(
                f"| {world.kind}: {world.name} | {done['runs']:,} | " + " | ".join(cells) + " |"
            )
    return "\n".join(lines).strip() + "\n"


def summary() -> str:
    """Each metric over all worlds: lowest and middle coverage, beside those of percentile limits,
    and the width.
    """
    stored = [
        (w, json.loads(f.read_text()))
        for w in worlds()
        if (f := RESULTS / f"{w.key}.json").exists()
    ]
    runs = sum(done["runs"] for _, done in stored)
    head = f"{len(stored)} worlds, {runs:,} runs in all, {time.strftime('%Y-%m-%d')}."
    columns = [
        "metric",
        "lowest",
        "where",
        "middle",
        "gate at most",
        "where",
        "percentiles: lowest",
        "middle",
        "width",
    ]
    lines = [
        head,
        "",
        "| " + " | ".join(columns) + " |",
        "|---|---:|---|---:|---:|---|---:|---:|---:|",
    ]
    for name in [*RANKING, *CLAIMS]:
        here = [
            (share(d["new"][name]), w)
            for w, d in stored
            if name in d["new"] and not np.isnan(share(d["new"][name]))
        ]
        low, where = min(here, key=lambda pair: pair[0])
        old = [
            share(d["old"][name])
            for _, d in stored
            if name in d["old"] and not np.isnan(share(d["old"][name]))
        ]
        widths = [ratio for _, d in stored if (ratio := width_ratio(d, name)) is not None]
        cells = [
            f"{100 * low:.1f}",
            f"{where.kind}: {where.name}",
            f"{100 * np.median([x for x, _ in here]):.1f}",
        ]
        cells += gate_cells(name, [(d["new"][name], w) for w, d in stored if name in d["new"]])
        cells += [
            f"{100 * min(old):.0f}",
            f"{100 * np.median(old):.0f}",
            f"{np.median(widths):.2f}",
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def gate_cells(name: str, found: Sequence[tuple[dict[str, float], World]]) -> list[str]:
    """How often a model that just misses would pass `howsure check`, at most, and in which world."""
    side = GATED_END.get(unwrap_metric((RANKING | CLAIMS)[name]).better)
    if side is None:
        return ["–", "–"]
    shares = [
        (of[side] / sum(of[k] for k in ("low", "inside", "high", "none")), w) for of, w in found
    ]
    most, where = max(shares, key=lambda pair: pair[0])
    return [f"{100 * most:.1f}", f"{where.kind}: {where.name}"]


def width_ratio(done: dict[str, Found], name: str) -> float | None:
    """Mean width of our limits over that of percentile limits."""
    pair = [done[side].get(name) for side in ("new", "old")]
    if any(of is None or np.isnan(share(of)) or of["width"] <= 0 for of in pair):
        return None
    new, old = (
        of["width"] / (of["low"] + of["inside"] + of["high"]) for of in pair if of is not None
    )
    return new / old


def write_page() -> None:
    """The summary, in docs/intervals.md."""
    text = PAGE.read_text()
    start, end = (text.index(mark) for mark in MARKS)
    PAGE.write_text(text[: start + len(MARKS[0])] + "\n" + summary() + text[end:])


def cell(done: dict[str, Found], name: str) -> str:
    new, old = done["new"].get(name), done["old"].get(name)
    if new is None or np.isnan(share(new)):
        return "–"
    text, wider = f"{100 * share(new):.1f}", width_ratio(done, name)
    return (
        text if wider is None or old is None else f"{text} ({100 * share(old):.0f}, ×{wider:.2f})"
    )


def worst(least: float) -> list[str]:
    """Limits that held less often than this, in words."""
    out: list[str] = []
    for world in worlds():
        path = RESULTS / f"{world.key}.json"
        done = json.loads(path.read_text()) if path.exists() else {"new": {}}
        out += [
            f"{world.kind}: {world.name}: {name} {share(of):.3f} (low {of['low']:g}, high {of['high']:g})"
            for name, of in done["new"].items()
            if share(of) < least
        ]
    return out


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", default="", help="only those whose name contains this")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument(
        "--every",
        type=int,
        default=OLD_EVERY,
        help="percentile limits from every so many runs; 0: none",
    )
    parser.add_argument("--again", default="", help="metrics to count anew")
    parser.add_argument("--table", action="store_true", help="only write the table")
    chosen = parser.parse_args()
    if not DATA.exists():
        parser.error(
            f"the real predictions are not at {DATA}; set HOWSURE_SHARED to the folder that holds data/"
        )
    until = time.monotonic() + 60 * chosen.minutes
    for world in worlds() if chosen.again else ():
        if chosen.worlds in f"{world.kind} {world.name}":
            run_again(world, chosen.again.split(","))
            print(world.kind, world.name, "again", flush=True)
    for world in () if chosen.table or chosen.again else worlds():
        if chosen.worlds in f"{world.kind} {world.name}" and time.monotonic() < until:
            print(
                world.kind,
                world.name,
                run(world, chosen.runs, until, chosen.every),
                "runs",
                flush=True,
            )
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    TABLE.write_text(table())
    write_page()
    print(*worst(0.93), sep="\n")


if __name__ == "__main__":
    main()
