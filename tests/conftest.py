"""Fixtures of all tests, and their order, live in ``tests/support``."""

pytest_plugins = [
    "tests.support.batch_plane",
    "tests.support.fixtures",
    "tests.support.order",
    "tests.support.responses",
    "tests.support.valkey",
]
