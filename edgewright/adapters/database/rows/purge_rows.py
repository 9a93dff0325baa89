"""What a row says of a purge: whether a deletion takes what seals from the edge, and what came of it."""

from edgewright.adapters.database.rows.cluster_record import ClusterRecord
from edgewright.domain.ended import Purge, left_on_edge


def purge_from(row: ClusterRecord) -> Purge:
    """As it is stored."""
    return Purge(asked=bool(row.purge), done=row.purged, problem=row.purge_problem or "")


def left_at_end(row: ClusterRecord) -> str:
    """What is left on the edge once nothing more is to be heard of it; see ``left_on_edge``."""
    return left_on_edge(purge_from(row), row.acceptance, over=True)
