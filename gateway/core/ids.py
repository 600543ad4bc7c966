"""Opaque ids. Every id a client sees is made here."""

import secrets


def new_id(prefix: str, length: int = 24) -> str:
    """A fresh random id such as ``batch_4f…``: ``prefix``, an underscore, ``length`` hex digits.

    ``file`` ids use a hyphen, as the OpenAI service does.
    """
    sep = "-" if prefix == "file" else "_"
    return f"{prefix}{sep}{secrets.token_hex((length + 1) // 2)[:length]}"


def new_ordered_id(prefix: str, unix_ms: int) -> str:
    """A fresh id whose text order is the order of making: 12 hex digits of time, 12 random.

    So a page that starts after an id can be found even when that object is gone.
    """
    return f"{prefix}{'-' if prefix == 'file' else '_'}{unix_ms:012x}{secrets.token_hex(6)}"
