"""`edgewright up` with the real Temporal server, worker and gateway: started, looked at, refused, stopped."""

import asyncio
import base64
import html
import json
import os
import re
import socket
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from embedded import EmbeddedEdgewright
from supervised import SupervisedHome, eventually, living

from edgewright.cli.clusters_page import COLUMNS_KEY
from edgewright.cli.initialise import initialise_storage
from edgewright.cli.local import with_ports
from edgewright.cli.parts import temporal_parts
from edgewright.messages.names import ATTRIBUTE_NAME, SWEEP_TYPE, WORKFLOW_TYPE
from edgewright.settings import Settings

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedEdgewright]:
    """One that was started on a fresh home, for tests that only look."""
    # A path as people have them, and worse: it becomes part of URLs, arguments and messages.
    running = EmbeddedEdgewright(tmp_path_factory.mktemp("running") / "home of #1 [50% ü]")
    try:
        running.up()
        yield running
    finally:
        running.clear_up()


def test_fresh_home_gets_everything(running: EmbeddedEdgewright) -> None:
    assert running.running
    assert set(running.children()) == {"temporal", "web-ui", "worker", "gateway"}
    assert running.endpoints()["pid"] == running.running.pid
    assert running.api("GET", "/readyz").json() == {"status": "ok", "degraded": []}
    assert running.is_ready("demo")


def test_what_is_said_shows_the_way_and_no_token(running: EmbeddedEdgewright) -> None:
    said = running.said()
    assert "commissioned in " in said
    assert str(running.home / "admin-token") in said
    for name in ("gateway", "temporal_ui"):
        assert running.endpoints()[name] in said
    assert (running.home / "admin-token").read_text().strip() not in said + running.logs()
    assert "\x1b" not in said, "plain text, because it does not go to a terminal"


def test_the_printed_link_shows_clusters_only_and_their_names(running: EmbeddedEdgewright) -> None:
    [link] = re.findall(r"Web UI +(http\S+)", running.said())
    ui, page = running.endpoints()["temporal_ui"], httpx.get(link, trust_env=False)
    [target] = re.findall(r'href="([^"]+)"', page.text)
    shown = httpx.URL(link).join(html.unescape(target))

    def listed(wanted: str) -> list[dict[str, Any]]:
        answer = httpx.get(f"{ui}/api/v1/namespaces/default/workflows", params={"query": wanted}, trust_env=False)
        executions: list[dict[str, Any]] = answer.json()["executions"]
        return executions

    eventually(lambda: SWEEP_TYPE in {each["type"]["name"] for each in listed("")}, seconds=60)
    clusters = listed(shown.params["query"])
    assert {each["type"]["name"] for each in clusters} == {WORKFLOW_TYPE}
    names = [each["searchAttributes"]["indexedFields"][ATTRIBUTE_NAME]["data"] for each in clusters]
    assert b'"demo"' in {base64.b64decode(name) for name in names}
    assert httpx.get(shown, trust_env=False).status_code == 200


def test_the_web_ui_keeps_its_columns_where_our_page_sets_them(running: EmbeddedEdgewright) -> None:
    ui = running.endpoints()["temporal_ui"]
    with httpx.Client(base_url=ui, trust_env=False) as client:
        [app] = re.findall(r"/_app/immutable/entry/app\.[\w-]+\.js", client.get("/").text)[:1]
        parts = set(re.findall(r"chunks/[\w-]+\.js", client.get(app).text))
        assert any(columns_are_kept(client.get(f"/_app/immutable/{part}").text) for part in sorted(parts))


def columns_are_kept(script: str) -> bool:
    own = {"Status", "Workflow ID", "Type", "Start", "End"}
    return COLUMNS_KEY in script and all(f'label:"{label}"' in script for label in own)


def test_nobody_else_can_read_what_is_in_the_home(running: EmbeddedEdgewright) -> None:
    assert running.home.stat().st_mode & 0o777 == 0o700
    for name in ("admin-token", "temporal.db", "edgewright.db", "endpoints.json", "logs/gateway.log"):
        assert (running.home / name).stat().st_mode & 0o077 == 0, f"{name} is open to others"


def test_nobody_but_this_machine_reaches_what_listens(running: EmbeddedEdgewright) -> None:
    heard = {
        part: [each.laddr.ip for each in psutil.Process(pid).net_connections() if each.status == psutil.CONN_LISTEN]
        for part, pid in running.children().items()
    }
    assert {part for part, addresses in heard.items() if addresses} >= {"temporal", "web-ui", "gateway"}
    assert [each for each in heard.items() if not all(ip_address(address).is_loopback for address in each[1])] == []


