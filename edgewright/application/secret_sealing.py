"""Seals values of Secrets, and tries each Secret as its file would be written."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NoReturn

from edgewright.application.secret_namespaces import check_namespaces
from edgewright.application.unapplied_deletions import UnappliedDeletions
from edgewright.domain.kubernetes_names import SecretKey, SecretPlace, SecretReference
from edgewright.domain.secret_template import JSON_KEYS, SecretTemplate, TemplateChange, secret_is_gone
from edgewright.errors import Invalid, NotFound, Waiting
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.git_server import CommitId, GitServer
from edgewright.sealing import (
    Plaintext,
    Scope,
    SealedFile,
    SealedValue,
    SealingCertificate,
    blank_envelope,
    change_values,
    parse_certificate,
    read_sealed,
    seal,
)

TemplateChanges = Mapping[SecretReference, TemplateChange]
"""What changes of Secrets besides values."""
SealTimer = Callable[[], AbstractContextManager[object]]
"""Makes a context that measures how long one value takes to be sealed."""


@dataclass(frozen=True)
class KeyChange:
    """One key of one Secret: its new value, or None to delete it. ``create_namespace``: the edge gets that, too.

    The Secret itself in place of a key: no key changes, only what the Secret is besides them.
    """

    place: SecretPlace
    value: Plaintext | None
    create_namespace: bool = False


def sealing_certificate(row: ClusterRow) -> SealingCertificate:
    """The certificate in use.

    Raises:
        NotFound: ``no_edge_status``.
        Waiting: ``no_certificate``: there is none, or it has expired.
    """
    if row.edge_status is None:
        raise NotFound(
            "The edge has not reported its status yet.",
            code="no_edge_status",
            hint="Bootstrap the cluster first; its sealing certificate comes with the status.",
        )
    hint = (
        "Wait for the edge's sealed-secrets controller, or let an admin write the certificate; "
        f"why one was refused: edgewright cluster timeline {row.spec.name}."
    )
    if row.certificate_pem is None:
        raise Waiting("There is no sealing certificate yet.", code="no_certificate", retry_after=10.0, hint=hint)
    try:
        return parse_certificate(row.certificate_pem, now=datetime.now(UTC))
    except Invalid as error:
        raise Waiting(
            f"The sealing certificate in use cannot be used any more. {error.detail}",
            code="no_certificate",
            retry_after=60.0,
            hint=hint,
        ) from None


def sealed_changes(
    git: GitServer,
    row: ClusterRow,
    changes: Sequence[KeyChange],
    *,
    head: CommitId | None,
    templates: TemplateChanges,
    certificate: SealingCertificate | None,
    given_up: Collection[SecretPlace],
    timer: SealTimer,
) -> list[SealedValue | None]:
    """The changes, sealed, in the order given; each Secret is tried as its file would be written. Blocks.

    It is tried before anything is sealed: a thousand values that no file has room for cost little.

    Args:
        head: what it is tried on.
        certificate: None: no change has a value.
        given_up: what may be deleted although it is not there.
    """
    valued = {change.place.namespace for change in changes if change.value is not None}
    check_namespaces(git, row.uuid, head, valued)
    unapplied = UnappliedDeletions(git, row.uuid, row.spec.name, head, row.observed_revision)
    by_secret: dict[SecretReference, dict[SecretKey, tuple[KeyChange, SealedValue | None]]] = {}
    labelled = {change.place for change in changes if isinstance(change.place, SecretReference)}
    for change in changes:
        wanted = by_secret.setdefault(change.place.secret, {})
        if isinstance(change.place, SecretKey):
            wanted[change.place] = (change, _blank(change, certificate))
    for secret, wanted in by_secret.items():
        path, template = secret.path, templates.get(secret)
        document = git.read(row.uuid, path, at=head) if head else None
        there = SealedFile({}, SecretTemplate()) if document is None else read_sealed(document, where=path)
        if secret in labelled and document is None:
            raise secret_is_gone(secret)
        for place in (
            place for place, (_, value) in wanted.items() if value is None and place.key not in there.values
        ):
            if place not in given_up:
                raise NotFound(
                    f"The Secret {secret} has no key {place.key}.",
                    code="secret_unknown",
                    hint="`edgewright secret list CLUSTER` shows the keys.",
                )
        change_values(document, secret, {place.key: value for place, (_, value) in wanted.items()}, template)
        secret_type = template.type if template and template.type else there.template.type
        if document is None:
            unapplied.refuse_other_type(secret, secret_type)
        for place, (change, _) in wanted.items():
            if change.value is not None:
                _check_form(secret_type, place.key, change.value)
    return [_seal(change, certificate, timer) for change in changes]


def _blank(change: KeyChange, certificate: SealingCertificate | None) -> SealedValue | None:
    """As large as what is sealed later."""
    if change.value is None or certificate is None:
        return None
    change.place.secret.check()
    return SealedValue(blank_envelope(len(change.value), certificate), certificate.fingerprint, datetime.now(UTC))


def _seal(change: KeyChange, certificate: SealingCertificate | None, timer: SealTimer) -> SealedValue | None:
    if change.value is None or certificate is None:
        return None
    with timer():
        ciphertext = seal(change.value, certificate, scope=Scope.STRICT, secret=change.place.secret)
    return SealedValue(ciphertext, certificate.fingerprint, datetime.now(UTC))


def _check_form(secret_type: str, key: str, value: Plaintext) -> None:
    """Raises ``Invalid`` (``secret_value_invalid``) if an API server would refuse this value, of its type.

    Nothing of the value is in the error, nor in what leads to it.
    """
    if JSON_KEYS.get(secret_type) == key and not _is_json_object(value):
        raise Invalid(
            f"In a Secret of the type {secret_type}, the value of {key} has to be a JSON object; this is none.",
            code="secret_value_invalid",
            hint="It looks like ~/.docker/config.json; `edgewright secret registry` writes it for you.",
            where=key,
        )


def _is_json_object(value: Plaintext) -> bool:
    try:
        return isinstance(json.loads(value.reveal().decode(), parse_constant=_refuse_constant), dict)
    except (ValueError, RecursionError):
        return False


def _refuse_constant(_: str) -> NoReturn:
    raise ValueError
