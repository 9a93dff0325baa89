"""A SealedSecret file of the driving repository: pure functions from bytes to bytes.

Layout, annotations and limits are in docs/crypto.md, "The SealedSecret file". Same input, same bytes.
"""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from edgewright.domain.kubernetes_names import SecretReference, check_secret_key
from edgewright.domain.secret_template import (
    OPAQUE,
    SecretTemplate,
    TemplateChange,
    changed_template,
    check_required_keys,
)
from edgewright.errors import Conflict, Stalled
from edgewright.sealing.envelope import Scope
from edgewright.sealing.sealed_value import (
    SealedValue,
    check_secret_size,
    read_records,
    secret_too_large,
    write_records,
)
from edgewright.sealing.yaml_document import YamlMalformed, dump_document, load_document

API_VERSION = "bitnami.com/v1alpha1"
KIND = "SealedSecret"
SEALED_KEYS_ANNOTATION = "edgewright.dev/sealed-keys"
SCOPE_ANNOTATIONS = {
    Scope.CLUSTER_WIDE: "sealedsecrets.bitnami.com/cluster-wide",
    Scope.NAMESPACE_WIDE: "sealedsecrets.bitnami.com/namespace-wide",
}
"""In the order in which the controller looks for them."""
MANAGED_ANNOTATION = "sealedsecrets.bitnami.com/managed"
"""In the template: a Secret that bears it is taken over by the SealedSecret of its name, and made anew when it goes.

Without it, one that is set again before Kubernetes has collected the old Secret is refused for good: ``unseal`` and
``watchSecrets`` of https://github.com/bitnami-labs/sealed-secrets/blob/v0.27.1/pkg/controller/controller.go
"""

ANNOTATIONS_LIMIT = 256 * 1024
"""Bytes of all annotations of one object, names and values (Kubernetes)."""
DOCUMENT_LIMIT = 1536 * 1024 - 64 * 1024
"""Bytes of one file: what etcd takes, less room for what the cluster adds to the object."""

SMALL_DOCUMENT = 256 * 1024
"""Bytes of the largest file of which many are remembered as they read."""
REMEMBERED_DOCUMENTS = 16
REMEMBERED_LARGE_DOCUMENTS = 2

Document = dict[str, Any]


def put_values(
    document: bytes | None,
    secret: SecretReference,
    values: Mapping[str, SealedValue],
    scope: Scope = Scope.STRICT,
) -> bytes:
    """Adds or replaces keys; the other keys and whatever a person added to the file stay.

    Args:
        document: the file as it is, None if there is none.
        values: key -> its new value, sealed for this Secret and scope.

    Returns:
        The new file; the same bytes as ``document`` if we wrote it and nothing changes.

    Raises:
        Invalid: a namespace, name or key that Kubernetes would refuse.
        Conflict: other keys of the file have another scope (code ``secret_scope_differs``).
        TooLarge: the Secret would exceed a limit (code ``secret_too_large``).
        Stalled: the file is broken or is another object (code ``sealed_secret_malformed``).
    """
    path = secret.path
    content = _new_document(secret) if document is None else _load(document, path)
    _put(content, secret, values, scope)
    return _dump(content, path)


def change_values(
    document: bytes | None,
    secret: SecretReference,
    changes: Mapping[str, SealedValue | None],
    template: TemplateChange | None = None,
) -> bytes | None:
    """Adds, replaces and removes keys of a file, in the scope ``strict``.

    Args:
        document: the file as it is, None if there is none.
        changes: key -> its new value, None: the key goes.
        template: what changes of the Secret besides its values.

    Returns:
        The new file; None if there is none, or nothing is left in it.

    Raises:
        Invalid, Conflict, TooLarge, Stalled: as ``put_values``.
        Conflict: the Secret has another type (code ``secret_type_immutable``).
        Invalid: its type needs a key that would not be there (code ``secret_keys_missing``), or there would
            be too many labels or annotations.
    """
    values = {key: value for key, value in changes.items() if value is not None}
    if document is None and not values:
        return None
    path = secret.path
    content = _new_document(secret) if document is None else _load(document, path)
    wanted = changed_template(_template(content), template or TemplateChange(), is_new=document is None)
    if values:
        _put(content, secret, values, Scope.STRICT)
    gone = _remove(content, changes.keys() - values.keys())
    keys = _values(content).keys()
    if gone and not keys:
        return None
    check_required_keys(wanted.type, keys, where=path)
    if template:
        _set_template(content, wanted)
    elif not values and not gone:
        return document
    return _dump(content, path) if values or template else dump_document(content)


