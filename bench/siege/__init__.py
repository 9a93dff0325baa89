"""A fleet that lives, one hostile caller at a time, and what the others notice of it."""
