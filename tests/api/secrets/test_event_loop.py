"""Not even a thousand keys of one Secret hold the gateway's event loop, which all other callers wait for."""

import asyncio
import json
from collections.abc import Coroutine
from uuid import UUID

import httpx
import pytest
from gateway_centre import GatewayCentre
from loop_watch import Called, held_seconds, thread_of
from sealed_values import change, in_git, path

from edgewright.sealing import sealed_secret

KEYS = 1_000
"""As many changes as one request may have."""
MOST = 0.05
"""Seconds of processor time; a worker takes less, too (docs/operations.md)."""


async def longest_hold(request: Coroutine[object, object, httpx.Response]) -> tuple[httpx.Response, float]:
    """The answer, and the longest time for which the request held the loop."""
    with held_seconds() as held:
        answer = await asyncio.create_task(request)
    assert held, "nothing was measured"
    return answer, max(held)


async def test_a_thousand_keys_of_one_secret_do_not_hold_the_gateway(
    centre: GatewayCentre, cluster: UUID, operator: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    bulk, body, yaml = f"/v1/cluster/{cluster}/secret", thousand_keys(), Called()
    for name in ("load_document", "dump_document"):
        monkeypatch.setattr(sealed_secret, name, thread_of(getattr(sealed_secret, name), yaml))
    assert (await operator.put(path(cluster, name="first"), content=b"loads what is loaded once")).is_success
    answer, held = await longest_hold(operator.post(bulk, content=body))
    assert (answer.status_code, held < MOST) == (200, True), f"{held} s: {answer.text}"
    answer, held = await longest_hold(operator.put(path(cluster, "key-0500"), content=b"newer"))
    assert (answer.status_code, held < MOST) == (204, True), f"{held} s: {answer.text}"
    assert yaml.threads
    assert not yaml.by_this_thread, "another machine may take longer than this one"
    values = in_git(centre, cluster, "default", "db")
    assert (len(values), values["key-0500"]) == (KEYS, b"newer")


def thousand_keys() -> bytes:
    changes = [change("db", f"key-{number:04d}", b"v" * 400) for number in range(KEYS)]
    return json.dumps({"changes": changes}).encode()
