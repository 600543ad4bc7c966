"""Load with faults for a long time, and nothing may be left behind; see ``__main__``."""
