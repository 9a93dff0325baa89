"""Every client of agent and detacher says who asks, so that logs of a centre, a proxy or an API server tell."""

from __future__ import annotations

import base64
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from scripted_centre import QuickClock, ScriptedCentre

from edgewright import __version__
from edgewright.agent.attachment import Attachment
from edgewright.agent.centre import Centre
from edgewright.agent.cluster_objects import NAMESPACES, ClusterObjects
from edgewright.agent.sealing_certificate import SealingCertificateSource
from edgewright.agent.sealing_controller import SealedSecret, SealingController
from edgewright.errors import EdgewrightError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

NAME = f"edgewright-agent/{__version__}"


async def ask_as_detacher(_url: str) -> None:
    objects = ClusterObjects()
    try:
        await objects.of(NAMESPACES)
    finally:
        await objects.close()


async def ask_the_centre(url: str) -> None:
    centre = Centre(Attachment("cluster", "ewa_secret", url, "cluster", 1))
    try:
        await centre.put_status({"hosts": []})
    finally:
        await centre.close()


async def ask_for_the_certificate(url: str) -> None:
    source = SealingCertificateSource(url)
    try:
        await source()
    finally:
        await source.close()


async def ask_to_open(url: str) -> None:
    controller = SealingController(url, QuickClock(lasts=60))
    try:
        await controller.opens(SealedSecret("default", "db", {}, {"key": base64.b64encode(b"v").decode()}))
    finally:
        await controller.close()


@pytest.mark.usefixtures("kubeconfig")
@pytest.mark.parametrize("ask", [ask_as_detacher, ask_the_centre, ask_for_the_certificate, ask_to_open])
async def test_every_client_says_who_asks(centre: ScriptedCentre, ask: Callable[[str], Awaitable[None]]) -> None:
    with suppress(EdgewrightError):  # what it makes of the answer is no matter here
        await ask(centre.url)
    assert centre.requests
    assert {request.headers["User-Agent"] for request in centre.requests} == {NAME}
