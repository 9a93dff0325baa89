"""Clients that live through the lives that the seed has given them."""

import asyncio
from dataclasses import dataclass, field, replace
from random import Random

from temporalio.client import Client
from temporalio.service import RPCError

from tools.chaos import requests
from tools.chaos.edge_keys import EdgeKey
from tools.chaos.edges import ChaosEdge
from tools.chaos.golden import EDGE_CLUSTER, NEW_AGENT, OLD_AGENT
from tools.chaos.journal import JournalLine
from tools.chaos.journaling_client import JournalingClient, SentRequest
from tools.chaos.pushes import Pusher
from tools.chaos.wishes import PlannedLife, SecretRequest, Step, plan_life

PATIENT, IMPATIENT = 80.0, 15.0
"""Seconds. An idempotency key that a dead gateway has claimed is free again after a minute."""
SEEN_SECONDS = 25.0
RESUME_SECONDS = 600.0
"""How long a client insists on a last resume, also after the last kill: a cluster that stays paused never comes to
rest."""


@dataclass
class Player:
    """One client, which plays one life after the other.

    Args:
        stop: set when no further request is to be begun.
    """

    seed: int
    number: int
    gateway: JournalingClient
    keys: list[EdgeKey]
    temporal: Client
    stop: asyncio.Event
    lives: int = 0
    random: Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = Random(f"{self.seed}/pauses/{self.number}")

    async def play(self, most: int = 1_000_000) -> None:
        """Lives until it is stopped, or so many lives."""
        name = None
        while self.lives < most and not self.stop.is_set():
            life = plan_life(self.seed, self.number, self.lives, name=name)
            self.lives += 1
            gone = await _Play(self, life).run()
            name = life.name if gone and life.again else None


