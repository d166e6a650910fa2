"""Count tables: how many answers of each score were right and wrong, instead of the answers.

A cell is a score, right or wrong (or any loss), and a count; a database makes such a table with
GROUP BY. Where neighbouring scores share a cell its score is their mean, and the columns
`score_low` and `score_high` hold its ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import NamedTuple

import numpy as np

from howsure._core import checks
from howsure._core.checks import Array, Bools, Floats, InputError, Ints
from howsure._core.file_access import replace_file
from howsure._core.frozen import frozen
from howsure._core.indices import count_values, repeat_values, sum_runs
from howsure.formats.assembly import locate_error
from howsure.formats.column_names import ATTRIBUTE, CELL_ENDS, plan_wanted
from howsure.formats.fields import load_fields, select_file
from howsure.formats.files import find_format, get_suffix, open_runs, read_beginning, read_receipt
from howsure.predictions import Predictions
from howsure.predictions.predictions import describe_outside
from howsure.predictions.read_options import ReadOptions, Receipt
from howsure.predictions.segments import Cut
from howsure.tallies.buckets import merge_cells
from howsure.tallies.building import count_cells, tally
from howsure.tallies.counted import merge_tallies
from howsure.tallies.tally import Tally

END_ROUNDING = 1e-9  # of means that a database made
MAX_REPEATED_ROWS = 10_000_000  # answers that are taken one by one where a number needs that
MAX_ANSWERS = 10**13  # beyond, logarithms of factorials have too few digits for limits
COUNTED_VALUES = ("confidence", "score")
# A table that has none of these knows no single answer.
PARTS_OF_ANSWERS = ("labels", "prediction", "grade", "no_answer", "ids", "weight", "group")
OUTCOMES = ("correct", "loss")  # a table has one of them
MERGE_PARTS = 16  # tallies that wait before they are merged
OWNER = "file"  # the column that tells whose cells they are


@frozen(eq=False)
class CountTable:
    """Cells of one or several tables; `columns` are those to slice by. `repeated` cells occur more
    than once in one file, and count together.

    >>> cells = {"confidence": [0.9, 0.9, 0.6], "correct": [1, 0, 1], "count": [7, 1, 4]}
    >>> make_count_table({name: np.array(a) for name, a in cells.items()}).tally()
    <Tally: n=12, wrong=1, 2 distinct scores>
    """

    kind: str
    score: Floats
    loss: Floats  # 0 for right and 1 for wrong, unless answers are graded
    count: Ints
    low: Floats
    high: Floats
    columns: dict[str, Array]
    receipt: Receipt | None = None
    repeated: int = 0

    @property
    def n(self) -> int:
        """The number of answers."""
        return int(self.count.sum())

    @property
    def merged(self) -> bool:
        """Whether a cell holds different scores."""
        return bool((self.low < self.high).any())

    @property
    def graded(self) -> bool:
        """Whether an answer is neither right nor wrong."""
        return not np.isin(self.loss, (0, 1)).all()

    def list_cells(self) -> Predictions:
        """One answer of each cell."""
        make = Predictions.from_score if self.kind == "score" else Predictions.from_confidence
        if self.graded:
            return make(self.score, loss=self.loss)
        return make(self.score, self.loss == 0)

    def repeat_rows(self) -> Predictions:
        """The answers one by one."""
        return self.list_cells()[repeat_values(np.arange(len(self.count)), self.count)]

    def tally(self, cells: Bools | None = None) -> Tally:
        """The tally of all answers, or of those of some cells; a compact one where a cell holds
        different scores.
        """
        if cells is None:
            cells = np.ones(len(self.score), dtype=np.bool_)
        score, right, count = self.score[cells], self.loss[cells] == 0, self.count[cells]
        low, high = self.low[cells], self.high[cells]
        if self.graded:
            return tally(score, loss=self.loss[cells], count=count)
        if (low < high).any():
            return merge_cells(score, right, count, low=low, high=high)
        return count_cells(score, right, count)


def make_count_table(arrays: Mapping[str, Array], path: str = "the table") -> CountTable:
    """The cells that these columns describe: `confidence` or `score`, `correct` or `loss`, `count`,
    and where cells hold several scores their ends. Other columns are those to slice by.
    """
    kind = next((name for name in COUNTED_VALUES if name in arrays), None)
    outcome = next((name for name in OUTCOMES if name in arrays), None)
    if kind is None or outcome is None or "count" not in arrays:
        got = f"has the columns {', '.join(arrays)}"
        need = "confidence (or score), correct (or loss) and count are needed"
        raise InputError(path, got=got, need=need)
    score = checks.no_nan(checks.column(arrays[kind], kind), kind).astype(np.float64)
    if outcome == "correct":
        loss = (~checks.zero_one(arrays["correct"], "correct")).astype(np.float64)
    else:
        loss = checks.finite(checks.column(arrays["loss"], "loss"), "loss").astype(np.float64)
    count = checks.counts(arrays["count"], len(score))
    outside = ~((score >= 0) & (score <= 1))
    if kind == "confidence" and outside.any():
        raise describe_outside(score, outside)
    total = sum(count.tolist())  # of any size: int64 would wrap around
    if total > MAX_ANSWERS:
        got = f"sums up to {total:.3g}"
        raise InputError("count", got=got, need=f"at most {MAX_ANSWERS:.0e} answers can be counted")
    low, high = score, score
    ends = [name for name in CELL_ENDS if name in arrays]
    if len(ends) == 1:
        got, need = f"has {ends[0]} alone", "a cell of several scores has two ends"
        raise InputError(path, got=got, need=f"{need}: {' and '.join(CELL_ENDS)}")
    if ends:
        low, high = (checks.column(arrays[name], name).astype(np.float64) for name in CELL_ENDS)
        bad = ~((low - END_ROUNDING <= score) & (score <= high + END_ROUNDING) & (low <= high))
        need = "a cell holds scores between its ends"
        if kind == "confidence":
            bad |= (low < 0) | (high > 1)
            need += ", which lie in [0, 1]"
        if bad.any():
            i = checks.find_first(bad)
            got = f"is {score[i]:g} in a cell from {low[i]:g} to {high[i]:g}"
            raise InputError(kind, row=i, got=got, need=need)
    known = (*COUNTED_VALUES, *CELL_ENDS, *OUTCOMES, "count")
    columns = {name: a for name, a in arrays.items() if name not in known}
    table = CountTable(
        kind=kind,
        score=np.clip(score, low, high),
        loss=loss,
        count=count,
        low=low,
        high=high,
        columns=columns,
    )
    if table.graded and table.merged:
        got = "holds several scores of graded answers"
        raise InputError("a cell", got=got, need="of these each score is counted by itself")
    return table


def is_count_table(path: str | Path, options: ReadOptions) -> bool:
    """Whether a file holds counts of scores alone: nothing that tells single answers apart."""
    try:
        find_format(Path(path))
        kind, wanted = plan_wanted(read_beginning(path, 1), options)
    except (InputError, OSError):
        return False  # the reader of predictions says what is wrong
    if kind not in COUNTED_VALUES or "count" not in wanted:
        return False
    if sum(outcome in wanted for outcome in OUTCOMES) != 1:
        return False
    return not any(part in wanted for part in PARTS_OF_ANSWERS)


def read_count_tables(
    paths: Sequence[str], options: ReadOptions, by: Sequence[str] = ()
) -> CountTable | None:
    """The cells of all files, or None where one of them is no count table. Of several files the
    column `file` says which one a cell is from.
    """
    if not paths or not all(is_count_table(path, options) for path in paths):
        return None
    tables: list[CountTable] = []
    own = options
    for path in paths:
        names = list(read_beginning(path, 1).entries)
        ends = [name for name in CELL_ENDS if name in names]
        wanted = tuple(column for column in by if column != OWNER or column in names)
        own = replace(options, attributes=(*wanted, *ends))
        runs, resolved = open_runs(Path(path), own, None)
        data = select_file([load_fields(run, resolved) for run in runs], resolved)
        arrays = {part.removeprefix(ATTRIBUTE): a for part, a in data.arrays.items()}
        try:
            table = make_count_table(arrays)
        except InputError as e:
            raise locate_error(e, data) from None
        if len(names) == len(arrays):  # else a column that is not read may tell cells apart
            table = replace(table, repeated=count_repeated(table))
        if len(paths) > 1:
            owner = np.full(len(table.score), name_owner(path, paths))
            table = replace(table, columns={OWNER: owner, **table.columns})
        tables.append(table)
    whole = concat_tables(tables)
    receipt = read_receipt(Path(paths[-1]), own)
    return replace(whole, receipt=replace(receipt, rows=whole.n))


def name_owner(path: str, paths: Sequence[str]) -> str:
    """The file's name without its ending, or all of its path where two are called the same."""
    stems = [Path(other).name.split(".")[0] for other in paths]
    stem = Path(path).name.split(".")[0]
    return stem if stems.count(stem) == 1 else str(path)


