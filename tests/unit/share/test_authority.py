"""The authority of a home outlives everything; the certificate that it gives fits, and is renewed in time."""

import asyncio
import os
import ssl
import stat
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from api.connections.served_certificate import ServedCertificate
from edgewright.cli.failures import CliError
from edgewright.cli.home import authority_file, authority_key_file, server_file
from edgewright.cli.share.authority import RENEWED_BEFORE, SERVER_LIFE, HomeCertificates, ensure_certificates
from edgewright.errors import Stalled

NOW = datetime.now(UTC).replace(microsecond=0)
HOSTS = ("10.20.30.40", "centre.example.com")


def made(home: Path, hosts: Sequence[str] = HOSTS, now: datetime = NOW) -> HomeCertificates:
    return ensure_certificates(home, hosts, now)


def certificate(file: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(file.read_bytes())


def test_keys_are_the_owners_alone_and_the_bundle_holds_none(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        files = made(tmp_path)
    finally:
        os.umask(before)
    for file in (authority_key_file(tmp_path), files.server, files.authority):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "PRIVATE" not in files.authority.read_text()


def test_a_certificate_lives_no_longer_than_clients_take(tmp_path: Path) -> None:
    found = certificate(made(tmp_path).server)
    assert found.not_valid_after_utc - found.not_valid_before_utc <= SERVER_LIFE
    assert timedelta(days=397) >= SERVER_LIFE
    assert found.not_valid_before_utc <= NOW - timedelta(hours=23), "the clock of an edge may be behind"
    assert certificate(authority_file(tmp_path)).not_valid_after_utc > NOW + timedelta(days=19 * 365)


def test_nothing_is_made_anew_as_long_as_it_serves(tmp_path: Path) -> None:
    first = made(tmp_path)
    text = [file.read_bytes() for file in (first.authority, first.server)]
    again = made(tmp_path, HOSTS[::-1], NOW + timedelta(days=200))
    assert (first.is_new, again.is_new) == (True, False)
    assert [file.read_bytes() for file in (first.authority, first.server)] == text


@pytest.mark.parametrize(
    ("hosts", "days"),
    [(("10.20.30.41",), 0), ((*HOSTS, "fd00::5"), 0), (HOSTS, 397 - RENEWED_BEFORE.days), (HOSTS, -2)],
)
def test_another_address_or_a_near_end_makes_another_certificate_of_the_same_authority(
    tmp_path: Path, hosts: Sequence[str], days: int
) -> None:
    authority, server = made(tmp_path).authority.read_bytes(), server_file(tmp_path).read_bytes()
    again = made(tmp_path, hosts, NOW + timedelta(days=days))
    assert again.is_new
    assert again.server.read_bytes() != server
    assert again.authority.read_bytes() == authority
    certificate(again.server).verify_directly_issued_by(certificate(again.authority))


@pytest.mark.parametrize("name", ["authority.pem", "server.pem"])
@pytest.mark.parametrize(
    "text", [None, "", "nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_what_a_death_in_between_has_left_is_made_whole(tmp_path: Path, name: str, text: str | None) -> None:
    key = made(tmp_path) and authority_key_file(tmp_path).read_bytes()
    file = tmp_path / name
    if text is None:
        file.unlink()
    else:
        file.write_text(text)
    files = made(tmp_path)
    assert authority_key_file(tmp_path).read_bytes() == key
    assert asyncio.run(names_seen(files.server, files.authority, "localhost"))


def test_a_certificate_with_the_key_of_another_is_made_anew(tmp_path: Path) -> None:
    files, other = made(tmp_path), tmp_path / "other"
    other.mkdir()
    own, foreign = files.server.read_text(), made(other).server.read_text()
    marker = "-----BEGIN PRIVATE"
    files.server.write_text(own.partition(marker)[0] + marker + foreign.partition(marker)[2])
    assert made(tmp_path).is_new
    files.server.write_text(foreign)
    assert made(tmp_path).is_new, "of another authority"


def test_a_damaged_authority_is_never_replaced(tmp_path: Path) -> None:
    made(tmp_path)
    authority_key_file(tmp_path).write_text("damaged")
    with pytest.raises(CliError, match="damaged") as refused:
        made(tmp_path)
    assert "backup" in (refused.value.hint or "")
    assert authority_key_file(tmp_path).read_text() == "damaged"


def test_an_authority_that_has_ended_is_named(tmp_path: Path) -> None:
    made(tmp_path)
    with pytest.raises(CliError, match="expired"):
        made(tmp_path, now=NOW + timedelta(days=365 * 21))
    near = made(tmp_path, now=NOW + timedelta(days=365 * 20 - 5))
    assert certificate(near.server).not_valid_after_utc == certificate(near.authority).not_valid_after_utc
    assert not made(tmp_path, now=NOW + timedelta(days=365 * 20 - 4)).is_new, "no better one can be had"


@pytest.mark.parametrize("name", [*HOSTS, "127.0.0.1", "::1", "localhost"])
def test_clients_that_trust_the_authority_alone_get_in_under_every_name(tmp_path: Path, name: str) -> None:
    files = made(tmp_path)
    assert asyncio.run(names_seen(files.server, files.authority, name))


def test_under_another_name_nobody_gets_in(tmp_path: Path) -> None:
    files = made(tmp_path)
    with pytest.raises(ssl.SSLCertVerificationError):
        asyncio.run(names_seen(files.server, files.authority, "10.20.30.41"))


def test_a_renewed_certificate_is_served_without_a_restart(tmp_path: Path) -> None:
    async def renewed() -> tuple[bytes, bytes, bytes]:
        files = made(tmp_path)
        served = ServedCertificate(files.server, files.server)
        async with await serving(served.context) as server:
            port = server.sockets[0].getsockname()[1]
            first = await shown(port, files.authority, "10.20.30.40")
            assert not served.refresh()
            made(tmp_path, ("10.20.30.41",))
            again = await shown(port, files.authority, "10.20.30.40")
            assert served.refresh()
            return first, again, await shown(port, files.authority, "10.20.30.41")

    first, again, new = asyncio.run(renewed())
    assert first == again
    assert new != first


def test_files_that_do_not_fit_leave_what_is_served(tmp_path: Path) -> None:
    async def kept() -> bool:
        files, other = made(tmp_path), tmp_path / "other"
        other.mkdir()
        certificate_file, key_file = tmp_path / "tls.crt", tmp_path / "tls.key"
        for file in (certificate_file, key_file):
            file.write_bytes(files.server.read_bytes())
        served = ServedCertificate(certificate_file, key_file)
        async with await serving(served.context) as server:
            port = server.sockets[0].getsockname()[1]
            foreign = made(other).server.read_text()
            certificate_file.write_text(foreign.partition("-----BEGIN PRIVATE")[0])
            assert not served.refresh()
            await shown(port, files.authority, "localhost")
            key_file.unlink()
            assert not served.refresh()
            await shown(port, files.authority, "localhost")
            key_file.write_text(foreign)
            assert served.refresh(), "the second of the two files has come"
            return bool(await shown(port, authority_file(other), "localhost"))

    assert asyncio.run(kept())


def test_a_certificate_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("nonsense")
    with pytest.raises(Stalled) as refused:
        ServedCertificate(tmp_path / "x", tmp_path / "x")
    assert refused.value.code == "tls_unusable"


async def serving(context: ssl.SSLContext) -> asyncio.Server:
    async def nothing(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    return await asyncio.start_server(nothing, "127.0.0.1", 0, ssl=context)


async def shown(port: int, authority: Path, name: str) -> bytes:
    """The certificate that a client is shown who trusts that authority alone, and asks for that name."""
    context = ssl.create_default_context(cafile=str(authority))
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)
    found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return found


async def names_seen(server: Path, authority: Path, name: str) -> bytes:
    async with await serving(ServedCertificate(server, server).context) as listening:
        return await shown(listening.sockets[0].getsockname()[1], authority, name)
