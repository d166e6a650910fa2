"""Predictions of a network for everything that a loader gives, batch by batch."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from time import monotonic
from typing import IO, NamedTuple, TypeAlias, TypeVar, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from howsure._core import check
from howsure._core.atomic import check_target
from howsure._core.check import Array, InputError, is_mapping, is_row
from howsure.formats import write
from howsure.formats.files import load_reader
from howsure.predictions import Predictions
from howsure.torch.run import Kind, Options, Run, evaluation_mode, random_state

T = TypeVar("T")
Answer: TypeAlias = Callable[[object, int], Tensor]
LABEL_KEYS = ("labels", "label", "targets", "y")
ID_KEYS = ("ids", "id", "idx")
BAR_DELAY_SECONDS = 1.0  # seconds without a bar


def collect(model: nn.Module, loader: Iterable[object], **options: Unpack[Options]) -> Predictions:
    """The predictions of `model` for all samples of `loader`.

    A batch is (inputs, labels), (inputs, labels, ids) or a dict with `labels` and perhaps `ids`,
    whose other entries go to the model by name. The model runs in evaluation mode on the device of
    its parameters; afterwards each submodule is back in its own mode, and the random state is
    untouched. Options, shared by `mc_dropout`, `ensemble` and `snapshot_ensemble`:

    - `outputs="logits"` or `"probs"`: what the model returns. It is never guessed, and probabilities that are called
      logits are an error.
    - `output=`: which part, where a model returns more than a tensor: a key, a position or a function.
    - `device=`: where the inputs go, if not to the device of the parameters.
    - `labels=False`: the loader gives no labels, or they are not used.
    - `path=`: also write the predictions, in the format of its suffix, whole or not at all.
    - `memory=`: bytes of answers (default 1 GiB) above which they are kept in a temporary file, beside `path` or in
      the temporary folder, and memory-mapped.
    - `progress=False`: no progress bar; otherwise one appears on a terminal after a second.

    >>> import torch
    >>> model = torch.nn.Linear(2, 3)
    >>> collect(model, [(torch.zeros(4, 2), torch.tensor([0, 1, 2, 0]))]).n
    4
    """
    run = Run(**options)
    with evaluation_mode(model):
        return gather(loader, lambda inputs, _: run.rows(model, inputs), run)


def gather(loader: Iterable[object], answer: Answer, run: Run) -> Predictions:
    """The predictions of all batches; `answer(inputs, number)` gives (n, k), or (s, n, k) for
    several answers.
    """
    target = check_run_target(run)
    reader = _BatchReader(run)
    batches = loader
    if run.progress:
        batches = show_progress(loader, "predicting")
    with (
        RowStore(run.memory, target and target.parent) as values,
        torch.no_grad(),
        random_state(None, None),
    ):
        for number, batch in enumerate(batches):
            values.add(reader.read(parse_batch(batch), number, answer))
        preds = _make_predictions(
            values.array(),
            run.outputs,
            labels=concat_parts(reader.labels),
            ids=concat_parts(reader.ids),
        )
    if target is not None:
        write(preds, target)
    return preds


class _BatchReader:
    """Answers, labels and ids, batch by batch."""

    def __init__(self, run: Run) -> None:
        self.labelled = run.labels
        self.kind: Kind = run.outputs
        self.labels: list[Array] = []
        self.ids: list[Array] = []

    def read(self, batch: LoaderBatch, number: int, answer: Answer) -> Array:
        """The answers with the samples first, (n, k) or (n, s, k), if they and the labels are what
        they should be.
        """
        if self.labelled:
            needs_labels(batch, number)
        values = to_numbers(answer(batch.inputs, number), self.kind)
        if values.ndim == 3:
            values = values.swapaxes(0, 1)
        labels = None
        ids = None
        if self.labelled:
            labels = check.array(_move_to_host(batch.labels), "labels")
        try:
            if batch.ids is not None:
                ids = np.asarray(_move_to_host(batch.ids))
            # Built for its checks: a wrong batch is named at once, not after the whole run.
            made = _make_predictions(values, self.kind, labels=labels, ids=ids)
        except InputError as e:
            raise e.at(f"batch {number} of the loader") from None
        if self.labelled:
            self.labels.append(made.labels)
        if made.ids is not None:
            self.ids.append(made.ids)
        return values


def concat_parts(parts: list[Array]) -> Array | None:
    """The columns of all batches as one; None where there are none."""
    return np.concatenate(parts) if parts else None


def to_numbers(z: Tensor, kind: Kind) -> Array:
    """A tensor as an array; half precision widens where nothing depends on knowing that it was
    half.
    """
    if z.dtype == torch.bfloat16 or (z.dtype == torch.float16 and kind == "logits"):
        z = z.float()
    return z.numpy(force=True)


def _make_predictions(
    values: Array, kind: Kind, *, labels: Array | None, ids: Array | None
) -> Predictions:
    """From (n, k), or (n, s, k) for several answers."""
    if values.ndim == 3:
        samples = values.swapaxes(0, 1)
        if kind == "logits":
            return Predictions.from_samples(samples, labels, ids=ids)
        return Predictions.from_samples(labels=labels, probs=samples, ids=ids)
    if kind == "logits":
        return Predictions.from_logits(values, labels, ids=ids)
    return Predictions.from_probs(values, labels, ids=ids)


def _move_to_host(x: object) -> object:
    return x.cpu() if isinstance(x, Tensor) else x


def check_run_target(run: Run) -> Path | None:
    """Where the predictions will be written, refused before a long run and not after it."""
    if run.path is None:
        return None
    target = Path(run.path)
    load_reader(target)
    check_target(target)
    return target


class LoaderBatch(NamedTuple):
    """The parts of a batch; labels and ids are None where the loader gives none."""

    inputs: object
    labels: object = None
    ids: object = None


def parse_batch(batch: object) -> LoaderBatch:
    """(inputs, labels), (inputs, labels, ids), a mapping with `labels` and `ids` among its keys, or
    inputs alone.
    """
    if is_mapping(batch):
        label_key = next((key for key in LABEL_KEYS if key in batch), None)
        id_key = next((key for key in ID_KEYS if key in batch), None)
        inputs = {key: value for key, value in batch.items() if key not in (label_key, id_key)}
        if not inputs:
            keys = ", ".join(map(repr, batch))
            raise InputError(f"a batch of the loader has the keys {keys}; there is no input in it.")
        return LoaderBatch(
            inputs=inputs,
            labels=None if label_key is None else batch[label_key],
            ids=None if id_key is None else batch[id_key],
        )
    if isinstance(batch, Tensor):
        return LoaderBatch(batch)
    if is_row(batch) and 1 <= len(batch) <= 3:
        return LoaderBatch(*batch)
    found = f"{type(batch).__name__} of {len(batch)}" if is_row(batch) else type(batch).__name__
    raise InputError(
        f"the loader gives a {found}; (inputs, labels), (inputs, labels, ids) or a dict is needed."
    )


def needs_labels(batch: LoaderBatch, number: int) -> None:
    """Refuse a batch without labels."""
    if batch.labels is None:
        keys = ""
        if is_mapping(batch.inputs):
            keys = f" with the keys {', '.join(map(repr, batch.inputs))}"
        raise InputError(
            f"batch {number} of the loader has inputs{keys} but no labels; give (inputs, labels) or a dict with "
            "'labels', or pass labels=False where only the answers matter."
        )


class RowStore:
    """Rows that arrive in batches, in memory up to a limit and then in a memory-mapped file.

    The file has no name: it is gone with the last array made of it.

    >>> with RowStore(memory=20) as store:
    ...     store.add(np.zeros((2, 3)))
    ...     store.array().shape
    (2, 3)
    """

    def __init__(self, memory: int, folder: Path | None = None) -> None:
        self.memory, self.folder = memory, folder
        self.kept: list[Array] = []
        self.bytes = 0
        self.file: IO[bytes] | None = None
        self.like: Array | None = None

    def __enter__(self) -> RowStore:
        return self

    def __exit__(self, *_: object) -> None:
        if self.file is not None:
            self.file.close()  # what is mapped stays

    def add(self, rows: Array) -> None:
        """The next rows, (n, ...)."""
        if self.like is None:
            self.like = rows[:0]
        elif rows.shape[1:] != self.like.shape[1:] or rows.dtype != self.like.dtype:
            raise InputError(
                f"a batch gives {rows.shape[-1]} classes of {rows.dtype}, those before gave {self.like.shape[-1]} of "
                f"{self.like.dtype}; all batches must agree."
            )
        self.kept.append(rows)
        self.bytes += rows.nbytes
        if self.bytes > self.memory:
            self._spill()

    def array(self) -> Array:
        """All rows; read-only where they are in the file."""
        if self.like is None:
            raise InputError("the loader gave no batch; at least one sample is needed.")
        if self.file is None:
            return np.concatenate(self.kept)
        self.file.flush()
        mapped = mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(mapped, dtype=self.like.dtype).reshape(-1, *self.like.shape[1:])

    def _spill(self) -> None:
        if self.file is None:
            self.file = TemporaryFile(dir=self.folder)  # noqa: SIM115 - closed on exit
        for rows in self.kept:
            self.file.write(np.ascontiguousarray(rows).tobytes())
        self.kept.clear()


def show_progress(batches: Iterable[T], what: str) -> Iterator[T]:
    """The batches; on a terminal with a progress bar on standard error after a second."""
    if not sys.stderr.isatty():
        yield from batches
        return
    rest, start, done = iter(batches), monotonic(), 0
    for batch in rest:
        yield batch
        done += 1
        if monotonic() - start > BAR_DELAY_SECONDS:
            break
    else:
        return
    yield from _show_bar(rest, what, done, _count_batches(batches))


def _show_bar(rest: Iterator[T], what: str, done: int, total: int | None) -> Iterator[T]:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, completed=done)
        for batch in rest:
            yield batch
            bar.advance(task)


def _count_batches(batches: Iterable[object]) -> int | None:
    """How many batches there are; the length of a loader may exist and refuse."""
    with suppress(TypeError, AttributeError, NotImplementedError):
        return len(batches) if isinstance(batches, Sized) else None
    return None
