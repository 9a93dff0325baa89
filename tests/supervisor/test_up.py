"""`edgewright up` with the real Temporal server, worker and gateway: started, looked at, refused, stopped."""

import os
import socket
from pathlib import Path

import pytest
from embedded import EmbeddedEdgewright
from supervised import Stage, eventually, living

from edgewright.cli.local import with_ports
from edgewright.cli.parts import temporal_part
from edgewright.settings import Settings

pytestmark = pytest.mark.timeout(300)


def test_fresh_home_gets_everything_and_stops_clean(edgewright: EmbeddedEdgewright) -> None:
    edgewright.variables = {}
    edgewright.up()
    said = edgewright.said()
    token = (edgewright.home / "admin-token").read_text().strip()
    pids = edgewright.children()

    assert set(pids) == {"temporal", "worker", "gateway"}
    assert edgewright.endpoints()["pid"] == edgewright.running.pid if edgewright.running else False
    assert edgewright.api("GET", "/readyz").status_code == 200
    assert edgewright.is_ready("demo")
    assert "commissioned in " in said
    assert str(edgewright.home / "admin-token") in said
    assert edgewright.endpoints()["temporal_ui"] in said
    assert token not in said + edgewright.logs()
    for path in (edgewright.home / "admin-token", edgewright.home / "temporal.db", edgewright.home / "edgewright.db"):
        assert path.stat().st_mode & 0o077 == 0, f"{path.name} is open to others"
    assert edgewright.home.stat().st_mode & 0o777 == 0o700

    doctor = edgewright.command("doctor")
    assert doctor.returncode == 0, doctor.stdout
    assert edgewright.interrupt() == 0
    assert not [pid for pid in pids.values() if living(pid)]
    assert not (edgewright.home / "endpoints.json").exists()
    assert "Traceback" not in edgewright.said()


def test_second_up_on_the_same_home_names_the_first(edgewright: EmbeddedEdgewright) -> None:
    edgewright.up()
    assert edgewright.running
    second = edgewright.command("up")
    assert second.returncode == 4
    assert f"process {edgewright.running.pid} has it" in second.stderr
    assert edgewright.api("GET", "/readyz").status_code == 200


def test_down_stops_it_from_another_terminal(edgewright: EmbeddedEdgewright) -> None:
    edgewright.up()
    assert edgewright.running
    down = edgewright.command("down")
    assert (down.returncode, down.stdout) == (0, "Stopped.\n")
    assert edgewright.running.wait(timeout=10) == 0
    assert edgewright.children() == {}


def test_existing_temporal_server_is_used_and_left_alone(edgewright: EmbeddedEdgewright, stage: Stage) -> None:
    server = temporal_part(with_ports(Settings(home=stage.home, gateway_port=0, temporal_port=0, temporal_ui_port=0)))
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
    assert edgewright.interrupt() == 0
    assert living(pid)


def test_existing_temporal_server_that_is_away_is_named(edgewright: EmbeddedEdgewright) -> None:
    refused = edgewright.command("up", EDGEWRIGHT_TEMPORAL_ADDRESS="127.0.0.1:1")
    assert refused.returncode == 5
    assert "127.0.0.1:1" in refused.stderr
    assert edgewright.children() == {}


def test_organisation_of_the_first_start_stays(edgewright: EmbeddedEdgewright) -> None:
    edgewright.up()
    assert edgewright.interrupt() == 0
    edgewright.variables["EDGEWRIGHT_ORGANISATION"] = "Other"
    refused = edgewright.command("up")
    assert refused.returncode == 4
    assert "fixed at its first start" in refused.stderr
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
    assert "temporal ended with exit code 7, 5 times" in refused.stderr
    assert f"{edgewright.home}/logs/temporal.log" in refused.stderr
    assert "the file is not a database" in refused.stderr
    assert edgewright.children() == {}
