"""Secrets go in byte for byte, from stdin or a file, and never come out."""

import json
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
import yaml
from command_line import CommandLine, ServedCentre
from gateway_centre import STATUS_APP
from opening_edge import opening, saying
from resealing_edge import status
from sealing_keys import certificate_pem, open_envelope, private_key

from edgewright.agent.opening import Stage
from edgewright.domain.cluster import Desired, Resealing
from edgewright.ports.operators import Permission
from edgewright.sealing import SECRET_LIMIT, ciphertext_digest, read_values

KEY = private_key()
PLACE = ("press-shop", "default/db", "password")


@pytest.fixture
def sealed(centre: ServedCentre) -> UUID:
    """A cluster whose edge has reported its sealing certificate."""
    made = centre.create("press-shop")
    now = datetime.now(UTC)
    certificate = certificate_pem(KEY, not_before=now - timedelta(days=1), not_after=now + timedelta(days=100))

    async def report() -> None:
        admin = await centre.centre.operator(Permission.ADMIN)
        status = {"hosts": [{"hostname": "node-1"}], "kubeseal_cert": certificate}
        answer = await admin.put(f"/v1/app/{STATUS_APP}/object/{made}", json=status)
        assert answer.is_success, answer.text

    centre.do(report())
    return made


def in_git(centre: ServedCentre, cluster: UUID) -> dict[str, bytes]:
    """The values of the Secret, opened with the edge's key."""
    git = centre.centre.git
    head = git.head(cluster)
    assert head is not None
    document = git.read(cluster, "edo/secrets/default/db.yaml", at=head)
    values = {} if document is None else read_values(document)
    return {key: open_envelope(value.ciphertext, KEY, b"default/db") for key, value in values.items()}


@pytest.mark.parametrize("value", [b"s3cr3t", b"line\n", b"\x00\xff\r\n\n"])
def test_bytes_of_stdin_are_sealed_as_they_are(
    edgewright: CommandLine, centre: ServedCentre, sealed: UUID, value: bytes
) -> None:
    shown = edgewright.ok("secret", "put", *PLACE, "-", typed=value)
    assert in_git(centre, sealed) == {"password": value}
    assert shown.out == f"default/db password of press-shop is sealed, commit {centre.centre.git.head(sealed)}.\n"


def test_bytes_of_a_file_are_sealed_as_they_are(
    edgewright: CommandLine, centre: ServedCentre, sealed: UUID, tmp_path: Path
) -> None:
    file = tmp_path / "value"
    file.write_bytes(b"from a file\n")
    shown = edgewright.ok("secret", "put", *PLACE, f"@{file}", "--json")
    assert in_git(centre, sealed) == {"password": b"from a file\n"}
    assert json.loads(shown.out) == {"commit": centre.centre.git.head(sealed)}


LITERALS = (
    ["hunter2"],
    ["--hunter2"],
    ["-phunter2"],
    ["-", "hunter2"],
    ["hunter2", "--json"],
    ["@"],
    ["--", "-hunter2"],
)


@pytest.mark.parametrize("literal", LITERALS, ids=" ".join)
def test_value_on_the_command_line_is_refused_and_not_repeated(
    environment: dict[str, str | None], literal: list[str]
) -> None:
    shown = CommandLine(environment)("secret", "put", *PLACE, *literal, typed="x")
    assert shown.code == 2
    assert "comes from stdin or a file" in shown.err
    assert "hunter2" not in shown.out + shown.err


def test_dry_run_stores_nothing(edgewright: CommandLine, centre: ServedCentre, sealed: UUID) -> None:
    before = centre.centre.git.head(sealed)
    shown = edgewright.ok("secret", "put", *PLACE, "-", "--dry-run", typed="x")
    assert "nothing was stored" in shown.out
    assert centre.centre.git.head(sealed) == before


