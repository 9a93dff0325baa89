"""What a row says of a purge: whether a deletion takes what seals from the edge, and what came of it."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row

from edgewright.domain.cluster import Acceptance
from edgewright.domain.ended import Purge, left_on_edge

NO_PURGE: Mapping[str, None] = dict.fromkeys(("purge", "purged", "purge_problem"))


def purge_from(row: Row[Any]) -> Purge:
    """As it is stored."""
    return Purge(asked=bool(row.purge), done=row.purged, problem=row.purge_problem or "")


def left_at_end(row: Row[Any]) -> str:
    """What is left on the edge once nothing more is to be heard of it; see ``left_on_edge``."""
    return left_on_edge(purge_from(row), Acceptance(row.acceptance), over=True)
