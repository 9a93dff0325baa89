"""A centre that keeps credentials as the gateway does, and the Secrets of an edge, which outlive its agent."""

import base64
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Any

from scripted_centre import ReceivedRequest, Reply, answer, taken

from edgewright.agent.observation import Fetched, Host, Kustomized, Released
from edgewright.agent.opening import Opening
from edgewright.agent.passwords import HeldSecret
from edgewright.errors import Conflict, Waiting

CLUSTER = "cluster"
ROLES = ("agent", "flux")


class AgentKilled(BaseException):
    """The agent is gone in this moment."""


@dataclass
class Credentials:
    """The passwords of one role: the valid one, its unproven successor, and those that are dead."""

    active: str
    pending: str | None = None
    revoked: list[str] = field(default_factory=list)

    def use(self, password: str) -> bool:
        """Whether it is let in; the first use of a successor revokes the one before."""
        if password == self.pending:
            self.revoked.append(self.active)
            self.active, self.pending = password, None
        return password == self.active

    def add(self, password: str) -> bool:
        """Whether it is taken as a successor, or was before."""
        if password in self.revoked:
            return False
        if password != self.active:
            self.pending = password
        return True


class RotatingCentre:
    """Gives its answers to ``scripted_centre``.

    Args:
        wanted: roles that are to be rotated, until they are.
    """

    def __init__(self, *wanted: str) -> None:
        self.held = {role: Credentials(f"{role}-first") for role in ROLES}
        self.wanted = {role: self.held[role].active for role in wanted}
        self.registered: list[str] = []
        self.lets_register = True

    def reply(self, request: ReceivedRequest) -> Reply:
        spelled = base64.b64decode(request.headers["Authorization"].split()[1]).decode()
        agent = self.held["agent"]
        if not agent.use(spelled.partition(":")[2]):
            return Reply(401)
        match request.path:
            case "/v1/agent/heartbeat":
                return answer(request, rotate=self._wanted_of(request.body.get("flux_sha256")))
            case "/v1/agent/credential":
                return self._register(request.body["role"], request.body["secret"])
            case _:
                return taken()

    def _register(self, role: str, secret: str) -> Reply:
        if not self.lets_register:
            return Reply(503)
        if not self.held[role].add(secret):
            return Reply(409, {"code": "credential_revoked"})
        self.registered.append(secret)
        return Reply(200, {"role": role, "state": "pending"})

    def _wanted_of(self, flux_sha256: str | None) -> list[str]:
        flux = self.held["flux"]
        known = {hashlib.sha256(each.encode()).hexdigest(): each for each in (flux.active, flux.pending) if each}
        used = known.get(flux_sha256 or "")
        roles = [role for role, first in self.wanted.items() if self.held[role].active == first]
        if flux_sha256 is None or (used is not None and used != flux.active):
            roles = [role for role in roles if role != "flux"]
        elif used is None:
            roles.append("flux")
        return sorted(set(roles))


class EdgeSecrets:
    """The two Secrets of an edge, as Kubernetes keeps them: a change names the version that it is for.

    ``before_change`` and ``after_change`` are called with the number of the change, from 1.
    """

    def __init__(self, *, generation: int = 1) -> None:
        self._data = {
            name: _encoded({"username": CLUSTER, "password": f"{role}-first"})
            for name, role in (("edgewright-agent", "agent"), ("flux-secrets", "flux"))
        }
        self._data["edgewright-agent"] |= _encoded({"uuid": CLUSTER, "generation": str(generation)})
        self._versions = dict.fromkeys(self._data, "1")
        self._count, self._changes = count(2), count(1)
        self.before_change: Callable[[int], object] = lambda _number: None
        self.after_change: Callable[[int], object] = lambda _number: None
        self.label = CLUSTER
        self.is_away = False

    def text(self, name: str, key: str = "password") -> str | None:
        value = self._data[name].get(key)
        return None if value is None else base64.b64decode(value).decode()

    def write(self, name: str, **plain: str) -> None:
        """As somebody else does it, such as the bootstrap script."""
        self._data[name] |= _encoded({key.replace("_", "."): value for key, value in plain.items()})
        self._versions[name] = str(next(self._count))

    def data(self, name: str) -> dict[str, str]:
        return dict(self._data[name])

    async def held_secret(self, namespace: str, name: str) -> HeldSecret | None:
        if self.is_away:
            raise Waiting("Kubernetes cannot be reached.", code="kubernetes_away")
        return HeldSecret(self.data(name), {"edgewright.dev/cluster": self.label}, self._versions[name])

    async def change_secret(
        self, namespace: str, name: str, version: str, data: Mapping[str, str | None]
    ) -> HeldSecret:
        number = next(self._changes)
        self.before_change(number)
        if version != self._versions[name]:
            raise Conflict("It is another by now.", code="secret_changed")
        merged = {**self._data[name], **data}
        self._data[name] = {key: value for key, value in merged.items() if value is not None}
        self._versions[name] = str(next(self._count))
        self.after_change(number)
        held = await self.held_secret(namespace, name)
        assert held is not None
        return held


class Blind:
    """An edge that shows nothing."""

    async def namespaces(self, *, most: int) -> list[str]:
        return ["default"][:most]

    async def hosts(self) -> list[Host]:
        raise Waiting("Nothing is seen.")

    async def sources(self, namespace: str, cluster: str) -> list[Fetched]:
        raise Waiting("Nothing is seen.")

    async def kustomizations(self, namespace: str, cluster: str) -> list[Kustomized]:
        raise Waiting("Nothing is seen.")

    async def openings(self) -> list[Opening]:
        raise Waiting("Nothing is seen.")

    async def releases(self, namespace: str, cluster: str) -> list[Released]:
        raise Waiting("Nothing is seen.")

    async def version(self) -> str:
        raise Waiting("Nothing is seen.")

    async def held_secret(self, namespace: str, name: str) -> HeldSecret | None:
        raise Waiting("Nothing is seen.")

    async def may_change_secret(self, namespace: str, name: str) -> bool:
        raise Waiting("Nothing is seen.")

    async def document(self, path: str, accept: str, *, where: str) -> Mapping[str, Any] | None:
        raise Waiting("Nothing is seen.")


class NoDetacher:
    """Nothing of this edge is to be removed."""

    async def scale(self, namespace: str, name: str, replicas: int) -> None:
        raise AssertionError("nobody has ordered that")


class NoFlux:
    """Nothing is to be fetched."""

    async def bounds_fetching(self) -> bool:
        return False

    async def ask_to_fetch(self, namespace: str, source: str, at: datetime) -> None:
        raise AssertionError("nobody has asked for that")


def _encoded(plain: Mapping[str, str]) -> dict[str, str]:
    return {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
