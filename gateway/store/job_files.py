"""Where the files of a job lie, and how its one blob is laid out.

``single/<hour>/<id>.job`` is all that was decided at creation: an index of one row, the row as a
line of an input file, the facts. So one write makes a job durable, and the dispatcher reads it as
it reads any input. ``<id>.<number>`` holds a result line, ``<id>.end`` the final state. The folder
follows from the time in the id: one for each 17 minutes, so that none grows without bound.
"""

import re
import struct

ROOT = "single/"
_ID = re.compile(r"job_[0-9a-f]{24}")
_PREFIX = "job_"
_FOLDER = 7
_FOLDER_BITS = 20
#: One row of an index, as batches have it: offset, length, tokens, prefix.
INDEX = struct.Struct("<QIIQ")


def is_job(name: str) -> bool:
    """Whether ``name`` is the id of a job, or of a segment of one."""
    return name.startswith(_PREFIX)


def is_job_id(text: str) -> bool:
    """Whether ``text`` has the form of an id that was made here."""
    return _ID.fullmatch(text) is not None


def folder_of(job_id: str) -> str:
    """The folder of a job, with a slash at its end."""
    start = len(_PREFIX)
    return f"{ROOT}{job_id[start : start + _FOLDER]}/"


def folder_ended_at(folder: str) -> float:
    """The Unix time from which no new job goes into ``folder``."""
    return ((int(folder[len(ROOT) : -1], 16) + 1) << _FOLDER_BITS) / 1000


def job_blob(job_id: str) -> str:
    """Blob name of what was decided at creation."""
    return f"{folder_of(job_id)}{job_id}.job"


def end_blob(job_id: str) -> str:
    """Blob name of the final state."""
    return f"{folder_of(job_id)}{job_id}.end"


def part_blob(job_id: str, part: int) -> str:
    """Blob name of a result line; which of several counts is said by the commit."""
    return f"{folder_of(job_id)}{job_id}.{part}"


def packed_job(line: bytes, tokens: int, facts: bytes) -> bytes:
    """The blob: index, line, facts."""
    head = INDEX.pack(INDEX.size, len(line), tokens, 0)
    return b"".join([head, line, b"\n", facts])


def facts_in(blob: bytes) -> bytes:
    """The facts in a blob."""
    offset, length, _, _ = INDEX.unpack_from(blob)
    return blob[offset + length + 1 :]
