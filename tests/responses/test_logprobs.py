"""Log probabilities of tokens."""

from gateway.responses.logprobs import in_delta, in_part

ENTRY = {
    "token": "a",
    "logprob": -0.1,
    "bytes": [97],
    "top_logprobs": [{"token": "b", "logprob": -2, "bytes": None}],
}


def test_both_forms() -> None:
    """An event has no bytes, a part has them."""
    assert in_delta(ENTRY) == {
        "token": "a",
        "logprob": -0.1,
        "top_logprobs": [{"token": "b", "logprob": -2}],
    }
    assert in_part(ENTRY) == {
        "token": "a",
        "logprob": -0.1,
        "bytes": [97],
        "top_logprobs": [{"token": "b", "logprob": -2, "bytes": []}],
    }
