"""Ways to run a function over many parts: threads of this process, or the workers of a Dask
cluster.

A builder takes `map=`: anything that is called like the built-in `map` and yields one result per
item, in any order. `sums` adds up where the results are: on a cluster as a tree of sums, of which
only the last is sent back.
"""

from __future__ import annotations

import logging
import operator
import signal
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sized
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial, reduce
from itertools import islice
from typing import Any, Generic, NoReturn, Protocol, Self, TypeVar, cast
from urllib.parse import urlsplit

from howsure._core.checks import InputError, need
from howsure._core.frozen import frozen

__all__ = ["Cluster", "Map", "cluster", "connected", "processes", "sums", "threads"]

T = TypeVar("T")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
# Until a scheduler must answer, which takes long where all cores are busy.
CLOSING_SECONDS = 1.0  # in which a client that is left ends
CONNECT_SECONDS = 15.0
NO_WORKER_SECONDS = 30.0  # without any worker until a job is given up
POLL_SECONDS = 0.05  # between looks at the cluster


class Map(Protocol):
    """Called like the built-in `map`: one result per item, in any order."""

    def __call__(self, f: Callable[[T], R], items: Iterable[T], /) -> Iterable[R]: ...


class Sum(Protocol):
    """What adds up to more of its kind."""

    def __add__(self, other: Self, /) -> Self: ...


S = TypeVar("S", bound=Sum)


class Future(Protocol[R_co]):
    """The part of a Dask future that is used here."""

    @property
    def key(self) -> str: ...

    @property
    def status(self) -> str: ...

    def result(self) -> R_co: ...

    def exception(self) -> BaseException | None: ...


class Queue(Protocol[R]):
    """The part of Dask's `as_completed` that is used here."""

    def count(self) -> int: ...

    def has_ready(self) -> bool: ...

    def next_batch(self, block: bool) -> Iterable[Future[R]]: ...

    def add(self, future: Future[R]) -> None: ...


class Client(Protocol):
    """The part of a Dask client that is used here."""

    @property
    def loop(self) -> object: ...

    @property
    def status(self) -> str: ...

    def submit(
        self, f: Callable[..., R], item: object, *, pure: bool, retries: int = 0, priority: int = 0
    ) -> Future[R]: ...

    def cancel(self, futures: list[Future[R]], *, force: bool) -> object: ...

    def scheduler_info(self, n_workers: int) -> Mapping[str, Sized]: ...


def threads(number: int) -> Map:
    """A map over threads: NumPy and pyarrow let them run at the same time. At most 2 · `number`
    results wait.

    >>> sorted(threads(2)(abs, [-1, 2, -3]))
    [1, 2, 3]
    """

    def run_all(f: Callable[[T], R], items: Iterable[T], /) -> Iterator[R]:
        rest = iter(items)
        pool = ThreadPoolExecutor(number)
        try:
            running = {pool.submit(f, item) for item in islice(rest, 2 * number)}
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                running |= {pool.submit(f, item) for item in islice(rest, len(done))}
                yield from (future.result() for future in done)
        finally:
            pool.shutdown(cancel_futures=True)

    return run_all


@contextmanager
def connected(address: str) -> Generator[Map]:
    """A map over the workers of the Dask scheduler at an address such as tcp://10.0.0.1:8786."""
    distributed = need("distributed", for_="a cluster", extra="dask")
    # Raise at once for what is not an address or where nothing listens: a client would retry for
    # long.
    try:
        host, port = urlsplit(address).hostname, urlsplit(address).port
    except ValueError:
        host = port = None
    if "://" not in address or host is None or port is None:
        raise InputError(
            f"{address!r} is not the address of a scheduler, such as tcp://10.0.0.1:8786."
        )
    try:
        socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
    except OSError:
        raise InputError(
            f"no scheduler answers at {address}; start one with `dask scheduler`."
        ) from None
    # What it logs of a scheduler that is lost, tracebacks included, is raised here as one sentence.
    quiet = distributed.utils.silence_logging_cmgr(logging.CRITICAL)
    with quiet, _connect_client(distributed, address) as client:
        yield cluster(client)


