"""Opaque ids. Every id a client sees is made here."""

import secrets


def new_id(prefix: str, length: int = 24) -> str:
    """A fresh random id such as ``batch_4f…``: ``prefix``, an underscore, ``length`` hex digits.

    ``file`` ids use a hyphen, as the OpenAI service does.
    """
    sep = "-" if prefix == "file" else "_"
    return f"{prefix}{sep}{secrets.token_hex((length + 1) // 2)[:length]}"
