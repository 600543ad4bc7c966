"""Kills, freezes and cuts the real parts while batches run; see ``__main__``."""
