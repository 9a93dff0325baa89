"""The passwords in a Secret of ours: the one in use, the one to come, and the one before.

=====================  ================================================================================
key                    holds
=====================  ================================================================================
``password``           what is used; Flux reads this key and knows no other
``password.next``      made here, and perhaps registered with the centre; used once it is surely registered
``password.previous``  used before; tried where the centre does not know the one in use
``password.generation``  to which the last two belong: the bootstrap script replaces ``password`` alone
=====================  ================================================================================
"""

import secrets
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256

from edgewright.agent.attachment import SECRET

AGENT, FLUX = "agent", "flux"
SECRET_OF = {AGENT: SECRET, FLUX: "flux-secrets"}
PREFIX_OF = {AGENT: "ewa", FLUX: "ewf"}
SECRET_BYTES = 32
CURRENT, NEXT, PREVIOUS, GENERATION = "password", "password.next", "password.previous", "password.generation"


@dataclass(frozen=True, slots=True)
class HeldSecret:
    """A Secret as it was read.

    Args:
        data: base64.
        labels: of the object.
        version: a change names it, and is refused if the object is another by then.
        created: when, by the API server's clock; None: it does not say.
        anchor: UID of the anchor that owns it; None: none does.
    """

    data: Mapping[str, str] = field(repr=False)
    labels: Mapping[str, str]
    version: str
    created: datetime | None = None
    anchor: str | None = None


@dataclass(frozen=True, slots=True)
class Passwords:
    """The passwords of one role; None: there is none."""

    current: str | None = field(repr=False)
    next: str | None = field(default=None, repr=False)
    previous: str | None = field(default=None, repr=False)


def read_passwords(data: Mapping[str, str], generation: int) -> Passwords:
    """The passwords in the data of a Secret; those to come and before only if they are of this generation."""
    current = _text(data, CURRENT)
    if _text(data, GENERATION) != str(generation):
        return Passwords(current)
    return Passwords(current, _text(data, NEXT), _text(data, PREVIOUS))


def change_of(wanted: Passwords, generation: int) -> dict[str, str | None]:
    """What makes the data of a Secret hold these passwords; None: the key goes."""
    said = {
        CURRENT: wanted.current,
        NEXT: wanted.next,
        PREVIOUS: wanted.previous,
        GENERATION: str(generation),
    }
    return {key: None if value is None else b64encode(value.encode()).decode() for key, value in said.items()}


def new_password(role: str) -> str:
    """256 random bits, spelled as the centre wants them."""
    return f"{PREFIX_OF[role]}_{secrets.token_hex(SECRET_BYTES)}"


def hash_of(password: str) -> str:
    """Its SHA-256, hexadecimal: all that the centre keeps."""
    return sha256(password.encode()).hexdigest()


def _text(data: Mapping[str, str], key: str) -> str | None:
    try:
        return b64decode(data.get(key, ""), validate=True).decode().strip() or None
    except ValueError:
        return None
