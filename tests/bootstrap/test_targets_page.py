"""The page of targets, from what each process tells."""

from typing import Any

from gateway.bootstrap.targets_page import merged

CAPS = {"rows": 40, "ours": 20, "prompts": 1, "ttft": 0.2, "gap": 0.03}


def _gateway(**changes: Any) -> tuple[str, dict[str, Any]]:
    lanes = {"interactive": {"running": 2, "waiting": 1}}
    calm = {"healthy": True, "breaker_open": False, "closed_s": 0.0, "engine": None}
    return "gateway", {"up": {**calm, "lanes": lanes, **changes}}


def _dispatcher(**changes: Any) -> tuple[str, dict[str, Any]]:
    found = {"rows": 7, "prefilling": 1, "works": True, "admits": True, "caps": CAPS}
    return "dispatcher", {"up": {**found, **changes}}


def test_calls_and_rows_are_added_up() -> None:
    """Caps are those of the target, whoever tells them; the best founded advice counts."""
    engine = {"running": 9, "waiting": 0, "kv_use": 0.5}
    (page,) = merged(
        [
            _dispatcher(engine={"samples": 30}),
            _dispatcher(engine={"samples": 90}),
            _dispatcher(engine=None),
            _gateway(),
            _gateway(engine=engine),
        ]
    )
    assert page == {
        "target": "up",
        "state": "ok",
        "gateways": 2,
        "dispatchers": 3,
        "lanes": {
            "interactive": {"running": 4, "waiting": 2},
            "batch": {"running": 21, "prefilling": 3},
        },
        "caps": {"rows": 40, "prompts": 1, "ttft": 0.2, "gap": 0.03},
        "engine_says": engine,
        "advice": {"samples": 90},
        "late_cost": None,
    }


def test_the_worst_that_anybody_sees_is_the_state() -> None:
    """In words."""
    cases = [
        (_gateway(healthy=False), "unhealthy"),
        (_gateway(breaker_open=True, closed_s=2.5), "left out for 2.5 s"),
        (_gateway(closed_s=9.0), "left alone for 9 s"),
        (_dispatcher(works=False), "fails batch rows"),
    ]
    for report, state in cases:
        assert merged([_gateway(), _dispatcher(), report])[0]["state"] == state


def test_a_target_of_one_kind_of_process_is_shown_too() -> None:
    """One that takes no batch rows, and one whose gateways are all gone."""
    (page,) = merged([_gateway()])
    assert (page["caps"], page["advice"], page["dispatchers"]) == (None, None, 0)
    (page,) = merged([_dispatcher()])
    assert page["lanes"] == {"batch": {"running": 7, "prefilling": 1}}
    assert merged([]) == []
