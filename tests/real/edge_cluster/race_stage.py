"""A real Kubernetes cluster and a real centre, on which two runs of a line, or of its uninstallation, meet.

One administrator has both terminals. Flux's kinds are there and nothing that acts on them: what a run makes is seen
as it was made, and the cluster's own controllers collect garbage and end namespaces.
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import subprocess
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
from embedded import EmbeddedEdgewright
from flux_file import sha256_of
from left_behind import marked
from loopback import PLAIN
from supervised import eventually

from edge_cluster.attaching import centre_variables
from edge_cluster.cluster import Cluster, edge_cluster
from edge_cluster.contents import Comparison, Contents, contents
from edge_cluster.controllers import define_flux
from edge_cluster.gate import Gate, GateRequest, gate
from edge_cluster.line import RUN
from edge_cluster.release import release

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ANCHOR = "edgewright-anchor"
SPACE = "edgewright"
PART = "edgewright.dev/part-of"
HELD_SECONDS = 600
PATIENT_KUBECTL = """\
#!/bin/sh
# The real kubectl, which does not give up a request that is held longer than its script would have it wait.
for word; do
  shift
  case $word in --request-timeout=30s) word=--request-timeout={seconds}s ;; esac
  set -- "$@" "$word"
done
exec {kubectl} "$@"
"""
PATIENT_CURL = """\
#!/bin/sh
exec {curl} "$@" --max-time {seconds}
"""
PATIENCE = 300.0
"""Seconds, for a whole run on a machine that has more to do."""


@dataclass(frozen=True)
class Ended:
    """A run that has ended, or was killed."""

    code: int
    said: str


class RacingRun:
    """A run that is under way."""

    def __init__(self, terminal: RaceTerminal, script: str) -> None:
        self._terminal = terminal
        self._running = subprocess.Popen(
            ["sh", "-c", script],
            cwd=terminal.home,
            env=terminal.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )

    def stands(self) -> bool:
        """Whether it stands still at the gate; False: it has ended before."""
        eventually(lambda: self._terminal.gate.reached or self._running.poll() is not None, seconds=PATIENCE)
        return self._terminal.gate.reached

    def end(self) -> Ended:
        """Lets it go on to its end."""
        self._terminal.gate.open()
        said, _ = self._running.communicate(timeout=PATIENCE)
        return Ended(self._running.returncode, said)

    def kill(self) -> None:
        """kill -9, wherever it stands."""
        if self._running.returncode is not None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._running.pid, signal.SIGKILL)
        self._terminal.gate.drop()
        self._running.communicate()


@dataclass
class RaceTerminal:
    """A terminal from which kubectl and curl reach everything through a gate."""

    home: Path
    gate: Gate
    centre: EmbeddedEdgewright
    kubectl: Path
    runs: list[RacingRun] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": f"{self.home / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home),
            "KUBECONFIG": str(self.home / "kubeconfig"),
            **marked(),
            **{name: os.environ[name] for name in ("GOGC",) if name in os.environ},
        }

    def run(self, line: str, *options: str, at: int = 0, loses: bool = False) -> RacingRun:
        """Pastes a line.

        Args:
            at: the number of its request before which it stops; 0: it does not.
            loses: it does not stop there, but gets no answer to it.
        """
        self.gate.shut(at, loses=loses)
        self.runs.append(RacingRun(self, f"{line} | sh -s -- --yes {' '.join(options)}"))
        return self.runs[-1]

    def leave(self) -> None:
        """Kills what still runs here."""
        for run in self.runs:
            run.kill()
        self.runs.clear()

    def prepare(self) -> None:
        (self.home / "bin").mkdir(parents=True)
        curl = shutil.which("curl")
        assert curl, "this needs curl"
        for name, program in (("kubectl", PATIENT_KUBECTL), ("curl", PATIENT_CURL)):
            file = self.home / "bin" / name
            file.write_text(program.format(kubectl=self.kubectl, curl=curl, seconds=HELD_SECONDS))
            file.chmod(0o755)
        (self.home / ".curlrc").write_text(f'proxy = "http://127.0.0.1:{self.gate.port}"\n')


@dataclass
class RaceStage:
    """One cluster of the centre, attached to one Kubernetes cluster again and again."""

    cluster: Cluster
    centre: EmbeddedEdgewright
    uuid: str
    terminals: tuple[RaceTerminal, RaceTerminal]
    before: Contents
    alone: frozenset[str] = frozenset()
    """What a run makes that nobody meets."""
    requests: dict[str, list[GateRequest]] = field(default_factory=dict)
    """What a run, and an uninstallation, asks for when nobody meets it."""

    def line(self) -> str:
        """A fresh one; its token replaces those before it."""
        answer = self.centre.api("POST", f"/v1/cluster/{self.uuid}/registration-token")
        assert answer.status_code == 200, answer.text
        return str(answer.json()["command"]).removesuffix(RUN)

    def rehearse(self) -> None:
        """Counts what a run asks, and an uninstallation."""
        first, _ = self.terminals
        line = self.line()
        for name, options in (("attach", ()), ("uninstall", ("--uninstall",))):
            done = first.run(line, *options).end()
            assert done.code == 0, done.said
            self.requests[name] = list(first.gate.requests)
            if name == "attach":
                self.alone = frozenset(self.made())
        assert self.is_clean()

    @contextmanager
    def without_flux(self) -> Iterator[None]:
        """Until the end of the context nobody has installed Flux, and runs do."""
        usual = self.before, self.alone, dict(self.requests)
        kinds = [
            key for key in self.before if key.startswith("CustomResourceDefinition/") and key.endswith(".fluxcd.io")
        ]
        self.cluster.kubectl("delete", "customresourcedefinition", *(key.rpartition("/")[2] for key in kinds))
        self.before = contents(self.cluster)
        try:
            self.rehearse()
            yield
        finally:
            define_flux(self.cluster)
            self.before, self.alone, self.requests = usual
        eventually(self.is_clean, seconds=PATIENCE)

    def made(self) -> Contents:
        """What bears our mark, and the anchor."""
        found = {key: one for key, one in contents(self.cluster).items() if key not in self.before}
        return {
            key: one
            for key, one in found.items()
            if PART in one["metadata"].get("labels", {}) or key == f"ClusterRole//{ANCHOR}"
        }

    def agent_lives(self) -> None:
        """The agent reports with what it finds: from then on the token that brought it here is spent."""
        beat = self._call("POST", "/v1/agent/heartbeat", self._password("edgewright-agent"), json={})
        assert beat.status_code == 200, beat.text

    def check_attached(self) -> None:
        """Exactly one edge is attached, as if one run had come alone, and it lives on what the centre knows."""
        made = self.made()
        assert made.keys() == self.alone, sorted(made.keys() ^ self.alone)
        anchor = self.cluster.find("clusterrole", ANCHOR)
        space = self.cluster.find("namespace", SPACE)
        assert space["status"]["phase"] == "Active" and "deletionTimestamp" not in space["metadata"]
        owners = {
            owner["uid"]
            for key, one in made.items()
            if key != f"ClusterRole//{ANCHOR}"
            for owner in one["metadata"]["ownerReferences"]
        }
        assert owners == {anchor["metadata"]["uid"]}, "something belongs to an anchor that has gone"
        assert "edgewright.dev/run" not in anchor["metadata"]["annotations"], "it says that a run has not ended"
        assert anchor["metadata"]["labels"]["edgewright.dev/cluster"] == self.uuid
        self.agent_lives()
        flux = self._call(
            "GET", f"/uuid/{self.uuid}/info/refs?service=git-upload-pack", self._password("flux-secrets")
        )
        assert flux.status_code == 200, flux.text
        shown = self.centre.api("GET", f"/v1/cluster/{self.uuid}").json()
        assert shown["acceptance"] == "accepted", shown

    def is_clean(self) -> bool:
        """Whether the Kubernetes cluster is as nobody had come, and nothing is about to go any more."""
        return Comparison(self.cluster, self.before)()

    def end_all(self) -> None:
        """Kills what a meeting that failed has left running."""
        for terminal in self.terminals:
            terminal.leave()

    def reset(self) -> None:
        """As an administrator who deletes what owns the rest, without a script: sooner than an uninstallation."""
        for path in (f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{ANCHOR}", f"/api/v1/namespaces/{SPACE}"):
            answer = self.cluster.http.delete(path)
            assert answer.status_code in {200, 202, 404}, answer.text
        eventually(self.is_clean, seconds=PATIENCE)

    def held(self) -> tuple[str, str]:
        """The credentials that the edge lives on."""
        return self._password("flux-secrets"), self._password("edgewright-agent")

    def _password(self, secret: str) -> str:
        found = self.cluster.find("secret", secret, namespace=SPACE)
        return base64.b64decode(found["data"]["password"]).decode()

    def _call(self, method: str, path: str, password: str, **options: Any) -> httpx.Response:
        url = f"{self.centre.endpoints()['gateway']}{path}"
        return httpx.request(method, url, auth=(self.uuid, password), timeout=60, **PLAIN, **options)


@contextmanager
def stage(folder: Path) -> Iterator[RaceStage]:
    """A stage, until the end of the context.

    Args:
        folder: for homes; it is there and empty.
    """
    with ExitStack() as open_:
        cluster = open_.enter_context(edge_cluster())
        define_flux(cluster)
        centre = EmbeddedEdgewright(folder / "home", centre_variables())
        open_.callback(centre.clear_up)
        centre.up()
        file = release()
        assert centre.api("PUT", "/v1/flux", params={"sha256": sha256_of(file)}, content=file).status_code == 200
        uuid = centre.create("press-shop")
        eventually(lambda: centre.is_ready("press-shop"), seconds=PATIENCE)
        terminals = tuple(_terminal(open_, folder / name, cluster, centre) for name in ("first", "second"))
        made = RaceStage(cluster, centre, uuid, (terminals[0], terminals[1]), contents(cluster))
        made.rehearse()
        yield made


def _terminal(open_: ExitStack, home: Path, cluster: Cluster, centre: EmbeddedEdgewright) -> RaceTerminal:
    home.mkdir()
    made = RaceTerminal(
        home, open_.enter_context(gate(cluster, home / "kubeconfig")), centre, cluster.kubectl.program
    )
    made.prepare()
    open_.callback(made.leave)
    return made
