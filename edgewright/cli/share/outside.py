"""What an edge would see: `doctor` goes to the external URL as an edge does, with nothing but what the line carries.

It resolves the name, connects to the address that this gives, verifies the certificate by the bundle alone, and asks
``/ping``. No token is sent and no proxy is asked. A firewall between an edge and this machine stays unseen.
"""

import http.client
import json
import socket
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import SplitResult, urlsplit
from uuid import UUID

from cryptography import x509

from edgewright.cli.checks import Check, CheckVerdict
from edgewright.cli.invocation import typed
from edgewright.domain.hosts import is_loopback
from edgewright.domain.wellknown import SERVICE_CLUSTER_MANAGER
from edgewright.settings import Settings

NAME = "from outside"
_SECONDS = 5.0
_LARGEST_ANSWER = 64 * 1024
_ENDS_SOON = timedelta(days=21)
_EXPIRED, _NOT_YET, _OTHER_NAME, _OTHER_ADDRESS = 10, 9, 62, 64
"""Reasons of OpenSSL's for which a certificate is refused (X509_V_ERR_…)."""
_UNSEEN = "A firewall between edges and this machine cannot be checked from here"


class _Finding(Exception):
    """Why an edge would not get in, as the check that says so."""

    def __init__(self, sentence: str, fix: str, verdict: CheckVerdict = CheckVerdict.WRONG) -> None:
        super().__init__(sentence)
        self.check = Check(NAME, verdict, sentence, fix)


