"""Bodies and streams that nobody would send on purpose; see ``__main__``."""
