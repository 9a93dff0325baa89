"""How statements reach SQLite or PostgreSQL: connections, transactions, the queue of writers, their errors."""
