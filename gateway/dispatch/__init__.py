"""The offline process: lease, run, settle."""
