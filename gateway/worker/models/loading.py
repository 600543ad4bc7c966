"""Builds a Llama from a GGUF file, or the tiny random one for tests."""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from gateway.core.errors import ConfigError
from gateway.worker.gguf import GGUFFile
from gateway.worker.models.llama import Layer, Llama, LlamaShape
from gateway.worker.models.shapes import random_llama
from gateway.worker.weights import (
    Matrix,
    Rows,
    agrees,
    bfloat16_is_fast,
    same_rows,
    stack,
)

log = logging.getLogger(__name__)


def llama_from_gguf(file: GGUFFile, *, dtype: torch.dtype | None = None) -> Llama:
    """The model in ``dtype``, or in the fastest forms of this CPU that pass their self-test.

    Raises ConfigError for another architecture.
    """
    shape = _shape(file.meta)
    chosen = dtype or (torch.bfloat16 if bfloat16_is_fast() else torch.float32)
    fast = dtype is None and chosen is torch.bfloat16
    layers = [_layer(file, shape, number, chosen, pack=fast) for number in range(shape.layers)]
    embedding = torch.from_numpy(file.tensors["token_embd.weight"].floats()).to(chosen)
    head = Matrix(embedding)
    if "output.weight" in file.tensors:
        head = Matrix(torch.from_numpy(file.tensors["output.weight"].floats()).to(chosen))
    if fast:
        layers, head = _fastest(layers, head)
    return Llama(shape, embedding, layers, _vector(file, "output_norm", chosen), head)


def _fastest(layers: list[Layer], head: Matrix) -> tuple[list[Layer], Matrix]:
    """The forms that this CPU runs fastest, each only if it computes what it should."""
    if not agrees(layers[0].qkv, layers[0].qkv.weight):
        log.warning("packed weights failed their self-test; bfloat16 is used")
        layers = [_changed(layer, Matrix.without_packed) for layer in layers]
    if not agrees(layers[0].qkv.reordered(), layers[0].qkv.weight):
        log.warning("reordered weights failed their self-test; plain ones are used")
        return layers, head
    layers, head = [_changed(layer, Matrix.reordered) for layer in layers], head.reordered()
    return layers, head


def _changed(layer: Layer, change: Callable[[Matrix], Matrix]) -> Layer:
    qkv, out, gate_up, down = map(change, (layer.qkv, layer.out, layer.gate_up, layer.down))
    return replace(layer, qkv=qkv, out=out, gate_up=gate_up, down=down)


def tiny_llama(context: int) -> Llama:
    """A random float32 model over bytes: 2 layers, the same weights each time."""
    shape = LlamaShape(2, 32, 4, 2, 8, 260, context, 10_000.0, 1e-5)
    return random_llama(shape, 64, "cpu", torch.float32)


def on_device(model: Llama, device: str) -> Llama:
    """The same model there. Its matrices must be plain ones."""

    def moved(matrix: Matrix) -> Matrix:
        return Matrix(matrix.weight.to(device))

    layers = [
        replace(
            _changed(layer, moved),
            attention_norm=layer.attention_norm.to(device),
            mlp_norm=layer.mlp_norm.to(device),
        )
        for layer in model.layers
    ]
    embedding, norm = model.embedding.to(device), model.norm.to(device)
    tied = model.head.weight is model.embedding
    head = Matrix(embedding) if tied else moved(model.head)
    return Llama(model.shape, embedding, layers, norm, head)


def _shape(meta: dict[str, Any]) -> LlamaShape:
    architecture = meta.get("general.architecture")
    if architecture != "llama":
        raise ConfigError(
            f"the bundled worker runs Llama models, not {architecture}; serve this one with "
            "another server, such as vLLM, and name its URL in the policy"
        )
    hidden, heads = meta["llama.embedding_length"], meta["llama.attention.head_count"]
    return LlamaShape(
        layers=meta["llama.block_count"],
        hidden=hidden,
        heads=heads,
        kv_heads=meta.get("llama.attention.head_count_kv", heads),
        head_dim=meta.get("llama.rope.dimension_count", hidden // heads),
        vocab=len(meta["tokenizer.ggml.tokens"]),
        context=meta["llama.context_length"],
        rope_base=meta.get("llama.rope.freq_base", 10_000.0),
        epsilon=meta["llama.attention.layer_norm_rms_epsilon"],
    )


def _layer(
    file: GGUFFile, shape: LlamaShape, number: int, dtype: torch.dtype, *, pack: bool
) -> Layer:
    def raw(name: str) -> Any:
        return file.tensors[f"blk.{number}.{name}.weight"]

    def matrix(*parts: tuple[str, Rows]) -> Matrix:
        return stack([(raw(name), order) for name, order in parts], dtype, pack=pack)

    return Layer(
        qkv=matrix(
            ("attn_q", _unpermuted(shape.heads)),
            ("attn_k", _unpermuted(shape.kv_heads)),
            ("attn_v", same_rows),
        ),
        out=matrix(("attn_output", same_rows)),
        gate_up=matrix(("ffn_gate", same_rows), ("ffn_up", same_rows)),
        down=matrix(("ffn_down", same_rows)),
        attention_norm=_vector(file, f"blk.{number}.attn_norm", dtype),
        mlp_norm=_vector(file, f"blk.{number}.ffn_norm", dtype),
    )


def _vector(file: GGUFFile, name: str, dtype: torch.dtype) -> torch.Tensor:
    return torch.from_numpy(file.tensors[f"{name}.weight"].floats()).to(dtype)


def _unpermuted(heads: int) -> Rows:
    """Files of this architecture interleave the halves of each head of Q and K: undo it."""

    def order(values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        rows = values.shape[0]
        parts = values.reshape(heads, rows // heads // 2, 2, -1)
        return parts.swapaxes(1, 2).reshape(values.shape)

    return order
