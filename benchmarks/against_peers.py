"""The panel against the fastest peer for each of its metrics."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from .panel import METRICS, panel
from .peers import Jobs, available
from .rows import Row
from .timing import seconds
from .workloads import usual

N = 10**6
REPEATS = 3
NOTES = {  # metric and start of the peer's name → why its value differs
    ("aece", "torch"): " (bins of equal size, not Ding's)",
    ("ece", "torch"): " (sums in float32)",
    ("mce", "torch"): " (sums in float32)",
}


class Timed(NamedTuple):
    """One peer's time for one metric."""

    peer: str
    seconds: float
    value: float


def rows() -> Iterator[Row]:
    single_thread()
    data = usual(N)
    jobs, absent = available(data)
    values = dict(zip((m.__name__ for m in METRICS), panel(data), strict=True))
    fastest = {name: best for name in values if (best := fastest_peer(jobs, name)) is not None}
    for name, value in values.items():
        yield peer_row(name, value, fastest.get(name))
    for peer, why in absent.items():
        yield Row(f"peer {peer}", None, "", detail=f"left out, cannot be used here: {why}")
    (ours,) = seconds(lambda: panel(data), repeats=10)
    total = sum(best.seconds for best in fastest.values())
    detail = f"{1e3 * ours:.1f} ms with the tally; the peers {1e3 * total:.0f} ms for {len(fastest)} of {len(values)}"
    yield Row(
        f"panel against the fastest peers, {N:,}", total / ours, "× faster", 40, 100, True, detail
    )


def single_thread() -> None:
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(1)


def fastest_peer(jobs: dict[str, Jobs], name: str) -> Timed | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        timed = [measure(peer, of[name]) for peer, of in jobs.items() if name in of]
    return min(timed, key=lambda t: t.seconds, default=None)


def measure(peer: str, job: Any) -> Timed:
    value = float(job())
    return Timed(peer, seconds(job, repeats=REPEATS)[0], value)


def peer_row(name: str, ours: float, best: Timed | None) -> Row:
    if best is None:
        return Row(f"  {name}", None, "", detail="no peer has it")
    detail = f"{best.peer}{NOTES.get((name, best.peer[:5]), '')}; its value {best.value:.6f}, ours {ours:.6f}"
    return Row(f"  {name}, fastest peer", 1e3 * best.seconds, "ms", detail=detail)
