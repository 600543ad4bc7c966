"""The chart, linted and rendered by the real helm."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway import __version__
from gateway.core.settings import Settings
from gateway.policy.loader import load_policy
from tests.support.helm import CHART, helm, render, template
from tests.support.serve import headway_command


def pod(entry: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = entry["spec"]["template"]["spec"]
    return spec


def test_helm_finds_nothing_to_complain_about() -> None:
    """``helm lint --strict`` passes."""
    done = helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout


def test_the_chart_has_the_products_version() -> None:
    """Chart, images and package are released together."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == __version__
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert values["image"]["gateway"].endswith(f":{__version__}")


def test_default_values_give_every_part() -> None:
    """Gateway, dispatcher, worker, policy ConfigMap, Secrets, volume, services."""
    objects = render()
    assert objects.keys() == {
        ("Deployment", "r-headway-gateway"),
        ("Deployment", "r-headway-dispatcher"),
        ("Deployment", "r-headway-worker"),
        ("Service", "r-headway"),
        ("Service", "r-headway-worker"),
        ("ConfigMap", "r-headway-policy"),
        ("Secret", "r-headway-redis"),
        ("Secret", "r-headway-key"),
        ("PersistentVolumeClaim", "r-headway-data"),
    }


def test_probes_tell_live_from_ready() -> None:
    """DEP-07: own paths, patient limits, and a grace period above the app's own."""
    spec = pod(render()["Deployment", "r-headway-gateway"])
    container = spec["containers"][0]
    live, ready = container["livenessProbe"], container["readinessProbe"]
    assert live["httpGet"]["path"] == "/livez"
    assert ready["httpGet"]["path"] == "/readyz"
    assert min(live["timeoutSeconds"], ready["timeoutSeconds"]) >= 5
    assert live["failureThreshold"] * live["periodSeconds"] >= 60
    env = {entry["name"]: entry.get("value") for entry in container["env"]}
    pre_stop = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    app_grace = int(env["HEADWAY_GRACE_SECONDS"] or 0)
    assert spec["terminationGracePeriodSeconds"] > app_grace + pre_stop


def test_a_longer_grace_moves_the_kill_along() -> None:
    """The kill always comes after the app's own time."""
    objects = render(gateway__graceSeconds="300", dispatcher__graceSeconds="100")
    assert pod(objects["Deployment", "r-headway-gateway"])["terminationGracePeriodSeconds"] == 315
    dispatcher = pod(objects["Deployment", "r-headway-dispatcher"])
    assert dispatcher["terminationGracePeriodSeconds"] == 110


def test_fast_probes_still_wait_a_minute() -> None:
    """A short period raises the number of failures allowed."""
    spec = pod(render(gateway__probes__periodSeconds="5")["Deployment", "r-headway-gateway"])
    live = spec["containers"][0]["livenessProbe"]
    assert live["failureThreshold"] * live["periodSeconds"] >= 60


def test_a_volume_of_one_node_is_never_wanted_twice() -> None:
    """DEP-08: with ReadWriteOnce the old pod goes first, and both parts share the node."""
    objects = render()
    for part in ("gateway", "dispatcher"):
        assert objects["Deployment", f"r-headway-{part}"]["spec"]["strategy"]["type"] == "Recreate"
    assert "podAffinity" in pod(objects["Deployment", "r-headway-dispatcher"])["affinity"]


@pytest.mark.parametrize("part", ["gateway", "dispatcher"])
def test_two_replicas_on_a_volume_of_one_node_are_refused(part: str) -> None:
    """DEP-08: refused at render time, with the way out."""
    done = template(**{f"{part}__replicas": "2"})
    assert done.returncode != 0
    assert "use ReadWriteMany" in done.stderr


