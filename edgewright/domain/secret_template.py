"""Type, labels and annotations of a Secret. None of them is secret.

A SealedSecret has them in its ``spec.template``; the edge's controller copies them to the Secret that it makes.
Rules of Kubernetes: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/ and
https://kubernetes.io/docs/concepts/configuration/secret/#secret-types
"""

import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from edgewright.domain.kubernetes_names import SecretReference
from edgewright.errors import Conflict, Invalid, NotFound

OPAQUE = "Opaque"
TLS = "kubernetes.io/tls"
REGISTRY = "kubernetes.io/dockerconfigjson"
REGISTRY_KEY = ".dockerconfigjson"
TLS_CERTIFICATE_KEY, TLS_PRIVATE_KEY_KEY = "tls.crt", "tls.key"

REQUIRED_KEYS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    TLS: ((TLS_CERTIFICATE_KEY,), (TLS_PRIVATE_KEY_KEY,)),
    REGISTRY: ((REGISTRY_KEY,),),
    "kubernetes.io/dockercfg": ((".dockercfg",),),
    "kubernetes.io/basic-auth": (("username", "password"),),
    "kubernetes.io/ssh-auth": (("ssh-privatekey",),),
}
"""Type -> keys without which an API server refuses the Secret; at least one of each group is required."""
JSON_KEYS: Mapping[str, str] = {REGISTRY: REGISTRY_KEY, "kubernetes.io/dockercfg": ".dockercfg"}
"""Type -> the key whose value must be a JSON object, or an API server refuses it."""
REFUSED_TYPES = frozenset({"kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"})
"""Types for credentials of the Kubernetes cluster itself, which its own controllers create and use."""

RESERVED_DOMAINS = ("edgewright.dev", "fluxcd.io", "helm.sh", "sealedsecrets.bitnami.com")
"""Programs recognise their own objects by names below these; sealed-secrets finds its private keys that way."""
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation in which kubectl stores a whole object, with its values in clear."""

MOST_LABELS = MOST_ANNOTATIONS = 64
ANNOTATIONS_BYTES = 64 * 1024
"""Most bytes of a Secret's annotations, names and values together; Kubernetes allows four times as many."""
TYPE_LIMIT = 253
PREFIX_LIMIT = 253
NAME_LIMIT = 63

_DNS_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_PREFIX = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*")
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_TYPE = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?")
_NAME_HINT = (
    f"letters, digits, '-', '_' and '.', a letter or digit at both ends, at most {NAME_LIMIT}; "
    "a DNS name and '/' may be in front"
)


