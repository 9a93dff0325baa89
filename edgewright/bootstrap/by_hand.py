"""What the bootstrap script would apply, as one file, for those who will not pipe a script to a shell."""

from collections.abc import Mapping
from importlib.resources import files as resources

from edgewright.bootstrap.agent_manifests import render_agent
from edgewright.bootstrap.script import BootstrapInput
from edgewright.domain.own_objects import ANCHOR, UNPRUNED
from edgewright.domain.rendering.manifests import manifests_yaml


def installed_labels(wanted: BootstrapInput) -> Mapping[str, str]:
    """What marks the objects that bootstrap brings, for whoever takes them away."""
    return {**_identity(wanted), "edgewright.dev/part-of": "bootstrap"}


def render_manifests(wanted: BootstrapInput, *, flux: bytes = b"") -> str:
    """Manifests in YAML, and in the comment at their top what else has to be done; neither token nor secret is in it.

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
