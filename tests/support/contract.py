"""The wire contract: every answer is held against its JSON schema."""

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

CONFORMANCE = Path(__file__).parent.parent / "conformance"
_SCHEMAS = json.loads((CONFORMANCE / "schemas.json").read_text())


def checked(answer: Any, name: str) -> Any:
    """``answer``, which must be a ``name`` of schemas.json."""
    schema = {"$ref": f"#/$defs/{name}", "$defs": _SCHEMAS["$defs"]}
    Draft202012Validator(schema).validate(answer)
    return answer


def sample(name: str, **models: str) -> bytes:
    """A batch file with ``MODEL`` and ``MODEL_E`` replaced."""
    content = (CONFORMANCE / "batches" / f"{name}.jsonl").read_bytes()
    for placeholder, model in sorted(models.items(), reverse=True):
        content = content.replace(f'"{placeholder}"'.encode(), f'"{model}"'.encode())
    return content
