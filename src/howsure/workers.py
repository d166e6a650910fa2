"""Ways to run a function over many parts: threads of this process, or the workers of a Dask cluster.

A builder takes `map=`: anything that is called like the built-in `map` and yields the results in any order. It may
also yield sums of results in their place, and the parts themselves as they get done, for a progress bar.
"""

from __future__ import annotations

import logging
import operator
import signal
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import reduce
from itertools import islice
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from howsure._core.check import InputError
from howsure._core.optional import need

Map: TypeAlias = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
CONNECT = 5.0  # seconds until a scheduler must answer
PATIENCE = 30.0  # seconds without any worker until a job is given up
LOOK = 0.05  # seconds between looks at the cluster


def threads(number: int) -> Map:
    """A map over threads: NumPy and pyarrow let them run at the same time. At most 2 · `number` results wait.

    >>> sorted(threads(2)(abs, [-1, 2, -3]))
    [1, 2, 3]
    """

    def mapped(f: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        rest = iter(items)
        pool = ThreadPoolExecutor(number)
        try:
            running: set[Future[Any]] = {pool.submit(f, item) for item in islice(rest, 2 * number)}
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                running |= {pool.submit(f, item) for item in islice(rest, len(done))}
                yield from (future.result() for future in done)
        finally:
            pool.shutdown(cancel_futures=True)

    return mapped


@contextmanager
def connected(address: str) -> Generator[Map]:
    """A map over the workers of the Dask scheduler at an address such as tcp://10.0.0.1:8786."""
    distributed = need("distributed", for_="a cluster", extra="dask")
    _check_address(address)
    try:
        client = distributed.Client(address, timeout=CONNECT, set_as_default=False)
    except (OSError, ValueError) as e:
        raise InputError(f"{address} is not a Dask scheduler ({str(e).splitlines()[0]}).") from None
    with client:
        yield cluster(client)


def _check_address(address: str) -> None:
    """Refuse at once what is no address, and where nobody listens: a client would try for long and complain loudly."""
    try:
        host, port = urlsplit(address).hostname, urlsplit(address).port
    except ValueError:
        host = port = None
    if "://" not in address or host is None or port is None:
        raise InputError(f"{address!r} is not the address of a scheduler, such as tcp://10.0.0.1:8786.")
    try:
        socket.create_connection((host, port), timeout=CONNECT).close()
    except OSError:
        raise InputError(f"no scheduler answers at {address}; start one with `dask scheduler`.") from None


@contextmanager
def processes(number: int) -> Generator[Map]:
    """A map over so many worker processes of this machine, a Dask cluster of its own."""
    distributed = need("distributed", for_="worker processes", extra="dask")
    options = {"n_workers": number, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    options["silence_logs"] = logging.CRITICAL  # what matters arrives as an error here
    with _deaf():
        local = distributed.LocalCluster(**options)
    with local, distributed.Client(local, set_as_default=False) as client:
        yield cluster(client)


@contextmanager
def _deaf() -> Generator[None]:
    """Processes started here do not hear Ctrl-C, which goes to all of a terminal: the driver asks them for the rest."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def cluster(client: Any, patience: float = PATIENCE) -> Map:
    """A map over the workers that a Dask client knows. Results are added up there, as a tree, and only the sum travels.

    A lost worker costs the parts that it held, which others do again. Without any worker for `patience` seconds, or
    without the scheduler, the job ends with an error.
    """

    def mapped(f: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        parts = {client.submit(f, item, pure=False, retries=0): item for item in items}
        tree = _Tree(client, parts, patience)
        try:
            while tree.open:
                yield from tree.grown()
            yield tree.sum()
        except KeyboardInterrupt:
            yield from tree.salvaged()
            raise
        finally:
            client.cancel(list(tree.alive), force=True)

    return mapped


class _Tree:
    """Futures of a job: parts that are being worked on, sums of some of them, and what is ready to be added."""

    def __init__(self, client: Any, parts: dict[Any, Any], patience: float):
        self.client, self.patience = client, patience
        self.names = {future.key: item for future, item in parts.items()}
        self.queue = self._completed(list(parts))
        self.alive: set[Any] = set(parts)
        self.ready: list[Any] = []
        self.leaves = dict.fromkeys(self.names, 1)  # parts in each result, by its key
        self.since = time.monotonic()  # when a worker was last seen

    def _completed(self, futures: list[Any]) -> Any:
        distributed = need("distributed", for_="a cluster", extra="dask")
        return distributed.as_completed(futures, loop=self.client.loop, raise_errors=False)

    @property
    def open(self) -> bool:
        """Whether anything is still being worked on."""
        return self.queue.count() > 0

    def grown(self) -> Iterator[Any]:
        """Take what is done, add up the two smallest results, and tell which parts were done."""
        if not self.queue.has_ready():
            self._check_cluster()
            time.sleep(LOOK)
            return
        for future in self.queue.next_batch(block=False):
            _check(future, self.names.get(future.key))
            self.ready.append(future)
            if future.key in self.names:
                yield self.names[future.key]
        while len(self.ready) > 1:  # never more at once: a task holds what it adds
            self.ready.sort(key=lambda future: self.leaves[future.key])
            self._add(self.ready[:2])
            self.ready = self.ready[2:]

    def _add(self, two: list[Any]) -> None:
        both = self.client.submit(added, two, pure=False, priority=10)
        self.leaves[both.key] = sum(self.leaves[future.key] for future in two)
        self.alive = (self.alive - set(two)) | {both}
        self.queue.add(both)

    def _check_cluster(self) -> None:
        if self.client.status != "running":
            raise InputError("the connection to the scheduler was lost; check that it runs, and start the job again.")
        if self.client.scheduler_info(n_workers=-1)["workers"]:
            self.since = time.monotonic()
        elif time.monotonic() - self.since > self.patience:
            raise InputError(f"the cluster has had no worker for {self.patience:g} s; start one with `dask worker`.")

    def sum(self) -> Any:
        """The sum of all that is ready."""
        last = self.client.submit(added, self.ready, pure=False, priority=10)
        self.alive, self.queue = {last}, self._completed([last])
        while self.queue.count() and not self.queue.has_ready():
            self._check_cluster()
            time.sleep(LOOK)
        _check(last, None)
        return last.result()

    def salvaged(self) -> Iterator[Any]:
        """The sum of the parts that are done at this moment; the others are called off."""
        rest = {future for future in self.alive if future.key in self.names and future.status != "finished"}
        self.client.cancel(list(rest), force=True)
        self.ready = list(self.alive - rest)
        if self.ready:
            yield self.sum()


def added(results: list[Any]) -> Any:
    """The sum of results.

    >>> added([1, 2, 3])
    6
    """
    return reduce(operator.add, results)


def _check(future: Any, part: Any) -> None:
    """Refuse what has not become a result, in one sentence."""
    if future.status == "finished":
        return
    if future.status != "error":
        raise InputError(f"the cluster lost track of a task ({future.status}); start the job again.")
    error = future.exception()
    if isinstance(error, InputError | ModuleNotFoundError):
        raise error
    reason = f"{type(error).__name__}: {error}".splitlines()[0]
    what = "the sum of some parts" if part is None else f"the part {getattr(part, 'path', part)}"
    if type(error).__name__ == "KilledWorker":
        reason = "every worker that tried it died, perhaps for lack of memory"
    raise InputError(f"{what} could not be computed on the cluster ({reason}).")
