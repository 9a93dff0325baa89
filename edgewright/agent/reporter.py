"""Keeps the lease of one edge and reports its status, for as long as it runs, whatever the centre answers.

No answer and no silence makes it change anything on the edge but its own two passwords; the order to detach makes it
start what removes.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Protocol

from edgewright.agent.attachment import SECRET, Attachment
from edgewright.agent.check_in import CheckInTimes
from edgewright.agent.fetching import FluxFetching
from edgewright.agent.holding import Holding
from edgewright.agent.lacks import NODES
from edgewright.agent.leaving import Leaving
from edgewright.agent.messages import ACTIVE, PENDING, ReceivedHeartbeatAnswer, SentHeartbeat
from edgewright.agent.moving import Moving
from edgewright.agent.passwords import AGENT
from edgewright.agent.pauses import SHORTEST_INTERVAL, SHORTEST_PAUSE, Backoff, until_next_beat
from edgewright.agent.rotation import Rotation
from edgewright.agent.timing import Clock
from edgewright.agent.transitions import Transitions
from edgewright.agent.watch import Watch
from edgewright.agent.where import CentreDoor
from edgewright.errors import EdgewrightError, Invalid, Refused, Stalled, TooLarge, Unauthenticated, Waiting

ATTACHED_ANEW = "attached_anew"
OWN_SECRET = f"Secret {SECRET}"
PATIENCE = 300.0
"""Seconds after a start in which the agent waits to have seen everything, where the centre has a status already."""


class CentreCalls(Protocol):
    """One centre, as one cluster; see ``centre.Centre``."""

    @property
    def attachment(self) -> Attachment: ...

    async def heartbeat(self, beat: SentHeartbeat) -> ReceivedHeartbeatAnswer: ...

    async def put_status(self, status: Mapping[str, Any]) -> str | None: ...

    async def register_credential(self, role: str, secret: str) -> None: ...

    async def resealed(self, fingerprint: str, secrets: Sequence[Mapping[str, Any]]) -> Sequence[str]: ...

    async def close(self) -> None: ...


class Nonces:
    """Ties each heartbeat of an agent to the one before: two agents with one identity break the chain."""

    def __init__(self) -> None:
        self.current = secrets.token_hex(16)
        """To send; the same until it is answered, for the centre may have it already."""
        self.previous: str | None = None
        """The last one that was answered."""

    def answered(self) -> None:
        """The current one was; the next heartbeat has another."""
        self.previous, self.current = self.current, secrets.token_hex(16)


class Reporter:
    """Reports one edge's status and renews its lease.

    Args:
        centre: to begin with.
        attachment: asks for the attachment that is in force now; None: there is none any more.
        connect: makes the calls of an attachment.
        rotation: of this edge's credentials.
        leaving: what is told and done once the cluster is deleted.
        moving: to where the centre wants to be reached.
        fetching: of what the centre wants fetched.
        reseal: is told the Secrets that the centre wants to have re-sealed, and whom to hand them in to.
        answered: is called whenever the centre has answered a heartbeat.
    """

    def __init__(
        self,
        centre: CentreCalls,
        watch: Watch,
        *,
        attachment: Callable[[], Awaitable[Attachment | None]],
        connect: Callable[[Attachment], CentreCalls],
        rotation: Rotation,
        leaving: Leaving,
        moving: Moving,
        fetching: FluxFetching,
        clock: Clock,
        chance: Random,
        reseal: Callable[[Sequence[str], CentreCalls], None] = lambda _secrets, _centre: None,
        answered: Callable[[], None] = lambda: None,
    ) -> None:
        self._centre = centre
        self._reseal = reseal
        self._answered = answered
        self._watch = watch
        self._attachment = attachment
        self._connect = connect
        self._rotation = rotation
        self._leaving = leaving
        self._moving = moving
        self._fetching = fetching
        self._nonces, self._check_in = Nonces(), CheckInTimes(chance, clock.monotonic())
        self._holding = Holding(clock, chance)
        self._interval = SHORTEST_INTERVAL
        self._clock = clock
        self._chance = chance
        self._matter, self._status_matter = Transitions("centre"), Transitions("status")
        self._backoff, self._status_backoff = Backoff(chance), Backoff(chance)
        self._status_at = clock.monotonic()
        self._patient_until = clock.monotonic() + PATIENCE
        self._takes_status = False
        self._proves = False
        self._asked_for_status = False
        self._own_is_missing = False
        self._offered: Mapping[str, Any] | None = None
        self._digest: str | None = None

    async def run(self) -> None:
        """Reports until it is cancelled.

        Raises:
            Stalled: ``attached_anew``: the Secret is another cluster's by now; a new start begins with that.
        """
        next_beat = self._clock.monotonic()
        try:
            while True:
                if self._clock.monotonic() >= next_beat or self._leaving.has_news(self._watch.seen):
                    pause = await self._beat()
                    next_beat = self._check_in.postponed(self._clock.monotonic() + pause, self._interval)
                self._watch.news.clear()  # before the look at what was seen, or some of it would be overlooked
                status = self._due_status()
                if status is not None and self._clock.monotonic() >= self._status_at:
                    await self._report(status)
                    continue
                await self._wait(next_beat, is_due=status is not None)
        finally:
            await self._centre.close()

    async def _beat(self) -> float:
        """A heartbeat; returns the seconds to the next."""
        await self._take_up_own_secret()
        flux_sha256 = await self._rotation.flux_sha256(self._centre.attachment)
        beat = SentHeartbeat(
            sent_at=self._clock.now(),
            nonce=self._nonces.current,
            observed_revision=self._watch.seen.known_revision,
            status_digest=self._digest,
            flux_sha256=flux_sha256,
            inventory_empty=self._leaving.says_empty(self._watch.seen),
            previous_nonce=self._nonces.previous,
            where=self._moving.where(self._centre.attachment),
            wait=self._holding.offer(self._interval),
            wants_digest=None if self._leaving.expects_news else self._holding.known_digest,
            revisions=self._holding.revisions,
            asks_flux=self._fetching.works,
        )
        self._leaving.told(empty=beat.inventory_empty)
        began = self._clock.monotonic()
        try:
            answer = await self._answer(beat)
        except EdgewrightError as trouble:
            cut = self._holding.was_cut(beat, trouble, self._clock.monotonic() - began)
            if cut is not None:
                return SHORTEST_PAUSE if await self._has_moved() else cut
            beat = _to_be_answered_at_once(beat)
            self._takes_status = False
            state = "refused" if isinstance(trouble, Refused) else "away"
            self._matter.trouble(state, detail=trouble.detail, code=trouble.code)
            if await self._has_moved():
                return SHORTEST_PAUSE
            heard = await self._fall_back(beat) if isinstance(trouble, Unauthenticated) else None
            heard = heard or await self._return(beat)
            if heard is None:
                return self._backoff.after_failure(_asked_by(trouble))
            answer = heard
        self._backoff.reset()
        self._answered()
        self._nonces.answered()
        self._interval = max(SHORTEST_INTERVAL, answer.interval)
        self._check_in.told(answer.check_in, self._clock.monotonic())
        pause = self._holding.answered(beat, answer, self._clock.monotonic() - began)
        self._obey(answer)
        await self._fetching.heard(answer.revisions, self._watch.seen)
        await self._leaving.heard(answer, self._centre.attachment)
        if await self._has_rotated(answer) or await self._has_followed(answer, _to_be_answered_at_once(beat)):
            return SHORTEST_PAUSE
        if self._leaving.expects_news:  # what the centre waits for is said at once, whatever this is
            pause = until_next_beat(answer.interval, self._chance)
        return self._leaving.pause(pause)

    async def _take_up_own_secret(self) -> None:
        """Goes on with what a fresh bootstrap line has put in the place of a Secret that was gone."""
        was_missing, self._own_is_missing = self._own_is_missing, OWN_SECRET in self._watch.seen.missing
        if was_missing and not self._own_is_missing:
            await self._has_moved()

    async def _answer(self, beat: SentHeartbeat) -> ReceivedHeartbeatAnswer:
        """The centre's, however long it is held back; what is seen meanwhile is reported at once."""
        if beat.wants_digest is None:
            return await self._centre.heartbeat(beat)
        answer = asyncio.ensure_future(self._centre.heartbeat(beat))
        news: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        try:
            while not answer.done():
                self._watch.news.clear()
                status = self._due_status()
                if status is not None and self._clock.monotonic() >= self._status_at:
                    await self._report(status)
                    continue
                await self._fetching.heard(beat.revisions, self._watch.seen)
                news.cancel()
                news = asyncio.ensure_future(self._news_or_due(beat, is_due=status is not None))
                await asyncio.wait({answer, news}, return_when=asyncio.FIRST_COMPLETED)
                if news.done():
                    news.result()
            return answer.result()
        finally:
            answer.cancel()
            news.cancel()

    async def _news_or_due(self, beat: SentHeartbeat, *, is_due: bool) -> None:
        """Until something else is seen, a status that is due may be sent, or Flux may be asked once more."""
        now = self._clock.monotonic()
        moments = [self._status_at - now] if is_due else []
        again = self._fetching.until_next_try(beat.revisions, self._watch.seen)
        moments += [] if again is None else [again]
        if moments:
            await self._clock.sleep(max(0.0, min(moments)), until=self._watch.news)
        else:
            await self._watch.news.wait()

    def _obey(self, answer: ReceivedHeartbeatAnswer) -> None:
        """Takes note of what the centre wants."""
        self._takes_status = answer.state == ACTIVE and not (answer.suspended or answer.detach)
        self._asked_for_status = answer.status_due
        if answer.detach:
            self._matter.well("detach", note="The centre has deleted this cluster: it is to be let go.")
        elif answer.suspended:
            self._matter.well("suspended", note="The centre has suspended this cluster: nothing is reported.")
        elif answer.state == PENDING:
            self._matter.well("pending", note="An operator has to accept this cluster at the centre.")
        else:
            self._matter.well(answer.state)
            self._reseal(answer.reseal, self._centre)

    async def _has_rotated(self, answer: ReceivedHeartbeatAnswer) -> bool:
        """Replaces the credentials that the centre wants replaced; whether our own is another one now."""
        proves, self._proves = self._proves, False
        if answer.state != ACTIVE or answer.suspended or answer.detach:
            return False
        # The heartbeat that proves our own came at once: a centre that never has enough must not get one each second.
        due = [role for role in answer.rotate if not (proves and role == AGENT)]
        done = [role for role in due if await self._rotation.rotate(role, self._centre)]
        self._proves = AGENT in done and await self._has_moved()
        return self._proves

    async def _has_followed(self, answer: ReceivedHeartbeatAnswer, beat: SentHeartbeat) -> bool:
        """Goes to where the centre wants to be reached; whether it is another place now."""
        if answer.state != ACTIVE or answer.suspended or answer.detach:
            return False

        async def knock(door: CentreDoor) -> ReceivedHeartbeatAnswer:
            said = replace(beat, nonce=self._nonces.current, previous_nonce=self._nonces.previous)
            heard = await self._heartbeat_at(door, said)
            self._nonces.answered()
            return heard

        sources = [each.url for each in self._watch.seen.sources or ()]
        moved = await self._moving.follow(answer, self._centre.attachment, knock, sources=sources)
        return moved and await self._has_moved()

    async def _return(self, beat: SentHeartbeat) -> ReceivedHeartbeatAnswer | None:
        """The answer to the same heartbeat where the centre was before, which counts from now on; None: no answer."""

        async def knock(door: CentreDoor) -> ReceivedHeartbeatAnswer:
            return await self._heartbeat_at(door, beat)

        answer = await self._moving.fall_back(self._centre.attachment, knock)
        return answer if answer is not None and await self._has_moved() else None

    async def _heartbeat_at(self, door: CentreDoor, beat: SentHeartbeat) -> ReceivedHeartbeatAnswer:
        calls = self._connect(self._centre.attachment.through(door))
        try:
            return await calls.heartbeat(beat)
        finally:
            await calls.close()

    async def _fall_back(self, beat: SentHeartbeat) -> ReceivedHeartbeatAnswer | None:
        """The answer to the same heartbeat under another of our passwords, which counts from now on; None: none does.

        The centre, or this edge, may have been restored from a backup that is older than the other side.
        """
        attachment = self._centre.attachment
        for password in await self._rotation.others(attachment):
            calls = self._connect(replace(attachment, password=password))
            try:
                answer = await calls.heartbeat(beat)
            except EdgewrightError:
                continue
            finally:
                await calls.close()
            return answer if await self._rotation.adopt(password, attachment) and await self._has_moved() else None
        return None

    def _due_status(self) -> Mapping[str, Any] | None:
        """The status that the centre should get now; None if it has it, wants none, or too little was seen."""
        seen = self._watch.seen
        if not self._takes_status or (seen.hosts is None and not seen.is_unknown(NODES)):
            return None
        if not (self._asked_for_status or self._check_in.is_open(self._clock.monotonic())):
            return None
        # After a start of the whole machine some parts come late, and what the centre has is better than half of it.
        if not (seen.is_whole or self._asked_for_status or self._clock.monotonic() >= self._patient_until):
            return None
        status = seen.to_json()
        return status if self._asked_for_status or status != self._offered else None

    async def _report(self, status: Mapping[str, Any]) -> None:
        try:
            self._digest = await self._centre.put_status(status)
        except (Invalid, TooLarge) as refusal:
            # The same again would be refused again; the centre asks again with its next answer.
            self._status_matter.trouble("unacceptable", detail=refusal.detail, code=refusal.code)
        except EdgewrightError as trouble:
            self._status_matter.trouble("not_taken", detail=trouble.detail, code=trouble.code)
            self._status_at = self._clock.monotonic() + self._status_backoff.after_failure(_asked_by(trouble))
            return
        else:
            self._status_matter.well("taken")
        self._status_backoff.reset()
        self._status_at = self._clock.monotonic() + SHORTEST_PAUSE  # what comes meanwhile goes together
        self._offered = status
        self._asked_for_status = False

    async def _wait(self, next_beat: float, *, is_due: bool) -> None:
        """Until the next heartbeat, the next try with a status that is due, or news that the centre takes."""
        wake = min(next_beat, self._status_at) if is_due else next_beat
        news = self._watch.news if self._takes_status and not is_due else None
        await self._clock.sleep(max(0.0, wake - self._clock.monotonic()), until=news)

    async def _has_moved(self) -> bool:
        """Whether the Secret says something else than before; from then on that counts."""
        try:
            found = await self._attachment()
            if found is None or found == self._centre.attachment:
                return False
            if found.cluster != self._centre.attachment.cluster:
                raise Stalled("The Secret belongs to another cluster by now.", code=ATTACHED_ANEW)
            fresh = self._connect(found)
        except EdgewrightError as trouble:
            if trouble.code == ATTACHED_ANEW:
                raise
            return False  # the watch tells of Kubernetes' troubles
        await self._centre.close()
        self._centre = fresh
        self._holding.forget()
        self._backoff.reset()
        self._digest, self._offered = None, None
        self._matter.well("attachment_changed", url=found.url, generation=found.generation)
        return True


def _to_be_answered_at_once(beat: SentHeartbeat) -> SentHeartbeat:
    return replace(beat, wants_digest=None)


def _asked_by(trouble: EdgewrightError) -> float:
    return trouble.retry_after if isinstance(trouble, Waiting) else 0.0