def concat_tables(tables: Sequence[CountTable]) -> CountTable:
    """All cells of all tables, which must be of one kind."""
    first = tables[0]
    for table in tables[1:]:
        if table.kind != first.kind:
            raise InputError(
                f"one table counts by {first.kind}, another by {table.kind}; evaluate them separately."
            )
    total = sum(table.n for table in tables)
    if total > MAX_ANSWERS:
        got = f"sums up to {total:.3g}"
        raise InputError("count", got=got, need=f"at most {MAX_ANSWERS:.0e} answers can be counted")
    if len(tables) == 1:
        return first

    def join(column: Callable[[CountTable], Array]) -> Array:
        return np.concatenate([column(table) for table in tables])

    return CountTable(
        kind=first.kind,
        score=join(lambda table: table.score),
        loss=join(lambda table: table.loss),
        count=join(lambda table: table.count),
        low=join(lambda table: table.low),
        high=join(lambda table: table.high),
        columns={
            name: join(lambda table, name=name: table.columns[name]) for name in first.columns
        },
        repeated=sum(table.repeated for table in tables),
    )


def count_repeated(table: CountTable) -> int:
    """How many cells are there again with the same score, loss, ends and columns."""
    keys: list[Array] = [table.score, table.loss, table.low, table.high]
    keys += [np.unique(column, return_inverse=True)[1] for column in table.columns.values()]
    order = np.lexsort(keys)
    same = np.ones(len(order) - 1, dtype=np.bool_)
    for key in keys:
        same &= key[order[1:]] == key[order[:-1]]
    return int(same.sum())


