"""The Config Store: entries, objects, and the schemas that entries are checked against."""
