"""One chunked pass over logits or probabilities for everything that scores and losses need.

All arithmetic is float64, whatever the input. A chunk is small enough to stay in the processor's
cache, so no second n × k array ever exists.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import NamedTuple

import numpy as np

from howsure._core.checks import Array, Bools, Floats, Ints
from howsure._core.frozen import frozen

CHUNK_NUMBERS = 1 << 16  # per chunk: half a megabyte of float64
REUSED_CHUNK_NUMBERS = 3 << 16  # per chunk where all arrays of a chunk are used again
# NumPy reduces many short rows ten times as slowly as a few long columns. So chunks of fewer
# classes than this are turned: their classes stand one below the other.
TURNED_CLASSES = 64
# Decimals of the confidence of two classes, so that 0.07 and 0.93 claim the same; above the limit
# 1 − p has all its digits and is left alone.
COMPLEMENT_DECIMALS, COMPLEMENT_LIMIT = 1e13, 0.999
# Two columns that add up to 1 but for the rounding of float32 say one number; others say two.
TRUE_COMPLEMENT = 5e-7
EXACT_SUM = 1e-6  # rounded rows that miss 1 by more are divided by their sum
WIDE_CLASSES = 256  # above this the largest float32 is found faster before it is widened


class RawValues(NamedTuple):
    """Numbers of shape (n, k) or (s, n, k), and whether they are logits; `rounded` probabilities
    may miss 1 by what their digits allow.
    """

    array: Array
    logits: bool
    rounded: bool = False


@frozen
class ScoreColumns:
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


def iterate_chunks(n: int, width: int, size: int = CHUNK_NUMBERS) -> Iterator[slice]:
    """Slices of rows that hold about `size` numbers each; the last is not of one row."""
    step = max(1, size // max(1, width))
    start = 0
    while start < n:
        stop = start + step
        # NumPy would add the classes of a row that is left alone in another order.
        if stop + 1 >= n:
            stop = n
        yield slice(start, stop)
        start = stop


def compute_columns(values: RawValues, labels: Ints | None) -> ScoreColumns:
    """All columns of `values` in one pass."""
    n = values.array.shape[-2]
    columns: dict[str, Array] = {}
    if values.logits and values.array.ndim == 2:
        columns = _finish_sums(_sum_logits(values.array, labels))
    else:
        for rows in iterate_chunks(n, values.array.size // max(n, 1)):
            y = None if labels is None else labels[rows]
            if values.array.ndim == 3:
                part = _read_samples(RawValues(values.array[:, rows], values.logits), y)
            else:
                part = _read_probs(values.array[rows], y, rounded=values.rounded)
            for name, column in part.items():
                if name not in columns:
                    columns[name] = np.empty(n, column.dtype)
                columns[name][rows] = column
    nothing = np.broadcast_to(np.nan, n)  # takes no memory
    return ScoreColumns(**{f.name: columns.get(f.name, nothing) for f in fields(ScoreColumns)})


@frozen(eq=False)
class ColumnSums:
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

    def view(self, rows: slice) -> ColumnSums:
        """Views of some rows, which are filled in place."""
        return ColumnSums(
            top=self.top[rows],
            peak=self.peak[rows],
            rest=self.rest[rows],
            weighted=self.weighted[rows],
            squares=self.squares[rows],
            second=self.second[rows],
            label=None if self.label is None else self.label[rows],
        )


class LogitChunk(NamedTuple):
    """Some rows of logits, their labels where known, and space to work in."""

    logits: Array
    labels: Ints | None
    z: Floats  # as many numbers as there are logits, flat
    e: Floats
    row: Ints  # 0, 1, 2, ...


def _sum_logits(logits: Array, labels: Ints | None) -> ColumnSums:
    """The sums of all rows."""
    n, k = len(logits), int(logits.shape[1])
    # One large block costs less than six.
    peak, rest, weighted, squares, second, label = np.empty((6, n))
    sums = ColumnSums(
        top=np.empty(n, np.intp),
        peak=peak,
        rest=rest,
        weighted=weighted,
        squares=squares,
        second=second,
        label=None if labels is None else label,
    )
    # The two arrays of a chunk serve the next one too, so that they stay near the processor.
    space = np.empty((2, min(n, max(1, REUSED_CHUNK_NUMBERS // k) + 1) * k))
    row = np.arange(space.shape[1] // k)
    fill = _sum_turned_chunk if k < TURNED_CLASSES else _sum_chunk
    with np.errstate(invalid="ignore"):  # 0 · -inf: classes that are ruled out
        for rows in iterate_chunks(n, k, REUSED_CHUNK_NUMBERS):
            m = rows.stop - rows.start
            y = None
            if labels is not None:
                y = labels[rows].astype(np.intp, copy=False)  # 32 bits in a browser
            chunk = LogitChunk(
                logits=logits[rows],
                labels=y,
                z=space[0, : m * k],
                e=space[1, : m * k],
                row=row[:m],
            )
            fill(chunk, sums.view(rows))
    return replace(sums, top=sums.top.astype(np.int64, copy=False))


def _sum_chunk(chunk: LogitChunk, out: ColumnSums) -> None:
    """The sums of a chunk of many classes."""
    part, flat = chunk.logits, chunk.z
    z = flat.reshape(part.shape)
    begin = chunk.row * part.shape[1]
    np.copyto(z, part)
    is_wide = part.dtype == np.float32 and part.shape[1] >= WIDE_CLASSES
    first = (part if is_wide else z).argmax(axis=1, out=out.top) + begin
    peak = flat.take(first, out=out.peak, mode="clip")
    z -= peak[:, None]
    if chunk.labels is not None and out.label is not None:
        flat.take(begin + chunk.labels, out=out.label, mode="clip")
    np.exp(flat, out=chunk.e)
    chunk.e[first] = 0.0  # the top class counts 1 exactly; only the rest is summed
    np.maximum.reduceat(chunk.e, begin, out=out.second)
    e = chunk.e.reshape(part.shape)
    e.sum(axis=1, out=out.rest)
    np.vecdot(e, e, out=out.squares)
    if np.isnan(np.vecdot(e, z, out=out.weighted)).any():
        z[np.isneginf(z)] = 0.0  # classes that are ruled out add nothing to the entropy
        np.vecdot(e, z, out=out.weighted)


def _sum_turned_chunk(chunk: LogitChunk, out: ColumnSums) -> None:
    """The same of a chunk of few classes, one below the other."""
    m, k = chunk.logits.shape
    z, e = chunk.z.reshape(k, m), chunk.e.reshape(k, m)
    np.copyto(z, chunk.logits.T)
    first = np.equal(z, z.max(axis=0)).argmax(axis=0, out=out.top) * m + chunk.row
    peak = chunk.z.take(first, out=out.peak, mode="clip")
    z -= peak
    if chunk.labels is not None and out.label is not None:
        chunk.z.take(chunk.labels * m + chunk.row, out=out.label, mode="clip")
    np.exp(z, out=e)
    chunk.e[first] = 0.0
    e.sum(axis=0, out=out.rest)
    e.max(axis=0, out=out.second)
    np.einsum("ij,ij->j", e, e, out=out.squares)
    if np.isnan(np.einsum("ij,ij->j", e, z, out=out.weighted)).any():
        z[np.isneginf(z)] = 0.0
        np.einsum("ij,ij->j", e, z, out=out.weighted)


def _finish_sums(sums: ColumnSums) -> dict[str, Array]:
    """The columns of a pass; each takes the place of a sum, so that no memory is added."""
    total = 1.0 + sums.rest
    log_total = np.log1p(sums.rest, out=sums.rest)
    entropy = np.divide(sums.weighted, total, out=sums.weighted)
    np.subtract(log_total, entropy, out=entropy)
    margin = np.subtract(1.0, sums.second, out=sums.second)
    columns = {
        "prediction": sums.top,
        "entropy": np.maximum(0.0, entropy, out=entropy),
        "margin": np.divide(margin, total, out=margin),
        "max_logit": sums.peak,
        "energy": sums.peak + log_total,
    }
    if sums.label is not None:
        # 1 + sum of p² - 2 p of the label
        brier = np.add(1.0, sums.squares, out=sums.squares)
        brier /= total**2
        hit = np.exp(sums.label)
        hit *= 2.0
        hit /= total
        brier -= hit
        brier += 1.0
        columns["brier"] = np.maximum(0.0, brier, out=brier)
        columns["nll"] = np.subtract(log_total, sums.label, out=sums.label)
    # Last, because they overwrite what the others are computed from.
    columns["max_prob"] = np.divide(1.0, total, out=total)
    columns["log_top"] = np.negative(log_total, out=log_total)
    return columns


def are_complements(p: Array, axis: int) -> Bools:
    """The rows whose two probabilities say one number, but for the rounding of a softmax.

    Each row by itself, so that no row depends on those it is read with. Probabilities that do not
    add up to 1 are two numbers, and the published values of such sets are those of both.
    """
    return np.abs(p.sum(axis=axis, dtype=np.float64) - 1) <= TRUE_COMPLEMENT


def sum_rounded(p: Array, axis: int) -> Floats:
    """What rows of rounded probabilities are divided by: their sum where it misses 1, else 1."""
    total = p.sum(axis=axis, dtype=np.float64)
    return np.where(np.abs(total - 1) > EXACT_SUM, total, 1.0)


def _read_probs(part: Array, y: Ints | None, *, rounded: bool = False) -> dict[str, Array]:
    """Columns of a chunk of probabilities; of rounded ones only the losses are those of the divided
    row.
    """
    is_turned = part.shape[1] < TURNED_CLASSES
    row = np.arange(len(part))
    if is_turned:
        p, axis = part.T.astype(np.float64, order="C"), 0
        top = np.equal(p, p.max(axis=0)).argmax(axis=0)
    else:
        p, axis = part.astype(np.float64), 1
        top = p.argmax(axis=1)
    np.clip(p, 0.0, 1.0, out=p)
    complement = np.zeros(len(part), dtype=np.bool_)
    if part.shape[1] == 2:
        complement = are_complements(p, axis=axis)
        p[0] = np.where(complement, 1.0 - p[1], p[0])
        top[complement] = p[1, complement] > 0.5
    at_top = (top, row) if is_turned else (row, top)
    peak = p[at_top]
    if complement.any():
        nearest = np.rint(peak * COMPLEMENT_DECIMALS) / COMPLEMENT_DECIMALS
        peak = np.where(complement & (peak <= COMPLEMENT_LIMIT), nearest, peak)
    with np.errstate(divide="ignore"):
        columns = {
            "prediction": top,
            "max_prob": peak,
            "log_top": np.log(peak),
            "entropy": compute_entropy(p, axis),
        }
        if y is not None:
            p_label = p[(y, row) if is_turned else (row, y)]
            squares = np.einsum("ij,ij->j", p, p) if is_turned else np.vecdot(p, p)
            if rounded:
                total = sum_rounded(p, axis)
                p_label, squares = p_label / total, squares / total**2
            columns["nll"] = 0.0 - np.log(p_label)
            columns["brier"] = np.maximum(0.0, squares - 2.0 * p_label + 1.0)
    p[at_top] = 0.0  # the largest of what remains is the second
    columns["margin"] = peak - p.max(axis=axis)
    return columns


def _read_samples(values: RawValues, y: Ints | None) -> dict[str, Array]:
    """Columns of a chunk of several answers per sample."""
    q, log_q = _read_members(values)
    mean = q.mean(axis=0)
    row = np.arange(len(mean))
    within = compute_entropy(q).mean(axis=0)
    spread = q.var(axis=0)
    columns = _read_probs(mean, y)
    columns["expected_entropy"] = within
    columns["variance_sum"] = spread.sum(axis=1)
    columns["variance_predicted"] = spread[row, columns["prediction"]]
    if y is not None and log_q is not None:
        # The log of a mean of probabilities that may all round to 0.
        columns["nll"] = np.log(len(q)) - np.logaddexp.reduce(log_q[:, row, y], axis=0)
    return columns


def _read_members(values: RawValues) -> tuple[Floats, Floats | None]:
    """Probabilities of every answer, and their logs where they come from logits."""
    v = values.array.astype(np.float64)
    if not values.logits:
        return np.clip(v, 0.0, 1.0), None
    log_q = log_softmax(v)
    return np.exp(log_q), log_q


def compute_entropy(p: Floats, axis: int = -1) -> Floats:
    """Entropy in nats over the classes, with 0 log 0 = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.maximum(0.0, -np.where(p > 0, p * np.log(p), 0.0).sum(axis=axis))