# Counting


def count_answers(parts: Iterable[Predictions], cuts: Sequence[Cut] = ()) -> CountTable:
    """The cells of predictions that come in parts, for each slice of the columns by itself.

    >>> preds = Predictions.from_confidence([0.9, 0.9, 0.5], [1, 1, 0])
    >>> table = count_answers([preds, preds])
    >>> table.score, table.count
    (array([0.9, 0.5]), array([4, 2]))
    """
    kinds: set[str] = set()
    tallies: dict[tuple[str, ...], list[Tally]] = {}
    grades: dict[tuple[str, ...], list[GradeCounts]] = {}
    for preds in parts:
        if preds.weight is not None:
            raise InputError("these answers have weights, which counts cannot hold.")
        kinds.add("score" if preds.kind == "score" else "confidence")
        number = np.zeros(preds.n, dtype=np.int64)
        names: list[tuple[str, ...]] = [()]
        if cuts:
            columns = [cut.names((preds.attributes or {})[cut.column]) for cut in cuts]
            slices = list(zip(*(column.tolist() for column in columns), strict=True))
            names = sorted(set(slices))
            place = {name: i for i, name in enumerate(names)}
            number = np.array([place[name] for name in slices])
        score = preds.score
        for i, name in enumerate(names):
            mine = number == i
            own = tallies.setdefault(name, [])
            graded = grades.setdefault(name, [])
            if preds.graded:
                once = np.ones(int(mine.sum()), dtype=np.int64)
                graded.append(GradeCounts(score[mine], preds.loss[mine], once))
            else:
                own.append(tally(score[mine], correct=preds.correct[mine]))
            if len(own) > MERGE_PARTS:
                tallies[name] = [merge_tallies(own)]
            if len(graded) > MERGE_PARTS:
                grades[name] = [merge_grades(graded)]
    if len(kinds) > 1:
        raise InputError(
            "some files hold a confidence, others a mere score; count them separately."
        )
    tables: list[CountTable] = []
    for name, graded in sorted(grades.items()):
        cells = graded
        if tallies[name]:
            t = merge_tallies(tallies[name])
            right = t.count - t.loss
            for loss, count in ((np.zeros_like(t.score), right), (np.ones_like(t.score), t.loss)):
                some = count > 0
                cells.append(GradeCounts(t.score[some], loss[some], count[some]))
        # Of graded answers a part may hold right and wrong ones alone.
        score, loss, count = merge_grades(cells)
        columns = {
            cut.column: np.full(len(score), value) for cut, value in zip(cuts, name, strict=True)
        }
        table = CountTable(
            kind=min(kinds),
            score=score,
            loss=loss,
            count=count,
            low=score,
            high=score,
            columns=columns,
        )
        tables.append(table)
    return concat_tables(tables)


