"""Settings come from the environment, once."""

from pathlib import Path

import pytest

from gateway.core.errors import ConfigError
from gateway.core.settings import Settings, child_environment, load_settings


def test_both_names_of_the_redis_url_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """REDIS_URL is an alias; the prefixed name wins."""
    monkeypatch.setenv("REDIS_URL", "redis://a")
    assert _url(load_settings()) == "redis://a"
    monkeypatch.setenv("HEADWAY_REDIS_URL", "redis://b")
    assert _url(load_settings()) == "redis://b"


def test_the_command_line_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is given by hand beats the environment; None is not given."""
    monkeypatch.setenv("HEADWAY_PORT", "9")
    assert load_settings(port=10, host=None).port == 10
    assert load_settings(data_dir=Path("/x")).data_dir == Path("/x")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HEADWAY_PORT", "many"),
        ("HEADWAY_LOG_LEVEL", "loud"),
        ("HEADWAY_API_KEY", " "),
        ("HEADWAY_API_KEY", ""),
        ("HEADWAY_REDIS_URL", ""),
        ("HEADWAY_REDIS_URL", "nonsense"),
        ("HEADWAY_REDIS_URL", "http://h:1"),
        ("HEADWAY_REDIS_URL", "redis://h:port"),
        ("HEADWAY_REDIS_URL", "unix://"),
        ("HEADWAY_DATA_DIR", ""),
        ("HEADWAY_POLICY", ""),
    ],
)
def test_a_wrong_value_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """The message names the variable; an empty secret (CFG-07) is a mistake, not an open door."""
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=name):
        load_settings()


def test_a_wrong_option_is_refused_by_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who gave ``--port`` hears of that, whatever the environment says."""
    monkeypatch.setenv("HEADWAY_PORT", "9")
    with pytest.raises(ConfigError, match=r"^--port: Input should be less than"):
        load_settings(port=99999)
    with pytest.raises(ConfigError, match=r"^--log-level: "):
        load_settings(log_level="x")


def test_a_wrong_redis_url_does_not_show_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence says what is wanted, not what was given."""
    monkeypatch.setenv("HEADWAY_REDIS_URL", "rediss//u:secret@h")
    with pytest.raises(ConfigError) as caught:
        load_settings()
    assert str(caught.value) == "HEADWAY_REDIS_URL: must be a redis://, rediss:// or unix:// URL"


def test_secrets_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """Printing settings prints no secret."""
    monkeypatch.setenv("HEADWAY_API_KEY", "sk-secret")
    assert "sk-secret" not in repr(load_settings())


def test_the_data_directory_is_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A relative one counts from where the command was given; ``~`` is the home directory."""
    monkeypatch.chdir(tmp_path)
    assert load_settings(data_dir=Path("d")).data_dir == tmp_path / "d"
    assert load_settings(data_dir=Path("~/d")).data_dir == Path.home() / "d"


def _url(settings: Settings) -> str | None:
    return settings.redis_url.get_secret_value() if settings.redis_url else None


def test_a_child_gets_this_environment_and_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is given wins over what the process has."""
    monkeypatch.setenv("HEADWAY_PORT", "1")
    monkeypatch.setenv("HEADWAY_HOST", "localhost")
    environment = child_environment({"HEADWAY_PORT": "2"})
    assert (environment["HEADWAY_PORT"], environment["HEADWAY_HOST"]) == ("2", "localhost")


def test_proxies_are_addresses_and_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else is trusted by mistake; none at all is the default."""
    assert load_settings().trusted_proxies == ""
    monkeypatch.setenv("HEADWAY_TRUSTED_PROXIES", "10.0.0.0/8, ::1")
    assert load_settings().trusted_proxies == "10.0.0.0/8, ::1"
    monkeypatch.setenv("HEADWAY_TRUSTED_PROXIES", "10.0.0.0/8, proxy.local")
    with pytest.raises(ConfigError, match=r"HEADWAY_TRUSTED_PROXIES: .*proxy\.local"):
        load_settings()
