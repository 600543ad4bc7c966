"""Every policy that ships starts and is ready to be asked."""

from pathlib import Path

import pytest
import yaml

from tests.support.serve import headway

_POLICIES = sorted((Path(__file__).parents[2] / "policies").glob("*.yaml"))


@pytest.mark.parametrize("policy", _POLICIES, ids=lambda path: path.stem)
def test_it_starts_and_lists_its_models(policy: Path, tmp_path: Path) -> None:
    """The gateway answers with the models that the file names, whoever serves them."""
    env = {"HEADWAY_MODEL_PATH": "tiny"} | dict.fromkeys(_variables(policy.read_text()), "x")
    with headway(tmp_path, policy, env) as running, running.client() as client:
        served = {model["id"] for model in client.get("/models").json()["data"]}
    declared = yaml.safe_load(policy.read_text())["targets"].values()
    assert served == {name for target in declared for name in target["models"]}


def _variables(text: str) -> list[str]:
    return [piece.partition("}")[0].partition(":")[0] for piece in text.split("${")[1:]]
