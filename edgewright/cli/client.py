"""The gateway as the commands see it: found by itself, spoken to in JSON, its problems turned into sentences."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx
from pydantic import ValidationError

from edgewright.cli.client_settings import ClientSettings, checked_url, read_token, trust
from edgewright.cli.endpoints import read_endpoints
from edgewright.cli.failures import CliError, ExitCode, of_settings
from edgewright.cli.invocation import typed
from edgewright.domain.hosts import is_loopback
from edgewright.errors import Unauthenticated

Params = Mapping[str, str | int | float | bool | Sequence[str]]

_SECONDS = 30.0
_EXIT_BY_STATUS = {
    401: ExitCode.NOT_ALLOWED,
    403: ExitCode.NOT_ALLOWED,
    404: ExitCode.NOT_FOUND,
    410: ExitCode.NOT_FOUND,
    408: ExitCode.UNAVAILABLE,
    429: ExitCode.UNAVAILABLE,
    502: ExitCode.UNAVAILABLE,
    503: ExitCode.UNAVAILABLE,
    504: ExitCode.UNAVAILABLE,
}


class GatewayClient:
    """An open connection. Every call raises ``CliError`` unless it succeeds.

    Args:
        url: base URL without a trailing slash.
        token: operator token; None: none is sent.
        transport: stands in for the network in tests.
    """

    def __init__(
        self,
        url: str,
        token: str | None,
        *,
        ca_bundle: Path | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.url = url
        self._has_token = token is not None
        self._http = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            # Reading the authorities takes longer than a request; where nothing is encrypted they are not needed.
            verify=url.startswith("https:") and trust(ca_bundle),
            timeout=_SECONDS,
            transport=transport,
            # A proxy of the company never leads back to this machine.
            trust_env=not is_loopback(urlsplit(url).hostname or ""),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def get(self, path: str, params: Params | None = None, *, timeout: float = _SECONDS) -> Any:
        """The JSON of a GET."""
        return _decoded(self.request("GET", path, params=params, timeout=timeout))

    def post(self, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None) -> Any:
        """The JSON that a POST of JSON is answered with; None for an empty answer."""
        return _decoded(self.request("POST", path, body=body, headers=headers))

    def put(self, path: str, body: Any = None) -> Any:
        """The same for PUT."""
        return _decoded(self.request("PUT", path, body=body))

    def patch(self, path: str, body: Any, *, headers: Mapping[str, str] | None = None) -> Any:
        """The same for PATCH (JSON merge patch)."""
        merge = {"Content-Type": "application/merge-patch+json", **(headers or {})}
        return _decoded(self.request("PATCH", path, content=json.dumps(body).encode(), headers=merge))

    def delete(self, path: str, params: Params | None = None, *, headers: Mapping[str, str] | None = None) -> Any:
        """The same for DELETE."""
        return _decoded(self.request("DELETE", path, params=params, headers=headers))

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: Any = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = _SECONDS,
        accept: frozenset[int] = frozenset(),
    ) -> httpx.Response:
        """Sends one request.

        Args:
            body: sent as JSON unless it is None.
            content: raw bytes, sent as they are, instead of ``body``.
            timeout: seconds.
            accept: error statuses that the caller wants to see itself.

        Raises:
            CliError: the gateway cannot be reached, or answers with an error that is not in ``accept``.
        """
        try:
            answer = self._http.request(
                method, path, params=params, json=body, content=content, headers=headers, timeout=timeout
            )
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        if answer.is_success or answer.status_code in accept:
            return answer
        raise self.problem(answer)

    @contextmanager
    def stream(
        self,
        path: str,
        params: Params | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        silence: float | None = None,
    ) -> Iterator[httpx.Response]:
        """An answer that is read piece by piece, for as long as the caller likes.

        Args:
            silence: seconds without a sign of the gateway after which it counts as out of reach; None: any number.
        """
        try:
            timeout = httpx.Timeout(_SECONDS, read=silence)
            with self._http.stream("GET", path, params=params, headers=headers, timeout=timeout) as answer:
                if not answer.is_success:
                    answer.read()
                    raise self.problem(answer)
                yield answer
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: httpx.HTTPError) -> CliError:
        if isinstance(error, httpx.TimeoutException):
            return CliError(
                f"The gateway at {self.url} did not answer in time.",
                f"`{typed('doctor')}` says what is wrong with a local one.",
                ExitCode.UNAVAILABLE,
            )
        if isinstance(error, httpx.ConnectError) and "CERTIFICATE_VERIFY_FAILED" in str(error):
            return CliError(
                f"The certificate of {self.url} is not trusted here.",
                "Set EDGEWRIGHT_CA_BUNDLE to a PEM file with the authority that signed it.",
                ExitCode.UNAVAILABLE,
            )
        if isinstance(error, httpx.ConnectError):
            return CliError(
                f"Nothing answers at {self.url}: the gateway is not running, or out of reach.",
                f"Start a local one with `{starter()}`; EDGEWRIGHT_URL names one elsewhere.",
                ExitCode.UNAVAILABLE,
            )
        return CliError(
            f"The connection to {self.url} failed ({type(error).__name__}).",
            "Try again; if it stays so, look at the gateway's log.",
            ExitCode.UNAVAILABLE,
        )

    def problem(self, answer: httpx.Response) -> CliError:
        """An answer that is not a success, as the error that ends a command."""
        exit_code = _EXIT_BY_STATUS.get(
            answer.status_code, ExitCode.REFUSED if answer.is_client_error else ExitCode.FAILED
        )
        try:
            document = answer.json()
        except ValueError:
            document = None
        if not isinstance(document, dict):
            return CliError(
                f"{self.url} answered {answer.status_code} {answer.reason_phrase}; a gateway answers otherwise.",
                "Check EDGEWRIGHT_URL.",
                exit_code,
            )
        sentence = str(
            document.get("detail") or document.get("title") or f"The gateway answered {answer.status_code}."
        )
        hint = document.get("hint")
        unauthenticated = document.get("code") == Unauthenticated.code
        if answer.status_code == httpx.codes.UNAUTHORIZED and (unauthenticated or not hint):
            # The gateway's own hint speaks of headers; here a file is what can be changed.
            hint = (
                "The token is wrong, expired or revoked; EDGEWRIGHT_TOKEN_FILE names the file that holds it."
                if self._has_token
                else "Set EDGEWRIGHT_TOKEN_FILE to the file that holds your token."
            )
        code = document.get("code")
        return CliError(sentence, str(hint) if hint else None, exit_code, code=str(code) if code else None)


def connect() -> GatewayClient:
    """The gateway that the environment names, or the one that runs on this machine.

    Raises:
        CliError: none is named and none runs here, or there is no token.
    """
    try:
        settings = ClientSettings()
    except ValidationError as error:
        raise of_settings(error) from error
    if settings.url:
        url = checked_url(settings.url, allow_plain_http=settings.allow_plain_http)
        token = read_token(settings.token_file) if settings.token_file else None
        return GatewayClient(url, token, ca_bundle=settings.ca_bundle)
    endpoints = read_endpoints(settings.home)
    if endpoints is None:
        raise CliError(
            f"The gateway is not running on this machine (home: {settings.home}).",
            f"Start it with `{starter()}`; EDGEWRIGHT_URL and EDGEWRIGHT_TOKEN_FILE name one elsewhere.",
            ExitCode.UNAVAILABLE,
        )
    token = read_token(settings.token_file or settings.home / "admin-token")
    return GatewayClient(endpoints.gateway, token, ca_bundle=endpoints.authorities or settings.ca_bundle)


def starter() -> str:
    """How the reader starts a local Edgewright."""
    command = typed("up")
    return "make up" if command.startswith("./bin/") else command


def _decoded(answer: httpx.Response) -> Any:
    if not answer.content:
        return None
    try:
        return answer.json()
    except ValueError as error:
        raise CliError(
            f"{answer.request.url.copy_with(query=None)} answered with something that is not JSON.",
            "Check EDGEWRIGHT_URL.",
        ) from error
