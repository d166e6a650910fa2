"""One chunked pass over logits or probabilities for everything that scores and losses need.

All arithmetic is float64, whatever the input. A chunk is small enough to stay in the processor's
cache, so no second n × k array ever exists.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np

from howsure._core.check import Array, Bools, Floats, Ints
from howsure._core.frozen import frozen

CHUNK = 1 << 16  # numbers per chunk: half a megabyte of float64
LARGE = 3 << 16  # numbers per chunk where all arrays of a chunk are used again
FEW = 64  # of fewer classes a chunk is turned
MANY = 256  # classes, from which on the largest float32 is found faster before it is widened


class Values(NamedTuple):
    """Numbers of shape (n, k) or (s, n, k), and whether they are logits."""

    array: Array
    logits: bool


@frozen
class Columns:
    """One number per sample. `log_top` is the log of the top probability, kept apart because it
    stays exact where the probability itself rounds to 1. The loss columns are nan without
    labels."""

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


def chunks(n: int, width: int, size: int = CHUNK) -> Iterator[slice]:
    """Slices of rows that hold about `size` numbers each."""
    step = max(1, size // max(1, width))
    return (slice(i, min(i + step, n)) for i in range(0, n, step))


def columns(values: Values, labels: Ints | None) -> Columns:
    """All columns of `values` in one pass."""
    if values.logits and values.array.ndim == 2:
        return _complete(_finished(_sums(values.array, labels)), len(values.array))
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
    return _from_probs(values.array[rows], y)


class Turned(NamedTuple):
    """A chunk in float64 with its classes along `axis`.

    Few classes stand one below the other: NumPy reduces many short rows ten times as slowly as a
    few long columns.
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


@frozen(eq=False)
class Sums:
    """What one pass over logits z leaves of each row, with p the largest: over the other classes
    the sums of e = exp(z - p), of e · (z - p) and of e², and the largest e; and z - p of the label,
    where that is known."""

    top: Ints
    peak: Floats
    rest: Floats
    weighted: Floats
    squares: Floats
    second: Floats
    label: Floats | None


