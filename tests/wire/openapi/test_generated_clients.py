"""Clients that generators made of docs/openapi.json do an operator's work against a gateway."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from live_gateway import LiveGateway
from npm_packages import NODE
from python_packages import python_workshop
from sealing_keys import certificate_pem, open_envelope, private_key

from edgewright.ports.operators import Permission
from edgewright.sealing import read_values

pytestmark = pytest.mark.timeout(300)  # the first one on a machine installs packages

HERE = Path(__file__).parent
DOCUMENT = HERE.parents[2] / "docs" / "openapi.json"
VALUE = bytes([0, 10, 13, 127, 128, 255])
"""What the clients write as a secret: bytes that are no text."""
NOW = datetime.now(UTC)
KEY = private_key()
CERTIFICATE = certificate_pem(KEY, not_before=NOW - timedelta(days=1), not_after=NOW + timedelta(days=100))


@pytest.fixture(scope="module")
def typescript(workshop: Path) -> Path:
    """The folder of the program in TypeScript, with the types that were generated for it."""
    run(workshop, NODE, "generate_types.mjs", DOCUMENT)
    return workshop


@pytest.fixture(scope="module")
def programs() -> Path:
    """Where the generator of Python packages is, and a Python that has what these import."""
    return python_workshop(HERE / "requirements.txt")


@pytest.fixture(scope="module")
def python(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the program in Python, with the package that was generated for it: whole, or this fails."""
    folder = tmp_path_factory.mktemp("python")
    shutil.copy(HERE / "python_client.py", folder)
    generate = (programs / "openapi-python-client", "generate", "--path", DOCUMENT, "--output-path", "gateway_client")
    run(folder, *generate, "--meta", "none", "--config", HERE / "python_client.yaml", "--fail-on-warning")
    return folder


def run(folder: Path, *command: str | Path, environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_typescript_program_fits_the_generated_types(typescript: Path) -> None:
    run(typescript, NODE, "node_modules/.bin/tsc", "--project", ".")


def test_the_python_program_fits_the_generated_types(python: Path, programs: Path) -> None:
    strictly = ("--strict", "--config-file=", "--cache-dir", os.devnull)
    checked = ("--python-executable", programs / "python", "python_client.py")
    run(python, sys.executable, "-m", "mypy", *strictly, *checked, environment={"MYPYPATH": "."})


def test_a_generated_typescript_client_does_an_operators_work(live: LiveGateway, typescript: Path) -> None:
    told = json.loads(run(typescript, NODE, "typescript_client.ts", live.url, token(live), CERTIFICATE))
    check(live, told, "typescript")
    assert told["firstEvent"] == told["timeline"][0]


def test_a_generated_python_client_does_an_operators_work(live: LiveGateway, python: Path, programs: Path) -> None:
    told = json.loads(run(python, programs / "python", "python_client.py", live.url, token(live), CERTIFICATE))
    check(live, told, "python")


def token(live: LiveGateway) -> str:
    return live.run(live.centre.token(Permission.ADMIN)).text


def check(live: LiveGateway, told: Mapping[str, Any], language: str) -> None:
    created = told["created"]
    assert (created["name"], created["labels"], created["chart"]) == (language, {"language": language}, None)
    assert told["secret"]["status"] == 204
    assert sealed(live, UUID(created["uuid"]), language, told["secret"]["commit"]) == {"bytes": VALUE}
    written = {"statuses": [201, 204, 412], "late": "precondition_failed", "entry": {"name": "pump"}}
    assert told["conditional"] == written
    assert told["problem"] == {"status": 404, "code": "cluster_unknown", "named": True}
    kinds = [kind for kind in told["timeline"] if kind in {"cluster.created", "secret.put"}]
    assert kinds == ["cluster.created", "secret.put"]


def sealed(live: LiveGateway, cluster: UUID, name: str, commit: str) -> dict[str, bytes]:
    """The values of a Secret in a commit, opened with the edge's key."""
    document = live.centre.git.read(cluster, f"edo/secrets/default/{name}.yaml", at=commit)
    assert document is not None
    label = f"default/{name}".encode()
    return {key: open_envelope(value.ciphertext, KEY, label) for key, value in read_values(document).items()}
