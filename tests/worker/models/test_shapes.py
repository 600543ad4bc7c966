"""Random weights of known sizes."""

import pytest
import torch

from gateway.core.errors import ConfigError
from gateway.worker.models.shapes import random_llama, shape_named


def test_the_same_weights_each_time() -> None:
    """In the sizes that were asked for."""
    shape, inner = shape_named("tiny", 128)
    first, second = (random_llama(shape, inner, "cpu", torch.float32) for _ in range(2))
    assert torch.equal(first.layers[1].down.weight, second.layers[1].down.weight)
    assert first.layers[0].gate_up.weight.shape == (2 * inner, shape.hidden)
    assert (len(first.layers), first.shape.context) == (2, 128)


def test_a_shape_has_as_many_weights_as_its_model() -> None:
    """8.03 billion of Llama 3 8B, by its sizes."""
    shape, inner = shape_named("llama-3-8b", 128)
    wide = (shape.heads + 2 * shape.kv_heads) * shape.head_dim
    layer = shape.hidden * (wide + shape.heads * shape.head_dim + 3 * inner)
    assert shape.layers * layer + 2 * shape.vocab * shape.hidden == pytest.approx(8.03e9, rel=0.001)


def test_an_unknown_name_is_answered_with_those_there_are() -> None:
    """One sentence."""
    with pytest.raises(ConfigError, match="llama-3-8b"):
        shape_named("gpt-7", 128)