@dataclass(frozen=True)
class _Door:
    """Where an edge knocks.

    Args:
        bundle: PEM that it trusts alone; None: what its machine trusts.
        centre: ID of the centre that has to answer; None: any.
    """

    url: SplitResult
    bundle: str | None
    bind: str
    centre: UUID | None

    @property
    def host(self) -> str:
        return self.url.hostname or ""

    @property
    def port(self) -> int:
        return self.url.port or (443 if self.url.scheme == "https" else 80)

    @property
    def place(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def outside_checks(settings: Settings, centre: UUID | None = None) -> list[Check]:
    """Nothing where the external URL is loopback: what is to be said of that is said elsewhere.

    Args:
        settings: those in force, ``as_running``.
        centre: ID of this centre; None: it is not known.
    """
    if settings.external_url_is_loopback:
        return []
    try:
        bundle = settings.ca_bundle.read_text("ascii") if settings.ca_bundle else None
    except (OSError, UnicodeDecodeError):
        return []  # said by the check of that setting
    door = _Door(urlsplit(settings.effective_external_url), bundle, settings.bind, centre)
    try:
        return [_knock(door)]
    except _Finding as found:
        return [found.check]


def _knock(door: _Door) -> Check:
    addresses = _resolved(door)
    with _connected(door, addresses) as plain:
        if door.url.scheme == "http":
            _demand_centre(door, plain)
            until = None
        else:
            with _secured(door, plain) as secured:
                until = _end_of(secured)
                _demand_centre(door, secured)
    where = door.url.geturl()
    if all(is_loopback(address) for address in addresses):
        return Check(
            NAME,
            CheckVerdict.WARNING,
            f"{door.host} resolves to {addresses[0]} on this machine, which no edge could reach.",
            f"Make sure that it resolves to this machine's own address on edges: getent hosts {door.host}",
        )
    if until and until - datetime.now(UTC) < _ENDS_SOON:
        fix = "Renew it. One that `up --share` has made is renewed by `up` while it runs, and when it starts."
        return Check(NAME, CheckVerdict.WARNING, f"The certificate of {where} expires on {until:%Y-%m-%d}.", fix)
    trusted = f", its certificate is trusted until {until:%Y-%m-%d}" if until else ""
    return Check(NAME, CheckVerdict.OK, f"{where} answers{trusted}. {_UNSEEN}.")


def _resolved(door: _Door) -> list[str]:
    try:
        found = socket.getaddrinfo(door.host, door.port, type=socket.SOCK_STREAM)
    except OSError:
        raise _Finding(
            f"{door.host} does not resolve on this machine.",
            f"Add it to DNS, or use an address: {typed('up --share ADDRESS')}.",
        ) from None
    return list(dict.fromkeys(str(address[0]) for _, _, _, _, address in found))


def _connected(door: _Door, addresses: list[str]) -> socket.socket:
    refused = False
    for address in addresses:
        try:
            return socket.create_connection((address, door.port), timeout=_SECONDS)
        except ConnectionRefusedError:
            refused = True
        except OSError:
            continue
    if refused and is_loopback(door.bind):
        raise _Finding(
            f"Nothing listens at {door.place}; the gateway listens on {door.bind} only.",
            f"Run `{typed('up --share')}`, or set EDGEWRIGHT_BIND to an address that edges reach.",
        )
    if refused:
        raise _Finding(
            f"Nothing listens at {door.place}.",
            "Check that the address belongs to this machine or to the proxy before it, and check the port.",
        )
    raise _Finding(
        f"{door.place} does not answer this machine within {_SECONDS:.0f} s. {_UNSEEN}.",
        f"Try it from an edge: curl -sSk {door.url.geturl()}/ping. Some routers do not lead their own network back.",
        CheckVerdict.WARNING,
    )


def _secured(door: _Door, plain: socket.socket) -> ssl.SSLSocket:
    context = ssl.create_default_context(cadata=door.bundle) if door.bundle else ssl.create_default_context()
    try:
        return context.wrap_socket(plain, server_hostname=door.host)
    except ssl.SSLCertVerificationError as error:
        raise _refused_certificate(door, error) from None
    except ssl.SSLError:
        raise _Finding(
            f"{door.place} does not speak TLS, and the external URL begins with https://.",
            "Check the port. If a proxy answers there, give it a certificate.",
        ) from None
    except OSError:
        raise _Finding(
            f"{door.place} closed the connection during the TLS handshake.", _other_service(door)
        ) from None


def _refused_certificate(door: _Door, error: ssl.SSLCertVerificationError) -> _Finding:
    match error.verify_code:
        case code if code == _EXPIRED:
            return _Finding(
                f"The certificate of {door.place} has expired, or this machine's clock is wrong.",
                "Set the clock, or renew the certificate.",
            )
        case code if code == _NOT_YET:
            return _Finding(
                f"The certificate of {door.place} is not valid yet, or this machine's clock is wrong.",
                "Set the clock.",
            )
        case code if code in {_OTHER_NAME, _OTHER_ADDRESS}:
            borne = ", ".join(_names_at(door)) or "none"
            return _Finding(
                f"The certificate of {door.place} is not for {door.host}; it is for {borne}.",
                f"Use a certificate that covers {door.host}; `{typed(f'up --share {door.host}')}` makes one.",
            )
    if door.bundle is None:
        return _Finding(
            f"This machine does not trust the certificate of {door.place}, and bootstrap lines carry no authority.",
            "Set EDGEWRIGHT_CA_BUNDLE to the authority that signed it.",
        )
    return _Finding(
        f"The certificate of {door.place} is not signed by an authority that bootstrap lines carry.",
        "Another service may answer there. Or set EDGEWRIGHT_CA_BUNDLE to the authority that signed it.",
    )


def _names_at(door: _Door) -> list[str]:
    """The names in the certificate that is shown there, whoever has signed it."""
    try:
        pem = ssl.get_server_certificate((door.host, door.port), timeout=_SECONDS)
        names = x509.load_pem_x509_certificate(pem.encode()).extensions
        covered = names.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        return []
    return [
        *covered.get_values_for_type(x509.DNSName),
        *(str(address) for address in covered.get_values_for_type(x509.IPAddress)),
    ]


def _end_of(secured: ssl.SSLSocket) -> datetime | None:
    shown = secured.getpeercert(binary_form=True)
    return x509.load_der_x509_certificate(shown).not_valid_after_utc if shown else None


def _demand_centre(door: _Door, connection: socket.socket) -> None:
    """Returns if this centre answers ``/ping`` on a connection."""
    asked = http.client.HTTPConnection(door.host, door.port, timeout=_SECONDS)
    asked.sock = connection
    try:
        asked.request("GET", f"{door.url.path}/ping", headers={"Accept": "application/json", "Connection": "close"})
        answer = asked.getresponse()
        status, body = answer.status, answer.read(_LARGEST_ANSWER)
    except (OSError, http.client.HTTPException):
        hint = " It may expect https." if door.url.scheme == "http" else ""
        raise _Finding(f"{door.place} does not answer in HTTP.{hint}", _other_service(door)) from None
    try:
        said = json.loads(body)
    except ValueError:
        said = None
    service = said.get("service") if isinstance(said, dict) else None
    if service != str(SERVICE_CLUSTER_MANAGER):
        raise _Finding(
            f"Another service answers at {door.url.geturl()}: its /ping gives HTTP {status}.", _other_service(door)
        )
    shown = said.get("installation")
    if door.centre is not None and shown is None:
        raise _Finding(
            f"The Edgewright at {door.url.geturl()} does not say which centre it is, as its version is older.",
            "If it is this one, restart it. If not: " + _other_service(door),
            CheckVerdict.WARNING,
        )
    if door.centre is not None and shown != str(door.centre):
        raise _Finding(f"Another Edgewright answers at {door.url.geturl()}, not this one.", _other_service(door))


def _other_service(door: _Door) -> str:
    return f"Find out what listens at {door.place}; it has to be this gateway, or a proxy that leads to it."
