"""Each way in which no conversation with a gateway comes about has its own sentence: shown on servers on loopback."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from edgewright.cli.client import connected
from edgewright.cli.client_settings import Destination, Origin
from edgewright.cli.failures import CliError, ExitCode

TOKEN = "ew_0123456789abcdef_" + "A" * 43
NOW = datetime.now(UTC)
DAY = timedelta(days=1)
PAGE = b"<html><title>502</title>nginx</html>"


@dataclass
class Reply:
    """What a server answers everything with."""

    status: int = 200
    content: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})


@dataclass
class Recorded:
    """A server, and the headers that it was sent."""

    port: int
    authorizations: list[str | None] = field(default_factory=list)


@contextmanager
def served(reply: Reply, tls: ssl.SSLContext | None = None) -> Iterator[Recorded]:
    recorded = Recorded(0)

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            recorded.authorizations.append(self.headers["Authorization"])
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.content)))
            self.end_headers()
            self.wfile.write(reply.content)

        def log_message(self, *_: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass  # a client that distrusts a server hangs up

    with Quiet(("127.0.0.1", 0), Answer) as server:
        recorded.port = server.server_address[1]
        if tls:
            # The handshake is left to the thread of each connection.
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        serving.start()
        try:
            yield recorded
        finally:
            server.shutdown()
            serving.join(30)


@dataclass(frozen=True)
class SigningAuthority:
    """An authority that nobody trusts unless told to. ``pem``: its certificate."""

    folder: Path
    key: ec.EllipticCurvePrivateKey
    name: x509.Name
    pem: str

    def server(
        self, *, names: tuple[str, ...] = ("localhost", "127.0.0.1"), begins: datetime = NOW - DAY, ends: datetime
    ) -> ssl.SSLContext:
        """What a server shows."""
        key = ec.generate_private_key(ec.SECP256R1())
        alternatives = [x509.DNSName(name) for name in names if not name[0].isdigit()]
        addresses = [x509.IPAddress(ip_address(name)) for name in names if name[0].isdigit()]
        certificate = (
            _builder(self.name, x509.Name([]), key, begins, ends)
            .add_extension(x509.SubjectAlternativeName([*alternatives, *addresses]), critical=True)
            .sign(self.key, hashes.SHA256())
        )
        file = self.folder / f"{certificate.serial_number}.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(file)
        return context


def _builder(
    issuer: x509.Name, subject: x509.Name, key: ec.EllipticCurvePrivateKey, begins: datetime, ends: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .issuer_name(issuer)
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
    )


@pytest.fixture
def authority(tmp_path: Path) -> SigningAuthority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "A factory's own")])
    usage = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _builder(name, name, key, NOW - 10 * DAY, NOW + 10 * DAY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM).decode()
    return SigningAuthority(tmp_path, key, name, pem)


def asked(url: str, *, origin: Origin = Origin.ENVIRONMENT, **destination: str) -> CliError:
    """The error that a command ends with which asks there."""
    meant = Destination(origin, url, TOKEN, **destination)  # type: ignore[arg-type]  # texts only
    with connected(meant) as gateway, pytest.raises(CliError) as caught:
        gateway.get("/v1/cluster")
    assert TOKEN not in f"{caught.value.sentence} {caught.value.hint}"
    return caught.value


def test_certificate_of_a_trusted_authority_is_fine(authority: SigningAuthority) -> None:
    with served(Reply(), authority.server(ends=NOW + DAY)) as server:
        destination = Destination(
            Origin.CURRENT, f"https://localhost:{server.port}", TOKEN, ca_certificates=authority.pem
        )
        with connected(destination) as gateway:
            assert gateway.get("/v1/cluster") == {}


@pytest.mark.parametrize(
    ("origin", "context", "hint"),
    [
        (Origin.ENVIRONMENT, None, "Set EDGEWRIGHT_CA_BUNDLE to a PEM file"),
        (Origin.CURRENT, "munich", "login --context munich --ca-bundle FILE`"),
        (Origin.FLAG, None, "--ca-bundle FILE"),
    ],
)
def test_unknown_authority(authority: SigningAuthority, origin: Origin, context: str | None, hint: str) -> None:
    with served(Reply(), authority.server(ends=NOW + DAY)) as server:
        url = f"https://localhost:{server.port}"
        error = asked(url, origin=origin, **({"context": context} if context else {}))
    assert error.sentence == f"The certificate of {url} is not trusted here."
    assert hint in (error.hint or "")
    assert (error.code, error.exit_code) == ("certificate_untrusted", ExitCode.UNAVAILABLE)
    assert server.authorizations == []


@pytest.mark.parametrize(
    ("certificate", "sentence", "code"),
    [
        ({"begins": NOW - 2 * DAY, "ends": NOW - DAY}, "has expired", "certificate_expired"),
        ({"begins": NOW + DAY, "ends": NOW + 2 * DAY}, "is not valid yet", "certificate_not_yet_valid"),
        ({"names": ("edge.example.com",), "ends": NOW + DAY}, "is for another name", "certificate_name_mismatch"),
    ],
)
def test_certificate_that_does_not_hold(
    authority: SigningAuthority, certificate: dict[str, datetime], sentence: str, code: str
) -> None:
    with served(Reply(), authority.server(**certificate)) as server:  # type: ignore[arg-type]  # as they are named
        for host in ("localhost", "127.0.0.1"):
            error = asked(f"https://{host}:{server.port}", ca_certificates=authority.pem)
            assert sentence in error.sentence
            assert (error.code, error.exit_code) == (code, ExitCode.UNAVAILABLE)
            assert error.hint
    assert server.authorizations == []


def test_plain_http_where_tls_is_asked_for() -> None:
    with served(Reply()) as server:
        error = asked(f"https://localhost:{server.port}")
    assert error.sentence == f"The gateway speaks plain http at https://localhost:{server.port}."
    assert f"Use http://localhost:{server.port} instead." in (error.hint or "")
    assert (error.code, error.exit_code) == ("gateway_speaks_plain_http", ExitCode.USAGE)
    assert TOKEN not in str(server.authorizations)


def test_tls_where_plain_http_is_asked_for(authority: SigningAuthority) -> None:
    with served(Reply(), authority.server(ends=NOW + DAY)) as server:
        error = asked(f"http://localhost:{server.port}")
    assert error.sentence == f"The gateway speaks TLS at http://localhost:{server.port}."
    assert f"Use https://localhost:{server.port} instead." in (error.hint or "")
    assert (error.code, error.exit_code) == ("gateway_speaks_tls", ExitCode.USAGE)


@pytest.mark.parametrize(
    ("status", "exit_code"),
    [
        (200, ExitCode.USAGE),
        (404, ExitCode.USAGE),
        (401, ExitCode.NOT_ALLOWED),
        (502, ExitCode.UNAVAILABLE),
        (504, ExitCode.UNAVAILABLE),
    ],
)
def test_page_of_a_proxy(status: int, exit_code: ExitCode) -> None:
    """404 would be "not found" from a gateway; a proxy's says nothing of clusters."""
    with served(Reply(status, PAGE, {"Content-Type": "text/html; charset=utf-8"})) as server:
        error = asked(f"http://localhost:{server.port}")
    assert f"answered with an HTML page ({status}): a proxy or another program" in error.sentence
    assert (error.code, error.exit_code) == ("not_a_gateway", exit_code)
    assert "nginx" not in error.sentence


