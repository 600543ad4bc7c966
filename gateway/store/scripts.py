"""Lua scripts: loaded once, called by digest."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoScriptError

from gateway.store.keys import shard_key

# Work that frees memory or settles what was accepted goes on when memory is full.
_FLAGS = {
    "enqueue": "",
    "lease": "",
    "rebuild": "",
    "audit": "no-writes",
    "stats": "no-writes",
    "outlook": "no-writes",
}
_DEFAULT_FLAGS = "allow-oom"
_COMMENT = re.compile(r"^ *--.*\n", re.MULTILINE)
_DEFINITION = re.compile(r"^(?=local )", re.MULTILINE)
_NAME = re.compile(r"local (?:function )?(\w+)")


@dataclass(frozen=True, slots=True)
class Script:
    """Source and SHA-1 of one script."""

    source: str
    sha: str

    @classmethod
    def of(cls, source: str) -> "Script":
        """The script with this text."""
        return cls(source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())

    async def run(self, redis: Redis, keys: Sequence[str], *args: str | int | bytes) -> Any:
        """Run it; a server that forgot it is given the source again."""
        try:
            return await redis.evalsha(self.sha, len(keys), *keys, *args)
        except NoScriptError:
            return await redis.eval(self.source, len(keys), *keys, *args)


@cache
def whole_script(name: str) -> Script:
    """The script ``lua/<name>.lua`` as it stands."""
    return Script.of(_text(name))


@cache
def queue_script(name: str) -> Script:
    """The queue script ``lua/<name>.lua`` with what it uses of the shared part in front of it.

    Every call runs the definitions again, so those that are not needed would cost each time.
    """
    flags = _FLAGS.get(name, _DEFAULT_FLAGS)
    own = _COMMENT.sub("", _text(name))
    return Script.of(f"#!lua flags={flags}\n{_needed(_COMMENT.sub('', _text('lib')), own)}{own}")


async def run_script(redis: Redis, name: str, shard: str, *args: str | int | bytes) -> Any:
    """Run a queue script on a shard."""
    return await queue_script(name).run(redis, [shard_key(shard, "meta")], *args)


def _needed(shared: str, own: str) -> str:
    """The definitions of ``shared`` that ``own`` or one of them names; each names earlier ones."""
    kept = ""
    for definition in reversed(_DEFINITION.split(shared)):
        name = _NAME.match(definition)
        if name and re.search(rf"\b{name[1]}\b", kept + own):
            kept = definition + kept
    return kept


def _text(name: str) -> str:
    return (resources.files("gateway.store") / "lua" / f"{name}.lua").read_text()