def test_list_tells_keys_and_never_values(edgewright: CommandLine, sealed: UUID) -> None:
    empty = edgewright.ok("secret", "list", "press-shop")
    assert (empty.out, empty.err) == ("", "No secrets.\n")
    edgewright.ok("secret", "put", *PLACE, "-", typed="s3cr3t")
    header, line = edgewright.ok("secret", "list", "press-shop").out.splitlines()
    assert header.split() == ["SECRET", "KEY", "STATE", "EDGE", "SEALED", "TYPE"]
    assert line.split()[:4] == ["default/db", "password", "current", "unknown"]
    document = edgewright.ok("secret", "list", "press-shop", "--json").out
    assert json.loads(document)["items"][0]["key"] == "password"
    assert "s3cr3t" not in document + line


def test_a_value_that_no_key_of_the_edge_opens_is_marked(
    edgewright: CommandLine, centre: ServedCentre, sealed: UUID
) -> None:
    edgewright.ok("secret", "put", *PLACE, "-", typed="s3cr3t")
    git = centre.centre.git
    document = git.read(sealed, "edo/secrets/default/db.yaml", at=git.head(sealed) or "")
    lost = {"secret": "default/db", "key": "password"}
    lost["sha256"] = ciphertext_digest(read_values(document or b"")["password"].ciphertext)

    async def report(**more: int) -> None:
        admin = await centre.centre.operator(Permission.ADMIN)
        path = f"/v1/app/{STATUS_APP}/object/{sealed}"
        answer = await admin.put(path, json={**(await admin.get(path)).json(), "unopened": [lost], **more})
        assert answer.is_success, answer.text

    centre.do(report())
    listed = edgewright.ok("secret", "list", "press-shop")
    assert "no key opens it" in listed.out.splitlines()[1]
    assert listed.err == "Enter again: default/db/password\n"
    centre.do(report(unopened_count=21))
    listed = edgewright.ok("secret", "list", "press-shop")
    more = "Enter again: 20 more that the edge has not named.\n"
    assert listed.err == f"Enter again: default/db/password\n{more}"
    edgewright.ok("secret", "put", *PLACE, "-", typed="another")
    listed = edgewright.ok("secret", "list", "press-shop")
    assert "current" in listed.out and listed.err == more, "the edge will name them with its next report"
    centre.do(report(unopened_count=1))
    listed = edgewright.ok("secret", "list", "press-shop")
    assert "current" in listed.out and listed.err == ""


def test_key_is_deleted(edgewright: CommandLine, centre: ServedCentre, sealed: UUID) -> None:
    edgewright.ok("secret", "put", *PLACE, "-", typed="s3cr3t")
    assert "is deleted, commit " in edgewright.ok("secret", "delete", *PLACE).out
    assert in_git(centre, sealed) == {}
    assert edgewright("secret", "delete", *PLACE).code == 3


def test_names_never_lead_to_another_resource(edgewright: CommandLine, centre: ServedCentre, sealed: UUID) -> None:
    """`../..` and a UUID as the key would be the path of the cluster itself."""
    for secret, key in (
        ("../..", str(sealed)),
        ("default/..", "k"),
        ("default/db", ".."),
        ("a/b/c", "k"),
        ("Ä/b", "k"),
    ):
        shown = edgewright("secret", "delete", "press-shop", secret, key)
        assert (shown.code, shown.out) == (2, ""), secret
    assert edgewright("secret", "delete", "press-shop", "db", "password").code == 2
    assert centre.row(sealed).desired is Desired.PRESENT


def test_what_cannot_be_sealed_says_why(
    edgewright: CommandLine, centre: ServedCentre, sealed: UUID, tmp_path: Path
) -> None:
    centre.create("bare")
    no_edge = edgewright("secret", "put", "bare", "default/db", "k", "-", typed="x")
    assert (no_edge.code, "has not reported" in no_edge.err) == (3, True)
    no_file = edgewright("secret", "put", *PLACE, f"@{tmp_path}/none")
    assert (no_file.code, "cannot be read" in no_file.err) == (2, True)
    large = edgewright("secret", "put", *PLACE, "-", typed=b"x" * (SECRET_LIMIT + 1))
    assert (large.code, str(SECRET_LIMIT) in large.err) == (2, True)
    assert in_git(centre, sealed) == {}


