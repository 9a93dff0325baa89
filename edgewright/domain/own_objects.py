"""What Edgewright has on an edge that nobody else may drive there. Standard library only: the push rules use it."""

from collections.abc import Mapping

PRUNE_ANNOTATION = "kustomize.toolkit.fluxcd.io/prune"
UNPRUNED: Mapping[str, str] = {PRUNE_ANNOTATION: "disabled"}
"""Annotation with which an object that Flux has taken over outlives the file that it was in."""
