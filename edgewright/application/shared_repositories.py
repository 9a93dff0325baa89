"""Repositories that people push to and every edge reads: each is there because of a *Git repository* entry.

The entry is written before the repository is made, and deleted after it is archived, by one maker at a time. Whoever
dies in between leaves an entry without a repository, and the same request again completes either.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self
from uuid import UUID, uuid5

from edgewright.application.git_storage import demand_storage
from edgewright.application.repository_uses import RepositoryUses
from edgewright.domain.default_entries import HELM_CHARTS_REPOSITORY_PATH
from edgewright.domain.events import EventKind
from edgewright.domain.json import Json, same_json
from edgewright.domain.names import REPOSITORY_NAME, check_repository_name
from edgewright.domain.wellknown import APP_GIT_REPOSITORY, CLASS_GIT_REPOSITORY, REPOSITORY_HELM_CHARTS
from edgewright.errors import Conflict, Forbidden, Invalid, NotFound, PreconditionFailed
from edgewright.ports.config_store import (
    ALWAYS,
    ConfigStore,
    DistinctAmong,
    Entry,
    EntryNews,
    EqualEntry,
    Precondition,
    TooManyEntries,
)
from edgewright.ports.git_server import GitServer
from edgewright.ports.stored import StoredPorts

MOST_SHARED = 50
"""Beside the charts. Every edge may read all of them."""
CHARTS = HELM_CHARTS_REPOSITORY_PATH.removeprefix("shared/")
"""Name of the shared repository that the centre itself writes."""

_SHARED = "shared/"
_OURS = UUID("b1667349-52c5-45b7-bd93-a4df7fcbfde6")
"""Namespace of the UUIDs of repositories that are made by name, so that two who make one at once meet."""
_DISTINCT = DistinctAmong(CLASS_GIT_REPOSITORY, MOST_SHARED + 1)


@dataclass(frozen=True)
class SharedRepository:
    """``made_at``: when its entry was written. ``etag``: of the entry."""

    uuid: UUID
    name: str
    etag: str
    made_at: datetime

    @property
    def path(self) -> str:
        """Where it is served, below ``/git/``."""
        return _SHARED + self.name

    @property
    def is_own(self) -> bool:
        """Whether people push to it."""
        return self.uuid != REPOSITORY_HELM_CHARTS


@dataclass(frozen=True)
class SharedRepositories:
    """The shared repositories, and what may be done to them."""

    config: ConfigStore
    git: GitServer
    uses: RepositoryUses
    _here: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False, compare=False)
    """Held by the one maker of this process, so that only one thread waits for those of others."""

    @classmethod
    def on(cls, ports: StoredPorts) -> Self:
        """Those of an installation."""
        return cls(ports.config, ports.git, RepositoryUses(ports.config, ports.directory, ports.git))

    async def all(self) -> Sequence[SharedRepository]:
        """Every shared repository by name, the charts among them."""
        entries = await self.config.entries_of(APP_GIT_REPOSITORY, CLASS_GIT_REPOSITORY)
        found = (_shared(entry) for entry in entries)
        return sorted((each for each in found if each is not None), key=lambda each: each.name)

    async def named(self, name: str) -> SharedRepository | None:
        """The one with that name."""
        if REPOSITORY_NAME.fullmatch(name) is None:
            return None
        return next((each for each in await self.all() if each.name == name), None)

    async def find(self, repository: UUID) -> SharedRepository | None:
        """The one with that UUID; None for driving repositories, too."""
        entry = await self.config.get(APP_GIT_REPOSITORY, repository)
        return None if entry is None else _shared(entry)

    async def make(self, name: str, *, actor: str) -> tuple[SharedRepository, bool]:
        """Makes the repository ``shared/NAME``; returns it and whether it is new.

        Raises:
            Invalid: code ``name_invalid``.
            Conflict: ``repository_name_taken``, ``too_many_repositories``.
            Waiting: ``git_storage_empty``, ``git_unavailable``, ``repository_busy``, ``repository_archived``.
        """
        _check_name(name, where=None)
        present = await self.named(name)
        uuid = present.uuid if present is not None else uuid5(_OURS, name)
        entry, is_new = await self._write(uuid, {"path": _SHARED + name}, actor=actor, precondition=ALWAYS)
        return SharedRepository(uuid, name, entry.etag, entry.modified_at), is_new

    async def write(self, repository: UUID, body: Json, *, actor: str, precondition: Precondition = ALWAYS) -> bool:
        """Writes a *Git repository* entry and makes its repository, unless both are there; returns whether it is new.

        Raises:
            Invalid: ``name_invalid``; ``entry_without_effect`` for what nobody would act on.
            Conflict: ``repository_name_taken``, ``name_immutable``, ``too_many_repositories``; ``wrong_class`` for an
                object that is no Git repository.
            PreconditionFailed: the entry is another one.
            Waiting: ``git_storage_empty``, ``git_unavailable``, ``repository_busy``, ``repository_archived``.
        """
        _, is_new = await self._write(repository, body, actor=actor, precondition=precondition)
        return is_new

    async def remove(
        self,
        repository: UUID,
        *,
        actor: str,
        precondition: Precondition = ALWAYS,
        ignores_by_hand: bool = False,
    ) -> bool:
        """Archives a repository, then deletes its entry; returns False if there is none.

        Args:
            ignores_by_hand: removes it even if files in ``by-hand/`` name it.

        Raises:
            Forbidden: code ``written_by_centre`` for the charts.
            Conflict: ``repository_in_use``: a template, a configuration or a file in ``by-hand/`` names it;
                ``repository_use_unknown``: not all of ``by-hand/`` could be searched.
            PreconditionFailed: the entry is another one.
            Waiting: ``git_storage_empty``, ``git_unavailable``, ``repository_busy``.
        """
        if repository == REPOSITORY_HELM_CHARTS:
            raise Forbidden(
                "Every edge needs shared/helm-charts; the centre alone writes it.",
                code="written_by_centre",
                hint="Remove a chart of yours with: edgewright chart remove NAME.",
            )
        present = await self.find(repository)
        if present is None:
            return False
        _demand(precondition, present)
        await self.uses.refuse_named_in_entries(present.path, repository)
        if not ignores_by_hand:
            await self.uses.refuse_named_by_hand(present.path, repository)
        await asyncio.to_thread(demand_storage, self.git)
        async with self._sole_maker():
            present = await self.find(repository)
            if present is None:
                return False
            _demand(precondition, present)
            await asyncio.to_thread(self.git.archive, repository)
            news = _news(EventKind.REPOSITORY_REMOVED, present.name, "was removed")
            return await self.config.delete(APP_GIT_REPOSITORY, repository, actor=actor, news=news)

    async def remove_named(
        self, name: str, *, actor: str, precondition: Precondition = ALWAYS, ignores_by_hand: bool = False
    ) -> None:
        """The same by name.

        Raises:
            NotFound: code ``repository_unknown``.
        """
        present = await self.named(name)
        if present is None or not await self.remove(
            present.uuid, actor=actor, precondition=precondition, ignores_by_hand=ignores_by_hand
        ):
            raise NotFound(
                "There is no shared repository with that name.",
                code="repository_unknown",
                hint="`edgewright repository list` shows all.",
            )

    async def _write(
        self, repository: UUID, body: Json, *, actor: str, precondition: Precondition
    ) -> tuple[Entry, bool]:
        await asyncio.to_thread(demand_storage, self.git)
        async with self._sole_maker():
            before = await self.config.get(APP_GIT_REPOSITORY, repository)
            name = _name_in(body) if repository != REPOSITORY_HELM_CHARTS else CHARTS
            if repository == REPOSITORY_HELM_CHARTS:
                _refuse_change_of_charts(before, body)
            else:
                _check_change(before, name)
            archivals = await asyncio.to_thread(self.git.archivals, repository)
            await self.config.create_object(CLASS_GIT_REPOSITORY, repository)
            try:
                entry = await self.config.put(
                    APP_GIT_REPOSITORY,
                    repository,
                    body,
                    actor=actor,
                    precondition=precondition,
                    distinct=_DISTINCT,
                    news=_news(EventKind.REPOSITORY_CREATED, name, "was created"),
                )
            except EqualEntry:
                raise _name_taken() from None
            except TooManyEntries:
                raise Conflict(
                    f"There are {MOST_SHARED} shared repositories, which is as many as there can be.",
                    code="too_many_repositories",
                    hint="Remove one that nobody uses: edgewright repository list.",
                ) from None
            await asyncio.to_thread(self.git.create_repository, repository, archivals=archivals)
            return entry, before is None

    @asynccontextmanager
    async def _sole_maker(self) -> AsyncIterator[None]:
        """Nobody else makes or removes a shared repository meanwhile, in this process or another one."""
        async with self._here:
            with ExitStack() as held:
                await asyncio.to_thread(held.enter_context, self.git.sole_maker())
                yield


def _shared(entry: Entry) -> SharedRepository | None:
    path = entry.body.get("path") if isinstance(entry.body, Mapping) else None
    if not isinstance(path, str) or not path.startswith(_SHARED):
        return None
    return SharedRepository(entry.object, path.removeprefix(_SHARED), entry.etag, entry.modified_at)


def _name_in(body: Json) -> str:
    """The name that an entry says.

    Raises:
        Invalid: ``name_invalid``, ``entry_without_effect``.
    """
    if isinstance(body, Mapping):
        for key in body:
            if key != "path":
                raise _without_effect(key if key in {"pull", "hooks"} else None)
    path = body.get("path") if isinstance(body, Mapping) else None
    name = path.removeprefix(_SHARED) if isinstance(path, str) and path.startswith(_SHARED) else ""
    return _check_name(name, where="/path")


def _check_name(name: str, *, where: str | None) -> str:
    if check_repository_name(name, where=where) == CHARTS:
        raise _name_taken()
    return name


def _check_change(before: Entry | None, name: str) -> None:
    present = None if before is None else _shared(before)
    if present is not None and present.name != name:
        raise Conflict(
            f"This repository is {present.path}, and stays so: edges read it there.",
            code="name_immutable",
            hint="Make another one under the new name, push there, and remove this one.",
            where="/path",
        )


def _refuse_change_of_charts(before: Entry | None, body: Json) -> None:
    present = {"path": HELM_CHARTS_REPOSITORY_PATH} if before is None else before.body
    if not same_json(present, body):
        raise Invalid(
            "The centre alone writes shared/helm-charts, and mirrors no other repository there.",
            code="entry_without_effect",
            hint="Push a chart of yours with: edgewright chart push FOLDER.",
        )


def _without_effect(key: str | None) -> Invalid:
    return Invalid(
        "Of a Git repository, Edgewright reads the path alone: it mirrors no other repository and runs no hooks.",
        code="entry_without_effect",
        hint="Leave out everything but path; push to the repository with git.",
        where=None if key is None else f"/{key}",
    )


def _name_taken() -> Conflict:
    return Conflict(
        "Another shared repository has this name.",
        code="repository_name_taken",
        hint="Choose another name; `edgewright repository list` shows all.",
        where="/path",
    )


def _news(kind: EventKind, name: str, what: str) -> EntryNews:
    path = _SHARED + name
    return EntryNews(kind, f"The repository {path} {what}.", {"repository": path})


def _demand(precondition: Precondition, present: SharedRepository) -> None:
    if not precondition.holds(present.etag):
        raise PreconditionFailed("The entry is not the one that If-Match names.", hint="Read it again, then decide.")
