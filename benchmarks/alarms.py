"""Alarms: how often on streams where nothing happens, how late on those where something does, beside others.

    python -m benchmarks.alarms promise --runs 2000     labels: ours and a Clopper-Pearson test at every label
    python -m benchmarks.alarms mapie --runs 200        the same streams through MAPIE's RiskMonitoring
    python -m benchmarks.alarms watch --runs 1000       scores without labels: ours, exchangeable, in bursts, outliers
    python -m benchmarks.alarms river --runs 1000       the same streams through river's ADWIN, Page-Hinkley and a CUSUM

The others run where they are installed. Every stream follows from its seed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

RATE, LENGTH, RISK, CHANGE = 0.05, 3000, 0.05, 1000
N, LATE = 3000, 500  # scores of a stream, and where they change


def labels(seed: int, kind: str) -> np.ndarray:
    """Right or wrong of accepted cases: at the promised risk, twice it from the start, or from label 1,000 on."""
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
    print(f"{name:38} {kind:14} alarms {len(raised) / len(found):.4f}{before}, median delay {middle}", flush=True)


def repeated_clopper_pearson(right: np.ndarray) -> int | None:
    """The first label at which the lower Clopper-Pearson limit of the risk so far is above the promise."""
    from scipy.special import betaincinv

    n, k = np.arange(1, len(right) + 1), np.cumsum(~right)
    low = np.where(k > 0, betaincinv(np.maximum(k, 1), n - k + 1, RATE), 0.0)
    over = np.flatnonzero(low > RISK)
    return int(over[0]) + 1 if len(over) else None


def promise(runs: int) -> None:
    from howsure.serving import Promise

    start = Promise.start(risk=RISK, false_alarms=RATE)
    for kind, many in (("null", runs), ("doubled", runs // 10), ("doubled late", runs // 10), ("halved", runs // 10)):
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
    """A reference, a stream, and the burst of each row where rows come in bursts that share their score."""
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


def watch(runs: int) -> None:
    import howsure as hs
    from howsure.policies import Policy, Watch

    policy = Policy("max_prob", 0.7)

    def first(seed: int, kind: str, per_burst: bool) -> int | None:
        reference, stream, burst = scores(seed, kind)
        begun = Watch.start(policy.decide(hs.Predictions.from_confidence(reference)), false_alarms=RATE, seed=seed)
        made = policy.decide(hs.Predictions.from_confidence(stream))
        seen = begun.see(made, bursts=burst.astype(str).tolist() if per_burst and burst is not None else None)
        return min(seen.alarms.values(), default=None)

    for kind, per_burst, many in (("null", False, runs), ("bursts", False, runs), ("bursts", True, runs),
                                  ("shifted", False, runs // 10), ("outliers", False, runs // 10)):  # fmt: skip
        name = "howsure, one of each burst" if per_burst else "howsure"
        change = LATE if kind in ("shifted", "outliers") else 0
        said(name, kind, [first(seed, kind, per_burst) for seed in range(many)], change)


class Cusum:
    """A two-sided CUSUM of standardised scores: slack 0.25, alarm at `height`."""

    def __init__(self, reference: np.ndarray, height: float):
        self.mean, self.sd, self.height, self.up, self.down = reference.mean(), reference.std(), height, 0.0, 0.0
        self.drift_detected = False

    def update(self, x: float) -> None:
        z = (x - self.mean) / self.sd
        self.up, self.down = max(0.0, self.up + z - 0.25), max(0.0, self.down - z - 0.25)
        self.drift_detected = max(self.up, self.down) > self.height


def river(runs: int) -> None:
    """Each detector's knob is set so that 5 % of the null streams raise an alarm."""
    from river.drift import ADWIN, PageHinkley

    kinds: dict[str, tuple[Callable[[np.ndarray, float], object], tuple[float, ...]]] = {
        "ADWIN (delta)": (lambda _, x: ADWIN(delta=x), (0.2, 0.1, 0.05, 0.02, 0.01, 0.002, 0.0005)),
        "Page-Hinkley (threshold)": (lambda _, x: PageHinkley(threshold=x), (5, 8, 10, 12, 15, 20, 30, 50)),
        "CUSUM (height)": (lambda r, x: Cusum(r, x), (5, 8, 10, 12, 15, 18, 22, 30)),
    }

    def first(made: object, stream: np.ndarray) -> int | None:
        for i, x in enumerate(stream.tolist(), start=1):
            made.update(x)
            if made.drift_detected:
                return i
        return None

    for name, (make, knobs) in kinds.items():
        for knob in knobs:
            found = [first(make(r, knob), s) for r, s, _ in (scores(seed, "null") for seed in range(runs))]
            rate = np.mean([at is not None for at in found])
            if rate <= RATE:
                break
        print(f"{name}: knob {knob:g} has a null rate of {rate:.3f}")
        for kind in ("shifted", "outliers"):
            drawn = (scores(seed, kind) for seed in range(max(1, runs // 10)))
            said(name, kind, [first(make(r, knob), s) for r, s, _ in drawn], LATE)


def main() -> None:
    parser = argparse.ArgumentParser(description="Null rates and delays of alarms.")
    parser.add_argument("what", choices=["promise", "mapie", "watch", "river"])
    parser.add_argument("--runs", type=int, default=1000)
    args = parser.parse_args()
    {"promise": promise, "mapie": mapie, "watch": watch, "river": river}[args.what](args.runs)


if __name__ == "__main__":
    main()
