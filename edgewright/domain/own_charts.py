"""Helm charts that people push. They are in a separate folder of ``shared/helm-charts``."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from edgewright.errors import Invalid

OWN_CHARTS = "own"
"""Folder of ``shared/helm-charts``. The centre publishes everything else there, and leaves this folder alone."""
LONGEST_NAME = 53
"""Helm allows no longer name for a release."""
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_NUMBER = r"(?:0|[1-9][0-9]*)"
_VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    r"(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_LONGEST_VERSION = 64


@dataclass(frozen=True)
class ChartFacts:
    """Facts from a ``Chart.yaml``. ``version`` is empty if a built-in chart has none."""

    name: str
    version: str
    app_version: str = ""
    description: str = ""


@dataclass(frozen=True)
class PackedChart:
    """A pushed chart.

    Args:
        files: path within the chart -> content; every path is valid in a repository.
    """

    facts: ChartFacts
    files: Mapping[str, bytes] = field(repr=False)

    @property
    def folder(self) -> str:
        """Its folder in ``shared/helm-charts``."""
        return own_folder(self.facts.name)


def own_folder(name: str) -> str:
    """Returns the folder of the pushed chart with that name."""
    return f"{OWN_CHARTS}/{name}"


def check_chart_name(name: str) -> str:
    """Returns the name if a chart may have it.

    Raises:
        Invalid: code ``chart_name_invalid``.
    """
    if len(name) > LONGEST_NAME or _NAME.fullmatch(name) is None:
        raise Invalid(
            "That cannot be the name of a chart.",
            code="chart_name_invalid",
            hint=f"Use at most {LONGEST_NAME} lower-case letters, digits and hyphens; begin and end with no hyphen.",
        )
    return name


def check_chart_version(version: object) -> str:
    """Returns the version if it is valid.

    Raises:
        Invalid: code ``chart_invalid``.
    """
    if not isinstance(version, str) or len(version) > _LONGEST_VERSION or _VERSION.fullmatch(version) is None:
        raise Invalid(
            "The chart's Chart.yaml has no version such as 1.2.0.",
            code="chart_invalid",
            hint="Write three numbers, as Semantic Versioning has it.",
            where="Chart.yaml",
        )
    return version
