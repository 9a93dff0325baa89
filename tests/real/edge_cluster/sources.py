"""Stands in for Flux's source-controller, which cannot be had here: fetches one GitRepository when it is asked to.

Everything around it is real: the object and its Secret, Git over HTTP from the centre, kustomize-controller, which
downloads the archive and applies it.
"""

import base64
import hashlib
import json
import os
import subprocess
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import httpx

from edge_cluster.cluster import Cluster

BRANCH = "main"
KINDS = "/apis/source.toolkit.fluxcd.io/v1"
READS = '!f() { cat "$GIT_CREDENTIAL"; }; f'


class Source:
    """One GitRepository of a cluster.

    Args:
        folder: for the archives, and a bare repository.
        variables: of the pod that fetches, such as proxies.
    """

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        namespace: str,
        name: str,
        *,
        variables: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._cluster, self._folder = cluster, folder
        self._namespace, self._name = namespace, name
        self._variables = variables
        self._archives = folder / "archives"
        self._archives.mkdir(exist_ok=True)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=str(self._archives)))

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_raised: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def fetch(self) -> str:
        """Fetches the branch and hands it to Flux; returns the commit."""
        found = self._repository()
        commit = self._fetched(found["spec"])
        self._hand_over(found, commit)
        return commit

    def refresh(self) -> None:
        """The same, but hands over nothing where Flux has it already."""
        found = self._repository()
        commit = self._fetched(found["spec"])
        known = (found.get("status") or {}).get("artifact", {}).get("revision", "").rpartition(":")[2]
        conditions = (found.get("status") or {}).get("conditions", ())
        if known != commit or any(each["status"] != "True" for each in conditions):
            self._hand_over(found, commit)

    def _hand_over(self, found: Any, commit: str) -> None:
        archive = self._git("-c", "tar.tar.gz.command=gzip -n", "archive", "--format=tar.gz", commit)
        (self._archives / f"{commit}.tar.gz").write_bytes(archive)
        artifact = {
            "digest": f"sha256:{hashlib.sha256(archive).hexdigest()}",
            "lastUpdateTime": _now(),
            "path": f"{commit}.tar.gz",
            "revision": f"{BRANCH}@sha1:{commit}",
            "size": len(archive),
            "url": f"http://127.0.0.1:{self._server.server_port}/{commit}.tar.gz",
        }
        self._state(found, "True", "Succeeded", "stored", artifact=artifact)

    def fails(self, message: str) -> None:
        """States, as source-controller does, that the repository cannot be fetched; what was fetched stays."""
        self._state(self._repository(), "False", "GitOperationFailed", message)

    def _state(self, found: Any, ready: str, reason: str, message: str, **more: object) -> None:
        generation = found["metadata"]["generation"]
        condition = {
            "type": "Ready",
            "status": ready,
            "reason": reason,
            "message": message,
            "lastTransitionTime": _now(),
            "observedGeneration": generation,
        }
        status = {"conditions": [condition], "observedGeneration": generation, **more}
        answer = self._cluster.http.patch(
            f"{self._path}/status",
            content=json.dumps({"status": status}),
            headers={"Content-Type": "application/merge-patch+json"},
        )
        assert answer.is_success, answer.text

    def _fetched(self, spec: dict[str, Any]) -> str:
        secret = self._found(f"/api/v1/namespaces/{self._namespace}/secrets/{spec['secretRef']['name']}")["data"]
        user, password = (base64.b64decode(secret[key]).decode() for key in ("username", "password"))
        credential = self._kept("credential", f"username={user}\npassword={password}\n")
        trusted = {}
        if "ca.crt" in secret:
            authority = base64.b64decode(secret["ca.crt"]).decode()
            trusted["GIT_SSL_CAINFO"] = str(self._kept("ca.crt", authority))
        if not (self._folder / "mirror").is_dir():
            subprocess.run(["git", "init", "--quiet", "--bare", self._folder / "mirror"], check=True)
        reference = f"+refs/heads/{BRANCH}:refs/heads/{BRANCH}"
        self._git(
            *("-c", f"credential.helper={READS}", "fetch", "--quiet", spec["url"], reference),
            **{**trusted, **self._variables(), "GIT_CREDENTIAL": str(credential)},
        )
        return self._git("rev-parse", f"refs/heads/{BRANCH}").decode().strip()

    def _kept(self, name: str, content: str) -> Path:
        """In a file: what is among the arguments or variables of a process can be seen by others."""
        file = self._folder / name
        file.touch(mode=0o600)
        file.write_text(content)
        return file

    def _git(self, *arguments: str, **variables: str) -> bytes:
        return subprocess.run(
            ["git", *arguments],
            cwd=self._folder / "mirror",
            env={**os.environ, "NO_PROXY": "127.0.0.1,localhost", "GIT_TERMINAL_PROMPT": "0", **variables},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout

    def _repository(self) -> Any:
        return self._found(self._path)

    @property
    def _path(self) -> str:
        return f"{KINDS}/namespaces/{self._namespace}/gitrepositories/{self._name}"

    def _found(self, path: str) -> Any:
        answer = self._cluster.http.get(path)
        assert answer.status_code != httpx.codes.NOT_FOUND, f"there is no {path}"
        return answer.raise_for_status().json()


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named by the standard library
        pass
