"""An edge's status that says of sealed secrets what its controller has made of what the repository holds."""

from typing import Any
from uuid import UUID

from edgewright.agent.opening import Opening, Stage, openings_to_json, sealing_digest
from edgewright.ports.git_server import GitServer
from edgewright.sealing import read_values


def opening(
    git: GitServer, cluster: UUID, stage: Stage, sentence: str = "", *, namespace: str = "default", name: str = "db"
) -> Opening:
    """What the agent sees of the newest sealing of a Secret."""
    head = git.head(cluster)
    assert head is not None
    document = git.read(cluster, f"edo/secrets/{namespace}/{name}.yaml", at=head)
    assert document is not None
    values = {key: value.ciphertext for key, value in read_values(document).items()}
    return Opening(namespace, name, sealing_digest(namespace, name, values), stage, sentence)


def saying(status: dict[str, Any], *openings: Opening) -> dict[str, Any]:
    """A status with that in it."""
    return {**status, "secrets": openings_to_json(openings)}
