"""The real kubectl, as one user of one cluster."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from left_behind import MARK

DEADLINE = 120  # seconds


@dataclass(frozen=True)
class Kubectl:
    """One user of one cluster.

    Args:
        program: the binary.
        config: the user's kubeconfig.
    """

    program: Path
    config: Path

    def __call__(self, *arguments: str, given: str | None = None) -> str:
        """What kubectl prints.

        Args:
            given: on its standard input.

        Raises:
            RuntimeError: it failed; the text is what it said.
        """
        done = self.try_(*arguments, given=given)
        if done.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def try_(self, *arguments: str, given: str | None = None) -> "subprocess.CompletedProcess[str]":
        """The same, whatever comes of it."""
        return subprocess.run(
            [self.program, "--kubeconfig", self.config, *arguments],
            input=given,
            env=surroundings(),
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )

    def apply(self, *manifests: str) -> None:
        """Server-side."""
        self("apply", "--server-side", "--filename", "-", given="\n---\n".join(manifests))

    def apply_definitions(self, folder: Path) -> None:
        """The CRDs of a folder; established when it returns."""
        self("apply", "--server-side", "--filename", str(folder))
        self("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")


def write_config(
    file: Path, *, server: str, authority: Path, credentials: Mapping[str, str], namespace: str = "default"
) -> Path:
    """A kubeconfig of one user.

    Args:
        server: URL of the API server.
        authority: PEM file.
        credentials: the user's part, such as ``{"token": …}``.
    """
    cluster = {"server": server, "certificate-authority": str(authority)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "user", "user": dict(credentials)}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "user", "namespace": namespace}}],
        "current-context": "test",
    }
    file.touch(mode=0o600)
    file.write_text(yaml.safe_dump(content))
    return file


def surroundings() -> dict[str, str]:
    """Nothing of this shell's own clusters and proxies."""
    kept = ("PATH", "HOME", "TMPDIR", "LANG", "TZ", "GOGC", MARK)
    return {name: os.environ[name] for name in kept if name in os.environ}
