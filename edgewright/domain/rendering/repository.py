"""The generated files of a driving repository.

``render_repository`` is a function of its input alone: same input, same bytes, in any process, at any time. The
order of keys in a template does not matter, the order of manifests in a file does.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from edgewright.domain.json import Json, JsonObject, canonical_json
from edgewright.domain.rendering.components import COMPONENT_FOLDERS, OwnComponents, component_files
from edgewright.domain.rendering.layout import (
    BY_HAND_FOLDER,
    BY_HAND_NOTE,
    BY_HAND_NOTE_PATH,
    CLUSTER_FOLDER,
    DRIVER_PATTERN_PATH,
    DRIVERS_FOLDER,
    FLUX_SYSTEM_FILE,
    README_PATH,
    SECRETS_NOTE,
    SECRETS_NOTE_PATH,
    SELF_LINK_FILE,
    repository_note,
)
from edgewright.domain.rendering.manifests import (
    ManifestKey,
    checked_manifest,
    in_namespace,
    manifest_key,
    manifests_yaml,
)
from edgewright.domain.rendering.secret_drivers import (
    drives_secrets,
    pattern_file,
    read_pattern,
    rendered_drivers,
)
from edgewright.domain.templates import TemplateError, check_bounds, expand, merge_values

RENDERER_VERSION = 3
"""Raised by every change of this package that gives other bytes for an old input."""

FETCHED_BY_ITSELF, FETCHED_WHEN_ASKED = "3m", "10m"
"""How often Flux looks for news where nobody asks it to, and where the agent does."""
DEFAULT_SOURCE = "helm-charts"
"""The GitRepository that a chart comes from if its template names none."""

_FLUX = "Flux template"
_HELM_RELEASE = "HelmRelease template"
_CHART = "Helm chart template"
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*\.yaml")
_LONGEST_FILE_NAME = 100
_DNS_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_CHART_PATH = re.compile(r"(?:\./)?[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*")


@dataclass(frozen=True)
class RenderInput:
    """Everything that the generated files of one cluster depend on.

    Args:
        bare: the cluster brings its own Flux: no ``flux-system.yaml``.
        values: Helm values of the configuration entry; laid over those of the chart template, never expanded.
        chart_template: entry of *Helm chart template*: ``chart``, ``values``, ``source`` and ``prefix`` if any.
        helm_release_template: entry of *Kubernetes resource template*: ``template`` and ``resources``.
        flux_template: entry of *Flux template*: file name -> list of manifests.
        url_self: URL of the cluster's driving repository, as the edge reaches it.
        url_helm: URL of the repository with the shared Helm charts, as the edge reaches it.
        fetch_interval: how often Flux looks for news by itself.
        components: those that somebody wants in a version; None: the edge keeps what bootstrap has installed.
    """

    uuid: UUID
    name: str
    namespace: str
    bare: bool
    values: JsonObject
    chart_template: JsonObject
    helm_release_template: JsonObject
    flux_template: JsonObject
    url_self: str
    url_helm: str
    fetch_interval: str = FETCHED_BY_ITSELF
    components: OwnComponents | None = None


def render_repository(spec: RenderInput) -> Mapping[str, bytes]:
    """Path -> content of every file that the centre generates for a cluster, secrets and what drives them aside.

    Raises:
        edgewright.domain.templates.TemplateError: a template cannot be used; names file, path and reason.
    """
    files = {
        README_PATH: repository_note(spec.name, spec.uuid),
        SECRETS_NOTE_PATH: SECRETS_NOTE,
        BY_HAND_NOTE_PATH: BY_HAND_NOTE,
    }
    pattern: list[JsonObject] = []
    for file, manifests in render_manifests(spec).items():
        others = [manifest for manifest in manifests if not drives_secrets(manifest)]
        pattern += [manifest for manifest in manifests if drives_secrets(manifest)]
        if others:
            files[CLUSTER_FOLDER + file] = manifests_yaml(others)
    if spec.components is not None:
        files |= component_files(spec.components, spec.uuid, spec.namespace)
    return dict(sorted({**files, **pattern_file(pattern)}.items()))


def render_manifests(spec: RenderInput) -> Mapping[str, Sequence[JsonObject]]:
    """File in ``edo/cluster`` -> its manifests, the pattern of what drives secrets among them.

    Raises:
        edgewright.domain.templates.TemplateError: as ``render_repository``.
    """
    return _flux_files(spec, _helm_release(spec))


def render_digest(spec: RenderInput) -> str:
    """SHA-256, hexadecimal, of the input and of the renderer's version: equal digests, equal files.

    Raises:
        edgewright.domain.templates.TemplateError: NaN or an infinity in it.
    """
    described: dict[str, Json] = {
        "renderer": RENDERER_VERSION,
        "uuid": str(spec.uuid),
        "name": spec.name,
        "namespace": spec.namespace,
        "bare": spec.bare,
        "values": spec.values,
        "chart_template": spec.chart_template,
        "helm_release_template": spec.helm_release_template,
        "flux_template": spec.flux_template,
        "url_self": spec.url_self,
        "url_helm": spec.url_helm,
        "fetch_interval": spec.fetch_interval,
    }
    if spec.components is not None:
        described["components"] = spec.components.described()
    try:
        canonical = canonical_json(described)
    except ValueError as error:
        raise TemplateError("holds NaN or an infinity", where="values or templates of the cluster") from error
    return hashlib.sha256(canonical).hexdigest()


def render_changes(rendered: Mapping[str, bytes], paths: Sequence[str]) -> Mapping[str, bytes | None]:
    """What a commit has to change so that a repository holds the rendered files and no stale ones.

    Files in ``edo/cluster`` that are no longer rendered go, and those of components. Sealed secrets and ``by-hand``
    stay untouched; the note in ``by-hand``, whose owner may delete it, is written only while the folder holds
    nothing. The drivers of secrets depend on the secrets at the head: see ``secret_drivers``.

    Args:
        rendered: the outcome of ``render_repository``.
        paths: every path at the head of the repository; empty before the first commit.
    """
    changes: dict[str, bytes | None] = dict(rendered)
    if any(path.startswith(BY_HAND_FOLDER) for path in paths):
        changes.pop(BY_HAND_NOTE_PATH, None)
    for path in paths:
        generated = path.startswith((CLUSTER_FOLDER, *COMPONENT_FOLDERS)) and not path.startswith(DRIVERS_FOLDER)
        if generated and path not in rendered:
            changes[path] = None
    return changes | rendered_drivers(read_pattern(rendered.get(DRIVER_PATTERN_PATH)), paths)


def _flux_files(spec: RenderInput, helm_release: JsonObject) -> dict[str, Sequence[JsonObject]]:
    template = spec.flux_template
    if not isinstance(template, Mapping) or SELF_LINK_FILE not in template:
        raise TemplateError(f"needs a file {SELF_LINK_FILE}: bootstrap applies it first", where=_FLUX)
    context = {**_cluster_context(spec), "helm": helm_release}
    files: dict[str, Sequence[JsonObject]] = {}
    names: dict[str, str] = {}
    seen: dict[ManifestKey, str] = {}
    for file in sorted(template):
        _check_file_name(file, names)
        if spec.bare and file == FLUX_SYSTEM_FILE:
            continue
        files[file] = _manifests_of(template[file], context, where=f"{_FLUX} {file}", spec=spec)
        for index, manifest in enumerate(files[file]):
            _check_unique(manifest, seen, where=f"{_FLUX} {file}#/{index}")
    return files


def _manifests_of(
    template: Json, context: Mapping[str, Json], *, where: str, spec: RenderInput
) -> Sequence[JsonObject]:
    if not isinstance(template, list | tuple) or not template:
        raise TemplateError("has to be a list with at least one manifest", where=where)
    expanded = expand(template, context, where=where)
    assert isinstance(expanded, list)  # noqa: S101 - a list expands to a list; narrows the type
    return [
        in_namespace(checked_manifest(value, where=where, pointer=f"/{index}"), spec.namespace)
        for index, value in enumerate(expanded)
    ]


def _helm_release(spec: RenderInput) -> JsonObject:
    chart, source = _chart(spec.chart_template)
    context: Mapping[str, Json] = {
        "name": f"edge-cluster-{spec.uuid}",
        "uuid": str(spec.uuid),
        "namespace": spec.namespace,
        "chart": chart,
        "source": source,
        "values": _values(spec),
    }
    template = _member(spec.helm_release_template, "template", where=_HELM_RELEASE)
    expanded = _member(expand({"template": template}, context, where=_HELM_RELEASE), "template", where=_HELM_RELEASE)
    manifest = checked_manifest(expanded, where=_HELM_RELEASE, pointer="/template")
    return in_namespace(manifest, spec.namespace)


def _chart(template: JsonObject) -> tuple[str, str]:
    """The chart's path in its source, and the name of the source."""
    chart = _member(template, "chart", where=_CHART)
    if not isinstance(chart, str) or _CHART_PATH.fullmatch(chart) is None:
        raise TemplateError(
            "has to be the path of a chart within its source, such as edge-cluster", where=f"{_CHART}#/chart"
        )
    prefix = template.get("prefix")
    if prefix is None and "/" in chart:
        raise TemplateError(
            "is required because the chart's name contains a slash", where=f"{_CHART}#/prefix", hint="Add a prefix."
        )
    if prefix is not None:
        _check_label(prefix, where=f"{_CHART}#/prefix")
    source = template.get("source", DEFAULT_SOURCE)
    return chart, _check_label(source, where=f"{_CHART}#/source")


