"""Encrypting so that only one cluster can decrypt, and the files that carry it. See docs/crypto.md."""

from edgewright.sealing.certificate import SealingCertificate, parse_certificate
from edgewright.sealing.envelope import Scope, blank_envelope, label, plaintext_size, seal
from edgewright.sealing.plaintext import Plaintext
from edgewright.sealing.resealed import (
    ResealingAnswer,
    ciphertext_digest,
    judge_answers,
    replace_values,
    stale_secrets,
    still_unopened,
)
from edgewright.sealing.sealed_secret import (
    SealedFile,
    change_values,
    put_values,
    read_scope,
    read_sealed,
    read_template,
    read_values,
    remove_keys,
)
from edgewright.sealing.sealed_value import SECRET_LIMIT, SealedValue, check_secret_size, total_plaintext_size

__all__ = [
    "SECRET_LIMIT",
    "Plaintext",
    "ResealingAnswer",
    "Scope",
    "SealedFile",
    "SealedValue",
    "SealingCertificate",
    "blank_envelope",
    "change_values",
    "check_secret_size",
    "ciphertext_digest",
    "judge_answers",
    "label",
    "parse_certificate",
    "plaintext_size",
    "put_values",
    "read_scope",
    "read_sealed",
    "read_template",
    "read_values",
    "remove_keys",
    "replace_values",
    "seal",
    "stale_secrets",
    "still_unopened",
    "total_plaintext_size",
]
