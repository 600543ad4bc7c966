"""Batch API rules: no HTTP, no Redis commands."""
