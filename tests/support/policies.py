"""Policy files for tests."""

from pathlib import Path

import pytest

from gateway.core.errors import ConfigError
from gateway.policy.loader import load_policy

FOUR_LINES = """\
targets:
  vllm:
    base_url: http://127.0.0.1:8001/v1
    api_key: ${VLLM_KEY}        # optional
    models: [my-chat, my-embed]
"""


def write_policy(folder: Path, text: str) -> Path:
    """The file with this text."""
    file = folder / "policy.yaml"
    file.write_text(text)
    return file


def faults_of(file: Path) -> list[str]:
    """What is wrong with a policy, a line each, without the file's name."""
    with pytest.raises(ConfigError) as caught:
        load_policy(file)
    return [line.removeprefix(f"{file}:") for line in str(caught.value).splitlines()]
