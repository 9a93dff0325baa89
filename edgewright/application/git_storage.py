"""What every writer of repositories has to think of: a folder that is not ours, and others who are faster."""

from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.errors import Waiting
from edgewright.ports.git_server import GitServer, HeadMoved

CAS_ATTEMPTS = 20
"""Each lost race means that somebody else has committed: a push, or secrets of the same cluster."""


def demand_storage(git: GitServer) -> None:
    """Refuses a folder that is not our Git storage, such as the place of a volume that is not mounted. Blocks.

    A repository made there would be gone with the mount; one that is missed there would count as taken away.

    Raises:
        Waiting: code ``git_storage_empty``.
    """
    if not git.exists(REPOSITORY_HELM_CHARTS):
        raise Waiting(
            "The Git storage is empty: not even the shared charts, which every start puts there, are in it.",
            code="git_storage_empty",
            retry_after=5.0,
            hint="Mount its volume, or restore a backup.",
        )


def lost_every_race() -> HeadMoved:
    """What is raised after ``CAS_ATTEMPTS``."""
    return HeadMoved("The repository is too busy; the commit lost every race.", retry_after=1.0)
