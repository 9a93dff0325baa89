"""The ports of clusters: what is wanted of them, how they are found, and what their steps record."""