def test_a_shared_volume_allows_replicas() -> None:
    """ReadWriteMany: rolling updates, any number, no tie to a node."""
    objects = render(
        persistence__accessMode="ReadWriteMany", gateway__replicas="3", dispatcher__replicas="2"
    )
    gateway = objects["Deployment", "r-headway-gateway"]["spec"]
    assert (gateway["replicas"], gateway["strategy"]["type"]) == (3, "RollingUpdate")
    assert "affinity" not in pod(objects["Deployment", "r-headway-dispatcher"])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"persistence__enabled": "false"}, "share files"),
        ({"redis__url": ""}, "redis.existingSecret"),
        ({"redis__url": "http://redis"}, "url"),
        ({"gateway__replicas": "0"}, "replicas"),
        ({"gatway__replicas": "1"}, "gatway"),
        ({"gateway__probes__timeoutSeconds": "1"}, "timeoutSeconds"),
    ],
)
def test_wrong_values_are_refused_by_name(values: dict[str, str], message: str) -> None:
    """A value that cannot work never reaches the cluster."""
    done = template(**values)
    assert done.returncode != 0
    assert message in done.stderr


def test_the_policy_it_ships_is_a_policy(tmp_path: Path) -> None:
    """The ConfigMap loads, and its target is the worker's service."""
    objects = render()
    path = tmp_path / "policy.yaml"
    path.write_text(objects["ConfigMap", "r-headway-policy"]["data"]["policy.yaml"])
    (target,) = load_policy(path).targets.values()
    port = objects["Service", "r-headway-worker"]["spec"]["ports"][0]["port"]
    assert target.base_url == f"http://r-headway-worker:{port}/v1"
    assert target.rank_scale == "lower"


def test_it_sets_nothing_that_is_not_a_setting() -> None:
    """Every variable is one of the product's, and commands parse."""
    known = {f"HEADWAY_{name.upper()}" for name in Settings.model_fields}
    for spec in [pod(e) for (kind, _), e in render().items() if kind == "Deployment"]:
        container = spec["containers"][0]
        assert {entry["name"] for entry in container.get("env", [])} <= known
        command, *options = container["args"]
        done = headway_command([command, *options, "--help"])
        assert done.returncode == 0, done.stderr


def test_secrets_of_ones_own() -> None:
    """With existing Secrets the chart makes none and reads theirs."""
    objects = render(redis__existingSecret="mine", keys__existingSecret="ours")
    assert not [kind for kind, _ in objects if kind == "Secret"]
    env = pod(objects["Deployment", "r-headway-gateway"])["containers"][0]["env"]
    names = {e["name"]: e["valueFrom"]["secretKeyRef"]["name"] for e in env if "valueFrom" in e}
    assert names == {"HEADWAY_REDIS_URL": "mine", "HEADWAY_API_KEY": "ours"}


def test_no_secret_outside_a_secret() -> None:
    """The Redis URL and the key are in no ConfigMap and no Deployment."""
    objects = render(redis__url="redis://:hunter2@r:6379", keys__apiKey="hw-secret")
    rest = yaml.safe_dump([entry for (kind, _), entry in objects.items() if kind != "Secret"])
    assert "hunter2" not in rest
    assert "hw-secret" not in rest


def test_every_pod_is_locked_down() -> None:
    """Non-root, read-only root, no capabilities, no cluster token."""
    workloads = [entry for (kind, _), entry in render().items() if kind == "Deployment"]
    for spec in map(pod, workloads):
        assert spec["securityContext"]["runAsNonRoot"]
        assert spec["automountServiceAccountToken"] is False
        security = spec["containers"][0]["securityContext"]
        assert security["readOnlyRootFilesystem"]
        assert security["capabilities"]["drop"] == ["ALL"]


def test_a_changed_policy_restarts_the_pods() -> None:
    """The policy's checksum is part of the pod template."""

    def checksum(**values: str) -> str:
        template = render(**values)["Deployment", "r-headway-gateway"]["spec"]["template"]
        found: str = template["metadata"]["annotations"]["checksum/policy"]
        return found

    assert checksum() == checksum()
    assert checksum() != checksum(policy="targets: {}")
