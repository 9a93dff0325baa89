"""Likely mistakes, each with the message that it gets: the one that docs/troubleshooting.md shows."""

import asyncio
import os
import re
import signal
import socket
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import psutil
import pytest
from command_line import CommandLine, Shown
from cryptography.hazmat.primitives.asymmetric import rsa
from desk import EDGE_STATUS
from embedded import EmbeddedEdgewright
from free_ports import free_port
from lone_gateway import FULL, LoneGateway, lone_gateway
from sealing_keys import certificate_pem, private_key
from supervised import eventually

from edgewright.application.edge_status import EdgeStatusDoor
from edgewright.cli.commands import sending
from edgewright.cli.home import holder
from edgewright.domain.cluster import Fence, StepName
from edgewright.settings import Settings
from edgewright.wiring import open_ports

CHECKOUT = Path(__file__).parents[2]
DOCUMENT = CHECKOUT / "docs" / "troubleshooting.md"
MISTAKES = {
    "A port is taken",
    "There is no git",
    "The token is wrong",
    "The gateway is down",
    "The name cannot be used",
    "The values do not fit the chart",
    "The cluster is unknown",
    "The namespace is reserved",
    "The sealing certificate is refused",
    "Temporal is dead",
    "The disk is full",
    "Two `up` on one home",
}
FOUND_BY_OTHER_TESTS = {
    "Somebody else has changed the cluster": (("precondition_failed", "tests/api/test_named_clusters.py"),),
    "429 `too_many_requests`": (("too_many_requests", "tests/api/test_operator_turns.py"),),
    "429 or 503 `too_many_connections`, or 408 `request_timeout`": (
        ("too_many_connections", "tests/api/connections/test_crowds.py"),
        ("request_timeout", "tests/api/connections/test_deadlines.py"),
    ),
    "429 or 503 `event_streams_busy`": (("event_streams_busy", "tests/api/test_progress.py"),),
    "The values cannot be delivered": (("values_undeliverable", "tests/api/test_config_store.py"),),
    "The entry would have no effect": (("entry_without_effect", "tests/api/test_config_store.py"),),
    "The namespace cannot be changed": (("namespace_immutable", "tests/api/test_edge.py"),),
    "An edge changes its certificate too often": (
        ("edge_changes_too_often", "tests/contracts/database/test_status_events.py"),
    ),
    "The edge does not have the namespace": (("Edgewright-Warning", "tests/api/test_secret_namespaces.py"),),
    "The edge does not take secrets in more namespaces": (
        ("too_many_namespaces", "tests/api/test_secret_namespaces.py"),
    ),
    "A repository is damaged, or has lost its HEAD": (
        ("repository_damaged", "tests/unit/git/test_bare.py"),
        ("repository_headless", "tests/unit/git/test_bare.py"),
    ),
    "The edge does not open a secret": (
        ("secret.edge_refused", "tests/contracts/database/test_status_events.py"),
        ("secret_state_unknown", "tests/unit/cli_commands/test_secret_waiting.py"),
    ),
    "The edge stays `Unknown`": (
        ("LeaseExpired", "tests/real/edge/test_agent.py"),
        ("NoHeartbeat", "tests/unit/lifecycle/test_conditions.py"),
        ("refused_by_centre", "tests/unit/agent/test_centre.py"),
        ("centre_away", "tests/unit/agent/test_centre.py"),
        ("centre_busy", "tests/unit/agent/test_centre.py"),
    ),
    "The agent's pod shows `ImagePullBackOff`": (
        ("EDGEWRIGHT_AGENT_PULL_SECRET", "tests/real/edge/test_lesser_rights.py"),
    ),
    "`x509`, or `centre_untrusted`": (("centre_untrusted", "tests/real/edge/whole/test_way_out.py"),),
    "Flux cannot fetch: `FetchFailed`": (("FetchFailed", "tests/real/edge/test_agent.py"),),
    "Something is missing on the edge": (
        ("DriverMissing", "tests/api/test_absence.py"),
        ("FluxSilent", "tests/api/test_absence.py"),
        ("CannotBeKnown", "tests/api/test_absence.py"),
        ("AgentSecretMissing", "tests/api/test_absence.py"),
        ("RightMissing", "tests/unit/lifecycle/test_absence.py"),
        ("rotation_impossible", "tests/api/test_absence.py"),
    ),
    "A Secret's type, labels or annotations are refused": (
        ("secret_type_immutable", "tests/api/test_secret_templates.py"),
        ("secret_keys_missing", "tests/api/test_secret_templates.py"),
        ("secret_value_invalid", "tests/api/test_secret_templates.py"),
        ("secret_type_invalid", "tests/api/test_secret_templates.py"),
        ("secret_label_invalid", "tests/api/test_secret_templates.py"),
        ("secret_annotation_invalid", "tests/api/test_secret_templates.py"),
        ("secret_metadata_reserved", "tests/api/test_secret_templates.py"),
        ("sealed_secret_malformed", "tests/workflows/test_secrets.py"),
    ),
    "The timeline says `git.drifted`": (("git.drifted", "tests/workflows/test_drift.py"),),
    "A signal from Temporal changes nothing": (
        ("signal.unknown", "tests/workflows/test_refused_signals.py"),
        ("delete.refused", "tests/workflows/test_refused_signals.py"),
        ("edge_status.refused", "tests/workflows/test_refused_signals.py"),
        ("sealing_key.refused", "tests/workflows/test_refused_signals.py"),
        ("signals.dropped", "tests/workflows/test_refused_signals.py"),
    ),
}
"""Chapters about what no command shows: each code that they explain, and the test that provokes it."""
UP = "./bin/edgewright up"
PUT = "./bin/edgewright secret put press-shop default/db password @password.txt"

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[EmbeddedEdgewright]:
    """A machine on which `up` is typed."""
    machine = EmbeddedEdgewright(tmp_path / "home", {"EDGEWRIGHT_DEMO": "0"})
    yield machine
    machine.clear_up()


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoneGateway]:
    """A gateway whose Temporal is dead, with one cluster."""
    with lone_gateway(tmp_path_factory.mktemp("lone") / "home") as gateway:
        assert gateway.api("POST", "/v1/cluster", json={"name": "press-shop"}).status_code == 201
        yield gateway


