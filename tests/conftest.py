"""Fixtures of all tests live in ``tests/support``."""

pytest_plugins = [
    "tests.support.batch_plane",
    "tests.support.fixtures",
    "tests.support.responses",
    "tests.support.valkey",
]
