"""The objects that bootstrap brings to an edge, by name."""

from collections.abc import Iterable, Mapping

from edgewright.bootstrap.agent_manifests import agent_objects
from edgewright.domain.flux_bundle import PROXY_SECRET
from edgewright.domain.own_objects import (
    AGENT_SECRET,
    ANCHOR,
    EDGEWRIGHT,
    FLUX,
    FLUX_SECRET,
    KUBERNETES,
    ObjectKey,
    OwnObjects,
)


def installed_objects(namespace: str, spaces: Mapping[str, str], flux: Iterable[ObjectKey]) -> OwnObjects:
    """All of them.

    Args:
        namespace: of the cluster's own objects.
        spaces: namespaces that are not the operator's -> whose they are.
        flux: objects of the Flux that the edge gets.
    """
    fluxes_own = list(flux)
    return OwnObjects(
        {
            **{ObjectKey("", "Namespace", "", name): owner for name, owner in spaces.items()},
            **dict.fromkeys((key for key in fluxes_own if key.kind != "Namespace"), FLUX),
            **{
                ObjectKey("", "Secret", space, PROXY_SECRET): EDGEWRIGHT
                for space, owner in spaces.items()
                if owner != KUBERNETES
            },
            **{ObjectKey("", "Secret", namespace, name): EDGEWRIGHT for name in (FLUX_SECRET, AGENT_SECRET)},
            **dict.fromkeys(agent_objects(namespace), EDGEWRIGHT),
            ObjectKey("rbac.authorization.k8s.io", "ClusterRole", "", ANCHOR): EDGEWRIGHT,
        }
    )