def test_deletion_of_a_cluster_names_its_secrets(edgewright: CommandLine, sealed: UUID) -> None:
    edgewright.ok("secret", "put", *PLACE, "-", typed="s3cr3t")
    edgewright.ok("secret", "put", "press-shop", "default/db", "user", "-", typed="u")
    shown = edgewright("cluster", "delete", "press-shop")
    assert "1 (default/db)" in shown.err
    assert "1 (node-1)" in shown.err


def test_resealing_is_asked_for_and_its_progress_is_on_the_page(
    edgewright: CommandLine, centre: ServedCentre, sealed: UUID
) -> None:
    edgewright.ok("secret", "put", *PLACE, "-", typed=b"s3cr3t")
    refused = edgewright("secret", "reseal", "press-shop")
    assert "Every value of press-shop is sealed with the certificate in use." in refused.err
    admin = centre.do(centre.centre.operator(Permission.ADMIN))
    answer = centre.do(admin.put(f"/v1/app/{STATUS_APP}/object/{sealed}", json=dict(status(2))))
    assert answer.is_success, answer.text
    asked = edgewright.ok("secret", "reseal", "press-shop", "--reason", "stolen disk")
    assert "press-shop is to re-seal 1 of 1 Secrets" in asked.out
    again = json.loads(edgewright.ok("secret", "reseal", "press-shop", "--json").out)
    assert (again["secrets"], again["left"], again["reason"]) == (1, 1, "stolen disk")
    under_way = Resealing(**{**again, "waiting": ["default/db: The edge does not have it yet."]})
    centre.do(centre.centre.project(sealed, resealing=under_way))
    page = edgewright.ok("cluster", "show", "press-shop").out
    assert "0 of 1 Secrets; default/db: The edge does not have it yet." in " ".join(page.split())


TAKEN = 'failed update: Resource "db" already exists and is not managed by SealedSecret'


@pytest.fixture
def edge_says(centre: ServedCentre, sealed: UUID) -> Callable[[Stage, str], threading.Thread]:
    """Has the edge say of a Secret what its controller has made of it, once it is committed."""

    async def report(stage: Stage, sentence: str) -> None:
        admin = await centre.centre.operator(Permission.ADMIN)
        body = saying({"hosts": []}, opening(centre.centre.git, sealed, stage, sentence))
        present = (await admin.get(f"/v1/app/{STATUS_APP}/object/{sealed}")).json()
        answer = await admin.put(f"/v1/app/{STATUS_APP}/object/{sealed}", json={**present, **body})
        assert answer.is_success, answer.text

    before = centre.centre.git.head(sealed)

    def say_it(stage: Stage, sentence: str) -> None:
        nonlocal before
        until = time.monotonic() + 30
        while centre.centre.git.head(sealed) == before and time.monotonic() < until:
            time.sleep(0.05)
        before = centre.centre.git.head(sealed)
        centre.do(report(stage, sentence))

    def soon(stage: Stage, sentence: str) -> threading.Thread:
        thread = threading.Thread(target=say_it, args=(stage, sentence), daemon=True)
        thread.start()
        return thread

    return soon


def test_put_waits_until_the_edge_has_opened_it(
    edgewright: CommandLine, edge_says: Callable[[Stage, str], threading.Thread]
) -> None:
    said = edge_says(Stage.OPENED, "")
    shown = edgewright.ok("secret", "put", *PLACE, "-", "--wait", "--timeout", "30s", typed="v")
    said.join(30)
    first, last = shown.out.splitlines()
    assert first.startswith("default/db password of press-shop is sealed, commit ")
    assert last.startswith("press-shop has opened default/db after ")
    document = edgewright.ok("secret", "list", "press-shop", "--json").out
    assert json.loads(document)["items"][0]["edge_state"] == "opened"


def test_put_ends_at_a_refusal_and_list_says_it_too(
    edgewright: CommandLine, edge_says: Callable[[Stage, str], threading.Thread]
) -> None:
    said = edge_says(Stage.REFUSED, TAKEN)
    shown = edgewright("secret", "put", *PLACE, "-", "--wait", "--timeout", "30s", "--json", typed="v")
    said.join(30)
    assert (shown.code, shown.out) == (4, ""), shown
    assert "is sealed, commit " in shown.err
    error = json.loads(shown.err.splitlines()[-1])
    assert error["detail"].startswith(f"The edge of press-shop does not open default/db: {TAKEN}")
    assert error["exit_code"] == 4
    listed = edgewright.ok("secret", "list", "press-shop")
    assert "refused" in listed.out
    assert f"Refused on the edge: default/db: {TAKEN}" in listed.err


