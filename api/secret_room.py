"""What the routes of secrets and of re-sealing work with."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from api.nudges import Nudges
from api.secret_lane import SecretLanes
from edgewright.application.secret_commits import SecretCommits
from edgewright.application.secret_wishes import SecretWishes
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.git_server import GitServer
from edgewright.ports.resealing import Resealings
from edgewright.ports.secret_staging import SecretStaging


@dataclass(frozen=True)
class SecretRoom:
    """What the secret routes of one gateway work with."""

    directory: ClusterDirectory
    git: GitServer
    staging: SecretStaging
    resealings: Resealings
    secret_wishes: SecretWishes
    secret_commits: SecretCommits
    secret_lane: SecretLanes
    nudges: Nudges


async def secret_room_of(request: Request) -> SecretRoom:
    """Returns that of this request's application. Async, because FastAPI runs plain functions in threads."""
    room: SecretRoom = request.app.state.secret_room
    return room


TheSecretRoom = Annotated[SecretRoom, Depends(secret_room_of)]
