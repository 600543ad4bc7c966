"""The packaged model as a folder that vLLM and other engines load.

``python -m tests.support.hf_model FOLDER`` writes config, weights in bfloat16 and tokenizer.
"""

import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from tokenizers import decoders

from gateway.worker.gguf import GGUFFile, packaged_model
from gateway.worker.models.loading import _shape, _unpermuted
from gateway.worker.tokenizer import BPEVocabulary
from gateway.worker.weights import Rows, same_rows

_PARTS = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}


def write_hf_model(folder: Path, source: Path | None = None) -> Path:
    """Write the model of a GGUF file into ``folder``; returns it."""
    file = GGUFFile(source or packaged_model())
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(folder / "config.json", _config(file.meta))
    _write_weights(folder / "model.safetensors", dict(_weights(file)))
    _write_tokenizer(folder, file.meta)
    return folder


def _config(meta: dict[str, Any]) -> dict[str, Any]:
    shape = _shape(meta)
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "hidden_size": shape.hidden,
        "intermediate_size": meta["llama.feed_forward_length"],
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "vocab_size": shape.vocab,
        "max_position_embeddings": shape.context,
        "rope_theta": shape.rope_base,
        "rope_parameters": {"rope_type": "default", "rope_theta": shape.rope_base},
        "rms_norm_eps": shape.epsilon,
        "bos_token_id": meta.get("tokenizer.ggml.bos_token_id", 0),
        "eos_token_id": meta["tokenizer.ggml.eos_token_id"],
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
    }


def _weights(file: GGUFFile) -> Iterator[tuple[str, torch.Tensor]]:
    shape = _shape(file.meta)
    orders = {"attn_q": _unpermuted(shape.heads), "attn_k": _unpermuted(shape.kv_heads)}

    def tensor(name: str, order: Rows = same_rows) -> torch.Tensor:
        return torch.from_numpy(order(file.tensors[f"{name}.weight"].floats()).copy()).bfloat16()

    yield "model.embed_tokens.weight", tensor("token_embd")
    yield "model.norm.weight", tensor("output_norm")
    for layer in range(shape.layers):
        for ours, theirs in _PARTS.items():
            name = f"model.layers.{layer}.{theirs}.weight"
            yield name, tensor(f"blk.{layer}.{ours}", orders.get(ours, same_rows))


def _write_weights(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    """The safetensors format: length of the head, the head as JSON, the bytes."""
    head: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, tensor in tensors.items():
        start, end = end, end + tensor.numel() * tensor.element_size()
        head[name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = json.dumps(head).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.contiguous().view(torch.int16).numpy().tobytes())


def _write_tokenizer(folder: Path, meta: dict[str, Any]) -> None:
    names = meta["tokenizer.ggml.tokens"]
    end = names[meta["tokenizer.ggml.eos_token_id"]]
    tokenizer = BPEVocabulary(meta)._tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    told = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": names[meta.get("tokenizer.ggml.bos_token_id", 0)],
        "eos_token": end,
        "pad_token": end,
        "clean_up_tokenization_spaces": False,
        "chat_template": meta["tokenizer.chat_template"],
    }
    _write_json(folder / "tokenizer_config.json", told)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1))


if __name__ == "__main__":
    write_hf_model(Path(sys.argv[1]))
