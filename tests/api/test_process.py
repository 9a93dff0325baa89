"""The gateway as a process of its own: it starts without Temporal, and ends cleanly."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from free_ports import free_port
from loopback import PLAIN

from edgewright.adapters.git.bare import BareGitServer
from edgewright.domain.credentials import operator_token
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS


def wait_until_it_answers(process: "subprocess.Popen[bytes]", url: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        assert process.poll() is None
        try:
            if httpx.get(url, **PLAIN).status_code == 200:
                return
        except httpx.TransportError:
            assert time.monotonic() < deadline
        time.sleep(0.05)  # it is another process; nothing tells when it is ready but asking


def test_a_gateway_answers_without_temporal_and_ends_cleanly_with_its_streams(
    tmp_path: Path, fresh_database: Path
) -> None:
    shutil.copy(fresh_database, tmp_path / "edgewright.db")
    BareGitServer(tmp_path / "repositories").create_repository(REPOSITORY_HELM_CHARTS)
    port, wrong = free_port(), operator_token(b"8" * 8, b"3" * 32).text
    environment = {key: value for key, value in os.environ.items() if not key.startswith("EDGEWRIGHT_")}
    environment |= {
        "EDGEWRIGHT_HOME": str(tmp_path),
        "EDGEWRIGHT_GATEWAY_PORT": str(port),
        "EDGEWRIGHT_TEMPORAL_ADDRESS": f"127.0.0.1:{free_port()}",
    }
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "api"], cwd=tmp_path, env=environment, stdout=output, stderr=output
        )
        try:
            base = f"http://127.0.0.1:{port}"
            wait_until_it_answers(process, f"{base}/healthz")
            assert httpx.get(f"{base}/readyz", **PLAIN).json()["degraded"] == ["temporal"]
            refused = httpx.get(f"{base}/v1/cluster?secret={wrong}", **PLAIN)
            assert (refused.status_code, "server" in refused.headers) == (401, False)
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    lines = log.read_text("utf-8").splitlines()
    assert all(json.loads(line)["event"] for line in lines)
    assert wrong not in "".join(lines)


@pytest.mark.parametrize("program", ["api", "worker"])
def test_a_program_older_than_the_schema_leaves_with_a_sentence(
    tmp_path: Path, fresh_database: Path, program: str
) -> None:
    shutil.copy(fresh_database, tmp_path / "edgewright.db")
    with closing(sqlite3.connect(tmp_path / "edgewright.db")) as database, database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("EDGEWRIGHT_")}
    environment |= {"EDGEWRIGHT_HOME": str(tmp_path), "EDGEWRIGHT_GATEWAY_PORT": str(free_port())}
    command = [sys.executable, "-P", "-m", program]
    left = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert left.returncode == 1
    assert "The database has the schema 9999, of a newer Edgewright" in left.stdout + left.stderr
    assert "Traceback" not in left.stdout + left.stderr
