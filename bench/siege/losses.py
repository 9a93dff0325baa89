"""After a siege: is everything there that was answered, and unchanged what nobody was allowed to change? Can what was
attacked be deleted?
"""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import httpx
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from sealing_keys import open_envelope

from bench.agent_load import Write
from bench.siege.field import Field, fingerprints_in
from edgewright.adapters.git.bare import BareGitServer
from edgewright.domain.events import EventKind
from edgewright.domain.kubernetes_names import SecretReference
from edgewright.sealing import read_values

PATIENCE = 60.0
PAUSE = 0.1
LEAST_SECONDS = 1.0
"""That one answer may take, even if it is asked for at the end of a deadline."""
DELETION_SECONDS = 20.0
"""In which a cluster that is deleted by force is gone, whatever has been sent to it."""
WELL = {"Available": "True"}
"""Conditions of a cluster whose edge has been heard all the time."""


async def losses(ground: Field, writes: Sequence[Write], *, flooded: bool) -> list[str]:
    """Sentences, one for each promise that does not hold.

    Args:
        writes: of secrets by bystanders, each path's in order.
        flooded: whether the last attack has flooded the hostile cluster with signals.
    """
    cluster = ground.target.cluster
    async with httpx.AsyncClient(base_url=ground.centre.url, headers=ground.centre.headers, trust_env=False) as http:
        found = [each for judged in await asyncio.gather(degraded(http), undeleted(http, cluster)) for each in judged]
        found += await untold_drops(http, cluster) if flooded else []
        found += await _lost_secrets(ground, http, writes)
        found += await _changed_clusters(ground, http)
    return found


def may_be_there(writes: Iterable[Write]) -> dict[str, list[str]]:
    """Path -> the value that was answered last, and those that came after it without an answer."""
    found: dict[str, list[str]] = {}
    for write in writes:
        if write.answered:
            found[write.path] = [write.value]
        elif write.path in found:
            found[write.path].append(write.value)
    return found


def lost_values(
    expected: Mapping[str, Sequence[str]], states: Mapping[str, str], values: Mapping[str, str | None]
) -> list[str]:
    """Secrets that are gone, not sealed for the certificate in use, or not what was answered.

    Args:
        expected: path -> values of which one has to be there.
        states: path -> what the list of secrets says.
        values: path -> what the edge reads; None: nothing that it can open.
    """
    lost = [f"the secret {path} is {states.get(path, 'gone')}" for path in expected if states.get(path) != "current"]
    for path, possible in expected.items():
        value = values.get(path)
        if value is None:
            lost.append(f"the edge cannot open the secret {path}")
        elif value not in possible:
            lost.append(f"the secret {path} has another value than was answered last")
    return lost


def value_on_edge(git: BareGitServer, path: str, key: RSAPrivateKey) -> str | None:
    """What an edge with a sealing key makes of a secret; None: it is not there, or that key does not open it."""
    _, _, _, cluster, _, namespace, name, of_secret = path.split("/")
    head = git.head(UUID(cluster))
    secret = SecretReference(namespace, name)
    document = git.read(UUID(cluster), secret.path, at=head) if head else None
    sealed = read_values(document).get(of_secret) if document else None
    if sealed is None:
        return None
    try:
        return open_envelope(sealed.ciphertext, key, str(secret).encode()).decode()
    except (ValueError, InvalidTag):
        return None


def changed_certificates(before: Mapping[str, str | None], now: Mapping[str, str | None]) -> list[str]:
    """Bystanders whose sealing certificate in use is another one."""
    changed = [cluster for cluster, fingerprint in before.items() if now.get(cluster) != fingerprint]
    return [f"the sealing certificate of {cluster} is not the one that its edge had" for cluster in changed]


def trouble_of(shown: Mapping[str, Any]) -> list[str]:
    """Why a cluster, as the gateway shows it, is not what a bystander's has to be."""
    told = {condition["type"]: condition["status"] for condition in shown["conditions"]}
    trouble = [] if shown["phase"] == "Active" else [f"{shown['name']} is {shown['phase']}"]
    return trouble + [
        f"{shown['name']}: {kind} is {told.get(kind)}" for kind, status in WELL.items() if told.get(kind) != status
    ]


async def degraded(http: httpx.AsyncClient, *, patience: float = DELETION_SECONDS) -> list[str]:
    """What ``/readyz`` still finds wrong in the end: a flood that passes some minutes later has done its harm."""
    until = time.monotonic() + patience
    while found := _wrong_in(await ask(http, "/readyz", until=until)):
        if time.monotonic() > until:
            return found
        await asyncio.sleep(PAUSE)
    return []


