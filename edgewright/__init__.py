"""Edgewright commissions edge Kubernetes clusters and keeps them for life."""

__version__ = "0.3.0"
