"""The gateway as the commands see it: found by itself, spoken to in JSON, its problems turned into sentences."""

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from edgewright.cli.client_settings import Destination, Origin, exposed_contexts, find_destination, trust
from edgewright.cli.connecting import not_a_gateway, unreachable
from edgewright.cli.failures import CliError, of_status
from edgewright.cli.invocation import typed
from edgewright.domain.hosts import is_loopback
from edgewright.errors import Unauthenticated

Params = Mapping[str, str | int | float | bool | Sequence[str]]

_SECONDS = 30.0


class GatewayClient:
    """An open connection. Every call raises ``CliError`` unless it succeeds.

    Args:
        url: base URL without a trailing slash.
        token: operator token; None: none is sent.
        destination: what named this gateway, for messages; None: nobody did, the caller knows it.
        transport: stands in for the network in tests.
    """

    def __init__(
        self,
        url: str,
        token: str | None,
        *,
        ca_bundle: Path | None = None,
        destination: Destination | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.url = url
        self._destination = destination or Destination(Origin.ENVIRONMENT, url, token, ca_bundle=ca_bundle)
        self._http = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"} if token else {},
            # Reading the authorities takes longer than a request; where nothing is encrypted they are not needed.
            verify=url.startswith("https:") and trust(self._destination.ca_bundle, self._destination.ca_certificates),
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
        return self.decoded(self.request("GET", path, params=params, timeout=timeout))

    def post(self, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None) -> Any:
        """The JSON that a POST of JSON is answered with; None for an empty answer."""
        return self.decoded(self.request("POST", path, body=body, headers=headers))

    def put(self, path: str, body: Any = None) -> Any:
        """The same for PUT."""
        return self.decoded(self.request("PUT", path, body=body))

    def patch(self, path: str, body: Any, *, headers: Mapping[str, str] | None = None) -> Any:
        """The same for PATCH (JSON merge patch)."""
        merge = {"Content-Type": "application/merge-patch+json", **(headers or {})}
        return self.decoded(self.request("PATCH", path, content=json.dumps(body).encode(), headers=merge))

    def delete(self, path: str, params: Params | None = None, *, headers: Mapping[str, str] | None = None) -> Any:
        """The same for DELETE."""
        return self.decoded(self.request("DELETE", path, params=params, headers=headers))

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
            raise unreachable(self._destination, error) from error
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
        with self.opened("GET", path, params=params, headers=headers, silence=silence) as answer:
            if not answer.is_success:
                answer.read()
                raise self.problem(answer)
            yield answer

    @contextmanager
    def opened(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        silence: float | None = None,
    ) -> Iterator[httpx.Response]:
        """An answer of any status, read while it comes.

        Args:
            silence: as ``stream`` has it.

        Raises:
            CliError: the gateway cannot be reached, or the answer breaks off.
        """
        try:
            timeout = httpx.Timeout(_SECONDS, read=silence)
            with self._http.stream(
                method, path, params=params, content=content, headers=headers, timeout=timeout
            ) as answer:
                yield answer
        except httpx.HTTPError as error:
            raise unreachable(self._destination, error) from error

    def problem(self, answer: httpx.Response) -> CliError:
        """An answer that is not a success, as the error that ends a command."""
        try:
            document = answer.json()
        except ValueError:
            document = None
        if not isinstance(document, dict):
            return not_a_gateway(self._destination, answer)
        sentence = str(
            document.get("detail") or document.get("title") or f"The gateway answered {answer.status_code}."
        )
        hint = document.get("hint")
        unauthenticated = document.get("code") == Unauthenticated.code
        if answer.status_code == httpx.codes.UNAUTHORIZED and (unauthenticated or not hint):
            # The gateway's own hint speaks of headers; here a file or a context is what can be changed.
            hint = self._token_hint()
        code = document.get("code")
        return CliError(
            sentence, str(hint) if hint else None, of_status(answer.status_code), code=str(code) if code else None
        )

    def decoded(self, answer: httpx.Response) -> Any:
        """The JSON of an answer; None for an empty one.

        Raises:
            CliError: it is something else.
        """
        if not answer.content:
            return None
        try:
            return answer.json()
        except ValueError as error:
            raise not_a_gateway(self._destination, answer) from error

    def _token_hint(self) -> str:
        destination = self._destination
        wrong = "The token is wrong, expired or revoked"
        if destination.token is None:
            return f"Set EDGEWRIGHT_TOKEN_FILE to the file that holds your token, or use `{typed('login')}`."
        if destination.context:
            return f"{wrong}; log in again: `{typed(f'login --context {destination.context}')}`."
        if destination.token_source == "EDGEWRIGHT_TOKEN":  # noqa: S105 - the name of a variable
            return f"{wrong}; EDGEWRIGHT_TOKEN holds it."
        return f"{wrong}; EDGEWRIGHT_TOKEN_FILE names the file that holds it."


def connect() -> GatewayClient:
    """The gateway that the command line, the environment, the current context or this machine names.

    Warns of a token that other users can read.

    Raises:
        CliError: none is named and none runs here, or there is no token.
    """
    destination = find_destination()
    if destination.context and (exposed := exposed_contexts()):
        sys.stderr.write(
            f"Warning: other users of this machine can read {exposed}, which holds your tokens.\n"
            f"  Run: chmod 600 {shlex.quote(str(exposed))}\n"
        )
    return connected(destination)


def connected(destination: Destination) -> GatewayClient:
    """A client of one gateway."""
    return GatewayClient(destination.url, destination.token, destination=destination)
