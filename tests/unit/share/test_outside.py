"""What `doctor` says an edge would see at the external URL: asked of real servers on loopback."""

import http.server
import json
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from edgewright.cli.checks import Check, CheckVerdict
from edgewright.cli.share import outside
from edgewright.cli.share.authority import ensure_certificates
from edgewright.cli.share.outside import outside_checks
from edgewright.domain.wellknown import SERVICE_CLUSTER_MANAGER
from edgewright.settings import Settings

HOST = "centre.example.com"
CENTRE = UUID("2f0a1c7e-5b0d-4c1a-9a53-6a1d3f6f9c11")
PING = json.dumps({"service": str(SERVICE_CLUSTER_MANAGER), "version": "1", "installation": str(CENTRE)})


@pytest.fixture
def resolves(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name leads to this machine, as one of its own addresses does that is not loopback."""
    resolve = socket.getaddrinfo

    def found(host: str, *arguments: Any, **options: Any) -> Any:
        return resolve("127.0.0.1" if host == HOST else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", found)
    monkeypatch.setattr(outside, "is_loopback", lambda host: host.startswith("127.0.0.9"))


@contextmanager
def serving(body: str = PING, status: int = 200, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Answers every GET alike; the port."""

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None: ...

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None: ...

    server = Server(("127.0.0.1", 0), Answers)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def tls(home: Path, hosts: Sequence[str] = (HOST,), now: datetime | None = None) -> ssl.SSLContext:
    home.mkdir(exist_ok=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(ensure_certificates(home, hosts, now or datetime.now(UTC)).server)
    return context


def looked(port: int, *, scheme: str = "https", host: str = HOST, bundle: Path | None = None, **given: Any) -> Check:
    url = f"{scheme}://{host}:{port}"
    [check] = outside_checks(Settings(external_url=url, ca_bundle=bundle, allow_plain_http=True, **given), CENTRE)
    return check


@pytest.mark.usefixtures("resolves")
def test_a_door_that_is_open_is_said_to_be(tmp_path: Path) -> None:
    with serving(context=tls(tmp_path)) as port:
        check = looked(port, bundle=tmp_path / "authority.pem")
    until = datetime.now(UTC) + timedelta(days=396)
    assert check.verdict is CheckVerdict.OK
    assert f"trusted until {until:%Y-%m-%d}" in check.sentence
    assert "firewall" in check.sentence
    with serving() as port:
        assert looked(port, scheme="http").verdict is CheckVerdict.OK


@pytest.mark.usefixtures("resolves")
@pytest.mark.parametrize(
    ("hosts", "days", "said"),
    [
        ((HOST,), -500, "has expired"),
        ((HOST,), 30, "is not valid yet"),
        (("other.example.com", "10.0.0.5"), 0, f"is not for {HOST}; it is for"),
        ((HOST,), -380, "expires on"),
    ],
)
def test_a_certificate_that_edges_refuse_is_told_with_the_reason(
    tmp_path: Path, hosts: Sequence[str], days: int, said: str
) -> None:
    context = tls(tmp_path, hosts, datetime.now(UTC) + timedelta(days=days))
    with serving(context=context) as port:
        check = looked(port, bundle=tmp_path / "authority.pem")
    assert check.verdict is (CheckVerdict.WARNING if days == -380 else CheckVerdict.WRONG)
    assert said in check.sentence
    assert check.fix
    if "10.0.0.5" in hosts:
        assert "other.example.com" in check.sentence
        assert "10.0.0.5" in check.sentence


@pytest.mark.usefixtures("resolves")
def test_an_authority_that_the_line_does_not_carry_is_told(tmp_path: Path) -> None:
    tls(tmp_path / "another")
    with serving(context=tls(tmp_path / "centre")) as port:
        other = looked(port, bundle=tmp_path / "another" / "authority.pem")
        none = looked(port)
    assert (other.verdict, none.verdict) == (CheckVerdict.WRONG, CheckVerdict.WRONG)
    assert "not signed by an authority that bootstrap lines carry" in other.sentence
    assert "bootstrap lines carry no authority" in none.sentence


@pytest.mark.usefixtures("resolves")
def test_tls_and_plain_http_that_meet_are_told(tmp_path: Path) -> None:
    with serving() as port:
        plain = looked(port)
    assert (plain.verdict, "does not speak TLS" in plain.sentence) == (CheckVerdict.WRONG, True)
    with serving(context=tls(tmp_path)) as port:
        secured = looked(port, scheme="http")
    assert (secured.verdict, "It may expect https." in secured.sentence) == (CheckVerdict.WRONG, True)


@pytest.mark.usefixtures("resolves")
@pytest.mark.parametrize(
    ("status", "body"),
    [(200, "<html>"), (404, "{}"), (200, "[]"), (200, '{"service": "x"}'), (200, "\x00" * 100_000)],
)
def test_another_service_is_told(status: int, body: str) -> None:
    with serving(body, status) as port:
        check = looked(port, scheme="http")
    assert check.verdict is CheckVerdict.WRONG
    assert f"Another service answers at http://{HOST}:{port}: its /ping gives HTTP {status}." == check.sentence


@pytest.mark.usefixtures("resolves")
def test_another_centre_is_told_and_one_that_does_not_say_which_it_is() -> None:
    said = json.loads(PING)
    with serving(json.dumps({**said, "installation": str(uuid4())})) as port:
        other = looked(port, scheme="http")
    assert other.verdict is CheckVerdict.WRONG
    assert other.sentence == f"Another Edgewright answers at http://{HOST}:{port}, not this one."
    assert f"what listens at {HOST}:{port}" in other.fix
    for silent in ({**said, "installation": None}, {"service": said["service"]}):
        with serving(json.dumps(silent)) as port:
            older = looked(port, scheme="http")
        assert older.verdict is CheckVerdict.WARNING
        assert "does not say which centre it is" in older.sentence


@pytest.mark.usefixtures("resolves")
def test_nobody_there_is_told_and_a_gateway_that_listens_on_loopback_alone(unused_port: int) -> None:
    nobody = looked(unused_port, bind="0.0.0.0")
    assert (nobody.verdict, nobody.sentence) == (CheckVerdict.WRONG, f"Nothing listens at {HOST}:{unused_port}.")
    alone = looked(unused_port, bind="127.0.0.9")
    assert (alone.verdict, "listens on 127.0.0.9 only" in alone.sentence) == (CheckVerdict.WRONG, True)
    assert "up --share" in alone.fix


def test_a_name_that_does_not_resolve_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    check = looked(443)
    assert (check.verdict, "does not resolve on this machine" in check.sentence) == (CheckVerdict.WRONG, True)


def test_a_name_that_leads_here_by_loopback_alone_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda _host, *rest, **options: resolve("127.0.0.1", *rest, **options))
    with serving(context=tls(tmp_path)) as port:
        check = looked(port, bundle=tmp_path / "authority.pem")
    assert check.verdict is CheckVerdict.WARNING
    assert f"{HOST} resolves to 127.0.0.1 on this machine" in check.sentence


@pytest.mark.usefixtures("resolves")
def test_what_does_not_answer_is_a_warning_for_a_firewall_may_stand_between(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*_: object, **__: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", silent)
    check = looked(443)
    assert (check.verdict, "does not answer" in check.sentence) == (CheckVerdict.WARNING, True)
    assert f"https://{HOST}:443/ping" in check.fix


def test_of_a_loopback_url_there_is_nothing_to_see() -> None:
    assert outside_checks(Settings()) == []
    assert outside_checks(Settings(external_url="http://localhost:1")) == []


@pytest.fixture
def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
