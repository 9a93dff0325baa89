"""Measures a centre on this machine: `make bench`. What the figures mean is in docs/performance.md."""
