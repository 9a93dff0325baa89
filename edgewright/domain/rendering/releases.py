"""Which charts of the centre's own repository a cluster gets, and with which values.

It is read from the manifests that are delivered, not from the templates: an installation may have changed those.
"""

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from edgewright.domain.json import Json, JsonObject
from edgewright.domain.rendering.manifests import manifest_key
from edgewright.domain.rendering.repository import RenderInput, render_manifests

_HELM_RELEASE = ("helm.toolkit.fluxcd.io", "HelmRelease")
_GIT_REPOSITORY = ("source.toolkit.fluxcd.io", "GitRepository")


@dataclass(frozen=True)
class ChartRelease:
    """One release of a chart that the centre holds.

    Args:
        chart: folder of the chart in ``shared/helm-charts``, without ``./``.
        values: what the release sets; the chart's own defaults are not among them.
    """

    chart: str
    values: JsonObject


def releases_of_shared_charts(spec: RenderInput) -> Sequence[ChartRelease]:
    """The releases of a cluster whose chart comes from the centre's repository as it is, and whose values are known.

    Those that an edge adds to are left out (``valuesFrom``, ``valuesFiles``): nobody here knows what comes of them.

    Raises:
        edgewright.domain.templates.TemplateError: as ``render_repository``.
    """
    manifests = [manifest for file in render_manifests(spec).values() for manifest in file]
    sources = {manifest_key(each)[2:] for each in manifests if _is_shared_charts(each, spec.url_helm)}
    return [release for each in manifests if (release := _release(each, sources)) is not None]


def _release(manifest: JsonObject, sources: set[tuple[str, str]]) -> ChartRelease | None:
    group, kind, namespace, _ = manifest_key(manifest)
    wanted = _at(manifest, "spec", "chart", "spec")
    reference = _at(wanted, "sourceRef")
    if (group, kind) != _HELM_RELEASE or _at(reference, "kind") != _GIT_REPOSITORY[1]:
        return None
    source = (_text(_at(reference, "namespace")) or namespace, _text(_at(reference, "name")))
    chart, values = posixpath.normpath(_text(_at(wanted, "chart"))), _at(manifest, "spec", "values")
    added = _at(manifest, "spec", "valuesFrom") or _at(wanted, "valuesFiles")
    if source not in sources or added or chart.startswith(("/", "..")):
        return None
    return ChartRelease(chart, values if isinstance(values, Mapping) else {})


def _is_shared_charts(manifest: JsonObject, url: str) -> bool:
    if manifest_key(manifest)[:2] != _GIT_REPOSITORY:
        return False
    other = {*_names(_at(manifest, "spec", "ref"))} - {"branch"}
    return _at(manifest, "spec", "url") == url and not other and _at(manifest, "spec", "ref", "branch") == "main"


def _names(value: Json) -> Iterator[str]:
    yield from value if isinstance(value, Mapping) else ()


def _at(value: Json, *path: str) -> Json:
    """What is there; None if nothing is."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
