"""The bootstrap line of a centre, pasted where kubectl reaches a Kubernetes cluster."""

import os
import subprocess
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path

from embedded import EmbeddedEdgewright
from left_behind import marked

from edge_cluster.cluster import Cluster

DEADLINE = 300  # seconds
RUN = " | sh -"
CHANGES = "create|apply|delete|patch"
INTERRUPTING = """\
#!/bin/sh
# kubectl, which kills the script that called it once so many changes are done
"{program}" "$@"
code=$?
for word; do
  case $word in --local | --dry-run*) exit $code ;; esac
done
for word; do
  case $word in
    {changes})
      echo x >>"{count}"
      [ "$(wc -l <"{count}")" -lt {after} ] || kill -9 "$PPID"
      ;;
  esac
done
exit $code
"""


@dataclass(frozen=True)
class Surroundings:
    """What surrounds a line on the machine where it is pasted.

    Args:
        variables: such as proxies.
    """

    variables: Mapping[str, str] = field(default_factory=lambda: {"NO_PROXY": "127.0.0.1"})


class BootstrapLine:
    """The line of one cluster of a centre; it is the same line however often it is run.

    Args:
        folder: of the person who pastes it.
    """

    def __init__(
        self,
        centre: EmbeddedEdgewright,
        cluster: Cluster,
        uuid: str,
        folder: Path,
        *,
        surroundings: Surroundings | None = None,
    ) -> None:
        self.uuid = uuid
        self._surroundings = surroundings or Surroundings()
        self._cluster = cluster
        self._bin = folder / "bin"
        self._bin.mkdir(exist_ok=True)
        answer = centre.api("POST", f"/v1/cluster/{uuid}/registration-token")
        assert answer.status_code == 200, answer.text
        self.url = answer.json()["url"]
        self.command = answer.json()["command"]
        assert self.command.endswith(RUN), self.command
        self._place_kubectl()

    def on(self, cluster: Cluster, folder: Path) -> "BootstrapLine":
        """The same line, where another kubectl reaches another Kubernetes cluster."""
        same = copy(self)
        same._cluster, same._bin = cluster, folder / "bin"
        same._bin.mkdir(exist_ok=True)
        same._place_kubectl()
        return same

    @property
    def token(self) -> str:
        return str(self.url).partition("token=")[2]

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the shell that it is pasted into."""
        return {
            "PATH": f"{self._bin}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self._bin.parent),
            "KUBECONFIG": str(self._cluster.kubectl.config),
            **marked(),
            **{name: os.environ[name] for name in ("GOGC",) if name in os.environ},
            **self._surroundings.variables,
        }

    @property
    def fetched(self) -> str:
        """The command that fetches the script, as it stands in the line."""
        return str(self.command).removesuffix(RUN)

    def run(self, *options: str, interrupted_after: int | None = None) -> "subprocess.CompletedProcess[str]":
        """Runs it, with the question answered.

        Args:
            interrupted_after: this many changes of the cluster the script is killed.
        """
        if interrupted_after is None:
            self._place_kubectl()
        else:
            kubectl = self._bin / "kubectl"
            kubectl.unlink(missing_ok=True)
            count = self._bin / "count"
            count.unlink(missing_ok=True)
            program = self._cluster.kubectl.program
            kubectl.write_text(
                INTERRUPTING.format(program=program, count=count, after=interrupted_after, changes=CHANGES)
            )
            kubectl.chmod(0o755)
        return self.type(f"{self.fetched} | sh -s -- --yes {' '.join(options)}")

    def by_hand(self) -> "subprocess.CompletedProcess[str]":
        """Instead of the script, runs the commands that stand in its manifests."""
        desk, name = self._bin.parent, "attach.yaml"
        (desk / "edgewright-t").write_text(f"Authorization: Bearer {self.token}")
        fetched = self.type(f"curl -sSf '{self.url}&format=manifests' -o {name}")
        if fetched.returncode:
            return fetched
        lines = (desk / name).read_text().splitlines()
        commands = [text.removeprefix("#$").replace("FILE", name) for text in lines if text.startswith("#$")]
        return self.type("\n".join(["set -e", *commands]))

    def type(
        self, commands: str, *, given: str | None = None, **variables: str
    ) -> "subprocess.CompletedProcess[str]":
        """Runs commands where the line would be pasted.

        Args:
            given: on their standard input.
        """
        return subprocess.run(
            ["sh", "-c", commands],
            input=given,
            cwd=self._bin.parent,
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )

    def _place_kubectl(self) -> None:
        kubectl = self._bin / "kubectl"
        kubectl.unlink(missing_ok=True)
        kubectl.symlink_to(self._cluster.kubectl.program)
