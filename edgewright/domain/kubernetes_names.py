"""Names of Kubernetes namespaces, Secrets and their keys, which are checked before they become a path.

Every check returns the name unchanged, so that it can wrap the name where it is used.
Rules: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
"""

import re
from dataclasses import dataclass
from typing import NewType

from edgewright.errors import Invalid

KUBERNETES_NAMESPACE = "kube-system"
"""Its UID identifies a Kubernetes cluster; sealed-secrets keeps its keys there."""
EDGEWRIGHT_NAMESPACE = "edgewright"
"""The default namespace for Edgewright's own objects on an edge."""
KUBERNETES_PREFIX = "kube-"
"""Kubernetes reserves names with this prefix for its own namespaces."""
NAMESPACE_LIMIT = 63
SECRET_NAME_LIMIT = 250
"""Kubernetes allows 253; but the Secret's file is NAME.yaml, and a file name has at most 255 bytes."""
SECRET_KEY_LIMIT = 253

_KUSTOMIZATION = "kustomization"

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(_LABEL)
_DNS_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_SECRET_KEY = re.compile(r"[-._a-zA-Z0-9]+")


def check_namespace(namespace: str) -> str:
    """Returns the name of a namespace, a DNS label.

    Raises:
        Invalid: code ``namespace_invalid``.
    """
    if len(namespace) > NAMESPACE_LIMIT or not _DNS_LABEL.fullmatch(namespace):
        raise Invalid(
            "This is not a name for a namespace.",
            code="namespace_invalid",
            hint="Use lower-case letters, digits and '-', a letter or digit at both ends, "
            f"at most {NAMESPACE_LIMIT} characters.",
            where="namespace",
        )
    return namespace


def check_cluster_namespace(namespace: str) -> None:
    """Refuses the namespaces of Kubernetes as that of a cluster. A cluster that has one already keeps it.

    Raises:
        Invalid: code ``namespace_reserved``.
    """
    if namespace.startswith(KUBERNETES_PREFIX):
        raise Invalid(
            f"A cluster cannot use the namespace {namespace}: names that begin with {KUBERNETES_PREFIX} belong to "
            "Kubernetes.",
            code="namespace_reserved",
            hint=f"Leave the namespace out to use {EDGEWRIGHT_NAMESPACE}, or choose a name of your own.",
            where="/namespace",
        )


def check_secret_name(name: str) -> str:
    """Returns the name of a Secret, a DNS subdomain that fits into a file name.

    Raises:
        Invalid: code ``secret_name_invalid``.
    """
    if len(name) > SECRET_NAME_LIMIT or not _DNS_SUBDOMAIN.fullmatch(name):
        raise Invalid(
            "This is not a name for a Secret.",
            code="secret_name_invalid",
            hint="Use lower-case letters, digits, '-' and '.', a letter or digit at both ends of each part, "
            f"at most {SECRET_NAME_LIMIT} characters.",
            where="name",
        )
    return name


def check_stored_name(name: str) -> str:
    """Returns the name of a Secret whose file Flux accepts; existing Secrets with other names can still be deleted.

    Raises:
        Invalid: code ``secret_name_invalid``.
    """
    if name == _KUSTOMIZATION:
        raise Invalid(
            "This name would make a file that Flux takes for instructions.",
            code="secret_name_invalid",
            hint=f"Use another name: with {name}.yaml among them, no secret of its namespace would reach the edge.",
            where="name",
        )
    return name


def check_secret_key(key: str) -> str:
    """Returns the key of one value inside a Secret.

    Raises:
        Invalid: code ``secret_key_invalid``.
    """
    if len(key) > SECRET_KEY_LIMIT or not _SECRET_KEY.fullmatch(key) or key == "." or key.startswith(".."):
        raise Invalid(
            "This is not a key of a Secret.",
            code="secret_key_invalid",
            hint=f"Use at most {SECRET_KEY_LIMIT} letters, digits, '-', '_' and '.'. "
            "The key must not be '.' or begin with '..'.",
            where="key",
        )
    return key


@dataclass(frozen=True, slots=True, order=True)
class SecretReference:
    """A Secret as a whole. As text: ``namespace/name``."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def secret(self) -> "SecretReference":
        """Itself; a ``SecretKey`` has the same property."""
        return self

    def at(self, key: str) -> "SecretKey":
        """Returns the key of one of its values."""
        return SecretKey(self.namespace, self.name, key)

    @property
    def path(self) -> str:
        """The path of its file in the driving repository.

        Raises:
            Invalid: Kubernetes would refuse one of the names. This also keeps the path inside ``edo/secrets``.
        """
        return f"edo/secrets/{check_namespace(self.namespace)}/{check_secret_name(self.name)}.yaml"

    def check(self) -> "SecretReference":
        """Returns itself, before it becomes a path.

        Raises:
            Invalid: code ``namespace_invalid`` or ``secret_name_invalid``.
        """
        check_namespace(self.namespace)
        check_secret_name(self.name)
        return self


@dataclass(frozen=True, slots=True, order=True)
class SecretKey:
    """One value of a Secret. As text: ``namespace/name/key``."""

    namespace: str
    name: str
    key: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}/{self.key}"

    @property
    def secret(self) -> SecretReference:
        """The Secret that it is in."""
        return SecretReference(self.namespace, self.name)

    def check(self) -> "SecretKey":
        """Returns itself, before it becomes a path.

        Raises:
            Invalid: code ``namespace_invalid``, ``secret_name_invalid`` or ``secret_key_invalid``.
        """
        self.secret.check()
        check_secret_key(self.key)
        return self


SecretPlace = SecretKey | SecretReference
"""What a change is about: one value, or a Secret's type, labels and annotations."""
OtherText = NewType("OtherText", str)
"""Text in place of a place that cannot be parsed; it is kept unchanged."""
StoredPlace = SecretPlace | OtherText
"""A place as a row, a commit or an edge names it."""


def secret_place(text: str) -> StoredPlace:
    """Parses the text of a place; the result has the same text. Does not check the names."""
    match text.split("/", 2):
        case [namespace, name, key]:
            return SecretKey(namespace, name, key)
        case [namespace, name]:
            return SecretReference(namespace, name)
        case _:
            return OtherText(text)