@dataclass(frozen=True)
class SecretTemplate:
    """Type, labels and annotations of a Secret."""

    type: str = OPAQUE
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TemplateChange:
    """A change to type, labels and annotations. What it does not name stays.

    Args:
        type: None: keep it; a new Secret becomes ``Opaque``.
        labels: name -> new value; None removes the label.
        annotations: name -> new value; None removes the annotation.
    """

    type: str | None = None
    labels: Mapping[str, str | None] = field(default_factory=dict)
    annotations: Mapping[str, str | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.type is not None or bool(self.labels) or bool(self.annotations)

    def then(self, later: "TemplateChange | None") -> "TemplateChange":
        """Combines this change with a later one to the same Secret.

        Raises:
            Conflict: code ``secret_type_immutable``: they name two types.
        """
        if later is None:
            return self
        if self.type is not None and later.type not in {None, self.type}:
            raise type_is_immutable(self.type)
        return TemplateChange(
            self.type if later.type is None else later.type,
            {**self.labels, **later.labels},
            {**self.annotations, **later.annotations},
        )


def check_template_change(change: TemplateChange) -> TemplateChange:
    """Checks a change that came from outside, and returns it.

    Raises:
        Invalid: codes ``secret_type_invalid``, ``secret_label_invalid``, ``secret_annotation_invalid``;
            ``secret_metadata_reserved``: a name belongs to Edgewright, Flux, Helm or sealed-secrets.
    """
    if change.type is not None:
        _check_type(change.type)
    for name, value in change.labels.items():
        _check_name(name, "label")
        if value is not None and (len(value) > NAME_LIMIT or (value and not _NAME.fullmatch(value))):
            raise Invalid(
                f"The value of the label {name} is not one that Kubernetes takes.",
                code="secret_label_invalid",
                hint=f"Letters, digits, '-', '_' and '.', a letter or digit at both ends, at most {NAME_LIMIT}, or "
                "nothing. What is longer is an annotation.",
                where="labels",
            )
    for name, value in change.annotations.items():
        _check_name(name, "annotation")
        if value is not None and not _is_text(value):
            raise Invalid(
                f"The value of the annotation {name} has control characters.",
                code="secret_annotation_invalid",
                where="annotations",
            )
    _check_bounds(change.labels, change.annotations)
    return change


def changed_template(present: SecretTemplate, change: TemplateChange, *, is_new: bool) -> SecretTemplate:
    """Returns the result of a change.

    Raises:
        Conflict: code ``secret_type_immutable``.
        Invalid: codes ``secret_label_invalid``, ``secret_annotation_invalid``: there would be too many.
    """
    if not is_new and change.type not in {None, present.type}:
        raise type_is_immutable(present.type)
    labels = _merged(present.labels, change.labels)
    annotations = _merged(present.annotations, change.annotations)
    _check_bounds(labels if change.labels else {}, annotations if change.annotations else {})
    return SecretTemplate(present.type if change.type is None else change.type, labels, annotations)


def check_required_keys(secret_type: str, keys: Collection[str], *, where: str | None = None) -> None:
    """Raises ``Invalid`` (``secret_keys_missing``) if a Secret of this type needs other keys than these."""
    for group in REQUIRED_KEYS.get(secret_type, ()):
        if not set(group) & set(keys):
            raise Invalid(
                f"A Secret of the type {secret_type} needs the key {' or '.join(group)}: an edge would refuse it.",
                code="secret_keys_missing",
                hint="Set all keys that its type needs in one request; to delete the Secret, delete all in one.",
                where=where,
            )


def type_is_immutable(present: str) -> Conflict:
    """Returns the refusal of a different type."""
    return Conflict(
        f"The Secret has the type {present}, and Kubernetes lets nobody change the type of a Secret that is there.",
        code="secret_type_immutable",
        hint="Delete the Secret, wait until the cluster is synced, then set it with the new type.",
        where="type",
    )


def secret_is_gone(secret: SecretReference) -> NotFound:
    """Returns the refusal of labels and annotations for a Secret that is not in the repository."""
    return NotFound(
        f"There is no Secret {secret} that labels or annotations could be given to.",
        code="secret_unknown",
        hint="Set one of its values first; you can set labels and annotations in the same request.",
    )


def _check_type(secret_type: str) -> None:
    if len(secret_type) > TYPE_LIMIT or not _TYPE.fullmatch(secret_type):
        raise Invalid(
            "This is not a type of a Secret.",
            code="secret_type_invalid",
            hint=f"For example {TLS}: letters, digits, '-', '_', '.' and '/', at most {TYPE_LIMIT}.",
            where="type",
        )
    if secret_type in REFUSED_TYPES:
        raise Invalid(
            f"Secrets of the type {secret_type} are made by the Kubernetes cluster itself.",
            code="secret_type_invalid",
            hint=f"Leave the type out, which makes the Secret {OPAQUE}, or use one for workloads, such as {TLS}.",
            where="type",
        )
    _refuse_reserved(secret_type, "type")


def _check_name(name: str, what: str) -> None:
    prefix, slash, rest = name.rpartition("/")
    is_prefix = not slash or (len(prefix) <= PREFIX_LIMIT and _PREFIX.fullmatch(prefix))
    if not is_prefix or len(rest) > NAME_LIMIT or not _NAME.fullmatch(rest):
        raise Invalid(
            f"This is not the name of {'an' if what == 'annotation' else 'a'} {what}.",
            code=f"secret_{what}_invalid",
            hint=f"{_NAME_HINT[0].upper()}{_NAME_HINT[1:]}.",
            where=f"{what}s",
        )
    _refuse_reserved(name, f"{what}s")


def _refuse_reserved(name: str, where: str) -> None:
    prefix, slash, _ = name.partition("/")
    if slash and any(f".{prefix.lower()}".endswith(f".{domain}") for domain in RESERVED_DOMAINS):
        raise Invalid(
            f"{name} cannot be given to a Secret: {prefix} belongs to Edgewright, Flux, Helm or sealed-secrets.",
            code="secret_metadata_reserved",
            hint="Use a name below a domain of your own.",
            where=where,
        )
    if name == LAST_APPLIED:
        raise Invalid(
            f"The annotation {name} holds the values of a Secret in clear, and would be committed so.",
            code="secret_metadata_reserved",
            hint="Leave it out.",
            where=where,
        )


def _check_bounds(labels: Mapping[str, str | None], annotations: Mapping[str, str | None]) -> None:
    if len(labels) > MOST_LABELS:
        raise Invalid(
            f"A Secret may have {MOST_LABELS} labels, these are {len(labels)}.",
            code="secret_label_invalid",
            where="labels",
        )
    size = sum(len(name.encode()) + len((value or "").encode()) for name, value in annotations.items())
    if len(annotations) > MOST_ANNOTATIONS or size > ANNOTATIONS_BYTES:
        raise Invalid(
            f"A Secret may have {MOST_ANNOTATIONS} annotations with {ANNOTATIONS_BYTES} bytes together, these are "
            f"{len(annotations)} with {size}.",
            code="secret_annotation_invalid",
            where="annotations",
        )


def _merged(present: Mapping[str, str], change: Mapping[str, str | None]) -> dict[str, str]:
    merged = {**present, **change}
    return {name: value for name, value in merged.items() if value is not None}


def _is_text(value: str) -> bool:
    return not any(unicodedata.category(letter) in {"Cc", "Cs"} and letter not in "\n\t" for letter in value)
