"""What the bootstrap script left in the Secret ``edgewright-agent``: which centre it belongs to, and as whom."""

import json
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from edgewright.agent.urls import is_base_url
from edgewright.agent.where import CentreDoor, read_door
from edgewright.errors import Stalled

CLUSTER_LABEL = "edgewright.dev/cluster"
"""The label of everything that belongs to a managed cluster; its UUID."""
PART_LABEL, BOOTSTRAP = "edgewright.dev/part-of", "bootstrap"
"""The label of what bootstrap has installed, and its value."""
ANCHOR = "edgewright-anchor"
"""ClusterRole that owns all of that."""
SECRET = "edgewright-agent"  # noqa: S105 - the name of an object
URL, AUTHORITY, FORMER = "url", "ca.crt", "centre.former"
"""Keys of the Secret: how the centre is reached, and how it was before (JSON, see ``where.read_door``)."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """Never logged as a whole; without password where it is printed.

    Args:
        username: the cluster's UUID, as the centre knows it.
        url: of the centre, without a slash at its end.
        generation: of the cluster, from 1.
        authority: PEM that signs the centre's certificate; None: the certificates that this machine trusts.
        former: how the centre was reached before; None: that is gone for good.
    """

    username: str
    password: str = field(repr=False)
    url: str
    cluster: str
    generation: int
    authority: str | None = field(default=None, repr=False)
    former: CentreDoor | None = None

    @property
    def door(self) -> CentreDoor:
        """How the centre is reached."""
        return CentreDoor(self.url, self.authority)

    def through(self, door: CentreDoor) -> "Attachment":
        """The same at another way."""
        return replace(self, url=door.url, authority=door.authority, former=None)


def read_attachment(content: Mapping[str, str]) -> Attachment:
    """The attachment in the ``data`` of a Secret (base64).

    Raises:
        Stalled: ``attachment_malformed``: something is missing or cannot be read; ``where`` names the key.
    """
    url = _text(content, URL).rstrip("/")
    if not is_base_url(url):
        raise _malformed(URL)
    generation = _text(content, "generation")
    if not generation.isascii() or not generation.isdigit():
        raise _malformed("generation")
    return Attachment(
        username=_text(content, "username"),
        password=_text(content, "password"),
        url=url,
        cluster=_text(content, "uuid"),
        generation=int(generation),
        authority=_text(content, AUTHORITY) if content.get(AUTHORITY) else None,
        former=_former(content),
    )


def _former(content: Mapping[str, str]) -> CentreDoor | None:
    """None for what cannot be read: it is only kept in case that the present one fails."""
    try:
        return read_door(json.loads(b64decode(content.get(FORMER, ""), validate=True)))
    except (ValueError, RecursionError):
        return None


def _text(content: Mapping[str, str], key: str) -> str:
    try:
        text = b64decode(content.get(key, ""), validate=True).decode().strip()
    except ValueError:
        text = ""
    if not text:
        raise _malformed(key)
    return text


def _malformed(key: str) -> Stalled:
    return Stalled(
        f"The Secret {SECRET} has no usable '{key}'.",
        code="attachment_malformed",
        where=key,
        hint="Get a fresh bootstrap line from the centre and run it.",
    )