def _sums(logits: Array, labels: Ints | None) -> Sums:
    """The sums of all rows. The two arrays of a chunk serve the next one too, so that they stay
    near the processor.
    """
    n, k = len(logits), int(logits.shape[1])
    peak, rest, weighted, squares, second, label = np.empty(
        (6, n)
    )  # one large block costs less than six
    out = Sums(
        np.empty(n, np.intp),
        peak,
        rest,
        weighted,
        squares,
        second,
        None if labels is None else label,
    )
    space = np.empty((2, min(n, max(1, LARGE // k)) * k))
    begin = np.arange(space.shape[1] // k)
    add = _add_columns if k < FEW else _add_rows
    with np.errstate(invalid="ignore"):  # 0 · -inf: classes that are ruled out
        for rows in chunks(n, k, LARGE):
            m = rows.stop - rows.start
            z, e = (buffer[: m * k] for buffer in space)
            y = (
                None if labels is None else labels[rows].astype(np.intp, copy=False)
            )  # 32 bits in a browser
            add(logits[rows], y, (z, e), begin[:m], out, rows)
    return replace(out, top=out.top.astype(np.int64, copy=False))


Space = tuple[Floats, Floats]


def _add_rows(part: Array, y: Ints | None, space: Space, row: Ints, out: Sums, rows: slice) -> None:
    """The sums of a chunk of many classes."""
    flat, e = space
    z, begin = flat.reshape(part.shape), row * part.shape[1]
    np.copyto(z, part)
    narrow = part.dtype == np.float32 and part.shape[1] >= MANY
    first = (part if narrow else z).argmax(axis=1, out=out.top[rows]) + begin
    peak = flat.take(first, out=out.peak[rows], mode="clip")
    z -= peak[:, None]
    if y is not None and out.label is not None:
        flat.take(begin + y, out=out.label[rows], mode="clip")
    np.exp(flat, out=e)
    e[first] = 0.0  # the top class counts 1 exactly; only the rest is summed
    np.maximum.reduceat(e, begin, out=out.second[rows])
    e = e.reshape(part.shape)
    e.sum(axis=1, out=out.rest[rows])
    np.vecdot(e, e, out=out.squares[rows])
    if np.isnan(np.vecdot(e, z, out=out.weighted[rows])).any():
        z[np.isneginf(z)] = 0.0  # classes that are ruled out add nothing to the entropy
        np.vecdot(e, z, out=out.weighted[rows])


def _add_columns(
    part: Array, y: Ints | None, space: Space, row: Ints, out: Sums, rows: slice
) -> None:
    """The sums of a chunk of few classes, which stand one below the other.

    NumPy reduces many short rows ten times as slowly as a few long columns.
    """
    m, k = part.shape
    z, e = (buffer.reshape(k, m) for buffer in space)
    np.copyto(z, part.T)
    first = np.equal(z, z.max(axis=0)).argmax(axis=0, out=out.top[rows]) * m + row
    peak = space[0].take(first, out=out.peak[rows], mode="clip")
    z -= peak
    if y is not None and out.label is not None:
        space[0].take(y * m + row, out=out.label[rows], mode="clip")
    np.exp(z, out=e)
    space[1][first] = 0.0
    e.sum(axis=0, out=out.rest[rows])
    e.max(axis=0, out=out.second[rows])
    np.einsum("ij,ij->j", e, e, out=out.squares[rows])
    if np.isnan(np.einsum("ij,ij->j", e, z, out=out.weighted[rows])).any():
        z[np.isneginf(z)] = 0.0
        np.einsum("ij,ij->j", e, z, out=out.weighted[rows])


def _finished(sums: Sums) -> dict[str, Array]:
    """The columns of a pass; each takes the place of a sum."""
    total = 1.0 + sums.rest
    log_total = np.log1p(sums.rest, out=sums.rest)
    entropy = np.divide(sums.weighted, total, out=sums.weighted)
    np.subtract(log_total, entropy, out=entropy)
    margin = np.subtract(1.0, sums.second, out=sums.second)
    out = {
        "prediction": sums.top,
        "entropy": np.maximum(0.0, entropy, out=entropy),
        "margin": np.divide(margin, total, out=margin),
        "max_logit": sums.peak,
        "energy": sums.peak + log_total,
    }
    if sums.label is not None:
        brier = np.add(1.0, sums.squares, out=sums.squares)
        brier /= total**2
        hit = np.exp(sums.label)
        hit *= 2.0
        hit /= total
        brier -= hit
        brier += 1.0
        out["brier"] = np.maximum(0.0, brier, out=brier)
        out["nll"] = np.subtract(log_total, sums.label, out=sums.label)
    return out | {
        "max_prob": np.divide(1.0, total, out=total),
        "log_top": np.negative(log_total, out=log_total),
    }


def _from_probs(part: Array, y: Ints | None) -> dict[str, Array]:
    """Columns of a chunk of probabilities."""
    turned = Turned.of(part)
    p, axis, _ = turned
    top = turned.argmax()
    np.clip(p, 0.0, 1.0, out=p)
    peak = p[turned.at(top)]
    with np.errstate(divide="ignore"):
        out = {
            "prediction": top,
            "max_prob": peak,
            "log_top": np.log(peak),
            "entropy": entropy(p, axis),
        }
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
    """1 minus a small rest keeps more digits than a sum close to 1; given rows may not sum to 1
    exactly.
    """
    if normalised:
        return np.clip(1.0 - rest.sum(axis=1), 0.0, 1.0)
    return np.clip(q.sum(axis=1) - rest.sum(axis=1), 0.0, 1.0)


def label_rank(values: Values, labels: Ints) -> Ints:
    """How many classes rank before the label: those with a higher value, and lower numbers among
    equals.
    """
    n, k = values.array.shape[-2:]
    out = np.empty(n, dtype=np.int64)
    single = values.array.ndim == 2
    for rows in chunks(n, k * (1 if single else len(values.array))):
        v = (
            values.array[rows]
            if single
            else mean_probs(Values(values.array[:, rows], values.logits))
        )
        out[rows] = _ahead(v.astype(np.float32) if v.dtype == np.float16 else v, labels[rows])
    return out


def _ahead(v: Array, y: Ints) -> Ints:
    """The same of a chunk; few classes stand one below the other."""
    row, few = np.arange(len(v)), v.shape[1] < FEW
    own = v[row, y]
    a, own_ = (np.ascontiguousarray(v.T), own) if few else (v, own[:, None])
    ahead = _true(np.greater(a, own_), few)
    tied = np.flatnonzero(_true(np.equal(a, own_), few) > 1)
    before: Bools = np.less(np.arange(v.shape[1], dtype=np.int64), y[tied, None])
    ahead[tied] += np.count_nonzero(np.equal(v[tied], own[tied, None]) & before, axis=1)
    return ahead


def _true(found: Bools, few: bool) -> Ints:
    """How many are true for each sample: NumPy counts bytes and bits ten times as fast as truth
    values.
    """
    if few:
        return np.add.reduce(found.view(np.uint8), axis=0, dtype=np.uint8).astype(np.int64)
    return np.bitwise_count(np.packbits(found, axis=1)).sum(axis=1, dtype=np.int64)
