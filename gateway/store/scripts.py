"""The queue's Lua scripts: loaded once, called by digest."""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoScriptError

from gateway.store.keys import shard_key

# Work that frees memory or settles what was accepted goes on when memory is full.
_FLAGS = {"enqueue": "", "lease": "", "audit": "no-writes", "stats": "no-writes"}
_DEFAULT_FLAGS = "allow-oom"


@dataclass(frozen=True, slots=True)
class Script:
    """Source and SHA-1 of one script."""

    source: str
    sha: str


@cache
def load_script(name: str) -> Script:
    """The script ``lua/<name>.lua`` with the shared part in front of it."""
    folder = resources.files("gateway.store") / "lua"
    flags = _FLAGS.get(name, _DEFAULT_FLAGS)
    parts = [f"#!lua flags={flags}", (folder / "lib.lua").read_text()]
    source = "\n".join([*parts, (folder / f"{name}.lua").read_text()])
    return Script(source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())


async def run_script(redis: Redis, name: str, shard: str, *args: str | int | bytes) -> Any:
    """Run a queue script on a shard; a server that forgot it is given the source again."""
    script = load_script(name)
    meta = shard_key(shard, "meta")
    try:
        return await redis.evalsha(script.sha, 1, meta, *args)
    except NoScriptError:
        return await redis.eval(script.source, 1, meta, *args)