def log_softmax(z: Floats) -> Floats:
    """Log probabilities over the last axis; finite for any finite logits."""
    shifted = z - z.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def _iterate_probs(values: RawValues) -> Iterator[tuple[slice, Floats]]:
    """Probabilities of some rows at a time, the mean over samples where there are several."""
    v = values.array if values.array.ndim == 3 else values.array[None]
    for rows in iterate_chunks(v.shape[1], v.shape[0] * v.shape[2]):
        q, _ = _read_members(RawValues(v[:, rows], values.logits))
        mean = q.mean(axis=0)
        if values.rounded:
            mean /= sum_rounded(mean, axis=1)[:, None]
        yield rows, mean


def average_probs(values: RawValues) -> Floats:
    """Probabilities (n, k), the mean over samples where there are several."""
    out = np.empty(values.array.shape[-2:])
    for rows, q in _iterate_probs(values):
        out[rows] = q
    return out


def sum_top_probs(values: RawValues, k: int) -> Floats:
    """Summed probability of the k most probable classes."""
    n, classes = values.array.shape[-2:]
    others = classes - min(k, classes)
    out = np.empty(n)
    for rows, q in _iterate_probs(values):
        rest = np.partition(q, others, axis=1)[:, :others].sum(axis=1)
        # 1 minus a small rest keeps more digits than a sum close to 1; but given probabilities may
        # not sum to 1 exactly.
        whole = 1.0 if values.logits else q.sum(axis=1)
        out[rows] = np.clip(whole - rest, 0.0, 1.0)
    return out


