"""Tokens and times of every call, recorded once."""
