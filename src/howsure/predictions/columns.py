"""One chunked pass over logits or probabilities for everything that scores and losses need.

All arithmetic is float64, whatever the input. A chunk is small enough to stay in the processor's cache, so
no second n × k array ever exists.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from howsure._core.check import Array, Bools, Floats, Ints

CHUNK = 1 << 16  # numbers per chunk: half a megabyte of float64
FEW = 64  # of fewer classes a chunk is turned


class Values(NamedTuple):
    """Numbers of shape (n, k) or (s, n, k), and whether they are logits."""

    array: Array
    logits: bool


@dataclass(frozen=True)
class Columns:
    """One number per sample. `log_top` is the log of the top probability, kept apart because it stays exact
    where the probability itself rounds to 1. The loss columns are nan without labels."""

    prediction: Ints
    max_prob: Floats
    log_top: Floats
    entropy: Floats
    margin: Floats
    max_logit: Floats
    energy: Floats
    nll: Floats
    brier: Floats
    expected_entropy: Floats
    variance_sum: Floats
    variance_predicted: Floats


def chunks(n: int, width: int) -> Iterator[slice]:
    """Slices of rows that hold about CHUNK numbers each."""
    step = max(1, CHUNK // max(1, width))
    return (slice(i, min(i + step, n)) for i in range(0, n, step))


def columns(values: Values, labels: Ints | None) -> Columns:
    """All columns of `values` in one pass."""
    n, k = values.array.shape[-2:]
    out: dict[str, Array] = {}
    for rows in chunks(n, k * (len(values.array) if values.array.ndim == 3 else 1)):
        y = None if labels is None else labels[rows]
        for name, column in _chunk(values, rows, y).items():
            if name not in out:
                out[name] = np.empty(n, column.dtype)
            out[name][rows] = column
    return _complete(out, n)


def _complete(found: dict[str, Array], n: int) -> Columns:
    """The columns; those that were not found are nan, which takes no memory."""
    nothing = np.broadcast_to(np.nan, n)
    return Columns(**{f.name: found.get(f.name, nothing) for f in fields(Columns)})


def _chunk(values: Values, rows: slice, y: Ints | None) -> dict[str, Array]:
    if values.array.ndim == 3:
        return _from_samples(Values(values.array[:, rows], values.logits), y)
    part = values.array[rows]
    return _from_logits(part, y) if values.logits else _from_probs(part, y)


class Turned(NamedTuple):
    """A chunk in float64 with its classes along `axis`.

    Few classes stand one below the other: NumPy reduces many short rows ten times as slowly as a few long columns.
    """

    array: Floats
    axis: int
    row: Ints

    @classmethod
    def of(cls, part: Array) -> Turned:
        """A copy of samples × classes."""
        row = np.arange(len(part))
        if part.shape[1] < FEW:
            return cls(part.T.astype(np.float64, order="C"), 0, row)
        return cls(part.astype(np.float64), 1, row)

    def at(self, c: Ints) -> tuple[Ints, Ints]:
        """The place of one class of each sample."""
        return (self.row, c) if self.axis else (c, self.row)

    def argmax(self) -> Ints:
        """The class of the largest number, the first among ties."""
        a = self.array
        return a.argmax(axis=1) if self.axis else np.equal(a, a.max(axis=0)).argmax(axis=0)

    def dot(self, a: Floats, b: Floats) -> Floats:
        """Sums of products over the classes."""
        return np.vecdot(a, b) if self.axis else np.einsum("ij,ij->j", a, b)


def _from_logits(part: Array, y: Ints | None) -> dict[str, Array]:
    """Columns of a chunk of logits."""
    turned = Turned.of(part)
    z, axis, _ = turned
    top = turned.argmax()
    peak = z[turned.at(top)]
    z -= np.expand_dims(peak, axis)
    z_label = None if y is None else z[turned.at(y)]
    e = np.exp(z)
    e[turned.at(top)] = 0.0  # the top class counts 1 exactly; only the rest is summed
    if z.min(initial=0.0) == -np.inf:  # classes that are ruled out add nothing to the entropy
        z[np.isneginf(z)] = 0.0
    rest = e.sum(axis=axis)
    total = 1.0 + rest
    log_total = np.log1p(rest)
    out = {
        "prediction": top,
        "max_prob": 1.0 / total,
        "log_top": -log_total,
        "entropy": np.maximum(0.0, log_total - turned.dot(e, z) / total),
        "margin": (1.0 - (e.max(axis=axis) if part.shape[1] > 1 else 0.0)) / total,
        "max_logit": peak,
        "energy": peak + log_total,
    }
    if z_label is not None:
        squares = (1.0 + turned.dot(e, e)) / total**2
        out["nll"] = log_total - z_label
        out["brier"] = np.maximum(0.0, squares - 2.0 * np.exp(z_label) / total + 1.0)
    return out


def _from_probs(part: Array, y: Ints | None) -> dict[str, Array]:
    """Columns of a chunk of probabilities."""
    turned = Turned.of(part)
    p, axis, _ = turned
    top = turned.argmax()
    np.clip(p, 0.0, 1.0, out=p)
    peak = p[turned.at(top)]
    with np.errstate(divide="ignore"):
        out = {"prediction": top, "max_prob": peak, "log_top": np.log(peak), "entropy": entropy(p, axis)}
        if y is not None:
            p_label = p[turned.at(y)]
            out["nll"] = 0.0 - np.log(p_label)
            out["brier"] = np.maximum(0.0, turned.dot(p, p) - 2.0 * p_label + 1.0)
    p[turned.at(top)] = 0.0
    out["margin"] = peak - p.max(axis=axis)
    return out


def _from_samples(values: Values, y: Ints | None) -> dict[str, Array]:
    """Columns of a chunk of several answers per sample."""
    q, log_q = _member_probs(values)
    mean = q.mean(axis=0)
    within = entropy(q).mean(axis=0)
    spread = q.var(axis=0)
    out = _from_probs(mean, y)
    out["expected_entropy"] = within
    out["variance_sum"] = spread.sum(axis=1)
    out["variance_predicted"] = spread[np.arange(len(mean)), out["prediction"]]
    if y is not None and log_q is not None:
        of_label = log_q[:, np.arange(len(mean)), y]
        out["nll"] = np.log(len(q)) - np.logaddexp.reduce(of_label, axis=0)
    return out


def _member_probs(values: Values) -> tuple[Floats, Floats | None]:
    v = values.array.astype(np.float64)
    if not values.logits:
        return np.clip(v, 0.0, 1.0), None
    log_q = log_softmax(v)
    return np.exp(log_q), log_q


def entropy(p: Floats, axis: int = -1) -> Floats:
    """Entropy in nats over the classes, with 0 log 0 = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.maximum(0.0, -np.where(p > 0, p * np.log(p), 0.0).sum(axis=axis))