def remove_keys(document: bytes, keys: Iterable[str], *, where: str | None = None) -> bytes | None:
    """Takes keys out of a file.

    Args:
        keys: those that are not in the file are passed over.
        where: the file's path, for the error.

    Returns:
        The new file; ``document`` itself if no key was in it; None when the last key goes, and so the file.

    Raises:
        Stalled: the file is broken or is another object (code ``sealed_secret_malformed``).
    """
    content = _load(document, where)
    if not _remove(content, keys):
        return document
    return dump_document(content) if _values(content) else None


def read_values(document: bytes, *, where: str | None = None) -> Mapping[str, SealedValue]:
    """The keys of a file, in alphabetical order. Whether the ciphertexts are envelopes is not checked.

    Raises:
        Stalled: the file is broken or is another object (code ``sealed_secret_malformed``).
    """
    return _values(_load(document, where))


@dataclass(frozen=True, slots=True)
class SealedFile:
    """What a file holds. ``values``: by key, in alphabetical order. ``template``: the Secret besides its values."""

    values: Mapping[str, SealedValue]
    template: SecretTemplate


def read_sealed(document: bytes, *, where: str | None = None) -> SealedFile:
    """``read_values`` and ``read_template`` in one go: most of either is reading YAML.

    Raises:
        Stalled: the file is broken or is another object (code ``sealed_secret_malformed``).
    """
    content = _load(document, where)
    return SealedFile(_values(content), _template(content))


def read_scope(document: bytes, *, where: str | None = None) -> Scope:
    """The scope that the controller takes a file's values to have.

    Raises:
        Stalled: the file is broken or is another object (code ``sealed_secret_malformed``).
    """
    return _scope(_load(document, where))


def read_template(document: bytes, *, where: str | None = None) -> SecretTemplate:
    """What the Secret of a file is besides its values.

    Raises:
        Stalled: the file is broken or is another object (code ``sealed_secret_malformed``).
    """
    return _template(_load(document, where))


def _new_document(secret: SecretReference) -> Document:
    named = {"name": secret.name, "namespace": secret.namespace}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": dict(named),
        "spec": {"template": {"metadata": dict(named), "type": OPAQUE}},
    }


@lru_cache(REMEMBERED_DOCUMENTS)
def _parsed(document: bytes) -> Document:
    """A write reads the same file when it checks, tries and commits."""
    return load_document(document)


@lru_cache(REMEMBERED_LARGE_DOCUMENTS)
def _parsed_large(document: bytes) -> Document:
    return load_document(document)


def _load(document: bytes, where: str | None) -> Document:
    """Parses a file and makes sure of every part that the functions here go into."""
    try:
        content = deepcopy((_parsed if len(document) <= SMALL_DOCUMENT else _parsed_large)(document))
    except YamlMalformed as error:
        raise _malformed(str(error), where) from None
    if content.get("apiVersion") != API_VERSION or content.get("kind") != KIND:
        raise _malformed(f"it is not a {KIND} of {API_VERSION}", where)
    metadata = _mapping(content, "metadata", where)
    if not isinstance(metadata.get("name"), str):
        raise _malformed("it has no name", where)
    _texts(metadata, "annotations", where)
    spec = _mapping(content, "spec", where)
    _texts(spec, "encryptedData", where)
    template = _mapping(spec, "template", where)
    template_metadata = _mapping(template, "metadata", where)
    _texts(template_metadata, "annotations", where)
    _texts(template_metadata, "labels", where)
    return content


def _mapping(parent: Document, key: str, where: str | None) -> Document:
    """The mapping at ``key``; an absent or null one counts as empty and is not added to ``parent``."""
    found = parent.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise _malformed(f"'{key}' is not a mapping", where)
    return found


def _texts(parent: Document, key: str, where: str | None) -> dict[str, str]:
    found = _mapping(parent, key, where)
    if not all(isinstance(value, str) for value in found.values()):
        raise _malformed(f"'{key}' has a value that is not text", where)
    return found


def _malformed(reason: str, where: str | None) -> Stalled:
    return Stalled(
        f"This file of the driving repository cannot be used: {reason}.",
        code="sealed_secret_malformed",
        hint="No push reaches it: restore the repository from a backup, or repair the file on the centre's machine, "
        "as docs/crypto.md says.",
        where=where,
    )


def _check_identity(content: Document, secret: SecretReference) -> None:
    """An object without a namespace gets the one of its path; any other difference is a wrong file."""
    metadata = content["metadata"]
    if (metadata["name"], metadata.get("namespace", secret.namespace)) != (secret.name, secret.namespace):
        raise _malformed("its namespace and name are not those of its path", secret.path)
    metadata["namespace"] = secret.namespace


