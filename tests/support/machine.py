"""How busy the machine is that tests run on."""

import os


def slowness() -> float:
    """How much longer things may take when others use this machine's cores; 1 when nobody does."""
    return max(1.0, 1.5 * os.getloadavg()[0] / (os.cpu_count() or 1))
