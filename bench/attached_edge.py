"""One edge, from the pasted line on: a centre and a Kubernetes cluster, both real, and the agent as a process.

No image is pulled: Flux runs as processes, and the agent is started when the script has ended, as a kubelet would
that has its image. Flux fetches when the agent asks it to, which waits for the centre.
"""

import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from edge_cluster.agent import AgentProcess
from edge_cluster.cluster import Cluster, edge_cluster
from edge_cluster.controllers import SealedSecrets, install_flux
from edge_cluster.line import BootstrapLine
from edge_cluster.site import running_flux
from embedded import EmbeddedEdgewright

from bench.delivery_legs import watch_deliveries

PATIENCE = 120.0
IMAGE = "registry.invalid/edgewright:1"
"""The script installs the agent only from an image; nobody pulls it."""
LOOK_SECONDS = 15
SECRETS = 101
"""The first one waits for Flux to learn of the kinds in the repository, and is left out."""
IDLE_SECONDS = 300.0
LISTED = {
    **dict.fromkeys(("nodes", "gitrepositories", "kustomizations", "helmreleases"), "LIST"),
    "secrets": "GET",
}
"""What the agent asks the API server for; nobody else asks so while all others watch."""
_REQUESTS = re.compile(r"apiserver_request_total\{(?P<labels>[^}]*)\} (?P<number>[0-9.e+]+)")
_CALLS = re.compile(r'edgewright_http_requests_total\{[^}]*route="/v1/agent/[^}]*\} (?P<number>[0-9.e+]+)')


@dataclass(frozen=True)
class AttachTimes:
    """Seconds from Enter until the script ended, the centre said *Available*, a secret was decrypted on the edge.

    Args:
        accepted: until the centre took that secret.
        written: seconds of a PUT; ``delivered``: from its begin until the Secret is there.
        legs: of each of these, as ``LEGS`` names them; without those of which too little was seen.
    """

    script: float
    available: float
    accepted: float
    decrypted: float
    written: list[float]
    delivered: list[float]
    legs: list[list[float]]


@dataclass(frozen=True)
class Idle:
    """An agent to which nothing happens.

    Args:
        megabytes: resident, at the end.
        centre, kubernetes: requests in an hour.
    """

    megabytes: float
    centre: float
    kubernetes: float


class MeasuredEdge:
    """A Kubernetes cluster with sealed-secrets and Flux, beside a centre with a cluster for it."""

    def __init__(self, folder: Path, centre: EmbeddedEdgewright, cluster: Cluster) -> None:
        self._folder, self._centre, self._cluster = folder, centre, cluster
        sealed_secrets = SealedSecrets(cluster)
        sealed_secrets.start()
        self.agent = AgentProcess(cluster, sealing_url=sealed_secrets.url, look_seconds=LOOK_SECONDS)
        self._uuid = centre.create("edge")
        _until(lambda: centre.is_ready("edge"))

    def attach(self) -> AttachTimes:
        """Pastes the line."""
        line = BootstrapLine(self._centre, self._cluster, self._uuid, self._folder)
        begun = time.perf_counter()
        done = line.run()
        assert done.returncode == 0, done.stdout + done.stderr
        script = time.perf_counter() - begun
        self.agent.start()
        _until(self._is_available)
        available = time.perf_counter() - begun
        with self._awaited("secret-0") as there:
            _until(lambda: self._put("secret-0"))
            accepted = time.perf_counter() - begun
            decrypted = there() - begun
        seen = watch_deliveries(self._cluster.http)
        times = [self._delivered(f"secret-{number}") for number in range(1, SECRETS)]
        return AttachTimes(
            script=script,
            available=available,
            accepted=accepted,
            decrypted=decrypted,
            written=[answered - begun for begun, answered, _ in times],
            delivered=[there - begun for begun, _, there in times],
            legs=[
                legs
                for number, (begun, answered, _) in enumerate(times, 1)
                if (legs := seen.legs(f"secret-{number}", begun, answered))
            ],
        )

    def rest(self) -> Idle:
        """Counts what the agent asks while nothing happens."""
        begun, before = time.monotonic(), (self._calls(), self._questions())
        time.sleep(IDLE_SECONDS)
        hours = (time.monotonic() - begun) / 3600
        after = (self._calls(), self._questions())
        return Idle(self.agent.resident / 1e6, (after[0] - before[0]) / hours, (after[1] - before[1]) / hours)

    def _delivered(self, name: str) -> tuple[float, float, float]:
        """When the PUT begun, when it was answered, and when the Secret was there."""
        with self._awaited(name) as there:
            begun = time.perf_counter()
            assert self._put(name)
            return begun, time.perf_counter(), there()

    def _is_available(self) -> bool:
        conditions = self._centre.api("GET", f"/v1/cluster/{self._uuid}").json()["conditions"]
        return any(each["type"] == "Available" and each["status"] == "True" for each in conditions)

    def _put(self, name: str) -> bool:
        """Whether the centre took it: it does from the moment on that it has the edge's certificate."""
        path = f"/v1/cluster/{self._uuid}/secret/default/{name}/password"
        return self._centre.api("PUT", path, content=b"s3cr3t").status_code == 204

    @contextmanager
    def _awaited(self, name: str) -> Iterator[Callable[[], float]]:
        """Watches for a Secret from now on; what is given returns when it was there, by the performance counter."""

        def wait() -> float:
            wanted = ("--for=create", f"secret/{name}", f"--timeout={PATIENCE:.0f}s")
            self._cluster.kubectl("wait", *wanted, "--namespace", "default")
            return time.perf_counter()

        with ThreadPoolExecutor(1) as threads:
            there = threads.submit(wait)
            time.sleep(0.5)  # until kubectl watches
            yield there.result

    def _calls(self) -> float:
        """Counts the agent's requests that the centre has answered."""
        told = self._centre.api("GET", "/metrics").text
        return sum(float(call["number"]) for call in _CALLS.finditer(told))

    def _questions(self) -> float:
        """Counts the agent's requests that the API server has answered."""
        asked: defaultdict[tuple[str, str], float] = defaultdict(float)
        for request in _REQUESTS.finditer(self._cluster.kubectl("get", "--raw", "/metrics")):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', request["labels"]))
            asked[labels["resource"], labels["verb"]] += float(request["number"])
        return sum(asked[kind] for kind in LISTED.items())


@contextmanager
def new_edge() -> Iterator[MeasuredEdge]:
    """One that is not attached yet, and its centre; both are stopped and removed at the end."""
    with tempfile.TemporaryDirectory(prefix="edgewright-bench-") as made, edge_cluster(_silent) as cluster:
        folder = Path(made)
        variables = {"EDGEWRIGHT_DEMO": "0", "EDGEWRIGHT_AGENT_IMAGE": IMAGE}
        centre = EmbeddedEdgewright(folder / "home", variables)
        agent = None
        try:
            centre.up()
            install_flux(cluster)
            with running_flux(cluster, folder / "fetched"):
                edge = MeasuredEdge(folder, centre, cluster)
                agent = edge.agent
                yield edge
        finally:
            if agent is not None:
                agent.clear_up()
            centre.clear_up()


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "the edge does not get so far; see the logs in its folder"
        time.sleep(0.02)


def _silent(_line: str) -> None:
    """The table is all that is printed."""
