"""What a platform engineer has at hand: bin/edgewright, curl, git, the Temporal CLI, kubeseal. All of it is real."""

import base64
import json
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embedded import EmbeddedEdgewright
from sealing_keys import private_pem
from supervised import eventually
from temporal_server import temporal_binary

from edgewright.messages.names import SWEEP_SCHEDULE

CHECKOUT = Path(__file__).parents[2]
SETUP_STATUS = "f6c67e6f-e48e-4f69-b4bb-bfbddcc2a517"
CONFIGURATION = "bdb13634-0b3d-4e38-a065-9d88c12ee78d"
EDGE_STATUS = "747a62c9-1b66-4a2e-8dd9-0b70a91b6b75"
EDGE_CLUSTER = "f24d354d-abc1-4e32-98e1-0667b3e40b61"


@dataclass(frozen=True)
class CommandOutput:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str


@dataclass
class Desk:
    """A person's desk beside one home.

    Args:
        folder: for clones and files.
    """

    centre: EmbeddedEdgewright
    folder: Path
    kubeseal: Path

    @property
    def gateway(self) -> str:
        return str(self.centre.endpoints()["gateway"])

    def edgewright(self, *arguments: str, stdin: str = "") -> str:
        """What ``bin/edgewright`` prints on stdout; it has to succeed."""
        done = self.run(str(CHECKOUT / "bin" / "edgewright"), *arguments, stdin=stdin)
        assert done.code == 0, done
        return done.out

    def curl(
        self, method: str, path: str, body: object = None, *, user: tuple[str, str] | None = None
    ) -> CommandOutput:
        """One request with curl. ``out`` is the body, ``code`` the HTTP status."""
        header = self.folder / "header"
        token = (self.centre.home / "admin-token").read_text().strip()
        if user is None:
            header.write_text(f"Authorization: Bearer {token}\n")
        else:
            header.write_text(f"Authorization: Basic {base64.b64encode(':'.join(user).encode()).decode()}\n")
        given = ["--data-binary", "@-", "-H", "Content-Type: application/json"] if body is not None else []
        options = ["-sS", "--noproxy", "*", "-H", f"@{header}", "-w", "\n%{http_code}", "-X", method, *given]
        done = self.run("curl", *options, f"{self.gateway}{path}", stdin=json.dumps(body) if given else "")
        assert done.code == 0, done
        content, _, status = done.out.rpartition("\n")
        return CommandOutput(int(status), content, done.err)

    def json(self, path: str) -> Any:
        """The JSON of a GET that succeeds."""
        answer = self.curl("GET", path)
        assert answer.code == 200, answer
        return json.loads(answer.out)

    def git(self, *arguments: str, user: str = "desk", password: str | None = None) -> CommandOutput:
        """Git, with the admin token unless another password is given."""
        secret = self.folder / "password"
        secret.write_text(password or (self.centre.home / "admin-token").read_text().strip())
        asked = self.folder / "asked"
        asked.write_text(f"#!/bin/sh\ncase $1 in User*) echo {user} ;; *) cat '{secret}' ;; esac\n")
        asked.chmod(0o700)
        return self.run("git", *arguments, GIT_ASKPASS=str(asked), GIT_TERMINAL_PROMPT="0")

    def temporal(self, *arguments: str) -> str:
        """The real Temporal CLI against the real server."""
        address = str(self.centre.endpoints()["temporal"])
        done = self.run(str(temporal_binary()), *arguments, "--address", address)
        assert done.code == 0, done
        return done.out

    def unsealed(self, document: str) -> dict[str, bytes]:
        """The values in a SealedSecret, as the real kubeseal opens it with the edge's key."""
        key = self.folder / "key.pem"
        key.write_text(private_pem())
        done = self.run(str(self.kubeseal), "--recovery-unseal", "--recovery-private-key", str(key), stdin=document)
        assert done.code == 0, done
        return {name: base64.b64decode(value) for name, value in json.loads(done.out)["data"].items()}

    def run(self, *command: str, stdin: str = "", **variables: str) -> CommandOutput:
        """Any program, in the home of a user who has nothing of his own."""
        surroundings = {"HOME": str(self.folder), "GIT_CONFIG_NOSYSTEM": "1", "no_proxy": "*"}
        done = subprocess.run(
            command,
            env={**self.centre.environment, **surroundings, **variables},
            input=stdin,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        return CommandOutput(done.returncode, done.stdout, done.stderr)

    def uuid_of(self, name: str) -> str:
        [uuid] = [item["uuid"] for item in self.json(f"/v1/cluster?name={name}")["items"] if item["name"] == name]
        return str(uuid)

    def is_gone(self, uuid: str) -> bool:
        """Whether nothing but the audit knows a cluster any more."""
        return self.curl("GET", f"/v1/cluster/{uuid}").code == 410

    def names(self) -> set[str]:
        """All clusters that the list shows."""
        return {item["name"] for item in self.json("/v1/cluster")["items"]}

    def running_workflows(self) -> set[str]:
        """IDs of the cluster workflows that run, as Temporal's own list shows them."""
        query = "WorkflowType = 'ManagedCluster' AND ExecutionStatus = 'Running'"
        listed = json.loads(self.temporal("workflow", "list", "--query", query, "-o", "json"))
        return {each["execution"]["workflowId"] for each in listed}

    def sweeps(self) -> int:
        """How many sweeps were started since Temporal's file was made."""
        described = json.loads(self.temporal("schedule", "describe", "--schedule-id", SWEEP_SCHEDULE, "-o", "json"))
        return int(described["info"].get("actionCount", 0))

    def await_sweeps(self, count: int = 2) -> None:
        """Returns when so many more sweeps have been started, and the last but one has ended."""
        wanted = self.sweeps() + count + 1
        eventually(lambda: self.sweeps() >= wanted, seconds=120)

    def heads(self) -> dict[str, str]:
        """What each repository has on its branch, by the name of its folder."""
        repositories = sorted((self.centre.home / "repositories").rglob("*.git"))
        return {path.name: self.run("git", "--git-dir", str(path), "for-each-ref").out for path in repositories}

    def stored(self) -> dict[str, Any]:
        """What must outlive everything: heads of repositories, revisions of entries, accounts, credentials."""
        home = self.centre.home
        with closing(sqlite3.connect(f"file:{home / 'edgewright.db'}?mode=ro", uri=True)) as database:
            rows = {
                table: sorted(map(repr, database.execute(f"SELECT {columns} FROM {table}")))
                for table, columns in (
                    ("entries", "app, object, etag"),
                    ("accounts", "*"),
                    ("grants", "*"),
                    ("credentials", "*"),
                    ("addresses", "*"),
                    ("operator_tokens", "id, secret_sha256, revoked_at"),
                )
            }
        return {"heads": self.heads(), "token": (home / "admin-token").read_text(), **rows}
