"""Stands in for the kubelet: what a pod would run is a process of this machine, under the pod's ServiceAccount.

A pod of an account that has a program here begins when it is there, with the variables of its specification, and
begins again when it dies. When it goes it gets SIGTERM, and SIGKILL when its grace is over. So a Deployment that is
made, scaled or deleted starts and ends the real program.

It binds a pod to the node as soon as its program is ready and the command of its readiness probe succeeds beside it.
kwok then writes that the pod is ready, so that its Deployment is available, or ends the pod that this one replaces.
Until then the pod is Pending where a kubelet would say Running, and not ready; once ready it stays so. A pod of any
other account is bound at once, and has no process.
"""

import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

import httpx
from pod_environment import arguments_of, variables_of

from edge_cluster.cluster import NODE_NAME, READY_SECONDS, Cluster
from edge_cluster.kubectl import surroundings
from edge_cluster.pods import beside, pod

LOOK_SECONDS = 0.4
RESTART_SECONDS = 0.5
NOT_NOW = (httpx.HTTPError, RuntimeError, subprocess.TimeoutExpired)
"""The API server is away, or an account or a Secret of the pod is not there: there is a next look."""


@dataclass(frozen=True)
class Program:
    """What runs in the pods of one account, or from one image.

    Args:
        command: the arguments of the pod's container come behind it.
        variables: what only a network of pods would make needless, such as the address of a service; read at each
            start.
        options: the same, behind the arguments of the container, of which the last one counts.
        ready: whether it serves, where its pod has a probe.
    """

    command: Sequence[str | Path]
    variables: Mapping[str, str] = field(default_factory=dict)
    options: Sequence[str] = ()
    ready: Callable[[], bool] = lambda: True


