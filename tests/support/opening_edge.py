"""An edge's status that says of sealed secrets what its controller has made of what the repository holds."""

from typing import Any
from uuid import UUID

from edgewright.agent.opening import Opening, Stage, openings_to_json, sealing_digest, template_digest
from edgewright.ports.git_server import GitServer
from edgewright.sealing import read_values
from edgewright.sealing.yaml_document import load_document


def opening(
    git: GitServer, cluster: UUID, stage: Stage, sentence: str = "", *, namespace: str = "default", name: str = "db"
) -> Opening:
    """What the agent sees of the newest sealing of a Secret."""
    head = git.head(cluster)
    assert head is not None
    document = git.read(cluster, f"edo/secrets/{namespace}/{name}.yaml", at=head)
    assert document is not None
    values = {key: value.ciphertext for key, value in read_values(document).items()}
    template = template_digest(load_document(document)["spec"]["template"])
    return Opening(namespace, name, sealing_digest(namespace, name, values), stage, sentence, template=template)


def of_earlier_version(status: dict[str, Any]) -> dict[str, Any]:
    """The same, of an agent that says nothing of templates."""
    said = {name: each for name, each in status["secrets"].items() if name != "templates"}
    return {**status, "secrets": {**said, "refused": [{**each, "template": None} for each in said["refused"]]}}


def saying(status: dict[str, Any], *openings: Opening) -> dict[str, Any]:
    """A status with that in it."""
    return {**status, "secrets": openings_to_json(openings)}
