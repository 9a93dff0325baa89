"""Sealed values on their way to Git, and their re-sealing."""
