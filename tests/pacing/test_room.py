"""The room of an engine that does not say how much it has."""

import math

from gateway.pacing.room import EngineRoom


def test_without_a_sign_there_is_no_limit() -> None:
    """Prompts that start in the time of their size say nothing against more rows."""
    room = EngineRoom()
    for running in range(1, 100):
        room.first_token(0.2, 1000, running)
        room.first_token(0.02, 100, running)
    assert room.rows == math.inf


def test_a_prompt_that_waits_long_was_queued() -> None:
    """The limit is set below the rows that filled the engine, and tried again slowly."""
    room = EngineRoom()
    for _ in range(10):
        room.first_token(0.2, 1000, 50)
    room.first_token(3.0, 1000, 101)
    assert room.rows == 85
    room.first_token(0.2, 1000, 80)
    assert room.rows == 85
    for _ in range(100):
        room.first_token(0.2, 1000, 85)
    assert 85.9 < room.rows < 86.1


def test_a_room_of_no_whole_number_is_tried_again() -> None:
    """As many rows as fit into 7.65 are 7: those fill it."""
    room = EngineRoom()
    for _ in range(10):
        room.first_token(0.2, 1000, 5)
    room.first_token(3.0, 1000, 10)
    assert 7 < (full := room.rows) < 8
    room.first_token(0.2, 1000, 6)
    assert room.rows == full
    room.first_token(0.2, 1000, 7)
    assert room.rows > full


def test_a_long_prompt_or_a_short_wait_is_no_sign() -> None:
    """Twenty times the tokens take twenty times as long; a few hundredths are noise."""
    room = EngineRoom()
    room.first_token(0.02, 100, 50)
    room.first_token(0.4, 2000, 50)
    room.first_token(1.9, 100, 50)
    assert room.rows == math.inf


def test_what_a_prompt_usually_waits() -> None:
    """In proportion to its tokens, of which there are at least 64."""
    room = EngineRoom()
    assert room.expected(1000) == 0
    room.first_token(0.2, 1000, 5)
    assert room.expected(2000) == 0.4
    assert room.expected(1) == room.expected(64)


def test_the_engines_own_word_is_taken() -> None:
    """Fifty rows in half of the cache leave room for 85, less the sixth that stays free."""
    room = EngineRoom()
    room.told(0.5, 0, 50)
    assert room.rows == 85
    room.told(0.99, 3, 100)
    assert room.rows == 85
    room.told(0.25, 0, 50)
    assert room.rows == 170
    room.told(0.5, 0, 2)
    assert room.rows == 170
