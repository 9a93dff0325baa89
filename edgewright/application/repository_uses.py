"""Who names a shared repository: templates, configurations of clusters, and what people push to ``by-hand/``."""

import asyncio
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from edgewright.domain.json import Json
from edgewright.domain.rendering import BY_HAND_FOLDER
from edgewright.domain.repository_paths import printable
from edgewright.domain.wellknown import (
    APP_CLUSTER_CONFIGURATION,
    APP_OBJECT_INFO,
    APPLICATIONS,
    RENDERED_APPS,
)
from edgewright.errors import Conflict, EdgewrightError, NotFound
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.config_store import ConfigStore
from edgewright.ports.git_server import GitServer

PAGE = 100
"""Entries that are read at a time."""
SEARCH_SECONDS = 20.0
"""After which the driving repositories that are left are not searched."""

_MAY_NAME_ONE = (*sorted(RENDERED_APPS), APP_CLUSTER_CONFIGURATION)
_BY_HAND_HINT = "or remove the repository all the same: edgewright repository remove NAME --ignore-by-hand."


@dataclass(frozen=True)
class _Found:
    """Where a search ends.

    Args:
        path: of the file that names the repository.
        unreadable: why the cluster cannot be searched, as a sentence; empty: it can.
    """

    cluster: UUID
    path: str = ""
    unreadable: str = ""


@dataclass(frozen=True)
class RepositoryUses:
    """Finds who names a repository by its path or its UUID, which is how URLs name it."""

    config: ConfigStore
    directory: ClusterDirectory
    git: GitServer
    _searching: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False, compare=False)
    """One search at a time: each keeps a disk and a processor busy."""

    async def refuse_named_in_entries(self, path: str, repository: UUID) -> None:
        """Raises for the first template, or configuration of a cluster, that names the repository.

        Raises:
            Conflict: code ``repository_in_use``.
        """
        named = re.compile(_pattern(path, repository), re.IGNORECASE)
        for app in _MAY_NAME_ONE:
            after: UUID | None = None
            while page := await self.config.bodies(app, after=after, limit=PAGE):
                found = await asyncio.to_thread(_first_naming, named, page)
                if found is not None:
                    raise Conflict(
                        f"The {APPLICATIONS[app].name} {await self._called(app, found)} names this repository.",
                        code="repository_in_use",
                        hint="Take its URL out of there first.",
                    )
                after = page[-1][0]

    async def refuse_named_by_hand(self, path: str, repository: UUID) -> None:
        """Raises for the first file below ``by-hand/`` of a cluster that names the repository.

        Folders that are equal are read once, so that thousands of clusters without files of their own take seconds.

        Raises:
            Conflict: ``repository_in_use``; ``repository_use_unknown``: not all could be searched.
        """
        async with self._searching:
            until = time.monotonic() + SEARCH_SECONDS
            clusters = await self.directory.open_clusters()
            search = _Search(self.git, path, repository, until)
            found = await asyncio.to_thread(search.first, clusters)
        if search.seen < len(clusters) and found is None:
            raise Conflict(
                f"Only {search.seen} of {len(clusters)} clusters could be searched for this repository, in by-hand/.",
                code="repository_use_unknown",
                hint=f"Search the others yourself, {_BY_HAND_HINT}",
            )
        if found is None:
            return
        name = await self.directory.name_of(found.cluster)
        if found.unreadable:
            raise Conflict(
                f"The files of the cluster {name} cannot be searched: {found.unreadable}",
                code="repository_use_unknown",
                hint=f"Repair that repository first, {_BY_HAND_HINT}",
            )
        raise Conflict(
            f"The cluster {name} names this repository in {printable(found.path)}.",
            code="repository_in_use",
            hint=f"Take its URL out of there first, {_BY_HAND_HINT}",
        )

    async def _called(self, app: UUID, object_: UUID) -> str:
        if app == APP_CLUSTER_CONFIGURATION:
            return await self.directory.name_of(object_) or str(object_)
        info = await self.config.get(APP_OBJECT_INFO, object_)
        return (_name_in(info.body) if info is not None else "") or str(object_)


@dataclass
class _Search:
    """Reads driving repositories one after the other; blocks.

    Args:
        until: by ``time.monotonic()``.

    Attributes:
        seen: how many clusters are searched.
    """

    git: GitServer
    path: str
    repository: UUID
    until: float
    seen: int = 0
    _clean: set[str] = field(default_factory=set)
    """Folders that do not name it."""

    def first(self, clusters: Sequence[UUID]) -> _Found | None:
        """The first file that names it; None: there is none among those that were seen."""
        for cluster in clusters:
            try:
                for path, content in self._files(cluster):
                    if self._is_named_in(content):
                        return _Found(cluster, path)
                    if time.monotonic() > self.until:
                        return None
            except NotFound:
                pass  # no repository yet, or none any more
            except EdgewrightError as error:
                return _Found(cluster, unreadable=error.detail)
            if time.monotonic() > self.until:
                return None
            self.seen += 1
        return None

    def _is_named_in(self, content: bytes) -> bool:
        lowered = content.lower()
        if not any(name.encode() in lowered for name in (self.path, str(self.repository))):
            return False  # a regular expression would hold up every other thread ten times as long
        return re.search(_pattern(self.path, self.repository).encode(), lowered) is not None

    def _files(self, cluster: UUID) -> Iterator[tuple[str, bytes]]:
        """Path and content of each file, unless an equal folder was read to its end before."""
        head = self.git.head(cluster)
        folder = None if head is None else self.git.folder_id(cluster, BY_HAND_FOLDER, at=head)
        if head is None or folder is None or folder in self._clean:
            return
        for path in self.git.list(cluster, BY_HAND_FOLDER, at=head):
            yield path, self.git.read(cluster, path, at=head) or b""
        self._clean.add(folder)


def _pattern(path: str, repository: UUID) -> str:
    """Finds the path of a repository, or its UUID, and no longer name that it is part of."""
    return rf"(?<![a-z0-9-]){path}(?![a-z0-9-])|{repository}"


def _first_naming(named: re.Pattern[str], page: Sequence[tuple[UUID, str]]) -> UUID | None:
    return next((object_ for object_, body in page if named.search(body)), None)


def _name_in(info: Json) -> str:
    name = info.get("name") if isinstance(info, Mapping) else None
    return name if isinstance(name, str) else ""