def _put(content: Document, secret: SecretReference, values: Mapping[str, SealedValue], scope: Scope) -> None:
    path = secret.path
    _check_identity(content, secret)
    sealed = _values(content)
    if _scope(content) is not scope and sealed.keys() - values.keys():
        raise Conflict(
            f"Other keys of this Secret are sealed in the scope {_scope(content)}, not {scope}.",
            code="secret_scope_differs",
            hint="Put all keys of the Secret in one request, or use another Secret.",
            where=path,
        )
    sealed.update({check_secret_key(key): value for key, value in values.items()})
    check_secret_size(sealed)
    _set_scope(content, scope)
    _set_values(content, sealed)


def _remove(content: Document, keys: Iterable[str]) -> bool:
    """Takes keys out; returns whether one was there."""
    sealed = _values(content)
    remaining = {key: sealed[key] for key in sealed.keys() - set(keys)}
    if len(remaining) == len(sealed):
        return False
    _set_values(content, remaining)
    return True


def _template(content: Document) -> SecretTemplate:
    template = (content.get("spec") or {}).get("template") or {}
    metadata = template.get("metadata") or {}
    secret_type = template.get("type")
    annotations = metadata.get("annotations") or {}
    return SecretTemplate(
        secret_type if isinstance(secret_type, str) and secret_type else OPAQUE,
        metadata.get("labels") or {},
        {name: value for name, value in annotations.items() if name != MANAGED_ANNOTATION},
    )


def _set_template(content: Document, wanted: SecretTemplate) -> None:
    template = _child(_child(content, "spec"), "template")
    template["type"] = wanted.type
    metadata = _child(template, "metadata")
    for member, texts in (("labels", wanted.labels), ("annotations", wanted.annotations)):
        metadata.pop(member, None)
        if texts:
            metadata[member] = dict(texts)
    _set_managed(content)


def _set_managed(content: Document) -> None:
    metadata = _child(_child(_child(content, "spec"), "template"), "metadata")
    _set_annotations(metadata, {MANAGED_ANNOTATION: "true", **(metadata.get("annotations") or {})})


def _scope(content: Document) -> Scope:
    annotations = content["metadata"].get("annotations") or {}
    for scope, annotation in SCOPE_ANNOTATIONS.items():
        if annotations.get(annotation) == "true":
            return scope
    return Scope.STRICT


def _set_scope(content: Document, scope: Scope) -> None:
    """On the object, by which the controller opens, and in its template, by which it re-encrypts."""
    spec = _child(content, "spec")
    for metadata in (content["metadata"], _child(_child(spec, "template"), "metadata")):
        annotations = dict(metadata.get("annotations") or {})
        for other in SCOPE_ANNOTATIONS.values():
            annotations.pop(other, None)
        if scope is not Scope.STRICT:
            annotations[SCOPE_ANNOTATIONS[scope]] = "true"
        _set_annotations(metadata, annotations)


def _set_annotations(metadata: Document, annotations: dict[str, str]) -> None:
    metadata.pop("annotations", None)
    if annotations:
        metadata["annotations"] = annotations


def _child(parent: Document, key: str) -> Document:
    child: Document = parent.get(key) or {}
    parent[key] = child
    return child


def _values(content: Document) -> dict[str, SealedValue]:
    annotations = content["metadata"].get("annotations") or {}
    records = read_records(annotations.get(SEALED_KEYS_ANNOTATION))
    encrypted = (content.get("spec") or {}).get("encryptedData") or {}
    unknown = (None, None)
    return {key: SealedValue(encrypted[key], *records.get(key, unknown)) for key in sorted(encrypted)}


def _set_values(content: Document, values: Mapping[str, SealedValue]) -> None:
    _child(content, "spec")["encryptedData"] = {key: value.ciphertext for key, value in values.items()}
    annotations = dict(content["metadata"].get("annotations") or {})
    annotations.pop(SEALED_KEYS_ANNOTATION, None)
    records = write_records(values)
    if records is not None:
        annotations[SEALED_KEYS_ANNOTATION] = records
    _set_annotations(content["metadata"], annotations)
    _set_managed(content)


def _dump(content: Document, path: str) -> bytes:
    annotations = content["metadata"].get("annotations") or {}
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > ANNOTATIONS_LIMIT:
        raise secret_too_large(
            f"Its keys would need {size} bytes of annotations; the limit is {ANNOTATIONS_LIMIT}.", path
        )
    document = dump_document(content)
    if len(document) > DOCUMENT_LIMIT:
        raise secret_too_large(f"Its file would have {len(document)} bytes; the limit is {DOCUMENT_LIMIT}.", path)
    return document
