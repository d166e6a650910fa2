"""Populations whose true values are known, and samples from them: what `benchmarks.coverage` draws.

Real predictions (of the shared folder, where it exists) are resampled as populations: the set is
the world, its numbers are the truth, and a sample of n answers is drawn from it with replacement.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import howsure as hs
from howsure.uncertainty import influence
from howsure.uncertainty.influence import Ranks

Floats = NDArray[np.float64]
Random = np.random.Generator
DATA = Path(os.environ.get("HOWSURE_SHARED", Path(__file__).parents[2] / "shared")) / "data"
VERBAL = np.array([0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0])  # what language models say


@dataclass(frozen=True, eq=False)
class Population:
    """Scores, and how often the answer with this score is right: 0 or 1 for real answers, the claim
    for honest ones.
    """

    score: Floats
    right: Floats

    @cached_property
    def ranks(self) -> tuple[Ranks, Floats]:
        """Rows with losses, and the scores of all rows."""
        t = hs.tally(self.score, loss=1 - self.right)
        b = t.blocks()
        return Ranks(b.before * 1.0, b.after * 1.0, b.loss * 1.0, float(t.n)), t.score

    @cached_property
    def columns(self) -> tuple[Floats, Floats, Floats]:
        """Distinct scores descending, share and wrong share up to and with each."""
        t = hs.tally(self.score, loss=1 - self.right)
        return t.score, np.cumsum(t.count) / t.n, np.cumsum(t.loss) / t.n

    def ranking(self) -> dict[str, float]:
        r, _ = self.ranks
        e = r.k / r.n
        rise = np.log(np.where(r.before > 0, r.after / np.where(r.before > 0, r.before, 1), 1.0))
        aurc = float(
            np.dot(r.wrong, 1 + np.log(r.n / r.after) - r.before * rise / (r.after - r.before))
            / r.n
        )
        missed, _, _ = influence.placements(r)
        _, share, wrong = self.columns
        inside = wrong / share
        good = (
            np.flatnonzero(wrong <= 0.01 * share + 1e-12),
            np.flatnonzero(wrong <= 0.05 * share + 1e-12),
        )
        return {
            "accuracy": 1 - e,
            "aurc": aurc,
            "e_aurc": aurc - hs.optimal_aurc_asymptotic(e),
            "augrc": float(np.dot(r.wrong, 1 - (r.after + r.before) / (2 * r.n)) / r.n),
            "auroc": 1 - float(np.dot(r.wrong, missed) / r.k),
            "aupr_error": self._precision(errors=True),
            "aupr_success": self._precision(errors=False),
            "coverage_at_risk_0.01": float(share[good[0][-1]]) if len(good[0]) else 0.0,
            "coverage_at_risk_0.05": float(share[good[1][-1]]) if len(good[1]) else 0.0,
            "risk_at_coverage_0.8": float(inside[np.searchsorted(share, 0.8 - 1e-12)]),
        }

    def _precision(self, *, errors: bool) -> float:
        _, share, wrong = self.columns
        if errors:
            shown = 1 - np.concatenate(([0.0], share[:-1]))
            found = wrong[-1] - np.concatenate(([0.0], wrong[:-1]))
            hits = np.diff(wrong, prepend=0.0)
        else:
            shown, found = share, share - wrong
            hits = np.diff(share - wrong, prepend=0.0)
        return float(np.dot(hits, found / shown) / hits.sum())

    def claims(self) -> dict[str, float]:
        gap = self.score - self.right
        p = np.clip(self.score, 1e-300, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            nll = np.where(self.right > 0, -self.right * np.log(p), 0.0)
            nll = nll + np.where(self.right < 1, -(1 - self.right) * np.log1p(-p), 0.0)
        by_bin = np.bincount(
            np.minimum(np.ceil(self.score * 15 - 1e-12).astype(int), 15), gap
        ) / len(gap)
        square = self.right * (1 - self.score) ** 2 + (1 - self.right) * self.score**2
        return {
            "ece": float(np.abs(by_bin).sum()),
            "over_confidence": float(np.maximum(by_bin, 0).sum()),
            "under_confidence": float(np.maximum(-by_bin, 0).sum()),
            "signed_calibration_error": float(gap.mean()),
            "correctness_brier": float(square.mean()),
            "correctness_nll": float(nll.mean()),
        }

    @cached_property
    def _upto(self) -> tuple[Floats, Floats]:
        """Scores ascending, and the gaps summed before each."""
        order = np.argsort(self.score, kind="stable")
        return self.score[order], np.concatenate(
            ([0.0], np.cumsum((self.score - self.right)[order]))
        )

    def gaps_in(self, low: Floats) -> tuple[Floats, Floats]:
        """Shares and summed gaps of the bins that begin at these scores, ascending."""
        score, gap = self._upto
        cut = np.concatenate(([0], np.searchsorted(score, low[1:]), [len(score)]))
        return np.diff(cut) / len(score), np.diff(gap[cut]) / len(score)


Draw = Callable[[Random], hs.Outcomes]


@dataclass(frozen=True, eq=False)
class World:
    """A population and a way to draw a sample from it."""

    kind: str
    name: str
    population: Callable[[], Population]
    draw: Draw
    claims: bool = True

    @property
    def key(self) -> str:
        """Its file name."""
        return "_".join(
            "".join(
                c if c.isalnum() or c == "." else " " for c in f"{self.kind} {self.name}"
            ).split()
        )


@cache
def real(name: str) -> tuple[Floats, NDArray[np.bool_]]:
    """Confidence and right or wrong of a real set, validation and test together."""
    with np.load(DATA / f"{name}.npz") as f:
        parts = [
            _top({k: f[k] for k in f.files if k.startswith(split)}, split)
            for split in ("val", "test")
        ]
    score, right = (
        np.concatenate(column) for column in zip(*(p for p in parts if p is not None), strict=True)
    )
    return np.clip(score, 1e-9, 1 - 1e-9), right


def _top(
    columns: dict[str, NDArray[np.float64]], split: str
) -> tuple[Floats, NDArray[np.bool_]] | None:
    if f"{split}_conf" in columns:
        return columns[f"{split}_conf"].astype(float), columns[f"{split}_correct"].astype(bool)
    for kind in ("logits", "probs"):
        if f"{split}_{kind}" in columns:
            make = hs.Predictions.from_logits if kind == "logits" else hs.Predictions.from_probs
            options = {} if kind == "logits" else {"renormalise": True}
            p = make(columns[f"{split}_{kind}"], columns[f"{split}_labels"], **options)
            return p.confidence, p.correct
    return None


@cache
def vectors(name: str) -> hs.Predictions:
    """All classes of a real set, validation and test together: a population whose numbers are the
    truth.
    """
    with np.load(DATA / f"{name}.npz") as f:
        kind = "logits" if "test_logits" in f.files else "probs"
        values, labels = (
            np.concatenate([f[f"{split}_{c}"] for split in ("val", "test")])
            for c in (kind, "labels")
        )
    if kind == "logits":
        return hs.Predictions.from_logits(values.astype(np.float64), labels)
    return hs.Predictions.from_probs(values.astype(np.float64), labels, renormalise=True)


def plain(
    kind: str, name: str, n: int, make: Callable[[], Population], *, claims: bool = True
) -> World:
    """n independent answers; outcomes are drawn where the population gives them a probability."""

    def draw(rng: Random) -> hs.Outcomes:
        p = make()
        i = rng.integers(0, len(p.score), n)
        return hs.Outcomes(p.score[i], correct=rng.random(n) < p.right[i])

    return World(kind, f"{name}, n = {n:,}", make, draw, claims)


def clustered(name: str, source: str, many: int, size: float, noise: float = 2.0) -> World:
    """Whole clusters of unequal size, whose answers are easy or hard together; the less noise, the
    more so.
    """

    @cache
    def pool() -> tuple[Population, list[NDArray[np.int64]]]:
        score, right = real(source)
        rng = np.random.default_rng(1)
        order = np.argsort(0.8 * right + score + rng.normal(0, noise, len(score)), kind="stable")
        sizes = np.maximum(1, rng.lognormal(np.log(size), 0.6, len(score)).astype(int))
        cuts = np.cumsum(sizes)
        return Population(score, right * 1.0), np.split(order, cuts[cuts < len(score)])

    def draw(rng: Random) -> hs.Outcomes:
        p, clusters = pool()
        chosen = [clusters[i] for i in rng.integers(0, len(clusters), many)]
        group, rows = np.repeat(np.arange(many), [len(c) for c in chosen]), np.concatenate(chosen)
        return hs.Outcomes(p.score[rows], correct=p.right[rows] > 0.5, group=group)

    return World("clusters", f"{name}: {many} of about {size:g}", lambda: pool()[0], draw)


def weighted(name: str, source: str, n: int, strength: float) -> World:
    """Answers drawn with unequal probability, weighted by its inverse."""

    @cache
    def chances() -> tuple[Population, Floats]:
        score, right = real(source)
        rng = np.random.default_rng(2)
        tilt = np.exp(
            strength * ((score - score.mean()) / score.std() * 0.5 + rng.normal(0, 0.7, len(score)))
        )
        return Population(score, right * 1.0), tilt / tilt.sum()

    def draw(rng: Random) -> hs.Outcomes:
        p, chance = chances()
        i = np.searchsorted(np.cumsum(chance), rng.random(n)).clip(max=len(chance) - 1)
        return hs.Outcomes(p.score[i], correct=p.right[i] > 0.5, weight=1 / chance[i])

    return World("weights", f"{name}, n = {n:,}", lambda: chances()[0], draw)


def measured_set(
    source: str, change: Callable[[Floats, Random], Floats] | None = None
) -> Callable[[], Population]:
    @cache
    def make() -> Population:
        score, right = real(source)
        changed = score if change is None else change(score, np.random.default_rng(3))
        return Population(changed, right * 1.0)

    return make


def with_errors(source: str, share: float) -> Callable[[], Population]:
    """Errors thinned out until they are this rare."""

    @cache
    def make() -> Population:
        score, right = real(source)
        wrong = np.flatnonzero(~right)
        keep = np.random.default_rng(4).choice(
            wrong, max(1, round(share * right.sum())), replace=False
        )
        rows = np.concatenate((np.flatnonzero(right), keep))
        return Population(score[rows], right[rows] * 1.0)

    return make


def honest(source: str) -> Callable[[], Population]:
    @cache
    def make() -> Population:
        score, _ = real(source)
        return Population(score, score)

    return make


def with_rights(source: str, share: float) -> Callable[[], Population]:
    """Right answers thinned out until they are this rare."""

    @cache
    def make() -> Population:
        score, right = real(source)
        rng = np.random.default_rng(5)
        keep = rng.choice(np.flatnonzero(right), round(share * (~right).sum()), replace=False)
        rows = np.concatenate((np.flatnonzero(~right), keep))
        return Population(score[rows], right[rows] * 1.0)

    return make


def verbal(score: Floats, rng: Random) -> Floats:
    """The nearest of the few confidences that people say."""
    del rng
    return np.minimum(VERBAL[np.abs(score[:, None] - VERBAL).argmin(axis=1)], 1 - 1e-9)


def two_decimals(score: Floats, rng: Random) -> Floats:
    del rng
    return np.clip(score.round(2), 1e-9, 1 - 1e-9)


def shuffled(score: Floats, rng: Random) -> Floats:
    return rng.permutation(score)


IN1K, C100, C10, MNIST = (
    "in1k_timm_efficientnet_b3a",
    "nn_resnet110_c100_top",
    "nn_resnet110_c10",
    "cleanlab_mnist",
)
MMLU, EUROSAT, C100_ALL = "llm_mmlu_gpt_35_turbo", "eurosat_rgb", "netcal_densenet_bc_100_c100"


def worlds() -> Iterator[World]:
    """All of them; the slow ones last."""
    sizes = {
        C100: (100, 500, 2000),
        C10: (100, 1000, 5000),
        IN1K: (200, 1000),
        MMLU: (100, 1000),
        "f538_mlb": (300,),
        "f538_nfl": (200,),
        "cleanlab_imdb": (500,),
        "eurosat_rgb": (400,),
        "mc_fashion_cnn": (1000,),
        "f538_worldcup_ingame": (500,),
        "in1k_tv_resnext101_32x8d": (1000,),
    }
    for source, of in sizes.items():
        for n in of:
            yield plain("real", source, n, measured_set(source))
    for source, n in ((IN1K, 5), (IN1K, 30), (C10, 20), (C10, 50)):
        yield plain("few samples", source, n, measured_set(source))
    for n in (200, 1000, 5000):
        yield plain("1 % errors", C10, n, with_errors(C10, 0.01))
    for n in (1000, 5000):
        yield plain("0.3 % errors", C10, n, with_errors(C10, 0.003))
    yield plain("few right", C100, 100, with_rights(C100, 0.05))
    for source, n in ((IN1K, 500), (IN1K, 5000), (MMLU, 1000)):
        yield plain("two decimals", source, n, measured_set(source, two_decimals))
    for n in (100, 500, 5000):
        yield plain("verbalised", IN1K, n, measured_set(IN1K, verbal))
    for source, n in ((C10, 1000), (C100, 300)):
        yield plain("useless score", source, n, measured_set(source, shuffled))
    for source, n in ((IN1K, 300), (IN1K, 3000), (C100, 1000), (MNIST, 2000)):
        yield plain("calibrated claims", source, n, honest(source))
    for source, many, size in (
        (IN1K, 15, 20.0),
        (C100, 30, 20.0),
        (C10, 30, 50.0),
        (IN1K, 100, 20.0),
        (C10, 100, 10.0),
    ):
        yield clustered(source, source, many, size)
    for source, many, size in ((IN1K, 30, 20.0), (C10, 30, 50.0), (C10, 100, 10.0)):
        yield clustered(f"{source}, strong", source, many, size, noise=0.8)
    for source, n, strength in ((IN1K, 500, 0.5), (IN1K, 2000, 1.0), (C10, 2000, 0.7)):
        yield weighted(f"{source}, strength {strength:g}", source, n, strength)
    for source in (C100, IN1K):
        yield plain("real", source, 20_000, measured_set(source))