@dataclass
class _Container:
    """The process of a pod that runs now, or has run last.

    Args:
        grace: seconds between SIGTERM and SIGKILL.
    """

    account: str
    grace: float
    process: "subprocess.Popen[bytes]"
    grace_ends: float | None = None
    found_dead: float | None = None

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    def ends(self) -> bool:
        """Told to end at first, killed when its grace is over; whether it has ended."""
        if self.runs and self.grace_ends is None:
            self.grace_ends = time.monotonic() + self.grace
            self.process.terminate()
        if self.grace_ends is not None and time.monotonic() >= self.grace_ends:
            self.kill()
        return not self.runs

    def may_begin_again(self) -> bool:
        """It is dead, and has been for a moment."""
        if self.runs:
            return False
        self.found_dead = self.found_dead or time.monotonic()
        return time.monotonic() - self.found_dead >= RESTART_SECONDS

    def kill(self) -> None:
        """kill -9 of all that it has started."""
        if self.runs:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class Kubelet:
    """Runs the pods of a cluster while it is open as a context.

    Args:
        programs: by the name of the ServiceAccount, or by an image, which counts more.
    """

    def __init__(self, cluster: Cluster, programs: Mapping[str, Program]) -> None:
        self._cluster = cluster
        self._programs = programs
        self._containers: dict[str, _Container] = {}
        self._environments: dict[str, Mapping[str, str]] = {}
        self._starts: Counter[str] = Counter()
        self._kept_out: set[str] = set()
        self._turn, self._over, self._unplugged = threading.Lock(), threading.Event(), False
        self._thread = threading.Thread(target=self._run, daemon=True)
        identity = cluster.authority.client("kubelet", "system:masters")
        trusted = ssl.create_default_context(cafile=cluster.authority.identity.certificate)
        trusted.load_cert_chain(identity.certificate, identity.key)
        self._http = httpx.Client(base_url=cluster.url, verify=trusted, trust_env=False, timeout=10)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_raised: object) -> None:
        """Leaves no process behind."""
        self._over.set()
        self._thread.join()
        while [each for each in self._containers.values() if not each.ends()]:
            time.sleep(LOOK_SECONDS)
        self._http.close()

    def runs(self, account: str) -> bool:
        """Whether a pod of that account has a process."""
        with self._turn:
            return bool(self._of(account))

    def starts(self, account: str) -> int:
        """How often a process was started in pods of that account."""
        with self._turn:
            return self._starts[account]

    def environment(self, account: str) -> Mapping[str, str]:
        """What the last pod of an account was given beside what every process gets."""
        return self._environments.get(account, {})

    def log(self, account: str) -> str:
        """What its pods have printed, one after the other."""
        file = self._log(account)
        return file.read_text() if file.exists() else ""

    def kill(self, account: str) -> None:
        """kill -9; it begins again."""
        with self._turn:
            running = self._of(account)
            assert running, f"no pod of {account} runs"
            for container in running:
                container.kill()

    @contextmanager
    def without(self, account: str) -> Iterator[None]:
        """Pods of that account are killed, and are there without a process until the end of the context."""
        with self._turn:
            self._kept_out.add(account)
            for container in self._of(account):
                container.kill()
        try:
            yield
        finally:
            with self._turn:
                self._kept_out.discard(account)

    @contextmanager
    def paused(self, account: str) -> Iterator[None]:
        """Pods of that account stand still until the end of the context; whoever had a lease may begin again then."""
        with self._turn:
            running = self._of(account)
            assert running, f"no pod of {account} runs"
            for container in running:
                os.killpg(container.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for container in running:
                with suppress(ProcessLookupError):
                    os.killpg(container.process.pid, signal.SIGCONT)

    @contextmanager
    def unplugged(self) -> Iterator[None]:
        """No power: pods and the whole cluster are gone at once. With it back all starts on what is on the disk."""
        supervisor = self._cluster.supervisor
        names = [log.stem for log in (self._cluster.folder / "logs").glob("*.log")]
        running = {name: pid for name in names if (pid := supervisor.pid_of(name))}
        with self._turn:
            self._unplugged = True
            for pid in running.values():
                os.kill(pid, signal.SIGKILL)
            for container in self._containers.values():
                container.kill()
        try:
            yield
        finally:
            # One that is there before the API server knows everything ends once more: nobody looks after it later.
            for name in running:
                supervisor.wait_ready(name, seconds=READY_SECONDS)
            with self._turn:
                self._unplugged = False

    def _of(self, account: str) -> list[_Container]:
        return [each for each in self._containers.values() if each.account == account and each.runs]

    def _log(self, account: str) -> Path:
        return self._cluster.folder / "logs" / f"{account}.log"

    def _run(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            with suppress(*NOT_NOW):  # pods run on without the API server
                found = self._http.get("/api/v1/pods").raise_for_status().json()["items"]
                with self._turn:
                    if not self._unplugged:
                        self._look(found)

    def _look(self, found: Sequence[Mapping[str, Any]]) -> None:
        wanted = {each["metadata"]["uid"]: each for each in found if self._is_wanted(each)}
        for uid in [uid for uid, each in self._containers.items() if uid not in wanted and each.ends()]:
            del self._containers[uid]
        # Where pods are bound to nodes, one that is told to end is there until it has ended, and its successor waits.
        ending = {each.account for uid, each in self._containers.items() if uid not in wanted}
        for uid, each in wanted.items():
            known = self._containers.get(uid)
            if _account(each) not in ending and (known is None or known.may_begin_again()):
                with suppress(*NOT_NOW):
                    self._begin(uid, each)
        for each in found:
            if self._is_to_be_bound(each):
                self._bind(each)

    def _is_to_be_bound(self, found: Mapping[str, Any]) -> bool:
        if "nodeName" in found["spec"] or "deletionTimestamp" in found["metadata"]:
            return False
        program, container = self._program(found), self._containers.get(found["metadata"]["uid"])
        if program is None or container is None:
            return program is None
        return container.runs and program.ready() and _passes(found, container.process.pid)

    def _program(self, found: Mapping[str, Any]) -> Program | None:
        [container, *_] = found["spec"]["containers"]
        return self._programs.get(container["image"]) or self._programs.get(_account(found))

    def _bind(self, found: Mapping[str, Any]) -> None:
        metadata = found["metadata"]
        node = {"apiVersion": "v1", "kind": "Node", "name": NODE_NAME}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": metadata["name"]}, "target": node}
        self._http.post(f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/binding", json=binding)

    def _is_wanted(self, found: Mapping[str, Any]) -> bool:
        known = self._program(found) is not None and _account(found) not in self._kept_out
        return known and "deletionTimestamp" not in found["metadata"]

    def _begin(self, uid: str, found: Mapping[str, Any]) -> None:
        account, namespace = _account(found), found["metadata"]["namespace"]
        program, [container] = self._program(found), found["spec"]["containers"]
        assert program is not None, account
        given = dict(variables_of(found, container, partial(self._secret, namespace)))
        command = [*program.command, *arguments_of(container, given), *program.options]
        started = pod(self._cluster, namespace, account, command)
        own = {"TMPDIR": str(self._cluster.folder / "tmp" / uid)}  # as in a pod: nobody else clears it away
        Path(own["TMPDIR"]).mkdir(parents=True, exist_ok=True)
        with self._log(account).open("ab") as log:
            process = subprocess.Popen(
                [str(word) for word in started.command],
                env={**surroundings(), **own, **started.environment, **program.variables, **given},
                cwd=self._cluster.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._containers[uid] = _Container(account, found["spec"]["terminationGracePeriodSeconds"], process)
        self._environments[account] = given
        self._starts[account] += 1

    def _secret(self, namespace: str, name: str) -> Mapping[str, str] | None:
        answer = self._http.get(f"/api/v1/namespaces/{namespace}/secrets/{name}")
        if answer.status_code == httpx.codes.NOT_FOUND:
            return None
        data: Mapping[str, str] = answer.raise_for_status().json().get("data") or {}
        return data


def _passes(found: Mapping[str, Any], pid: int) -> bool:
    """Whether the readiness probe of a pod does. One that asks a port asks another here: see ``Program.ready``."""
    [container] = found["spec"]["containers"]
    probe = container.get("readinessProbe", {}).get("exec")
    if probe is None:
        return True
    python, *arguments = probe["command"]
    assert python == "python", probe
    done = subprocess.run([*beside(pid), sys.executable, *arguments], capture_output=True, timeout=10, check=False)
    return done.returncode == 0


def _account(found: Mapping[str, Any]) -> str:
    return str(found["spec"].get("serviceAccountName", ""))
