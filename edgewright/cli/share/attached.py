"""Which attached edges a change of address concerns, told before it happens."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from sqlalchemy import make_url

from edgewright.adapters.database.migrations import known_revisions, present_revisions
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.home import authority_file
from edgewright.cli.invocation import typed
from edgewright.cli.share.choice import Sharing
from edgewright.domain.reach import Door, ca_digest
from edgewright.ports.edge_reports import Elsewhere
from edgewright.settings import Settings
from edgewright.wiring import open_ports

_NOWHERE = Door("")
"""Where no edge is: all of them are elsewhere."""
_MOST_NAMES = 10


@dataclass(frozen=True)
class Affected:
    """Attached edges, by what a change of address does to them.

    Args:
        moving: they still reach the centre, which tells them where to go.
        cut_off: they do not; each has to be attached again.
    """

    moving: Sequence[Elsewhere]
    cut_off: Sequence[Elsewhere]


def affected_edges(settings: Settings, sharing: Sharing) -> Affected:
    """What becomes of the attached edges once ``sharing`` is in force."""
    authority = authority_file(settings.home)
    ours = ca_digest(authority.read_text("ascii")) if authority.exists() else None
    attached = asyncio.run(_attached(settings))
    moving, cut_off = list[Elsewhere](), list[Elsewhere]()
    for edge in attached:
        if edge.reach is None:
            cut_off.append(edge)
            continue
        url = urlsplit(edge.reach.url)
        is_served = url.scheme == "https" and url.hostname in sharing.hosts and sharing.address is not None
        if not is_served or edge.reach.ca_sha256 != ours:
            cut_off.append(edge)
        elif url.hostname != sharing.address:
            moving.append(edge)
    return Affected(moving, cut_off)


def warn_of_affected(affected: Affected, say: Callable[[str], None], require: Callable[[str], None]) -> None:
    """Says what happens, and has it confirmed if edges would be cut off.

    Args:
        require: raises unless somebody says yes to a question.
    """
    if affected.moving:
        say(
            f"{_counted(affected.moving)} under the former address: {_names(affected.moving)}.\n"
            "They move to the new one by themselves, as long as the former one still leads to this machine.\n"
            f"`{typed('doctor')}` lists who has not moved yet."
        )
    if affected.cut_off:
        say(
            f"{_counted(affected.cut_off)} in a way that ends now: {_names(affected.cut_off)}.\n"
            f"Attach each of them again with a new line from `{typed('cluster bootstrap NAME')}`."
        )
        require("Cut them off?")


async def _attached(settings: Settings) -> Sequence[Elsewhere]:
    url = make_url(settings.effective_database_url)
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():  # noqa: ASYNC240 - one look
        return ()
    async with open_ports(settings) as ports:
        async with ports.database.read() as connection:
            present = await connection.run_sync(present_revisions)
        if not present:
            return ()  # the first start was interrupted
        if present != known_revisions()[-1:]:
            raise CliError(
                "The database is of another version, so the edges that use the present address are not known.",
                f"Run `{typed('admin init')}` first; it brings the database up to date.",
                ExitCode.REFUSED,
            )
        return await ports.edge_reports.elsewhere(_NOWHERE)


def _counted(edges: Sequence[Elsewhere]) -> str:
    return "1 edge reaches this centre" if len(edges) == 1 else f"{len(edges)} edges reach this centre"


def _names(edges: Sequence[Elsewhere]) -> str:
    shown = ", ".join(
        f"{each.name} ({each.reach.url if each.reach else 'URL unknown'})" for each in edges[:_MOST_NAMES]
    )
    more = len(edges) - _MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown
