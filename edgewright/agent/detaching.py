"""Takes away from an edge what bootstrap has installed, in an order in which nothing hangs and nothing is lost.

1. Flux stops driving: what it applies is suspended, so that nothing more is pruned, and what applies the rest goes.
   Flux ends what it is at before it lets go of that; what has come back until then is suspended once more, and
   nothing comes back later. Where the workloads are to go and some are left, their Kustomizations and releases are
   deleted as they are, and Flux itself removes what it has applied. Ordered to purge, the kind SealedSecret and the
   sealing keys go then; see ``purging``.
2. Flux's objects of this cluster go while its controllers still see to their finalizers; finalizers that nobody sees
   to are taken away.
3. If bootstrap has brought Flux: its controllers, then finalizers of whatever else was made with its kinds. A Flux
   that was there before is left.
4. A namespace of ours in which somebody lives loses our mark.

From then on nothing hangs when the anchor goes, which owns all the rest: kinds, rights, Secrets, namespaces, the
detacher. Each step looks at what is there and may be repeated, so whoever is killed between two of them starts with
the first.
"""

from collections.abc import Awaitable, Callable, Sequence

import structlog

from edgewright.agent.attachment import BOOTSTRAP, CLUSTER_LABEL, PART_LABEL
from edgewright.agent.cluster_objects import DEFINITIONS, DEPLOYMENTS, GRANTS, NAMESPACES, Found, Kind, of_group
from edgewright.agent.detach_order import KEEP, ReceivedDetachOrder
from edgewright.agent.observation import OWN_SOURCE
from edgewright.agent.purging import PART, RIGHTS, Objects, Purging
from edgewright.agent.timing import Clock
from edgewright.errors import Stalled, Waiting

GENERATION_LABEL = "edgewright.dev/generation"
PRUNE_ANNOTATION = "kustomize.toolkit.fluxcd.io/prune"
"""Bootstrap disables it on the namespaces that it makes."""
FLUX_GROUPS = ".toolkit.fluxcd.io"
APPLIERS = frozenset({"kustomizations", "helmreleases"})
"""Flux's kinds whose objects hold what they have applied, and take it along unless they are suspended."""
CONTROLLERS = frozenset(
    {
        *("source-controller", "kustomize-controller", "helm-controller", "notification-controller"),
        *("image-reflector-controller", "image-automation-controller", "source-watcher"),
    }
)
"""Flux's. Whatever else runs goes with the anchor."""
UNMARKED = {
    "metadata": {
        "ownerReferences": None,
        "labels": {CLUSTER_LABEL: None, GENERATION_LABEL: None, PART_LABEL: None},
        "annotations": {PRUNE_ANNOTATION: None},
    }
}
PASSING_KINDS = frozenset({"Endpoints", "EndpointSlice", "Event", "Lease", "PodMetrics"})
"""Written by whoever works there; they are of no use without what they tell of."""
IN_EVERY_NAMESPACE = frozenset({("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")})
PRUNE_SECONDS = 600.0
"""For Flux to remove what it has applied; longer than its own timeout for one try."""
BUSY_SECONDS = 330.0
"""For Flux to end what it is at: five minutes is what it may take for one of its objects here."""
FINALIZE_SECONDS = 60.0
"""For Flux to let go of its own objects."""
KUBERNETES_SECONDS = 120.0
LOOK_SECONDS = 1.0


