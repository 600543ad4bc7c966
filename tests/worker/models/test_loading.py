"""The packaged model, loaded."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows

from gateway.core.errors import ConfigError
from gateway.worker.gguf import GGUFFile, packaged_model
from gateway.worker.kv_cache import KVCache
from gateway.worker.models.llama import Forward, Llama, PromptPart
from gateway.worker.models.loading import llama_from_gguf
from gateway.worker.tokenizer import BPEVocabulary

TEXT = (
    "The sea covers most of the Earth. Its water is salt, and it is moved by the wind, by the "
    "moon and by the warmth of the sun. Rivers bring it sand and stones from the mountains, and "
    "over millions of years these become new rock. People have sailed on it for a very long time. "
    "The first boats were made of reeds or of hollow trees, and they stayed close to the shore. "
    "Later, ships with sails crossed whole oceans, and their captains found the way by the stars. "
    "A sailor had to know the weather, because a storm could break a mast in a moment. Today most "
    "of the goods that are traded between countries still travel by ship. Large harbours work day "
    "and night, and a single vessel may carry twenty thousand containers. Below the surface there "
    "is another world. Near the coast, light reaches the bottom and plants grow there, so that "
    "small fish find food and hide from larger ones. Further down it is dark and cold, and the "
    "animals that live there make their own light. Nobody has seen more than a small part of that "
    "world, although people have walked on the moon. Scientists send machines to the deepest "
    "places, and each time they come back with pictures of creatures that were not known before."
)


def _loss(model: Llama, tokens: list[int], piece: int) -> float:
    """Mean negative log likelihood per token, read ``piece`` tokens at a time."""
    shape = model.shape
    cache = KVCache(
        layers=shape.layers,
        slots=1,
        kv_heads=shape.kv_heads,
        context=512,
        head_dim=shape.head_dim,
        dtype=model.dtype,
    )
    ids, logits = torch.tensor(tokens), []
    for start in range(0, len(tokens), piece):
        some = ids[start : start + piece]
        count = len(some)
        positions = torch.arange(start, start + count)
        slots, wanted = torch.zeros(count, dtype=torch.long), torch.arange(count)
        part = PromptPart(0, 0, start, count)
        with torch.inference_mode():
            logits.append(
                model.forward(Forward(some, slots, positions, (), (part,), wanted), cache)
            )
    return float(F.cross_entropy(torch.cat(logits).float()[:-1], ids[1:]))


@pytest.mark.long
def test_fast_weights_are_as_good_as_exact_ones() -> None:
    """Packed and bfloat16 cost at most 0.02 nats per token on English text."""
    file = GGUFFile(packaged_model())
    tokens = BPEVocabulary(file.meta).encode(TEXT)
    assert len(tokens) > 240
    slow, fast = llama_from_gguf(file, dtype=torch.float32), llama_from_gguf(file)
    exact = _loss(slow, tokens, 64)
    assert exact < 4
    assert _loss(fast, tokens, 64) <= exact + 0.02
    assert _loss(fast, tokens, 4) <= exact + 0.02


def test_another_architecture_is_refused_with_a_way_out() -> None:
    """The message names an alternative."""
    file = GGUFFile(packaged_model())
    file.meta = {**file.meta, "general.architecture": "gemma"}
    with pytest.raises(ConfigError, match="vLLM"):
        llama_from_gguf(file)
