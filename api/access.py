"""What every door works with: it tells who is calling, and bounds what strangers and callers may take."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from api.allowances import Allowance
from api.arrivals import Arrivals
from api.connections.places import Places
from api.metrics import Metrics
from api.operator_time import OperatorTime
from api.wrong_credentials import WrongCredentials
from edgewright.ports.edge_access import EdgeAccess
from edgewright.ports.operators import OperatorTokens


@dataclass(frozen=True)
class Access:
    """The ports and bounds that every door of one gateway works with.

    Args:
        cors_origins: origins whose pages may speak to the gateway; ``*`` for every one.
        places: what connections hold; the caller decides for whom one counts.
        edge_bodies: what each cluster may send in a while.
    """

    edge_access: EdgeAccess
    operators: OperatorTokens
    cors_origins: tuple[str, ...]
    places: Places
    edge_bodies: Allowance
    metrics: Metrics
    arrivals: Arrivals
    operator_time: OperatorTime
    wrong_credentials: WrongCredentials


def access_in(request: Request) -> Access:
    """That of the application that serves this request."""
    access: Access = request.app.state.access
    return access


async def access_of(request: Request) -> Access:
    """``access_in`` as a dependency. Not a plain function: those run in threads."""
    return access_in(request)


TheAccess = Annotated[Access, Depends(access_of)]
