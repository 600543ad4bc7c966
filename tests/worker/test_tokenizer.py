"""Tokens of the packaged model and of the tiny one."""

import pytest

from gateway.core.errors import InvalidRequest
from gateway.worker.gguf import GGUFFile, packaged_model
from gateway.worker.tokenizer import (
    BPEVocabulary,
    ByteVocabulary,
    Vocabulary,
    WordVocabulary,
    _Template,
)


@pytest.fixture(scope="module")
def smollm() -> BPEVocabulary:
    """The packaged model's tokenizer."""
    return BPEVocabulary(GGUFFile(packaged_model()).meta)


def test_digits_are_single_tokens(smollm: BPEVocabulary) -> None:
    """The reference tokenization of the model family."""
    expected = [19556, 216, 33, 34, 35, 36, 37, 28, 905, 216, 34, 32, 34, 37, 17]
    assert smollm.encode("Hello 12345, world 2025!") == expected


@pytest.mark.parametrize("text", ["Hello, world", "ça va? 日本 🙂\n\tx", "def f(a):\n    return a"])
def test_text_survives_the_round_trip(smollm: BPEVocabulary, text: str) -> None:
    """Bytes of the tokens are the bytes of the text, in both vocabularies."""
    for vocabulary in (smollm, ByteVocabulary()):
        tokens = vocabulary.encode(text)
        assert b"".join(vocabulary.pieces(token) for token in tokens) == text.encode()


def test_control_tokens_have_no_text(smollm: BPEVocabulary) -> None:
    """The end of a turn is one token without bytes, and it stops."""
    (token,) = smollm.encode("<|im_end|>")
    assert smollm.pieces(token) == b""
    assert token in smollm.stops


def test_a_chat_ends_where_the_answer_begins(smollm: BPEVocabulary) -> None:
    """The template of the model is used."""
    text = smollm.chat([{"role": "user", "content": "Hi"}])
    assert text.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")


def test_a_template_that_refuses_is_the_callers_fault() -> None:
    """A message that the template cannot render is a 400, not a crash."""
    vocabulary: Vocabulary = ByteVocabulary()
    assert vocabulary.chat([{"role": "user", "content": "a"}]) == "<user>a\n<assistant>"
    with pytest.raises(InvalidRequest):
        _Template("{{ raise_exception('no') }}", {}).render([])


def test_four_bytes_are_a_token_of_random_weights() -> None:
    """Every token has a text, so that a stream shows each."""
    vocabulary = WordVocabulary(49_152)
    tokens = vocabulary.encode("sun oak map!!")
    assert len(tokens) == 4
    assert all(0 <= token < vocabulary.size for token in tokens)
    assert all(len(vocabulary.pieces(token).decode()) == 4 for token in range(0, 49_152, 777))
    assert vocabulary.encode(vocabulary.chat([{"role": "user", "content": "x" * 400}]))[50] > 0
    assert not vocabulary.stops
