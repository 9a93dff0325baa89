"""Secrets from files, with a type, labels and annotations; certificates and registries."""

import json
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from command_line import CommandLine, ServedCentre
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from gateway_centre import STATUS_APP
from sealing_keys import certificate_pem, open_envelope, private_key

from edgewright.cli.commands.secret_sources import MOST_KEYS
from edgewright.ports.operators import Permission
from edgewright.sealing import SECRET_LIMIT, SealedValue, read_template, read_values

KEY = private_key()
OTHER_KEY = private_key(3072)
NOW = datetime.now(UTC)
CERTIFICATE = certificate_pem(KEY, not_before=NOW - timedelta(days=1), not_after=NOW + timedelta(days=100))
MARKER = "MARKED-s3cr3t"
PLACE = ("press-shop", "default/db")


@pytest.fixture
def sealed(centre: ServedCentre) -> UUID:
    """A cluster whose edge has reported its sealing certificate."""
    made = centre.create("press-shop")

    async def report() -> None:
        admin = await centre.centre.operator(Permission.ADMIN)
        status = {"hosts": [{"hostname": "node-1"}], "kubeseal_cert": CERTIFICATE}
        answer = await admin.put(f"/v1/app/{STATUS_APP}/object/{made}", json=status)
        assert answer.is_success, answer.text

    centre.do(report())
    return made


def document(centre: ServedCentre, cluster: UUID, name: str = "db") -> bytes | None:
    git = centre.centre.git
    head = git.head(cluster)
    assert head is not None
    return git.read(cluster, f"edo/secrets/default/{name}.yaml", at=head)


def in_git(centre: ServedCentre, cluster: UUID, name: str = "db") -> dict[str, bytes]:
    found = document(centre, cluster, name)
    values: dict[str, SealedValue] = {} if found is None else dict(read_values(found))
    return {key: open_envelope(each.ciphertext, KEY, f"default/{name}".encode()) for key, each in values.items()}


def template(centre: ServedCentre, cluster: UUID, name: str = "db") -> tuple[str, dict[str, str], dict[str, str]]:
    found = read_template(document(centre, cluster, name) or b"")
    return found.type, dict(found.labels), dict(found.annotations)


def pem(key: Any, password: bytes | None = None) -> bytes:
    encryption = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    found: bytes = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    return found


def written(folder: Path, name: str, content: str | bytes) -> Path:
    file = folder / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def test_files_are_keys_of_one_secret_in_one_commit(
    edgewright: CommandLine, centre: ServedCentre, sealed: UUID, tmp_path: Path
) -> None:
    before = len(centre.centre.git.log(sealed, limit=100))
    written(tmp_path, "ca.crt", b"\x00\xff\n")
    env = written(
        tmp_path, "db.env", '\ufeff# of the press\r\n\nUSER=press\r\n  PASSWORD="a = b" # not a comment\nEMPTY=\n'
    )
    options = ("--from-file", str(tmp_path / "ca.crt"), "--from-file", f"other.key={tmp_path / 'ca.crt'}")
    more = (
        "--from-env-file",
        str(env),
        "--type",
        "example.com/db",
        "--label",
        "app=press",
        "--annotation",
        "n=a=b c",
        "--allow-empty",
    )
    shown = edgewright.ok("secret", "put", *PLACE, *options, *more)
    assert shown.out == f"default/db 5 keys of press-shop is sealed, commit {centre.centre.git.head(sealed)}.\n"
    assert in_git(centre, sealed) == {
        "ca.crt": b"\x00\xff\n",
        "other.key": b"\x00\xff\n",
        "USER": b"press",
        "PASSWORD": b'"a = b" # not a comment',
        "EMPTY": b"",
    }
    assert template(centre, sealed) == ("example.com/db", {"app": "press"}, {"n": "a=b c"})
    assert len(centre.centre.git.log(sealed, limit=100)) == before + 1


