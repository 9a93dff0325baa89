"""Temporal: the client, the fleet of cluster workflows, and what a namespace needs."""
