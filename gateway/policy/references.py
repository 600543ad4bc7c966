"""Faults that no single member shows: names nobody declared, secrets that are empty or shared."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

from gateway.policy.model import KeyPolicy, Policy
from gateway.policy.tree import Place
from gateway.schemas.webhooks import EVENTS

SIMPLE_KEY = "default"
Fault = tuple[Place, str]


def empty_secrets(values: Any) -> Iterator[Fault]:
    """Secrets that are written down but have no value."""
    for place, value in _secrets(values):
        if value is None or (isinstance(value, str) and not value.strip()):
            yield place, "is empty; give it a value or leave it out"


def bad_references(policy: Policy) -> Iterator[Fault]:
    """Everything that points at what is not there, or stands for two things."""
    yield from _addresses(policy)
    yield from _shared_keys(policy)
    yield from _webhooks(policy)
    yield from _models(policy)
    yield from _late(policy)
    models = policy.served()
    for name, key in policy.keys.items():
        yield from _unknown(("keys", name, "models"), key.models, models, "model")
    keys = {SIMPLE_KEY, *policy.keys}
    tenants = {SIMPLE_KEY, *policy.tenants, *(key.tenant for key in policy.keys.values())}
    for name, rule in policy.classify.rules.items():
        place = ("classify", "rules", name)
        yield from _unknown((*place, "keys"), rule.keys, keys, "key")
        yield from _unknown((*place, "tenants"), rule.tenants, tenants, "tenant")
        yield from _unknown((*place, "models"), rule.models, models, "model")


def _secrets(values: Any) -> Iterator[tuple[Place, Any]]:
    for name, target in _members(values, "targets"):
        yield from _given(("targets", name), target, "api_key")
        keys = target.get("api_keys") if isinstance(target, dict) else None
        for number, value in enumerate(keys if isinstance(keys, list) else ()):
            yield ("targets", name, "api_keys", number), value
        for header, value in _members(target, "headers"):
            yield ("targets", name, "headers", header), value
    for name, key in _members(values, "keys"):
        yield from _given(("keys", name), key, "key", "sha256")
    for name, tenant in _members(values, "tenants"):
        hooks = tenant.get("webhooks") if isinstance(tenant, dict) else None
        for number, hook in enumerate(hooks if isinstance(hooks, list) else ()):
            yield from _given(("tenants", name, "webhooks", number), hook, "secret")


def _given(place: Place, values: Any, *names: str) -> Iterator[tuple[Place, Any]]:
    for name in names:
        if isinstance(values, dict) and name in values:
            yield (*place, name), values[name]


def _members(values: Any, name: str) -> Iterable[tuple[str, Any]]:
    inner = values.get(name) if isinstance(values, dict) else None
    return inner.items() if isinstance(inner, dict) else ()


def _addresses(policy: Policy) -> Iterator[Fault]:
    for name, target in policy.targets.items():
        if target.base_url and not _usable(target.base_url):
            yield ("targets", name, "base_url"), "is not an http or https address"


def _models(policy: Policy) -> Iterator[Fault]:
    served = policy.served()
    own = {model for target in policy.targets.values() for model in target.models}
    taken: dict[str, str] = {}
    for name, rules in policy.models.items():
        place = ("models", name)
        if name not in own:
            yield place, f"no target serves it; there are {', '.join(sorted(own))}"
        for number, alias in enumerate(rules.aliases):
            other = name if alias in own else taken.setdefault(alias, name)
            if alias in own or other != name or alias in rules.aliases[:number]:
                what = "a model of a target" if alias in own else f"an alias of models.{other}"
                yield (*place, "aliases", number), f"is {what} already"
        longer = (rules.longer_context,) if rules.longer_context else ()
        yield from _unknown((*place, "fallback"), rules.fallback, served, "model")
        for fault in _unknown((*place, "longer_context"), longer, served, "model"):
            yield (*place, "longer_context"), fault[1]
        if name in {*rules.fallback, *longer}:
            yield place, "cannot take over from itself"


def _late(policy: Policy) -> Iterator[Fault]:
    for name, target in policy.targets.items():
        batch, place = target.lanes.batch, ("targets", name, "lanes", "batch", "late")
        if batch.late is None:
            continue
        if batch.when != "late":
            yield place, "is for when: late"
        elif target.price is None:
            yield place, f"needs a price: say what tokens cost in targets.{name}.price"


def _webhooks(policy: Policy) -> Iterator[Fault]:
    for name, tenant in policy.tenants.items():
        urls: set[str] = set()
        for number, hook in enumerate(tenant.webhooks):
            place = ("tenants", name, "webhooks", number)
            if not _usable(hook.url):
                yield (*place, "url"), "is not an http or https address"
            if hook.url in urls:
                yield (*place, "url"), "is given twice"
            urls.add(hook.url)
            yield from _unknown((*place, "events"), hook.events, EVENTS, "event")


def _usable(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _shared_keys(policy: Policy) -> Iterator[Fault]:
    owners: dict[str, str] = {}
    for name, key in policy.keys.items():
        owner = owners.setdefault(_digest(key), name)
        if owner != name:
            yield ("keys", name), f"the same key as keys.{owner}; each name needs its own"


def _digest(key: KeyPolicy) -> str:
    if key.key is None:
        return key.sha256 or ""
    return hashlib.sha256(key.key.get_secret_value().strip().encode()).hexdigest()


def _unknown(
    place: Place, names: Iterable[str] | None, known: Iterable[str], what: str
) -> Iterator[Fault]:
    for number, name in enumerate(names or ()):
        if name not in known:
            listed = ", ".join(sorted(known)) or "none"
            yield (*place, number), f"no {what} is called {name!r}; there are {listed}"
