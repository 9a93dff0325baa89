"""Who may do what: credentials of edges, tokens of operators, the audit log."""
