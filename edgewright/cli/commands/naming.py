"""Which cluster a name or a UUID on the command line means."""

import difflib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edgewright.cli.client import GatewayClient
from edgewright.cli.commands.screen import Document, clean, moment
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.invocation import typed
from edgewright.domain.cluster import Phase
from edgewright.domain.names import spelled_uuid

PAGE = 500
_SUGGESTIONS = 3
_CLOSE = 0.7
"""How much of a mistyped name has to be as it was meant, from 0 to 1."""
_MOST_COMPARED = 4 * PAGE
"""Names that a mistyped one is compared with: somebody waits for the answer."""


@dataclass(frozen=True)
class NamedCluster:
    """A cluster that somebody named. ``text``: how to name it in the next command."""

    uuid: str
    text: str

    @property
    def path(self) -> str:
        """Its resource at the gateway."""
        return f"/v1/cluster/{self.uuid}"


def named(gateway: GatewayClient, text: str, *, also_deleted: bool = False) -> NamedCluster:
    """The cluster that has that UUID, or that name whatever the case.

    Args:
        also_deleted: what outlives a cluster is wanted; only looked for when no living cluster has the name.

    Raises:
        CliError: no cluster has that name, or several had it, or the one that had it is deleted. A UUID is not looked
            up: the request itself will tell.
    """
    if (uuid := spelled_uuid(text)) is not None:
        return NamedCluster(str(uuid), str(uuid))
    similar: list[str] = []
    phases: tuple[str | None, ...] = (None, Phase.REMOVED, Phase.DELETED)
    for phase in phases:
        found = []
        filters = {"name": text, **({"phase": phase} if phase else {})}
        for item in itertools.chain.from_iterable(page["items"] for page in pages(gateway, filters)):
            if str(item["name"]).lower() == text.lower():
                found.append(item)
                if phase != Phase.DELETED:
                    break  # a name belongs to one living cluster
            elif len(similar) < _SUGGESTIONS and phase != Phase.DELETED:
                similar.append(str(item["name"]))
        if found and phase == Phase.DELETED and not also_deleted:
            raise _deleted(found)
        if len(found) == 1:
            return NamedCluster(str(found[0]["uuid"]), str(found[0]["name"]))
        if found:
            raise _several(text, found)
    hint = _meant(similar) or did_you_mean(text, _names(gateway)) or f"`{typed('cluster list')}` shows all."
    raise CliError(f"There is no cluster called {clean(text)}.", hint, ExitCode.NOT_FOUND, code="cluster_unknown")


def did_you_mean(text: str, choices: Iterable[str]) -> str | None:
    """The question whether one of these was meant; None if none is close.

    >>> did_you_mean("Pres-shpo", ["press-shop", "paint-shop", "line-4"])
    'Did you mean press-shop?'
    """
    spelled = {choice.lower(): choice for choice in choices}
    close = difflib.get_close_matches(text.lower(), spelled, _SUGGESTIONS, cutoff=_CLOSE)
    return _meant([spelled[each] for each in close])


def _meant(names: list[str]) -> str | None:
    return f"Did you mean {' or '.join(map(clean, names))}?" if names else None


def _names(gateway: GatewayClient) -> Iterator[str]:
    for page in pages(gateway, {"sort": "name"}, limit=_MOST_COMPARED):
        yield from (str(item["name"]) for item in page["items"])


def pages(gateway: GatewayClient, filters: Mapping[str, Any], *, limit: int | None = None) -> Iterator[Document]:
    """The pages of the list of clusters that pass the filters.

    Args:
        limit: so many clusters at most; None: all.
    """
    after: dict[str, str] = {}
    left = limit
    while True:
        size = PAGE if left is None else min(PAGE, left)
        page = gateway.get("/v1/cluster", {**filters, "limit": size, **after})
        yield page
        left = None if left is None else left - len(page["items"])
        if page["next"] is None or left == 0:
            return
        after = {"after": page["next"]}


def clusters_called(gateway: GatewayClient, texts: Sequence[str]) -> list[NamedCluster]:
    """The clusters with these names or UUIDs, each once.

    Raises:
        CliError: one of them is not there.
    """
    documents = [gateway.get(named(gateway, text).path) for text in texts]
    return list(dict.fromkeys(NamedCluster(each["uuid"], each["name"]) for each in documents))


def clusters_labelled(gateway: GatewayClient, labels: Sequence[str]) -> list[NamedCluster]:
    """The clusters that have all of these labels now, by name; without a label, all that there are.

    Raises:
        CliError: there is none.
    """
    filters = {"sort": "name", **({"label": labels} if labels else {})}
    found = [NamedCluster(item["uuid"], item["name"]) for page in pages(gateway, filters) for item in page["items"]]
    if not found:
        raise CliError(
            "No cluster has these labels." if labels else "There is no cluster.",
            f"`{typed('cluster list')}` shows all.",
            ExitCode.NOT_FOUND,
        )
    return found


def _deleted(found: list[Document]) -> CliError:
    """Names the cluster that was deleted last, if several had the name."""
    last = max(found, key=lambda item: str(item["deleted_at"]))
    timeline = typed(f"cluster timeline {last['uuid']}")
    return CliError(
        f"The cluster {clean(last['name'])} was deleted at {moment(last['deleted_at'])}.",
        f"`{timeline}` shows what happened; the name is free.",
        ExitCode.NOT_FOUND,
        code="cluster_deleted",
    )


def _several(text: str, found: list[Document]) -> CliError:
    lines = [f"{item['uuid']}  created {moment(item['created_at'])}" for item in found]
    return CliError(
        f"{len(found)} deleted clusters were called {clean(text)}; name one by its UUID.",
        "\n".join(lines),
        ExitCode.REFUSED,
    )
