"""Config Store, registry, audit and the rest of what is remembered, on SQLite or PostgreSQL (SQLAlchemy Core)."""
