"""Names that Kubernetes gives to namespaces, Secrets and the keys inside; checked before they become a path.

Every check takes the name as it came from outside and returns it unchanged, so that it can stand where the
name is used. Rules: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
"""

import re
from dataclasses import dataclass
from typing import NewType

from edgewright.errors import Invalid

KUBERNETES_NAMESPACE = "kube-system"
"""Its UID tells one Kubernetes cluster from another; sealed-secrets keeps its keys there."""
EDGEWRIGHT_NAMESPACE = "edgewright"
"""Where Edgewright's own objects are on an edge, unless the cluster names another namespace."""
KUBERNETES_PREFIX = "kube-"
"""Kubernetes keeps names that begin so for its own namespaces."""
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
    """Returns a name whose file Flux takes for a Secret; one that is there already can be deleted all the same.

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
        """Itself, as of a ``SecretKey``."""
        return self

    def at(self, key: str) -> "SecretKey":
        """One of its values."""
        return SecretKey(self.namespace, self.name, key)

    @property
    def path(self) -> str:
        """The path of its file in the driving repository.

        Raises:
            Invalid: either name is one that Kubernetes would refuse; so the path cannot leave ``edo/secrets``.
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
"""What a change is about: one value, or what a Secret is besides its values."""
OtherText = NewType("OtherText", str)
"""What stands where a place is meant, and names none: it is kept as it is."""
StoredPlace = SecretPlace | OtherText
"""What a row, a commit or an edge says of a place."""


def secret_place(text: str) -> StoredPlace:
    """Reads what ``str`` has made of a place; the result has the same text again. The names are not checked."""
    match text.split("/", 2):
        case [namespace, name, key]:
            return SecretKey(namespace, name, key)
        case [namespace, name]:
            return SecretReference(namespace, name)
        case _:
            return OtherText(text)