class GradeCounts(NamedTuple):
    """How many answers have each score and loss."""

    score: Floats
    loss: Floats
    times: Ints


def merge_grades(parts: Sequence[GradeCounts]) -> GradeCounts:
    """All of them, each pair of score and loss once: highest score first, least loss first."""
    score, loss, count = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((loss, -score))
    score, loss = score[order], loss[order]
    new = (score[1:] != score[:-1]) | (loss[1:] != loss[:-1])
    start = np.flatnonzero(np.concatenate(([True], new)))
    return GradeCounts(score[start], loss[start], sum_runs(count[order], start))


def split_slices(table: CountTable) -> list[CountTable]:
    """The cells of each slice; those of a table without columns are one slice."""
    if not table.columns:
        return [table]
    keys = [np.unique(column, return_inverse=True)[1] for column in table.columns.values()]
    number = np.unique(np.stack(keys), axis=1, return_inverse=True)[1].reshape(-1)
    return [pick_cells(table, number == i) for i in range(int(number.max()) + 1)]


def pick_cells(table: CountTable, cells: Bools) -> CountTable:
    """Some of the cells."""
    return replace(
        table,
        score=table.score[cells],
        loss=table.loss[cells],
        count=table.count[cells],
        low=table.low[cells],
        high=table.high[cells],
        columns={name: column[cells] for name, column in table.columns.items()},
    )


def put_on_grid(table: CountTable, buckets: int) -> CountTable:
    """The same answers in buckets of equal width on [0, 1], each open at its lower end."""
    if table.kind != "confidence":
        raise InputError("--grid", got="is for a confidence in [0, 1]", need="this is a mere score")
    refuse_grades(table, "--grid")
    edges = np.arange(buckets + 1) / buckets
    bucket = np.searchsorted(edges, table.high)
    below = np.concatenate(([-inf], edges))[bucket]
    if not (table.low > below).all():
        raise InputError(
            "--grid", got="cuts through cells that are merged already", hint="leave it out"
        )
    low = np.where(bucket > 0, np.nextafter(below, inf), 0.0)
    slices = split_slices(replace(table, low=low, high=edges[bucket]))
    return concat_tables([merge_by_bucket(one, one.high) for one in slices])


