"""``python -m edgewright.agent``: the agent on the settings of its environment, until SIGTERM or SIGINT."""

import gc

if __name__ == "__main__":
    gc.disable()  # until all is loaded: none of it is garbage, and looking through it takes a third of a start

import asyncio
import sys
from collections.abc import Awaitable, Callable
from random import Random, SystemRandom

from edgewright.agent.attachment import SECRET, Attachment, read_attachment
from edgewright.agent.centre import Centre
from edgewright.agent.fetching import FluxFetching
from edgewright.agent.key_check import KeyCheck
from edgewright.agent.kubernetes import Kubernetes
from edgewright.agent.leaving import Leaving
from edgewright.agent.lifetime import ReadinessFile, main_of
from edgewright.agent.moving import Moving
from edgewright.agent.pauses import Backoff
from edgewright.agent.reporter import Reporter
from edgewright.agent.resealing import Resealer
from edgewright.agent.rotation import Rotation
from edgewright.agent.sealing_certificate import SealingCertificateSource
from edgewright.agent.sealing_controller import SealingController
from edgewright.agent.settings import AgentSettings
from edgewright.agent.timing import Clock, RealClock
from edgewright.agent.transitions import Transitions
from edgewright.agent.watch import Watch
from edgewright.errors import EdgewrightError

LONGEST_WAIT = 60.0
"""Seconds between two looks for the Secret, at most: somebody may stand beside the machine."""
LOOKS_AT_KEYS = 4
"""Looks at the cluster for each look at the SealedSecrets, which are many and change rarely."""


async def run(settings: AgentSettings) -> None:
    """Runs until it is cancelled.

    Raises:
        ExceptionGroup: of an ``EdgewrightError``: only a new start can go on.
    """
    clock, chance, readiness = RealClock(), SystemRandom(), ReadinessFile()
    kubernetes, certificate = Kubernetes(), SealingCertificateSource(settings.sealing_url)
    controller = SealingController(settings.sealing_url, clock)

    async def attachment() -> Attachment | None:
        content = await kubernetes.secret(settings.namespace or kubernetes.namespace(), SECRET)
        return None if content is None else read_attachment(content)

    try:
        centre = await find_centre(attachment, clock=clock, chance=chance)
        watch = Watch(
            kubernetes,
            certificate,
            namespace=settings.namespace or kubernetes.namespace(),
            cluster=centre.attachment.cluster,
            look_seconds=settings.look_seconds,
            clock=clock,
            chance=chance,
            image=settings.image,
            unopened=lambda: keys.unopened,
        )
        keys = KeyCheck(
            kubernetes,
            controller,
            openings=lambda: watch.seen.openings,
            certificate=lambda: watch.seen.certificate,
            pause_seconds=LOOKS_AT_KEYS * settings.look_seconds,
            clock=clock,
            chance=chance,
        )
        resealing = Resealer(kubernetes, controller, certificate)
        reporter = Reporter(
            centre,
            watch,
            attachment=attachment,
            connect=Centre,
            rotation=Rotation(kubernetes, namespace=settings.namespace or kubernetes.namespace()),
            leaving=Leaving(kubernetes, namespace=settings.namespace or kubernetes.namespace()),
            moving=Moving(kubernetes, namespace=settings.namespace or kubernetes.namespace(), clock=clock),
            fetching=FluxFetching(
                kubernetes,
                namespace=settings.namespace or kubernetes.namespace(),
                clock=clock,
                chance=chance,
                hurry=watch.hurry,
            ),
            clock=clock,
            chance=chance,
            answered=readiness.tell,
            reseal=resealing.want,
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(resealing.run())
            tasks.create_task(keys.run())
            tasks.create_task(watch.run())
            tasks.create_task(reporter.run())
    finally:
        await controller.close()
        await certificate.close()
        await kubernetes.close()


async def find_centre(
    attachment: Callable[[], Awaitable[Attachment | None]], *, clock: Clock, chance: Random
) -> Centre:
    """The centre that the Secret names; waits for the Secret, and for Kubernetes, as long as it takes."""
    matter = Transitions("attachment")
    backoff = Backoff(chance, longest=LONGEST_WAIT)
    while True:
        try:
            found = await attachment()
            if found is not None:
                centre = Centre(found)
                matter.well("found", url=found.url, cluster=found.cluster, generation=found.generation)
                return centre
            matter.trouble("missing", detail=f"There is no Secret {SECRET}: the bootstrap script makes it.")
        except EdgewrightError as trouble:
            matter.trouble("unreadable", detail=trouble.detail, code=trouble.code, hint=trouble.hint)
        await clock.sleep(backoff.after_failure())


if __name__ == "__main__":
    sys.exit(main_of(run))
