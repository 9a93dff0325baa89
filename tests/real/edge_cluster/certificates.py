"""The certificates and keys of a cluster, made anew for each."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

ADDRESSES = ("127.0.0.1", "10.96.0.1")
HOSTS = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
LIFE = timedelta(days=2)


@dataclass(frozen=True)
class Identity:
    """A certificate and its key, as PEM files."""

    certificate: Path
    key: Path


class Authority:
    """The cluster's own authority; its files are in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test-cluster")])
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        made = (
            self._begun(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.identity = self._written("ca", made, self._key)
        signing = ec.generate_private_key(ec.SECP256R1())
        self.account_key = self._key_file("accounts", signing)
        """Signs the tokens of ServiceAccounts; the public key is beside it, ``.pub``."""
        public = signing.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self.account_key.with_suffix(".pub").write_bytes(public)

    def server(self, name: str, *, hosts: Sequence[str] = HOSTS) -> Identity:
        """For the API server, under every name that it is called by, or for one with other names."""
        alternatives: list[x509.GeneralName] = [x509.IPAddress(ip_address(each)) for each in ADDRESSES]
        alternatives += [x509.DNSName(each) for each in hosts]
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        return self._leaf(name, subject, ExtendedKeyUsageOID.SERVER_AUTH, alternatives)

    def client(self, user: str, group: str | None = None) -> Identity:
        """For a user of a group, as RBAC knows them."""
        groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
        subject = x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        return self._leaf(user.replace(":", "-"), subject, ExtendedKeyUsageOID.CLIENT_AUTH, [])

    def _leaf(
        self,
        name: str,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        alternatives: list[x509.GeneralName],
    ) -> Identity:
        key = ec.generate_private_key(ec.SECP256R1())
        begun = self._begun(subject, key.public_key()).add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if alternatives:
            begun = begun.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        return self._written(name, begun.sign(self._key, hashes.SHA256()), key)

    def _begun(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - LIFE)
            .not_valid_after(now + LIFE)
        )

    def _written(self, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Identity:
        file = self._folder / f"{name}.crt"
        file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return Identity(file, self._key_file(name, key))

    def _key_file(self, name: str, key: ec.EllipticCurvePrivateKey) -> Path:
        file = self._folder / f"{name}.key"
        file.touch(mode=0o600)
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return file
