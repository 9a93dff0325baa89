"""Signed notifications over HTTP (Standard Webhooks)."""
