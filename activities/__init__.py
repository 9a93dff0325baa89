"""What the workflows do to the world: thin classes, one per port, handed their collaborators."""
