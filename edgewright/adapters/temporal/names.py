"""The search attributes that a Temporal server must know; defined beside the other pinned names."""

from edgewright.messages.names import SEARCH_ATTRIBUTES

__all__ = ["SEARCH_ATTRIBUTES"]