def _connect_client(distributed: Any, address: str) -> Any:
    # In a thread of its own: what only looks like a scheduler may keep a client waiting far longer
    # than it was told to.
    results: list[Any] = []

    def connect() -> None:
        make = partial(distributed.Client, address, timeout=CONNECT_SECONDS, set_as_default=False)
        try:
            try:
                client = make()
            except AssertionError:
                # One of the library's own: an earlier client of this process is still closing.
                time.sleep(CLOSING_SECONDS)
                client = make()
            results.append(client)
        except Exception as e:  # whatever another server makes of it
            results.append(e)

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(2 * CONNECT_SECONDS)
    if not results:
        why = f"it did not answer in {2 * CONNECT_SECONDS:g} s"
    elif isinstance(results[0], Exception):
        why = str(results[0]) or type(results[0]).__name__
    else:
        return results[0]
    raise InputError(f"{address} is not a Dask scheduler ({why.splitlines()[0]}).")


@contextmanager
def processes(number: int) -> Generator[Map]:
    """A map over `number` worker processes on this machine, a Dask cluster of its own."""
    distributed = need("distributed", for_="worker processes", extra="dask")
    with _ignore_interrupts():
        local = distributed.LocalCluster(
            n_workers=number,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,  # errors of tasks are raised here
        )
    with local, distributed.Client(local, set_as_default=False) as client:
        yield cluster(client)


