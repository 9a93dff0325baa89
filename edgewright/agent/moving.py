"""Moves to where the centre wants to be reached, so that no wrong word of it locks this edge out.

The new way is tried with a heartbeat under the agent's own credential, and used only if the centre answers there.
Then Flux's Secret gets the new certificates beside those that it has, and after that, in one change, the agent's own
Secret the new way and the one before. The one before is tried whenever the new one fails, until the centre says that
it is gone for good. Killed between any two lines, the next agent begins anew with what is in the Secrets.
"""

import asyncio
import json
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Iterable, Mapping

from edgewright.agent.attachment import AUTHORITY, FORMER, SECRET, URL, Attachment
from edgewright.agent.messages import ACTIVE, ReceivedHeartbeatAnswer
from edgewright.agent.own_secrets import Secrets, read_own
from edgewright.agent.passwords import FLUX, SECRET_OF, HeldSecret
from edgewright.agent.timing import Clock
from edgewright.agent.transitions import Transitions
from edgewright.agent.where import CentreDoor, Where, door_json
from edgewright.errors import Conflict, EdgewrightError, Stalled

TRIAL_SECONDS = 20.0
"""A way that takes longer for one heartbeat is none."""
FIRST_PAUSE, LONGEST_PAUSE = 60.0, 3600.0
"""Seconds between two trials of a way that does not work; doubled each time."""
PATIENCE = 3
"""So often in a row the present way has to fail before the one before is tried: a gateway may just start anew."""

Knock = Callable[[CentreDoor], Awaitable[ReceivedHeartbeatAnswer]]
"""Sends a heartbeat that way, under the agent's own credential."""


class Moving:
    """Moves one edge from one door of the centre to another.

    Args:
        namespace: of its Secrets.
    """

    def __init__(self, secrets: Secrets, *, namespace: str, clock: Clock) -> None:
        self._secrets = secrets
        self._namespace = namespace
        self._clock = clock
        self._matter = Transitions("move")
        self._problem: str | None = None
        self._tried: CentreDoor | None = None
        self._try_at = 0.0
        self._pause = FIRST_PAUSE
        self._failures = 0

    def where(self, attachment: Attachment) -> Where:
        """What a heartbeat says of the way that is used."""
        return Where(attachment.door, holds_former=attachment.former is not None, problem=self._problem)

    async def follow(
        self, answer: ReceivedHeartbeatAnswer, attachment: Attachment, knock: Knock, *, sources: Iterable[str] = ()
    ) -> bool:
        """Does what the centre wants; whether the agent's Secret says something else now.

        Args:
            sources: URLs that Flux's Git sources have.
        """
        wanted, self._failures = answer.move_to, 0
        if wanted is None or wanted == attachment.door:
            self._problem, self._tried = None, None
            return answer.forget_former and await self._forget(attachment, sources)
        if wanted != self._tried:
            self._tried, self._try_at, self._pause = wanted, 0.0, FIRST_PAUSE
        if self._clock.monotonic() < self._try_at:
            return False
        try:
            await self._prove(wanted, attachment, knock)
            await self._trust_for_flux(wanted, attachment)
            await self._write(attachment, wanted, former=attachment.door)
        except EdgewrightError as trouble:
            self._try_at = self._clock.monotonic() + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
            self._problem = f"{wanted.url}: {trouble.detail}"
            self._matter.trouble("stayed", url=wanted.url, detail=trouble.detail, code=trouble.code)
            return False
        self._matter.well("moved", url=wanted.url)
        self._problem, self._tried = None, None
        return True

    async def fall_back(self, attachment: Attachment, knock: Knock) -> ReceivedHeartbeatAnswer | None:
        """The answer of the way before, which is used from now on; None: there is none, or it is not its turn."""
        former = attachment.former
        self._failures += 1
        if former is None or self._failures < PATIENCE:
            return None
        try:
            answer = await _timely(knock(former))
            await self._write(attachment, former, former=attachment.door)
        except EdgewrightError:
            return None
        self._matter.trouble("fell_back", url=former.url)
        return answer

    async def _prove(self, wanted: CentreDoor, attachment: Attachment, knock: Knock) -> None:
        """Raises whatever keeps this edge from the centre there."""
        if attachment.url.startswith("https:") and not wanted.url.startswith("https:"):
            raise Stalled("It is plain http, and where the centre is reached now is not.", code="move_insecure")
        answer = await _timely(knock(wanted))
        if answer.state != ACTIVE or answer.nonce is None or answer.suspended or answer.detach:
            raise Stalled("Who answers there does not know this agent.", code="move_unknown")

    async def _trust_for_flux(self, wanted: CentreDoor, attachment: Attachment) -> None:
        """Lets Flux trust both: it follows by a commit of the centre, which is still to come."""
        held = await self._read(SECRET_OF[FLUX], attachment)
        present = _text(held, AUTHORITY)
        if wanted.authority is None or wanted.authority in (present or ""):
            return
        both = "\n".join(each.strip() for each in (wanted.authority, present) if each)
        await self._change(SECRET_OF[FLUX], held, {AUTHORITY: both + "\n"})

    async def _forget(self, attachment: Attachment, sources: Iterable[str]) -> bool:
        former = attachment.former
        if former is None:
            return False
        if former.url != attachment.url and any(url.startswith(f"{former.url}/") for url in sources):
            return False  # Flux has not followed yet
        try:
            if former.authority is not None and former.authority != attachment.authority:
                held = await self._read(SECRET_OF[FLUX], attachment)
                await self._change(SECRET_OF[FLUX], held, {AUTHORITY: attachment.authority})
            await self._write(attachment, attachment.door, former=None)
        except EdgewrightError as trouble:
            self._matter.trouble("not_forgotten", detail=trouble.detail, code=trouble.code)
            return False
        self._matter.well("settled", url=attachment.url)
        return True

    async def _write(self, attachment: Attachment, door: CentreDoor, *, former: CentreDoor | None) -> None:
        held = await self._read(SECRET, attachment)
        if _text(held, URL).rstrip("/") != attachment.url:  # somebody has attached this edge anew
            raise Conflict("The Secret is another one by now.", code="secret_changed", where=SECRET)
        kept = None if former is None else json.dumps(door_json(former))
        await self._change(SECRET, held, {URL: door.url, AUTHORITY: door.authority, FORMER: kept})

    async def _read(self, name: str, attachment: Attachment) -> HeldSecret:
        return await read_own(self._secrets, self._namespace, name, attachment)

    async def _change(self, name: str, held: HeldSecret, wanted: Mapping[str, str | None]) -> None:
        data = {key: None if text is None else b64encode(text.encode()).decode() for key, text in wanted.items()}
        await self._secrets.change_secret(self._namespace, name, held.version, data)


async def _timely(answer: Awaitable[ReceivedHeartbeatAnswer]) -> ReceivedHeartbeatAnswer:
    try:
        async with asyncio.timeout(TRIAL_SECONDS):
            return await answer
    except TimeoutError:
        raise Stalled(f"It takes longer than {TRIAL_SECONDS:.0f} s.", code="move_slow") from None


def _text(held: HeldSecret, key: str) -> str:
    try:
        return b64decode(held.data.get(key, ""), validate=True).decode().strip()
    except ValueError:
        return ""
