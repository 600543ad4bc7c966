"""Builds every object from settings and policy; the only place that chooses classes."""