def merge_small_cells(table: CountTable, least: int) -> CountTable:
    """The same answers with neighbouring scores merged until no count of right or of wrong answers
    is from 1 to least − 1, in each slice by itself.
    """
    refuse_grades(table, "--min-count")
    slices: list[CountTable] = []
    for one in split_slices(table):
        value, row = np.unique(one.high, return_inverse=True)
        is_right = one.loss == 0
        right = count_values(row, np.where(is_right, one.count, 0), minlength=len(value))
        wrong = count_values(row, np.where(is_right, 0, one.count), minlength=len(value))
        # Buckets of rows, from the highest score down: where each begins, its right and its wrong.
        runs: list[tuple[int, int, int]] = []
        start, r, w = len(value) - 1, 0, 0
        for i in range(len(value) - 1, -1, -1):
            r, w = r + int(right[i]), w + int(wrong[i])
            if _is_large(r, least) and _is_large(w, least):
                runs.append((start, r, w))
                start, r, w = i - 1, 0, 0
        while not (_is_large(r, least) and _is_large(w, least)):
            if not runs:
                where = ", ".join(f"{name} {column[0]}" for name, column in one.columns.items())
                raise InputError(
                    where or "the answers",
                    got=f"are {r:,} right and {w:,} wrong ones",
                    need=f"at least {least:,} of either, or none, are needed to share counts",
                )
            start, more_right, more_wrong = runs.pop()
            r, w = r + more_right, w + more_wrong
        if r or w:
            runs.append((start, r, w))
        tops = np.array([top for top, _, _ in runs])[::-1]
        bucket = np.searchsorted(tops, row)
        slices.append(merge_by_bucket(one, bucket))
    return concat_tables(slices)


def refuse_grades(table: CountTable, option: str) -> None:
    """Raise where answers have losses between right and wrong, whose cells are not put together."""
    if table.graded:
        got, need = "puts right and wrong answers together", "these answers have a loss"
        raise InputError(option, got=got, need=need, hint="Leave it out")


def _is_large(count: int, least: int) -> bool:
    return count == 0 or count >= least


def merge_equal_cells(table: CountTable) -> CountTable:
    """Cells with the same ends, loss and columns become one."""
    slices: list[CountTable] = []
    for one in split_slices(pick_cells(table, table.count > 0)):
        order = np.lexsort((one.high, one.low))
        low, high = one.low[order], one.high[order]
        is_new = np.concatenate(([False], (low[1:] != low[:-1]) | (high[1:] != high[:-1])))
        bucket = np.empty(len(order), dtype=np.int64)
        bucket[order] = np.cumsum(is_new)
        slices.append(merge_by_bucket(one, bucket))
    return concat_tables(slices)


def merge_by_bucket(table: CountTable, bucket: Array) -> CountTable:
    """Cells of one bucket and one loss become one, with their mean and the ends of the bucket."""
    number = np.unique(bucket, return_inverse=True)[1].reshape(-1)
    size = int(number.max()) + 1
    low, high = np.full(size, inf), np.full(size, -inf)
    np.minimum.at(low, number, table.low)
    np.maximum.at(high, number, table.high)
    loss, rank = np.unique(table.loss, return_inverse=True)
    key = number * len(loss) + rank.reshape(-1)
    cell, first, at = np.unique(key, return_index=True, return_inverse=True)
    at = at.reshape(-1)
    count = np.zeros(len(cell), dtype=np.int64)
    np.add.at(count, at, table.count)
    claim = count_values(at, table.score * table.count, minlength=len(cell))
    low, high = low[cell // len(loss)], high[cell // len(loss)]
    return replace(
        table,
        score=np.clip(claim / count, low, high),
        loss=loss[cell % len(loss)],
        count=count,
        low=low,
        high=high,
        columns={name: column[first] for name, column in table.columns.items()},
    )


def write_count_table(table: CountTable, path: str | Path) -> None:
    """Write the cells, highest score first; the format follows from the suffix."""
    target = Path(path)
    arrays: dict[str, Array] = {table.kind: table.score}
    if table.graded:
        arrays["loss"] = table.loss
    else:
        arrays["correct"] = (table.loss == 0).astype(np.int64)
    arrays["count"] = table.count
    if table.merged:
        arrays |= dict(zip(CELL_ENDS, (table.low, table.high), strict=True))
    order = np.lexsort((table.loss, -table.score))
    arrays = {name: a[order] for name, a in (arrays | table.columns).items()}
    with replace_file(target) as temporary:
        find_format(target).load_reader().write(arrays, temporary, suffix=get_suffix(target))
