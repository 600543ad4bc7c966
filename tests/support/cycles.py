"""What is left for the garbage collector."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def left_over() -> Iterator[list[str]]:
    """Filled at the end: what only the garbage collector could take away.

    Of others than the product's a refused connection alone: tests leave something, too.
    """
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    found: list[str] = []
    try:
        yield found
        gc.collect()
        found += [type(thing).__qualname__ for thing in gc.garbage if _counts(thing)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def _counts(thing: object) -> bool:
    ours = type(thing).__module__.startswith("gateway.")
    return ours or isinstance(thing, ConnectionRefusedError)
