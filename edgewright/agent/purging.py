"""Takes the kind SealedSecret and the sealing keys away from an edge that leaves, if nobody else pays for it.

The installation gives no rights for that. The commit that empties the edge brings them, as a Kustomization of its
own, ``edge-purge``, and they go with it. Where they do not come, or where somebody else uses the kind or the keys,
nothing is taken, and the goodbye says why.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Protocol

import structlog

from edgewright.agent.cluster_objects import DEFINITIONS, SECRETS, Container, Found, Kind
from edgewright.agent.timing import Clock
from edgewright.errors import Forbidden, Waiting

PART = "edge-purge"
"""Kustomization and source of Flux's, with the rights to purge."""
RIGHTS = "edgewright-purge"
"""What those rights are called, whatever their kind."""
OUTCOME = "edgewright.dev/purge"
"""Annotation of the anchor: the generation that was purged, and after a space why it was not, if it was not."""
SEALED = Kind("bitnami.com", "v1alpha1", "sealedsecrets", "SealedSecret", True)
DEFINITION = SEALED.full_name
KEY_LABEL = f"{DEFINITION}/sealed-secrets-key"
IMAGE = re.compile(r"(^|/)sealed-secrets-controller([:@]|\Z)")
"""Upstream's, from whatever registry."""
PROGRAM = "controller"
SIGNS = (("app.kubernetes.io/name", "sealed-secrets"), ("name", "sealed-secrets-controller"))
"""Labels of upstream's charts and manifests, whatever the image is called where it was copied to."""
KEYED = re.compile(r"(^| )--key-prefix( |=|\Z)")
"""An option that only the controller takes."""
RIGHTS_SECONDS = 180.0
"""For Flux to fetch and apply the rights; more than its pause after a failure."""
KUBERNETES_SECONDS = 120.0
LOOK_SECONDS = 1.0
LONGEST_REASON = 300
"""Characters."""
MOST_NAMED = 3


class Objects(Protocol):
    """See ``cluster_objects.ClusterObjects``."""

    async def kinds(self) -> list[Kind]: ...

    async def of(
        self, kind: Kind, *, labels: Mapping[str, str | None] | None = None, namespace: str = ""
    ) -> list[Found]: ...

    async def containers(self) -> list[tuple[Found, Container]]: ...

    async def change(self, found: Found, patch: dict[str, Any]) -> None: ...

    async def remove(self, found: Found, *, foreground: bool = False, tries: bool = False) -> None: ...


@dataclass(frozen=True, slots=True)
class Purged:
    """What has become of kind and keys. ``problem``: why they stay, a sentence; empty: they are gone."""

    problem: str = ""


class Purging:
    """Purges one edge whose workloads and releases are gone.

    Args:
        anchor: keeps the outcome: whoever is killed afterwards must not look again, without the rights.
        generation: that leaves.
    """

    def __init__(self, objects: Objects, *, anchor: Found, generation: int, clock: Clock) -> None:
        self._objects = objects
        self._anchor = anchor
        self._generation = generation
        self._clock = clock
        self._log = structlog.get_logger("edgewright.agent")

    async def run(self) -> None:
        """Returns when that is settled, one way or the other.

        Raises:
            Waiting: ``not_gone``: Kubernetes takes its time; go on later.
        """
        if read_outcome(self._anchor, self._generation) is not None:
            return
        problem = (await self._purge())[:LONGEST_REASON]
        said = f"{self._generation} {problem}".strip()
        await self._objects.change(self._anchor, {"metadata": {"annotations": {OUTCOME: said}}})
        self._log.info("detach", state="not_purged" if problem else "purged", reason=problem)

    async def _purge(self) -> str:
        """Why nothing was taken away; empty: all of it was."""
        if problem := await self._payers():
            return problem
        if not await self._left():
            return ""
        if problem := await self._lacks():
            return problem
        if problem := await self._payers():  # who has come while the rights were waited for
            return problem
        for look in (self._kind, self._keys):  # the kind first: its controller would make new keys
            for each in await look():
                await self._objects.remove(each)
            if left := await self._after(KUBERNETES_SECONDS, look):
                raise Waiting(f"{left[0]} is still there.", code="not_gone")
        return ""

    async def _payers(self) -> str:
        """Who would pay for it. The cluster's own SealedSecrets went with its workloads, its controller with its
        release: whatever is left of either belongs to somebody else, or was kept on purpose."""
        running = await self._objects.containers()
        found = [each for each, container in running if not each.deleting and _opens(each, container)]
        if found:
            return f"A controller of sealed-secrets still runs here: {_named(found)}."
        if sealed := await self._objects.of(SEALED):
            return f"There are SealedSecrets left: {_named(sealed)}."
        # Kubernetes' garbage collector finds what was opened only as long as it knows the kind.
        opened = await self._after(KUBERNETES_SECONDS, self._opened)
        return f"There are Secrets left that were opened from SealedSecrets: {_named(opened)}." if opened else ""

    async def _lacks(self) -> str:
        """Waits for the rights; why they are missing, empty if they are not. It tries all that will go, so that
        nothing is taken by halves."""
        until = self._clock.monotonic() + RIGHTS_SECONDS
        while True:
            try:
                for each in await self._left():
                    await self._objects.remove(each, tries=True)
            except Forbidden as refusal:
                if self._clock.monotonic() >= until:
                    return f"Flux has not brought the right to delete {refusal.where or 'them'}."
                await self._clock.sleep(LOOK_SECONDS)
            else:
                return ""

    async def _left(self) -> list[Found]:
        return [*await self._kind(), *await self._keys()]

    async def _kind(self) -> list[Found]:
        return [each for each in await self._objects.of(DEFINITIONS) if each.name == DEFINITION]

    async def _keys(self) -> list[Found]:
        return await self._objects.of(SECRETS, labels={KEY_LABEL: None})

    async def _opened(self) -> list[Found]:
        found = await self._objects.of(SECRETS)
        return [each for each in found if any(owner.kind == SEALED.name for owner in each.owners)]

    async def _after(self, seconds: float, look: Callable[[], Awaitable[list[Found]]]) -> list[Found]:
        """What is still there after so many seconds; returns at once when nothing is."""
        until = self._clock.monotonic() + seconds
        while left := await look():
            if self._clock.monotonic() >= until:
                break
            await self._clock.sleep(LOOK_SECONDS)
        return left


def read_outcome(anchor: Found, generation: int) -> Purged | None:
    """What the anchor says of the purge of a generation; None: that is not settled, or was not asked for."""
    whose, _, problem = anchor.annotations.get(OUTCOME, "").partition(" ")
    return Purged(problem) if whose == str(generation) else None


def _opens(running: Found, container: Container) -> bool:
    """Whether that is a controller of sealed-secrets, by the rule of the chart and of the uninstall script.

    Others, such as sealed-secrets-web, have the words in their names, too.
    """
    if IMAGE.search(container.image):
        return True
    if not container.command or PurePosixPath(container.command[0]).name != PROGRAM:
        return False
    labels = (running.labels, container.labels)
    signed = any(each.get(label) == value for each in labels for label, value in SIGNS)
    return signed or KEYED.search(" ".join((*container.command, *container.arguments))) is not None


def _named(found: list[Found]) -> str:
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return ", ".join(f"{each.namespace}/{each.name}" for each in found[:MOST_NAMED]) + more