def test_redirection_is_named_and_gets_no_token() -> None:
    with served(Reply()) as elsewhere:
        place = f"http://localhost:{elsewhere.port}"
        with served(Reply(302, b"", {"Location": f"{place}/v1/cluster?x=1"})) as server:
            error = asked(f"http://localhost:{server.port}")
        assert f"redirects elsewhere, to {place}; the token was not sent there." in error.sentence
        assert (error.code, error.exit_code) == ("gateway_redirects", ExitCode.USAGE)
    assert elsewhere.authorizations == []


@pytest.mark.parametrize("place", ["http://user:pass@elsewhere.example/", "//[", ""])
def test_odd_redirection_is_not_repeated(place: str) -> None:
    with served(Reply(307, b"", {"Location": place})) as server:
        error = asked(f"http://localhost:{server.port}")
    assert error.code == "gateway_redirects"
    assert "pass" not in error.sentence and error.sentence.isprintable()


def test_connection_that_breaks_off() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        hang_up = threading.Thread(target=_hang_up_on_everybody, args=(listener,), daemon=True)
        hang_up.start()
        error = asked(f"http://127.0.0.1:{listener.getsockname()[1]}")
    assert "broke off" in error.sentence
    assert (error.code, error.exit_code) == ("connection_broken", ExitCode.UNAVAILABLE)


def _hang_up_on_everybody(listener: socket.socket) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        connection.recv(10)
        connection.close()


def test_proxy_that_does_not_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    error = asked("https://edge.example.com")
    assert "The proxy between here and https://edge.example.com" in error.sentence
    assert (error.code, error.exit_code) == ("proxy_failed", ExitCode.UNAVAILABLE)


@pytest.mark.parametrize(
    "hint_of",
    [
        lambda url: (asked(url, origin=Origin.CURRENT, context="munich"), "context list"),
        lambda url: (asked(url), "EDGEWRIGHT_URL"),
        lambda url: (asked(url, origin=Origin.LOCAL), "up"),
    ],
)
def test_nobody_listens(hint_of: Callable[[str], tuple[CliError, str]]) -> None:
    error, hint = hint_of("http://127.0.0.1:1")
    assert (error.code, error.exit_code) == ("gateway_unreachable", ExitCode.UNAVAILABLE)
    assert hint in (error.hint or "")
