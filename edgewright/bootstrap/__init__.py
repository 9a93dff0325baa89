"""The bootstrap script: what ``curl … | sh -`` runs to attach a Kubernetes cluster."""

from edgewright.bootstrap.script import MAX_SCRIPT_BYTES, BootstrapInput, render_refusal, render_script

__all__ = ["MAX_SCRIPT_BYTES", "BootstrapInput", "render_refusal", "render_script"]
