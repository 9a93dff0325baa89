"""Notifications, whose turn it is, and where they go."""
