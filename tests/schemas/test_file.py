"""What an upload may say."""

import pytest

from gateway.core.errors import InvalidRequest, MissingParameter
from gateway.schemas.file import check_expiry, check_filename, check_purpose


def test_purposes() -> None:
    """Known purposes pass; outputs cannot be uploaded."""
    assert check_purpose("batch") == "batch"
    for wrong in ("batch_output", "x"):
        with pytest.raises(InvalidRequest) as refused:
            check_purpose(wrong)
        assert refused.value.param == "purpose"
    with pytest.raises(MissingParameter):
        check_purpose(None)


@pytest.mark.parametrize(
    "name", ["x.jsonl", "../../x.jsonl", "/etc/x", "a\\..\\b", "..%2fx", "Ünïcode 名.jsonl"]
)
def test_names_are_shown_as_they_are(name: str) -> None:
    """SEC-11: a name is only text."""
    assert check_filename(name) == name


@pytest.mark.parametrize("name", ["", "a\0b", "a\r\nb", "x" * 5000, "\u202e"])
def test_names_that_are_no_text_are_refused(name: str) -> None:
    """SEC-11: control characters and endless names are 400."""
    with pytest.raises(InvalidRequest):
        check_filename(name)


def test_expiry() -> None:
    """Both members or none, within the documented range, as number or form text."""
    assert check_expiry(None, None) is None
    assert check_expiry("created_at", "3600") == 3600
    assert check_expiry("created_at", 2_592_000) == 2_592_000


@pytest.mark.parametrize(
    ("anchor", "seconds", "param"),
    [
        (None, 3600, "expires_after.anchor"),
        ("now", 3600, "expires_after.anchor"),
        ("created_at", None, "expires_after.seconds"),
        ("created_at", "3599", "expires_after.seconds"),
        ("created_at", 2_592_001, "expires_after.seconds"),
        ("created_at", "soon", "expires_after.seconds"),
        ("created_at", True, "expires_after.seconds"),
    ],
)
def test_wrong_expiry_names_its_member(anchor: object, seconds: object, param: str) -> None:
    """The error names anchor or seconds."""
    with pytest.raises(InvalidRequest) as refused:
        check_expiry(anchor, seconds)
    assert refused.value.param == param


def test_endless_digits_are_no_number() -> None:
    """They are refused as other texts are."""
    with pytest.raises(InvalidRequest) as refused:
        check_expiry("created_at", "9" * 5000)
    assert refused.value.param == "expires_after.seconds"