def rank_labels(values: RawValues, labels: Ints) -> Ints:
    """How many classes rank before the label: those with a higher value, and lower numbers among
    equals.
    """
    n, k = values.array.shape[-2:]
    out = np.empty(n, dtype=np.int64)
    for rows in iterate_chunks(n, values.array.size // max(n, 1)):
        part = values.array[..., rows, :]
        v = part
        if part.ndim == 3:
            v = average_probs(RawValues(part, values.logits))
        if v.dtype == np.float16:
            v = v.astype(np.float32)
        y = labels[rows]
        own = v[np.arange(len(v)), y]
        is_turned = k < TURNED_CLASSES
        a, own_beside = (np.ascontiguousarray(v.T), own) if is_turned else (v, own[:, None])
        ahead = _count_true(np.greater(a, own_beside), is_turned)
        tied = np.flatnonzero(_count_true(np.equal(a, own_beside), is_turned) > 1)
        before: Bools = np.less(np.arange(k, dtype=np.int64), y[tied, None])
        ahead[tied] += np.count_nonzero(np.equal(v[tied], own[tied, None]) & before, axis=1)
        out[rows] = ahead
    return out


def _count_true(flags: Bools, is_turned: bool) -> Ints:
    """How many are true for each sample: NumPy counts bytes and bits ten times as fast as truth
    values.
    """
    if is_turned:
        return np.add.reduce(flags.view(np.uint8), axis=0, dtype=np.uint8).astype(np.int64)
    return np.bitwise_count(np.packbits(flags, axis=1)).sum(axis=1, dtype=np.int64)
