"""Alarms: how often on streams where nothing happens, how late on those where something does,
beside others.

    python -m benchmarks.alarms promise --runs 2000     labels: ours and a Clopper-Pearson test at
    every label python -m benchmarks.alarms mapie --runs 200        the same streams through MAPIE's
    RiskMonitoring python -m benchmarks.alarms watch --runs 1000       scores without labels: ours,
    exchangeable, in bursts, outliers python -m benchmarks.alarms watch --rate 0.031      the same
    at a null rate of 3.1 %, as the others below python -m benchmarks.alarms drift --runs 1000
    how often any test of a month without a change says drift python -m benchmarks.alarms river
    --runs 1000       the same streams through river's ADWIN, Page-Hinkley and a CUSUM

The others run where they are installed. Every stream follows from its seed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

RATE, LENGTH, RISK, CHANGE = 0.05, 3000, 0.05, 1000
N, LATE = 3000, 500  # scores of a stream, and where they change


def labels(seed: int, kind: str) -> np.ndarray:
    """Right or wrong of accepted cases: at the promised risk, twice it from the start, or from
    label 1,000 on.
    """
    rng = np.random.default_rng([seed, 7])
    risk = np.full(LENGTH, RISK)
    if kind == "doubled":
        risk[:] = 2 * RISK
    elif kind == "doubled late":
        risk[CHANGE:] = 2 * RISK
    elif kind == "halved":
        risk[:] = RISK / 2
    return rng.random(LENGTH) >= risk


def said(name: str, kind: str, found: list[int | None], start: int = 0) -> None:
    """Share of streams with an alarm (after `start`), and the middle delay of all streams."""
    raised = [at for at in found if at is not None and at > start]
    early = sum(at is not None and at <= start for at in found)
    delays = sorted(at - start for at in raised)
    half = (len(found) - early + 1) // 2
    middle = f"{delays[half - 1]:,}" if len(delays) >= half > 0 else "none"
    before = f", {early / len(found):.3f} before the change" if start else ""
    print(
        f"{name:38} {kind:14} alarms {len(raised) / len(found):.4f}{before}, median delay {middle}",
        flush=True,
    )


def repeated_clopper_pearson(right: np.ndarray) -> int | None:
    """The first label at which the lower Clopper-Pearson limit of the risk so far is above the
    promise.
    """
    from scipy.special import betaincinv

    n, k = np.arange(1, len(right) + 1), np.cumsum(~right)
    low = np.where(k > 0, betaincinv(np.maximum(k, 1), n - k + 1, RATE), 0.0)
    over = np.flatnonzero(low > RISK)
    return int(over[0]) + 1 if len(over) else None


def promise(runs: int) -> None:
    from howsure.serving import GuaranteeMonitor

    start = GuaranteeMonitor.start(risk=RISK, false_alarms=RATE)
    for kind, many in (
        ("null", runs),
        ("doubled", runs // 10),
        ("doubled late", runs // 10),
        ("halved", runs // 10),
    ):
        ours = [start.see(labels(seed, kind)) for seed in range(many)]
        change = CHANGE if kind == "doubled late" else 0
        said("howsure, broken", kind, [p.broken for p in ours], change)
        said("howsure, kept", kind, [p.kept for p in ours])
        said("Clopper-Pearson at every label", kind, [repeated_clopper_pearson(labels(s, kind)) for s in range(many)],
             change)  # fmt: skip


def mapie(runs: int) -> None:
    from mapie.exchangeability_testing import RiskMonitoring

    def first(right: np.ndarray) -> int | None:
        made = RiskMonitoring(risk="accuracy", test_level=2 * RATE, threshold=RISK, warn=False)
        made.update(np.ones(len(right), dtype=int), right.astype(int))
        over = np.flatnonzero(made.online_risk_lower_bound_sequence_history > RISK)
        return int(over[0]) + 1 if len(over) else None

    for kind in ("null", "doubled", "doubled late"):
        found = [first(labels(seed, kind)) for seed in range(runs)]
        said("MAPIE RiskMonitoring", kind, found, CHANGE if kind == "doubled late" else 0)


def scores(seed: int, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """A reference, a stream, and the burst of each row where rows come in bursts that share their
    score.
    """
    rng = np.random.default_rng([seed, 11])
    reference, stream = rng.beta(5, 1.2, 1000), rng.beta(5, 1.2, N)
    if kind == "outliers":
        odd = rng.random(N) < 0.1
        odd[:LATE] = False
        return reference, np.where(odd, rng.random(N) * 0.2, stream), None
    if kind == "shifted":
        stream[LATE:] = rng.beta(4, 1.2, N - LATE)
    if kind == "bursts":
        burst = np.arange(N) // 10
        return reference, stream[burst * 10], burst
    return reference, stream, None


def watch(runs: int, rate: float) -> None:
    """At the stated rate, and as nervous as it takes to raise an alarm on `rate` of the null
    streams.
    """
    import howsure as hs
    from howsure.policies import DriftMonitor, Policy

    policy = Policy("max_prob", 0.7)

    def first(seed: int, kind: str, *, per_burst: bool = False, stated: float = RATE) -> int | None:
        reference, stream, burst = scores(seed, kind)
        begun = DriftMonitor.start(
            policy.decide(hs.Predictions.from_confidence(reference)), false_alarms=stated, seed=seed
        )
        made = policy.decide(hs.Predictions.from_confidence(stream))
        seen = begun.see(
            made, bursts=burst.astype(str).tolist() if per_burst and burst is not None else None
        )
        return min(seen.alarms.values(), default=None)

    if rate == RATE:
        for kind, per_burst in (("null", False), ("bursts", False), ("bursts", True)):
            name = "howsure, one of each burst" if per_burst else "howsure"
            said(name, kind, [first(seed, kind, per_burst=per_burst) for seed in range(runs)])
        stated = RATE
    else:
        calm, nervous = RATE, 4 * RATE
        loud = [seed for seed in range(runs) if first(seed, "null", stated=nervous) is not None]
        for _ in range(8):
            stated = (calm + nervous) / 2
            share = sum(first(seed, "null", stated=stated) is not None for seed in loud) / runs
            calm, nervous = (stated, nervous) if share <= rate else (calm, stated)
        stated = calm
        share = sum(first(seed, "null", stated=stated) is not None for seed in loud) / runs
        print(
            f"howsure: a stated rate of {stated:.3f} has a null rate of {share:.3f} on {runs:,} streams",
            flush=True,
        )
    for kind in ("shifted", "outliers"):
        said("howsure", kind, [first(seed, kind, stated=stated) for seed in range(runs // 5)], LATE)


def drift(runs: int) -> None:
    """Share of months in which any column drifted, at 5 % for all: nothing changed, or more rows
    have no answer.
    """
    from dataclasses import replace

    import howsure as hs
    from howsure.predictions import Unanswered

    policy = hs.policies.Policy("max_prob", 0.7)

    def month(rng: np.random.Generator, n: int, silent: float, *, labelled: bool) -> hs.Predictions:
        label = rng.integers(0, 4, n)
        logits = 2 * np.eye(4)[label] + rng.normal(size=(n, 4))
        made = hs.Predictions.from_logits(logits, label if labelled else None)
        return replace(made, unanswered=Unanswered(missing=int(rng.binomial(n, silent))))

    for rare in (0.0005, 0.01):
        for times in (1, 2, 4):
            found = []
            for seed in range(runs if times == 1 else runs // 5):
                rng = np.random.default_rng([seed, 13])
                past, new = (
                    month(rng, 2000, rare, labelled=True),
                    month(rng, 1000, times * rare, labelled=False),
                )
                wards = [np.array(list("abc"))[rng.integers(0, 3, n)] for n in (2000, 1000)]
                made = hs.monitor(
                    past, new, policy=policy, by=wards[1], reference_by=wards[0], drift_level=RATE
                )
                found.append({d["column"] for d in made.data["months"][0]["drift"] if d["drifted"]})
            some, silent = (
                np.mean([bool(f) for f in found]),
                np.mean(["no answer" in f for f in found]),
            )
            print(f"{rare:.2%} without an answer, {times} times as many later: {len(found):,} months, "
                  f"any column {some:.3f}, no answer {silent:.3f}", flush=True)  # fmt: skip


class Cusum:
    """A two-sided CUSUM of standardised scores: slack 0.25, alarm at `height`."""

    def __init__(self, reference: np.ndarray, height: float):
        self.mean, self.sd, self.height, self.up, self.down = (
            reference.mean(),
            reference.std(),
            height,
            0.0,
            0.0,
        )
        self.drift_detected = False

    def update(self, x: float) -> None:
        z = (x - self.mean) / self.sd
        self.up, self.down = max(0.0, self.up + z - 0.25), max(0.0, self.down - z - 0.25)
        self.drift_detected = max(self.up, self.down) > self.height


def river(runs: int, rate: float) -> None:
    """Each detector's knob is found by halving, so that `rate` of the null streams raise an alarm.

    Every detector sees the reference before the stream; alarms before the stream begins do not
    count.
    """
    from river.drift import ADWIN, PageHinkley

    kinds: dict[
        str, tuple[Callable[[np.ndarray, float], object], float, float]
    ] = {  # a deaf and a nervous knob
        "ADWIN (delta)": (lambda _, x: ADWIN(delta=x), 1e-6, 0.9999),
        "Page-Hinkley (threshold)": (lambda _, x: PageHinkley(threshold=x), 200.0, 1.0),
        "CUSUM (height)": (lambda r, x: Cusum(r, x), 200.0, 1.0),
    }
    null = [scores(seed, "null")[:2] for seed in range(runs)]

    def first(made: object, reference: np.ndarray, stream: np.ndarray) -> int | None:
        for x in reference.tolist():
            made.update(x)
        for i, x in enumerate(stream.tolist(), start=1):
            made.update(x)
            if made.drift_detected:
                return i
        return None

    def share(make: Callable[[np.ndarray, float], object], knob: float) -> float:
        return float(np.mean([first(make(r, knob), r, s) is not None for r, s in null]))

    for name, (make, deaf, nervous) in kinds.items():
        for _ in range(12):
            knob = float(np.sqrt(deaf * nervous))
            deaf, nervous = (knob, nervous) if share(make, knob) <= rate else (deaf, knob)
        print(
            f"{name}: knob {deaf:g} has a null rate of {share(make, deaf):.3f} on {runs:,} streams",
            flush=True,
        )
        for kind in ("shifted", "outliers"):
            drawn = (scores(seed, kind) for seed in range(max(1, runs // 5)))
            said(name, kind, [first(make(r, deaf), r, s) for r, s, _ in drawn], LATE)


def main() -> None:
    parser = argparse.ArgumentParser(description="Null rates and delays of alarms.")
    parser.add_argument("what", choices=["promise", "mapie", "watch", "drift", "river"])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument(
        "--rate", type=float, default=RATE, help="of river and watch: null rate of the detectors"
    )
    args = parser.parse_args()
    if args.what in ("river", "watch"):
        {"river": river, "watch": watch}[args.what](args.runs, args.rate)
    else:
        {"promise": promise, "mapie": mapie, "drift": drift}[args.what](args.runs)


if __name__ == "__main__":
    main()
