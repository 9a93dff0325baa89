"""What the contract suite of the fleet stands on."""

from dataclasses import dataclass
from uuid import UUID, uuid4

from edgewright.ports.clusters import Clusters
from edgewright.ports.fleet import Fleet
from edgewright.ports.secret_staging import SecretStaging


@dataclass
class Stage:
    """A fleet, and the stores that it stands before."""

    fleet: Fleet
    clusters: Clusters
    staging: SecretStaging

    async def written(self, name: str) -> UUID:
        """A cluster that was written and of which no workflow knows."""
        cluster = uuid4()
        body = {"name": name, "namespace": "edgewright"}
        await self.clusters.write_configuration(cluster, body, actor="token:test", create_object=True)
        return cluster