def test_put_with_json_shows_one_document_once_it_is_opened(
    edgewright: CommandLine, centre: ServedCentre, sealed: UUID, edge_says: Callable[[Stage, str], threading.Thread]
) -> None:
    said = edge_says(Stage.OPENED, "")
    shown = edgewright.ok("secret", "put", *PLACE, "-", "--wait", "--json", typed="v")
    said.join(30)
    assert json.loads(shown.out) == {"commit": centre.centre.git.head(sealed), "edge_state": "opened"}


@pytest.mark.parametrize(("command", "change"), [("label", "app=press"), ("annotate", "note=n")])
def test_labels_and_annotations_wait_until_the_edge_has_them(
    edgewright: CommandLine,
    centre: ServedCentre,
    sealed: UUID,
    edge_says: Callable[[Stage, str], threading.Thread],
    command: str,
    change: str,
) -> None:
    said = edge_says(Stage.OPENED, "")
    edgewright.ok("secret", "put", *PLACE, "-", "--wait", typed="v")
    said.join(30)
    late = edgewright("secret", command, *PLACE[:2], change, "--wait", "--timeout", "0s")
    assert late.code == 5 and "press-shop has not changed default/db after" in late.err, late
    said = edge_says(Stage.OPENED, "")
    said.join(30)
    shown = edgewright.ok("secret", command, *PLACE[:2], change, "--wait", "--timeout", "30s")
    first, last = shown.out.splitlines()
    assert first.startswith(f"default/db {change.partition('=')[0]} of press-shop is changed, commit ")
    assert last.startswith("press-shop has changed default/db after ")
    told = edgewright.ok("secret", command, *PLACE[:2], change, "--wait", "--json")
    assert json.loads(told.out) == {"commit": centre.centre.git.head(sealed), "edge_state": "opened"}


def test_put_warns_of_a_namespace_that_is_missing_and_may_bring_it_along(
    edgewright: CommandLine, centre: ServedCentre, sealed: UUID
) -> None:
    async def report() -> None:
        admin = await centre.centre.operator(Permission.ADMIN)
        path = f"/v1/app/{STATUS_APP}/object/{sealed}"
        status = (await admin.get(path)).json()
        assert (await admin.put(path, json={**status, "namespaces": ["default"]})).is_success

    centre.do(report())
    warned = edgewright.ok("secret", "put", "press-shop", "line-1/db", "password", "-", typed="x")
    assert warned.err.startswith("Warning: The edge does not have the namespace line-1: ")
    assert warned.out.startswith("line-1/db password of press-shop is sealed, commit ")
    dry = edgewright.ok("secret", "put", "press-shop", "line-1/db", "password", "-", "--dry-run", typed="x")
    assert "namespace line-1" in dry.err
    assert edgewright.ok("secret", "put", *PLACE, "-", typed="x").err == ""
    brought = edgewright.ok(
        "secret", "put", "press-shop", "line-1/db", "password", "-", "--create-namespace", typed="x"
    )
    assert brought.err == ""
    head = centre.centre.git.head(sealed)
    assert head and centre.centre.git.read(sealed, "edo/secrets/line-1/namespace.yml", at=head)


def test_a_change_names_its_secret_where_names_are_asked_for(edgewright: CommandLine, sealed: UUID) -> None:
    for arguments in (
        ("put", *PLACE, "-", "--output=name"),
        ("label", "press-shop", "default/db", "app=press", "-o", "name"),
        ("delete", "press-shop", "default/db", "--all", "-o", "name"),
    ):
        assert edgewright.ok("secret", *arguments, typed="x").out == "default/db\n"
    put = edgewright.ok("secret", "put", *PLACE, "-", "--output", "yaml", typed="x")
    assert len(yaml.safe_load(put.out)["commit"]) == 40
