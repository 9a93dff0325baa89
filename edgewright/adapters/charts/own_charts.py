"""Charts that people push: unpacked within bounds, described, and tried with the values that they will get."""

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edgewright.adapters.charts.files import VALUES_FILE, yaml_object
from edgewright.adapters.charts.folders import CommittedFolder, Folder, Unusable, unpacked
from edgewright.adapters.charts.misfits import Misfit
from edgewright.adapters.charts.schemas import verdict_on
from edgewright.adapters.charts.trees import METADATA_FILE, ChartTree, folders_needed, tree_in
from edgewright.domain.own_charts import ChartFacts, PackedChart, check_chart_name, check_chart_version
from edgewright.domain.rendering import ChartRelease
from edgewright.domain.repository_paths import check_path
from edgewright.errors import Invalid
from edgewright.ports.git_server import CommitId, GitServer

_API_VERSIONS = frozenset({"v1", "v2"})
_LONGEST_TEXT = 300


def packed_chart(archive: bytes) -> PackedChart:
    """The chart in an archive such as ``helm package`` makes. Blocks; call it in a thread.

    Raises:
        Invalid: ``chart_invalid``, ``chart_name_invalid``, ``path_invalid``.
    """
    try:
        files = unpacked(archive, "archive").files
        metadata = files.get(METADATA_FILE)
        if metadata is None:
            raise _invalid("The archive holds no chart: there is no Chart.yaml in its folder.")
        stated = yaml_object(metadata, METADATA_FILE)
        yaml_object(files.get(VALUES_FILE, b""), VALUES_FILE)
    except Unusable as error:
        raise _invalid(f"The chart's {error}.") from None
    for path in files:
        check_path(path)
    if stated.get("apiVersion") not in _API_VERSIONS:
        raise _invalid("The chart's Chart.yaml says neither apiVersion: v2 nor v1.")
    name = stated.get("name")
    if not isinstance(name, str):
        raise _invalid("The chart's Chart.yaml says no name.")
    check_chart_version(stated.get("version"))
    return PackedChart(_facts(stated, check_chart_name(name)), files)


class ChartTrial:
    """A chart that is to be committed, as it would stand among the others."""

    def __init__(self, tree: ChartTree) -> None:
        self._tree = tree

    @property
    def warnings(self) -> Sequence[str]:
        """What of the chart its values are not checked against."""
        unread = (why.rstrip(".") for why in self._tree.unread)
        return [f"The chart's {why}, so that values are not checked against it." for why in unread]

    def misfit(self, release: ChartRelease, *, partly: bool) -> str | None:
        """Why values do not fit, as a sentence; ``partly``: more are laid over them later."""
        verdict = verdict_on(release, self._tree, partly=partly)
        return verdict.sentence if isinstance(verdict, Misfit) else None


class GitChartShelf:
    """Reads the charts in ``shared/helm-charts``; blocks."""

    def __init__(self, git: GitServer) -> None:
        self._git = git

    def facts(self, folder: str, *, at: CommitId) -> ChartFacts | None:
        """What the chart in a folder says of itself; None: there is none."""
        content = CommittedFolder(self._git, at, folder).read(METADATA_FILE)
        if content is None:
            return None
        name = posixpath.basename(folder)
        try:
            return _facts(yaml_object(content, METADATA_FILE), name)
        except Unusable:
            return ChartFacts(name, "")

    def needs(self, folder: str, other: str, *, at: CommitId) -> bool:
        """Whether the chart in a folder has the one in another folder as a dependency."""
        try:
            found = folders_needed(CommittedFolder(self._git, at, folder))
        except Unusable:
            return False
        return other in {posixpath.normpath(posixpath.join(folder, each)) for each in found}

    def trial(self, chart: PackedChart, *, at: CommitId) -> ChartTrial:
        """The chart beside those that a commit holds.

        Raises:
            Invalid: code ``chart_invalid``: its schema, values or metadata cannot be used.
        """
        try:
            return ChartTrial(tree_in(_PushedFolder(CommittedFolder(self._git, at, chart.folder), chart)))
        except Unusable as error:
            raise _invalid(f"The chart's {error}.") from None


@dataclass(frozen=True)
class _PushedFolder:
    """The folder of a pushed chart, or one in it; folders beside it are those of the commit."""

    beside: CommittedFolder
    chart: PackedChart
    path: str = ""

    def read(self, path: str) -> bytes | None:
        return self.chart.files.get(self._at(path))

    def names(self, folder: str) -> Sequence[str]:
        prefix = f"{self._at(folder)}/"
        found = (path for path in self.chart.files if path.startswith(prefix))
        return sorted({path.removeprefix(prefix).partition("/")[0] for path in found})

    def below(self, folder: str) -> Folder | None:
        path = posixpath.normpath(posixpath.join(self.path, folder))
        if path.split("/")[0] == "..":
            return self.beside.below(path)
        return _PushedFolder(self.beside, self.chart, path)

    def _at(self, path: str) -> str:
        return posixpath.normpath(posixpath.join(self.path, path))


def _facts(stated: Mapping[str, object], name: str) -> ChartFacts:
    texts = {key: stated.get(key) for key in ("version", "appVersion", "description")}
    version, app_version, description = (
        str(value)[:_LONGEST_TEXT] if isinstance(value, str | int | float) else "" for value in texts.values()
    )
    return ChartFacts(name, version, app_version, description)


def _invalid(sentence: str) -> Invalid:
    return Invalid(
        sentence, code="chart_invalid", hint="`helm lint FOLDER` and `helm template FOLDER` say what else is wrong."
    )
