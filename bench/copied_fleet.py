"""Thousands of clusters in a stopped home: one that was commissioned is copied, its rows and its repository.

Each copy is a cluster like the first one: the next start begins its workflow, which reads its row and finds nothing
to do. So what a large fleet costs can be measured without the hour that commissioning it takes. If the first one has
an edge, each copy has one, too: another, with credentials of its own (``edge_identities``).
"""

import asyncio
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Table, Uuid, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from bench.edge_identities import secret_of
from edgewright.adapters.database.tables import accounts, feed, metadata
from edgewright.adapters.git.layout import repository_folder
from edgewright.application.rendering import RenderInputs
from edgewright.domain.cluster import Role
from edgewright.domain.credentials import sha256_of
from edgewright.ports.clusters import ClusterRow
from edgewright.settings import Settings
from edgewright.wiring import OpenPorts, open_ports

AT_ONCE = 200
"""Clusters that are written in one transaction."""
POSITIONS = ("position", "sequence")
SILENCE = timedelta(hours=6)
"""So long an edge that is copied may stay silent: until all copies run, and it is played."""

Row = dict[str, Any]


@dataclass(frozen=True)
class _Original:
    """A commissioned cluster: its row, the UUIDs that are its own, and every row of any table with one of them."""

    row: ClusterRow
    digest: str
    own: frozenset[UUID]
    rows: Mapping[str, list[Row]]


def copy_cluster(home: Path, original: UUID, count: int, *, external_url: str) -> None:
    """Adds ``count`` copies of a commissioned cluster to a home that nobody uses.

    Args:
        external_url: that the centre runs with; the copies would be rendered anew for another one.
    """
    asyncio.run(_copy(home, original, count, external_url))


async def _copy(home: Path, uuid: UUID, count: int, external_url: str) -> None:
    async with open_ports(Settings(home=home, database_url=None)) as ports:
        inputs = RenderInputs(ports.config, external_url)
        original = await _read(ports, uuid)
        for first in range(0, count, AT_ONCE):
            names = [f"{original.row.spec.name}-{uuid4().hex[:12]}" for _ in range(min(AT_ONCE, count - first))]
            copies: dict[str, list[Row]] = {}
            for name in names:
                new = uuid4()
                spec = original.row.spec.model_copy(update={"name": name})
                digest = (await inputs.collect(replace(original.row, uuid=new, spec=spec))).digest
                for table, row in _copied(original, new, name, digest):
                    copies.setdefault(table, []).append(row)
                await asyncio.to_thread(_copy_repository, home / "repositories", uuid, new)
            async with ports.database.write() as connection:
                await _write(connection, copies)


async def _read(ports: OpenPorts, uuid: UUID) -> _Original:
    row = await ports.directory.get(uuid)
    assert row is not None
    assert row.projection is not None
    assert row.projection.done.rendered_digest
    async with ports.database.read() as connection:
        own = {uuid, *await connection.scalars(select(accounts.c.uuid).where(accounts.c.cluster == uuid))}
        rows = {table.name: [found async for found in _rows_of(connection, table, own)] for table in _tables()}
    return _Original(row, row.projection.done.rendered_digest, frozenset(own), rows)


def _tables() -> list[Table]:
    return [table for table in metadata.sorted_tables if any(isinstance(c.type, Uuid) for c in table.columns)]


async def _rows_of(connection: AsyncConnection, table: Table, own: set[UUID]) -> Any:
    for row in (await connection.execute(select(table))).mappings():
        if own & {value for value in row.values() if isinstance(value, UUID)}:
            yield {column.key: row[column.name] for column in table.columns}


def _copied(original: _Original, new: UUID, name: str, digest: str) -> Iterator[tuple[str, Row]]:
    """Every row of one copy: its own UUIDs are others, and so is whatever texts and documents say of them."""
    uuids = {old: new if old == original.row.uuid else uuid4() for old in original.own}
    texts = {str(old): str(other) for old, other in uuids.items()}
    texts |= {original.row.spec.name: name, original.digest: digest}
    for table, rows in original.rows.items():
        if table == "registration_tokens":  # spent, and known by an ID that is no UUID
            continue
        for row in rows:
            copy = {column: _renamed(value, uuids, texts) for column, value in row.items()}
            yield table, copy | _of_its_own(table, row, new)


def _of_its_own(table: str, row: Row, cluster: UUID) -> Row:
    """What no two clusters, or no two rows, have in common."""
    if table == "events":
        return {"id": uuid4()}
    if table == "credentials":
        secret = secret_of(cluster, Role(row["role"]))
        return {"id": uuid4(), "token": None, "secret_sha256": sha256_of(secret)}
    if table == "clusters" and row["kube_system_uid"] is not None:
        return {"kube_system_uid": str(uuid4()), "lease_expires_at": datetime.now(UTC) + SILENCE}
    return {}


def _renamed(value: Any, uuids: Mapping[UUID, UUID], texts: Mapping[str, str]) -> Any:
    if isinstance(value, UUID):
        return uuids.get(value, value)
    if isinstance(value, str):
        for old, new in texts.items():
            value = value.replace(old, new)
        return value
    if isinstance(value, dict | list):
        return json.loads(_renamed(json.dumps(value), uuids, texts))
    return value


async def _write(connection: AsyncConnection, copies: Mapping[str, list[Row]]) -> None:
    """In the order in which tables refer to each other, with positions of their own."""
    position = await connection.scalar(select(feed.c.position)) or 0
    for table in metadata.sorted_tables:
        rows = copies.get(table.name, [])
        for row in rows:
            for column in POSITIONS:
                if column in row:
                    position += 1
                    row[column] = position
        if rows:
            await connection.execute(insert(table), rows)
    await connection.execute(update(feed).values(position=position))


def _copy_repository(root: Path, original: UUID, new: UUID) -> None:
    """Objects never change: links do. The copy's files say what the original's do, but for the name in them."""
    source, target = repository_folder(root, original), repository_folder(root, new)
    shutil.copytree(source, target, symlinks=True, copy_function=_copy_file)


def _copy_file(source: str, target: str) -> None:
    if "/objects/" in source:
        os.link(source, target)
    else:
        shutil.copy2(source, target)
