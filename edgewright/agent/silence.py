"""Which of Flux's controllers leave undone what is due. Nothing else on the edge says that they are gone.

Everything is read from the objects that the agent lists anyway. source-controller repeats a request to fetch in the
status of a source once it has fetched, or failed to. kustomize-controller says within seconds that it has begun with
what was fetched. A controller that has written anything else meanwhile is there, and not called silent.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from edgewright.agent.flux_conditions import FluxCondition
from edgewright.agent.observation import OWN_SOURCE, Fetched, Kustomized
from edgewright.agent.timing import Clock

SOURCE_CONTROLLER, KUSTOMIZE_CONTROLLER = "source-controller", "kustomize-controller"
SILENT_LOOKS, SHORTEST_SILENCE = 8, 45.0
"""So many looks something is due before its controller is called silent, and at least so many seconds."""
BUSY_SECONDS = 900.0
"""At least, while Flux says that it is at work on anything: a controller that waits for health has no hand free."""

Written = Sequence[tuple[str, bool, str | None, str | None, tuple[FluxCondition, ...]]]
"""What a controller has written into the status of each object, beside that object's name and whether it is ours."""


@dataclass(slots=True)
class _Wait:
    """Since when, and how many looks, something was due and nothing was written."""

    since: float
    looks: int = 0


class FluxSilence:
    """Finds silent controllers. It counts from the agent's own first look: a new agent calls nobody silent.

    Args:
        look_seconds: between two looks.
    """

    def __init__(self, *, look_seconds: float, clock: Clock) -> None:
        self._patience = max(SILENT_LOOKS * look_seconds, SHORTEST_SILENCE)
        self._clock = clock
        self._written: dict[str, Written] = {}
        self._waits: dict[str, _Wait] = {}
        self._silent: set[str] = set()

    @property
    def silent(self) -> tuple[str, ...]:
        """The controllers, in a fixed order."""
        return tuple(sorted(self._silent))

    def look(
        self, sources: Sequence[Fetched] | None, kustomizations: Sequence[Kustomized] | None, *, is_young: bool
    ) -> None:
        """One look.

        Args:
            sources, kustomizations: that are there; None: they could not be seen.
            is_young: bootstrap may not have started Flux yet, so what Flux has never worked on is not due.
        """
        if sources is None:
            self._begin_anew(SOURCE_CONTROLLER)
        else:
            due = [each for each in sources if each.own and each.is_unanswered]
            due = [each for each in due if not (is_young and each.fetched is None)]
            written = [(each.name, each.own, each.handled, each.fetched, each.conditions) for each in sources]
            self._note(SOURCE_CONTROLLER, written, is_due=bool(due), is_busy=_is_busy(sources))
        if sources is None or kustomizations is None:
            self._begin_anew(KUSTOMIZE_CONTROLLER)
            return
        fetched = next((each.fetched for each in sources if each.own and each.name == OWN_SOURCE), None)
        behind = [each for each in kustomizations if _is_left_behind(each, fetched)]
        behind = [each for each in behind if not (is_young and each.attempted is None)]
        written = [(each.name, each.own, each.attempted, each.applied, each.conditions) for each in kustomizations]
        self._note(KUSTOMIZE_CONTROLLER, written, is_due=bool(behind), is_busy=_is_busy(kustomizations))

    def _begin_anew(self, controller: str) -> None:
        """While the API server is away nobody can work. Who was silent before may still be."""
        self._waits.pop(controller, None)

    def _note(self, controller: str, written: Written, *, is_due: bool, is_busy: bool) -> None:
        now = self._clock.monotonic()
        if not is_due or self._written.get(controller) != written:
            self._written[controller], self._waits[controller] = written, _Wait(now)
            self._silent.discard(controller)
            return
        wait = self._waits.setdefault(controller, _Wait(now))
        wait.looks += 1  # after a pause of the whole machine the time alone says nothing
        patience = max(self._patience, BUSY_SECONDS) if is_busy else self._patience
        if wait.looks >= SILENT_LOOKS and now - wait.since >= patience:
            self._silent.add(controller)


def _is_busy(found: Sequence[Fetched | Kustomized]) -> bool:
    return any(each.progresses for each in found)


def _is_left_behind(part: Kustomized, fetched: str | None) -> bool:
    """Whether its controller should have begun with what was fetched. What fails or waits is told with its reason."""
    is_ours = part.own and part.source == OWN_SOURCE
    rests = part.suspended or part.deleting or part.fails or part.progresses
    return is_ours and not rests and fetched not in (None, part.attempted, part.applied)
