import hashlib
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from sealing_keys import NOW, certificate_pem, private_key, private_pem

from edgewright.errors import Invalid
from edgewright.sealing import SealingCertificate, parse_certificate

PEM = certificate_pem(private_key())
BODY = PEM.removeprefix("-----BEGIN CERTIFICATE-----\n").removesuffix("-----END CERTIFICATE-----\n")


def code_of_refusal(pem: str, now: datetime = NOW) -> str:
    with pytest.raises(Invalid) as refusal:
        parse_certificate(pem, now=now)
    assert refusal.value.where == "kubeseal_cert"
    assert refusal.value.hint
    return refusal.value.code


def block(body: str, kind: str = "CERTIFICATE") -> str:
    return f"-----BEGIN {kind}-----\n{body}-----END {kind}-----\n"


def test_a_good_certificate_is_read() -> None:
    certificate = parse_certificate(PEM, now=NOW)
    assert certificate.pem == PEM
    assert certificate.fingerprint == hashlib.sha256(ssl.PEM_cert_to_DER_cert(PEM)).hexdigest()
    assert certificate.not_before == NOW - timedelta(days=1)
    assert certificate.not_after == NOW + timedelta(days=3650)
    assert certificate.not_after.tzinfo is not None
    assert certificate.public_key.public_numbers() == private_key().public_key().public_numbers()


@pytest.mark.parametrize("change", [str.strip, lambda pem: f"\n  {pem}\r\n", lambda pem: pem.replace("\n", "\r\n")])
def test_line_ends_and_surrounding_space_make_no_other_certificate(change: Callable[[str], str]) -> None:
    assert parse_certificate(change(PEM), now=NOW) == parse_certificate(PEM, now=NOW)


@pytest.mark.parametrize("bits", [2048, 3072, 4096])
def test_usual_key_sizes_are_accepted(bits: int) -> None:
    assert isinstance(parse_certificate(certificate_pem(private_key(bits)), now=NOW), SealingCertificate)


