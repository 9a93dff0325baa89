"""What the contract suite of the fleet stands on."""

from dataclasses import dataclass
from uuid import UUID, uuid4

from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.cluster_wishes import ClusterWishes
from edgewright.ports.fleet import Fleet
from edgewright.ports.secret_staging import SecretStaging


@dataclass
class FleetStage:
    """A fleet, and the stores that it stands before."""

    fleet: Fleet
    wishes: ClusterWishes
    directory: ClusterDirectory
    staging: SecretStaging

    async def written(self, name: str) -> UUID:
        """A cluster that was written and of which no workflow knows."""
        cluster = uuid4()
        body = {"name": name, "namespace": "edgewright"}
        await self.wishes.write_configuration(cluster, body, actor="token:test", create_object=True)
        return cluster
