"""Clients that generators made of docs/openapi.json do an operator's work against a gateway."""

import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from live_gateway import LiveGateway
from npm_packages import NODE
from sealing_keys import certificate_pem, open_envelope, private_key

from edgewright.ports.operators import Permission
from edgewright.sealing import read_values

DOCUMENT = Path(__file__).parents[3] / "docs" / "openapi.json"
VALUE = bytes([0, 10, 13, 127, 128, 255])
"""What the clients write as a secret: bytes that are no text."""
NOW = datetime.now(UTC)
KEY = private_key()
CERTIFICATE = certificate_pem(KEY, not_before=NOW - timedelta(days=1), not_after=NOW + timedelta(days=100))


@pytest.fixture(scope="module")
def token(live: LiveGateway) -> str:
    return live.run(live.centre.token(Permission.ADMIN)).text


@pytest.fixture(scope="module")
def typescript(workshop: Path) -> Path:
    """The program in TypeScript, beside the types that were generated for it."""
    node(workshop, "generate_types.mjs", str(DOCUMENT))
    return workshop / "typescript_client.ts"


def node(workshop: Path, *command: str) -> str:
    done = subprocess.run([NODE, *command], cwd=workshop, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def sealed_for(live: LiveGateway, cluster: UUID, name: str, commit: str) -> dict[str, bytes]:
    """The values of a Secret in a commit, opened with the edge's key."""
    document = live.centre.git.read(cluster, f"edo/secrets/default/{name}.yaml", at=commit)
    assert document is not None
    label = f"default/{name}".encode()
    return {key: open_envelope(value.ciphertext, KEY, label) for key, value in read_values(document).items()}


def test_the_typescript_program_fits_the_generated_types(workshop: Path, typescript: Path) -> None:
    node(workshop, "node_modules/.bin/tsc", "--project", ".")


def test_a_generated_typescript_client_does_an_operators_work(
    live: LiveGateway, token: str, workshop: Path, typescript: Path
) -> None:
    told: dict[str, Any] = json.loads(node(workshop, typescript.name, live.url, token, CERTIFICATE))
    cluster = UUID(told["created"].pop("uuid"))
    assert told["created"] == {"name": "typescript", "labels": {"language": "typescript"}, "chart": None}
    assert told["secret"]["status"] == 204
    assert sealed_for(live, cluster, "typescript", told["secret"]["commit"]) == {"bytes": VALUE}
    assert told["conditional"] == {
        "statuses": [201, 204, 412],
        "late": "precondition_failed",
        "entry": {"name": "pump"},
    }
    assert told["problem"] == {"status": 404, "code": "cluster_unknown", "named": True}
    kinds = [kind for kind in told["timeline"] if kind in {"cluster.created", "secret.put"}]
    assert kinds == ["cluster.created", "secret.put"]
    assert told["firstEvent"] == told["timeline"][0]
