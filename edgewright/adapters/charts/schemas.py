"""Helm values against the schema of their chart, as the centre's own repository of charts has it at its head.

Helm lays the values of a release over the chart's ``values.yaml`` and holds the outcome against the chart's
``values.schema.json``, and so for each chart that it depends on; the same is done here, in bounded time. Left to the
edge are schemas and defaults of dependencies that the centre does not hold, and ``format``, which no two validators
take alike.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from threading import Lock

from jsonschema.exceptions import ValidationError as Violation

from edgewright.adapters.charts.coalescing import Given, NotAnObject, given_to_each
from edgewright.adapters.charts.files import SCHEMA_FILE
from edgewright.adapters.charts.folders import Unusable
from edgewright.adapters.charts.misfits import Misfit, is_in, misfit_of, place_of
from edgewright.adapters.charts.trees import ChartTree, read_tree
from edgewright.adapters.json_schema import UNUSABLE, Steps, TooCostly, violation_of
from edgewright.domain.rendering import ChartRelease
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.errors import EdgewrightError, NotFound
from edgewright.ports.git_server import CommitId, GitServer

REMEMBERED = 16
"""Charts that are kept as they were read."""
LONGEST_REASON = 300
MORE_MAY_MEND = frozenset(
    {"required", "dependencies", "dependentRequired", "dependentSchemas", "minProperties", "anyOf", "oneOf", "if"}
)
"""Keywords that values may fit once others are laid over them."""


@dataclass(frozen=True)
class Unchecked:
    """Values that could not be held against the schema of their chart.

    Args:
        chart: folder of the chart.
        reason: one sentence.
    """

    chart: str
    reason: str


class ChartSchemas:
    """Holds values against the schemas at the head of ``shared/helm-charts``. Blocks; call it in a thread.

    A chart that the centre does not hold, and one without a schema, take anything.
    """

    def __init__(self, git: GitServer) -> None:
        self._git = git
        self._lock = Lock()
        self._read: dict[tuple[CommitId, str], ChartTree | Unchecked] = {}

    def verdicts(self, releases: Iterable[ChartRelease], *, partly: bool = False) -> Iterator[Misfit | Unchecked]:
        """What does not fit, at most one for each release.

        Args:
            partly: more values are laid over these later: only what is wrong in these themselves counts.
        """
        try:
            head = self._git.head(REPOSITORY_HELM_CHARTS)
        except NotFound:
            return
        except EdgewrightError as error:
            yield from (Unchecked(release.chart, error.detail) for release in releases)
            return
        for release in releases if head else ():
            verdict = self._verdict(release, head or "", partly)
            if verdict is not None:
                yield verdict

    def _verdict(self, release: ChartRelease, head: CommitId, partly: bool) -> Misfit | Unchecked | None:
        tree = self._tree(release.chart, head)
        return tree if isinstance(tree, Unchecked) else verdict_on(release, tree, partly=partly)

    def _tree(self, chart: str, head: CommitId) -> ChartTree | Unchecked:
        with self._lock:
            known = self._read.get((head, chart))
        if known is not None:
            return known
        try:
            found: ChartTree | Unchecked = read_tree(self._git, chart, at=head)
        except Unusable as error:
            found = _unchecked(chart, str(error))
        except EdgewrightError as error:
            return Unchecked(chart, error.detail)
        with self._lock:
            self._read[head, chart] = found
            while len(self._read) > REMEMBERED:
                del self._read[next(iter(self._read))]
        return found


def verdict_on(release: ChartRelease, tree: ChartTree, *, partly: bool) -> Misfit | Unchecked | None:
    """What does not fit a chart that was read, or could not be checked; None if all is well.

    Args:
        partly: see ``ChartSchemas.verdicts``.
    """
    if tree.takes_anything:
        return None
    try:
        given = list(given_to_each(tree.chart, release.values))
    except NotAnObject as error:
        return Misfit(release.chart, error.path, "has to be an object")
    verdicts = [*_verdicts(release, given, partly), *(_unchecked(release.chart, why) for why in tree.unread)]
    return next((each for each in verdicts if isinstance(each, Misfit)), verdicts[0] if verdicts else None)


def _verdicts(release: ChartRelease, given: Iterable[Given], partly: bool) -> Iterator[Misfit | Unchecked]:
    steps = Steps()
    for each in given:
        if each.chart.schema is None:
            continue
        try:
            violation = _violation(release, each, partly, steps)
        except TooCostly:
            yield Unchecked(release.chart, "To check these values against the chart's schema takes too many steps.")
            return
        except (*UNUSABLE, OverflowError) as error:
            where = "".join(f"charts/{name}/" for name in each.path)
            yield _unchecked(release.chart, f"{where}{SCHEMA_FILE} cannot be used: {error}")
            continue
        if violation is not None:
            yield misfit_of(release.chart, violation, below=each.path)


def _violation(release: ChartRelease, given: Given, partly: bool, steps: Steps) -> Violation | None:
    def counts(violation: Violation) -> bool:
        place = (*given.path, *place_of(violation))
        stays = violation.validator not in MORE_MAY_MEND and is_in(release.values, place)
        return stays or not partly

    chart = given.chart
    return violation_of(chart.schema, given.values, draft=chart.draft, formats=False, counts=counts, steps=steps)


def _unchecked(chart: str, why: str) -> Unchecked:
    return Unchecked(chart, f"The chart's {why[:LONGEST_REASON].rstrip('.')}.")
