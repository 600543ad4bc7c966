"""Real text that every Python has: docstrings of the standard library, to be summarised."""

import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from types import ModuleType
from typing import Any

MODULES = (
    "argparse", "ast", "base64", "bisect", "calendar", "cmd", "codecs", "collections",
    "configparser", "contextlib", "copy", "csv", "datetime", "decimal", "difflib", "dis",
    "email.message", "enum", "fileinput", "fractions", "functools", "glob", "gzip", "heapq",
    "html.parser", "http.client", "http.cookies", "inspect", "io", "ipaddress", "itertools",
    "json", "logging", "mailbox", "mimetypes", "numbers", "operator", "os", "pathlib", "pickle",
    "pkgutil", "platform", "plistlib", "pprint", "queue", "random", "re", "sched", "secrets",
    "shelve", "shlex", "shutil", "smtplib", "socket", "socketserver", "statistics", "string",
    "struct", "subprocess", "tarfile", "tempfile", "textwrap", "threading", "timeit", "tokenize",
    "traceback", "types", "unittest", "unittest.mock", "urllib.parse",
    "urllib.request", "uuid", "warnings", "weakref", "xml.etree.ElementTree", "zipfile",
)  # fmt: skip
MIN_WORDS = 40
MAX_WORDS = 50
ASK = "Summarise this piece of the documentation of Python's {name} in plain words.\n\n{text}"


@dataclass(frozen=True, slots=True)
class Prompt:
    """One thing to summarise. ``name`` is unique, such as ``json.dumps``."""

    name: str
    text: str

    def body(self, model: str, max_tokens: int) -> dict[str, Any]:
        """A chat completions body of exactly ``max_tokens`` output tokens.

        ``ignore_eos`` keeps every answer at that length, so that all arms do the same work.
        """
        return {
            "model": model,
            "messages": [{"role": "user", "content": ASK.format(name=self.name, text=self.text)}],
            "max_tokens": max_tokens,
            "temperature": 0,
            "ignore_eos": True,
        }


def prompts(count: int) -> list[Prompt]:
    """The first ``count`` prompts, always the same ones on one version of Python.

    Each text has 40 to 50 words, about 100 tokens with the question around it. Raises ValueError
    when the standard library has not that many.
    """
    found = list(islice(_prompts(), count))
    if len(found) < count:
        raise ValueError(f"the standard library holds only {len(found)} usable docstrings")
    return found


def _prompts() -> Iterator[Prompt]:
    seen: set[str] = set()
    for name in MODULES:
        for place, text in _docstrings(importlib.import_module(name)):
            words = text.split()
            excerpt = " ".join(words[:MAX_WORDS])
            if len(words) >= MIN_WORDS and excerpt not in seen:
                seen.add(excerpt)
                yield Prompt(place, excerpt)


def _docstrings(module: ModuleType) -> Iterator[tuple[str, str]]:
    name = module.__name__
    yield name, inspect.getdoc(module) or ""
    for member, value in sorted(vars(module).items()):
        if member.startswith("_") or not (inspect.isclass(value) or inspect.isroutine(value)):
            continue
        if value.__module__ != name:
            continue
        yield f"{name}.{member}", _own_doc(value)
        if inspect.isclass(value):
            for part, function in sorted(vars(value).items()):
                if not part.startswith("_") and inspect.isfunction(function):
                    yield f"{name}.{member}.{part}", _own_doc(function)


def _own_doc(value: object) -> str:
    doc = value.__doc__
    return inspect.cleandoc(doc) if isinstance(doc, str) else ""
