"""What `doctor --repositories` finds. It reads every repository whole: a disk may have damaged what nobody read."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from sqlalchemy import and_, select

from edgewright.adapters.database.engine.engine import sqlite_file
from edgewright.adapters.database.tables import clusters
from edgewright.adapters.git.bundles import repository_of
from edgewright.adapters.git.inspection import damage_of, places
from edgewright.adapters.git.layout import ARCHIVE
from edgewright.application.shared_repositories import SharedRepositories
from edgewright.cli.checks import Check, CheckVerdict
from edgewright.domain.cluster import Desired
from edgewright.errors import EdgewrightError
from edgewright.settings import Settings
from edgewright.wiring import open_ports

AT_ONCE = 2
MOST_NAMED = 20
"""Damaged repositories that have a line of their own."""
_LIVES = and_(clusters.c.closed_at.is_(None), clusters.c.desired == Desired.PRESENT)
_KNOWN = select(clusters.c.uuid, clusters.c.name, clusters.c.observed_revision, _LIVES.label("lives"))
_FIX = 'See "A repository is damaged, or has lost its HEAD" in docs/troubleshooting.md.'


@dataclass(frozen=True)
class Known:
    """What the database says of a repository.

    Args:
        name: of its cluster, or the path of a shared repository.
        applied: the commit that the edge has; empty: none.
        lives: whether it has to be in service, once something is in it.
        shared: whether every edge reads it.
    """

    name: str
    applied: str
    lives: bool
    shared: bool = False

    @property
    def title(self) -> str:
        """Names the repository in a finding."""
        return f"repository {self.name}" if self.shared else f"repository of {self.name}"


def repository_checks(settings: Settings) -> list[Check]:
    """One finding if all are whole, else one for each that is not."""
    root = settings.effective_git_root
    found = places(root)
    known = asyncio.run(_known(settings))
    damaged = [*_damaged(root, found, known), *_absent(found, known)]
    if damaged:
        more = len(damaged) - MOST_NAMED
        rest = [_wrong("repositories", f"{more} more are damaged.")] if more > 0 else []
        return damaged[:MOST_NAMED] + rest
    archived = sum(place.startswith(ARCHIVE) for place in found)
    sentence = f"Each object of {len(found)} repositories, {archived} of them archived, is what was written."
    return [Check("repositories", CheckVerdict.OK, sentence)]


async def _known(settings: Settings) -> Mapping[UUID, Known]:
    """Nothing if the database is away: other findings say so. One that is not there yet is not made."""
    file = sqlite_file(settings.effective_database_url)
    if file is not None and not file.exists():
        return {}
    with suppress(EdgewrightError, OSError):
        async with open_ports(settings) as ports:
            shared = await SharedRepositories.on(ports).all()
            async with ports.database.read(long=True) as connection:
                rows = await connection.execute(_KNOWN)
                clusters_known = {
                    row.uuid: Known(row.name, (row.observed_revision or "")[-40:], lives=bool(row.lives))
                    for row in rows
                }
            return clusters_known | {each.uuid: Known(each.path, "", lives=True, shared=True) for each in shared}
    return {}


def _damaged(root: Path, found: Sequence[str], known: Mapping[UUID, Known]) -> Iterator[Check]:
    def look(place: str) -> str | None:
        cluster = known.get(repository_of(place))
        serves = cluster is not None and cluster.lives and not place.startswith(ARCHIVE)
        return damage_of(root / place, wanted=(cluster.applied if cluster and serves else "") or None)

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="inspection") as pool:
        for place, damage in zip(found, pool.map(look, found), strict=True):
            if damage:
                named = known.get(repository_of(place))
                yield _wrong(named.title if named else "repository", f"{place}: {damage}")


def _absent(found: Sequence[str], known: Mapping[UUID, Known]) -> Iterator[Check]:
    there = {repository_of(place) for place in found if not place.startswith(ARCHIVE)}
    for uuid, each in known.items():
        if uuid in there or not each.lives:
            continue
        if each.shared:
            yield _wrong(each.title, f"{uuid}.git is not there, but edges may read it.")
        elif each.applied:
            yield _wrong(each.title, f"{uuid}.git is not there, but its edge has applied it.")


def _wrong(name: str, sentence: str) -> Check:
    return Check(name, CheckVerdict.WRONG, sentence, _FIX)
