"""The error tree."""

import re

import pytest

from gateway.core import errors
from gateway.core.errors import Busy, ConfigError, HeadwayError, UpstreamError


def _tree(root: type[HeadwayError]) -> list[type[HeadwayError]]:
    return [root, *(child for sub in root.__subclasses__() for child in _tree(sub))]


TREE = _tree(HeadwayError)


@pytest.mark.parametrize("error", TREE, ids=lambda error: error.__name__)
def test_each_class_is_in_the_drawing_and_lives_in_one_file(error: type[HeadwayError]) -> None:
    """The docstring's drawing and the code agree."""
    assert error.__module__ == "gateway.core.errors"
    assert errors.__doc__ is not None
    assert re.search(rf"\b{error.__name__}\b", errors.__doc__)


@pytest.mark.parametrize("error", TREE, ids=lambda error: error.__name__)
def test_each_class_knows_its_openai_type(error: type[HeadwayError]) -> None:
    """``type`` is one of the service's words."""
    assert error.type in {
        "server_error",
        "invalid_request_error",
        "permission_error",
        "rate_limit_error",
    }


def test_a_config_error_says_where() -> None:
    """``file:line`` comes first, so that editors can jump to it."""
    assert str(ConfigError("no", file="p.yaml", line=3)) == "p.yaml:3: no"
    assert str(ConfigError("no", file="p.yaml")) == "p.yaml: no"
    assert str(ConfigError("no")) == "no"


def test_a_busy_error_says_when_to_come_back() -> None:
    """Retry-After is part of the error."""
    assert Busy("full", retry_after=3).retry_after == 3


def test_an_upstream_error_keeps_what_the_target_said() -> None:
    """Status and body are kept for error lines; the message does not show them."""
    error = UpstreamError("it failed", target="t", status=500, body=b"<html>")
    assert (error.status, error.body, str(error)) == (500, b"<html>", "it failed")
