"""What a receiver is sent, and what it may answer without harm: the sender is bounded in time, and raises nothing."""

import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from socket import create_server, socket
from uuid import UUID

import pytest
from webhook_receiver import Receiver

from edgewright.adapters.webhook.sender import HttpWebhookSender, open_sender
from edgewright.domain.notifications import Notification, NotificationFacts, NotificationType, NotifiedCluster
from edgewright.ports.webhook_delivery import SigningSecret, WebhookAnswer
from tools.production.certificates import make_certificates

SECRET, EVENT = SigningSecret(b"x" * 32), UUID(int=7)
NEWS = Notification(
    type=NotificationType.JOINED,
    timestamp=datetime(2026, 3, 1, 12, tzinfo=UTC),
    data=NotificationFacts(cluster=NotifiedCluster(uuid=UUID(int=8), name="press-shop"), message="It has joined."),
)
PATIENCE = 0.5
TOO_LATE = WebhookAnswer(None, "The receiver did not answer within 0.5 s.")


@pytest.fixture
async def sender() -> AsyncIterator[HttpWebhookSender]:
    async with open_sender(patience=PATIENCE) as sender:
        yield sender


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver().serving() as receiver:
        yield receiver


@contextmanager
def answering(respond: Callable[[socket], None]) -> Iterator[str]:
    """The URL of a server that does with each connection what it is told."""
    with create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):  # the end of the block, or of the other side
                while True:
                    connection, _ = server.accept()
                    with connection, suppress(OSError):
                        take_whole(connection)
                        respond(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/hook"
        finally:
            server.shutdown(2)
            thread.join()


def take_whole(connection: socket) -> None:
    """The request to its end: what is closed before is cut off, which its sender is told in another way."""
    length = 0
    with connection.makefile("rb") as request:
        for line in request:
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
            if line == b"\r\n":
                break
        request.read(length)


def endless(head: bytes, more: bytes) -> Callable[[socket], None]:
    """Sends without an end, until the other side goes."""

    def respond(connection: socket) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(more)

    return respond


async def test_the_body_is_sent_whole_and_signed(sender: HttpWebhookSender, receiver: Receiver) -> None:
    assert await sender.send(receiver.url, SECRET, EVENT, NEWS) == WebhookAnswer(204)
    [told] = receiver.asked
    assert (told.body, told.id) == (NEWS.octets(), str(EVENT))
    assert told.headers["content-type"] == "application/json"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed(sender: HttpWebhookSender, receiver: Receiver, status: int) -> None:
    with Receiver().serving() as internal:
        receiver.headers["location"] = internal.url
        receiver.answering = lambda _request: status
        answer = await sender.send(receiver.url, SECRET, EVENT, NEWS)
        assert answer == WebhookAnswer(status, f"The receiver answered {status}. Redirects are not followed.")
        assert internal.asked == []


NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
RESTS = {
    "120": 120.0,
    "86400": 3600.0,
    "9" * 400: 3600.0,
    "Sun, 01 Mar 2026 12:10:00 GMT": 600.0,
    "Sun, 01 Mar 2099 12:00:00 GMT": 3600.0,
    "Sun, 99999999999999999999 Mar 2026 12:00:00 GMT": 0.0,
    "soon": 0.0,
}


@pytest.mark.parametrize(("asked_for", "rest"), RESTS.items(), ids=[text[:31] or "empty" for text in RESTS])
async def test_the_rest_that_a_receiver_asks_for_is_heard_within_reason(
    receiver: Receiver, asked_for: str, rest: float
) -> None:
    receiver.headers["retry-after"] = asked_for
    receiver.answering = lambda _request: 429
    async with open_sender(patience=PATIENCE, clock=lambda: NOON) as sender:
        answer = await sender.send(receiver.url, SECRET, EVENT, NEWS)
    assert answer == WebhookAnswer(429, "The receiver answered 429.", rest)


async def test_no_cookie_is_kept(sender: HttpWebhookSender, receiver: Receiver) -> None:
    receiver.headers["set-cookie"] = "marked=1"
    for _ in range(2):
        await sender.send(receiver.url, SECRET, EVENT, NEWS)
    assert [told.headers.get("cookie") for told in receiver.asked] == [None, None]


async def test_what_stands_in_an_answer_is_not_waited_for(sender: HttpWebhookSender) -> None:
    with answering(endless(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n", b"x" * 65536)) as url:
        assert await sender.send(url, SECRET, EVENT, NEWS) == WebhookAnswer(200)


@pytest.mark.parametrize(
    "respond",
    [
        lambda connection: connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"),
        lambda connection: None,
        endless(b"HTTP/1.1 200 OK\r\n", b"x-more: " + b"x" * 8000 + b"\r\n"),
    ],
    ids=["another protocol", "hangs up", "headers without end"],
)
async def test_what_is_no_answer_is_none(sender: HttpWebhookSender, respond: Callable[[socket], None]) -> None:
    with answering(respond) as url:
        answer = await sender.send(url, SECRET, EVENT, NEWS)
    assert answer == WebhookAnswer(None, "The exchange with the receiver broke off (RemoteProtocolError).")


async def test_an_answer_that_never_comes_to_an_end_is_none(sender: HttpWebhookSender) -> None:
    with answering(endless(b"", b"HTTP/1.1 102 Processing\r\n\r\n")) as url:
        assert await sender.send(url, SECRET, EVENT, NEWS) == TOO_LATE


async def test_a_name_that_no_resolver_can_be_asked_for_is_a_failed_try(sender: HttpWebhookSender) -> None:
    answer = await sender.send("https://xn--a/", SECRET, EVENT, NEWS)  # a label that decodes to no text
    assert (answer.status, "broke off" in answer.problem, "xn--a" in answer.problem) == (None, True, False)


async def test_a_certificate_of_an_authority_that_nobody_trusts_is_refused(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "proxy.crt", tmp_path / "proxy.key")
    with Receiver(tls=tls).serving() as receiver:
        async with open_sender() as sender:
            refused = await sender.send(receiver.url, SECRET, EVENT, NEWS)
        assert refused == WebhookAnswer(None, "The receiver's certificate is not one that this machine trusts.")
        assert receiver.asked == []
        async with open_sender(ca_bundle=tmp_path / "ca.pem") as sender:
            assert await sender.send(receiver.url, SECRET, EVENT, NEWS) == WebhookAnswer(204)
