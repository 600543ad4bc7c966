"""GGUF files."""

from pathlib import Path

import pytest

from gateway.core.errors import ConfigError
from gateway.worker.gguf import GGUFFile, packaged_model


def test_the_packaged_model_is_read_without_importing_its_package() -> None:
    """Metadata and all tensors are there; a tensor has the shape it says."""
    file = GGUFFile(packaged_model())
    assert file.meta["general.architecture"] == "llama"
    assert len(file.tensors) == 272
    norm = file.tensors["output_norm.weight"].floats()
    assert norm.shape == (576,)
    assert file.tensors["blk.0.attn_k.weight"].floats().shape == (192, 576)


@pytest.mark.parametrize("content", [b"", b"GG", b"NOPE" + bytes(40), b"GGUF" + bytes([3] * 30)])
def test_another_file_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    """Empty, short, foreign and cut files say so."""
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"model\.gguf"):
        GGUFFile(path)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    """The path is in the message."""
    with pytest.raises(ConfigError, match="absent"):
        GGUFFile(tmp_path / "absent.gguf")
