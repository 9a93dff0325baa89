"""What hostile callers know, and what came of what they did."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

PAUSE = 0.02
ADDRESS = "127.0.0.2"
"""Nobody who is hostile shares an address with an edge; who does, shares its bounds, too."""


@dataclass(frozen=True)
class Target:
    """What the hostile callers know.

    Args:
        cluster: one that is theirs: they have its agent's password, and its registration token, which is spent.
        neighbour: another cluster, whose UUID they know.
        tokens: permission -> operator token.
        ports: on which programs of the centre listen.
        certificates: two of theirs, PEM.
        met: how often something came of an attack that shows that it arrived, in a few words.
    """

    url: str
    temporal: str
    cluster: UUID
    neighbour: UUID
    agent_password: str
    spent_token: str
    tokens: dict[str, str]
    ports: Sequence[int]
    certificates: tuple[str, str]
    met: Counter[str] = field(default_factory=Counter)
