"""Whether what Flux runs on this edge for the centre is gone. Flux keeps the inventory; nothing is guessed."""

from collections.abc import Sequence

from edgewright.agent.observation import OWN_SOURCE, Kustomized

DRIVER_FOLDER = "edo/cluster"
"""Folder of the driving repository with what drives the edge. It stays until the edge detaches."""


def is_empty(found: Sequence[Kustomized] | None, revision: str) -> bool:
    """Whether no workload is left.

    That is so when every part of the driving repository has applied the commit that takes the workloads away, none
    but the drivers' holds an object that is not pruned, and Flux is not at work on the end of any of them. An edge
    on which nothing of Flux can be seen does not know, so it is not empty.

    Args:
        found: this cluster's Kustomizations, as seen last; None: never yet.
        revision: that commit, hexadecimal.
    """
    parts = [each for each in found or () if each.source == OWN_SOURCE]
    return (
        bool(parts)
        and all(_is_at(each.applied, revision) for each in parts)
        and all(each.holds == 0 for each in parts if _folder(each.path) != DRIVER_FOLDER)
        and not any(each.deleting for each in found or ())
    )


def _is_at(applied: str | None, revision: str) -> bool:
    """Flux spells a revision ``main@sha1:…``, older ones ``main/…``."""
    return applied is not None and applied.endswith((f":{revision}", f"/{revision}"))


def _folder(path: str) -> str:
    return path.removeprefix("./").rstrip("/")