@contextmanager
def _ignore_interrupts() -> Generator[None]:
    """Processes started here ignore Ctrl-C, which a terminal sends to all of them: the driver ends
    the job.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def cluster(client: Client, patience: float = NO_WORKER_SECONDS) -> Cluster:
    """A map over the workers that a Dask client knows.

    A lost worker costs the parts that it held, which others do again. Without any worker for
    `patience` seconds, or without the scheduler, the job ends with an error.
    """
    return Cluster(client=client, patience=patience)


@frozen
class Cluster:
    """What `cluster` returns: a map, and sums that are made where the results are."""

    client: Client
    patience: float = NO_WORKER_SECONDS

    def __call__(self, f: Callable[[T], R], items: Iterable[T], /) -> Iterator[R]:
        """One result per item, as they get done."""
        tasks = _Tasks[T, R](self, f, items)
        try:
            while tasks.open:
                for future in tasks.take_finished():
                    yield future.result()
                    tasks.alive.discard(future)
        finally:
            tasks.cancel()

    def sums(
        self, f: Callable[[T], S], items: Iterable[T], done: Callable[[T], None]
    ) -> Iterator[S]:
        """The sum of all results, added up as a tree on the workers, so that one result travels;
        `done` hears of each item whose result is there. An interrupt gives the sum of those before
        it is raised again."""
        tasks = _Tasks[T, S](self, f, items)
        tree = _Tree(tasks)
        try:
            while tasks.open:
                for item in tree.grow():
                    done(item)
            yield tree.sum()
        except KeyboardInterrupt:
            yield from tree.save_finished()
            raise
        finally:
            tasks.cancel()


def sums(
    map: Map, f: Callable[[T], S], items: Iterable[T], done: Callable[[T], None]
) -> Iterator[S]:
    """Results of `f`, or sums of several where a cluster adds them up; together they hold every
    item once.

    `done` hears of each item whose result is there.

    >>> done: list[int] = []
    >>> list(sums(map, abs, [-1, 2], done.append)), done
    ([1, 2], [-1, 2])
    """
    if isinstance(map, Cluster):
        yield from map.sums(f, items, done)
        return
    for item, result in map(partial(_pair_with_item, f), items):
        yield result
        done(item)


def _pair_with_item(f: Callable[[T], R], item: T) -> tuple[T, R]:
    # At module level, for it is sent to other processes.
    return item, f(item)


class _Tasks(Generic[T, R]):
    """Futures of a job: one per item, and those of sums."""

    def __init__(self, on: Cluster, f: Callable[[T], R], items: Iterable[T]):
        self.client, self.patience = on.client, on.patience
        parts = {self.client.submit(f, item, pure=False, retries=0): item for item in items}
        self.items = {future.key: item for future, item in parts.items()}
        self.alive = set(parts)
        self.queue = self.queue_completed(list(parts))
        self.worker_seen = time.monotonic()

    def queue_completed(self, futures: list[Future[R]]) -> Queue[R]:
        """The futures in the order of completion."""
        distributed = need("distributed", for_="a cluster", extra="dask")
        return distributed.as_completed(futures, loop=self.client.loop, raise_errors=False)

    @property
    def open(self) -> bool:
        """Whether anything is still being worked on."""
        return self.queue.count() > 0

    def take_finished(self) -> list[Future[R]]:
        """What got done since the last look; a pause where nothing did."""
        if not self.queue.has_ready():
            self._check_cluster()
            time.sleep(POLL_SECONDS)
            return []
        finished: list[Future[R]] = []
        for future in self.queue.next_batch(block=False):
            if future.status == "lost":
                # Its worker died after it was done: the scheduler has it done again.
                self.queue.add(future)
                continue
            if future.status != "finished":
                self._refuse_result(future)
            finished.append(future)
        return finished

    def cancel(self) -> None:
        """Call off what is not done."""
        self.client.cancel(list(self.alive), force=True)

    def _refuse_result(self, future: Future[R]) -> NoReturn:
        """Raise, in one sentence, for a future without a result."""
        if future.status != "error":
            raise InputError(
                f"the cluster lost track of a task ({future.status}); start the job again."
            )
        error = future.exception()
        if isinstance(error, InputError | ModuleNotFoundError):
            raise error
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        if type(error).__name__ == "KilledWorker":
            reason = "every worker that tried it died, perhaps for lack of memory"
        what = "the sum of some parts"
        part = self.items.get(future.key)
        if part is not None:
            what = f"the part {getattr(part, 'path', part)}"
        raise InputError(f"{what} could not be computed on the cluster ({reason}).")

    def _check_cluster(self) -> None:
        if self.client.status != "running":
            raise InputError(
                "the connection to the scheduler was lost; check that it runs, and start the job again."
            )
        if self.client.scheduler_info(n_workers=-1)["workers"]:
            self.worker_seen = time.monotonic()
        elif time.monotonic() - self.worker_seen > self.patience:
            raise InputError(
                f"the cluster has had no worker for {self.patience:g} s; start one with `dask worker`."
            )


class _Tree(Generic[T, S]):
    """Sums of the results of tasks, the two smallest first."""

    def __init__(self, tasks: _Tasks[T, S]):
        self.tasks = tasks
        self.ready: list[Future[S]] = []
        self.leaves = dict.fromkeys(tasks.items, 1)  # items in each result, by its key

    def grow(self) -> Iterator[T]:
        """Take what is done, add up the two smallest results, and tell which items were done."""
        for future in self.tasks.take_finished():
            self.ready.append(future)
            if future.key in self.tasks.items:
                yield self.tasks.items[future.key]
        # Never more than two at once: a task holds what it adds.
        while len(self.ready) > 1:
            self.ready.sort(key=lambda future: self.leaves[future.key])
            two, self.ready = self.ready[:2], self.ready[2:]
            both = self._submit_sum(two)
            self.leaves[both.key] = sum(self.leaves[future.key] for future in two)
            self.tasks.queue.add(both)

    def _submit_sum(self, futures: list[Future[S]]) -> Future[S]:
        """The future of their sum, in their place."""
        # Before the parts, so that results make room.
        submitted = self.tasks.client.submit(add_results, futures, pure=False, priority=10)
        total = cast("Future[S]", submitted)
        self.tasks.alive = (self.tasks.alive - set(futures)) | {total}
        return total

    def sum(self) -> S:
        """The sum of all that is ready."""
        last = self._submit_sum(self.ready)
        self.tasks.queue = self.tasks.queue_completed([last])
        while self.tasks.open and not self.tasks.take_finished():
            pass
        return last.result()

    def save_finished(self) -> Iterator[S]:
        """The sum of the items that are done at this moment; the others are called off."""
        tasks = self.tasks
        parts = {future for future in tasks.alive if future.key in tasks.items}
        unfinished = {future for future in parts if future.status != "finished"}
        tasks.client.cancel(list(unfinished), force=True)
        tasks.alive -= unfinished
        self.ready = list(tasks.alive)
        if self.ready:
            yield self.sum()


def add_results(results: list[S]) -> S:
    """The sum of results.

    >>> add_results([1, 2, 3])
    6
    """
    return reduce(operator.add, results)
