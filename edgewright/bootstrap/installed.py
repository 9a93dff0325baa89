"""What bootstrap brings to an edge: its objects by name, what marks them, and all of it as one file."""

from collections.abc import Iterable, Mapping
from importlib.resources import files as resources

from edgewright.bootstrap.agent_manifests import agent_objects, render_agent
from edgewright.bootstrap.script import BootstrapInput
from edgewright.domain.flux_bundle import PROXY_SECRET
from edgewright.domain.own_objects import (
    AGENT_SECRET,
    ANCHOR,
    EDGEWRIGHT,
    FLUX,
    FLUX_SECRET,
    KUBERNETES,
    UNPRUNED,
    ObjectKey,
    OwnObjects,
)
from edgewright.domain.rendering.manifests import manifests_yaml


def installed_objects(namespace: str, spaces: Mapping[str, str], flux: Iterable[ObjectKey]) -> OwnObjects:
    """All objects that bootstrap brings to an edge, by name.

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


def installed_labels(wanted: BootstrapInput) -> Mapping[str, str]:
    """What marks the objects that bootstrap brings, for whoever takes them away."""
    return {**_identity(wanted), "edgewright.dev/part-of": "bootstrap"}


def render_manifests(wanted: BootstrapInput, *, flux: bytes = b"") -> str:
    """What the bootstrap script would apply, as one file, for those who will not pipe a script to a shell.

    Manifests in YAML, and in the comment at their top what else has to be done; neither token nor secret is in it.

    Args:
        flux: manifests of Flux, labelled; empty: the cluster has its own.
    """
    labels = installed_labels(wanted)
    first = manifests_yaml(
        [
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": wanted.namespace, "labels": labels, "annotations": UNPRUNED},
            }
        ]
    ).decode()
    agent = ""
    if wanted.agent:
        agent = render_agent(wanted.agent, namespace=wanted.namespace, labels=labels).decode()
    own = [f"# {name}\n{_begun(text).rstrip()}\n" for name, text in sorted(wanted.files.items())]
    return "".join([_instructions(wanted), first, flux.decode(), agent, *own])


def _begun(text: str) -> str:
    return text if text.startswith("---") else f"---\n{text}"


def _identity(wanted: BootstrapInput) -> Mapping[str, str]:
    return {"edgewright.dev/cluster": str(wanted.cluster), "edgewright.dev/generation": str(wanted.generation)}


def _instructions(wanted: BootstrapInput) -> str:
    text = resources("edgewright.bootstrap").joinpath("by_hand.txt").read_text(encoding="utf-8")
    authority = " --from-file=ca.crt=CA.pem" if wanted.ca_bundle else ""
    values = {
        "ANCHOR": ANCHOR,
        "CLUSTER": str(wanted.cluster),
        "NAMESPACE": wanted.namespace,
        "GENERATION": str(wanted.generation),
        "URL": wanted.external_url.rstrip("/"),
        "AUTHORITY": authority,
    }
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text
