"""The port ``Clusters``: what operators want of a cluster, what is read of it, what its workflow tells."""
