"""What is measured. Every measure drives the gateway over HTTP, as users do."""

import asyncio
import base64
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import httpx
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bench.edge_identities import secret_of
from edgewright.domain.cluster import Role

EDGE_STATUS = "747a62c9-1b66-4a2e-8dd9-0b70a91b6b75"


def p50(seconds: list[float]) -> float:
    return statistics.median(seconds)


def p99(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=100, method="inclusive")[98]


async def create(client: httpx.AsyncClient, name: str) -> tuple[str, float]:
    """Creates a cluster; returns its UUID and the seconds until `ready: true` was seen in its setup status."""
    begun = time.perf_counter()
    answer = await client.post("/v1/cluster", json={"name": name})
    answer.raise_for_status()
    uuid: str = answer.json()["uuid"]
    await ready(client, uuid)
    return uuid, time.perf_counter() - begun


async def ready(client: httpx.AsyncClient, uuid: str) -> None:
    """Returns when `ready: true` was seen in a cluster's setup status."""
    while True:
        status = await client.get(f"/v1/cluster/{uuid}/status")
        if status.status_code == 200 and status.json().get("ready"):
            return
        await asyncio.sleep(0.005)


async def created_alone(client: httpx.AsyncClient, count: int) -> list[float]:
    """Seconds to ready of clusters created one after the other."""
    return [(await create(client, f"alone-{uuid4().hex[:12]}"))[1] for _ in range(count)]


async def created_at_once(client: httpx.AsyncClient, count: int) -> float:
    """Seconds until the last of many clusters created at once is ready.

    The list tells, asked every 50 ms: a question for each cluster each 5 ms would be most of the load.
    """
    crowd, begun = f"crowd-{uuid4().hex[:6]}", time.perf_counter()
    answers = await asyncio.gather(
        *(client.post("/v1/cluster", json={"name": f"{crowd}-{number}"}) for number in range(count))
    )
    for answer in answers:
        answer.raise_for_status()
    while True:
        unready = await client.get("/v1/cluster", params={"name": crowd, "ready": False, "limit": 1})
        if not unready.json()["items"]:
            break
        await asyncio.sleep(0.05)
    return time.perf_counter() - begun


@dataclass(frozen=True)
class AttachedCluster:
    """A cluster with the credentials of its edge; as headers, those with which its Flux reads Git."""

    cluster: str
    as_flux: Mapping[str, str]


async def attach(client: httpx.AsyncClient, uuid: str) -> AttachedCluster:
    """Registers an edge for a cluster."""
    return await register(client, uuid, (await bootstrap_url(client, uuid)).partition("token=")[2])


async def register(client: httpx.AsyncClient, uuid: str, token: str) -> AttachedCluster:
    """The same with a registration token, as the bootstrap line does."""
    secrets = {role: secret_of(UUID(uuid), role) for role in Role}
    body = {"kube_system_uid": str(uuid4()), "kubernetes_version": "v1.33.13"}
    body |= {f"{role}_secret": secret for role, secret in secrets.items()}
    (await client.post("/v1/register", json=body, headers={"Authorization": f"Bearer {token}"})).raise_for_status()
    word = base64.b64encode(f"{uuid}:{secrets[Role.FLUX]}".encode()).decode()
    return AttachedCluster(uuid, {"Authorization": f"Basic {word}"})


async def with_certificate(client: httpx.AsyncClient) -> str:
    """A ready cluster that has reported a sealing certificate of 4,096 bits."""
    uuid, _ = await create(client, f"sealed-{uuid4().hex[:12]}")
    status = {"hosts": [], "kubeseal_cert": certificate()}
    (await client.put(f"/v1/app/{EDGE_STATUS}/object/{uuid}", json=status)).raise_for_status()
    return uuid


def certificate() -> str:
    """A sealing certificate of 4,096 bits, PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=4096)
    now = datetime.now(UTC)
    name = x509.Name([])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=3650))
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


async def fill(client: httpx.AsyncClient, uuid: str, start: int, end: int) -> None:
    """Secrets ``start`` to ``end`` (exclusive) of a cluster, in bulk."""
    changes = [
        {"namespace": "default", "name": f"secret-{number}", "key": "password", "value_base64": "czNjcjN0"}
        for number in range(start, end)
    ]
    for first in range(0, len(changes), 100):
        part = changes[first : first + 100]
        (await client.post(f"/v1/cluster/{uuid}/secret", json={"changes": part})).raise_for_status()


async def put_secrets(client: httpx.AsyncClient, uuid: str, count: int) -> list[float]:
    """Seconds of single secret PUTs, one after the other; each answer means committed and on disk."""
    taken: list[float] = []
    for number in range(count):
        begun = time.perf_counter()
        path = f"/v1/cluster/{uuid}/secret/default/secret-{number % 10}/password"
        (await client.put(path, content=uuid4().bytes)).raise_for_status()
        taken.append(time.perf_counter() - begun)
    return taken


async def slowest_answers(client: httpx.AsyncClient, until: asyncio.Event) -> list[float]:
    """Seconds of one light request after the other, until somebody has seen enough."""
    taken: list[float] = []
    while not until.is_set():
        begun = time.perf_counter()
        (await client.get("/ping")).raise_for_status()
        taken.append(time.perf_counter() - begun)
        await asyncio.sleep(0.02)
    return taken


async def bootstrap_url(client: httpx.AsyncClient, uuid: str) -> str:
    """Where the bootstrap script of a cluster is, with a fresh token."""
    issued = (await client.post(f"/v1/cluster/{uuid}/registration-token", json={})).raise_for_status()
    url: str = issued.json()["url"]
    return url


def clone_commit_push(files: int, count: int) -> list[float]:
    """The way of the system before: seconds of clone, one changed file, commit and push by the git program."""
    taken: list[float] = []
    with tempfile.TemporaryDirectory(prefix="edgewright-bench-git-") as folder:
        bare, seed = Path(folder) / "bare.git", Path(folder) / "seed"
        _git("init", "-q", "--bare", "-b", "main", str(bare))
        _git("init", "-q", "-b", "main", str(seed))
        (seed / "secrets").mkdir()
        for number in range(files):
            (seed / "secrets" / f"secret-{number}.yaml").write_text(f"value: {number}\n" * 20)
        _commit(seed, "seed")
        _git("-C", str(seed), "push", "-q", str(bare), "main")
        for number in range(count):
            begun = time.perf_counter()
            work = Path(folder) / f"work-{number}"
            _git("clone", "-q", str(bare), str(work))
            (work / "secrets" / "secret-0.yaml").write_text(f"changed: {number}\n")
            _commit(work, "change")
            _git("-C", str(work), "push", "-q", "origin", "main")
            taken.append(time.perf_counter() - begun)
    return taken


def _commit(folder: Path, subject: str) -> None:
    _git("-C", str(folder), "add", "-A")
    _git("-C", str(folder), "-c", "user.name=b", "-c", "user.email=b@localhost", "commit", "-q", "-m", subject)


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], check=True, stdin=subprocess.DEVNULL)
