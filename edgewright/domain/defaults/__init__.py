"""JSON files: the schemas of the well-known Applications and the templates of a first start."""
