"""Query parameters: unknown ones are refused, and flags are read.

Without this, a misspelt filter would list everything, and a misspelt ``dryrun`` would store a secret.
"""

import re
from collections.abc import Iterator
from difflib import get_close_matches

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from edgewright.errors import Invalid

OURS = "/v1/"
"""How the paths begin whose parameters are checked."""
STORE_TAG = "config store"
"""Routes that clients of ACS use: a search takes any parameter, and the others ignore what they do not know."""
_SPELLED = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,31}")
"""Names that an answer repeats. A token that was pasted into the URL is longer."""


def refuse_unknown_query(request: Request) -> None:
    """Refuses query parameters that the route does not declare.

    Raises:
        Invalid: code ``query_unknown``.
    """
    route = request.scope.get("route")
    if not request.scope["query_string"] or not isinstance(route, APIRoute):
        return
    if not route.path_format.startswith(OURS) or STORE_TAG in route.tags:
        return
    known = sorted(set(_declared(route.dependant)))
    for name in request.query_params:
        if name not in known:
            raise _unknown(name, known)


def is_on(flag: str | None, name: str) -> bool:
    """Whether a flag is set. A value that has no meaning is refused: a guess could store a secret.

    Raises:
        Invalid: code ``request_invalid``.
    """
    match None if flag is None else flag.lower():
        case None | "false" | "0":
            return False
        case "" | "true" | "1":
            return True
        case _:
            raise Invalid(f"{name} is true or false.", code="request_invalid", where=f"query {name}")


def _declared(dependant: Dependant) -> Iterator[str]:
    yield from (field.alias for field in dependant.query_params)
    for dependency in dependant.dependencies:
        yield from _declared(dependency)


def _unknown(name: str, known: list[str]) -> Invalid:
    named = f"{name} is" if _SPELLED.fullmatch(name) else "The URL has a query parameter that is"
    close = get_close_matches(name.lower()[:32], known, n=1)
    if close:
        hint = f"Did you mean {close[0]}?"
    elif known:
        hint = f"Use one of: {', '.join(known)}."
    else:
        hint = "Leave it out: this path takes no query parameters."
    return Invalid(f"{named} not a query parameter of this path.", code="query_unknown", hint=hint, where="query")
