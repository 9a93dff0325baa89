"""Our files against the real kubeseal, which opens them with the code that the controller runs."""

import base64
import json
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from sealing_keys import NOW, certificate_pem, open_envelope, private_key, private_pem, sealing_certificate

from edgewright.domain.kubernetes_names import SecretReference
from edgewright.errors import Invalid
from edgewright.sealing import (
    SECRET_LIMIT,
    Plaintext,
    Scope,
    SealedValue,
    label,
    parse_certificate,
    put_values,
    read_scope,
    read_values,
    remove_keys,
    seal,
)

pytestmark = [pytest.mark.real, pytest.mark.timeout(1900)]  # the first test may build kubeseal

DB = SecretReference("press", "db")
CONTROLLER_BITS = 4096
VALUES = {
    "password": b"s3cr3t",
    "empty": b"",
    "binary": bytes(range(256)),
    "utf-8": "Grüße".encode(),
    "y": b"a key that YAML 1.1 takes for yes",
    "1e3": b"a key that YAML takes for a number",
    ".dockerconfigjson": b'{"auths": {}}',
}


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key.pem"
    path.write_text(private_pem(CONTROLLER_BITS))
    return path


def run(kubeseal: Path, *arguments: str | Path, stdin: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([kubeseal, *arguments], input=stdin, capture_output=True, timeout=60, check=False)


def unseal(kubeseal: Path, key_file: Path, document: bytes) -> subprocess.CompletedProcess[bytes]:
    return run(kubeseal, "--recovery-unseal", "--recovery-private-key", key_file, stdin=document)


def secret_of(kubeseal: Path, key_file: Path, document: bytes) -> dict[str, bytes]:
    done = unseal(kubeseal, key_file, document)
    assert done.returncode == 0, done.stderr.decode()
    secret = json.loads(done.stdout)
    assert (secret["metadata"]["namespace"], secret["metadata"]["name"]) == ("press", "db")
    # kubeseal writes an empty value as null, which Kubernetes reads as empty
    return {key: base64.b64decode(value or "") for key, value in (secret.get("data") or {}).items()}


def sealed(value: bytes, scope: Scope, name: str = "db") -> SealedValue:
    certificate = sealing_certificate(CONTROLLER_BITS)
    ciphertext = seal(Plaintext(value), certificate, scope=scope, secret=SecretReference("press", name))
    return SealedValue(ciphertext, certificate.fingerprint, NOW)


def file_with(values: dict[str, bytes], scope: Scope = Scope.STRICT) -> bytes:
    return put_values(None, DB, {key: sealed(value, scope) for key, value in values.items()}, scope)


@pytest.mark.parametrize("scope", Scope)
def test_kubeseal_opens_every_key_of_a_file(kubeseal: Path, key_file: Path, scope: Scope) -> None:
    assert secret_of(kubeseal, key_file, file_with(VALUES, scope)) == VALUES


def test_kubeseal_opens_a_file_after_keys_were_replaced_and_removed(kubeseal: Path, key_file: Path) -> None:
    document = put_values(file_with(VALUES), DB, {"password": sealed(b"newer", Scope.STRICT)})
    shorter = remove_keys(document, ["empty", "binary"])
    assert shorter is not None
    expected = {key: value for key, value in VALUES.items() if key not in {"empty", "binary"}}
    assert secret_of(kubeseal, key_file, shorter) == {**expected, "password": b"newer"}


def test_kubeseal_opens_the_largest_value(kubeseal: Path, key_file: Path) -> None:
    value = bytes(range(256)) * (SECRET_LIMIT // 256)
    assert secret_of(kubeseal, key_file, file_with({"large": value})) == {"large": value}


def test_kubeseal_does_not_open_a_value_that_was_sealed_for_another_secret(kubeseal: Path, key_file: Path) -> None:
    elsewhere = sealed(b"s3cr3t", Scope.STRICT, name="other")
    done = unseal(kubeseal, key_file, put_values(None, DB, {"password": elsewhere}))
    assert done.returncode != 0
    assert b"no key could decrypt secret (password)" in done.stderr


@pytest.mark.parametrize("scope", Scope)
def test_our_opener_opens_what_kubeseal_seals(kubeseal: Path, tmp_path: Path, scope: Scope) -> None:
    certificate = tmp_path / "cert.pem"
    certificate.write_text(usable_today())
    identity = ["--namespace", "press", "--name", "db", "--scope", scope.value]
    done = run(
        kubeseal, "--raw", "--cert", certificate, *identity, "--from-file", "/dev/stdin", stdin=VALUES["binary"]
    )
    assert done.returncode == 0, done.stderr.decode()
    ciphertext = done.stdout.decode().strip()
    opened = open_envelope(ciphertext, private_key(CONTROLLER_BITS), label(scope, DB))
    assert opened == VALUES["binary"]


@pytest.mark.parametrize("scope", Scope)
def test_we_add_to_a_file_that_kubeseal_made(kubeseal: Path, key_file: Path, tmp_path: Path, scope: Scope) -> None:
    certificate = tmp_path / "cert.pem"
    certificate.write_text(usable_today())
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "db", "namespace": "press", "labels": {"team": "press"}},
        "data": {"user": base64.b64encode(b"admin").decode()},
    }
    done = run(
        kubeseal, "--cert", certificate, "--scope", scope.value, "-o", "yaml", stdin=json.dumps(secret).encode()
    )
    assert done.returncode == 0, done.stderr.decode()
    assert read_scope(done.stdout) is scope
    assert read_values(done.stdout)["user"].fingerprint is None
    document = put_values(done.stdout, DB, {"password": sealed(b"s3cr3t", scope)}, scope)
    assert secret_of(kubeseal, key_file, document) == {"user": b"admin", "password": b"s3cr3t"}


def test_kubeseal_refuses_the_expired_certificate_that_we_refuse(kubeseal: Path, tmp_path: Path) -> None:
    expired = certificate_pem(private_key(), not_before=NOW - timedelta(days=2), not_after=NOW - timedelta(days=1))
    with pytest.raises(Invalid) as refusal:
        parse_certificate(expired, now=NOW)
    assert refusal.value.code == "certificate_expired"
    (tmp_path / "cert.pem").write_text(expired)
    identity = ["--namespace", "press", "--name", "db"]
    done = run(
        kubeseal, "--raw", "--cert", tmp_path / "cert.pem", *identity, "--from-file", "/dev/stdin", stdin=b"s3cr3t"
    )
    assert done.returncode != 0
    assert b"expired certificate" in done.stderr


def usable_today() -> str:
    """A certificate for kubeseal, which looks at the machine's own clock."""
    year = timedelta(days=365)
    return certificate_pem(private_key(CONTROLLER_BITS), not_before=NOW - 20 * year, not_after=NOW + 50 * year)
