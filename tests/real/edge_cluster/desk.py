"""What a person does at a desk with plain git over HTTP, such as a push to ``by-hand/`` of a driving repository."""

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any
from uuid import UUID

from embedded import EmbeddedEdgewright

ASKS = '!f() { echo "username=$GIT_USER"; echo "password=$GIT_SECRET"; }; f'


def push_by_hand(centre: EmbeddedEdgewright, uuid: str, name: str, text: str) -> None:
    """One file in ``by-hand/``."""
    with tempfile.TemporaryDirectory() as folder:
        _git(centre, "clone", "--quiet", f"{centre.endpoints()['gateway']}/uuid/{uuid}", folder)
        (Path(folder) / "by-hand" / name).write_text(text)
        _git(centre, "-C", folder, "add", ".")
        _git(centre, "-C", folder, "commit", "--quiet", "--message", "By hand")
        _git(centre, "-C", folder, "push", "--quiet")


def committed_file(centre: EmbeddedEdgewright, uuid: str, path: str) -> str:
    """A file of a driving repository, as it is now."""
    with tempfile.TemporaryDirectory() as folder:
        _git(centre, "clone", "--quiet", f"{centre.endpoints()['gateway']}/uuid/{uuid}", folder)
        return (Path(folder) / path).read_text()


def _git(centre: EmbeddedEdgewright, *arguments: str) -> None:
    desk_git(*arguments, secret=(centre.home / "admin-token").read_text().strip())


def desk_git(*arguments: str | Path, secret: str, user: str = "desk") -> None:
    """Runs git, which is asked for a password by the centre.

    Raises:
        CalledProcessError: it was refused; ``stderr`` says why.
    """
    subprocess.run(
        ["git", "-c", f"credential.helper={ASKS}", *arguments],
        env={
            **os.environ,
            "NO_PROXY": "127.0.0.1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_AUTHOR_NAME": "desk",
            "GIT_AUTHOR_EMAIL": "desk@localhost",
            "GIT_COMMITTER_NAME": "desk",
            "GIT_COMMITTER_EMAIL": "desk@localhost",
            "GIT_USER": user,
            "GIT_SECRET": secret,
        },
        capture_output=True,
        check=True,
        timeout=60,
    )


class OwnRepository:
    """A shared repository of people's own, made from the command line, and their work tree of it.

    Args:
        folder: for the work tree.
    """

    def __init__(self, centre: EmbeddedEdgewright, name: str, folder: Path) -> None:
        self._centre = centre
        self._name = name
        made = json.loads(self._printed("repository", "create", name, "--json"))
        self.url: str = made["url"]
        self.uuid = UUID(made["uuid"])
        self._token = self._printed("token", "create", f"{name}-pusher", "--permission", "push").strip()
        self.work = folder / name
        desk_git("init", "--quiet", "--initial-branch", "main", self.work, secret=self._token)

    def push(self, manifest: str) -> str:
        """Pushes one manifest in ``apps``; returns the revision as Flux names it."""
        (self.work / "apps").mkdir(exist_ok=True)
        (self.work / "apps" / "manifest.yaml").write_text(manifest)
        for words in (
            ("add", "."),
            ("commit", "--quiet", "--message", "Ours"),
            ("push", "--quiet", self.url, "main"),
        ):
            desk_git("-C", self.work, *words, secret=self._token)
        return f"main@sha1:{(self.work / '.git/refs/heads/main').read_text().strip()}"

    def remove(self, *more: str) -> subprocess.CompletedProcess[str]:
        """Attempts to remove it."""
        return self._centre.command("repository", "remove", self._name, "--yes", *more)

    def drivers(self, name: str, namespace: str) -> list[dict[str, Any]]:
        """What brings it to an edge, as docs/edge.md has it: a GitRepository, and a Kustomization."""
        metadata = {"name": name, "namespace": namespace}
        source = {
            "url": self.url,
            "ref": {"branch": "main"},
            "interval": "5m",
            "secretRef": {"name": "flux-secrets"},
        }
        applied = {
            "sourceRef": {"kind": "GitRepository", "name": name},
            "path": "./apps",
            "prune": True,
            "interval": "10m",
        }
        return [
            {"apiVersion": f"{group}.toolkit.fluxcd.io/v1", "kind": kind, "metadata": metadata, "spec": spec}
            for group, kind, spec in (("source", "GitRepository", source), ("kustomize", "Kustomization", applied))
        ]

    def _printed(self, *arguments: str) -> str:
        done = self._centre.command(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout
