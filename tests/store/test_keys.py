"""Key names: one slot for a shard, one shard for a model."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.store.keys import shard_key, shard_of


def test_a_plain_model_keeps_its_name() -> None:
    """A person who looks into Redis finds the model."""
    assert shard_of("meta-llama/Llama-3.1-8B") == "meta-llama/Llama-3.1-8B.0"
    assert shard_key("m.0", "meta") == "gw:{m.0}:meta"


def test_a_hot_model_may_have_several_shards() -> None:
    """Parts of a model are shards of their own."""
    assert shard_of("m", 1) != shard_of("m", 0)


@given(st.text(min_size=1))
def test_no_model_name_can_break_the_slot_tag(model: str) -> None:
    """The first braces of a key enclose the whole shard, so all keys of a shard share a slot."""
    key = shard_key(shard_of(model), "meta")
    assert key[key.index("{") + 1 : key.index("}")] == shard_of(model)
    assert not any(mark in shard_of(model) for mark in "*?[]{} \n")


@given(st.text(min_size=1), st.text(min_size=1))
def test_two_models_never_share_a_shard(one: str, other: str) -> None:
    """Escaping loses nothing."""
    assert (shard_of(one) == shard_of(other)) == (one == other)
