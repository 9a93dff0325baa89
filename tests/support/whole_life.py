"""The whole life of a cluster with marked secrets, and everything that anybody was told on the way."""

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from edge_machine import EdgeMachine
from embedded import PROGRAM, EmbeddedEdgewright
from loopback import PLAIN
from markers import Marker, Place, marked_bytes, marked_text, token_markers
from sealing_keys import certificate_pem, private_key
from supervised import eventually

from edgewright.domain.cluster import Role
from edgewright.domain.credentials import SECRET_BYTES, cluster_secret
from edgewright.domain.wellknown import APP_CLUSTER_CONFIGURATION, APPLICATIONS

NAME = "press-shop"


@dataclass
class WholeLife:
    """One cluster on one home, from its creation to its end.

    Args:
        folder: for clones and the edges' machines.
    """

    centre: EmbeddedEdgewright
    folder: Path
    markers: list[Marker] = field(default_factory=list)
    heard: list[Place] = field(default_factory=list)
    """What the gateway answered and the commands printed, without what was handed out on purpose."""
    edges: list[EdgeMachine] = field(default_factory=list)
    uuid: str = ""
    program: list[str] = field(default_factory=lambda: list(PROGRAM))
    operator: str = ""
    """The token that calls are made with."""
    _http: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=40, **PLAIN))

    def live(self) -> None:
        """All of it, on a centre that runs."""
        self._note_token("the admin token", (self.centre.home / "admin-token").read_text().strip())
        with self._operators():
            self._commission()
            self._attach("5d3c0f0a-6c3e-4c61-9c7e-0a54b1f0aa01")
            self._keep_secrets()
            self._rotate_credentials()
            self._read_and_push()
            self._move_to_new_hardware()
            self._remove_and_come_back()
            self._look_at_everything()
            self._read_from_a_terminal()
            self._delete()
            self._look_at_everything()

    def ask(
        self, method: str, path: str, *, handed_out: str | None = None, auth: Any = None, **options: Any
    ) -> httpx.Response:
        """One call; the answer is kept, without the text that it is meant to hand out."""
        headers = {"Authorization": f"Bearer {self.operator}"} if auth is None else {}
        answer = self._http.request(
            method,
            f"{self.centre.endpoints()['gateway']}{path}",
            headers=headers | options.pop("headers", {}),
            auth=auth or None,
            **options,
        )
        content = answer.content if handed_out is None else _without(answer, handed_out)
        fields = "\n".join(f"{name}: {value}" for name, value in answer.headers.items())
        self.heard.append((f"answer to {method} {path.partition('?')[0]}", fields.encode() + b"\n\n" + content))
        return answer

    def type(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """One command of the command line; what it prints is kept."""
        done = subprocess.run(
            [*self.program, *arguments],
            env=self.centre.environment,
            input=stdin,
            capture_output=True,
            check=False,
            timeout=90,
        )
        self.heard.append((f"output of {' '.join(arguments[:2])}", done.stdout + b"\n" + done.stderr))
        return done

    @contextmanager
    def _operators(self) -> Iterator[None]:
        """Works with a token that was made for it, so that the admin token itself rests in its file."""
        admin = (self.centre.home / "admin-token").read_text().strip()
        self.operator = admin
        wish = {"name": "desk", "permissions": ["read", "clusters", "secrets", "push", "admin"]}
        made = self.ask("POST", "/v1/token", json=wish, handed_out="token").json()["token"]
        self._note_token("an operator token", made)
        session = self.ask("POST", "/token", auth=("desk", made), handed_out="token").json()["token"]
        self._note_token("a session token", session)
        self.operator = session
        self.ask("GET", "/v1/cluster")
        self.operator = made
        yield
        self.ask("DELETE", f"/v1/token/{made.split('_')[1]}")
        assert self.ask("GET", "/v1/cluster").status_code == 401

    def _commission(self) -> None:
        wrong = {"name": NAME, "token": self.operator}
        assert self.ask("POST", "/v1/cluster", json=wrong).status_code == 422
        self.uuid = self.ask("POST", "/v1/cluster", json={"name": NAME}).json()["uuid"]
        self._until_ready()
        value = self._mark("a value that came too early").value
        assert self.ask("PUT", self._secret("early", "key"), content=value).status_code == 404

    def _attach(self, kube_system_uid: str, *, line: str = "registration-token") -> None:
        """Bootstraps a new edge; its agent reports, so that secrets can be sealed."""
        first = self._registration_token("registration-token")
        token = self._registration_token(line)
        path = f"/v1/cluster/{self.uuid}/bootstrap"
        assert self.ask("GET", path, auth=(), params={"token": first}).status_code == 403
        assert self.ask("GET", path, auth=(), params={"token": f"{token}x"}).status_code == 403
        edge = EdgeMachine(self.folder / f"edge-{len(self.edges)}", uid=kube_system_uid)
        self.edges.append(edge)
        script = httpx.get(
            f"{self.centre.endpoints()['gateway']}{path}",
            params={"token": token},
            **PLAIN,
        ).text
        wrong = {"kube_system_uid": "x", "kubernetes_version": "v1", "flux_secret": token, "agent_secret": token}
        bearer = {"Authorization": f"Bearer {token}"}
        assert self.ask("POST", "/v1/register", auth=(), headers=bearer, json=wrong).status_code == 422
        done = edge.pipe(script, EDGEWRIGHT_YES="1")
        assert done.returncode == 0, done.stderr
        self.heard.append(("output of the script", done.stdout.encode() + done.stderr.encode()))
        self.flux, self.agent = edge.password("flux-secrets"), edge.password("edgewright-agent")
        self._note_token(f"flux credential {len(self.edges)}", self.flux)
        self._note_token(f"agent credential {len(self.edges)}", self.agent)
        assert self.ask("POST", "/v1/agent/heartbeat", auth=self._as(self.agent), json={}).status_code == 200
        assert self.ask("POST", "/v1/agent/heartbeat", auth=self._as(self.flux), json={}).status_code == 403
        assert self.ask("GET", "/v1/cluster", auth=("somebody", self.agent)).status_code == 401
        now = datetime.now(UTC)
        certificate = certificate_pem(
            private_key(), not_before=now - timedelta(days=1), not_after=now + timedelta(days=900 + len(self.edges))
        )
        status = {"hosts": [{"hostname": "node-1", "arch": "amd64"}], "kubeseal_cert": certificate}
        answer = self.ask("PUT", "/v1/agent/status", auth=self._as(self.agent), json=status)
        assert answer.status_code == 204, answer.text
        with_secret = {"hosts": "none", "flux": self.flux}
        assert self.ask("PUT", "/v1/agent/status", auth=self._as(self.agent), json=with_secret).status_code == 422

    def _keep_secrets(self) -> None:
        text, binary = self._mark("a value that is text"), self._mark("a value that is no text", binary=True)
        document = self._mark("a value in a JSON document")
        many, extra = self._mark("a value among many"), self._mark("a value in a field of its own")
        body = json.dumps({"user": "press", "password": document.value.decode()}).encode()
        typed = self.type("secret", "put", NAME, "default/db", "password", "-", stdin=text.value)
        assert typed.returncode == 0, typed.stderr
        octets = {"Content-Type": "application/octet-stream"}
        for key, content, headers in (
            ("document", body, {"Content-Type": "application/json", "Idempotency-Key": "once"}),
            ("document", body, {"Content-Type": "application/json", "Idempotency-Key": "once"}),
            ("binary", binary.value, octets),
            ("password", binary.value, octets),
        ):
            answer = self.ask("PUT", self._secret("db", key), content=content, headers=headers)
            assert answer.status_code == 204, answer.text
        assert self.ask("PUT", self._secret("db", "dry") + "?dryrun", content=text.value).status_code == 204
        assert self.ask("PUT", self._secret("Wrong_Name", "key"), content=text.value).status_code == 422
        assert self.ask("PUT", self._secret("db", "large"), content=text.value * 30_000).status_code == 413
        change = {"namespace": "default", "name": "many", "key": "one"}
        encoded = base64.b64encode(many.value).decode()
        path = f"/v1/cluster/{self.uuid}/secret"
        for status, changes in (
            (200, [change | {"value_base64": encoded}]),
            (422, [change | {"value_base64": many.value.decode()}]),
            (422, [change | {"value_base64": encoded, "value": extra.value.decode()}]),
            (422, [change | {"value_base64": [many.value.decode()]}]),
        ):
            assert self.ask("POST", path, json={"changes": changes}).status_code == status
        cut_off = b'{"changes": [{"namespace": "default", "value_base64": "' + encoded.encode()
        assert self.ask("POST", path, content=cut_off).status_code in {400, 422}
        assert self.ask("DELETE", self._secret("many", "one")).status_code == 204
        as_argument = self.type("secret", "put", NAME, "default/db", "password", "--", "not-a-source")
        assert as_argument.returncode == 2

    def _rotate_credentials(self) -> None:
        for role, name in ((Role.FLUX, "flux"), (Role.AGENT, "agent")):
            fresh = cluster_secret(role, os.urandom(SECRET_BYTES)).text
            self._note_token(f"rotated {name} credential", fresh)
            wrong = {"role": "flux" if role is Role.AGENT else "agent", "secret": fresh}
            assert self.ask("POST", "/v1/agent/credential", auth=self._as(self.agent), json=wrong).status_code == 422
            wish = {"role": name, "secret": fresh}
            answer = self.ask("POST", "/v1/agent/credential", auth=self._as(self.agent), json=wish)
            assert answer.status_code == 200, answer.text
            setattr(self, name, fresh)
        assert self.ask("POST", "/v1/agent/heartbeat", auth=self._as(self.agent), json={}).status_code == 200

    def _read_and_push(self) -> None:
        edge_clone, desk_clone = (self.folder / f"clone-{number}" for number in range(2))
        gateway = self.centre.endpoints()["gateway"]
        url = f"{gateway}/git/cluster/{NAME}"
        self._git(self.flux, "clone", "--quiet", f"{gateway}/uuid/{self.uuid}", str(edge_clone), user=self.uuid)
        self._git(self.operator, "clone", "--quiet", url, str(desk_clone))
        by_hand = desk_clone / "by-hand" / "note.yaml"
        by_hand.write_text("---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: note\n  namespace: default\n")
        self._git(self.operator, "-C", str(desk_clone), "add", ".")
        author = ("-c", "user.name=Desk", "-c", "user.email=desk@example.com")
        self._git(self.operator, "-C", str(desk_clone), *author, "commit", "--quiet", "-m", "A note")
        self._git(self.operator, "-C", str(desk_clone), "push", "--quiet", "origin", "main")

    def _move_to_new_hardware(self) -> None:
        for verb in ("pause", "resume"):
            assert self.ask("POST", f"/v1/cluster/{self.uuid}/{verb}", json={}).status_code == 200
        answer = self.ask("POST", f"/v1/cluster/{self.uuid}/recreate", json={"new_hardware": True})
        assert answer.status_code == 202, answer.text
        self._until_ready()
        self._attach("0b8f3a55-1111-4c61-9c7e-0a54b1f0aa02", line="bootstrap-url")
        value = self._mark("a value for the new hardware").value
        assert self.ask("PUT", self._secret("db", "password"), content=value).status_code == 204

    def _remove_and_come_back(self) -> None:
        path = f"/v1/app/{APP_CLUSTER_CONFIGURATION}/object/{self.uuid}"
        entry = self.ask("GET", path).json()
        assert self.ask("DELETE", path).status_code == 204
        eventually(lambda: self.ask("GET", f"/v1/cluster/{self.uuid}/status").status_code == 404, seconds=60)
        assert self.ask("PUT", self._secret("db", "password"), content=b"too late").status_code == 409
        assert self.ask("PUT", path, json=entry).is_success
        self._until_ready()

    def _look_at_everything(self) -> None:
        paths = ["/ping", "/readyz", "/metrics", "/openapi.json", "/v1/cluster", "/v1/token", "/v1/residue"]
        paths += ["/v1/cluster?phase=Deleted", f"/v1/cluster/{self.uuid}"]
        paths += [f"/v1/cluster/{self.uuid}/{part}" for part in ("status", "ready", "timeline", "secret")]
        for app in APPLICATIONS:
            paths += [f"/v1/app/{app}/object", f"/v1/app/{app}/object/{self.uuid}"]
        for path in paths:
            self.ask("GET", path)

    def _read_from_a_terminal(self) -> None:
        for command in ("cluster show", "cluster timeline", "secret list"):
            assert self.type(*command.split(), NAME).returncode == 0
        for command in ("token list", "doctor"):
            assert self.type(*command.split()).returncode == 0

    def _delete(self) -> None:
        """With the agent's answers to all that it is told, until it may say goodbye."""
        assert self.ask("DELETE", f"/v1/cluster/{self.uuid}").status_code == 202

        def agent_is_told_to_detach() -> bool:
            answer = self.ask(
                "POST", "/v1/agent/heartbeat", auth=self._as(self.agent), json={"inventory_empty": True}
            )
            return bool(answer.json().get("detach"))

        eventually(agent_is_told_to_detach, seconds=60)
        assert self.ask("POST", "/v1/agent/detached", auth=self._as(self.agent)).status_code == 204
        eventually(lambda: self.ask("GET", f"/v1/cluster/{self.uuid}").status_code == 410, seconds=60)

    def _git(self, password: str, *arguments: str, user: str = "desk") -> None:
        """A person's git; it asks a program for the password, which is in a file."""
        secret = self.folder / "password"
        secret.write_text(password)
        asked = self.folder / "asked"
        asked.write_text(f"#!/bin/sh\ncase $1 in User*) echo {user} ;; *) cat '{secret}' ;; esac\n")
        asked.chmod(0o700)
        surroundings = {"GIT_ASKPASS": str(asked), "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(self.folder)}
        done = subprocess.run(
            ["git", *arguments],
            env={**os.environ, **surroundings},
            capture_output=True,
            check=False,
            timeout=60,
        )
        secret.unlink()
        self.heard.append((f"output of git {arguments[0]}", done.stdout + done.stderr))
        assert done.returncode == 0, done.stderr

    def _registration_token(self, route: str) -> str:
        answer = self.ask("POST", f"/v1/cluster/{self.uuid}/{route}", handed_out="url")
        assert answer.status_code == 200, answer.text
        body = answer.json()
        token: str = (body if isinstance(body, str) else body["url"]).partition("token=")[2]
        self._note_token("a registration token", token)
        return token

    def _until_ready(self) -> None:
        path = f"/v1/cluster/{self.uuid}/ready"
        eventually(lambda: self.ask("GET", path, params={"wait": 5}).status_code == 200, seconds=60)

    def _secret(self, name: str, key: str) -> str:
        return f"/v1/cluster/{self.uuid}/secret/default/{name}/{key}"

    def _as(self, password: str) -> tuple[str, str]:
        return (self.uuid, password)

    def _mark(self, name: str, *, binary: bool = False) -> Marker:
        marker = marked_bytes(name) if binary else marked_text(name)
        self.markers.append(marker)
        return marker

    def _note_token(self, name: str, text: str) -> None:
        self.markers += token_markers(name, text)


def _without(answer: httpx.Response, member: str) -> bytes:
    """An answer without the token in one of its members; whatever else it holds is looked through."""
    body = answer.json()
    handed_out = body if isinstance(body, str) else str(body.get(member, ""))
    token = handed_out.rpartition("token=")[2]
    return answer.content.replace(token.encode(), b"") if token else answer.content
