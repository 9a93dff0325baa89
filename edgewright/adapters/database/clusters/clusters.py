"""The registry of clusters, put together from its sides."""

from edgewright.adapters.database.clusters.cluster_configuration import ClusterConfiguration
from edgewright.adapters.database.clusters.cluster_ending import ClusterEnding
from edgewright.adapters.database.clusters.cluster_lists import ClusterLists
from edgewright.adapters.database.clusters.cluster_progress import ClusterProgress
from edgewright.adapters.database.clusters.cluster_reading import ClusterReading


class SqlClusters(ClusterConfiguration, ClusterEnding, ClusterReading, ClusterLists, ClusterProgress):
    """Implements ``Clusters``. Made with the ``Database``, as its first side is."""
