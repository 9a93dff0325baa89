"""The certificate authority of a home, and the certificate that it gives to the gateway.

The authority lives for decades: edges trust it from the moment they are attached, and nothing else. It bears no name
constraints, for it has to certify every address that the centre ever moves to (docs/security.md says more). The
gateway's certificate is made anew whenever it has to cover another address, and long before it ends.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from edgewright.cli.endpoints import write_atomically
from edgewright.cli.failures import CliError
from edgewright.cli.home import authority_file, authority_key_file, server_file

AUTHORITY_LIFE = timedelta(days=365 * 20)
SERVER_LIFE = timedelta(days=397)
"""The longest that clients take from any authority."""
RENEWED_BEFORE = timedelta(days=120)
_SLACK = timedelta(days=1)
"""A certificate begins so long ago: the clock of an edge may be behind."""
_LOCAL = ("localhost", "127.0.0.1", "::1")
"""What this machine's own commands use, whatever the address for others is."""


@dataclass(frozen=True)
class HomeCertificates:
    """Files of a home.

    Args:
        authority: PEM of the authority alone, for whoever is to trust it.
        server: PEM of the gateway's certificate and of its key.
        is_new: the gateway's certificate was made just now.
    """

    authority: Path
    server: Path
    is_new: bool


@dataclass(frozen=True)
class _Signer:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def ensure_certificates(home: Path, hosts: Sequence[str], now: datetime) -> HomeCertificates:
    """Makes what is missing, does not cover ``hosts``, or ends soon. An authority that is there is never replaced.

    Each file is replaced in one step and holds what belongs together, so that dying in between leaves a pair that
    fits, and the next call goes on.

    Args:
        hosts: addresses and names that others use.
        now: aware.

    Raises:
        CliError: the authority is damaged, or has expired.
        OSError: a file cannot be written.
    """
    key_file, authority, server = authority_key_file(home), authority_file(home), server_file(home)
    signer = _authority(key_file, now)
    if now >= signer.certificate.not_valid_after_utc:
        raise CliError(
            f"The authority in {key_file} has expired, or the clock of this machine is wrong.",
            f"Set the clock. If it is right, delete {key_file} and attach every edge again.",
        )
    public = signer.certificate.public_bytes(serialization.Encoding.PEM).decode()
    if _text(authority) != public:
        write_atomically(authority, public)
    wanted = {*hosts, *_LOCAL}
    is_new = not _serves(_text(server), signer, wanted, now)
    if is_new:
        write_atomically(server, _server(signer, sorted(wanted), now))
    return HomeCertificates(authority, server, is_new)


def _authority(file: Path, now: datetime) -> _Signer:
    """The authority of the home; made if the file is not there."""
    text = _text(file)
    if text is None:
        text = _new_authority(now)
        write_atomically(file, text)
    try:
        return _signer(text)
    except ValueError as error:
        raise CliError(
            f"{file} is damaged. It signs the certificate that all attached edges trust.",
            "Put it back from a backup. Without one, delete the file and attach every edge again with a new "
            "bootstrap line.",
        ) from error


def _new_authority(now: datetime) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    # A name of its own: who trusts two centres must not try the one's key on the other's certificate.
    name = _named(f"Edgewright authority {secrets.token_hex(4)}")
    usage = _usage(signs_certificates=True)
    certificate = (
        _begun(name, name, key.public_key(), now, now + AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pem(certificate, key)


def _server(signer: _Signer, hosts: Sequence[str], now: datetime) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    ends = min(now + SERVER_LIFE - _SLACK, signer.certificate.not_valid_after_utc)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.key.public_key())
    certificate = (
        _begun(_named("Edgewright gateway"), signer.certificate.subject, key.public_key(), now, ends)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False)
        .add_extension(issuer, critical=False)
        .sign(signer.key, hashes.SHA256())
    )
    return _pem(certificate, key)


def _serves(text: str | None, signer: _Signer, hosts: set[str], now: datetime) -> bool:
    """Whether a file holds a certificate of this authority for exactly these hosts, with its key and time to live."""
    try:
        there = _signer(text or "")
        there.certificate.verify_directly_issued_by(signer.certificate)
        names = there.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return False
    covered = {*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))}
    begins, ends = there.certificate.not_valid_before_utc, there.certificate.not_valid_after_utc
    # Of an authority that is about to end itself, nothing that lives longer can be had.
    is_fresh = ends - now > RENEWED_BEFORE or ends == signer.certificate.not_valid_after_utc
    return covered == {_written(host) for host in hosts} and begins <= now < ends and is_fresh


def _signer(text: str) -> _Signer:
    """Certificate and key of one PEM text.

    Raises:
        ValueError: one is missing, or they do not belong together.
    """
    certificate = x509.load_pem_x509_certificate(text.encode())
    key = serialization.load_pem_private_key(text.encode(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or certificate.public_key() != key.public_key():
        raise ValueError("the key belongs to another certificate")
    return _Signer(certificate, key)


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, ends: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SLACK)
        .not_valid_after(ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _named(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _written(host: str) -> str:
    """A host as a certificate names it."""
    try:
        return str(ip_address(host))
    except ValueError:
        return host


def _pem(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> str:
    """Certificate and key in one file: replaced together, they always fit each other."""
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode() + secret.decode()


def _text(file: Path) -> str | None:
    try:
        return file.read_text("ascii")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        return ""
