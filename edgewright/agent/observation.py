"""What the agent has seen of its edge, and the *Edge cluster status* that it makes of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from edgewright.agent.applied import AppliedObject
from edgewright.agent.flux_conditions import LONGEST_PROGRESS, FluxCondition, is_progressing
from edgewright.agent.lacks import (
    KUSTOMIZATIONS,
    NODES,
    RELEASES,
    SEALED_SECRETS,
    SOURCES,
    Unknown,
    Unopened,
    lacks_json,
)
from edgewright.agent.opening import Opening, openings_to_json
from edgewright.agent.status_size import fitted

OWN_SOURCE = "self-link"
"""The Flux source that is the cluster's own driving repository."""
MOST_OTHERS = 20
"""Failing objects of an operator's that are reported."""
WAITS_FOR_OTHERS = frozenset({"SourceNotReady", "DependencyNotReady"})
"""Reasons of a release that is not *Ready* while what it needs is on its way."""
MOST_NAMESPACES = 250
"""Where there are more, the centre is told none: it would take the others for missing."""


@dataclass(frozen=True, slots=True)
class Host:
    """One Node; None and missing: Kubernetes does not say.

    Args:
        specialised: value of the taint ``factoryplus.app.amrc.co.uk/specialised``.
    """

    hostname: str
    control_plane: bool
    ready: bool
    arch: str | None = None
    k8s_version: str | None = None
    os_version: str | None = None
    specialised: str | None = None

    def to_json(self) -> dict[str, Any]:
        """An item of ``hosts`` in the *Edge cluster status*."""
        said = {
            "hostname": self.hostname,
            "arch": self.arch,
            "k8s_version": self.k8s_version,
            "control_plane": self.control_plane,
            "os_version": self.os_version,
            "ready": self.ready,
            "specialised": self.specialised,
        }
        return {name: value for name, value in said.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Kustomized:
    """One of Flux's Kustomizations.

    Args:
        source: name of the Flux source that it applies.
        applied, attempted: revision that was applied last, and that was tried last; None: none yet.
        conditions: by type, in that order.
        path: folder of the source that it applies.
        holds: how many objects it has applied and not pruned.
        deleting: it goes, once Flux has done its part.
        drivers, unlisted: what the one that drives the edge has applied, by its inventory: Flux's objects beside it,
            ``KIND NAME``, and all else; not reported.
        own: the centre has put it there; else it is an operator's.
    """

    name: str
    source: str
    suspended: bool = False
    applied: str | None = None
    attempted: str | None = None
    conditions: tuple[FluxCondition, ...] = ()
    path: str = ""
    holds: int = 0
    deleting: bool = False
    drivers: frozenset[str] = frozenset()
    unlisted: tuple[AppliedObject, ...] = ()
    own: bool = True

    @property
    def fails(self) -> bool:
        """Whether Flux says that it is not as its source wants it, such as while it waits for another one."""
        return any(each.type == "Ready" and each.status == "False" for each in self.conditions)

    @property
    def progresses(self) -> bool:
        """Whether Flux is at work on it, and says nothing else for that time."""
        return is_progressing(self.conditions)

    def to_json(self) -> dict[str, Any]:
        """As it is reported."""
        said: dict[str, Any] = {
            **({} if self.own else {"kind": "Kustomization"}),
            "name": self.name,
            "source": self.source,
            "suspended": self.suspended,
            "applied": self.applied,
            "attempted": self.attempted,
            "conditions": [each.to_json() for each in self.conditions],
        }
        return {name: value for name, value in said.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Released:
    """One of Flux's HelmReleases.

    Args:
        chart: its name.
        applied, attempted: version of the chart that runs, and that was tried last; None: none yet.
        conditions: by type, in that order.
        waits_for: name of its HelmChart, if that keeps it from going on.
        own: the centre has put it there; else it is an operator's.
    """

    name: str
    chart: str = ""
    suspended: bool = False
    applied: str | None = None
    attempted: str | None = None
    conditions: tuple[FluxCondition, ...] = ()
    waits_for: str | None = None
    own: bool = True

    @property
    def fails(self) -> bool:
        """Whether it has failed, and no later attempt has gone well."""
        status = {each.type: each for each in self.conditions}
        ready, released = status.get("Ready"), status.get("Released")
        if ready is None or ready.status == "True":
            return False
        return (ready.status == "False" and not self.progresses) or (
            released is not None and released.status == "False"
        )

    @property
    def progresses(self) -> bool:
        """Whether Flux is at work on it, or on what it needs, and says nothing else for that time."""
        return is_progressing(self.conditions) or any(
            each.type == "Ready" and each.status == "False" and each.reason in WAITS_FOR_OTHERS
            for each in self.conditions
        )

    def to_json(self) -> dict[str, Any]:
        """As it is reported."""
        said: dict[str, Any] = {
            **({} if self.own else {"kind": "HelmRelease"}),
            "name": self.name,
            "chart": self.chart or None,
            "suspended": self.suspended,
            "applied": self.applied,
            "attempted": self.attempted,
            "conditions": [each.to_json() for each in self.conditions],
        }
        return {name: value for name, value in said.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Fetched:
    """One of Flux's Git sources.

    Args:
        fetched: revision that was fetched last; None: none yet.
        conditions: by type, in that order.
        url: where it fetches from; not reported.
        own: the centre has put it there; no other is reported.
        asked, handled: the newest request to fetch, and the one that Flux has dealt with last, whatever came of it;
            not reported.
    """

    name: str
    suspended: bool = False
    fetched: str | None = None
    conditions: tuple[FluxCondition, ...] = ()
    url: str = ""
    own: bool = True
    asked: str | None = None
    handled: str | None = None

    @property
    def is_unanswered(self) -> bool:
        """Whether Flux was asked to fetch it, should, and has not dealt with that yet."""
        return not self.suspended and self.asked not in (None, self.handled)

    @property
    def progresses(self) -> bool:
        """Whether Flux is at work on it."""
        return is_progressing(self.conditions)

    def to_json(self) -> dict[str, Any]:
        """As it is reported."""
        said: dict[str, Any] = {
            "name": self.name,
            "suspended": self.suspended,
            "fetched": self.fetched,
            "conditions": [each.to_json() for each in self.conditions],
        }
        return {name: value for name, value in said.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything that was seen last; None: never yet.

    Args:
        sources, kustomizations, releases: the centre's own; none where Flux is not installed. Releases cannot be
            seen with the rights that an older version has installed.
        others: Kustomizations and releases of an operator's beside them.
        revision: that all which drives this cluster has applied.
        certificate: of sealed-secrets, PEM.
        versions: program → version.
        flux_is_ours: bootstrap has installed Flux; None: there is none, or that cannot be seen.
        anchor: UID of what owns all that bootstrap has installed.
        openings: of what the centre has sealed, by namespace and name.
        missing: what drives the edge and is not there, ``KIND NAME``.
        unknown: what the agent lacks a right to: of that, what was seen last is not told as if it were so now.
        silent: Flux's controllers that leave undone what is due.
        unopened: values that no key of the edge opens; None: not tried yet.
        namespaces: names of all of them; None also where there are too many.
    """

    hosts: tuple[Host, ...] | None = None
    sources: tuple[Fetched, ...] | None = None
    kustomizations: tuple[Kustomized, ...] | None = None
    releases: tuple[Released, ...] | None = None
    others: tuple[Kustomized | Released, ...] = ()
    revision: str | None = None
    certificate: str | None = None
    versions: Mapping[str, str] | None = None
    openings: tuple[Opening, ...] | None = None
    missing: tuple[str, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    silent: tuple[str, ...] = ()
    unopened: tuple[Unopened, ...] | None = None
    namespaces: tuple[str, ...] | None = None
    flux_is_ours: bool | None = None
    anchor: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether each part was seen at least once, or may not be seen; ``openings`` and ``namespaces`` are not
        waited for."""
        parts = {NODES: self.hosts, SOURCES: self.sources, KUSTOMIZATIONS: self.kustomizations}
        seen = all(part is not None or self.is_unknown(what) for what, part in parts.items())
        return seen and None not in (self.certificate, self.versions)

    @property
    def known_revision(self) -> str | None:
        """The applied revision, unless nobody can know whether it still is."""
        return None if self.is_unknown(KUSTOMIZATIONS) else self.revision

    def is_unknown(self, what: str) -> bool:
        """Whether the agent may not see that resource."""
        return any(each.what == what for each in self.unknown)

    def to_json(self) -> dict[str, Any]:
        """The *Edge cluster status*, as large as the centre takes. The same edge gives the same document: it holds
        no time."""
        said = {
            "hosts": None if self.hosts is None else [each.to_json() for each in self.hosts],
            "kubeseal_cert": self.certificate,
            "observed_revision": self.known_revision,
            "flux": self._flux(),
            "versions": None if self.versions is None else dict(self.versions),
            "flux_is_ours": self.flux_is_ours,
            "anchor": self.anchor,
            "secrets": self._secrets(),
            **lacks_json(self.missing, self.unknown, self.silent, self.unopened),
            "namespaces": None if self.namespaces is None else list(self.namespaces),
        }
        return fitted({name: value for name, value in said.items() if value is not None}, own_source=OWN_SOURCE)

    def _secrets(self) -> dict[str, Any] | None:
        return None if self.openings is None or self.is_unknown(SEALED_SECRETS) else openings_to_json(self.openings)

    def _flux(self) -> dict[str, Any] | None:
        if self.kustomizations is None:
            return None
        failing = [each.to_json() for each in self.others if each.fails]
        releases = None if self.releases is None else [each.to_json() for each in self.releases]
        return {
            "sources": [] if self.is_unknown(SOURCES) else [each.to_json() for each in self.sources or ()],
            "kustomizations": []
            if self.is_unknown(KUSTOMIZATIONS)
            else [each.to_json() for each in self.kustomizations],
            **({} if releases is None or self.is_unknown(RELEASES) else {"releases": releases}),
            **({"others": failing[:MOST_OTHERS]} if failing else {}),
        }

    def with_namespaces(self, found: Sequence[str]) -> "Observation":
        """This, after a look at the namespaces."""
        return replace(self, namespaces=tuple(sorted(found)) if len(found) <= MOST_NAMESPACES else None)

    def with_sources(self, found: Sequence[Fetched]) -> "Observation":
        """This, after a look at Flux's sources; what one is only just fetching stays as it was reported before."""
        before = {each.name: each for each in self.sources or ()}
        settled = (
            replace(each, conditions=before[each.name].conditions)
            if each.name in before and each.progresses
            else each
            for each in sorted(found, key=lambda each: each.name)
            if each.own
        )
        return replace(self, sources=tuple(settled))

    def with_flux(self, found: Sequence[Kustomized], *, now: datetime) -> "Observation":
        """This, after a look at Flux; what it is only just working on stays as it was reported before.

        Args:
            now: aware, by the edge's clock.
        """
        theirs = [each for each in self.others if isinstance(each, Kustomized)]
        settled = _settled(found, (*(self.kustomizations or ()), *theirs), now)
        own = [each for each in settled if each.own]
        others = [each for each in settled if not each.own]
        return replace(
            self,
            kustomizations=tuple(own),
            others=(*others, *(each for each in self.others if isinstance(each, Released))),
            revision=applied_revision(own, before=self.revision),
        )

    def with_releases(self, found: Sequence[Released], *, now: datetime) -> "Observation":
        """This, after a look at Helm's releases; what Flux is only just working on stays as it was reported before.

        Args:
            now: aware, by the edge's clock.
        """
        theirs = [each for each in self.others if isinstance(each, Released)]
        settled = _settled(found, (*(self.releases or ()), *theirs), now)
        return replace(
            self,
            releases=tuple(each for each in settled if each.own),
            others=(
                *(each for each in self.others if isinstance(each, Kustomized)),
                *(each for each in settled if not each.own),
            ),
        )


def applied_revision(found: Sequence[Kustomized], *, before: str | None) -> str | None:
    """The revision of the driving repository that this edge has applied: the whole of it.

    Its parts are applied one by one, and revisions cannot be ordered here. While the parts differ, the one
    reported before stays as long as a part has it; else it is that of a part which failed to go further.

    Args:
        found: in a fixed order.
        before: what was reported before.
    """
    parts = [each for each in found if each.source == OWN_SOURCE]
    applied = [each.applied for each in parts]
    if parts and None in applied:
        # The whole was there before a part was new, such as the driver of a namespace that the edge does not have.
        return before
    if not parts:
        return None
    if len(set(applied)) == 1 or before not in applied:
        behind = [each for each in parts if each.fails or each.attempted not in (None, each.applied)]
        return (behind or parts)[0].applied
    return before


Flux = TypeVar("Flux", Kustomized, Released)


def _settled(found: Sequence[Flux], before: Sequence[Flux], now: datetime) -> list[Flux]:
    ordered = sorted(found, key=lambda each: each.name)
    return [_settled_one(each, _the_same(each, before), now) for each in ordered]


def _the_same(each: Flux, before: Sequence[Flux]) -> Flux | None:
    """What was reported of an object before."""
    return next((one for one in before if (one.name, one.own) == (each.name, each.own)), None)


def _settled_one(each: Flux, before: Flux | None, now: datetime) -> Flux:
    if before is None or not each.progresses:
        return each
    begun = [state.since for state in each.conditions if state.type == "Ready" and state.since is not None]
    if not begun or now - begun[0] > LONGEST_PROGRESS:
        return each
    return replace(each, conditions=before.conditions, attempted=before.attempted)
