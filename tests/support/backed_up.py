"""An Edgewright that is backed up, destroyed and restored, and what must be true of it afterwards."""

import json
import shutil
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
from embedded import EmbeddedEdgewright
from loopback import PLAIN
from sealing_keys import certificate_pem, open_envelope, private_key

from edgewright.domain.cluster import Role
from edgewright.domain.credentials import cluster_secret
from edgewright.sealing import read_values

EDGE_STATUS = "747a62c9-1b66-4a2e-8dd9-0b70a91b6b75"
LONG = 120.0


@dataclass
class BackedUp:
    """One home, and a folder of backups beside it."""

    centre: EmbeddedEdgewright

    @property
    def home(self) -> Path:
        return self.centre.home

    @property
    def backups(self) -> Path:
        return self.home.parent / "backups"

    def back_up(self) -> Path:
        done = self.centre.command("admin", "backup", str(self.backups))
        assert done.returncode == 0, done.stderr
        return Path(done.stdout.removeprefix("Backup: ").strip())

    def restore(self, backup: Path, *options: str) -> str:
        done = self.centre.command("admin", "restore", str(backup), *options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def take_certificate(self, uuid: str) -> None:
        """An admin writes the edge's status by hand, so that secrets can be sealed."""
        now = datetime.now(UTC)
        began, ends = now - timedelta(days=1), now + timedelta(days=3650)
        certificate = certificate_pem(private_key(), not_before=began, not_after=ends)
        status = {"hosts": [], "kubeseal_cert": certificate}
        answer = self.centre.api("PUT", f"/v1/app/{EDGE_STATUS}/object/{uuid}", json=status)
        assert answer.is_success, answer.text

    def put_secret(self, uuid: str, key: str, value: str) -> bool:
        answer = self.centre.api("PUT", f"/v1/cluster/{uuid}/secret/default/db/{key}", content=value.encode())
        return answer.status_code == 204

    def opened(self, uuid: str) -> dict[str, str]:
        """Every key of ``default/db`` in the tree at the head, as the edge opens it."""
        document = self.git(uuid, "show", "main:edo/secrets/default/db.yaml").encode()
        return {
            key: open_envelope(value.ciphertext, private_key(), b"default/db").decode()
            for key, value in (read_values(document)).items()
        }

    def git(self, uuid: str, *arguments: str) -> str:
        folder = self.home / "repositories" / f"{uuid}.git"
        done = subprocess.run(
            ["git", "-c", "safe.directory=*", f"--git-dir={folder}", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout if done.returncode == 0 else ""

    def is_ready(self, uuid: str) -> bool:
        return self.centre.api("GET", f"/v1/cluster/{uuid}/ready", params={"wait": 5}).is_success

    def is_settled(self, uuid: str) -> bool:
        """Ready, and nothing is being done: what is wanted is what is delivered."""
        shown = self.centre.api("GET", f"/v1/cluster/{uuid}").json()
        done = self.rows("SELECT change = change_done FROM clusters WHERE uuid = ?", uuid.replace("-", ""))
        return bool(shown["ready"]) and done == [(1,)] and all(step["state"] == "done" for step in shown["steps"])

    def is_gone(self, uuid: str) -> bool:
        return self.centre.api("GET", f"/v1/cluster/{uuid}").status_code == 410

    def is_unknown(self, uuid: str) -> bool:
        """Whether the centre has never heard of a cluster, as of one that was made after the backup."""
        return self.centre.api("GET", f"/v1/cluster/{uuid}").status_code == 404

    def rows(self, statement: str, *values: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.home / "edgewright.db", timeout=30)) as database:
            return list(database.execute(statement, values))


def lose(home: Path, what: str) -> None:
    """One store is gone, or all of them."""
    match what:
        case "database":
            for path in home.glob("edgewright.db*"):
                path.unlink()
        case "database damaged":
            (home / "edgewright.db").write_bytes(b"not a database" * 1000)
        case "repositories":
            shutil.rmtree(home / "repositories")
        case "Temporal's file":
            for path in home.glob("temporal.db*"):
                path.unlink()
        case "everything":
            shutil.rmtree(home)


class RegisteredEdge:
    """An edge that has registered: its credentials, and how it calls."""

    def __init__(self, centre: EmbeddedEdgewright, cluster: str, *, kube_system_uid: str | None = None) -> None:
        self.centre, self.cluster = centre, cluster
        self.kube_system_uid = kube_system_uid or str(uuid4())
        self.agent = new_secret(Role.AGENT)
        line = centre.api("POST", f"/v1/cluster/{cluster}/registration-token", json={}).json()
        body = {
            "kube_system_uid": self.kube_system_uid,
            "kubernetes_version": "v1.31.2",
            "flux_secret": new_secret(Role.FLUX),
            "agent_secret": self.agent,
        }
        token = str(line["url"]).partition("token=")[2]
        answer = self._post("/v1/register", body, headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 200, answer.text

    def beat(self, secret: str | None = None) -> httpx.Response:
        return self._post("/v1/agent/heartbeat", {}, auth=(self.cluster, secret or self.agent))

    def rotate(self) -> str:
        """The successor of the agent's credential, proven by use; the one before is revoked by that."""
        secret = new_secret(Role.AGENT)
        wish = {"role": "agent", "secret": secret}
        assert self._post("/v1/agent/credential", wish, auth=(self.cluster, self.agent)).status_code == 200
        assert self.beat(secret).status_code == 200
        return secret

    def _post(
        self,
        path: str,
        body: dict[str, str],
        *,
        auth: tuple[str, str] | None = None,
        headers: dict[str, str] | None = None,
    ) -> httpx.Response:
        url = f"{self.centre.endpoints()['gateway']}{path}"
        return httpx.post(url, content=json.dumps(body), auth=auth, headers=headers, timeout=60, **PLAIN)


def new_secret(role: Role) -> str:
    return cluster_secret(role, uuid4().bytes + uuid4().bytes).text
