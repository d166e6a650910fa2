"""Streams that drift: does the online policy bring the risk back, and do the alarms keep their
rate?

python -m benchmarks.drift online docs/online.svg      a stream whose accuracy drops half-way, as a
picture python -m benchmarks.drift alarms --runs 1000          false alarms on streams that do not
change, and delays
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import howsure as hs
from howsure.policies import DriftMonitor, OnlinePolicy, Policy, threshold_for_accuracy

RISK, N, BATCH, DELAY = 0.05, 40_000, 100, 500


def sample(n: int, exponent: float, rng: np.random.Generator) -> tuple[hs.Predictions, np.ndarray]:
    """Confidence Beta(5, 1.2); right with probability confidence^exponent."""
    s = rng.beta(5, 1.2, n)
    return hs.Predictions.from_confidence(s), rng.random(n) < s**exponent


def stream(online: bool, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Accepted and wrong for each sample; accuracy drops half-way; labels of audited samples come
    500 late.
    """
    rng = np.random.default_rng(seed)
    val, right = sample(5000, 0.5, rng)
    t = hs.tally(val.confidence, correct=right)
    policy = Policy("max_prob", threshold_for_accuracy(t, 1 - RISK).threshold)
    state = OnlinePolicy.start(policy, val.confidence, risk=RISK, audit=0.2, step=0.03, seed=seed)
    accept, wrong, waiting = [], [], []
    for start in range(0, N, BATCH):
        preds, right = sample(BATCH, 0.5 if start < N / 2 else 1.5, rng)
        if online:
            state, made = state.decide(preds)
            waiting.append((made, right))
            if len(waiting) > DELAY // BATCH:
                late, labels = waiting.pop(0)
                rows = np.flatnonzero(late.audit)
                state = state.learn(late[rows], labels[rows]) if len(rows) else state
        else:
            made = policy.decide(preds)
        accept.append(made.accept)
        wrong.append(~right)
    return np.concatenate(accept), np.concatenate(wrong)


def windows(
    accept: np.ndarray, wrong: np.ndarray, width: int = 1000
) -> tuple[np.ndarray, np.ndarray]:
    """Risk of the accepted and coverage in consecutive windows."""
    a, w = accept.reshape(-1, width), (accept & wrong).reshape(-1, width)
    return w.sum(axis=1) / np.maximum(1, a.sum(axis=1)), a.mean(axis=1)


PARTS = {
    "first half": slice(0, N // 2),
    "third quarter": slice(N // 2, 3 * N // 4),
    "last quarter": slice(3 * N // 4, N),
}


def online(path: Path, seeds: int = 20) -> None:
    """Draw one stream with and without, and print the mean over several."""
    curves = {}
    for name, on in (("fixed threshold", False), ("online policy", True)):
        runs = [stream(on, seed) for seed in range(seeds)]
        curves[name] = windows(*runs[0])
        for part, rows in PARTS.items():
            risks = [(a & w)[rows].sum() / max(1, a[rows].sum()) for a, w in runs]
            coverage = np.mean([a[rows].mean() for a, _ in runs])
            spread = f"{np.mean(risks):.4f} ± {np.std(risks):.4f}"
            print(f"{name:16} {part:14} risk {spread}, coverage {coverage:.3f} ({seeds} streams)")
    path.write_text(svg(curves))
    print(f"wrote {path}")


def svg(curves: dict[str, tuple[np.ndarray, np.ndarray]]) -> str:
    """Risk of the accepted per thousand samples."""
    x = lambda i: 50 + 620 * i / (N / 1000)
    y = lambda r: 250 - 220 * min(r, 0.22) / 0.22
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 300" font-family="sans-serif" font-size="12">',
        "<title>Risk of the accepted over a stream whose accuracy drops half-way</title>",
        '<rect width="720" height="300" fill="white"/>',
    ]
    for r in (0.0, 0.05, 0.1, 0.15, 0.2):
        parts.append(f'<line x1="50" x2="670" y1="{y(r):.1f}" y2="{y(r):.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="44" y="{y(r) + 4:.1f}" text-anchor="end">{r:g}</text>')
    parts.append(
        f'<line x1="50" x2="670" y1="{y(RISK):.1f}" y2="{y(RISK):.1f}" stroke="#000" stroke-dasharray="4 3"/>'
    )
    parts.append(
        f'<line x1="{x(N / 2000):.1f}" x2="{x(N / 2000):.1f}" y1="30" y2="250" stroke="#999" stroke-dasharray="2 3"/>'
    )
    parts.append(f'<text x="{x(N / 2000) + 4:.1f}" y="42" fill="#555">accuracy drops</text>')
    for (name, (risk, _)), colour, row in zip(
        curves.items(), ("#b2182b", "#2166ac"), (0, 1), strict=True
    ):
        points = " ".join(f"{x(i + 0.5):.1f},{y(r):.1f}" for i, r in enumerate(risk))
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        parts.append(f'<text x="60" y="{20 + 14 * row}" fill="{colour}">{name}</text>')
    parts.append(
        '<text x="360" y="285" text-anchor="middle">40,000 samples; dashed: target risk 0.05</text></svg>'
    )
    return "\n".join(parts) + "\n"


def alarms(runs: int, rate: float = 0.05, length: int = 5000) -> None:
    """Share of unchanged streams with an alarm, and how late a change is found."""
    false = 0
    for seed in range(runs):
        false += bool(watched(seed, rate, length, 5.0)[0])
    print(
        f"{false} of {runs} unchanged streams of {length:,} samples raised an alarm: {false / runs:.4f}; stated {rate}"
    )
    for a in (4.5, 4.0, 3.0):
        found = [watched(seed, rate, length, a) for seed in range(50)]
        delays = sorted(min(f[0].values()) for f in found if f[0])
        middle = delays[len(delays) // 2] if delays else None
        print(
            f"scores Beta({a}, 1.2) for Beta(5, 1.2): found in {len(delays)} of 50, median delay {middle} samples"
        )


def watched(seed: int, rate: float, length: int, a: float) -> tuple[dict[str, int], int]:
    """The alarms of one stream; the threshold is chosen on the reference itself."""
    rng = np.random.default_rng(seed)
    val, right = sample(1000, 0.5, rng)
    policy = Policy(
        "max_prob", threshold_for_accuracy(hs.tally(val.confidence, correct=right), 0.95).threshold
    )
    watch = DriftMonitor.start(policy.decide(val), false_alarms=rate, seed=seed)
    watch = watch.see(policy.decide(hs.Predictions.from_confidence(rng.beta(a, 1.2, length))))
    return watch.alarms, watch.seen


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Online policies and alarms on streams that drift."
    )
    parser.add_argument("what", choices=["online", "alarms"])
    parser.add_argument("path", type=Path, nargs="?", default=Path("online.svg"))
    parser.add_argument("--runs", type=int, default=1000)
    args = parser.parse_args()
    if args.what == "online":
        online(args.path)
    else:
        alarms(args.runs)


if __name__ == "__main__":
    main()
