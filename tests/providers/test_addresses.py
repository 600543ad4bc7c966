"""Which addresses a caller is not told."""

import time

import pytest

from gateway.providers.addresses import hide_addresses


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("oops at http://10.1.2.3:21001/v1 now", "oops at *** now"),
        ("see (http://vllm/v1), or http://a.b.svc.cluster.local/v1.", "see (***), or ***."),
        ("https://api.example.com:8443/v1 and https://me:pw@example.com/", "*** and ***"),
        ("redis://cache/0 and unix:///run/x.sock", "*** and ***"),
        ("Get https://[fd00::1]/v1 or http://169.254.169.254/latest", "Get *** or ***"),
        ("dial tcp 10.0.0.7:8000: refused; 192.168.1.4 too", "dial tcp ***: refused; *** too"),
        ("Connect call failed ('10.0.0.1', 8000)", "Connect call failed ('***)"),
        ("HTTPConnectionPool(host='vllm', port=8000): no", "HTTPConnectionPool(***): no"),
        ("lookup engine.internal: no such host", "lookup ***: no such host"),
        ("gpu-node-3:8000 and vllm0:21001 and localhost:80", "*** and *** and ***"),
        ("connecting to redis:6379 failed at vllm:8000", "connecting to *** failed at ***"),
        ("localhost, or node7.lan", "***, or ***"),
        ("peer api.example.com:9000 is gone", "peer *** is gone"),
        ("from ::1, fe80::1 and [2001:db8::7]:443", "from ***, *** and ***"),
        ("read https://x.example.com/v1?key=abc", "read https://x.example.com/v1?***"),
    ],
)
def test_hidden(text: str, shown: str) -> None:
    """Addresses of machines, inner names and what has a port are starred out."""
    assert hide_addresses(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "See https://platform.openai.com/docs/guides/error-codes/api-errors.",
        "Visit https://platform.openai.com/account/rate-limits. You sent 12:30:45 too many.",
        "The model `llama3.1:70b` on api.example.com has max_tokens:4096, tokens:8192.",
        "messages.0.content: use std::vector, ratio 1:20, version 1.2.3, at 2026-01-02T03:04:05Z",
        "localhosts and internal.things are words; 999 of 1000 requests",
    ],
)
def test_readable(text: str) -> None:
    """Pages of help, times, versions, models and figures stay as they are."""
    assert hide_addresses(text) == text


@pytest.mark.parametrize("end", ["", "g", "-"])
@pytest.mark.parametrize("part", ["a.", "1.", "a:", "1:", "http://", "host ", "a-1", "::", "at a"])
def test_long_texts_take_no_time(part: str, end: str) -> None:
    """What a target sends does not hold the process up, also when it ends as no address does."""
    began = time.thread_time()
    hide_addresses(part * (256 * 1024 // len(part)) + end)
    assert time.thread_time() - began < 2