@pytest.fixture
def edgewright(gateway: LoneGateway, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    monkeypatch.chdir(CHECKOUT)
    return CommandLine(dict(gateway.environment))


def test_document_shows_these_mistakes() -> None:
    assert set(shown_in_document()) == MISTAKES | set(FOUND_BY_OTHER_TESTS)
    for heading, codes in FOUND_BY_OTHER_TESTS.items():
        for code, test in codes:
            assert f"`{code}`" in sections()[heading]
            assert code in (CHECKOUT / test).read_text("utf-8"), f"{test} provokes no {code}"


def test_taken_port(machine: EmbeddedEdgewright) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = machine.command("up", EDGEWRIGHT_GATEWAY_PORT=str(port))
    who = f"{psutil.Process().name()} (pid {os.getpid()})"
    assert refused.returncode == 4
    is_documented("A port is taken", UP, refused.stderr, {f"Port {port}": "Port 8484", who: "nginx (pid 812)"})
    assert machine.children() == {}


def test_no_git(machine: EmbeddedEdgewright, tmp_path: Path) -> None:
    refused = machine.command("up", PATH=str(tmp_path))
    assert refused.returncode == 1
    is_documented("There is no git", UP, refused.stderr)
    assert not machine.home.exists()


def test_wrong_token(edgewright: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "token"
    command = "./bin/edgewright cluster list"
    missing = edgewright("cluster", "list", EDGEWRIGHT_TOKEN_FILE=str(file))
    assert missing.code == 6
    is_documented("The token is wrong", command, missing.err, {str(file): "/srv/token"}, block=1)
    file.write_text(f"ew_0123456789abcdef_{'A' * 43}\n")
    wrong = edgewright("cluster", "list", EDGEWRIGHT_TOKEN_FILE=str(file))
    assert wrong.code == 6
    is_documented("The token is wrong", command, wrong.err)


def test_gateway_that_is_down(edgewright: CommandLine, tmp_path: Path) -> None:
    here = CommandLine({"EDGEWRIGHT_HOME": str(tmp_path), "EDGEWRIGHT_CONFIG": str(tmp_path)})("cluster", "list")
    assert here.code == 5
    local = {str(tmp_path): "/srv/edgewright"}
    is_documented("The gateway is down", "./bin/edgewright cluster list", here.err, local)
    url = f"http://127.0.0.1:{free_port()}"
    elsewhere = edgewright("cluster", "list", EDGEWRIGHT_URL=url)
    assert elsewhere.code == 5
    command = "EDGEWRIGHT_URL=http://127.0.0.1:8484 ./bin/edgewright cluster list"
    is_documented("The gateway is down", command, elsewhere.err, {url: "http://127.0.0.1:8484"})


def test_bad_name(edgewright: CommandLine, gateway: LoneGateway) -> None:
    for name, code in (("press shop", 2), ("Press-Shop", 4)):
        refused = edgewright("cluster", "create", name)
        assert (refused.code, refused.out) == (code, "")
        quoted = f"'{name}'" if " " in name else name
        is_documented("The name cannot be used", f"./bin/edgewright cluster create {quoted}", refused.err)
    answer = gateway.api("POST", "/v1/cluster", json={"name": "press shop"})
    assert (answer.status_code, answer.json()["code"]) == (422, "name_invalid")


def test_values_that_do_not_fit(edgewright: CommandLine, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("sealed-secret: {enabled: false}\n")
    refused = edgewright("cluster", "create", "press-shop", "--values", str(values))
    assert refused.code == 2
    command = "./bin/edgewright cluster create press-shop --values values.yaml"
    is_documented("The values do not fit the chart", command, refused.err)


def test_unknown_cluster(edgewright: CommandLine) -> None:
    unknown = edgewright("cluster", "show", "pres-shop")
    assert unknown.code == 3
    is_documented("The cluster is unknown", "./bin/edgewright cluster show pres-shop", unknown.err)


async def end(gateway: LoneGateway, cluster: UUID) -> str:
    """Ends a cluster, as the last step of its deletion does; returns when."""
    async with open_ports(Settings(home=gateway.home)) as ports:
        row = await ports.wishes.request_deletion(cluster, actor="test", force=True)
        fence = Fence(cluster=cluster, generation=row.generation, change=row.change)
        await ports.steps.remove_central_entries(fence, StepName.REMOVE_SETUP_STATUS)
        ended = await ports.directory.get(cluster)
    assert ended is not None
    assert ended.closed_at is not None
    return f"{ended.closed_at:%Y-%m-%dT%H:%M:%SZ}"


def test_deleted_cluster(edgewright: CommandLine, gateway: LoneGateway) -> None:
    uuid = gateway.api("POST", "/v1/cluster", json={"name": "old-shop"}).json()["uuid"]
    at = asyncio.run(end(gateway, UUID(uuid)))
    gone = edgewright("cluster", "show", "old-shop")
    assert gone.code == 3
    shown = {at: "2026-01-31T12:00:00Z", uuid: "05194035-8ee5-56f1-95fa-86bca267c5c1"}
    is_documented("The cluster is unknown", "./bin/edgewright cluster show old-shop", gone.err, shown)


def test_reserved_namespace(edgewright: CommandLine, gateway: LoneGateway, tmp_path: Path) -> None:
    value = tmp_path / "value"
    value.write_text("s3cr3t")
    refused = edgewright("secret", "put", "press-shop", "edgewright/db", "password", f"@{value}")
    assert refused.code == 2
    is_documented("The namespace is reserved", PUT.replace("default/db", "edgewright/db"), refused.err)
    section = sections()["The namespace is reserved"]
    uuid = gateway.api("GET", "/v1/cluster", params={"name": "press-shop"}).json()["items"][0]["uuid"]
    for namespace in ("kube-system", "flux-system"):
        answer = gateway.api("PUT", f"/v1/cluster/{uuid}/secret/{namespace}/db/password", content=b"s3cr3t")
        assert f"{answer.status_code} `{answer.json()['code']}`" in section
        assert f"`{namespace}`" in section


async def report_as_edge(gateway: LoneGateway, cluster: UUID, status: Mapping[str, object]) -> None:
    """Takes a status as that of an edge: none can be attached while Temporal is dead."""
    async with open_ports(Settings(home=gateway.home)) as ports:
        door = EdgeStatusDoor(ports.directory, ports.edge_reports, ports.config)
        await door.record(cluster, status, merge=False, actor="agent", generation=1)


def test_bad_certificate(edgewright: CommandLine, gateway: LoneGateway, tmp_path: Path) -> None:
    uuid = gateway.api("POST", "/v1/cluster", json={"name": "certified"}).json()["uuid"]
    path = f"/v1/app/{EDGE_STATUS}/object/{uuid}"
    now = datetime.now(UTC)
    until = datetime(2026, 1, 31, 12, tzinfo=UTC)
    expired = certificate_pem(private_key(), not_before=until - timedelta(days=30), not_after=until)
    small = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    weak = certificate_pem(small, not_before=now - timedelta(days=1), not_after=now + timedelta(days=1))
    value = tmp_path / "value"
    value.write_text("s3cr3t")
    section = sections()["The sealing certificate is refused"].replace("press-shop", "certified")
    for certificate in ("-----BEGIN", expired, weak):
        status = {"hosts": [{"hostname": "a"}], "kubeseal_cert": certificate}
        by_hand = gateway.api("PUT", path, json=status)
        assert by_hand.status_code == 422
        assert f"`{by_hand.json()['code']}`" in section
        asyncio.run(report_as_edge(gateway, UUID(uuid), status))
        refused = edgewright("secret", "put", "certified", "default/db", "password", f"@{value}")
        assert refused.code == 5
        is_documented("The sealing certificate is refused", PUT, refused.err, {"certified": "press-shop"})
        events = gateway.api("GET", f"/v1/cluster/{uuid}/timeline").json()["items"]
        messages = [event["message"] for event in events if event["kind"] == "certificate.refused"]
        assert f"`{messages[-1]}`" in section
    good = certificate_pem(private_key(), not_before=now - timedelta(days=1), not_after=now + timedelta(days=1))
    gateway.api("PUT", path, json={"hosts": [], "kubeseal_cert": good})
    kept = gateway.api("GET", f"/v1/cluster/{uuid}").json()["certificate"]
    assert gateway.api("PUT", path, json={"hosts": [], "kubeseal_cert": expired}).status_code == 422
    assert gateway.api("GET", f"/v1/cluster/{uuid}").json()["certificate"] == kept


def test_dead_temporal(
    edgewright: CommandLine, gateway: LoneGateway, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sending, "PATIENCE_SECONDS", 1.0)
    ready = gateway.api("GET", "/readyz")
    assert ready.status_code == 200
    is_documented("Temporal is dead", "curl -s http://127.0.0.1:8484/readyz", ready.text)
    late = edgewright("cluster", "create", "line-3", "--wait", "--timeout", "1s")
    assert late.code == 5
    command = "./bin/edgewright cluster create line-3 --wait --timeout 1s"
    is_documented("Temporal is dead", command, last_words(late))

    uuid = gateway.api("GET", "/v1/cluster", params={"name": "line-3"}).json()["items"][0]["uuid"]
    now = datetime.now(UTC)
    good = certificate_pem(private_key(), not_before=now - timedelta(days=1), not_after=now + timedelta(days=1))
    gateway.api("PUT", f"/v1/app/{EDGE_STATUS}/object/{uuid}", json={"hosts": [], "kubeseal_cert": good})
    answer = gateway.api("PUT", f"/v1/cluster/{uuid}/secret/default/db/password", content=b"s3cr3t")
    assert (answer.status_code, answer.json()["code"]) == (503, "commit_unconfirmed")
    assert int(answer.headers["Retry-After"]) > 0
    value = tmp_path / "value"
    value.write_text("s3cr3t")
    unconfirmed = edgewright("secret", "put", "line-3", "default/db", "password", f"@{value}")
    assert unconfirmed.code == 5
    is_documented("Temporal is dead", PUT.replace("press-shop", "line-3"), last_words(unconfirmed))
    assert gateway.api("DELETE", f"/v1/cluster/{uuid}").status_code == 202


def test_temporal_elsewhere_that_does_not_answer(machine: EmbeddedEdgewright) -> None:
    address = f"127.0.0.1:{free_port()}"
    refused = machine.command("up", EDGEWRIGHT_TEMPORAL_ADDRESS=address)
    assert refused.returncode == 5
    command = f"EDGEWRIGHT_TEMPORAL_ADDRESS=127.0.0.1:7233 {UP}"
    is_documented("Temporal is dead", command, refused.stderr, {address: "127.0.0.1:7233"})
    assert machine.children() == {}


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CHECKOUT)
    monkeypatch.setattr(sending, "PATIENCE_SECONDS", 0.5)
    home = tmp_path / "home"
    values = tmp_path / "values.yaml"
    values.write_text(f"global: {{note: {'long' * 25_000}}}\n")
    with lone_gateway(home, full_disk=True) as gateway:
        full = CommandLine(dict(gateway.environment))("cluster", "create", "press-shop", "--values", str(values))
        assert full.code == 5
        command = "./bin/edgewright cluster create press-shop"
        is_documented("The disk is full", command, last_words(full), {str(home): "/srv/edgewright"})
        body = {"name": "press-shop", "values": {"global": {"note": "long" * 25_000}}}
        answer = gateway.api("POST", "/v1/cluster", json=body)
        assert (answer.status_code, answer.json()["code"]) == (503, "disk_full")
        assert gateway.api("GET", "/v1/cluster").json()["items"] == [], "reading goes on, and nothing is half there"


def test_up_on_a_full_disk(machine: EmbeddedEdgewright, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "sitecustomize.py").write_text(FULL)
    refused = machine.command("up", PYTHONPATH=str(tmp_path / "full"))
    assert refused.returncode == 5
    is_documented("The disk is full", UP, refused.stderr, {str(machine.home): "/srv/edgewright"})
    assert machine.children() == {}


def test_two_up_on_one_home(machine: EmbeddedEdgewright) -> None:
    machine.begin()
    assert machine.running
    first = machine.running.pid
    eventually(lambda: holder(machine.home) == first, seconds=60)
    second = machine.command("up")
    assert second.returncode == 4
    told = {str(machine.home): "/srv/edgewright", f"process {first}": "process 4711"}
    is_documented("Two `up` on one home", UP, second.stderr, told)
    assert not machine.ended()
    machine.running.send_signal(signal.SIGINT)
    assert machine.running.wait(timeout=60) == 0


def is_documented(
    mistake: str, command: str, said: str, names: Mapping[str, str] | None = None, *, block: int = 0
) -> None:
    """The document shows exactly this output for a command.

    Args:
        names: what stands here for what the document has in its place.
        block: which one, if the document shows the command more than once.
    """
    for here, there in (names or {}).items():
        assert here in said, said
        said = said.replace(here, there)
    assert shown_in_document()[mistake][command][block] == said.strip()


def last_words(shown: Shown) -> str:
    """Sentence and hint, without the progress before them."""
    return shown.err[shown.err.rindex("edgewright: ") :]


def sections() -> dict[str, str]:
    """The chapters of the document by their headings."""
    _, *chapters = re.split(r"^## ", DOCUMENT.read_text("utf-8"), flags=re.MULTILINE)
    return {chapter.partition("\n")[0]: chapter for chapter in chapters}


def shown_in_document() -> dict[str, dict[str, list[str]]]:
    """What each chapter shows: outputs by command."""
    shown: dict[str, dict[str, list[str]]] = {}
    for heading, chapter in sections().items():
        commands = shown.setdefault(heading, {})
        for command, output in re.findall(r"^```console\n\$ (.*)\n((?:.*\n)*?)```$", chapter, re.MULTILINE):
            commands.setdefault(command, []).append(output.strip())
    return shown
