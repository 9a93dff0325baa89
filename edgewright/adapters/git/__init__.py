"""Driving repositories as bare Git repositories on disk, and Git's smart HTTP protocol over them."""
