"""Orchestration only: the workflows of clusters, the sweep and notifications, and their policies."""
