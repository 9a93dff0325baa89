"""What an operator does with the topology from outside: everything goes through the proxy, over TLS."""

import json
import os
import subprocess
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import httpx
from sealing_keys import certificate_pem, open_envelope, private_key

from edgewright.domain.wellknown import APP_CLUSTER_STATUS
from edgewright.sealing import read_values
from tools.production.topology import Topology

KEY = private_key()
PATIENCE_SECONDS = 90.0
AGAIN = frozenset({502, 503, 504})
"""What a proxy or a gateway that is ending says; the same request may come again with the same key."""


@dataclass
class Operator:
    """One connection of an administrator.

    Args:
        folder: for clones.
    """

    topology: Topology
    http: httpx.Client
    folder: Path

    def insist(self, method: str, path: str, *, key: str | None = None, **options: object) -> httpx.Response:
        """The first answer that is one: repeated, with one idempotency key, while nobody answers."""
        headers = {"Idempotency-Key": key or str(uuid4())}
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                answer = self.http.request(method, path, headers=headers, **options)  # type: ignore[arg-type] # passed on
                if answer.status_code not in AGAIN:
                    return answer
            except httpx.TransportError:
                pass
            assert time.monotonic() < until, f"{method} {path} is not answered"
            time.sleep(0.1)

    def create(self, name: str, *, key: str | None = None, **more: object) -> str:
        """The UUID of a new cluster, or of the one that the same key has made; not waited for."""
        answer = self.insist("POST", "/v1/cluster", json={"name": name, **more}, key=key)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["uuid"])

    def await_ready(self, cluster: str) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while not self.insist("GET", f"/v1/cluster/{cluster}", params={}).json()["ready"]:
            assert time.monotonic() < until, "it did not get ready"
            time.sleep(0.1)

    def commission(self, name: str, **more: object) -> str:
        """The UUID of a cluster that is ready and has reported its sealing certificate."""
        cluster = self.create(name, key=None, **more)
        self.await_ready(cluster)
        now = datetime.now(UTC)
        certificate = certificate_pem(KEY, not_before=now - timedelta(days=1), not_after=now + timedelta(days=100))
        body = {"hosts": [{"hostname": "press-1"}], "kubeseal_cert": certificate}
        answer = self.insist("PUT", f"/v1/app/{APP_CLUSTER_STATUS}/object/{cluster}", json=body)
        assert answer.status_code in {201, 204}, answer.text
        return cluster

    def put_secret(self, cluster: str, key: str, value: bytes) -> str:
        """The commit that holds it."""
        answer = self.insist("PUT", f"/v1/cluster/{cluster}/secret/default/db/{key}", content=value)
        assert answer.status_code == 204, answer.text
        return answer.headers["Edgewright-Commit"]

    def clone(self, name: str) -> Path:
        """A clone of a driving repository, by the real git."""
        target = self.folder / f"{name}-{uuid4().hex[:8]}"
        done = self.git("clone", "--quiet", f"{self.topology.url}/git/cluster/{name}", str(target))
        assert done.returncode == 0, done.stderr
        return target

    def git(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Git with the admin token and the authority of the proxy, and with nothing of this user's settings."""
        asked = self.folder / "asked"
        asked.write_text(f"#!/bin/sh\ncase $1 in User*) echo me ;; *) cat '{self.topology.token_file}' ;; esac\n")
        asked.chmod(0o700)
        own = {
            "HOME": str(self.folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ASKPASS": str(asked),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_SSL_CAINFO": str(self.topology.ca),
            "no_proxy": "*",
        }
        return subprocess.run(
            ["git", *arguments], env=os.environ | own, capture_output=True, text=True, timeout=120, check=False
        )

    def opened(self, clone: Path) -> dict[str, bytes]:
        """The keys of ``default/db`` in a clone, opened with the edge's own key."""
        document = (clone / "edo" / "secrets" / "default" / "db.yaml").read_bytes()
        values = read_values(document)
        return {key: open_envelope(value.ciphertext, KEY, b"default/db") for key, value in values.items()}

    def hears(self, wanted: str, begun: threading.Event) -> list[str]:
        """Kinds of events as they are sent, up to the wanted one; ``begun`` is set when the stream is open."""
        kinds: list[str] = []
        with self.http.stream("GET", "/v1/events", timeout=PATIENCE_SECONDS) as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            begun.set()
            for line in stream.iter_lines():
                if line.startswith("data: "):
                    kinds.append(json.loads(line.removeprefix("data: ")).get("kind", "position"))
                if kinds and kinds[-1] == wanted:
                    return kinds
        return kinds
