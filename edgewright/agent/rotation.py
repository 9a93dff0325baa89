"""Replaces the credentials of this edge by new ones, so that the agent may be killed between any two lines.

The new password is in the Secret before the centre hears of it, and in use once the centre has it. The centre revokes
the one before when the new one is used: the agent's by its next heartbeat, Flux's by its next fetch. As long as that
has not happened the centre goes on asking, and what was begun is gone on with.
"""

from dataclasses import replace
from typing import Protocol

from edgewright.agent.attachment import Attachment
from edgewright.agent.own_secrets import Secrets, read_own
from edgewright.agent.passwords import (
    AGENT,
    FLUX,
    SECRET_OF,
    HeldSecret,
    Passwords,
    change_of,
    hash_of,
    new_password,
    read_passwords,
)
from edgewright.agent.transitions import Transitions
from edgewright.errors import Conflict, EdgewrightError

REVOKED = "credential_revoked"


class Registrar(Protocol):
    """Where a successor is registered; see ``centre.Centre``."""

    @property
    def attachment(self) -> Attachment: ...

    async def register_credential(self, role: str, secret: str) -> None: ...


class Rotation:
    """Replaces the two credentials of one edge.

    Args:
        namespace: of its Secrets.
    """

    def __init__(self, secrets: Secrets, *, namespace: str) -> None:
        self._secrets = secrets
        self._namespace = namespace
        self._matters = {role: Transitions(f"{role}_credential") for role in (AGENT, FLUX)}

    async def flux_sha256(self, attachment: Attachment) -> str | None:
        """SHA-256 of the password that Flux uses; None: it cannot be told, or is not ours to replace."""
        try:
            held = await self._read(FLUX, attachment)
        except EdgewrightError as trouble:
            self._matters[FLUX].trouble("unreadable", detail=trouble.detail, code=trouble.code)
            return None
        self._matters[FLUX].well("known")
        current = read_passwords(held.data, attachment.generation).current
        return None if current is None else hash_of(current)

    async def rotate(self, role: str, centre: Registrar) -> bool:
        """Puts a new password in the place of the one in use; whether that is done. If not, the next turn goes on."""
        try:
            await self._rotate(role, centre)
        except EdgewrightError as trouble:
            self._matters[role].trouble("kept", detail=trouble.detail, code=trouble.code)
            return False
        self._matters[role].well("replaced")
        return True

    async def others(self, attachment: Attachment) -> list[str]:
        """Passwords of the agent beside that of the attachment, which the centre may know instead."""
        try:
            held = await self._read(AGENT, attachment)
        except EdgewrightError:
            return []
        found = read_passwords(held.data, attachment.generation)
        return [each for each in (found.next, found.previous) if each not in (None, attachment.password)]

    async def adopt(self, password: str, attachment: Attachment) -> bool:
        """Makes one of ``others`` the one in use, for the centre knows it; whether that is done."""
        try:
            held = await self._read(AGENT, attachment)
            wanted = Passwords(password, previous=attachment.password)
            await self._change(AGENT, held, wanted, attachment)
        except EdgewrightError as trouble:
            self._matters[AGENT].trouble("not_adopted", detail=trouble.detail, code=trouble.code)
            return False
        self._matters[AGENT].well("adopted", note="The centre knows this one, and not the one that was in use.")
        return True

    async def _rotate(self, role: str, centre: Registrar) -> None:
        attachment = centre.attachment
        held = await self._read(role, attachment)
        found = read_passwords(held.data, attachment.generation)
        if found.next is None:
            found = replace(found, next=new_password(role))
            held = await self._change(role, held, found, attachment)
            self._matters[role].well("made")
        assert found.next is not None  # noqa: S101 - for the type checker
        try:
            await centre.register_credential(role, found.next)
        except Conflict as refusal:
            if refusal.code == REVOKED:  # with all others, while it was on its way: the next turn makes another
                await self._change(role, held, replace(found, next=None), attachment)
            raise
        await self._change(role, held, Passwords(found.next, previous=found.current), attachment)

    async def _read(self, role: str, attachment: Attachment) -> HeldSecret:
        return await read_own(self._secrets, self._namespace, SECRET_OF[role], attachment)

    async def _change(self, role: str, held: HeldSecret, wanted: Passwords, attachment: Attachment) -> HeldSecret:
        data = change_of(wanted, attachment.generation)
        return await self._secrets.change_secret(self._namespace, SECRET_OF[role], held.version, data)
