"""Names of keys. All keys of a shard share one cluster slot through its ``{tag}``."""

import re

SHARDS = "gw:{sys}:shards"


def shard_of(model: str, part: int = 0) -> str:
    """The shard that holds the segments of ``model``.

    Bytes that a cluster tag or a key pattern could misread are written as ``%`` and hex, so that
    two models never share a shard.
    """
    return f"{re.sub(r'[^A-Za-z0-9._/-]', _escape, model)}.{part}"


def shard_key(shard: str, name: str) -> str:
    """The key ``name`` of a shard."""
    return f"gw:{{{shard}}}:{name}"


def _escape(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02x}" for byte in match[0].encode())
