"""The timeline and the feed: one position for all that is told, in the transaction that tells it."""
