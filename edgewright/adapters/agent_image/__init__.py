"""The image that edges run the agent from: built from what this machine runs, kept as an OCI image layout."""
