"""The commands that speak HTTP to a gateway, here or elsewhere."""
