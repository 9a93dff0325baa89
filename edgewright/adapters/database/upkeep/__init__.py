"""What is looked at from time to time: after a restore, over all clusters, of clocks that were wrong."""