@pytest.mark.parametrize(
    "pem",
    [
        "",
        "not a certificate",
        BODY,
        PEM + PEM,
        PEM + "x",
        "x" + PEM,
        f"{PEM}\n# comment",
        block(BODY, "TRUSTED CERTIFICATE"),
        block(BODY[: len(BODY) // 2]),
        block(BODY.replace("A", "*", 1)),
        block("Proc-Type: 4,ENCRYPTED\n" + BODY),
        block("AAAA\n"),
        block("=\n"),
        private_pem(),
        PEM.replace("\n", ""),
        PEM[:200] + "\0" + PEM[200:],
        PEM[:200] + "\N{LATIN SMALL LETTER E WITH ACUTE}" + PEM[201:],
    ],
)
def test_what_is_not_one_certificate_is_malformed(pem: str) -> None:
    assert code_of_refusal(pem) == "certificate_malformed"


def test_bytes_after_the_der_are_malformed() -> None:
    der = ssl.PEM_cert_to_DER_cert(PEM)
    assert code_of_refusal(ssl.DER_cert_to_PEM_cert(der + b"\0")) == "certificate_malformed"


def test_more_than_64_kib_are_malformed_before_they_are_read() -> None:
    assert code_of_refusal(PEM + " " * 64 * 1024) == "certificate_malformed"


def test_every_changed_byte_of_the_der_is_read_or_refused_but_never_crashes() -> None:
    der = ssl.PEM_cert_to_DER_cert(PEM)
    for position in range(len(der)):
        changed = bytearray(der)
        changed[position] ^= 0x55
        try:
            parse_certificate(ssl.DER_cert_to_PEM_cert(bytes(changed)), now=NOW)
        except Invalid as refusal:
            assert refusal.code.startswith("certificate_")


def test_an_expired_certificate_is_refused_from_the_first_second() -> None:
    pem = certificate_pem(private_key(), not_after=NOW)
    assert parse_certificate(pem, now=NOW).not_after == NOW
    assert code_of_refusal(pem, NOW + timedelta(seconds=1)) == "certificate_expired"


def test_a_certificate_may_begin_five_minutes_ahead_and_no_more() -> None:
    begins = NOW + timedelta(minutes=5)
    pem = certificate_pem(private_key(), not_before=begins)
    assert parse_certificate(pem, now=NOW).not_before == begins
    assert code_of_refusal(pem, NOW - timedelta(seconds=1)) == "certificate_not_yet_valid"


def test_the_time_zone_of_now_does_not_matter() -> None:
    far_east = timezone(timedelta(hours=14))
    pem = certificate_pem(private_key(), not_after=NOW)
    assert parse_certificate(pem, now=NOW.astimezone(far_east)).not_after.tzinfo is UTC
    with pytest.raises(ValueError, match="time zone"):
        parse_certificate(pem, now=NOW.replace(tzinfo=None))


@pytest.mark.parametrize("bits", [1024, 2047])
def test_a_short_rsa_key_is_weak(bits: int) -> None:
    assert code_of_refusal(certificate_pem(rsa.generate_private_key(65537, bits))) == "certificate_weak"


@pytest.mark.parametrize("key", [ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()])
def test_a_key_that_is_not_rsa_is_weak(key: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey) -> None:
    assert code_of_refusal(certificate_pem(key)) == "certificate_weak"


def test_an_exponent_that_the_controller_could_not_use_is_weak() -> None:
    assert code_of_refusal(with_exponent(2**31 + 1)) == "certificate_weak"
    assert parse_certificate(with_exponent(2**31 - 1), now=NOW).public_key.public_numbers().e == 2**31 - 1


def with_exponent(exponent: int) -> str:
    public_key = rsa.RSAPublicNumbers(exponent, private_key().public_key().public_numbers().n).public_key()
    return certificate_pem(private_key(), public_key=public_key)


@pytest.mark.parametrize("exponent", [b"\x01\x00\x00", b"\x7f\xff\xfe"])
def test_an_even_exponent_makes_no_key(exponent: bytes) -> None:
    der = ssl.PEM_cert_to_DER_cert(PEM)
    usual = b"\x02\x03\x01\x00\x01"
    assert der.count(usual) == 1
    changed = der.replace(usual, b"\x02\x03" + exponent)
    assert code_of_refusal(ssl.DER_cert_to_PEM_cert(changed)) == "certificate_malformed"


def test_a_modulus_that_nothing_can_be_encrypted_with_makes_no_key() -> None:
    public_key = rsa.RSAPublicNumbers(65537, private_key().public_key().public_numbers().n - 1).public_key()
    assert code_of_refusal(certificate_pem(private_key(), public_key=public_key)) == "certificate_malformed"


def test_a_modulus_beyond_what_can_be_computed_with_is_weak() -> None:
    public_key = rsa.RSAPublicNumbers(65537, 2**20000 + 1).public_key()
    assert code_of_refusal(certificate_pem(private_key(), public_key=public_key)) == "certificate_weak"


def test_a_certificate_cannot_be_changed() -> None:
    certificate = parse_certificate(PEM, now=NOW)
    with pytest.raises(AttributeError):
        certificate.fingerprint = "0" * 64  # type: ignore[misc] # the point of the test


def test_signature_issuer_names_and_key_usage_do_not_matter() -> None:
    nothing = dict.fromkeys(
        (
            "content_commitment",
            "data_encipherment",
            "decipher_only",
            "digital_signature",
            "encipher_only",
            "key_agreement",
            "key_cert_sign",
            "key_encipherment",
        ),
        False,
    )
    stranger = rsa.generate_private_key(65537, 2048)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "elsewhere.invalid")]))
        .issuer_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "somebody")]))
        .public_key(private_key().public_key())
        .serial_number(1)
        .not_valid_before(NOW)
        .not_valid_after(NOW + timedelta(days=1))
        .add_extension(x509.KeyUsage(**nothing | {"crl_sign": True}), critical=True)
        .sign(stranger, hashes.SHA256())
    )
    der = bytearray(certificate.public_bytes(serialization.Encoding.DER))
    der[-1] ^= 1  # within the signature
    pem = ssl.DER_cert_to_PEM_cert(bytes(der))
    assert parse_certificate(pem, now=NOW).public_key.public_numbers() == private_key().public_key().public_numbers()
