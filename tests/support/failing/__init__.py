"""A whole centre whose storage and Temporal server fail when a test says so."""
