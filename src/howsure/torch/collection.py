"""How a network is run: its predictions for everything that a loader gives, batch by batch, and how
far each input is from the nearest decision boundary.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from tempfile import TemporaryFile
from time import monotonic
from typing import IO, Literal, NamedTuple, TypeAlias, TypedDict, TypeGuard, TypeVar, Unpack, cast

import numpy as np
import torch
from torch import Tensor, nn

from howsure._core import checks
from howsure._core.checks import Array, Floats, InputError, is_dict, is_mapping, is_row
from howsure._core.file_access import check_target
from howsure._core.frozen import frozen
from howsure.formats import write
from howsure.formats.files import load_reader
from howsure.predictions import ROW_SUM_TOLERANCE, Predictions

Kind: TypeAlias = Literal["logits", "probs"]
Pick: TypeAlias = str | int | Callable[..., Tensor]

T = TypeVar("T")
Answer: TypeAlias = Callable[[object, int], Tensor]
LABEL_KEYS = ("labels", "label", "targets", "y")
ID_KEYS = ("ids", "id", "idx")
BAR_DELAY_SECONDS = 1.0  # seconds without a bar


class Options(TypedDict, total=False):
    """The fields of `Run`, for the signatures of what collects predictions."""

    outputs: Kind
    output: Pick | None
    device: torch.device | str | None
    labels: bool
    path: str | os.PathLike[str] | None
    memory: int
    progress: bool


@frozen
class Run:
    """The options of `collect`, which says what each of them means."""

    outputs: Kind = "logits"
    output: Pick | None = None
    device: torch.device | str | None = None
    labels: bool = True
    path: str | os.PathLike[str] | None = None
    memory: int = 1 << 30
    progress: bool = True

    def __post_init__(self) -> None:
        if self.outputs not in ("logits", "probs"):
            raise InputError(
                f"outputs is {self.outputs!r}; say 'logits' or 'probs', whichever the model returns."
            )

    def answer(self, model: nn.Module, inputs: object) -> Tensor:
        """The tensor that the model returns; a dict of inputs is passed by name, a tuple by
        position.
        """
        x = move_tensors(inputs, self.place(model))
        if is_dict(x):
            return pick_tensor(model(**x), self.output)
        return pick_tensor(model(*x) if is_plain_row(x) else model(x), self.output)

    def rows(self, model: nn.Module, inputs: object) -> Tensor:
        """The answer as (n, k), checked."""
        return rows(self.answer(model, inputs), self.outputs)

    def place(self, model: nn.Module) -> torch.device | str | None:
        """The device that inputs go to."""
        return find_device(model) if self.device is None else self.device


def pick_tensor(raw: object, output: Pick | None) -> Tensor:
    """The tensor with the answers, of all that a model returned."""
    if output is not None:
        raw = output(raw) if callable(output) else _get_part(raw, output)
    if isinstance(raw, Tensor):
        return raw
    part: object = "logits"
    if is_mapping(raw) and "logits" not in raw:
        part = next(iter(raw), "logits")
    elif is_row(raw):
        part = 0
    raise InputError(
        f"the model returned {_describe(raw)}; one tensor (n, k) is needed. "
        f"Say which part it is with output=, e.g. output={part!r}, or pass a function."
    )


def rows(z: Tensor, kind: Kind) -> Tensor:
    """The tensor as (n, k), refused where it cannot be what it is said to be."""
    if not z.is_floating_point():
        raise InputError(f"the model returned {z.dtype}; floats are needed.")
    z = columns(z, kind)
    if z.ndim != 2:
        raise InputError(
            f"the model returned shape {tuple(z.shape)}; one row per sample and one column per class, (n, k), "
            "is needed. Pass output= with a function that makes it so."
        )
    if kind == "logits":
        _refuse_probs(z)
        return z
    wrong = ~are_probs(z)
    if bool(wrong.any()):
        i = int(wrong.nonzero()[0, 0])
        raise InputError(
            f"row {i} of what the model returned sums to {float(z[i].sum()):.6g} with a least value of "
            f"{float(z[i].min()):.6g}; probabilities are not negative and sum to 1. Pass outputs='logits' if these "
            "are logits."
        )
    return z


def columns(z: Tensor, kind: Kind) -> Tensor:
    """A binary model may give class 1 alone, as (n,) or (n, 1); all else stays as it is."""
    if z.ndim == 1 or (z.ndim == 2 and z.shape[1] == 1):
        z = z.reshape(-1)
        return torch.stack((torch.zeros_like(z) if kind == "logits" else 1 - z, z), dim=1)
    return z


def are_probs(z: Tensor) -> Tensor:
    """Which rows are distributions."""
    off = (z.sum(dim=1, dtype=torch.float64) - 1).abs()
    tolerance = ROW_SUM_TOLERANCE[z.element_size()]
    return (z.amin(dim=1) >= -tolerance) & (off <= tolerance)


def _refuse_probs(z: Tensor) -> None:
    if len(z) and bool((are_probs(z) & (z.amin(dim=1) >= 0)).all()):
        raise InputError(
            f"all {len(z):,} rows of a batch are non-negative and sum to 1, so the model returns "
            "probabilities; pass outputs='probs', or let it return logits."
        )


def _get_part(raw: object, key: str | int) -> object:
    try:
        if is_mapping(raw):
            return raw[key]
        return raw[int(key)] if is_row(raw) and isinstance(key, int) else getattr(raw, str(key))
    except (KeyError, IndexError, TypeError, AttributeError):
        raise InputError(
            f"the model returned {_describe(raw)}; there is no part {key!r} in it."
        ) from None


def _describe(raw: object) -> str:
    name = type(raw).__name__
    if is_mapping(raw):
        return f"a {name} with the keys {', '.join(map(repr, raw))}"
    if is_row(raw):
        return f"a {name} of {len(raw)} ({', '.join(type(part).__name__ for part in raw)})"
    return f"a {name}"


@contextmanager
def evaluation_mode(model: object) -> Generator[None]:
    """`model` in evaluation mode; afterwards each submodule is back in its own mode."""
    if not isinstance(model, nn.Module):
        raise InputError(f"model is a {type(model).__name__}; a torch.nn.Module is needed.")
    before = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in before:
            module.training = training


def find_device(model: nn.Module) -> torch.device | None:
    """Where the first parameter or buffer lives; None for a model that has none."""
    held = next(model.parameters(), None)
    held = next(model.buffers(), None) if held is None else held
    return None if held is None else held.device


def move_tensors(x: object, device: torch.device | str | None) -> object:
    """`x` with all tensors in it on `device`; what has a `to` moves itself, as packed sequences do."""
    to = getattr(x, "to", None)
    if device is not None and callable(to):
        return to(device)
    if is_plain_row(x):
        return type(x)(move_tensors(part, device) for part in x)
    return {key: move_tensors(part, device) for key, part in x.items()} if is_dict(x) else x


def is_plain_row(x: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    """Whether `x` is a list or a tuple and not one with names, which a model takes whole."""
    return type(x) in (tuple, list)


@contextmanager
def random_state(seed: int | None, device: torch.device | None) -> Generator[None]:
    """Draws inside follow from `seed`, or continue the present state where it is None; those
    outside are unchanged.
    """
    if device is not None and device.type != "cpu":
        # Both are declared without the types of their parameters.
        with torch.random.fork_rng(devices=[device], device_type=device.type):  # pyright: ignore[reportUnknownMemberType]
            if seed is not None:
                torch.manual_seed(seed)  # pyright: ignore[reportUnknownMemberType]
            yield
        return
    before = torch.get_rng_state()
    try:
        if seed is not None:
            torch.default_generator.manual_seed(
                seed
            )  # torch.manual_seed seeds all devices, in 25 times the time
        yield
    finally:
        torch.set_rng_state(before)


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
            labels = checks.array(_move_to_host(batch.labels), "labels")
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
    total = None
    # The length of a loader may exist and refuse.
    with suppress(TypeError, AttributeError, NotImplementedError):
        total = len(batches) if isinstance(batches, Sized) else None
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, completed=done)
        for batch in rest:
            yield batch
            bar.advance(task)


def boundary_distance(
    model: nn.Module, loader: Iterable[object], *, norm: float = 2, **options: Unpack[Options]
) -> Floats:
    r"""Distance of each input to the boundary between its two most likely classes i and j, to first
    order.

    .. math:: d = \frac{h_i - h_j}{\|\nabla_x h_i - \nabla_x h_j\|_q}, \qquad \frac1p + \frac1q = 1

    p = `norm` is the norm in which the distance is measured (1, 2, ..., math.inf), q its dual. h are the logits; with
    `outputs="probs"` the softmax outputs, or what the model returns where that is probabilities. Exact for linear
    models and logits. One backward pass for each batch: in evaluation mode no sample depends on another. `output`,
    `device` and `progress` as for `collect`; labels are not needed. 0 where the two outputs are equal, inf where only
    their gradients are. A score without bound, higher = trust more, for ranking metrics only. Elsayed et al. 2018;
    Vemuri 2020, chapter 6.

    >>> import torch
    >>> model = torch.nn.Linear(2, 2, bias=False)
    >>> _ = model.weight.data.copy_(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
    >>> boundary_distance(model, [torch.tensor([[2.0, 0.25]])])
    array([1.])
    """
    if not norm >= 1:
        raise InputError(f"norm is {norm}; a number of at least 1, or math.inf, is needed.")
    run = Run(**options)
    dual = 1.0
    if norm == 1:
        dual = inf
    elif norm < inf:
        dual = norm / (norm - 1)
    with (
        evaluation_mode(model),
        torch.enable_grad(),
        torch.inference_mode(False),
        random_state(None, None),
    ):
        batches = loader
        if run.progress:
            batches = show_progress(loader, "distances")
        parts = [_measure_batch(model, parse_batch(batch).inputs, run, dual) for batch in batches]
    if not parts:
        raise InputError("the loader gave no batch; at least one sample is needed.")
    return np.concatenate(parts)


def _measure_batch(model: nn.Module, inputs: object, run: Run, dual: float) -> Floats:
    if not isinstance(inputs, Tensor) or not inputs.is_floating_point():
        found = inputs.dtype if isinstance(inputs, Tensor) else type(inputs).__name__
        raise InputError(f"the inputs are {found}; a distance needs one tensor of floats.")
    device = run.place(model)
    if device is not None:
        inputs = inputs.to(device)
    x = inputs.detach().clone().requires_grad_()
    # A first layer may change its input in place, so it gets a clone.
    z = pick_tensor(model(x.clone()), run.output)
    wide = z.ndim == 2 and z.shape[1] > 1
    if run.outputs == "probs" and wide and not bool(are_probs(z).all()):
        h = rows(z, "logits").softmax(dim=1)
    else:
        h = rows(z, run.outputs)
    # The largest output minus the second; among equals the smaller class number comes first.
    i = h.argmax(dim=1, keepdim=True)
    j = h.detach().scatter(1, i, -inf).argmax(dim=1, keepdim=True)
    gap = (h.gather(1, i) - h.gather(1, j)).squeeze(1)
    slope = cast("Tensor | None", torch.autograd.grad(gap.sum(), x, allow_unused=True)[0])
    # 0 where the output does not depend on the input.
    steepness = torch.zeros((), dtype=torch.float64)
    if slope is not None:
        norm = torch.linalg.vector_norm  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType] - has no types
        steepness = cast("Tensor", norm(slope.flatten(1).double(), dual, dim=1))
    gap = gap.detach().double()
    distance = torch.where(gap == 0, torch.zeros_like(gap), gap / steepness)
    return distance.numpy(force=True)
