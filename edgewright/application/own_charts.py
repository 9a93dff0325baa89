"""Charts that people push to ``shared/helm-charts``: tried with what they feed, committed at once, removed unused."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID, uuid5

from edgewright.application.chart_templates import ChartTemplate, ChartTemplates, chart_of
from edgewright.application.rendering import Templates, read_templates
from edgewright.domain.cluster import ClusterSpec, Desired
from edgewright.domain.events import EventKind
from edgewright.domain.kubernetes_names import EDGEWRIGHT_NAMESPACE
from edgewright.domain.own_charts import OWN_CHARTS, ChartFacts, PackedChart, check_chart_name, own_folder
from edgewright.domain.rendering import ChartRelease, releases_of_shared_charts
from edgewright.domain.templates import TemplateError
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.errors import Conflict, EdgewrightError, Invalid, NotFound, PreconditionFailed, Stalled, Waiting
from edgewright.ports.audit import AuditLog, NewEvent
from edgewright.ports.config_store import ALWAYS, Precondition
from edgewright.ports.git_server import CommitId, CommitMessage, GitServer, HeadMoved

ATTEMPTS = 5
"""Commits that others may overtake."""
EVENT_ATTEMPTS = 3
MOST_OWN_CHARTS = 100
"""Every edge fetches all of them."""
TRIAL_SECONDS = 20.0
"""After which the clusters that are left are not tried."""


class ChartTried(Protocol):
    """A chart that is to be committed, as it would stand among the others. Blocks."""

    @property
    def warnings(self) -> Sequence[str]:
        """What of the chart cannot be checked, in sentences."""

    def misfit(self, release: ChartRelease, *, partly: bool) -> str | None:
        """Why values do not fit, as a sentence; ``partly``: more are laid over them later."""


class ChartShelf(Protocol):
    """Reads charts; blocks."""

    def facts(self, folder: str, *, at: CommitId) -> ChartFacts | None:
        """What the chart in a folder says of itself; None: there is none."""

    def needs(self, folder: str, other: str, *, at: CommitId) -> bool:
        """Whether the chart in a folder has the one in another folder as a dependency."""

    def trial(self, chart: PackedChart, *, at: CommitId) -> ChartTried:
        """The chart beside those that a commit holds.

        Raises:
            Invalid: code ``chart_invalid``.
        """


@dataclass(frozen=True)
class SharedChart:
    """A chart in ``shared/helm-charts``.

    Args:
        folder: where it is.
        is_own: somebody has pushed it; else the centre brings it.
        templates: names of the Helm chart templates that use it.
        clusters: how many clusters these render.
    """

    facts: ChartFacts
    folder: str
    is_own: bool
    templates: Sequence[str]
    clusters: int


@dataclass(frozen=True)
class PushedChart:
    """A push that is done.

    Args:
        before: the version that it replaces; empty: none was there.
        commit: the head of ``shared/helm-charts``.
        clusters: how many get it.
        unchecked: of how many the values were not tried, as that took too long.
    """

    facts: ChartFacts
    before: str
    commit: CommitId
    clusters: int
    unchecked: int
    warnings: Sequence[str]


@dataclass(frozen=True)
class ChartFolders:
    """Knows which folders hold a chart now."""

    git: GitServer
    shelf: ChartShelf

    async def has(self, folder: str) -> bool:
        head = await asyncio.to_thread(_head, self.git)
        return await asyncio.to_thread(self.shelf.facts, folder, at=head) is not None


@dataclass(frozen=True)
class OwnCharts:
    """The charts in ``shared/helm-charts``. ``url``: base of the centre's URLs, as templates are rendered with."""

    git: GitServer
    audit: AuditLog
    shelf: ChartShelf
    templates: ChartTemplates
    url: str

    async def all(self) -> Sequence[SharedChart]:
        """Every chart that edges can fetch, by folder, those of the centre too."""
        head = await asyncio.to_thread(_head, self.git)
        charts = await asyncio.to_thread(self._charts, head)
        templates = await self.templates.all()
        users = await self.templates.directory.chart_users()
        return [_shared(folder, facts, templates, users) for folder, facts in charts.items()]

    async def push(self, chart: PackedChart, *, actor: str, precondition: Precondition = ALWAYS) -> PushedChart:
        """Commits a chart in the place of the one with its name. The same push again finds its own outcome.

        Args:
            precondition: about the version that is there.

        Raises:
            Invalid: ``chart_invalid``, ``chart_misfit``.
            Conflict: ``chart_version_taken``, ``chart_name_taken``, ``too_many_charts``.
            PreconditionFailed: another version is there.
            HeadMoved: others keep pushing.
        """
        for attempt in range(1, ATTEMPTS + 1):
            head = await asyncio.to_thread(_head, self.git)
            before = await asyncio.to_thread(self.shelf.facts, chart.folder, at=head)
            if before is not None and await asyncio.to_thread(self._is_there, chart, head):
                return PushedChart(chart.facts, before.version, head, await self._users(chart.folder), 0, ())
            _demand(precondition, before)
            await asyncio.to_thread(self._refuse_taken, chart, before, head)
            tried = await asyncio.to_thread(self.shelf.trial, chart, at=head)
            unchecked = await self._try(chart, tried)
            try:
                commit = await asyncio.to_thread(self._commit, chart, head, actor)
            except HeadMoved:
                if attempt == ATTEMPTS:
                    raise
                continue
            replaced = before.version if before is not None else ""
            await self._tell(EventKind.CHART_PUSHED, chart.facts, commit, actor=actor, before=replaced)
            users = await self._users(chart.folder)
            return PushedChart(chart.facts, replaced, commit, users, unchecked, tried.warnings)
        raise AssertionError("unreachable")

    async def remove(self, name: str, *, actor: str, precondition: Precondition = ALWAYS) -> CommitId:
        """Takes a pushed chart away that no template uses; returns the commit.

        Raises:
            NotFound: code ``chart_unknown``.
            Conflict: code ``chart_in_use``.
            PreconditionFailed: another version is there.
            HeadMoved: others keep pushing.
        """
        folder = own_folder(check_chart_name(name))
        for attempt in range(1, ATTEMPTS + 1):
            head = await asyncio.to_thread(_head, self.git)
            facts = await asyncio.to_thread(self.shelf.facts, folder, at=head)
            if facts is None:
                raise NotFound(
                    "Nobody has pushed a chart with that name.",
                    code="chart_unknown",
                    hint="`edgewright chart list` shows all.",
                )
            _demand(precondition, facts)
            if users := await self._using(folder):
                raise Conflict(
                    f"The Helm chart template {users[0].called} uses this chart.",
                    code="chart_in_use",
                    hint="Remove that template first, or give it another chart: edgewright template list.",
                )
            if dependents := await asyncio.to_thread(self._dependents, folder, head):
                raise Conflict(
                    f"The chart {dependents[0]} depends on this one.",
                    code="chart_in_use",
                    hint="Remove that chart first, or push a version of it without this dependency.",
                )
            message = CommitMessage(subject=f"Remove the chart {name}", actor=actor)
            try:
                commit = await asyncio.to_thread(self._write, folder, {}, message, head)
            except HeadMoved:
                if attempt == ATTEMPTS:
                    raise
                continue
            await self._tell(EventKind.CHART_REMOVED, facts, commit, actor=actor, before=facts.version)
            return commit
        raise AssertionError("unreachable")

    def _dependents(self, folder: str, head: CommitId) -> Sequence[str]:
        return [facts.name for each, facts in self._charts(head).items() if self.shelf.needs(each, folder, at=head)]

    def _charts(self, head: CommitId) -> dict[str, ChartFacts]:
        paths = self.git.list(REPOSITORY_HELM_CHARTS, "", at=head)
        folders = sorted({_chart_folder(path) for path in paths} - {""})
        found = {folder: self.shelf.facts(folder, at=head) for folder in folders}
        return {folder: facts for folder, facts in found.items() if facts is not None}

    async def _using(self, folder: str) -> Sequence[ChartTemplate]:
        return [each for each in await self.templates.all() if each.shared_folder == folder]

    async def _users(self, folder: str) -> int:
        """How many clusters have a template of a chart; none has two."""
        users = await self.templates.directory.chart_users()
        return sum(users.get(each.uuid, 0) for each in await self._using(folder))

    def _is_there(self, chart: PackedChart, head: CommitId) -> bool:
        prefix = f"{chart.folder}/"
        listed = self.git.list(REPOSITORY_HELM_CHARTS, prefix, at=head)
        if {path.removeprefix(prefix) for path in listed} != chart.files.keys():
            return False
        return all(
            self.git.read(REPOSITORY_HELM_CHARTS, prefix + path, at=head) == content
            for path, content in chart.files.items()
        )

    def _refuse_taken(self, chart: PackedChart, before: ChartFacts | None, head: CommitId) -> None:
        name, version = chart.facts.name, chart.facts.version
        if before is not None and before.version == version:
            raise Conflict(
                f"{name} {version} was pushed before, with other files.",
                code="chart_version_taken",
                hint="Somebody else may have pushed it. Raise the version in Chart.yaml, then push again.",
            )
        charts = self._charts(head)
        if name in charts:
            raise Conflict(
                f"The centre itself has a chart called {name}.",
                code="chart_name_taken",
                hint="Give yours another name, in Chart.yaml.",
            )
        own = [folder for folder in charts if folder.startswith(f"{OWN_CHARTS}/")]
        if before is None and len(own) >= MOST_OWN_CHARTS:
            raise Conflict(
                f"{MOST_OWN_CHARTS} charts were pushed, and every edge fetches all of them.",
                code="too_many_charts",
                hint="Remove one that nobody uses: edgewright chart list.",
            )

    def _commit(self, chart: PackedChart, head: CommitId, actor: str) -> CommitId:
        files = {f"{chart.folder}/{path}": content for path, content in chart.files.items()}
        subject = f"Push the chart {chart.facts.name} {chart.facts.version}"
        return self._write(chart.folder, files, CommitMessage(subject=subject, actor=actor), head)

    def _write(self, folder: str, files: dict[str, bytes], message: CommitMessage, head: CommitId) -> CommitId:
        """Makes a folder hold exactly these files."""
        present = self.git.list(REPOSITORY_HELM_CHARTS, f"{folder}/", at=head)
        changes: dict[str, bytes | None] = {path: None for path in present if path not in files}
        changes.update(files)
        return self.git.commit(REPOSITORY_HELM_CHARTS, changes, message, expected_head=head)

    async def _try(self, chart: PackedChart, tried: ChartTried) -> int:
        """Renders whatever uses the chart; returns how many clusters there was no time for.

        Raises:
            Invalid: code ``chart_misfit``.
        """
        until, left = time.monotonic() + TRIAL_SECONDS, 0
        for template in await self._using(chart.folder):
            try:
                templates = await read_templates(self.templates.config, template.uuid)
            except Stalled:
                continue  # nothing is rendered, and Blocked says why
            anybody = ClusterSpec(name="anybody", namespace=EDGEWRIGHT_NAMESPACE)
            found = await asyncio.to_thread(
                self._misfit, chart, tried, templates, template.uuid, anybody, partly=True
            )
            if found is not None:
                raise _misfit(f"the Helm chart template {template.called}", chart, found)
            for user in await self.templates.users_of(template):
                if time.monotonic() > until:
                    left += 1
                    continue
                row = await self.templates.directory.get(user)
                if row is None or row.desired is not Desired.PRESENT or chart_of(row.spec) != template.uuid:
                    continue
                found = await asyncio.to_thread(self._misfit, chart, tried, templates, user, row.spec, partly=False)
                if found is not None:
                    raise _misfit(f"the cluster {row.spec.name}", chart, found)
        return left

    def _misfit(
        self,
        chart: PackedChart,
        tried: ChartTried,
        templates: Templates,
        cluster: UUID,
        spec: ClusterSpec,
        *,
        partly: bool,
    ) -> str | None:
        try:
            releases = releases_of_shared_charts(templates.input_for(cluster, spec, self.url))
        except TemplateError:
            return None  # nothing is rendered, and Blocked says why
        verdicts = (tried.misfit(each, partly=partly) for each in releases if each.chart == chart.folder)
        return next((verdict for verdict in verdicts if verdict is not None), None)

    async def _tell(self, kind: EventKind, facts: ChartFacts, commit: CommitId, *, actor: str, before: str) -> None:
        """What is committed stays so, even if it cannot be told: the repository's own history says who did it."""
        done = "was removed" if kind is EventKind.CHART_REMOVED else "was pushed"
        event = NewEvent(
            id=uuid5(REPOSITORY_HELM_CHARTS, f"{kind} {commit}"),
            cluster=None,
            actor=actor,
            kind=kind,
            message=f"The chart {facts.name} {facts.version} {done}.",
            detail={"chart": facts.name, "version": facts.version, "before": before, "commit": commit},
        )
        for attempt in range(EVENT_ATTEMPTS):
            try:
                await self.audit.append(event)
                return
            except EdgewrightError:
                await asyncio.sleep(0.2 * attempt)


