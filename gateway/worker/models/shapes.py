"""Models of known sizes with random weights: as fast as the real ones, and as wise as dice."""

import torch

from gateway.core.errors import ConfigError
from gateway.worker.models.llama import Layer, Llama, LlamaShape
from gateway.worker.weights import Matrix

PREFIX = "shape:"
_SEED = 5
# layers, hidden, heads, kv_heads, head_dim, vocabulary, feed-forward, base of the rotation
_SHAPES = {
    "tiny": (2, 64, 4, 2, 16, 512, 96, 10_000.0),
    "smollm2-135m": (30, 576, 9, 3, 64, 49_152, 1536, 100_000.0),
    "llama-2-7b": (32, 4096, 32, 32, 128, 32_000, 11_008, 10_000.0),
    "llama-3-8b": (32, 4096, 32, 8, 128, 128_256, 14_336, 500_000.0),
    "mistral-7b": (32, 4096, 32, 8, 128, 32_768, 14_336, 1_000_000.0),
}


def shape_named(name: str, context: int) -> tuple[LlamaShape, int]:
    """Sizes, and those of the feed-forward part. Raises ConfigError with the names there are."""
    if name not in _SHAPES:
        raise ConfigError(f"there is no shape {name!r}; there are {', '.join(_SHAPES)}")
    layers, hidden, heads, kv_heads, head_dim, vocab, inner, base = _SHAPES[name]
    return LlamaShape(layers, hidden, heads, kv_heads, head_dim, vocab, context, base, 1e-5), inner


def random_llama(
    shape: LlamaShape, inner: int, device: torch.device | str, dtype: torch.dtype
) -> Llama:
    """Weights drawn on the device: the same ones each time on the same kind of device."""
    random = torch.Generator(device).manual_seed(_SEED)

    def drawn(outputs: int, inputs: int) -> torch.Tensor:
        return torch.randn(outputs, inputs, generator=random, device=device, dtype=dtype)

    def matrix(outputs: int, inputs: int) -> Matrix:
        return Matrix(drawn(outputs, inputs).mul_(2 / inputs**0.5))

    ones = torch.ones(shape.hidden, device=device, dtype=dtype)
    wide = (shape.heads + 2 * shape.kv_heads) * shape.head_dim
    layers = [
        Layer(
            matrix(wide, shape.hidden),
            matrix(shape.hidden, shape.heads * shape.head_dim),
            matrix(2 * inner, shape.hidden),
            matrix(shape.hidden, inner),
            ones,
            ones,
        )
        for _ in range(shape.layers)
    ]
    embedding = drawn(shape.vocab, shape.hidden)
    return Llama(shape, embedding, layers, ones, matrix(shape.vocab, shape.hidden))
