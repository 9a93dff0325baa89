"""Answers to what is asked again and again, kept while nothing is written to the database.

A revocation, like every change of any process, is a write: the next request is answered anew. What passes by time
alone (a token expires) or lies outside the database (the head of a repository) acts within ``LONGEST_SECONDS``.
"""

import asyncio
import hashlib
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LONGEST_SECONDS = 0.5
RENEWED_SECONDS = 0.25
"""Age from which the next one who asks has the answer made anew, while all others still get the old one."""
PATIENCE_SECONDS = 0.5
"""How long somebody waits for the answer to the same question, which is being made for somebody else."""
MOST_ANSWERS = 512
KEEPABLE = re.compile(r"/v1/cluster/[0-9A-Za-z-]+/(?:status|bootstrap)")
"""Paths whose answers depend on nothing but the database and the head of a repository, and change nothing."""
ASKED_WITH = ("authorization", "if-none-match")
"""Headers that such an answer depends on."""


@dataclass(frozen=True)
class _Kept:
    route: Any
    at: float
    messages: Sequence[Message]


class KeptAnswers:
    """Wraps the application, inside the envelope.

    Args:
        stamp: changes with every write to the database; None from it, or instead of it: nothing is kept.
    """

    def __init__(
        self, app: ASGIApp, stamp: Callable[[], int | None] | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._app = app
        self._stamp = stamp
        self._clock = clock
        self._at_stamp: int | None = None
        self._kept: dict[bytes, _Kept] = {}
        self._being_made: dict[bytes, asyncio.Event] = {}
        self._salt = secrets.token_bytes(16)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._keepable(scope) or (stamp := self._current()) is None:
            await self._app(scope, receive, send)
            return
        question = self._question(scope)
        kept = self._kept_for(question)
        if kept is None and question in self._being_made:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._being_made[question].wait(), PATIENCE_SECONDS)
            stamp = self._current()
            kept = self._kept_for(question)
        if kept is not None:
            scope["route"] = kept.route
            for message in kept.messages:
                await send(_copy(message))
            return
        with self._making(question):
            await self._make(question, stamp, scope, receive, send)

    async def _make(self, question: bytes, stamp: int | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Has the application answer, and keeps that unless something was written meanwhile."""
        asked_at, messages = self._clock(), list[Message]()

        async def send_and_note(message: Message) -> None:
            messages.append(_copy(message))
            await send(message)

        await self._app(scope, receive, send_and_note)
        if (
            stamp is not None
            and stamp == self._at_stamp
            and _is_whole_success(messages)
            and (len(self._kept) < MOST_ANSWERS or question in self._kept)
        ):
            self._kept[question] = _Kept(scope.get("route"), asked_at, messages)

    @contextmanager
    def _making(self, question: bytes) -> Iterator[None]:
        """Whoever asks the same meanwhile waits a little for this answer: when one grows old, many ask at once."""
        made = self._being_made.setdefault(question, asyncio.Event())
        try:
            yield
        finally:
            made.set()
            if self._being_made.get(question) is made:
                del self._being_made[question]

    def _kept_for(self, question: bytes) -> _Kept | None:
        """What is kept for this one who asks; None: the answer is to be made."""
        kept = self._kept.get(question)
        if kept is None:
            return None
        longest = LONGEST_SECONDS if question in self._being_made else RENEWED_SECONDS
        return kept if self._clock() - kept.at < longest else None

    def _keepable(self, scope: Scope) -> bool:
        return (
            self._stamp is not None
            and scope["type"] == "http"
            and scope["method"] == "GET"
            and KEEPABLE.fullmatch(scope["path"]) is not None
        )

    def _current(self) -> int | None:
        """The stamp of this moment; forgets everything that was kept at another one, or for too long."""
        stamp = self._stamp() if self._stamp else None
        if stamp != self._at_stamp or len(self._kept) >= MOST_ANSWERS:
            self._kept.clear()
            self._at_stamp = stamp
        return stamp

    def _question(self, scope: Scope) -> bytes:
        """What is asked, by whom; a digest, so that no credential is kept."""
        headers = Headers(scope=scope)
        digest = hashlib.blake2b(key=self._salt, digest_size=32)
        for part in (scope["path"].encode(), scope["query_string"], *(_all(headers, name) for name in ASKED_WITH)):
            digest.update(len(part).to_bytes(4, "big") + part)
        return digest.digest()


def _all(headers: Headers, name: str) -> bytes:
    return "\n".join(headers.getlist(name)).encode("latin-1")


def _copy(message: Mapping[str, Any]) -> Message:
    """One that others may write to: the envelope adds its headers."""
    return {**message, "headers": list(message["headers"])} if "headers" in message else dict(message)


def _is_whole_success(messages: Sequence[Message]) -> bool:
    return bool(messages) and messages[0].get("status") == 200 and not messages[-1].get("more_body", False)