def _values(spec: RenderInput) -> Json:
    """The values of the chart template, expanded, with those of the configuration entry laid over them."""
    template = _member(spec.chart_template, "values", where=_CHART)
    base = _member(expand({"values": template}, _cluster_context(spec), where=_CHART), "values", where=_CHART)
    if not isinstance(base, Mapping):
        raise TemplateError("has to be an object", where=f"{_CHART}#/values")
    check_bounds(spec.values, where="values of the configuration entry")
    return merge_values(base, spec.values)


def _cluster_context(spec: RenderInput) -> Mapping[str, Json]:
    """The variables that every template but the HelmRelease has."""
    return {
        "uuid": str(spec.uuid),
        "name": spec.name,
        "namespace": spec.namespace,
        "url": {"self": spec.url_self, "helm": spec.url_helm},
        "fetch": {"interval": spec.fetch_interval},
    }


def _member(value: Json, key: str, *, where: str) -> Json:
    if not isinstance(value, Mapping) or key not in value:
        raise TemplateError(f"needs a member '{key}'", where=where)
    return value[key]


def _check_label(value: Json, *, where: str) -> str:
    if not isinstance(value, str) or _DNS_LABEL.fullmatch(value) is None:
        raise TemplateError("has to be lower-case letters, digits and '-', at most 63", where=where)
    return value


def _check_file_name(file: str, names: dict[str, str]) -> None:
    where = f"{_FLUX} {file[:_LONGEST_FILE_NAME]!r}"
    if _FILE_NAME.fullmatch(file) is None or len(file) > _LONGEST_FILE_NAME:
        raise TemplateError("a file is called NAME.yaml: letters, digits, '.', '-' and '_', no folders", where=where)
    if file.lower() == "kustomization.yaml":
        raise TemplateError("would hide every other file from Flux, which makes this one itself", where=where)
    other = names.setdefault(file.lower(), file)
    if other != file:
        raise TemplateError(f"differs from '{other}' by case only", where=where)


def _check_unique(manifest: JsonObject, seen: dict[ManifestKey, str], *, where: str) -> None:
    key = manifest_key(manifest)
    other = seen.setdefault(key, where)
    if other != where:
        raise TemplateError(f"{key[1]} '{key[3]}' is in {other} already", where=where)
