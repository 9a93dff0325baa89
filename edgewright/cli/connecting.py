"""Why no conversation with a gateway came about: a sentence for each reason, and what to do about it."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from edgewright.cli.client_settings import Destination, Origin
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.invocation import starter, typed
from edgewright.domain.hosts import is_loopback

_PROBE_SECONDS = 2.0
_EXPIRED, _NOT_YET_VALID = 10, 9
_OTHER_NAME = frozenset({62, 64})
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""


def unreachable(destination: Destination, error: httpx.HTTPError) -> CliError:
    """A request that got no answer, as the error that ends a command."""
    url = destination.url
    if isinstance(error, httpx.TimeoutException):
        return CliError(
            f"The gateway at {url} did not answer in time.",
            f"`{typed('doctor')}` says what is wrong with a local one.",
            ExitCode.UNAVAILABLE,
            code="gateway_timeout",
        )
    tls = next((each for each in _causes(error) if isinstance(each, ssl.SSLError)), None)
    if isinstance(tls, ssl.SSLCertVerificationError):
        return _distrusted(destination, tls)
    proxy = _proxy_for(url)
    if isinstance(error, httpx.ProxyError) or (proxy and isinstance(error, httpx.ConnectError) and tls is None):
        return CliError(
            f"The proxy between here and {url} did not connect.",
            "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names the proxy; NO_PROXY lists the hosts that need none.",
            ExitCode.UNAVAILABLE,
            code="proxy_failed",
        )
    if isinstance(error, httpx.ConnectError) and tls is None:
        return _silent(destination)
    return _misunderstood(destination, tls) or CliError(
        f"The connection to {url} broke off.",
        "Try again; if it stays so, look at the gateway's log.",
        ExitCode.UNAVAILABLE,
        code="connection_broken",
    )


def _misunderstood(destination: Destination, tls: ssl.SSLError | None) -> CliError | None:
    """Whether one side speaks TLS and the other does not."""
    url = destination.url
    if url.startswith("https:") and tls is not None and speaks_plain_http(url):
        return _other_scheme(
            destination, "plain http", f"http:{url.removeprefix('https:')}", "gateway_speaks_plain_http"
        )
    if url.startswith("http:") and speaks_tls(url):
        return speaks_tls_instead(destination)
    return None


def speaks_tls_instead(destination: Destination) -> CliError:
    """Plain http was sent where TLS is spoken."""
    return _other_scheme(destination, "TLS", f"https:{destination.url.removeprefix('http:')}", "gateway_speaks_tls")


def not_a_gateway(destination: Destination, answer: httpx.Response) -> CliError:
    """An answer that a gateway does not give: a page of a proxy, a redirection, another program's."""
    url, status = destination.url, answer.status_code
    if url.startswith("http:") and status == httpx.codes.BAD_REQUEST and speaks_tls(url):
        return speaks_tls_instead(destination)
    if answer.is_redirect:
        return CliError(
            f"{url} redirects elsewhere{_place(answer)}; the token was not sent there.",
            _hint("If that is your gateway, use its own URL.", _where_url_is_set(destination)),
            ExitCode.USAGE,
            code="gateway_redirects",
        )
    is_page = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower() == "text/html"
    what = f"an HTML page ({status})" if is_page else f"{status} and something that is not JSON"
    away = answer.is_server_error or status in {httpx.codes.REQUEST_TIMEOUT, httpx.codes.TOO_MANY_REQUESTS}
    denied = status in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN, httpx.codes.PROXY_AUTHENTICATION_REQUIRED}
    hint = (
        "Look at the proxy's log, and at whether the gateway behind it runs."
        if away
        else _hint("Check the URL.", _where_url_is_set(destination))
    )
    return CliError(
        f"{url} answered with {what}: a proxy or another program, not a gateway.",
        hint,
        ExitCode.UNAVAILABLE if away else ExitCode.NOT_ALLOWED if denied else ExitCode.USAGE,
        code="not_a_gateway",
    )


