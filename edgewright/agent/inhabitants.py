"""Who lives in a namespace that bootstrap made: everything there that does not go with the anchor."""

from collections.abc import Sequence

from edgewright.agent.cluster_objects import Found, Kind

PASSING_KINDS = frozenset({"Endpoints", "EndpointSlice", "Event", "Lease", "PodMetrics"})
"""Written by whoever works there; they are of no use without what they tell of."""
IN_EVERY_NAMESPACE = frozenset({("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")})


def inhabitants(found: Sequence[Found], kinds: Sequence[Kind], *, anchor: str) -> list[Found]:
    """Those who would be lost with the namespace.

    What the anchor owns goes with it, and so does what that owns, such as the pods of a Deployment. What is owned by
    something that was there and is gone is garbage, which Kubernetes collects in its own time.

    Args:
        found: everything in the namespace.
        kinds: that the cluster has.
        anchor: UID.
    """
    there = {each.uid: each for each in found}
    local = {(kind.group, kind.name) for kind in kinds if kind.namespaced}

    def leaves(each: Found, *seen: str) -> bool:
        if each.deleting:
            return True
        for owner in each.owners:
            if owner.uid == anchor:
                continue
            known = there.get(owner.uid)
            if known is None and (owner.group, owner.kind) not in local:
                return False  # lives in no namespace: it may be there
            if known is not None and (known.uid in seen or not leaves(known, *seen, each.uid)):
                return False
        return bool(each.owners)

    return [
        each
        for each in found
        if each.kind.name not in PASSING_KINDS
        and (each.kind.name, each.name) not in IN_EVERY_NAMESPACE
        and not leaves(each)
    ]
