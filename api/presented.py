"""The credentials that a request brings, before anybody knows whether they are right."""

import base64
import binascii
from dataclasses import dataclass

from fastapi import Request

from edgewright.domain import credentials as spelling
from edgewright.errors import Unauthenticated

_READ = "presented_credentials"
"""Where they stand in a scope."""


@dataclass(frozen=True)
class Presented:
    """What the header ``Authorization`` holds. ``user`` None: a bearer."""

    user: str | None
    secret: str

    @property
    def is_of_an_edge(self) -> bool:
        """Whether the secret is spelled as those are that edges make."""
        try:
            spelling.parse_cluster_secret(self.secret)
        except Unauthenticated:
            return False
        return True


def presented_by(request: Request) -> Presented | None:
    """What a request presents, empty where it cannot be read; None: nothing. Read once for each request."""
    if _READ not in request.scope:
        request.scope[_READ] = presented_in(request.headers.get("authorization", ""))
    presented: Presented | None = request.scope[_READ]
    return presented


def presented_in(header: str) -> Presented | None:
    """The same, of the header ``Authorization``."""
    scheme, _, rest = header.partition(" ")
    match scheme.lower():
        case "bearer":
            return Presented(None, rest.strip())
        case "basic":
            try:
                user, _, secret = base64.b64decode(rest.strip(), validate=True).decode().partition(":")
            except (binascii.Error, ValueError):
                return Presented("", "")
            return Presented(user, secret)
        case _:
            return None