def speaks_tls(url: str) -> bool:
    """Whether a TLS server listens there; nothing is sent but the handshake."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 80
    try:
        with (
            socket.create_connection((host, port), timeout=_PROBE_SECONDS) as plain,
            ssl.create_default_context().wrap_socket(plain, server_hostname=host),
        ):
            return True
    except ssl.SSLCertVerificationError:
        return True
    except OSError:
        return False


def speaks_plain_http(url: str) -> bool:
    """Whether a server without TLS listens there; no credentials are sent."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port or 443, timeout=_PROBE_SECONDS)
    try:
        connection.request("GET", "/ping")
        connection.getresponse()
    except (OSError, HTTPException):
        return False
    else:
        return True
    finally:
        connection.close()


def _silent(destination: Destination) -> CliError:
    hint = {
        Origin.LOCAL: f"Start it with `{starter()}`.",
        Origin.ENVIRONMENT: f"Start a local one with `{starter()}`; EDGEWRIGHT_URL names one elsewhere.",
    }.get(destination.origin, f"Is it the right centre? `{typed('context list')}` shows yours.")
    return CliError(
        f"Nothing answers at {destination.url}: the gateway is not running, or out of reach.",
        hint,
        ExitCode.UNAVAILABLE,
        code="gateway_unreachable",
    )


def _distrusted(destination: Destination, error: ssl.SSLCertVerificationError) -> CliError:
    url, host = destination.url, urlsplit(destination.url).hostname
    if error.verify_code == _EXPIRED:
        sentence, hint, code = (
            f"The certificate of {url} has expired.",
            "Renew it where the gateway runs; check this machine's clock, too.",
            "certificate_expired",
        )
    elif error.verify_code == _NOT_YET_VALID:
        sentence, hint, code = (
            f"The certificate of {url} is not valid yet.",
            "Check this machine's clock, and the certificate where the gateway runs.",
            "certificate_not_yet_valid",
        )
    elif error.verify_code in _OTHER_NAME:
        sentence, hint, code = (
            f"The certificate of {url} is for another name than {host}.",
            _hint("Use a name that the certificate has.", _where_url_is_set(destination)),
            "certificate_name_mismatch",
        )
    else:
        sentence, hint, code = (
            f"The certificate of {url} is not trusted here.",
            _where_trust_is_set(destination),
            "certificate_untrusted",
        )
    return CliError(sentence, hint, ExitCode.UNAVAILABLE, code=code)


def _other_scheme(destination: Destination, what: str, url: str, code: str) -> CliError:
    return CliError(
        f"The gateway speaks {what} at {destination.url}.",
        _hint(f"Use {url} instead.", _where_url_is_set(destination)),
        ExitCode.USAGE,
        code=code,
    )


def _where_url_is_set(destination: Destination) -> str:
    """A sentence, or nothing where the reader has just typed the URL."""
    if destination.context:
        return f"`{typed(f'login URL --context {destination.context}')}` changes the URL of the context."
    return "EDGEWRIGHT_URL holds the URL." if destination.origin is Origin.ENVIRONMENT else ""


def _hint(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


def _where_trust_is_set(destination: Destination) -> str:
    if destination.context:
        command = typed(f"login --context {destination.context} --ca-bundle FILE")
        return f"Name a PEM file with the authority that signed it: `{command}`."
    if destination.origin is Origin.FLAG:
        return "Name a PEM file with the authority that signed it: --ca-bundle FILE."
    return "Set EDGEWRIGHT_CA_BUNDLE to a PEM file with the authority that signed it."


def _place(answer: httpx.Response) -> str:
    """Where a redirection leads, for a sentence; empty if that cannot be said safely."""
    with suppress(ValueError, httpx.InvalidURL):
        url = answer.request.url.join(answer.headers["Location"])
        place = f"{url.scheme}://{url.netloc.decode('ascii')}"
        if place.isprintable() and "@" not in place:
            return f", to {place}"
    return ""


def _proxy_for(url: str) -> bool:
    """Whether the environment sends requests to this URL through a proxy."""
    parts = urlsplit(url)
    host, proxies = parts.hostname or "", getproxies()
    return not is_loopback(host) and bool({parts.scheme, "all"} & proxies.keys()) and not proxy_bypass(host)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and what it came from."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__
