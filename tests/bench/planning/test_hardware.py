"""Published speeds follow from published hardware."""

import pytest

from gateway.bench.planning.hardware import (
    GPUS,
    MODELS,
    ModelShape,
    measured,
    model_of,
    named,
    roofline,
)
from gateway.core.errors import ConfigError
from gateway.simulator.profile import PROFILES


@pytest.mark.parametrize(
    ("model", "gpu", "profile"),
    [("llama-2-7b", "a100-80", "a100-7b"), ("llama-3-8b", "a100-80", "a100-8b")],
)
def test_the_formula_is_near_what_was_measured(model: str, gpu: str, profile: str) -> None:
    """Weights, computing, cache reads and room within 20 %."""
    formula, found = roofline(MODELS[model], GPUS[gpu]), PROFILES[profile]
    for name in ("a", "b", "c", "kv_tokens"):
        assert getattr(formula, name) == pytest.approx(getattr(found, name), rel=0.2), name


def test_the_cache_counts_key_and_value_heads() -> None:
    """A 13B model with as many of them as query heads needs 819,200 bytes a token."""
    assert MODELS["llama-2-13b"].kv_bytes == 819_200
    assert MODELS["llama-3-8b"].kv_bytes * 4 == MODELS["llama-2-7b"].kv_bytes


def test_weights_that_do_not_fit_are_refused_and_two_gpus_help() -> None:
    """70B in 16 bits needs more than an 80 GB GPU."""
    with pytest.raises(ConfigError, match="gpus-per-worker"):
        roofline(MODELS["llama-3-70b"], GPUS["h100"])
    with pytest.raises(ConfigError, match="GPUs"):
        roofline(MODELS["llama-3-8b"], GPUS["h100"], 10**400)
    pair = roofline(MODELS["llama-3-70b"], GPUS["h200"], 2)
    assert pair.kv_tokens > 300_000
    assert pair.price == 2 * GPUS["h200"].price


def test_a_model_may_be_given_by_its_shape() -> None:
    """Named ones are in the table; nonsense is refused."""
    assert model_of("32,8,128,8,fp8") == ModelShape(32, 8, 128, 8e9, "fp8")
    assert model_of("32,8,128,8,fp8").weights == 8e9
    assert model_of("llama-3-8b") is MODELS["llama-3-8b"]
    wrong = ("gpt-9", "32,8,128,many", "32,8,128,8,fp3", "0,0,0,0", "32,8,128,nan", "32,8,128,-8")
    for text in (*wrong, "32,8,128,inf", "32,-8,128,8", f"{10**400},8,128,8"):
        with pytest.raises(ConfigError):
            model_of(text)


def test_a_measured_fit_replaces_the_formula() -> None:
    """The cache's room stays."""
    fitted = measured("5,0.02,0.00002,1", PROFILES["h200-8b"])
    assert (fitted.a, fitted.b, fitted.row) == (5, 0.02, 0)
    assert fitted.kv_tokens == PROFILES["h200-8b"].kv_tokens
    wrong = ("5,0.02", "nan,1,1,1", "inf,1,1,1", "-1,1,1,1", "0,0,0,0", "1e300,1,1,1")
    for text in (*wrong, "0,0,0,1e-300", "1,1,1,nan"):
        with pytest.raises(ConfigError):
            measured(text, fitted)


def test_a_wrong_name_lists_the_right_ones() -> None:
    """The message helps."""
    with pytest.raises(ConfigError, match="h200"):
        named(GPUS, "h300", "GPU")
