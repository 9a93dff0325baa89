"""Helm chart templates, by the names that people give them: listed, shown, written and removed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Protocol
from uuid import UUID, uuid4, uuid5

from edgewright.domain.cluster import ClusterSpec
from edgewright.domain.json import Json, JsonObject
from edgewright.domain.names import CLUSTER_NAME
from edgewright.domain.own_charts import own_folder
from edgewright.domain.rendering.repository import DEFAULT_SOURCE
from edgewright.domain.wellknown import (
    APP_HELM_CHART_TEMPLATE,
    APP_OBJECT_INFO,
    CLASS_HELM_CHART,
    OBJECT_DEFAULT_CHART,
)
from edgewright.errors import Conflict, Invalid, NotFound
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.config_store import ALWAYS, ConfigStore, Precondition

_NOBODY = UUID(int=0)
"""No template has this UUID: whatever uses it is what nothing was rendered for."""
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
PAGE = 100
"""Entries that are read at a time."""
_OURS = UUID("6d0c3a1e-6f43-4a55-9b0a-0b8f3c1c7a52")
"""Namespace of the UUIDs of templates that are made by name, so that two who make one at once meet."""


class TemplateCheck(Protocol):
    """Holds the values of a template against its chart."""

    async def check_template(self, chart: UUID, body: Any) -> None:
        """Lets everything pass that is refused elsewhere.

        Raises:
            Invalid: code ``values_misfit``.
        """


class KnowsCharts(Protocol):
    """Knows the folders of charts that edges can fetch."""

    async def has(self, folder: str) -> bool:
        """Whether ``shared/helm-charts`` has a chart in that folder."""


@dataclass(frozen=True)
class ChartTemplate:
    """A Helm chart template as it is stored.

    Args:
        name: empty: it has none.
        chart, source, prefix, values: of its entry, as far as they are what they have to be.
    """

    uuid: UUID
    name: str
    chart: str
    source: str
    prefix: str
    values: JsonObject
    etag: str
    modified_at: datetime

    @property
    def called(self) -> str:
        """How people call it."""
        return self.name or str(self.uuid)

    @property
    def shared_folder(self) -> str | None:
        """Folder of its chart in ``shared/helm-charts``; None: the chart comes from elsewhere."""
        return self.chart.removeprefix("./") if self.source == DEFAULT_SOURCE else None


@dataclass(frozen=True)
class TemplateWish:
    """What a template is to be.

    Args:
        chart: the name of a pushed chart, or the path of a chart within its source.
        prefix: empty: the last part of the chart's path where one is needed.
    """

    chart: str
    values: JsonObject
    source: str = DEFAULT_SOURCE
    prefix: str = ""


@dataclass(frozen=True)
class WrittenTemplate:
    """``users``: clusters whose files are rendered with it."""

    template: ChartTemplate
    is_new: bool
    users: Sequence[UUID]


@dataclass(frozen=True)
class ChartTemplates:
    """Whoever calls this has the workflows of ``users`` told afterwards."""

    config: ConfigStore
    directory: ClusterDirectory
    chart_values: TemplateCheck
    charts: KnowsCharts

    async def all(self) -> Sequence[ChartTemplate]:
        """Every template, by name."""
        objects = await self.config.objects(APP_HELM_CHART_TEMPLATE)
        found: list[ChartTemplate] = []
        for first in range(0, len(objects), PAGE):
            found += await self._read(objects[first : first + PAGE])
        return sorted(found, key=lambda each: (each.name.lower(), each.uuid))

    async def named(self, text: str) -> ChartTemplate:
        """The one that a name or a UUID means.

        Raises:
            NotFound: code ``template_unknown``.
            Conflict: code ``template_ambiguous``: several have that name.
        """
        templates = await self.all()
        found = _meant(templates, text)
        if found is None:
            close = get_close_matches(text, [each.name for each in templates if each.name], n=1)
            raise NotFound(
                "There is no Helm chart template with that name.",
                code="template_unknown",
                hint=f"Did you mean {close[0]}?" if close else "`edgewright template list` shows all.",
            )
        return found

    async def users_of(self, template: ChartTemplate) -> Sequence[UUID]:
        """Clusters that are rendered with it, and those that nothing was rendered for yet."""
        return await self.directory.using_template(APP_HELM_CHART_TEMPLATE, template.uuid)

    async def clusters_of(self, template: ChartTemplate) -> set[UUID]:
        """Clusters that have it."""
        found = set(await self.users_of(template))
        for user in found & set(await self.directory.using_template(APP_HELM_CHART_TEMPLATE, _NOBODY)):
            row = await self.directory.get(user)
            if row is None or chart_of(row.spec) != template.uuid:
                found.discard(user)
        return found

    async def put(
        self, text: str, wish: TemplateWish, *, actor: str, precondition: Precondition = ALWAYS
    ) -> WrittenTemplate:
        """Writes a whole template; makes one if there is none with that name.

        Safe to repeat: whoever dies in between has made a name without a template, which the next attempt takes.

        Raises:
            NotFound: code ``template_unknown``: no template has that UUID.
            Conflict: code ``template_ambiguous``.
            Invalid: ``name_invalid``, ``chart_missing``, ``values_misfit``; ``source_invalid``, of a prefix too.
            PreconditionFailed: the template is another one.
        """
        present = _meant(await self.all(), text)
        if present is None and _uuid(text) is not None:
            raise NotFound("There is no Helm chart template with that UUID.", code="template_unknown")
        uuid = present.uuid if present is not None else await self._new_uuid(_checked_name(text))
        body = await self._body(wish)
        await self.chart_values.check_template(uuid, body)
        if present is None:
            await self.config.create_object(CLASS_HELM_CHART, uuid)
            await self.config.put(APP_OBJECT_INFO, uuid, {"name": text}, actor=actor)
        held = precondition if precondition != ALWAYS else _as_it_was(present)
        await self.config.put(APP_HELM_CHART_TEMPLATE, uuid, body, actor=actor, precondition=held)
        [written] = await self._read([uuid])
        return WrittenTemplate(written, present is None, await self.users_of(written))

    async def remove(self, text: str, *, actor: str, precondition: Precondition = ALWAYS) -> None:
        """Deletes a template that no cluster has.

        Raises:
            NotFound: code ``template_unknown``.
            Conflict: ``template_ambiguous``; ``template_in_use``, also for the default one.
            PreconditionFailed: the template is another one.
        """
        template = await self.named(text)
        if template.uuid == OBJECT_DEFAULT_CHART:
            raise Conflict(
                "Clusters that name no chart get this template, so it stays.",
                code="template_in_use",
                hint="Change it instead: edgewright template put.",
            )
        for user in await self.clusters_of(template):
            raise Conflict(
                f"The cluster {await self.directory.name_of(user)} has this template.",
                code="template_in_use",
                hint="Give that cluster, and every other one that has it, another chart first.",
            )
        await self.config.delete(APP_HELM_CHART_TEMPLATE, template.uuid, actor=actor, precondition=precondition)

    async def _read(self, objects: Sequence[UUID]) -> list[ChartTemplate]:
        entries = await self.config.get_each([(APP_HELM_CHART_TEMPLATE, each) for each in objects])
        names = await self.config.get_each([(APP_OBJECT_INFO, each) for each in objects])
        return [
            ChartTemplate(
                uuid=entry.object,
                name=_text(info.body, "name") if info is not None else "",
                chart=_text(entry.body, "chart"),
                source=_text(entry.body, "source") or DEFAULT_SOURCE,
                prefix=_text(entry.body, "prefix"),
                values=_values(entry.body),
                etag=entry.etag,
                modified_at=entry.modified_at,
            )
            for entry, info in zip(entries, names, strict=True)
            if entry is not None  # else it was deleted meanwhile
        ]

    async def _new_uuid(self, name: str) -> UUID:
        """The same for everybody who makes a template with that name, unless the one there has been renamed."""
        uuid = uuid5(_OURS, name)
        info = await self.config.get(APP_OBJECT_INFO, uuid)
        return uuid if info is None or _text(info.body, "name") in ("", name) else uuid4()

    async def _body(self, wish: TemplateWish) -> dict[str, Json]:
        for what, name in (("source", wish.source), ("prefix", wish.prefix or "x")):
            _check_label(what, name)
        chart = wish.chart.removeprefix("./")
        if wish.source == DEFAULT_SOURCE:
            chart = await self._folder_of(chart)
        body: dict[str, Json] = {"chart": chart, "values": wish.values}
        prefix = wish.prefix or (chart.rpartition("/")[2] if "/" in chart else "")
        if prefix:
            body["prefix"] = prefix
        if wish.source != DEFAULT_SOURCE:
            body["source"] = wish.source
        return body

    async def _folder_of(self, chart: str) -> str:
        for folder in (chart, own_folder(chart)):
            if await self.charts.has(folder):
                return folder
        raise Invalid(
            "There is no such chart in shared/helm-charts.",
            code="chart_missing",
            hint="`edgewright chart list` shows all; push yours with: edgewright chart push FOLDER.",
            where="/chart",
        )


def chart_of(spec: ClusterSpec) -> UUID:
    """The Helm chart template of a cluster."""
    return spec.chart or OBJECT_DEFAULT_CHART


def _as_it_was(present: ChartTemplate | None) -> Precondition:
    """Tells whoever writes a template that somebody else has written meanwhile."""
    return Precondition(match=frozenset({present.etag})) if present else Precondition(none_match=frozenset({"*"}))


def _meant(templates: Sequence[ChartTemplate], text: str) -> ChartTemplate | None:
    wanted = _uuid(text)
    found = [each for each in templates if (each.uuid == wanted if wanted is not None else each.name == text)]
    if len(found) > 1:
        raise Conflict(
            "Several Helm chart templates have that name.",
            code="template_ambiguous",
            hint=f"Name one by its UUID: {', '.join(str(each.uuid) for each in found[:5])}.",
        )
    return found[0] if found else None


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _checked_name(name: str) -> str:
    if CLUSTER_NAME.fullmatch(name) is None:
        raise Invalid(
            "That cannot be the name of a Helm chart template.",
            code="name_invalid",
            hint="Use at most 63 letters, digits, hyphens and underscores; begin and end with a letter or a digit.",
        )
    return name


def _check_label(what: str, name: str) -> None:
    if _LABEL.fullmatch(name) is None:
        raise Invalid(
            f"That cannot be the {what} of a Helm chart template.",
            code="source_invalid",
            hint="Use at most 63 lower-case letters, digits and hyphens; begin and end with no hyphen.",
            where=f"/{what}",
        )


def _text(body: Json, key: str) -> str:
    value = body.get(key) if isinstance(body, Mapping) else None
    return value if isinstance(value, str) else ""


def _values(body: Json) -> JsonObject:
    value = body.get("values") if isinstance(body, Mapping) else None
    return value if isinstance(value, Mapping) else {}
