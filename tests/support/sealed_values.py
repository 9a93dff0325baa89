"""What tests of secrets share: a sealing key of an edge, its status, and what a repository holds, opened with it."""

import fcntl
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from uuid import UUID

from gateway_centre import GatewayCentre
from sealing_keys import certificate_pem, open_envelope, private_key

from edgewright.adapters.git.refs import WRITER_LOCK
from edgewright.sealing import read_values

KEY = private_key()
CERTIFICATE = certificate_pem(
    KEY, not_before=datetime.now(UTC) - timedelta(days=1), not_after=datetime.now(UTC) + timedelta(days=100)
)
STATUS = {"hosts": [{"hostname": "node-1"}], "kubeseal_cert": CERTIFICATE}


def in_git(centre: GatewayCentre, cluster: UUID, namespace: str, name: str) -> dict[str, bytes]:
    """The values of a Secret, opened with the edge's key."""
    head = centre.git.head(cluster)
    assert head is not None
    document = centre.git.read(cluster, f"edo/secrets/{namespace}/{name}.yaml", at=head)
    if document is None:
        return {}
    label = f"{namespace}/{name}".encode()
    return {key: open_envelope(value.ciphertext, KEY, label) for key, value in read_values(document).items()}


@contextmanager
def nobody_commits(centre: GatewayCentre, cluster: UUID) -> Iterator[None]:
    """Somebody else writes to the repository all the time, and Temporal is away."""
    centre.fleet.available = False
    with (centre.git.folder(cluster) / WRITER_LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    centre.fleet.available = True


def path(cluster: UUID, key: str = "password", name: str = "db", namespace: str = "default") -> str:
    return f"/v1/cluster/{cluster}/secret/{namespace}/{name}/{key}"


def change(name: str, key: str, value: bytes | None) -> dict[str, object]:
    place = {"namespace": "default", "name": name, "key": key}
    return {**place, "delete": True} if value is None else {**place, "value_base64": b64encode(value).decode()}
