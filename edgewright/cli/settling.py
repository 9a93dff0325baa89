"""Makes a restored database and the repositories fit each other, before anything runs on them."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import UUID

from edgewright.adapters.database.engine.engine import open_database, sqlite_file
from edgewright.adapters.database.engine.sqlite_copy import check_sqlite
from edgewright.adapters.database.migrations import OtherSchema
from edgewright.adapters.database.upkeep.after_restore import begin_anew, clusters_with_staged_secrets, is_listened_to
from edgewright.adapters.git.bundles import return_from_archive
from edgewright.application.committed_requests import already_committed, by_request
from edgewright.application.installation import renew_installation_id
from edgewright.application.repository_ahead import PUT_BACK_TRAILER, entered_since, removal_undone, taken_away
from edgewright.application.shared_repositories import SharedRepositories
from edgewright.cli.backup_manifest import Manifest
from edgewright.cli.failures import CliError, ExitCode
from edgewright.domain.cluster import Fence
from edgewright.errors import NotFound
from edgewright.ports.git_server import CommitMessage
from edgewright.ports.stored import StoredPorts
from edgewright.settings import Settings
from edgewright.wiring import open_ports

_EVERYTHING = 1_000_000


async def refuse_while_served(settings: Settings) -> None:
    """Raises ``CliError`` if a gateway somewhere serves from this database; for PostgreSQL, where no lock tells."""
    if sqlite_file(settings.effective_database_url) is not None:
        return
    async with open_ports(settings) as ports:
        await ports.database.migrate()
        if await is_listened_to(ports.database):
            raise CliError(
                "A gateway serves from this database, or did so until a moment ago.",
                "Stop all gateways and workers, and wait 15 seconds.",
                ExitCode.REFUSED,
            )


async def bring_up_to_date(copy: Path, manifest: Manifest) -> None:
    """Checks the copy of a SQLite database, and brings its schema to this version.

    Raises:
        CliError: a newer version has made it.
        Stalled: it is damaged.
    """
    check_sqlite(copy)
    try:
        async with open_database(f"sqlite+aiosqlite:///{copy}") as database:
            await database.migrate()
    except OtherSchema as error:
        raise CliError(
            f"The database in this backup is of Edgewright {manifest.edgewright}, which this version cannot read.",
            "Nothing was changed. Restore it with that version or a newer one.",
            ExitCode.REFUSED,
        ) from error


@dataclass(frozen=True)
class Settled:
    """How many repositories a restore has taken out of what deletions after the backup had made of them.

    Args:
        returned: from the archive.
        put_back: those that have again what a removal commit took away.
    """

    returned: int
    put_back: int


async def settle(settings: Settings, made_at: datetime) -> Settled:
    """Prepares the database in its place."""
    async with open_ports(settings) as ports:
        wanted = await begin_anew(ports.database, made_at=made_at)
        await renew_installation_id(ports.config)
        shared = [each.uuid for each in await SharedRepositories.on(ports).all()]
        returned = sum(return_from_archive(ports.repositories.root, each) for each in (*wanted, *shared))
        for cluster in wanted:
            await _find_entered(ports, cluster)  # first: what is found next counts as known
        for cluster in await clusters_with_staged_secrets(ports.database):
            await _find_committed(ports, cluster)
        put_back = 0
        for cluster in wanted:
            await _raise_fence(ports, cluster)
            put_back += await _put_back(ports, cluster)
            await _find_taken_away(ports, cluster)
    return Settled(returned, put_back)


async def _find_entered(ports: StoredPorts, cluster: UUID) -> None:
    """Takes off the list of what has to be entered again what was entered after the backup was made."""
    row = await ports.directory.get(cluster)
    if row is None or not row.must_reenter:
        return
    try:
        there = await asyncio.to_thread(
            entered_since, ports.git, cluster, row.must_reenter, last_known=row.secrets_commit
        )
    except NotFound:
        return
    fence = Fence(cluster=cluster, generation=row.generation, change=row.change)
    await ports.steps.record_reentry(fence, there=there)


async def _find_committed(ports: StoredPorts, cluster: UUID) -> None:
    """Records the commits of requests that were staged when the backup was made, and committed after.

    Committed once more, each would put an old value in the place of whatever was written to its key since.
    """
    requests = by_request((await ports.staging.pending(cluster, limit=_EVERYTHING)).changes)
    try:
        log = await asyncio.to_thread(ports.git.log, cluster, limit=_EVERYTHING)
    except NotFound:
        return
    for commit_id, of_commit in already_committed(reversed(log), requests).items():
        await ports.staging.committed(of_commit, commit_id)


async def _raise_fence(ports: StoredPorts, cluster: UUID) -> None:
    """The changes of the row go on with numbers that fences in a newer repository may bear already: one of before the
    restore must not count as one of after it."""
    row = await ports.directory.get(cluster)
    if row is not None:
        with suppress(NotFound):
            await asyncio.to_thread(ports.git.raise_fence, cluster, f"{row.generation}/{row.change}")


async def _put_back(ports: StoredPorts, cluster: UUID) -> bool:
    """Undoes a removal commit that the database does not know: it wants the cluster as it was before.

    Returns:
        Whether there was one.
    """
    row = await ports.directory.get(cluster)
    try:
        undone = await asyncio.to_thread(removal_undone, ports.git, cluster)
        head = ports.git.head(cluster)
    except NotFound:
        return False
    if row is None or undone is None:
        return False
    removal, changes = undone
    fence = Fence(cluster=cluster, generation=row.generation, change=row.change)
    message = CommitMessage(
        subject="Put back what a deletion after the backup removed",
        actor="centre",
        trailers=(
            ("Edgewright-Cluster", str(cluster)),
            ("Edgewright-Fence", fence.trailer()),
            (PUT_BACK_TRAILER, removal),
        ),
    )
    await asyncio.to_thread(ports.git.commit, cluster, changes, message, expected_head=head)
    return True


async def _find_taken_away(ports: StoredPorts, cluster: UUID) -> None:
    """Lists what a move to new hardware has taken away that was not known when the backup was made."""
    row = await ports.directory.get(cluster)
    if row is None:
        return
    known = row.projection.done.generation if row.projection else 0
    try:
        taken = await asyncio.to_thread(taken_away, ports.git, cluster, after=known)
    except NotFound:
        return
    if taken:
        fence = Fence(cluster=cluster, generation=row.generation, change=row.change)
        await ports.steps.record_reentry(fence, taken=taken)
