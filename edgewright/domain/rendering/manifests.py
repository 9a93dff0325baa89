"""Kubernetes manifests: what makes one usable, and its one spelling as YAML."""

import re
from collections.abc import Mapping, Sequence

import yaml

from edgewright.domain.json import Json, JsonObject
from edgewright.domain.rendering.deliverable import find_undeliverable
from edgewright.domain.templates import TemplateError, child

_FLUX_GROUP = re.compile(r"[a-z]+\.toolkit\.fluxcd\.io")
_UNMISTAKABLE = re.compile(r"[A-Za-z]|\.?/|[0-9][^\n]*[g-npqrsuvwyG-NPQRSUVWY]")
"""Beginnings of text that no reader takes for a number or a date: those hold no letters but a-f, o, t, x and z."""
_UNPRINTABLE = re.compile(r"[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
"""Needs escapes; among it the line ends that only YAML 1.1 knows, which PyYAML would write as they are."""
_OTHER_MEANING = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_FIRST_KEYS = {key: place for place, key in enumerate(("apiVersion", "kind", "metadata"))}
_FIRST_METADATA_KEYS = {key: place for place, key in enumerate(("name", "namespace", "labels", "annotations"))}

ManifestKey = tuple[str, str, str, str]
"""API group, kind, namespace (empty if none is said), name: what no two manifests may share."""


def checked_manifest(value: Json, *, where: str, pointer: str) -> JsonObject:
    """The value if it has what every Kubernetes object has.

    Raises:
        TemplateError: not an object; or ``apiVersion``, ``kind`` or ``metadata.name`` is no text; or a key or
            text in it could not be read by Flux.
    """
    if not isinstance(value, Mapping):
        raise TemplateError("a manifest has to be an object", where=f"{where}#{pointer}")
    for field in ("apiVersion", "kind"):
        _check_text(value.get(field), where=f"{where}#{child(pointer, field)}")
    metadata = value.get("metadata")
    if not isinstance(metadata, Mapping):
        raise TemplateError("has to be an object with a name", where=f"{where}#{pointer}/metadata")
    _check_text(metadata.get("name"), where=f"{where}#{pointer}/metadata/name")
    if "namespace" in metadata:
        _check_text(metadata["namespace"], where=f"{where}#{pointer}/metadata/namespace")
    _check_deliverable(value, where=where, pointer=pointer)
    return value


def in_namespace(manifest: JsonObject, namespace: str) -> JsonObject:
    """A checked manifest of Flux with a namespace, if it says none; manifests of others stay as they are.

    All of Flux's kinds live in a namespace; of other kinds nobody knows here.
    """
    group, _, stated, _ = manifest_key(manifest)
    metadata = manifest["metadata"]
    if stated or _FLUX_GROUP.fullmatch(group) is None or not isinstance(metadata, Mapping):
        return manifest
    return {**manifest, "metadata": {**metadata, "namespace": namespace}}


def labelled(manifest: JsonObject, labels: Mapping[str, str]) -> JsonObject:
    """A checked manifest with labels added to its own."""
    return _with_metadata(manifest, "labels", labels)


def annotated(manifest: JsonObject, annotations: Mapping[str, str]) -> JsonObject:
    """A checked manifest with annotations added to its own."""
    return _with_metadata(manifest, "annotations", annotations)


def manifest_key(manifest: JsonObject) -> ManifestKey:
    """The identity of a checked manifest."""
    metadata = manifest["metadata"]
    assert isinstance(metadata, Mapping)  # noqa: S101 - checked_manifest said so; narrows the type
    group, slash, _ = str(manifest["apiVersion"]).partition("/")
    return (
        group if slash else "",
        str(manifest["kind"]),
        str(metadata.get("namespace", "")),
        str(metadata["name"]),
    )


def manifests_yaml(manifests: Sequence[JsonObject]) -> bytes:
    """The manifests as YAML documents, each with ``---`` before it; UTF-8, LF, block style, no aliases.

    Keys come in Kubernetes' usual order and sorted otherwise, because a JSON object has no order: a database that
    stores its keys in another one must not change a byte here. Every string that any YAML reader, old or new, might
    take for a number, a boolean or a date is quoted; PyYAML alone would leave ``1e5``, ``08`` and ``y`` bare,
    which the YAML readers of Kubernetes turn into numbers and booleans.
    """
    text = "".join(
        yaml.dump(
            _ordered_manifest(manifest),
            Dumper=_ManifestDumper,
            explicit_start=True,
            sort_keys=False,
            default_flow_style=False,
            allow_unicode=True,
            width=2**31 - 1,
            line_break="\n",
        )
        for manifest in manifests
    )
    return text.encode()


class _ManifestDumper(yaml.CSafeDumper):
    """PyYAML's safe dumper without aliases and with careful quotes."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_text(dumper: _ManifestDumper, text: str) -> yaml.ScalarNode:
    style = None
    if _UNPRINTABLE.search(text):
        style = '"'
    elif "\n" in text:
        style = '"' if text[0].isspace() else "|"
    elif _UNMISTAKABLE.match(text) is None or text.lower() in _OTHER_MEANING:
        style = "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_ManifestDumper.add_representer(str, _represent_text)


def _with_metadata(manifest: JsonObject, field: str, added: Mapping[str, str]) -> JsonObject:
    metadata = manifest["metadata"]
    assert isinstance(metadata, Mapping)  # noqa: S101 - checked_manifest said so; narrows the type
    own = metadata.get(field)
    return {**manifest, "metadata": {**metadata, field: {**(own if isinstance(own, Mapping) else {}), **added}}}


def _ordered_manifest(manifest: JsonObject) -> dict[str, object]:
    ordered: dict[str, object] = {}
    for key in _sorted_keys(manifest, _FIRST_KEYS):
        value = manifest[key]
        if key == "metadata" and isinstance(value, Mapping):
            ordered[key] = {name: _ordered(value[name]) for name in _sorted_keys(value, _FIRST_METADATA_KEYS)}
        else:
            ordered[key] = _ordered(value)
    return ordered


def _ordered(value: Json) -> object:
    if isinstance(value, Mapping):
        return {key: _ordered(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [_ordered(element) for element in value]
    return value


def _sorted_keys(value: JsonObject, first: Mapping[str, int]) -> list[str]:
    return sorted(value, key=lambda key: (first.get(key, len(first)), key))


def _check_text(value: Json, *, where: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise TemplateError("has to be a text that is not empty", where=where)


def _check_deliverable(value: Json, *, where: str, pointer: str) -> None:
    """Refuses here what would break on the edge: there, one such text fails a whole folder."""
    found = find_undeliverable(value, pointer=pointer)
    if found is not None:
        raise TemplateError(found.reason, where=f"{where}#{found.pointer}")
