"""What is left for the garbage collector."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def left_over() -> Iterator[list[str]]:
    """Filled at the end: the product's objects that only the garbage collector could take away."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    found: list[str] = []
    try:
        yield found
        gc.collect()
        kinds = map(type, gc.garbage)
        found += [kind.__qualname__ for kind in kinds if kind.__module__.startswith("gateway.")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
