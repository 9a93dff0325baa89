"""An edge that registers with the line of a bootstrap, reports, and says goodbye."""

import asyncio
import hashlib
import secrets
from dataclasses import dataclass
from uuid import uuid4

import httpx

from tools.chaos.journaling_client import JournalingClient, SentRequest

GOODBYE_ATTEMPTS = 60


@dataclass(frozen=True)
class ChaosEdge:
    """Its two secrets stay in this process."""

    gateway: JournalingClient
    cluster: str
    flux: str
    agent: str

    @property
    def as_agent(self) -> tuple[str, str]:
        return (self.cluster, self.agent)

    @classmethod
    async def attach(
        cls, gateway: JournalingClient, cluster: str, wish: str, *, patience: float
    ) -> "ChaosEdge | None":
        """Takes a fresh line and registers; None if that was not answered."""
        line = SentRequest("POST", f"/v1/cluster/{cluster}/registration-token", json={})
        tokens: list[str] = []

        def keep(answer: httpx.Response) -> dict[str, object]:
            tokens.append(answer.json()["url"].partition("token=")[2])
            return {}  # the token is no fact for the journal

        until = gateway.journal.now() + patience
        while not tokens and gateway.journal.now() < until:
            await gateway.insist(f"{wish}.token", "token", cluster, {}, line, keep, patience=patience)
            await asyncio.sleep(0.1)  # it is refused until the cluster is ready
        if not tokens:
            return None
        edge = cls(gateway, cluster, f"ewf_{secrets.token_hex(32)}", f"ewa_{secrets.token_hex(32)}")
        hashes = {role: hashlib.sha256(secret.encode()).hexdigest() for role, secret in edge._secrets.items()}
        body = {f"{role}_secret": secret for role, secret in edge._secrets.items()}
        body |= {"kube_system_uid": str(uuid4()), "kubernetes_version": "v1.31.2+k3s1"}
        headers = {"Authorization": f"Bearer {tokens[-1]}"}
        request = SentRequest("POST", "/v1/register", json=body, headers=headers)
        registered = await gateway.insist(f"{wish}.register", "register", cluster, hashes, request, patience=patience)
        return edge if registered is not None and registered.outcome == "yes" else None

    @property
    def _secrets(self) -> dict[str, str]:
        return {"flux": self.flux, "agent": self.agent}

    async def say_goodbye(self) -> None:
        """Reports that nothing is left, waits to be told to detach, and goes."""
        for _ in range(GOODBYE_ATTEMPTS):
            beat = SentRequest("POST", "/v1/agent/heartbeat", json={"inventory_empty": True}, auth=self.as_agent)
            line = await self.gateway.ask("", "heartbeat", self.cluster, {}, beat, _told)
            if line is not None and line.outcome == "no":
                return
            if line is not None and line.said.get("detach"):
                bye = SentRequest("POST", "/v1/agent/detached", auth=self.as_agent)
                line = await self.gateway.ask("", "detached", self.cluster, {}, bye)
                if line is not None and line.outcome == "yes":
                    return
            await asyncio.sleep(0.3)


def _told(answer: httpx.Response) -> dict[str, object]:
    return {"detach": answer.json().get("detach")}
