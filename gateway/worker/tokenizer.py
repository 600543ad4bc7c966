"""Text to tokens and back; chats to text."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from jinja2.exceptions import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

from gateway.core.errors import InvalidRequest

_CONTROL = 3
_TINY_TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}<assistant>"


class Vocabulary(Protocol):
    """What the worker needs of a tokenizer."""

    stops: frozenset[int]
    size: int

    def encode(self, text: str) -> list[int]:
        """Tokens of a text; names of control tokens in it are control tokens."""

    def pieces(self, token: int) -> bytes:
        """The bytes a token stands for; none for control tokens."""

    def chat(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """The prompt text of a chat, ending where the answer begins."""


class _Template:
    """A chat template, run in a sandbox."""

    def __init__(self, source: str, variables: Mapping[str, str]) -> None:
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = _refuse
        self._template = environment.from_string(source)
        self._variables = variables

    def render(self, messages: Sequence[Mapping[str, Any]]) -> str:
        try:
            return self._template.render(
                messages=messages, add_generation_prompt=True, **self._variables
            )
        except TemplateError as error:
            message = f"The model's chat template refuses these messages: {error}"
            raise InvalidRequest(message, param="messages") from None


class BPEVocabulary:
    """The byte-level BPE tokenizer in a GGUF file's metadata."""

    def __init__(self, meta: Mapping[str, Any]) -> None:
        names: list[str] = meta["tokenizer.ggml.tokens"]
        merges = [tuple(merge.split(" ")) for merge in meta["tokenizer.ggml.merges"]]
        kinds = meta["tokenizer.ggml.token_type"]
        control = {at for at, kind in enumerate(kinds) if kind == _CONTROL}
        self._tokenizer = Tokenizer(
            models.BPE(vocab={name: at for at, name in enumerate(names)}, merges=merges)
        )
        self._tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
            ]
        )
        self._tokenizer.add_special_tokens(
            [AddedToken(names[at], special=True, normalized=False) for at in sorted(control)]
        )
        alphabet = _byte_of_character()
        self._pieces = [
            b"" if at in control else bytes(alphabet.get(letter, 63) for letter in name)
            for at, name in enumerate(names)
        ]
        self.stops = frozenset({meta["tokenizer.ggml.eos_token_id"]})
        self.size = len(names)
        self._template = _Template(
            meta["tokenizer.chat_template"],
            {
                "bos_token": names[meta.get("tokenizer.ggml.bos_token_id", 0)],
                "eos_token": names[meta["tokenizer.ggml.eos_token_id"]],
            },
        )

    def encode(self, text: str) -> list[int]:
        """Tokens of a text."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def pieces(self, token: int) -> bytes:
        """Bytes of a token."""
        return self._pieces[token] if token < len(self._pieces) else b""

    def chat(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Prompt text of a chat."""
        return self._template.render(messages)


class ByteVocabulary:
    """One token per byte, then a few control tokens: for the tiny model of the tests."""

    END = 256

    def __init__(self) -> None:
        self.stops = frozenset({self.END})
        self.size = self.END + 1
        self._template = _Template(_TINY_TEMPLATE, {})

    def encode(self, text: str) -> list[int]:
        """The UTF-8 bytes of a text."""
        return list(text.encode("utf-8", "surrogatepass"))

    def pieces(self, token: int) -> bytes:
        """The byte itself."""
        return bytes([token]) if token < self.END else b""

    def chat(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Prompt text of a chat."""
        return self._template.render(messages)


class WordVocabulary:
    """Four bytes are a token, and a token is a word of three letters: for random weights.

    There is no end of text: an answer is as long as ``max_tokens``.
    """

    def __init__(self, size: int) -> None:
        self.stops: frozenset[int] = frozenset()
        self.size = size
        self._template = _Template(_TINY_TEMPLATE, {})

    def encode(self, text: str) -> list[int]:
        """The bytes of a text, four at a time."""
        data = text.encode("utf-8", "surrogatepass")
        numbers = np.frombuffer(data + bytes(-len(data) % 4), "<u4") % self.size
        found: list[int] = numbers.tolist()
        return found

    def pieces(self, token: int) -> bytes:
        """A word."""
        return bytes((32, 97 + token % 26, 97 + token // 26 % 26, 97 + token // 676 % 26))

    def chat(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Prompt text of a chat."""
        return self._template.render(messages)


def _refuse(message: str) -> None:
    raise TemplateError(message)


def _byte_of_character() -> dict[str, int]:
    """The printable stand-ins that byte-level BPE uses for the 256 bytes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {chr(byte): byte for byte in printable}
    others = (byte for byte in range(256) if byte not in printable)
    table.update({chr(256 + at): byte for at, byte in enumerate(others)})
    return table
