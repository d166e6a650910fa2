"""The service over HTTP: what limits a request, who may ask, and how what waits is committed
together. Needs the extra `serve`.
"""

from __future__ import annotations

import asyncio
import hmac
import signal
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from socket import socket
from time import perf_counter
from typing import TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from uvicorn import Config, Server

from howsure._core.frozen import frozen
from howsure.serving.service import Answer, DecisionService

Answering: TypeAlias = Callable[[bytes], Awaitable[Answer]]
MAX_CONNECTIONS = 1000
MAX_HELD_BYTES = 1 << 26  # of bodies that wait
MAX_COMMIT_BYTES = 1 << 20  # of bodies that are decided together
KEEP_ALIVE_SECONDS = 30


@frozen
class RequestLimits:
    """What a request may take, who may send one, and how long a decision waits for others."""

    body_bytes: int = 1 << 20
    seconds: float = 10.0
    token: str = ""
    commit_seconds: float = 0.0


class RequestRefused(Exception):
    """A request that is not looked at any further."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.answer = Answer.refuse(status, sentence)


class GroupCommit:
    """Hands what waits to the one thread of the service, and each request its answer."""

    def __init__(self, service: DecisionService, delay: float):
        self.service, self.delay = service, delay
        self.held_bytes = 0
        self.waiting: deque[tuple[bytes, asyncio.Future[Answer]]] = deque()
        self.running: asyncio.Task[None] | None = None
        self.worker = ThreadPoolExecutor(max_workers=1)

    async def decide(self, body: bytes) -> Answer:
        """The answer to this request, when its decisions are on disk."""
        if self.held_bytes + len(body) > MAX_HELD_BYTES:
            return Answer.refuse(503, "too much waits to be decided; ask again later.")
        self.held_bytes += len(body)
        future = asyncio.get_running_loop().create_future()
        self.waiting.append((body, future))
        if self.running is None:
            self.running = asyncio.create_task(self._commit_waiting())
        return await asyncio.shield(future)

    async def _commit_waiting(self) -> None:
        loop = asyncio.get_running_loop()
        while self.waiting:
            # While the disk works others arrive, and go to it together the next time.
            await asyncio.sleep(self.delay)
            group: list[tuple[bytes, asyncio.Future[Answer]]] = []
            size = 0
            while self.waiting and size < MAX_COMMIT_BYTES:
                group.append(self.waiting.popleft())
                size += len(group[-1][0])
            bodies = [body for body, _ in group]
            try:
                answers = await loop.run_in_executor(self.worker, self.service.commit, bodies)
            except Exception as e:
                sentence = f"this is a bug in howsure ({type(e).__name__}: {e})."
                self.service.how.tell(sentence)
                answers = [Answer.refuse(500, sentence)] * len(group)
            self.held_bytes -= size
            for (_, future), answer in zip(group, answers, strict=True):
                future.set_result(answer)
        self.running = None

    async def take_labels(self, body: bytes) -> Answer:
        """The answer to labels, in turn with decisions."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.worker, self.service.take_labels, body)


def build_app(service: DecisionService, limits: RequestLimits) -> tuple[Starlette, GroupCommit]:
    """The application, and what commits for it."""
    commits = GroupCommit(service, limits.commit_seconds)

    def respond(answer: Answer) -> Response:
        return Response(answer.body, answer.status, media_type="application/json")

    def answer_by(work: Answering) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            begun = perf_counter()
            try:
                check_sender(request, limits)
                async with asyncio.timeout(limits.seconds):
                    body = await read_body(request, limits.body_bytes)
                    made = await work(body)
            except TimeoutError:
                sentence = (
                    f"the request took more than {limits.seconds:g} s; ask again, with the same id."
                )
                made = Answer.refuse(408, sentence)
            except RequestRefused as e:
                made = e.answer
            service.requests.add(perf_counter() - begun)
            return respond(made)

        return answer

    async def show_metrics(request: Request) -> Response:
        try:
            check_sender(request, limits)
        except RequestRefused as e:
            return respond(e.answer)
        text = "\n".join(service.list_metrics()) + "\n"
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    async def show_health(request: Request) -> Response:  # noqa: ARG001
        if service.torn:
            return respond(
                Answer.refuse(503, "the journal cannot be written; restart the service.")
            )
        return respond(Answer(200, b'{"status":"ok"}'))

    async def refuse(request: Request, error: Exception) -> Response:  # noqa: ARG001
        status = error.status_code if isinstance(error, HTTPException) else 500
        there = "there are POST /decide, POST /labels, GET /metrics and GET /healthz"
        return respond(Answer.refuse(status, f"{there}."))

    routes = [
        Route("/decide", answer_by(commits.decide), methods=["POST"]),
        Route("/labels", answer_by(commits.take_labels), methods=["POST"]),
        Route("/metrics", show_metrics),
        Route("/healthz", show_health),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: refuse}), commits


def check_sender(request: Request, limits: RequestLimits) -> None:
    """Refuse a request without the token, and one that a page in a browser sends."""
    if "origin" in request.headers:
        raise RequestRefused(403, "requests of web pages are not answered.")
    given = request.headers.get("authorization", "").encode()
    if limits.token and not hmac.compare_digest(given, f"Bearer {limits.token}".encode()):
        raise RequestRefused(
            401, "the token is missing or wrong; send Authorization: Bearer TOKEN."
        )


async def read_body(request: Request, limit: int) -> bytes:
    """The body, as long as it is not too large; no more than that is held."""
    parts: list[bytes] = []
    size = 0
    declared = request.headers.get("content-length", "0")
    try:
        if int(declared) <= limit:
            async for part in request.stream():
                parts.append(part)
                size += len(part)
                if size > limit:
                    break
            else:
                return b"".join(parts)
    except ClientDisconnect:
        raise RequestRefused(400, "the request ended before its body.") from None
    raise RequestRefused(413, f"the body has more than {limit:,} bytes; send fewer rows at a time.")


def run_server(
    service: DecisionService,
    limits: RequestLimits,
    listener: socket,
    announce: Callable[[], None],
) -> None:
    """Answer until SIGTERM or Ctrl-C; what was taken in by then is answered."""
    app, commits = build_app(service, limits)
    config = Config(
        app,
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(limits.seconds) + 1,
    )
    server = Server(config)
    # uvicorn's own handlers come later; a signal before that must not be lost.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, server.handle_exit)
    announce()
    try:
        server.run(sockets=[listener])
    finally:
        commits.worker.shutdown()
