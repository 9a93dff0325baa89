"""Has the edge's own controller seal anew what the centre asks for, beside the heartbeats.

Nothing of it is kept: what the centre has not taken, it asks for again. No plaintext comes here, and nothing on the
edge is changed.
"""

import asyncio
import hashlib
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from edgewright.agent.sealing_controller import SealedSecret, Unreadable
from edgewright.agent.transitions import Transitions
from edgewright.errors import EdgewrightError, Waiting

MOST_SECRETS = 20
"""In one body, so that progress is seen and little is done twice."""
LARGEST_BODY = 256 * 1024
"""Bytes of ciphertext from which a body is sent; a heartbeat waits for it."""


class SealedSecretReader(Protocol):
    """What is asked of the Kubernetes cluster; may raise an ``EdgewrightError``."""

    async def sealed_secret(self, namespace: str, name: str) -> SealedSecret | None: ...


class ResealingController(Protocol):
    """See ``sealing_controller.SealingController``."""

    async def reseal(self, secret: SealedSecret) -> Mapping[str, str]: ...


class ResealingCentre(Protocol):
    """The centre; may raise an ``EdgewrightError``."""

    async def resealed(self, fingerprint: str, secrets: Sequence[Mapping[str, Any]]) -> Sequence[str]: ...


class Resealer:
    """Has the controller of one edge seal anew what the centre asks for.

    Args:
        certificate: asks sealed-secrets for its certificate, PEM.
    """

    def __init__(
        self, edge: SealedSecretReader, controller: ResealingController, certificate: Callable[[], Awaitable[str]]
    ) -> None:
        self._edge = edge
        self._controller = controller
        self._certificate = certificate
        self._matter = Transitions("resealing")
        self._asked = asyncio.Event()
        self._wanted: Sequence[str] = ()
        self._centre: ResealingCentre | None = None

    def want(self, secrets: Sequence[str], centre: ResealingCentre) -> None:
        """What an answer to a heartbeat asks for. While a round is under way it is that round's already."""
        self._wanted, self._centre = secrets, centre
        if secrets:
            self._asked.set()

    async def run(self) -> None:
        """Re-seals what is asked for until it is cancelled."""
        while True:
            await self._asked.wait()
            centre = self._centre
            try:
                if centre is not None:
                    await self._round(self._wanted, centre)
            except EdgewrightError as trouble:
                self._matter.trouble("interrupted", detail=trouble.detail, code=trouble.code)
            else:
                self._matter.well("done")
            self._asked.clear()  # what was asked for meanwhile is done, or is asked for again

    async def _round(self, wanted: Sequence[str], centre: ResealingCentre) -> None:
        """Goes on for as long as the centre wants something that was not tried yet."""
        tried: set[str] = set()
        while left := [secret for secret in wanted if secret not in tried]:
            self._matter.well("under_way")
            fingerprint = fingerprint_of(await self._certificate())
            answers, trouble = await self._batch(left)
            if fingerprint_of(await self._certificate()) != fingerprint:
                continue  # nobody knows with which of the two it was sealed
            tried.update(f"{each['namespace']}/{each['name']}" for each in answers)
            if answers:
                wanted = await centre.resealed(fingerprint, answers)
            if trouble is not None:
                raise trouble

    async def _batch(self, secrets: Sequence[str]) -> tuple[list[dict[str, Any]], EdgewrightError | None]:
        """What one body holds, and what has kept it from being more."""
        answers: list[dict[str, Any]] = []
        size = 0
        for secret in secrets[:MOST_SECRETS]:
            try:
                answer = await self._answer(secret)
            except EdgewrightError as trouble:
                return answers, trouble
            answers.append(answer)
            size += sum(len(value["ciphertext"]) for value in answer["values"].values())
            if size >= LARGEST_BODY:
                break
        return answers, None

    async def _answer(self, secret: str) -> dict[str, Any]:
        """What the centre is told of one Secret."""
        namespace, _, name = secret.partition("/")
        found = await self._edge.sealed_secret(namespace, name)
        values: Mapping[str, str] = {}
        if found is not None and found.values:
            values = await self._resealed(found)
        held = {} if found is None else found.values
        return {
            "namespace": namespace,
            "name": name,
            "values": {
                key: {"old_sha256": _digest(held[key]), "ciphertext": ciphertext}
                for key, ciphertext in values.items()
            },
            "unreadable": {key: _digest(held[key]) for key in held if key not in values},
            "absent": found is None,
        }

    async def _resealed(self, secret: SealedSecret) -> Mapping[str, str]:
        """Every value that can be opened. One that cannot blocks the others, so they are tried one by one then."""
        try:
            return await self._controller.reseal(secret)
        except Unreadable:
            if len(secret.values) == 1:
                return {}
        values: dict[str, str] = {}
        for key in secret.values:
            try:
                values |= await self._controller.reseal(secret.only(key))
            except Unreadable:
                continue
        return values


def fingerprint_of(pem: str) -> str:
    """SHA-256 of a certificate (DER), hexadecimal.

    Raises:
        Waiting: ``no_sealing_certificate``: it is none.
    """
    try:
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem.strip())).hexdigest()
    except ValueError:
        raise Waiting("What sealed-secrets gives is no certificate.", code="no_sealing_certificate") from None


def _digest(ciphertext: str) -> str:
    return hashlib.sha256(ciphertext.encode()).hexdigest()
