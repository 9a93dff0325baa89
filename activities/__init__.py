"""The workflows' effects on the outside world: thin classes, one per port, which receive their collaborators."""
