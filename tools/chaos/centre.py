"""What a chaos run needs of the centre that it plays with, wherever that runs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Protocol

from tools.chaos.journal import Journal
from tools.chaos.stores import Stores


@dataclass(frozen=True)
class Address:
    """How clients reach a centre; all of it stays, whatever is killed.

    Args:
        url: of the gateway, or of the proxy before several.
        token: of an operator.
        temporal: ``host:port``.
        authority: PEM file of who vouches for the URL's certificate; None: there is none to be checked.
    """

    url: str
    token: str = field(repr=False)
    temporal: str
    authority: Path | None = None


class Strikes(Protocol):
    """What can be done to a running centre.

    Args:
        kills: processes killed so far, by part.
        put_back: how often Temporal's database was put back.
    """

    kills: Counter[str]
    put_back: int

    def due(self, *, short: bool) -> Sequence[str]:
        """Kinds of which each has to happen once, in this order.

        Args:
            short: the run has no time for what takes long to be noticed.
        """

    def choose(self, *, short: bool) -> str:
        """The kind of the next one.

        Args:
            short: the run has no time for those that take long to recover from.
        """

    async def strike(self, kind: str) -> bool:
        """False: that cannot be done at this moment, and nothing was."""

    async def revive(self) -> None:
        """Starts what has ended and does not start by itself."""

    async def come_back(self) -> None:
        """Returns when everything runs again."""


class ChaosCentre(Protocol):
    """A centre with stores of its own; the methods block."""

    @property
    def address(self) -> Address:
        """Known once it was started."""

    def start(self) -> None:
        """Returns when all of it runs."""

    def strikes(self, journal: Journal, random: Random) -> Strikes:
        """What can be done to it; each deed is written down in the journal."""

    def unfinished(self) -> list[str]:
        """What the stores say is still to be done, one line each."""

    def stop(self) -> None:
        """Ends everything that writes, in peace; the stores can be read."""

    def stores(self) -> Stores:
        """Read now; while it runs, of one moment only as far as one store goes."""

    def clear_up(self) -> None:
        """Leaves no process behind, whatever has happened."""
