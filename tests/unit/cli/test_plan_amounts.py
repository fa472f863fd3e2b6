"""What a plan says of money, devices and amounts."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.commands import run, write_objects
from tests.unit.provisioner.clusters import TYPES, instance_type, node, node_pool, pod

GPU = "nvidia.com/gpu"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
_run = partial(run, "plan")


def _cluster(path: Path, *objects: dict[str, Any]) -> Path:
    versions = {"NodePool": "karpenter.sh/v1"}
    return write_objects(path, *({"apiVersion": versions.get(item["kind"], "v1"), **item} for item in objects))


def _json(*arguments: object) -> Any:
    result = _run(*arguments, "--output", "json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def _text(*arguments: object) -> str:
    result = _run(*arguments)
    assert result.exit_code == 0, result.stderr
    return " ".join(result.stdout.split())


def with_devices(node_or_pod: dict[str, Any], name: str, count: int) -> dict[str, Any]:
    """The node has, or the pod asks for, so many devices."""
    if node_or_pod["kind"] == "Node":
        for amounts in (node_or_pod["status"]["allocatable"], node_or_pod["status"]["capacity"]):
            amounts[name] = str(count)
    else:
        requests = node_or_pod["spec"]["containers"][0]["resources"]["requests"]
        node_or_pod["spec"]["containers"][0]["resources"] = {
            "requests": {**requests, name: str(count)},
            "limits": {name: str(count)},
        }
    return node_or_pod


@pytest.fixture
def gpus(tmp_path: Path) -> Path:
    """A full node with devices, one without, and a pod that waits for four devices."""
    big = with_devices(node("gpu-1", cpu="192", **{INSTANCE_TYPE: "p5.48xlarge"}), GPU, 8)
    plain = node("n1", cpu="2", **{INSTANCE_TYPE: "m5.large"})
    running = with_devices(pod("running", node="gpu-1", cpu="1"), GPU, 8)
    return _cluster(tmp_path / "cluster", big, plain, running, with_devices(pod("train", cpu="1"), GPU, 4))


@pytest.mark.parametrize("rules", ["karpenter", "podium"])
def test_without_a_catalogue_there_is_no_price(gpus: Path, rules: str) -> None:
    arguments = ("-f", gpus, "--adopt-nodes", "--rules", rules)
    answer = _json(*arguments)
    (bought,) = answer["new_nodes"]
    assert (bought["cheapest_type"], bought["pods"]) == ("p5.48xlarge", ["default/train"])
    assert [bought[key] for key in ("price", "price_at_worst", "monthly_cost")] == [None, None, None]
    assert (answer["hourly_cost"], answer["monthly_cost"]) == (None, None)
    text = _text(*arguments)
    assert not any(heading in text for heading in ("PER HOUR", "PER MONTH", "per hour", "per month", "CHEAPEST"))
    assert "1 node to buy for 1 pod " in text
    assert "No prices: " in text
    assert "--catalogue" in text


@pytest.mark.parametrize("rules", ["karpenter", "podium"])
def test_generic_types_have_none_either(tmp_path: Path, rules: str) -> None:
    cluster = _cluster(tmp_path / "c", node_pool(), pod("web", cpu="3"))
    answer = _json("-f", cluster, "--rules", rules)
    assert (answer["new_nodes"][0]["price"], answer["hourly_cost"]) == (None, None)
    # In the order of their size the smallest that is enough comes first, spot before on-demand.
    assert answer["new_nodes"][0]["cheapest_type"] == "c-4x-amd64-linux"


@pytest.mark.parametrize("rules", ["karpenter", "podium"])
def test_of_types_that_only_partly_are_in_the_catalogue_only_those_have_prices(
    gpus: Path, tmp_path: Path, rules: str
) -> None:
    types = tmp_path / "types.json"
    types.write_text(json.dumps([instance_type("m5.large", 2, "8Gi")]))
    pods = (pod(f"web-{index}", cpu="1500m", nodeSelector={INSTANCE_TYPE: "m5.large"}) for index in range(2))
    cluster = ("-f", gpus, "-f", _cluster(tmp_path / "more", *pods))
    arguments = (*cluster, "--adopt-nodes", "--catalogue", types, "--rules", rules)
    answer = _json(*arguments)
    prices = {new_node["cheapest_type"]: new_node["price"] for new_node in answer["new_nodes"]}
    assert prices == {"p5.48xlarge": None, "m5.large": pytest.approx(0.2)}
    assert answer["hourly_cost"] is None
    assert " ? " in _text(*arguments)


def test_with_a_catalogue_prices_are_shown_as_before(tmp_path: Path) -> None:
    types = tmp_path / "types.json"
    types.write_text(json.dumps(list(TYPES)))
    answer = _json("-f", _cluster(tmp_path / "c", node_pool(), pod("web")), "--catalogue", types)
    assert answer["hourly_cost"] == answer["new_nodes"][0]["price"] == pytest.approx(0.14)
    assert "No prices" not in _text("-f", tmp_path / "c", "--catalogue", types)


def test_pods_without_devices_do_not_get_nodes_with_devices(tmp_path: Path) -> None:
    """Both types are adopted and large enough; only the sizes tell them apart."""
    small = with_devices(node("gpu-1", cpu="4", **{INSTANCE_TYPE: "g4dn.xlarge"}), GPU, 1)
    plain = node("n1", cpu="48", **{INSTANCE_TYPE: "m5.12xlarge"})
    full = (pod("a", node="gpu-1", cpu="4"), pod("b", node="n1", cpu="48"))
    (bought,) = _json("-f", _cluster(tmp_path / "c", small, plain, *full, pod("web")), "--adopt-nodes")["new_nodes"]
    assert bought["cheapest_type"] == "m5.12xlarge"


@pytest.mark.parametrize("rules", ["karpenter", "podium"])
def test_devices_stand_in_the_table_and_in_the_utilisation(gpus: Path, rules: str) -> None:
    arguments = ("-f", gpus, "--adopt-nodes", "--rules", rules)
    answer = _json(*arguments)
    assert answer["utilisation"]["before"][GPU] == {"requested": "8", "allocatable": "8"}
    assert answer["utilisation"]["after"][GPU] == {"requested": "12", "allocatable": "16"}
    (bought,) = answer["new_nodes"]
    assert (bought["requests"][GPU], bought["allocatable"][GPU]) == ("4", "8")
    text = _text(*arguments)
    assert f"8 {GPU}" in text
    assert f"{GPU} ████████████████████ 100% of 8 ███████████████░░░░░ 75% of 16" in text


def test_devices_of_new_nodes_only_are_compared_with_none(tmp_path: Path) -> None:
    types = tmp_path / "types.json"
    kind = instance_type("gpus", 4, "8Gi")
    kind["resources"]["example.com/fpga"] = "2"
    types.write_text(json.dumps([*TYPES, kind]))
    cluster = _cluster(tmp_path / "c", node_pool(), with_devices(pod("web"), "example.com/fpga", 1))
    text = _text("-f", cluster, "--catalogue", types)
    assert "DEVICES" in text
    assert "2 example.com/fpga" in text
    assert "example.com/fpga ░░░░░░░░░░░░░░░░░░░░ 0% of 0" in text
    assert "DEVICES" not in _text("-f", _cluster(tmp_path / "d", node_pool(), pod("web")), "--catalogue", types)


@pytest.mark.parametrize("rules", ["karpenter", "podium"])
def test_amounts_are_quantities(tmp_path: Path, rules: str) -> None:
    types = tmp_path / "types.json"
    types.write_text(json.dumps(list(TYPES)))
    cluster = _cluster(tmp_path / "c", node_pool(), node(cpu="1"), pod("web", cpu="1500m", memory="1Gi"))
    answer = _json("-f", cluster, "--catalogue", types, "--rules", rules)
    (bought,) = answer["new_nodes"]
    assert {name: bought["requests"][name] for name in ("cpu", "memory", "pods")} == {
        "cpu": "1500m",
        "memory": "1Gi",
        "pods": "1",
    }
    assert (bought["allocatable"]["cpu"], bought["allocatable"]["memory"]) == ("1900m", "2038Mi")
    assert answer["utilisation"]["before"]["memory"] == {"requested": "0", "allocatable": "8Gi"}


@pytest.mark.parametrize(("rules", "requested_after"), [("karpenter", "0"), ("podium", "1")])
def test_devices_for_claims_stand_there_by_driver(tmp_path: Path, rules: str, requested_after: str) -> None:
    """Karpenter plans no pod that has claims."""
    api = {"apiVersion": "resource.k8s.io/v1"}
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    objects = [
        node_pool(),
        node("n1"),
        {**api, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
        {
            **api,
            "kind": "ResourceSlice",
            "metadata": {"name": "n1"},
            "spec": {
                "driver": "gpu.example.com",
                "nodeName": "n1",
                "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}],
            },
        },
        {
            **api,
            "kind": "ResourceClaim",
            "metadata": {"name": "c", "namespace": "default"},
            "spec": {"devices": {"requests": [request]}},
        },
        pod("web", resourceClaims=[{"name": "c", "resourceClaimName": "c"}]),
    ]
    cluster = _cluster(tmp_path / "c", *objects)
    shares = _json("-f", cluster, "--rules", rules)["utilisation"]
    assert shares["before"]["gpu.example.com"] == {"requested": "0", "allocatable": "2"}
    assert shares["after"]["gpu.example.com"] == {"requested": requested_after, "allocatable": "2"}
    assert "gpu.example.com ░" in _text("-f", cluster, "--rules", rules)
