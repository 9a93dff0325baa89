"""The connections of a gateway: their bounds and deadlines, and who gets a place when there are too many."""
