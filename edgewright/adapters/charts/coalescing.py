"""The values that each chart of a release is given, as Helm 3 works them out before it asks the charts' schemas.

A chart's own defaults lie under the values of its release. What stands below the name of a dependency is given to
that one, over its own defaults, and so is ``global``. Conditions and tags decide which dependencies take part, and a
chart may import defaults of those below it. Versions of dependencies are not compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from edgewright.adapters.json_schema import OURS, Draft
from edgewright.domain.json import Json, JsonObject

GLOBAL, TAGS, EXPORTS = "global", "tags", "exports"
Values = dict[str, Any]


@dataclass(frozen=True)
class Requirement:
    """What ``Chart.yaml`` says of one dependency.

    Args:
        name: of the chart.
        alias: what it is called here; empty: by its name.
        conditions: paths of values, of which the first that is there decides whether it takes part.
        tags: names below ``tags`` that decide likewise, if no condition does.
        imports: pairs of a path in the dependency's values and one in those of the chart above it.
        folder: of the chart, relative to this one, if it is not packed with it; empty: elsewhere.
    """

    name: str
    alias: str = ""
    conditions: Sequence[str] = ()
    tags: Sequence[str] = ()
    imports: Sequence[tuple[str, str]] = ()
    folder: str = ""

    @property
    def called(self) -> str:
        return self.alias or self.name


@dataclass(frozen=True)
class Chart:
    """What decides which values fit a chart.

    Args:
        name: under which the chart above it gives it values.
        schema: None: it has none.
        draft: of the schema.
        dependencies: those that the centre holds.
    """

    name: str = ""
    schema: Any = None
    defaults: JsonObject = field(default_factory=dict)
    draft: Draft = OURS
    requirements: Sequence[Requirement] = ()
    dependencies: Sequence["Chart"] = ()

    def all(self) -> Iterator["Chart"]:
        yield self
        for dependency in self.dependencies:
            yield from dependency.all()


@dataclass(frozen=True)
class Given:
    """A chart that takes part in a release, and what it is given.

    Args:
        path: names that lead to it; empty: the chart of the release itself.
    """

    path: tuple[str, ...]
    chart: Chart
    values: JsonObject


class NotAnObject(Exception):
    """Something else stands where the values of a dependency belong."""

    def __init__(self, path: tuple[str, ...]) -> None:
        super().__init__()
        self.path = path


def given_to_each(chart: Chart, values: JsonObject) -> Iterator[Given]:
    """The charts of a release and their values, the chart itself first; nothing is changed.

    Raises:
        NotAnObject: before anything is returned.
    """
    taking_part = _with_imports(_enabled(chart, values, ()))
    laid = _coalesced(taking_part, deepcopy(dict(values)), ())
    return _each(taking_part, laid, ())


def _each(chart: Chart, values: JsonObject, path: tuple[str, ...]) -> Iterator[Given]:
    yield Given(path, chart, values)
    for dependency in chart.dependencies:
        below = values.get(dependency.name)
        if isinstance(below, Mapping):
            yield from _each(dependency, below, (*path, dependency.name))


def _enabled(chart: Chart, values: JsonObject, path: tuple[str, ...]) -> Chart:
    """A chart without the dependencies that do not take part, the others by the names that they have here."""
    if not chart.requirements:
        return chart
    required = {requirement.name for requirement in chart.requirements}
    here = [dependency for dependency in chart.dependencies if dependency.name not in required]
    for requirement in chart.requirements:
        found = next((each for each in chart.dependencies if each.name == requirement.name), None)
        if found is not None:
            here.append(replace(found, name=requirement.called))
    laid = _coalesced(replace(chart, dependencies=here), deepcopy(dict(values)), path)
    off = {each.called for each in chart.requirements if not _takes_part(each, laid, path)}
    on = [dependency for dependency in here if dependency.name not in off]
    return replace(
        chart,
        requirements=[each for each in chart.requirements if each.called not in off],
        dependencies=[_enabled(each, laid, (*path, each.name)) for each in on],
    )


def _takes_part(requirement: Requirement, values: JsonObject, path: tuple[str, ...]) -> bool:
    for condition in requirement.conditions:
        said = _at(values, ".".join((*path, condition)))
        if isinstance(said, bool):
            return said
    tags = values.get(TAGS)
    tagged = [tags.get(tag) for tag in requirement.tags] if isinstance(tags, Mapping) else []
    return True in tagged or False not in tagged


def _at(values: Json, path: str) -> Json:
    """None: there is nothing."""
    for step in path.split("."):
        values = values.get(step) if isinstance(values, Mapping) else None
    return values


def _with_imports(chart: Chart) -> Chart:
    """A chart whose defaults hold those of its dependencies, and what it imports from these."""
    chart = replace(chart, dependencies=[_with_imports(each) for each in chart.dependencies])
    if not chart.requirements:
        return chart
    defaults = _coalesced(chart, {}, (), merge=True)
    imported: Values = {}
    for requirement in chart.requirements:
        for source, target in requirement.imports:
            found = _at(defaults, f"{requirement.called}.{source}")
            if isinstance(found, Mapping):
                _lay(imported, _nested(target, deepcopy(dict(found))), merge=True)
    return replace(chart, defaults=_lay(deepcopy(defaults), imported, merge=True))


def _nested(path: str, values: Values) -> Values:
    for step in reversed([step for step in path.split(".") if step]):
        values = {step: values}
    return values


def _coalesced(chart: Chart, values: Values, path: tuple[str, ...], *, merge: bool = False) -> Values:
    """Lays values, which are changed, over the defaults of a chart and of those that it depends on.

    Args:
        merge: null stays where it takes a default away, so that it can take away one further down.
    """
    names = {dependency.name for dependency in chart.dependencies}
    for key, default in deepcopy(dict(chart.defaults)).items():
        if key not in values:
            values[key] = default
        elif values[key] is None and not merge:
            del values[key]
        elif isinstance(values[key], dict) and isinstance(default, dict):
            _lay(values[key], default, merge=merge or key in names)
    for dependency in chart.dependencies:
        below = values.setdefault(dependency.name, {})
        if not isinstance(below, dict):
            raise NotAnObject((*path, dependency.name))
        _hand_down(values.get(GLOBAL, {}), below)
        _coalesced(dependency, below, (*path, dependency.name), merge=merge)
    return values


def _lay(values: Values, defaults: Values, *, merge: bool) -> Values:
    """Lays values, which are changed and returned, over defaults."""
    for key, default in defaults.items():
        if key not in values:
            values[key] = default
        elif values[key] is None and not merge:
            del values[key]
        elif isinstance(default, dict) and isinstance(values[key], dict):
            _lay(values[key], default, merge=merge)
    return values


def _hand_down(above: Json, values: Values) -> None:
    """Lays what is global in the chart above over what is global in a dependency."""
    if not isinstance(above, Mapping) or not isinstance(values.get(GLOBAL, {}), dict):
        return
    own = values.setdefault(GLOBAL, {})
    for key, value in above.items():
        if isinstance(value, Mapping):
            if key not in own:
                own[key] = deepcopy(dict(value))
            elif isinstance(own[key], dict):
                own[key] = _lay(deepcopy(dict(value)), own[key], merge=True)
        elif not isinstance(own.get(key), dict):
            own[key] = value