class _Play:
    """One life, being played."""

    def __init__(self, player: Player, life: PlannedLife) -> None:
        self._player, self._life = player, life
        self._gateway = player.gateway
        self._cluster = life.uuid or ""
        self._sure = True
        self._certified = False
        self._gone = False
        self._edge: ChaosEdge | None = None
        self._key: EdgeKey | None = None
        self._paused_by = ""
        self._patience = PATIENT if player.random.random() < 0.2 else IMPATIENT

    async def run(self) -> bool:
        """Returns whether the cluster was seen to be gone."""
        for step in self._life.steps:
            if self._player.stop.is_set():
                break
            await asyncio.sleep(self._player.random.uniform(0, 0.2))
            if not await self._take(step):
                break
        if self._paused_by and not self._gone:
            await self._resume_at_last()
        return self._gone

    async def _take(self, step: Step) -> bool:
        """Sends a step and its secrets at the same moment. False: this life ends here."""
        if step.verb != "create" and not self._cluster:
            return False
        calm = step.calm and self._sure and self._certified
        secrets = [self._change_secrets(wish, calm=calm) for wish in step.secrets]
        line, *_ = await asyncio.gather(self._request(step), *secrets)
        if step.verb in {"secrets", "upgrade"}:
            return True
        self._sure = self._sure and line is not None and line.outcome == "yes"
        return line is not None and (line.outcome == "yes" or step.verb == "observe") and not self._gone

    async def _request(self, step: Step) -> JournalLine | None:
        match step.verb:
            case "create":
                return await self._create(step)
            case "status":
                return await self._status(step)
            case "observe":
                return await self._observe()
            case "delete":
                return await self._delete(step)
            case "change" if step.asked["door"] == "rest":
                return await self._send(step, requests.patch(step, self._cluster))
            case "change":
                return await self._send(step, requests.write_entry(step, self._cluster))
            case "contest":
                return await self._contest(step)
            case "push":
                return await Pusher(self._gateway).push(step.wish, self._cluster, patience=self._patience)
            case "remove":
                return await self._removed(step)
            case "recreate":
                return await self._recreate(step)
            case "pause":
                self._paused_by = step.wish
                return await self._send(step, requests.pause(step, self._cluster))
            case "resume":
                return await self._resume(step)
            case "undelete":
                return await self._undelete(step)
            case "upgrade":
                return await self._upgrade(step)
        return None

    async def _send(self, step: Step, request: SentRequest) -> JournalLine | None:
        return await self._gateway.insist(
            step.wish, step.verb, self._cluster, step.asked, request, patience=self._patience
        )

    async def _create(self, step: Step) -> JournalLine | None:
        if self._cluster:
            body = {"class": EDGE_CLUSTER, "uuid": self._cluster}
            known = await self._gateway.insist(
                f"{step.wish}.object",
                "object",
                self._cluster,
                {},
                SentRequest("POST", "/v1/object", json=body),
                patience=self._patience,
            )
            if known is None or known.outcome != "yes":
                return known
            return await self._send(step, requests.write_entry(step, self._cluster))
        line = await self._gateway.insist(
            step.wish,
            step.verb,
            "",
            step.asked,
            requests.create(step),
            lambda answer: {"uuid": answer.json()["uuid"]},
            patience=self._patience,
        )
        self._cluster = str(line.said["uuid"]) if line and line.outcome == "yes" else ""
        return line

    async def _status(self, step: Step) -> JournalLine | None:
        """By an edge that registers, or by an operator if there is none."""
        key = self._key = self._player.keys[step.asked["key"]]
        if self._life.attached:
            self._edge = await ChaosEdge.attach(self._gateway, self._cluster, step.wish, patience=self._patience)
        request = requests.status(self._cluster, key)
        if self._edge is not None:
            body = requests.edge_status_body(key, OLD_AGENT)
            request = SentRequest("PUT", "/v1/agent/status", json=body, auth=self._edge.as_agent)
        line = await self._send(step, request)
        self._certified = line is not None and line.outcome == "yes"
        return line

    async def _upgrade(self, step: Step) -> JournalLine | None:
        """Has the agent upgraded; then its edge proves that, or somebody calls it off."""
        if self._edge is None or self._key is None:
            return None
        line = await self._send(step, requests.upgrade(self._cluster))
        if line is None or line.outcome != "yes":
            return line
        if step.asked["end"] == "call off":
            request = requests.call_off(self._cluster)
            return await self._send(Step("call off", f"{step.wish}.off"), request)
        if step.asked["end"] == "proof":
            body = requests.edge_status_body(self._key, NEW_AGENT)
            proof = SentRequest("PUT", "/v1/agent/status", json=body, auth=self._edge.as_agent)
            return await self._send(Step("prove", f"{step.wish}.proof"), proof)
        return line

    async def _recreate(self, step: Step) -> JournalLine | None:
        if step.asked.get("new_hardware"):
            self._certified, self._edge = False, None
        if step.asked["door"] == "entry":
            return await self._send(step, requests.write_entry(step, self._cluster))
        return await self._send(step, requests.recreate(step, self._cluster))

    async def _contest(self, step: Step) -> JournalLine | None:
        """Two writers of one revision at the same moment. Who is refused because the other one won is content."""
        read = await self._gateway.insist(
            f"{step.wish}.read",
            "read",
            self._cluster,
            {},
            requests.read_entry(self._cluster),
            requests.etag,
            patience=self._patience,
        )
        if read is None or read.outcome != "yes":
            return read
        fought = await asyncio.gather(
            *(self._fight(step, rival, read.said["etag"]) for rival in range(len(step.asked["rivals"])))
        )
        decided = [line for line in fought if line is not None and line.outcome != "maybe"]
        return replace(decided[0], outcome="yes") if len(decided) == len(fought) else None

    async def _fight(self, step: Step, rival: int, etag: str) -> JournalLine | None:
        asked = {name: value for name, value in step.asked.items() if name != "rivals"}
        asked |= {"fields": step.asked["rivals"][rival], "contest": step.wish}
        write = Step("change", f"{step.wish}.{rival}", asked)
        return await self._send(write, requests.write_entry(write, self._cluster, etag=etag))

    async def _removed(self, step: Step) -> JournalLine | None:
        """404 after an attempt that got no answer means that it had happened."""
        line = await self._send(step, requests.remove(self._cluster))
        if line is not None and (line.outcome, line.code) == ("no", "entry_unknown"):
            return replace(line, outcome="yes")
        return line

    async def _resume(self, step: Step) -> JournalLine | None:
        line = await self._send(step, requests.resume(self._cluster))
        if line is not None and line.outcome == "yes":
            self._paused_by = ""
        return line

    async def _resume_at_last(self) -> None:
        wish, until = f"{self._paused_by}.last", self._gateway.journal.now() + RESUME_SECONDS
        while self._gateway.journal.now() < until:
            line = await self._gateway.ask(wish, "resume", self._cluster, {}, requests.resume(self._cluster))
            # Overtaken: an earlier pause, which got no answer, was applied meanwhile.
            if line is not None and line.outcome != "maybe" and line.code != "overtaken":
                return
            await asyncio.sleep(0.2)

    async def _undelete(self, step: Step) -> JournalLine | None:
        """A refusal because nothing is being deleted, after an attempt without an answer, means that it had happened.

        The deletion may have ended before, too.
        """
        line = await self._send(step, requests.undelete(self._cluster))
        if line is not None and line.outcome == "no" and line.code != "not_deleting":
            await self._until_gone()
        if line is not None and (line.outcome, line.code) == ("no", "not_deleting"):
            return replace(line, outcome="yes")
        return line

    async def _observe(self) -> JournalLine | None:
        line = await self._gateway.insist(
            "", "observe", self._cluster, {}, requests.observe(self._cluster), requests.observed, patience=5.0
        )
        self._gone = self._gone or (line is not None and line.status in {404, 410})
        return line

    async def _change_secrets(self, wish: SecretRequest, *, calm: bool) -> JournalLine | None:
        return await self._gateway.insist(
            wish.wish,
            "secrets",
            self._cluster,
            {"changes": wish.changes, "calm": calm},
            requests.change_secrets(wish, self._cluster),
            requests.committed,
            patience=self._patience,
        )

    async def _delete(self, step: Step) -> JournalLine | None:
        if step.asked["door"] == "signal":
            line = await self._signal(step)
        else:
            line = await self._send(step, requests.delete(step, self._cluster))
        if line is not None and line.outcome == "yes":
            if step.asked.get("goodbye") and self._edge is not None:
                await self._edge.say_goodbye()
            if not step.asked.get("thought_over"):
                await self._until_gone()
        return line

    async def _signal(self, step: Step) -> JournalLine | None:
        """Temporal's word is not ours: the deletion counts as answered once the gateway shows it."""
        until = self._gateway.journal.now() + 2 * SEEN_SECONDS
        line: JournalLine | None = None
        while self._gateway.journal.now() < until:
            began = self._gateway.journal.now()
            try:
                handle = self._player.temporal.get_workflow_handle(f"cluster-{self._cluster}")
                await handle.signal("delete", {"force": True})
                code = ""
            except RPCError as error:
                code = error.status.name
            except RuntimeError:
                code = "not connected"
            asked, now = step.asked, self._gateway.journal.now()
            self._gateway.journal.write(
                JournalLine(step.wish, "delete", self._cluster, asked, began, now, "maybe", code=code)
            )
            for _ in range(10):
                await asyncio.sleep(0.3)
                line = await self._observe()
                if line is not None and (line.status in {404, 410} or line.said.get("desired") == "deleted"):
                    return replace(line, outcome="yes")
        return line

    async def _until_gone(self) -> None:
        until = self._gateway.journal.now() + SEEN_SECONDS
        while not self._gone and self._gateway.journal.now() < until and not self._player.stop.is_set():
            await asyncio.sleep(0.3)
            await self._observe()
