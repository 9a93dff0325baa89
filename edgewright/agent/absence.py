"""What ought to be on the edge and is not, and what the agent has no right to see.

Both are told after two looks in a row: what is just being replaced is not missed, and a right that is being granted
anew is not called for. What cannot be looked at is neither there nor missing.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from edgewright.agent.applied import LOOKS, Unlisted
from edgewright.agent.attachment import CLUSTER_LABEL
from edgewright.agent.lacks import NODES, SEALED_SECRETS, Unknown
from edgewright.agent.observation import OWN_SOURCE, Fetched, Kustomized, Released
from edgewright.agent.passwords import AGENT, SECRET_OF, HeldSecret
from edgewright.agent.timing import Clock
from edgewright.errors import EdgewrightError, Forbidden, Unauthenticated

YOUNG = timedelta(minutes=5)
"""For so long after its Secret was made an edge may lack what was never seen there: bootstrap is still under way."""
RIGHTS_SECONDS = 60.0
"""Between two questions whether the agent may change a Secret."""
SOURCE, KUSTOMIZATION, RELEASE, SECRET_KIND = "GitRepository", "Kustomization", "HelmRelease", "Secret"
NO_TOKEN = "a service account's token that Kubernetes takes"  # noqa: S105 - a sentence of no secret
_DRIVERS = frozenset({f"{SOURCE} {OWN_SOURCE}", f"{KUSTOMIZATION} {OWN_SOURCE}"})
_ALWAYS = _DRIVERS | {f"{SECRET_KIND} {name}" for name in SECRET_OF.values()}
"""Every edge has these, whether or not an inventory of Flux's says so."""
_EVERYWHERE = frozenset({NODES, SEALED_SECRETS})


class InspectedEdge(Protocol):
    """What is asked of the Kubernetes cluster; may raise an ``EdgewrightError``."""

    async def held_secret(self, namespace: str, name: str) -> HeldSecret | None: ...

    async def may_change_secret(self, namespace: str, name: str) -> bool: ...

    async def document(self, path: str, accept: str, *, where: str) -> Mapping[str, Any] | None: ...