class Detaching:
    """Takes one edge apart, and can go on after a kill.

    Args:
        anchor: the object that owns what bootstrap has installed.
    """

    def __init__(self, objects: Objects, order: ReceivedDetachOrder, *, anchor: Found, clock: Clock) -> None:
        self._objects = objects
        self._order = order
        self._anchor = anchor
        self._clock = clock
        self._ours = {CLUSTER_LABEL: order.cluster, PART_LABEL: BOOTSTRAP}
        self._log = structlog.get_logger("edgewright.agent")

    async def run(self) -> None:
        """Returns when nothing is left that has to go before the anchor does.

        Raises:
            Waiting: ``not_gone``: Kubernetes takes its time over something; go on later.
            Stalled: ``not_owned``: something of ours would not go with the anchor.
        """
        await self._end_driving()
        await self._disarm_flux()
        await self._spare_inhabited()
        await self._refuse_unowned()

    async def _end_driving(self) -> None:
        appliers = await self._at_rest()
        await self._let_go([each for each in appliers if _drives(each)], BUSY_SECONDS)
        workloads = [each for each in await self._at_rest() if not _drives(each) and each.name != PART]
        await self._let_go(workloads, FINALIZE_SECONDS if self._order.workloads == KEEP else PRUNE_SECONDS)
        if self._order.purge:
            await Purging(
                self._objects, anchor=self._anchor, generation=self._order.generation, clock=self._clock
            ).run()
        await self._let_go(await self._flux_objects(), FINALIZE_SECONDS)
        await self._give_up_rights()

    async def _at_rest(self) -> list[Found]:
        """What applies something, suspended as far as it must not take that along."""
        appliers = [each for each in await self._flux_objects() if each.kind.plural in APPLIERS]
        stops = [each for each in appliers if self._order.workloads == KEEP or _drives(each)]
        for each in stops:
            await self._objects.change(each, {"spec": {"suspend": True}})
        if stops:
            self._tell("suspended", stops)
        return appliers

    async def _give_up_rights(self) -> None:
        """The rights to purge went with their part of Flux's; without Flux, they are taken away here."""
        label = {CLUSTER_LABEL: self._order.cluster}
        for kind in GRANTS:
            for each in await self._objects.of(kind, labels=label):
                if each.name == RIGHTS:
                    await self._objects.remove(each)

    async def _flux_objects(self) -> list[Found]:
        kinds = of_group(await self._objects.kinds(), FLUX_GROUPS)
        label = {CLUSTER_LABEL: self._order.cluster}
        return [each for kind in kinds for each in await self._objects.of(kind, labels=label)]

    async def _let_go(self, going: Sequence[Found], seconds: float) -> None:
        """Deletes objects of Flux, which sees to what they hold; without it, nothing holds them."""
        for each in going:
            await self._objects.remove(each)
        left = await self._left(lambda: self._still(going), seconds)
        for each in left:
            await self._objects.change(each, {"metadata": {"finalizers": None}})
        if left:
            self._tell("released", left, note="Flux did not see to their finalizers: what they have applied stays.")
            await self._must_go(lambda: self._still(going))
        if going:
            self._tell("let_go", going)

    async def _still(self, going: Sequence[Found]) -> list[Found]:
        wanted = {each.uid for each in going}
        kinds = list(dict.fromkeys(each.kind for each in going))
        label = {CLUSTER_LABEL: self._order.cluster}
        found = [each for kind in kinds for each in await self._objects.of(kind, labels=label)]
        return [each for each in found if each.uid in wanted]

    async def _disarm_flux(self) -> None:
        """If bootstrap has brought it; a Flux that was there before bears no mark."""
        brought = {each.name for each in await self._objects.of(DEFINITIONS, labels=self._ours)}
        if not brought:
            return
        await self._left(self._ending, PRUNE_SECONDS)
        controllers = await self._controllers()
        for each in controllers:
            await self._objects.remove(each, foreground=True)
        await self._must_go(self._controllers)
        kinds = [kind for kind in of_group(await self._objects.kinds(), FLUX_GROUPS) if kind.full_name in brought]
        held = [each for kind in kinds for each in await self._objects.of(kind) if each.finalizers]
        for each in held:
            await self._objects.change(each, {"metadata": {"finalizers": None}})
        if controllers or held:
            self._tell("disarmed", [*controllers, *held])

    async def _ending(self) -> list[Found]:
        """Objects of Flux, whoever's, that its controllers are still seeing to."""
        kinds = of_group(await self._objects.kinds(), FLUX_GROUPS)
        return [each for kind in kinds for each in await self._objects.of(kind) if each.deleting]

    async def _controllers(self) -> list[Found]:
        found = await self._objects.of(DEPLOYMENTS, labels=self._ours)
        return [each for each in found if each.name in CONTROLLERS]

    async def _spare_inhabited(self) -> None:
        kinds = [each for each in await self._objects.kinds() if each.namespaced]
        for namespace in await self._objects.of(NAMESPACES, labels=self._ours):
            found = [each for kind in kinds for each in await self._objects.of(kind, namespace=namespace.name)]
            staying = inhabitants(found, kinds, anchor=self._anchor.uid)
            if staying:
                await self._objects.change(namespace, UNMARKED)
                self._tell("namespace_stays", staying[:20], namespace=namespace.name)

    async def _refuse_unowned(self) -> None:
        """What was applied without the script, from manifests, may lack its owner."""
        kinds = [each for each in await self._objects.kinds() if each.name not in PASSING_KINDS]
        ours = [each for kind in kinds for each in await self._objects.of(kind, labels=self._ours)]
        unowned = [each for each in ours if not each.owners and not each.deleting]
        if unowned:
            raise Stalled(
                f"{len(unowned)} objects of ours have no owner, such as {unowned[0]}.",
                code="not_owned",
                hint="Take them away with the uninstall script of this cluster.",
            )

    async def _left(self, look: Callable[[], Awaitable[list[Found]]], seconds: float) -> list[Found]:
        """What is still there after so many seconds; returns at once when nothing is."""
        until = self._clock.monotonic() + seconds
        while left := await look():
            if self._clock.monotonic() >= until:
                return left
            await self._clock.sleep(LOOK_SECONDS)
        return []

    async def _must_go(self, look: Callable[[], Awaitable[list[Found]]]) -> None:
        left = await self._left(look, KUBERNETES_SECONDS)
        if left:
            raise Waiting(f"{left[0]} is still there.", code="not_gone")

    def _tell(self, step: str, what: Sequence[Found], **facts: str) -> None:
        self._log.info("detach", state=step, objects=[str(each) for each in what], **facts)


def _drives(each: Found) -> bool:
    """Whether it is what bootstrap begins with, which brings back whatever else drives the cluster."""
    return each.labels.get(PART_LABEL) == BOOTSTRAP or each.name == OWN_SOURCE


def inhabitants(found: Sequence[Found], kinds: Sequence[Kind], *, anchor: str) -> list[Found]:
    """Who would be lost with a namespace that bootstrap made: everything there that does not go with the anchor.

    What the anchor owns goes with it, and so does what that owns, such as the pods of a Deployment. What is owned by
    something that was there and is gone is garbage, which Kubernetes collects in its own time.

    Args:
        found: everything in the namespace.
        kinds: that the cluster has.
        anchor: UID.
    """
    there = {each.uid: each for each in found}
    local = {(kind.group, kind.name) for kind in kinds if kind.namespaced}

    def leaves(each: Found, *seen: str) -> bool:
        if each.deleting:
            return True
        for owner in each.owners:
            if owner.uid == anchor:
                continue
            known = there.get(owner.uid)
            if known is None and (owner.group, owner.kind) not in local:
                return False  # lives in no namespace: it may be there
            if known is not None and (known.uid in seen or not leaves(known, *seen, each.uid)):
                return False
        return bool(each.owners)

    return [
        each
        for each in found
        if each.kind.name not in PASSING_KINDS
        and (each.kind.name, each.name) not in IN_EVERY_NAMESPACE
        and not leaves(each)
    ]