def test_one_value_may_bring_labels_and_take_them_away(
    edgewright: CommandLine, centre: ServedCentre, sealed: UUID
) -> None:
    edgewright.ok("secret", "put", *PLACE, "k", "-", "--label", "app=press", "--label", "b=", typed="x")
    assert template(centre, sealed) == ("Opaque", {"app": "press", "b": ""}, {})
    edgewright.ok("secret", "put", *PLACE, "other", "-", typed="y")
    assert template(centre, sealed) == ("Opaque", {"app": "press", "b": ""}, {})
    edgewright.ok("secret", "put", *PLACE, "k", "-", "--label", "b-", typed="x")
    assert template(centre, sealed) == ("Opaque", {"app": "press"}, {})
    refused = edgewright("secret", "put", *PLACE, "k", "-", "--type", "example.com/t", typed="x")
    assert (refused.code, "Delete the Secret" in refused.err) == (4, True)
    header, line, _ = edgewright.ok("secret", "list", "press-shop").out.splitlines()
    assert (header.split()[-1], line.split()[-1]) == ("TYPE", "Opaque")


def test_a_dry_run_of_files_stores_nothing(
    edgewright: CommandLine, centre: ServedCentre, sealed: UUID, tmp_path: Path
) -> None:
    env = written(tmp_path, "db.env", "A=1\nB=2\n")
    shown = edgewright.ok("secret", "put", *PLACE, "--from-env-file", str(env), "--dry-run")
    assert shown.out == "default/db 2 keys of press-shop could be sealed; nothing was stored.\n"
    assert document(centre, sealed) is None


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (f"A=1\n{MARKER}\n", "line 2 has no ="),
        (f"A=1\n{MARKER} x=1\n", "line 2: what is before the = is not a key"),
        (f"={MARKER}\n", "line 1: what is before the = is not a key"),
        (f"A=1\nA={MARKER}\n", "line 2: the key A is there twice"),
        ("# nothing\n\n", "no key in these files"),
        (f"A={'x' * SECRET_LIMIT}", str(SECRET_LIMIT)),
        ("".join(f"K{n}=\n" for n in range(MOST_KEYS + 1)), str(MOST_KEYS)),
    ],
    ids=["no =", "no key", "empty key", "twice", "empty", "large", "many"],
)
def test_what_an_env_file_has_wrong_is_named_by_its_line_and_never_shown(
    edgewright: CommandLine, sealed: UUID, tmp_path: Path, content: str, told: str
) -> None:
    env = written(tmp_path, "db.env", content)
    shown = edgewright("secret", "put", *PLACE, "--from-env-file", str(env))
    assert shown.code in {2, 4}
    assert told in shown.err
    assert MARKER not in shown.out + shown.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("k", "-", "--from-file", "FILE"), "does not go together with"),
        (("k", "--from-file", "FILE"), "does not go together with"),
        (("k",), "comes from stdin or a file"),
        ((), "comes from stdin or a file"),
        (("--from-file", "FILE", MARKER), "does not go together with"),
        (("--from-file", "FILE", "k", MARKER), "comes from stdin or a file"),
        (("--from-file", f"--{MARKER}"), "cannot be read"),
        (("k", "-", "--label", "a"), "--label takes NAME=VALUE"),
        (("k", "-", "--label", "a=1", "--label", "a-"), "twice for one name"),
        (("--from-file", "a=FILE", "--from-file", "a=FILE"), "the key a is there twice"),
        (("--from-file", "a b=FILE"), "not a key of a Secret"),
        (("k", "-", "--annotation", "edgewright.dev/x=1"), "belongs to Edgewright"),
    ],
    ids=str,
)
def test_wrong_arguments_say_so_before_anything_is_sent(
    environment: dict[str, str | None], tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    file = str(written(tmp_path, "value", "x"))
    shown = CommandLine(environment)(
        "secret", "put", *PLACE, *(each.replace("FILE", file) for each in arguments), typed="x"
    )
    assert shown.code in {2, 4}
    assert told in shown.err
    if told != "cannot be read":
        assert MARKER not in shown.out + shown.err


def test_a_certificate_with_its_key_is_a_tls_secret(
    edgewright: CommandLine, centre: ServedCentre, sealed: UUID, tmp_path: Path
) -> None:
    chain = CERTIFICATE + certificate_pem(OTHER_KEY, not_before=NOW, not_after=NOW + timedelta(days=1))
    certificate, key = written(tmp_path, "web.pem", chain), written(tmp_path, "web.key", pem(KEY))
    files = ("--cert", str(certificate), "--key", str(key))
    shown = edgewright.ok("secret", "tls", "press-shop", "default/web", *files, "--label", "app=web")
    assert "2 keys of press-shop is sealed" in shown.out
    assert in_git(centre, sealed, "web") == {"tls.crt": chain.encode(), "tls.key": pem(KEY)}
    assert template(centre, sealed, "web") == ("kubernetes.io/tls", {"app": "web"}, {})
    edgewright.ok("secret", "tls", "press-shop", "default/web", *files)
    half = edgewright("secret", "delete", "press-shop", "default/web", "tls.key")
    assert (half.code, "delete all in one" in half.err) == (2, True)
    whole = edgewright.ok("secret", "delete", "press-shop", "default/web", "--all")
    assert "tls.crt, tls.key of press-shop is deleted" in whole.out
    assert document(centre, sealed, "web") is None


def test_a_certificate_that_has_ended_is_sealed_and_said_to_have(
    edgewright: CommandLine, centre: ServedCentre, sealed: UUID, tmp_path: Path
) -> None:
    ended = certificate_pem(KEY, not_before=NOW - timedelta(days=9), not_after=NOW - timedelta(days=1))
    files = ("--cert", str(written(tmp_path, "c", ended)), "--key", str(written(tmp_path, "k", pem(KEY))))
    assert "has ended at" in edgewright.ok("secret", "tls", "press-shop", "default/web", *files).err
    assert set(in_git(centre, sealed, "web")) == {"tls.crt", "tls.key"}


@pytest.mark.parametrize(
    ("certificate", "key", "told"),
    [
        (CERTIFICATE, pem(OTHER_KEY), "is not that of the first certificate"),
        (CERTIFICATE, pem(ec.generate_private_key(ec.SECP256R1())), "is not that of the first certificate"),
        (CERTIFICATE, pem(KEY, b"passphrase"), "is encrypted"),
        (CERTIFICATE, MARKER, "holds no private key in PEM"),
        (CERTIFICATE, CERTIFICATE, "holds no private key in PEM"),
        (MARKER, pem(KEY), "holds no certificate in PEM"),
        (pem(KEY), pem(KEY), "holds no certificate in PEM"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", pem(KEY), "holds no certificate in PEM"),
    ],
    ids=["other key", "other kind", "encrypted", "no key", "swapped", "no certificate", "key twice", "broken"],
)
def test_a_pair_that_does_not_fit_is_refused_before_anything_is_sent(
    environment: dict[str, str | None], tmp_path: Path, certificate: str | bytes, key: str | bytes, told: str
) -> None:
    files = ("--cert", str(written(tmp_path, "c", certificate)), "--key", str(written(tmp_path, "k", key)))
    shown = CommandLine(environment)("secret", "tls", "press-shop", "default/web", *files)
    assert (shown.code, told in shown.err) == (2, True), shown.err
    assert MARKER not in shown.out + shown.err
    assert "PRIVATE KEY-" not in shown.out + shown.err


@pytest.mark.parametrize("typed", [b'pa"ss w\xc3\xb6rd\n', b'pa"ss w\xc3\xb6rd\r\nmore\n', b'pa"ss w\xc3\xb6rd'])
def test_a_registrys_password_is_a_docker_config(
    edgewright: CommandLine, centre: ServedCentre, sealed: UUID, typed: bytes
) -> None:
    who = ("--server", "registry.example.com:5000", "--username", "edge")
    shown = edgewright.ok("secret", "registry", "press-shop", "default/pull", *who, typed=typed)
    assert "default/pull .dockerconfigjson of press-shop is sealed" in shown.out
    password = 'pa"ss w\u00f6rd'
    assert template(centre, sealed, "pull") == ("kubernetes.io/dockerconfigjson", {}, {})
    assert json.loads(in_git(centre, sealed, "pull")[".dockerconfigjson"]) == {
        "auths": {
            "registry.example.com:5000": {
                "username": "edge",
                "password": password,
                "auth": b64encode(f"edge:{password}".encode()).decode(),
            }
        }
    }


@pytest.mark.parametrize("typed", [b"", b"\n", b"\xff\n", b"x" * 70_000])
def test_a_password_that_cannot_be_one_is_refused(environment: dict[str, str | None], typed: bytes) -> None:
    who = ("--server", "registry.example.com", "--username", "edge")
    shown = CommandLine(environment)("secret", "registry", "press-shop", "default/pull", *who, typed=typed)
    assert shown.code == 2
    assert "password" in shown.err
    assert "xxxx" not in shown.err


def test_a_registrys_password_is_no_argument(environment: dict[str, str | None]) -> None:
    who = ("--server", "registry.example.com", "--username", "edge")
    for more in (("--password", MARKER), (MARKER,)):
        assert CommandLine(environment)("secret", "registry", "press-shop", "default/pull", *who, *more).code == 2
    named = ("--server", "registry.example.com", "--username", "a:b")
    assert CommandLine(environment)("secret", "registry", "press-shop", "default/pull", *named, typed="x").code == 2


def test_several_keys_are_deleted_in_one_commit(
    edgewright: CommandLine, centre: ServedCentre, sealed: UUID, tmp_path: Path
) -> None:
    env = written(tmp_path, "db.env", "A=1\nB=2\nC=3\n")
    edgewright.ok("secret", "put", *PLACE, "--from-env-file", str(env))
    before = len(centre.centre.git.log(sealed, limit=100))
    edgewright.ok("secret", "delete", *PLACE, "A", "C")
    assert set(in_git(centre, sealed)) == {"B"}
    assert len(centre.centre.git.log(sealed, limit=100)) == before + 1
    assert edgewright("secret", "delete", *PLACE).code == 2
    assert edgewright("secret", "delete", *PLACE, "B", "--all").code == 2
    assert edgewright("secret", "delete", "press-shop", "default/none", "--all").code == 3


def test_labels_and_annotations_change_without_a_value(
    edgewright: CommandLine, centre: ServedCentre, sealed: UUID, tmp_path: Path
) -> None:
    file = str(written(tmp_path, "value", MARKER))
    assert edgewright("secret", "put", *PLACE, "--from-file", f"k={file}", "--label", "old=1").code == 0
    shown = edgewright("secret", "label", *PLACE, "app=press", "old-")
    assert (shown.code, "default/db app, old of press-shop is changed, commit " in shown.out) == (0, True)
    tried = edgewright("secret", "annotate", *PLACE, "note=n", "--dry-run")
    assert "default/db note of press-shop could be changed; nothing was stored." in tried.out
    assert template(centre, sealed) == ("Opaque", {"app": "press"}, {})
    told = json.loads(edgewright("secret", "annotate", *PLACE, "example.com/owner=Line 3", "--json").out)
    assert set(told) == {"commit"}
    assert template(centre, sealed) == ("Opaque", {"app": "press"}, {"example.com/owner": "Line 3"})
    assert in_git(centre, sealed) == {"k": MARKER.encode()}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("label", *PLACE, "app"), "secret label takes NAME=VALUE, or NAME- to remove one."),
        (("annotate", *PLACE, "a=1", "a-"), "secret annotate is there twice for one name."),
        (("label", *PLACE, "helm.sh/chart=x"), "belongs to Edgewright, Flux, Helm or sealed-secrets"),
        (("label", "press-shop", "db", "a=1"), "A Secret is given as NAMESPACE/NAME."),
        (("label", *PLACE), "Missing argument"),
    ],
)
def test_wrong_labels_say_so_before_anything_is_sent(
    environment: dict[str, str | None], arguments: tuple[str, ...], told: str
) -> None:
    shown = CommandLine(environment)("secret", *arguments)
    assert shown.code != 0
    assert told in " ".join(shown.err.split())


def test_a_secret_that_is_not_there_cannot_be_labelled(edgewright: CommandLine, sealed: UUID) -> None:
    shown = edgewright("secret", "label", *PLACE, "a=1")
    assert (shown.code, "There is no Secret default/db" in shown.err) == (3, True)
