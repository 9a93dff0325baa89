"""Use cases: what more than one of REST, Config Store, agents, signals, steps and the command line does."""
