"""Loads: when calls come and how long they are."""
