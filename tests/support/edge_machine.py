"""A machine with kubectl on which a bootstrap line is run: real shell, real curl, a stand-in for the API server."""

import base64
import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stand_in_kubectl import KubectlState

TOOLS = ("base64", "cat", "curl", "env", "grep", "mkdir", "mktemp", "od", "rm", "sed", "sh", "sleep", "tr", "wc")
FLUX_KINDS = (
    "gitrepositories.source.toolkit.fluxcd.io",
    "kustomizations.kustomize.toolkit.fluxcd.io",
    "helmreleases.helm.toolkit.fluxcd.io",
)


class EdgeMachine:
    """One Kubernetes cluster, as kubectl sees it.

    Args:
        uid: of its namespace ``kube-system``.
        within: what a command begins with that is to run on that machine; nothing where it is this one.
    """

    def __init__(self, folder: Path, *, uid: str, within: Sequence[str] = ()) -> None:
        self.folder = folder
        self._within = within
        self._bin = folder / "bin"
        for made in (folder / "state", self._bin, folder / "tmp"):
            made.mkdir(parents=True)
        self._state = KubectlState(folder / "state")
        for tool in TOOLS:
            path = shutil.which(tool)
            assert path, f"this machine has no {tool}"
            (self._bin / tool).symlink_to(path)
        self._state.install(self._bin / "kubectl")
        installed = {
            f"CustomResourceDefinition/{kind}": {"labels": {}, "data": {}, "namespace": "", "text": ""}
            for kind in FLUX_KINDS
        }
        self._state.cluster = {
            "version": "v1.31.2+k3s1",
            "uid": uid,
            "contexts": ["edge"],
            "reachable": True,
            "forbidden": [],
            "refused": [],
            "objects": installed,
        }

    def type(self, line: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs one line in a shell, in a session without a terminal; ``EDGEWRIGHT_YES`` answers the question."""
        return self._run(["sh", "-c", line], "", variables)

    def pipe(self, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Pipes a script into a shell."""
        return self._run(["sh", "-"], script, variables)

    def password(self, secret: str, namespace: str = "edgewright") -> str:
        """The password in one of the two Secrets that the script makes."""
        return base64.b64decode(self.objects[f"Secret/{namespace}/{secret}"]["data"]["password"]).decode()

    @property
    def objects(self) -> dict[str, Any]:
        """Everything on the cluster, by ``Kind/namespace/name``."""
        objects: dict[str, Any] = self._state.cluster["objects"]
        return objects

    @property
    def calls(self) -> bytes:
        """Arguments and environment of every call of kubectl."""
        return json.dumps(self._state.calls, ensure_ascii=False).encode()

    def _run(self, command: list[str], stdin: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._within, str(self._bin / command[0]), *command[1:]],
            input=stdin,
            env={"PATH": str(self._bin), "HOME": str(self.folder), "TMPDIR": str(self.folder / "tmp"), **variables},
            start_new_session=True,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
