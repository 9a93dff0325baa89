"""uvicorn's HTTP protocol with bounds: of headers, of time, and of connections.

uvicorn itself bounds none of them: a client may send headers for ever, or nothing. Here TLS begins after a connection
has got its place, so that a handshake is bounded, too.
"""

import asyncio
import math
import ssl
from collections.abc import Callable

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.utils import get_remote_addr

from api.connections.callers import SCOPE_KEY
from api.connections.limits import LINGERING_SECONDS, ConnectionLimits
from api.connections.phases import ConnectionPhase, RequestPart
from api.connections.places import Connection, Holder, Places, Standing
from api.connections.refusals import RefusalReason
from api.connections.tls import begin_tls

BODY_PROGRESS_BYTES = 1024
"""Least progress of an unfinished body in ``body_seconds``: slower than the slowest line that git is used on."""
PIPELINED_LIMIT = 8
"""Requests that wait for the answer to the one before."""
LINGERING_BYTES = 16 * 1024 * 1024
"""What is still read after an answer, so that the client reads that instead of an error of its system."""
FRAMING_SHARE = 8
"""Bytes around a chunked body for each byte of it; the smallest chunks need five."""


HolderKnownBy = Callable[[str], Holder | None]


class _TooMuch(Exception):
    """Stops the parser."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection, from its being accepted to its end. A subclass of it is made by ``bounded_http``."""

    _places: Places
    _limits: ConnectionLimits
    _tls: ssl.SSLContext | None
    _holder_known_by: HolderKnownBy
    _connection: Connection | None = None
    _handshake: "asyncio.Task[None] | None" = None
    _is_inside = False
    _timer: asyncio.TimerHandle | None = None
    _phase = ConnectionPhase.FRESH
    _reading = RequestPart.NOTHING
    _deadline = math.inf
    _reason: RefusalReason | None = None
    _messages = 0
    _head_bytes = 0
    _told_bytes = 0
    _body_bytes = 0
    _lingered = 0
    _framing_bytes = 0
    _progress = 0
    """Bytes of the body, or of the waiting answer, when the present deadline was set."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        peer = get_remote_addr(transport)
        connection = Connection(peer[0] if peer else "unknown", close=self._make_room)
        self.transport = transport
        reason = self._places.enter(connection)
        if reason is not None:
            self._turn_away(transport, reason, connection.address)
            return
        self._connection = connection
        self._early = bytearray()
        self._watch()
        self._begin(ConnectionPhase.FRESH if self._tls is None else ConnectionPhase.HANDSHAKE)
        self.connections.add(self)
        self._places.entrance.enter(self.loop, connection.client, self._come_in)
        if not self._is_inside:
            transport.pause_reading()

    def _come_in(self) -> bool:
        """It is this connection's turn to begin; returns whether it is still there."""
        if self._connection is None or self.transport.is_closing():
            return False
        self._is_inside = True
        if self._tls is None:
            self._open(self.transport)
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()
            self._begin(ConnectionPhase.HANDSHAKE)
            self._handshake = self.loop.create_task(self._shake_hands(self.transport, self._tls))
        return True

    def _open(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._begin(ConnectionPhase.FRESH)
        if self._early:
            self.data_received(bytes(self._early))

    async def _shake_hands(self, transport: asyncio.Transport, tls: ssl.SSLContext) -> None:
        try:
            secured = await begin_tls(transport, self, tls, self._early, patience=2 * self._limits.handshake_seconds)
        except OSError:
            self._abort()
            return
        except BaseException:
            self._abort()
            raise
        if secured is None or self._connection is None:
            transport.abort()
            return
        self._handshake = None
        self._open(secured)

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()
        if self._handshake is not None:
            self._handshake.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._is_inside:
            self.transport.pause_reading()  # uvloop does not pause a transport that is just being made
        if not self._is_inside or self._phase is ConnectionPhase.HANDSHAKE:
            self._early += data
            return
        if self._phase is ConnectionPhase.LINGERING:
            self._discard(len(data))
            return
        self._unset_keepalive_if_required()
        before, body, messages = self._reading, self._body_bytes, self._messages
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # answered like any other request; nothing here can be upgraded to
        except httptools.HttpParserError:
            self._refuse(self._reason or RefusalReason.MALFORMED)
            return
        if before is RequestPart.BODY:
            if self._messages == messages:
                self._account_in_body(len(data), self._body_bytes - body)
        elif self._reading is RequestPart.HEAD or self._messages == messages:
            self._account_in_head(len(data))
        if self._is_parsing:
            self._settle()

    def _account_in_head(self, size: int) -> None:
        """Bounds what the parser keeps of a header, or skips before a request, without telling."""
        self._head_bytes += size
        if self._head_bytes > self._limits.head_bytes:
            self._refuse(RefusalReason.HEAD_TOO_LARGE)

    def _account_in_body(self, size: int, body: int) -> None:
        """The same for what stands around the chunks of a body.

        Args:
            body: how many of the ``size`` bytes are the body's own.
        """
        if self._reading is not RequestPart.BODY:
            return
        self._framing_bytes += size - body
        if self._framing_bytes > self._limits.head_bytes + FRAMING_SHARE * self._body_bytes:
            self._refuse(RefusalReason.MALFORMED)
        elif self._phase is ConnectionPhase.DRAINING:
            self._discard(size)

    # Parser callbacks
    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._reading = RequestPart.HEAD
        self._messages += 1
        self._head_bytes = self._told_bytes = self._body_bytes = self._framing_bytes = 0
        self.scope["state"][SCOPE_KEY] = self._connection

    def on_url(self, url: bytes) -> None:
        self._tell(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._tell(len(name) + len(value) + 4)
        if len(self.headers) >= self._limits.head_lines:
            self._stop(RefusalReason.HEAD_TOO_LARGE)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= PIPELINED_LIMIT:
            self._stop(RefusalReason.PIPELINED)
        self._identify_operator()
        super().on_headers_complete()
        self._reading = RequestPart.BODY

    def _identify_operator(self) -> None:
        """Whoever has too many connections is refused before a request of theirs costs anything."""
        if self._connection is None or self._connection.is_proxy or self._is_answering:
            return
        presented = next((value for name, value in self.headers if name == b"authorization"), b"")
        holder = self._holder_known_by(presented.decode("latin-1"))
        reason = holder and self._places.try_identify(self._connection, Standing.OPERATOR, holder)
        if reason:
            self._stop(reason)

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._reading = RequestPart.NOTHING

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._is_parsing:
            self._settle()

    # Flow of the answer
    def pause_writing(self) -> None:
        """Whoever lets an answer wait needs no place of those that are not identified."""
        super().pause_writing()
        if self._connection is not None and not self._connection.is_identified:
            self._places.rest(self._connection)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._connection is not None and self._phase is ConnectionPhase.ANSWERING:
            self._places.work(self._connection)

    def _tell(self, size: int) -> None:
        self._told_bytes += size
        if self._told_bytes > self._limits.head_bytes:
            self._stop(RefusalReason.HEAD_TOO_LARGE)

    def _stop(self, reason: RefusalReason) -> None:
        self._reason = reason
        raise _TooMuch

    # Phases and deadlines
    @property
    def _is_parsing(self) -> bool:
        return self._connection is not None and self._phase is not ConnectionPhase.LINGERING

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _awaits_body(self) -> bool:
        """Whether the answer has not begun and the rest of the body may still come."""
        return self._reading is RequestPart.BODY and self._is_answering and not self.cycle.response_started

    def _settle(self) -> None:
        """Names what the connection is at now."""
        answering = self._is_answering
        if self.cycle is None and self._reading is RequestPart.NOTHING:
            return
        if self._reading is RequestPart.HEAD:
            phase = ConnectionPhase.HEAD
        elif self._reading is RequestPart.BODY:
            phase = ConnectionPhase.BODY if answering else ConnectionPhase.DRAINING
        else:
            phase = ConnectionPhase.ANSWERING if answering else ConnectionPhase.IDLE
        if phase is not self._phase:
            self._begin(phase)

    def _begin(self, phase: ConnectionPhase) -> None:
        self._phase = phase
        self._deadline = self.loop.time() + self._limits.seconds_of(phase)
        self._progress = self._body_bytes if phase is ConnectionPhase.BODY else 0
        self._lingered = 0
        if phase is ConnectionPhase.DRAINING or phase is ConnectionPhase.LINGERING:
            self._watch_in(LINGERING_SECONDS)
        connection = self._connection
        if connection is None:
            return
        if phase is ConnectionPhase.ANSWERING or (phase is not ConnectionPhase.IDLE and connection.is_identified):
            self._places.work(connection)
        else:
            self._places.rest(connection)

    def _watch(self) -> None:
        """Looks at the deadline now and again: cheaper than a timer for each phase of each request."""
        if self._connection is not None and self.loop.time() >= self._deadline:
            self._overdue()
        if self._connection is None:
            return
        self._watch_in(self._limits.watch_seconds)

    def _watch_in(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(seconds, self._watch)

    def _overdue(self) -> None:
        match self._phase:
            case ConnectionPhase.HANDSHAKE:
                self._end(RefusalReason.HANDSHAKE_DEADLINE)
            case ConnectionPhase.FRESH:
                self._end(RefusalReason.SILENT)
            case ConnectionPhase.HEAD:
                self._refuse(RefusalReason.HEAD_DEADLINE)
            case ConnectionPhase.BODY:
                self._overdue_body()
            case ConnectionPhase.ANSWERING:
                self._overdue_answer()
            case ConnectionPhase.IDLE | ConnectionPhase.DRAINING | ConnectionPhase.LINGERING:
                self._abort()

    def _overdue_body(self) -> None:
        is_our_turn = self.flow.read_paused or self.cycle.waiting_for_100_continue
        if is_our_turn or self._body_bytes - self._progress >= BODY_PROGRESS_BYTES:
            self._begin(ConnectionPhase.BODY)
        else:
            self._refuse(RefusalReason.BODY_DEADLINE)

    def _overdue_answer(self) -> None:
        waiting = self.transport.get_write_buffer_size() if self.flow.write_paused else 0
        if waiting and waiting == self._progress:
            self._end(RefusalReason.ANSWER_DEADLINE)
            return
        self._begin(ConnectionPhase.ANSWERING)
        self._progress = waiting

    # Ends
    def _make_room(self) -> None:
        """Ends for another connection. A proxy that waits for an answer gets one: nginx takes a gateway whose
        connections end without one for dead, and sends it nobody's requests for a while.
        """
        place = self._connection
        answers = place is not None and (place.is_proxy or self._tls is None)
        if not answers or not self._awaits_body or self.pipeline or self.transport.get_write_buffer_size():
            self._abort()
            return
        self._leave()
        self.transport.write(RefusalReason.MADE_ROOM.refusal.answer)
        self.transport.close()
        self.loop.call_later(LINGERING_SECONDS, self.transport.abort)  # whoever does not take leave

    def _refuse(self, reason: RefusalReason) -> None:
        """Answers with a problem if nothing else is being answered, and closes the connection."""
        place = self._connection
        if place is None or self.transport.is_closing():
            return
        self._places.note(reason, place.client or place.address)
        if self.pipeline or (self._is_answering and not self._awaits_body):
            self._abort()
            return
        if self._awaits_body:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.write(reason.refusal.answer)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self._begin(ConnectionPhase.LINGERING)

    def _discard(self, size: int) -> None:
        self._lingered += size
        if self._lingered > LINGERING_BYTES:
            self._abort()

    def _turn_away(self, transport: asyncio.Transport, reason: RefusalReason, address: str) -> None:
        self._places.note(reason, address)
        if self._tls is None:
            transport.write(reason.refusal.answer)
            transport.close()
        else:
            transport.abort()

    def _end(self, reason: RefusalReason) -> None:
        if self._connection is not None:
            self._places.note(reason, self._connection.client or self._connection.address)
        self._abort()

    def _abort(self) -> None:
        self._leave()
        if self._handshake is not None:
            self._handshake.cancel()
        self.transport.abort()

    def _leave(self) -> None:
        if self._connection is not None:
            self._places.leave(self._connection)
            self._connection = None
        if self._timer is not None:
            self._timer.cancel()
