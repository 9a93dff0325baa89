"""A whole edge as a program, so that it can run on another machine, which is a network namespace.

It makes a Kubernetes cluster and says so. Then it reads what somebody types there, as JSON, a line each: the
bootstrap line, with the image that the nodes are to have; then names of Secrets, which it shows once they are there.
At the end of its input it ends everything.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from components import component
from left_behind import marked

from edge_cluster.cluster import Cluster, edge_cluster
from edge_cluster.controllers import SealedSecrets
from edge_cluster.kubelet import Kubelet
from edge_cluster.patience import eventually
from edge_cluster.site import programs

SECONDS = 240.0
TAIL = 4000
"""Characters of each log."""
IN_CONTAINER = """\
#!/bin/sh
# What a container runtime does: the image's files are all that there is, and the pod's own are in /run.
set -e
mkdir -p /run/edgewright "{root}/run" "{root}/var"
ln -sfn /run "{root}/var/run"
mount --rbind /run "{root}/run"
export {variables}
exec {chroot} "{root}" {command}
"""


@dataclass(frozen=True)
class PastedLine:
    """What somebody types on the edge's machine.

    Args:
        line: the bootstrap line.
        image: the agent's, which its nodes pull.
        authority: PEM that the nodes have been told to trust for that.
    """

    line: str
    image: str
    authority: str


@dataclass(frozen=True)
class AwaitedKey:
    """A key of a Secret that somebody waits for."""

    namespace: str
    name: str
    key: str


@dataclass(frozen=True)
class Told:
    """What the edge says."""

    what: str
    code: int = 0
    text: str = ""


def say(told: Told) -> None:
    sys.stdout.write(json.dumps(asdict(told)) + "\n")
    sys.stdout.flush()


def complain(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def complain_of(logs: Path) -> None:
    """What the programs there have said last, for whoever looks for a reason."""
    for log in sorted(logs.glob("*.log")):
        complain(f"--- {log.name}\n{log.read_text(errors='replace')[-TAIL:]}")


class FarEdge:
    """One edge. ``folder``: of whoever sits there."""

    def __init__(self, cluster: Cluster, folder: Path, opened: ExitStack) -> None:
        self._cluster = cluster
        self._folder = folder
        self._opened = opened

    def attach(self, typed: PastedLine) -> Told:
        """Has the node pull the image, and runs the line; sealed-secrets starts as its chart would have it."""
        agent = self._container(typed)
        sealed_secrets = SealedSecrets(self._cluster)
        kubelet = Kubelet(self._cluster, programs(self._folder / "fetched", sealed_secrets, agent=[agent]))
        self._opened.enter_context(kubelet)
        done = subprocess.run(
            ["sh", "-c", typed.line],
            env={**self._shell(), "EDGEWRIGHT_YES": "1"},
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            start_new_session=True,
        )
        if done.returncode == 0:
            sealed_secrets.start()  # in the place of helm-controller, which cannot be had
        return Told("attached", done.returncode, done.stdout + done.stderr)

    def value(self, wanted: AwaitedKey) -> Told:
        """What is in the Kubernetes Secret, as soon as it is there."""
        found: list[str] = []

        def is_there() -> bool:
            secret = self._cluster.find("secret", wanted.name, namespace=wanted.namespace)
            value = (secret or {}).get("data", {}).get(wanted.key)
            found.extend([] if value is None else [base64.b64decode(value).decode()])
            return bool(found)

        eventually(is_there, seconds=SECONDS)
        return Told("secret", text=found[0])

    def _container(self, typed: PastedLine) -> Path:
        """The program of the agent's pod: pulled by a registry's client, and run with nothing but the image."""
        authority, root = self._folder / "node-ca.pem", self._folder / "image"
        authority.write_text(typed.authority)
        root.mkdir()
        archive = self._folder / "image.tar"
        config = json.loads(self._crane(authority, "config", typed.image))
        self._crane(authority, "export", typed.image, str(archive))
        subprocess.run(["tar", "-xf", archive, "-C", root], check=True)
        chroot = shutil.which("chroot")
        assert chroot, "this needs chroot (coreutils)"
        program = self._folder / "agent"
        program.write_text(
            IN_CONTAINER.format(
                root=root,
                chroot=chroot,
                variables=" ".join(config["config"]["Env"]),
                command=" ".join(config["config"]["Cmd"]),
            )
        )
        program.chmod(0o755)
        return program

    def _crane(self, authority: Path, *arguments: str) -> str:
        trusting = {"PATH": os.environ["PATH"], "HOME": str(self._folder), "SSL_CERT_FILE": str(authority)}
        done = subprocess.run(
            [component("crane"), *arguments],
            env=trusting,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _shell(self) -> dict[str, str]:
        """The variables of the terminal there: kubectl is on its PATH and reaches the cluster."""
        programs_there = self._folder / "bin"
        programs_there.mkdir()
        (programs_there / "kubectl").symlink_to(self._cluster.kubectl.program)
        return {
            "PATH": f"{programs_there}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self._folder),
            "KUBECONFIG": str(self._cluster.kubectl.config),
            **marked(),
        }


def main() -> None:
    """See the module."""
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="edgewright-far-")))
        cluster = opened.enter_context(edge_cluster(complain))
        edge = FarEdge(cluster, folder, opened)
        say(Told("cluster"))
        opened.callback(complain_of, cluster.folder / "logs")
        for line in sys.stdin:
            typed: dict[str, Any] = json.loads(line)
            say(edge.attach(PastedLine(**typed)) if "line" in typed else edge.value(AwaitedKey(**typed)))


if __name__ == "__main__":
    main()