def test_doctor_finds_nothing_wrong_while_it_runs(running: EmbeddedEdgewright) -> None:
    doctor = running.command("doctor", "--json")
    findings = {check["name"]: check for check in json.loads(doctor.stdout)}
    assert [check for check in findings.values() if check["verdict"] == "wrong"] == []
    assert {"database", "admin token", "Temporal", "worker", "gateway"} <= set(findings)
    assert doctor.returncode == 0


def test_second_up_on_the_same_home_names_the_first(running: EmbeddedEdgewright) -> None:
    assert running.running
    second = running.command("up")
    assert second.returncode == 4
    assert f"process {running.running.pid} has it" in second.stderr
    assert running.api("GET", "/readyz").status_code == 200


def test_down_stops_everything_from_another_terminal(edgewright: EmbeddedEdgewright) -> None:
    edgewright.up()
    assert edgewright.running
    pids = edgewright.children().values()
    down = edgewright.command("down")
    assert (down.returncode, down.stdout) == (0, "Stopped.\n")
    assert edgewright.running.wait(timeout=10) == 0
    assert not [pid for pid in pids if living(pid)]
    assert not (edgewright.home / "endpoints.json").exists()


def test_existing_temporal_server_is_used_and_left_alone(
    edgewright: EmbeddedEdgewright, stage: SupervisedHome
) -> None:
    settings = with_ports(Settings(home=stage.home, gateway_port=0, temporal_port=0, temporal_ui_port=0))
    server, _ = temporal_parts(settings)
    stage.supervisor.start(server)
    stage.supervisor.wait_ready("temporal", seconds=60)
    pid = stage.supervisor.pid_of("temporal")
    assert pid
    address = f"127.0.0.1:{server.command[server.command.index('--port') + 1]}"

    edgewright.variables |= {"EDGEWRIGHT_TEMPORAL_ADDRESS": address, "EDGEWRIGHT_DEMO": "1"}
    edgewright.up()
    assert set(edgewright.children()) == {"worker", "gateway"}
    assert edgewright.endpoints()["temporal"] == address
    assert edgewright.is_ready("demo")
    ours = edgewright.children().values()
    assert edgewright.interrupt() == 0
    assert not [child for child in ours if living(child)]
    assert not (edgewright.home / "endpoints.json").exists()
    assert "Traceback" not in edgewright.said()
    assert living(pid)


def test_existing_temporal_server_that_is_away_is_named(edgewright: EmbeddedEdgewright) -> None:
    refused = edgewright.command("up", EDGEWRIGHT_TEMPORAL_ADDRESS="127.0.0.1:1")
    assert refused.returncode == 5
    assert "127.0.0.1:1" in refused.stderr
    assert edgewright.children() == {}


def test_other_organisation_than_that_of_the_first_start_is_refused(edgewright: EmbeddedEdgewright) -> None:
    edgewright.home.mkdir()
    asyncio.run(initialise_storage(Settings(home=edgewright.home, organisation="First")))
    refused = edgewright.command("up", EDGEWRIGHT_ORGANISATION="Other")
    assert refused.returncode == 4
    assert "EDGEWRIGHT_ORGANISATION=First" in refused.stderr
    assert edgewright.children() == {}


def test_wish_to_stop_during_the_start_is_granted(edgewright: EmbeddedEdgewright) -> None:
    edgewright.begin()
    eventually((edgewright.home / "processes.json").exists, seconds=30)
    assert edgewright.interrupt() == 0
    assert edgewright.children() == {}


def test_taken_port_is_an_error_that_names_who_has_it(edgewright: EmbeddedEdgewright) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = edgewright.command("up", EDGEWRIGHT_TEMPORAL_UI_PORT=str(port))
    assert refused.returncode == 4
    assert f"Port {port} is taken by " in refused.stderr
    assert f"(pid {os.getpid()})" in refused.stderr
    assert "EDGEWRIGHT_TEMPORAL_UI_PORT" in refused.stderr
    assert edgewright.children() == {}


def test_temporal_server_that_keeps_dying_ends_up_with_its_log_named(
    edgewright: EmbeddedEdgewright, tmp_path: Path
) -> None:
    program = tmp_path / "temporal"
    program.write_text("#!/bin/sh\necho the file is not a database\nexit 7\n")
    program.chmod(0o755)
    refused = edgewright.command("up", EDGEWRIGHT_TEMPORAL_BINARY=str(program))
    assert refused.returncode == 1
    assert "temporal exited with code 7, 5 times" in refused.stderr
    assert f"{edgewright.home}/logs/temporal.log" in refused.stderr
    assert "  Reason: the file is not a database\n" in refused.stderr
    assert edgewright.children() == {}