class Absence:
    """Tells what is missing on one edge, and what its agent may not see.

    Args:
        namespace: of its Secrets and of Flux's objects.
        cluster: UUID, as the centre knows it.
    """

    def __init__(self, edge: InspectedEdge, *, namespace: str, cluster: str, clock: Clock) -> None:
        self._edge = edge
        self._namespace = namespace
        self._cluster = cluster
        self._clock = clock
        self._young_until = clock.now() + YOUNG
        self._unlisted = Unlisted(edge)
        self._applied: Collection[str] = ()
        self._seen: set[str] = set()
        self._missed: dict[str, int] = {}
        self._refused: dict[str, int] = {}
        self._rights: dict[str, str] = {}
        self._changes_due = -math.inf
        self.anchor: str | None = None
        """UID of what owns all that bootstrap has installed; None: nothing does, or it was not seen yet."""

    def answered(self, what: str, trouble: EdgewrightError | None = None, *, verb: str = "list") -> None:
        """Takes note of how a look at something went. Only a refusal says that a right is missing.

        Args:
            what: resource, as RBAC calls it; with the name of one object after a slash.
        """
        if trouble is None:
            self._refused.pop(what, None)
        elif isinstance(trouble, Forbidden | Unauthenticated):
            self._refused[what] = self._refused.get(what, 0) + 1
            self._rights[what] = NO_TOKEN if isinstance(trouble, Unauthenticated) else self._right(verb, what)

    @property
    def unknown(self) -> tuple[Unknown, ...]:
        """What the agent may not see, or not change; in a fixed order."""
        refused = sorted(what for what, looks in self._refused.items() if looks >= LOOKS)
        lacking = [Unknown(what, self._rights[what]) for what in refused]
        return (*lacking, *sorted(self._unlisted.unknown, key=lambda each: each.what))

    @property
    def missing(self) -> tuple[str, ...]:
        """Kind and name of what is not there; in a fixed order."""
        unseen = set(self._applied) | (set() if self.is_young else _ALWAYS)
        gone = (each for each, looks in self._missed.items() if looks >= LOOKS)
        return tuple(
            sorted((*(each for each in gone if each in self._seen or each in unseen), *self._unlisted.missing))
        )

    @property
    def is_young(self) -> bool:
        """Whether bootstrap may still be at work on this edge."""
        return self._clock.now() < self._young_until

    async def look(
        self,
        sources: Sequence[Fetched] | None,
        kustomizations: Sequence[Kustomized] | None,
        releases: Sequence[Released] | None,
    ) -> None:
        """One look. What Flux has applied by its inventory was there, whether or not this agent saw it.

        Args:
            sources, kustomizations, releases: that are there, an operator's among them; None: they could not be
                seen.
        """
        driving = None
        if kustomizations is not None:
            driving = next((each for each in kustomizations if each.name == OWN_SOURCE), Kustomized(OWN_SOURCE, ""))
            self._applied = driving.drivers
            self._forget(_DRIVERS | driving.drivers)
        ours = None if sources is None else [each for each in sources if each.own or each.name != OWN_SOURCE]
        there = {SOURCE: _names(ours), KUSTOMIZATION: _names(kustomizations), RELEASE: _names(releases)}
        self._count(_DRIVERS | set(self._applied), there)
        if driving is not None:
            await self._unlisted.look(driving.unlisted)
        await self._look_at_secrets()

    def _forget(self, expected: Collection[str]) -> None:
        """What the repository does not drive any more is missed by nobody."""
        for each in [each for each in self._missed if each not in expected and not each.startswith(SECRET_KIND)]:
            del self._missed[each]

    def _count(self, expected: Collection[str], there: Mapping[str, Collection[str] | None]) -> None:
        for each in expected:
            kind, _, name = each.partition(" ")
            found = there[kind]
            if found is None:
                continue
            self._note(each, is_there=name in found)

    def _note(self, each: str, *, is_there: bool) -> None:
        if is_there:
            self._seen.add(each)
            self._missed.pop(each, None)
        else:
            self._missed[each] = self._missed.get(each, 0) + 1

    async def _look_at_secrets(self) -> None:
        asks_rights = self._clock.monotonic() >= self._changes_due
        for name in SECRET_OF.values():
            what = f"secrets/{name}"
            try:
                held = await self._edge.held_secret(self._namespace, name)
            except EdgewrightError as trouble:
                self.answered(what, trouble, verb="get")
                continue
            is_ours = self._is_ours(held)
            self._note(f"{SECRET_KIND} {name}", is_there=is_ours)
            if held is not None and is_ours and name == SECRET_OF[AGENT]:
                self.anchor = held.anchor
            if asks_rights or self._is_refused(what):
                await self._look_at_right(name, what)
        if asks_rights:
            self._changes_due = self._clock.monotonic() + RIGHTS_SECONDS

    async def _look_at_right(self, name: str, what: str) -> None:
        """A password that cannot be written cannot be replaced. An edge that does not say is believed to let us."""
        try:
            may = await self._edge.may_change_secret(self._namespace, name)
        except EdgewrightError:
            may = True
        self.answered(what, None if may else Forbidden("It may not.", where=what), verb="patch")

    def _is_refused(self, what: str) -> bool:
        return what in self._refused

    def _is_ours(self, held: HeldSecret | None) -> bool:
        if held is None or held.labels.get(CLUSTER_LABEL) != self._cluster:
            return False
        self._young_until = min(self._young_until, _grown_up(held.created))
        return True

    def _right(self, verb: str, what: str) -> str:
        return f"{verb} on {what}" if what in _EVERYWHERE else f"{verb} on {what} in {self._namespace}"


def _names(found: Sequence[Fetched | Kustomized | Released] | None) -> Collection[str] | None:
    return None if found is None else {each.name for each in found}


def _grown_up(created: datetime | None) -> datetime:
    """When the edge whose Secret was made then should have all that drives it."""
    return datetime.max.replace(tzinfo=UTC) if created is None else created + YOUNG
