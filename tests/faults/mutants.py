"""The queue's scripts with one thing wrong: what the tests of the queue must be able to see.

``old`` stands exactly once in the shipped script, so that a change there which moves it makes the
test fail until the mutant is moved along.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """``old`` in ``lua/<script>.lua`` becomes ``new``."""

    name: str
    script: str
    old: str
    new: str

    def applied(self, text: str) -> str:
        """The broken script."""
        assert text.count(self.old) == 1, f"{self.name}: {self.script}.lua has changed"
        return text.replace(self.old, self.new)


_USAGE_SUM = """\
      local p, c, k, r = struct.unpack('<I4I4I4I4', usage, i * 16 - 15)
      prompt, completion, cached, reasoning = prompt + p, completion + c, cached + k, reasoning + r
    end
"""
_USAGE_SUM_OF_ALL = """\
    end
      local p, c, k, r = struct.unpack('<I4I4I4I4', usage, i * 16 - 15)
      prompt, completion, cached, reasoning = prompt + p, completion + c, cached + k, reasoning + r
"""

MUTANTS = (
    Mutant(
        "a segment that is there twice in a step is counted twice",
        "enqueue",
        "if new[seg] or there > 1 and",
        "if there > 1 and",
    ),
    Mutant(
        "of a tenant's segments in a step only the last is added",
        "enqueue",
        "a.places[#a.places + 1] = at",
        "a.places = { at }",
    ),
    Mutant(
        "duplicates lower what a lease has left",
        "commit",
        "leases[lease] = (leases[lease] or 0) + gone",
        "leases[lease] = (leases[lease] or 0) + #rows",
    ),
    Mutant(
        "duplicates lower what a segment has leased",
        "commit",
        "sums[1], sums[2] = 'leased', num(h[15]) - gone end",
        "sums[1], sums[2] = 'leased', num(h[15]) - #rows end",
    ),
    Mutant(
        "no reaper",
        "reap",
        "local leases = call('ZRANGEBYSCORE', P .. 'exp', '-inf', now, 'LIMIT', 0, ARGV[1])",
        "local leases = {}",
    ),
    Mutant(
        "what is released or reaped ignores the done bit",
        "lib",
        "if call('GETBIT', P .. 'd:' .. seg, row) == 0 then open[#open + 1] = row end",
        "open[#open + 1] = row",
    ),
    Mutant(
        "nack ignores the done bit",
        "nack",
        "if call('GETBIT', done, row) == 1 then",
        "if false then",
    ),
    Mutant(
        "commit ignores the done bit",
        "commit",
        "    if before[i] == 0 then",
        "    if true then",
    ),
    Mutant(
        "a late commit leaves its row among the retries",
        "commit",
        "    call('ZREM', P .. 'r:' .. seg, unpack(rows))\n",
        "",
    ),
    Mutant("tokens of duplicates are metered", "commit", _USAGE_SUM, _USAGE_SUM_OF_ALL),
    Mutant(
        "duplicates are metered as requests",
        "commit",
        "{ fresh, fresh - good, prompt,",
        "{ #rows, fresh - good, prompt,",
    ),
    Mutant(
        "the meter is not part of the commit",
        "commit",
        "call('HSET', key, unpack(metered))",
        "",
    ),
    Mutant(
        "a segment with only a later retry leaves every queue",
        "lease",
        "if #first > 0 then call('ZADD', P .. 'later', first[2], seg) end",
        "",
    ),
    Mutant(
        "a row that waits is put into no queue",
        "lib",
        "    call('ZADD', P .. 'later', due, seg)\n",
        "",
    ),
    Mutant(
        "a returned row does not make its segment ready",
        "lib",
        "    make_ready(seg, h[1], num(h[2]), num(h[3]))\n    wake()\n",
        "",
    ),
    Mutant(
        "a retry that is handed out stays a retry",
        "lease",
        "    call('ZREM', P .. 'r:' .. seg, row)\n",
        "",
    ),
    Mutant(
        "due retries are not promoted",
        "tick",
        "  make_ready(seg, h[1], num(h[2]), num(h[3]))\n",
        "",
    ),
    Mutant(
        "tokens of done rows stay in the quota",
        "lib",
        "'tokens', num(t[2]) - tokens }",
        "'tokens', num(t[2]) }",
    ),
    Mutant(
        "the fence is not checked",
        "finish_commit",
        "if h[1] ~= 'finalizing' or h[2] ~= ARGV[2] then return 0 end",
        "if h[1] ~= 'finalizing' then return 0 end",
    ),
    Mutant(
        "a fence is given out twice",
        "finish_claim",
        "call('HINCRBY', P .. 's:' .. seg, 'fence', 1)",
        "call('HINCRBY', P .. 's:' .. seg, 'fence', 0)",
    ),
    Mutant(
        "a segment with retries is taken for a fresh one",
        "lease",
        "return found, call('EXISTS', unpack(marks)) == 0, costs",
        "return found, true, costs",
    ),
    Mutant(
        "a segment that a budget cuts off leaves the queue",
        "lease",
        "  if cur < n then return false end\n",
        "",
    ),
    Mutant(
        "a lease that is asked for twice is one lease",
        "lease",
        "local lease = ARGV[8] .. '.' .. call('HINCRBY', KEYS[1], 'lid', 1)",
        "local lease = ARGV[8]",
    ),
)
