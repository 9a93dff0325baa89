"""An edge to run the bootstrap script on: a stand-in for kubectl, what the centre answers, real shells."""

import base64
import json
import os
import shutil
import stat
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from bootstrap_runs import BootstrapRun
from stand_in_kubectl import KubectlState

from edgewright.bootstrap import BootstrapInput, render_script

CLUSTER = UUID("0e7a1d3c-93f7-4a52-8a5e-3f0f5f5f9a10")
TOKEN = "reg.7hVn0s3cr3t-T0ken_marker"
KUBE_SYSTEM_UID = "5d3c0f0a-6c3e-4c61-9c7e-0a54b1f0aa01"
FLUX_KINDS = ("gitrepositories.source.toolkit.fluxcd.io", "kustomizations.kustomize.toolkit.fluxcd.io")
HELM_RELEASES = "helmreleases.helm.toolkit.fluxcd.io"
SELF_LINK = """---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata:
  name: self-link
  namespace: edgewright
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: self-link
  namespace: edgewright
"""
COLLECTING = 5
"""Calls of the stand-in after which everything is gone that has lost its owner."""
TOOLS = ("base64", "cat", "curl", "env", "grep", "mkdir", "mktemp", "od", "rm", "sed", "sleep", "tr", "wc")


def _shells() -> dict[str, list[str]]:
    """The POSIX shells to run under: this machine's sh, or all that EDGEWRIGHT_TEST_SHELLS names.

    `busybox` brings its own sed, tr, od and so on: that machine is like an Alpine one.
    """
    commands = {}
    for name in os.environ.get("EDGEWRIGHT_TEST_SHELLS", "sh").split(","):
        path = shutil.which(name)
        assert path, f"the shell {name!r} is demanded and is not on this machine"
        commands[name] = [path, "ash"] if name == "busybox" else [path]
    return commands


SHELLS = _shells()


@dataclass
class RegistrationServer:
    """A real HTTP server that answers registrations as it is told."""

    answers: list[tuple[int, str] | None] = field(default_factory=list)
    """Given in order, the last one for good; None takes the request and drops the connection."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    fetched: list[tuple[str, str | None]] = field(default_factory=list)
    pages: dict[str, str] = field(default_factory=dict)
    url: str = ""
    decide: Callable[[dict[str, Any]], tuple[int, dict[str, str]]] | None = None
    """Answers registrations instead, one after the other."""
    turn: threading.Lock = field(default_factory=threading.Lock)

    def says(self, *answers: tuple[int, object] | None) -> None:
        self.answers = [answer and (answer[0], json.dumps(answer[1])) for answer in answers]


class KubectlMachine:
    """A machine with kubectl for one Kubernetes cluster."""

    cluster_uuid = str(CLUSTER)
    token = TOKEN
    kube_system_uid = KUBE_SYSTEM_UID
    flux_kinds = (*FLUX_KINDS, HELM_RELEASES)

    def __init__(self, folder: Path, shell: list[str], centre: RegistrationServer) -> None:
        self.shell = shell
        self.runs: list[BootstrapRun] = []
        """Those that were begun beside others."""
        self.folder = folder
        self.bin = folder / "bin"
        self.tmp = folder / "tmp"
        for made in (self.bin, folder / "state", self.tmp):
            made.mkdir(parents=True)
        self.state = KubectlState(folder / "state")
        for tool in TOOLS:
            path = shell[0] if shell[1:] == ["ash"] and tool != "curl" else shutil.which(tool)
            assert path, f"this machine has no {tool}"
            (self.bin / tool).symlink_to(path)
        self.program("sh", f'exec {" ".join(shell)} "$@"')
        self.state.install(self.bin / "kubectl")
        self.wanted = BootstrapInput(
            cluster=CLUSTER,
            name="press-shop",
            namespace="edgewright",
            external_url=centre.url,
            token=TOKEN,
            expires_at=datetime(2030, 1, 1, tzinfo=UTC),
            generation=1,
            files={"self-link.yaml": SELF_LINK},
        )
        self.set_cluster(
            version="v1.30.2+k3s1",
            uid=KUBE_SYSTEM_UID,
            contexts=["kind-edge", "other"],
            reachable=True,
            forbidden=[],
            refused=[],
            objects={},
        )
        for kind in self.flux_kinds:
            self.put(f"CustomResourceDefinition/{kind}")

    def program(self, name: str, text: str) -> None:
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    @property
    def cluster(self) -> dict[str, Any]:
        return self.state.cluster

    def set_cluster(self, **fields: object) -> None:
        self.state.cluster = self.state.cluster | fields

    def put(self, key: str, labels: dict[str, str] | None = None, password: str = "") -> None:
        parts = key.split("/")
        held = {
            "labels": {f"edgewright.dev/{name}": value for name, value in (labels or {}).items()},
            "data": {"password": base64.b64encode(password.encode()).decode()},
            "namespace": parts[1] if len(parts) == 3 else "",
            "text": "",
        }
        self.set_cluster(objects=self.cluster["objects"] | {key: held})

    def drop(self, key: str) -> None:
        self.set_cluster(objects={k: v for k, v in self.cluster["objects"].items() if k != key})

    def secret(self, name: str) -> dict[str, str] | None:
        """The decoded values of a Secret in the namespace; None if it is not there."""
        held = self.cluster["objects"].get(f"Secret/{self.wanted.namespace}/{name}")
        return held and {key: base64.b64decode(value).decode() for key, value in held["data"].items()}

    def held(self, name: str) -> dict[str, str]:
        """The same of a Secret that is there."""
        values = self.secret(name)
        assert values is not None, f"there is no Secret {name}"
        return values

    @property
    def changes(self) -> list[list[str]]:
        """What was changed on the cluster: [verb, Kind/namespace/name], in order."""
        return self.state.changes

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Every call of kubectl: args and environment."""
        return self.state.calls

    def await_collection(self) -> None:
        """Time passes: the stand-in's garbage collector counts it in calls."""
        for _ in range(COLLECTING):
            subprocess.run([self.bin / "kubectl", "get", "--raw", "/version"], check=True, capture_output=True)

    def render(self, **changes: Any) -> str:
        return render_script(replace(self.wanted, **changes))

    def environment(self, **extra: str) -> dict[str, str]:
        return {"PATH": str(self.bin), "HOME": str(self.folder), "TMPDIR": str(self.tmp)} | extra

    def run(
        self, *options: str, script: str | None = None, environment: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """As ``curl … | sh -s -- OPTIONS`` does it, in a session without a terminal."""
        return subprocess.run(
            [*self.shell, "-s", "--", *options],
            input=self.render() if script is None else script,
            env=self.environment(**(environment or {})),
            start_new_session=True,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