def _shared(
    folder: str, facts: ChartFacts, templates: Sequence[ChartTemplate], users: Mapping[UUID, int]
) -> SharedChart:
    using = [each for each in templates if each.shared_folder == folder]
    clusters = sum(users.get(each.uuid, 0) for each in using)
    is_own = folder.startswith(f"{OWN_CHARTS}/")
    return SharedChart(facts, folder, is_own, [each.called for each in using], clusters)


def _head(git: GitServer) -> CommitId:
    """The head of the shared charts.

    Raises:
        Waiting: code ``charts_unpublished``.
    """
    try:
        head = git.head(REPOSITORY_HELM_CHARTS)
    except NotFound:
        head = None
    if head is None:
        raise Waiting(
            "The centre has not published its charts yet.",
            code="charts_unpublished",
            hint="`edgewright up` and `edgewright admin init` do that.",
            retry_after=5.0,
        )
    return head


def _chart_folder(path: str) -> str:
    """The folder of the chart that a file may belong to; empty: of none."""
    parts = path.split("/")
    length = 2 if parts[0] == OWN_CHARTS else 1
    return "/".join(parts[:length]) if len(parts) > length else ""


def _demand(precondition: Precondition, before: ChartFacts | None) -> None:
    known = {before.version, "*"} if before is not None else set()
    if precondition.match is not None and not precondition.match & known:
        raise _other_version(before)
    if precondition.none_match is not None and precondition.none_match & known:
        raise _other_version(before)


def _other_version(before: ChartFacts | None) -> PreconditionFailed:
    there = f"The version that is there is {before.version}." if before is not None else "There is no such chart."
    return PreconditionFailed(
        f"{there} Somebody else was faster.", hint="Look at what was pushed, then push yours on top of it."
    )


def _misfit(whose: str, chart: PackedChart, sentence: str) -> Invalid:
    return Invalid(
        f"{chart.facts.name} {chart.facts.version} does not take the values of {whose}: {sentence}",
        code="chart_misfit",
        hint="Have the chart's values.schema.json take them, or change those values first. Nothing was pushed.",
    )