def log_softmax(z: Floats) -> Floats:
    """Log probabilities over the last axis; finite for any finite logits."""
    shifted = z - z.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def mean_probs(values: Values) -> Floats:
    """Probabilities (n, k), the mean over samples where there are several."""
    v = values.array if values.array.ndim == 3 else values.array[None]
    out = np.empty(v.shape[1:])
    for rows in chunks(v.shape[1], v.shape[0] * v.shape[2]):
        q, _ = _member_probs(Values(v[:, rows], values.logits))
        out[rows] = q.mean(axis=0)
    return out


def top_mass(values: Values, k: int) -> Floats:
    """Summed probability of the k most probable classes."""
    n, classes = values.array.shape[-2:]
    k = min(k, classes)
    out = np.empty(n)
    v = values.array if values.array.ndim == 3 else values.array[None]
    for rows in chunks(n, len(v) * classes):
        q = _member_probs(Values(v[:, rows], values.logits))[0].mean(axis=0)
        rest = np.partition(q, classes - k, axis=1)[:, : classes - k]
        out[rows] = _complement(q, rest, values.logits)
    return out


def _complement(q: Floats, rest: Floats, normalised: bool) -> Floats:
    """1 minus a small rest keeps more digits than a sum close to 1; given rows may not sum to 1 exactly."""
    if normalised:
        return np.clip(1.0 - rest.sum(axis=1), 0.0, 1.0)
    return np.clip(q.sum(axis=1) - rest.sum(axis=1), 0.0, 1.0)


def label_rank(values: Values, labels: Ints) -> Ints:
    """How many classes rank before the label: those with a higher value, and lower numbers among equals."""
    n, k = values.array.shape[-2:]
    out = np.empty(n, dtype=np.int64)
    single = values.array.ndim == 2
    for rows in chunks(n, k * (1 if single else len(values.array))):
        v = values.array[rows] if single else mean_probs(Values(values.array[:, rows], values.logits))
        turned, y = Turned.of(v), labels[rows]
        a, axis, _ = turned
        own = np.expand_dims(a[turned.at(y)], axis)
        ahead = np.count_nonzero(np.greater(a, own), axis=axis)
        tied = np.flatnonzero(np.count_nonzero(np.equal(a, own), axis=axis) > 1)
        before: Bools = np.less(np.arange(k, dtype=np.int64), y[tied, None])
        ahead[tied] += np.count_nonzero(np.equal(v[tied], v[tied, y[tied]][:, None]) & before, axis=1)
        out[rows] = ahead
    return out
