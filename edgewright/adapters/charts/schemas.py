"""Helm values against the schema of their chart, as the centre's own repository of charts has it at its head.

Helm lays the values of a release over the chart's ``values.yaml`` and holds the outcome against the chart's
``values.schema.json``; the same is done here, in bounded time. Left to the edge are schemas and defaults of the
charts that a chart depends on, and ``format``, which no two validators take alike.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from threading import Lock

from jsonschema.exceptions import ValidationError as Violation

from edgewright.adapters.charts.files import ChartFiles, Unusable, read_chart
from edgewright.adapters.charts.misfits import Misfit, is_in, misfit_of, place_of
from edgewright.adapters.json_schema import UNUSABLE, TooCostly, violation_of
from edgewright.domain.rendering import ChartRelease
from edgewright.domain.templates import lay_over_defaults
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
        self._read: dict[tuple[CommitId, str], ChartFiles | Unchecked] = {}

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
        chart = self._chart(release.chart, head)
        if isinstance(chart, Unchecked) or chart.schema is None:
            return chart if isinstance(chart, Unchecked) else None
        values = lay_over_defaults(chart.defaults, release.values)

        def counts(violation: Violation) -> bool:
            stays = violation.validator not in MORE_MAY_MEND and is_in(release.values, place_of(violation))
            return stays or not partly

        try:
            violation = violation_of(chart.schema, values, draft=chart.draft, formats=False, counts=counts)
        except TooCostly:
            return Unchecked(release.chart, "To check these values against the chart's schema takes too many steps.")
        except (*UNUSABLE, OverflowError) as error:
            return _unchecked(release.chart, f"values.schema.json cannot be used: {error}")
        return None if violation is None else misfit_of(release.chart, violation)

    def _chart(self, chart: str, head: CommitId) -> ChartFiles | Unchecked:
        with self._lock:
            known = self._read.get((head, chart))
        if known is not None:
            return known
        try:
            found: ChartFiles | Unchecked = read_chart(self._git, chart, at=head)
        except Unusable as error:
            found = _unchecked(chart, str(error))
        except EdgewrightError as error:
            return Unchecked(chart, error.detail)
        with self._lock:
            self._read[head, chart] = found
            while len(self._read) > REMEMBERED:
                del self._read[next(iter(self._read))]
        return found


def _unchecked(chart: str, why: str) -> Unchecked:
    return Unchecked(chart, f"The chart's {why[:LONGEST_REASON].rstrip('.')}.")
