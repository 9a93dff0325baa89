"""Orchestration only: the workflow of a cluster, the sweep, and their policies."""