def _wrong_in(answer: httpx.Response) -> list[str]:
    if answer.status_code != 200:
        return [f"/readyz answers {answer.status_code}: {answer.text}"]
    return [f"/readyz says that {part} is degraded" for part in answer.json()["degraded"]]


async def undeleted(http: httpx.AsyncClient, cluster: UUID, *, patience: float = DELETION_SECONDS) -> list[str]:
    """Deletes by force the cluster that all attacks were about; the last one has just flooded it.

    Args:
        patience: seconds until it has to be gone.
    """
    until, path = time.monotonic() + patience, f"/v1/cluster/{cluster}"
    while (asked := await ask(http, path, until=until, method="DELETE", force=True)).status_code not in {202, 410}:
        if time.monotonic() > until:
            return [f"the hostile cluster cannot be deleted by force: {asked.status_code}: {asked.text}"]
        await asyncio.sleep(PAUSE)
    while (shown := await ask(http, path, until=until)).status_code != 410:
        if time.monotonic() > until:
            return [f"the hostile cluster, deleted by force, answers {shown.status_code} after {patience:.0f} s"]
        await asyncio.sleep(PAUSE)
    return []


async def untold_drops(http: httpx.AsyncClient, cluster: UUID, *, patience: float = DELETION_SECONDS) -> list[str]:
    """A cluster that dropped signals tells so, at the latest when it is deleted.

    Args:
        patience: seconds until it has to be told.
    """
    until, after = time.monotonic() + patience, 0
    while True:
        answer = await ask(http, f"/v1/cluster/{cluster}/timeline", until=until, after=after)
        page: dict[str, Any] = answer.json() if answer.status_code == 200 else {"items": [], "next": None}
        if any(item["kind"] == EventKind.SIGNALS_DROPPED for item in page["items"]):
            return []
        if page["next"] is not None:
            after = page["next"]
            continue
        if time.monotonic() > until:
            return ["signal-flood: the cluster has told of no signals that it dropped"]
        await asyncio.sleep(PAUSE)


async def ask(
    http: httpx.AsyncClient, path: str, *, until: float, method: str = "GET", **parameters: str | int | bool
) -> httpx.Response:
    """An answer; 503 where none comes: a busy gateway and one that is away are asked again alike.

    Args:
        until: moment of the monotonic clock until which the answer counts.
    """
    try:
        left = max(until - time.monotonic(), LEAST_SECONDS)
        return await http.request(method, path, params=parameters, timeout=left)
    except httpx.HTTPError as error:
        return httpx.Response(503, text=f"no answer: {type(error).__name__} {error}".strip())


async def _lost_secrets(ground: Field, http: httpx.AsyncClient, writes: Sequence[Write]) -> list[str]:
    expected, states = may_be_there(writes), dict[str, str]()
    for cluster in sorted({path.split("/")[3] for path in expected}):
        until = time.monotonic() + PATIENCE
        while (answer := await ask(http, f"/v1/cluster/{cluster}/secret", until=until)).status_code != 200:
            if time.monotonic() > until:
                break
            await asyncio.sleep(PAUSE)
        for item in answer.json()["items"] if answer.status_code == 200 else []:
            path = f"/v1/cluster/{cluster}/secret/{item['namespace']}/{item['name']}/{item['key']}"
            states[path] = item["state"]
    git = BareGitServer(ground.centre.home / "repositories")
    values = {path: value_on_edge(git, path, ground.sealing_key) for path in expected}
    return lost_values(expected, states, values)


async def _changed_clusters(ground: Field, http: httpx.AsyncClient) -> list[str]:
    """No bystander is deleted, silent or has another sealing certificate; asked until the centre has settled."""
    until = time.monotonic() + PATIENCE
    while trouble := [each for uuid in ground.task.clusters for each in await _trouble(http, UUID(uuid), until)]:
        if time.monotonic() > until:
            break
        await asyncio.sleep(1)
    now = fingerprints_in(ground.centre.home, ground.task.clusters)
    return trouble + changed_certificates(ground.fingerprints, now)


async def _trouble(http: httpx.AsyncClient, cluster: UUID, until: float) -> list[str]:
    answer = await ask(http, f"/v1/cluster/{cluster}", until=until)
    return trouble_of(answer.json()) if answer.status_code == 200 else [f"{cluster} answers {answer.status_code}"]
