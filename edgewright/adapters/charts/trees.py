"""A chart and those that it depends on, as the centre's own repository of charts holds them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from edgewright.adapters.charts.coalescing import EXPORTS, Chart, Requirement
from edgewright.adapters.charts.files import SCHEMA_FILE, VALUES_FILE, schema_of, yaml_object
from edgewright.adapters.charts.folders import CommittedFolder, Folder, Unusable, unpacked
from edgewright.ports.git_server import CommitId, GitServer

METADATA_FILE, REQUIREMENTS_FILE, PACKED = "Chart.yaml", "requirements.yaml", ".tgz"
MOST_CHARTS, DEEPEST_CHART = 32, 6
_LOCAL = "file://"


@dataclass(frozen=True)
class ChartTree:
    """What values are held against.

    Args:
        chart: with the dependencies that could be read.
        unread: why others could not; each completes "the chart's ".
    """

    chart: Chart
    unread: Sequence[str] = ()

    @property
    def takes_anything(self) -> bool:
        return not self.unread and all(chart.schema is None for chart in self.chart.all())


def read_tree(git: GitServer, chart: str, *, at: CommitId) -> ChartTree:
    """The chart in a folder of the centre's charts; of one that is not there: a chart without a schema.

    A dependency stands below ``charts/``, packed or not, or in another folder that ``Chart.yaml`` names by
    ``file://``. One that edges fetch from elsewhere is left out.

    Raises:
        Unusable: the chart's own schema, values or metadata cannot be used.
    """
    return tree_in(CommittedFolder(git, at, chart))


def tree_in(folder: Folder) -> ChartTree:
    """The chart in any folder; see ``read_tree``."""
    reading = _Reading()
    found = reading.chart(folder, "")
    tree = ChartTree(found, tuple(reading.unread))
    return ChartTree(Chart()) if tree.takes_anything else tree


def folders_needed(folder: Folder) -> Sequence[str]:
    """The folders of the charts that a chart names as dependencies by ``file://``, relative to it.

    Raises:
        Unusable: its metadata cannot be used.
    """
    metadata = {**_yaml(folder, METADATA_FILE, ""), **_yaml(folder, REQUIREMENTS_FILE, "")}
    return [each.folder for each in _requirements(metadata) if each.folder]


@dataclass
class _Reading:
    left: int = MOST_CHARTS
    unread: list[str] = field(default_factory=list)

    def chart(self, folder: Folder, where: str, depth: int = 0) -> Chart:
        """One chart and its dependencies.

        Args:
            where: the path of the folder, for messages; ends with a slash, or is empty.
        """
        self.left -= 1
        schema, values = folder.read(SCHEMA_FILE), folder.read(VALUES_FILE)
        metadata = _yaml(folder, METADATA_FILE, where)
        requirements = _requirements({**metadata, **_yaml(folder, REQUIREMENTS_FILE, where)})
        below = list(self._dependencies(folder, where, depth, requirements))
        name = metadata.get("name")
        bare = Chart(name if isinstance(name, str) else "", requirements=requirements, dependencies=below)
        if schema is None and not depth and ChartTree(bare, self.unread).takes_anything:
            return bare
        bare = replace(bare, defaults={} if values is None else yaml_object(values, f"{where}{VALUES_FILE}"))
        return self._with_schema(bare, schema, where, depth)

    def _with_schema(self, chart: Chart, schema: bytes | None, where: str, depth: int) -> Chart:
        if schema is None:
            return chart
        try:
            value, draft = schema_of(schema, f"{where}{SCHEMA_FILE}")
        except Unusable as error:
            if not depth:
                raise
            self.unread.append(str(error))
            return chart
        return replace(chart, schema=value, draft=draft)

    def _dependencies(
        self, folder: Folder, where: str, depth: int, requirements: Sequence[Requirement]
    ) -> Iterator[Chart]:
        packed = set()
        for path in self._places(folder):
            found = self._dependency(folder, path, where, depth)
            if found is not None:
                packed.add(found.name)
                yield found
        for requirement in requirements:
            if requirement.folder and requirement.name not in packed:
                found = self._dependency(folder, requirement.folder, where, depth)
                if found is not None:
                    yield found

    def _places(self, folder: Folder) -> Iterator[str]:
        return (f"charts/{name}" for name in folder.names("charts") if name[0] not in "._")

    def _dependency(self, above: Folder, path: str, where: str, depth: int) -> Chart | None:
        """None: there is no chart, or it cannot be read, and that is remembered."""
        try:
            folder = self._folder(above, path, where)
            if folder is None or folder.read(METADATA_FILE) is None:
                return None
            if depth == DEEPEST_CHART or not self.left:
                raise Unusable(f"dependencies are more than {MOST_CHARTS}, or nested too deep")
            return self.chart(folder, f"{where}{path}/", depth + 1)
        except Unusable as error:
            self.unread.append(str(error))
            return None

    @staticmethod
    def _folder(above: Folder, path: str, where: str) -> Folder | None:
        if not path.endswith(PACKED):
            return above.below(path)
        archive = above.read(path)
        return None if archive is None else unpacked(archive, f"{where}{path}")


def _yaml(folder: Folder, file: str, where: str) -> Mapping[str, Any]:
    content = folder.read(file)
    return {} if content is None else yaml_object(content, f"{where}{file}")


def _requirements(metadata: Mapping[str, Any]) -> Sequence[Requirement]:
    listed = metadata.get("dependencies")
    stated = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    return tuple(_requirement(each) for each in stated[:MOST_CHARTS] if isinstance(each.get("name"), str))


def _requirement(stated: Mapping[str, Any]) -> Requirement:
    repository, conditions = _text(stated, "repository"), _text(stated, "condition").strip()
    return Requirement(
        name=_text(stated, "name"),
        alias=_text(stated, "alias"),
        conditions=tuple(each for each in conditions.split(",") if each),
        tags=tuple(each for each in _list(stated, "tags") if isinstance(each, str)),
        imports=tuple(_imports(_list(stated, "import-values"))),
        folder=repository.removeprefix(_LOCAL) if repository.startswith(_LOCAL) else "",
    )


def _imports(stated: Sequence[Any]) -> Iterator[tuple[str, str]]:
    for each in stated:
        if isinstance(each, str):
            yield f"{EXPORTS}.{each}", ""
        elif isinstance(each, Mapping):
            yield _text(each, "child"), _text(each, "parent")


def _text(stated: Mapping[str, Any], key: str) -> str:
    value = stated.get(key)
    return value if isinstance(value, str) else ""


def _list(stated: Mapping[str, Any], key: str) -> Sequence[Any]:
    value = stated.get(key)
    return value if isinstance(value, list) else ()
