"""From file to policy."""

from pathlib import Path

import pytest

from gateway.core.errors import ConfigError
from gateway.core.lanes import Lane
from gateway.policy.loader import builtin_policies, load_policy
from tests.support.policies import FOUR_LINES, faults_of, write_policy


def test_the_four_line_policy_is_valid_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An own server is four lines; the key comes from the environment."""
    monkeypatch.setenv("VLLM_KEY", "secret-1")
    target = load_policy(write_policy(tmp_path, FOUR_LINES)).targets["vllm"]
    assert target.base_url == "http://127.0.0.1:8001/v1"
    assert target.models == {"my-chat": "my-chat", "my-embed": "my-embed"}
    assert target.api_key is not None
    assert target.api_key.get_secret_value() == "secret-1"


def test_its_key_is_optional(tmp_path: Path) -> None:
    """The line with the key may be left out."""
    text = "".join(line for line in FOUR_LINES.splitlines(keepends=True) if "api_key" not in line)
    assert load_policy(write_policy(tmp_path, text)).targets["vllm"].api_key is None


def test_cfg_05_an_unset_variable_is_refused_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names UP_KEY, file, line and path; the exit code is 78."""
    monkeypatch.delenv("UP_KEY", raising=False)
    text = FOUR_LINES.replace("VLLM_KEY", "UP_KEY")
    file = write_policy(tmp_path, text)
    with pytest.raises(ConfigError, match="UP_KEY is not set") as caught:
        load_policy(file)
    assert str(caught.value).startswith(f"{file}:4: targets.vllm.api_key: ")
    assert caught.value.exit_code == 78


@pytest.mark.parametrize("given", ["", "  "])
def test_cfg_07_an_empty_secret_is_refused(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client key or a provider key from an empty variable never opens anything."""
    monkeypatch.setenv("VLLM_KEY", given)
    text = FOUR_LINES + "keys:\n  me: {key: '${VLLM_KEY}'}\n"
    assert faults_of(write_policy(tmp_path, text)) == [
        "4: targets.vllm.api_key: is empty; give it a value or leave it out",
        "7: keys.me.key: is empty; give it a value or leave it out",
    ]


def test_cfg_08_unknown_and_renamed_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is refused with its path and the name it should have; all are told at once."""
    monkeypatch.setenv("VLLM_KEY", "k")
    text = FOUR_LINES + "    retry: {max_retrys: 3}\n    url: x\ntargts: {}\n"
    assert faults_of(write_policy(tmp_path, text)) == [
        "6: targets.vllm.retry.max_retrys: unknown key; did you mean 'attempts'?",
        "7: targets.vllm.url: unknown key; it is called 'base_url' here",
        "8: targts: unknown key; did you mean 'targets'?",
    ]


def test_cfg_09_nothing_configured_is_a_default_without_an_upstream() -> None:
    """The default policy offers the bundled worker and names nobody else."""
    policy = load_policy(None)
    assert [(t.kind, t.base_url, t.api_key) for t in policy.targets.values()] == [
        ("local", None, None)
    ]
    assert policy.served() == {"smollm2-135m-instruct": ("local",)}
    limits = policy.targets["local"].lanes
    assert limits.interactive.max_in_flight == 8
    assert limits.interactive.max_queue >= 64
    assert limits.interactive.max_wait >= 120
    assert limits.of(Lane.BATCH).max_in_flight == 64


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "the policy is empty"), ("# nothing\n", "the policy is empty"), ("- a\n", "mapping")],
)
def test_cfg_09_an_empty_file_is_refused(text: str, said: str, tmp_path: Path) -> None:
    """A named file must say something."""
    with pytest.raises(ConfigError, match=said):
        load_policy(write_policy(tmp_path, text))


def test_cfg_09_a_missing_file_is_refused(tmp_path: Path) -> None:
    """No file, a folder and bytes that are no text are faults that name the file."""
    (tmp_path / "latin").write_bytes(b"a: \xff\n")
    for name in ("none.yaml", ".", "latin"):
        with pytest.raises(ConfigError, match=str(tmp_path)):
            load_policy(tmp_path / name)


@pytest.mark.parametrize("name", sorted(builtin_policies()))
def test_built_in_policies_are_valid(name: str) -> None:
    """All of them load, and none names an upstream."""
    policy = load_policy(builtin_policies()[name])
    assert all(target.kind == "local" for target in policy.targets.values())
    for target in policy.targets.values():
        worker, lanes = target.worker, target.lanes
        assert lanes.interactive.max_in_flight <= worker.reserved_rows
        assert lanes.batch.max_in_flight <= worker.rows - worker.reserved_rows


def test_built_in_policies_differ() -> None:
    """Caps, lanes and batch sizes are not the same in any two."""
    policies = [load_policy(file) for file in builtin_policies().values()]
    assert set(builtin_policies()) == {"default", "interactive-first", "throughput-first"}
    lanes = [policy.targets["local"].lanes for policy in policies]
    for lane in Lane:
        assert len({limits.of(lane).max_in_flight for limits in lanes}) == 3
