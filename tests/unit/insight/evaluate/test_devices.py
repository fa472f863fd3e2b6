from __future__ import annotations

import json
from typing import Any

import pytest

from podium.insight.evaluate import Evaluator, Scenario
from tests.device_manifests import exactly, resource_claim

DRIVER, GPU = "gpu.example.com", "example.com/gpu"


def an_object(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, **fields}


def allocation(node: str) -> dict[str, Any]:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    results = [{"device": "g0", "driver": DRIVER, "pool": node, "request": "r"}]
    return {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": terms}}


def a_pod(name: str, claim: str = "", gpus: str = "") -> dict[str, Any]:
    container = {"name": "main", "resources": {"requests": {GPU: gpus} if gpus else {"cpu": "1"}}}
    claims = [{"name": "gpu", "resourceClaimName": claim}] if claim else []
    spec = {"containers": [container], "resourceClaims": claims, "schedulerName": "default-scheduler"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def objects() -> list[Any]:
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": "n1", "pool": pool, "devices": [{"name": "g0"}]}
    resources = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": resources}}
        for name in ("n1", "n2")
    ]
    return [
        *nodes,
        an_object("DeviceClass", "gpu", spec={"extendedResourceName": GPU}),
        an_object("ResourceSlice", "s", spec=spec),
        resource_claim("mine", exactly("r")),
    ]


def answer(objects: list[Any], *pods: Any) -> dict[str, Any]:
    target = {"pod": pods[0]} if len(pods) == 1 else {"pods": list(pods)}
    answer = Evaluator().answer(Scenario(objects=objects, **target))
    return dict(json.loads(json.dumps(answer)))


def test_an_attempt_says_which_devices_each_node_would_give(objects: list[Any]) -> None:
    result = answer(objects, a_pod("web", "mine"))
    assert result["feasible"] == ["n1"]
    assert result["allocations"] == {"n1": {"default/mine": allocation("n1")}}
    assert "extended" not in result


def test_an_attempt_says_which_devices_would_be_extended_resources(objects: list[Any]) -> None:
    result = answer(objects, a_pod("web", gpus="1"))
    (name,) = result["allocations"]["n1"]
    assert name == "<extended-resources>"
    request = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    mapping = {"containerName": "main", "resourceName": GPU, "requestName": "container-0-request-0"}
    assert result["extended"] == {
        "n1": {"requests": [{"name": "container-0-request-0", "exactly": request}], "mappings": [mapping]}
    }


def test_an_attempt_says_what_would_be_taken_back_and_what_gates_the_pod(objects: list[Any]) -> None:
    away = resource_claim("away", exactly("r"), allocation=allocation("n3"))
    assert answer([*objects, away], a_pod("web", "away"))["deallocated"] == ["default/away"]
    gated_pod = answer(objects, a_pod("web", "missing"))["preenqueue"]
    assert gated_pod["reasons"] == ['could not find ResourceClaim "default/missing"']


def test_an_attempt_that_fails_says_why(objects: list[Any]) -> None:
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 40}}]}}
    result = answer([*objects, an_object("ResourceClaim", "many", spec=spec)], a_pod("web", "many"))
    reason = (
        "claim default/many, request r: adding 40 devices exceeds the claim limit of 32, with 0 already accounted for"
    )
    assert result == {"error": f'running "DynamicResources" filter plugin: {reason}'}


def test_a_queue_ends_with_its_claims_as_they_were_written(objects: list[Any]) -> None:
    result = answer(
        [*objects, resource_claim("second", exactly("r"))],
        a_pod("one", "mine"),
        a_pod("two", "second"),
        a_pod("three", "none"),
    )
    assert result["placements"] == [
        {"pod": "default/one", "node": "n1"},
        {"pod": "default/two"},
        {"pod": "default/three"},
    ]
    assert list(result["messages"]) == ["default/two"]
    (claim,) = result["claims"].values()
    assert claim["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    assert claim["status"]["reservedFor"] == [{"resource": "pods", "name": "one", "uid": "Pod/default/one"}]


def test_a_pod_that_fails_does_not_keep_the_others_of_a_queue_from_being_placed(objects: list[Any]) -> None:
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 40}}]}}
    greedy_claim = an_object("ResourceClaim", "many", spec=spec)
    result = answer([*objects, greedy_claim], a_pod("one", "many"), a_pod("two", "mine"))
    assert [placement.get("node") for placement in result["placements"]] == [None, "n1"]
    reason = (
        "claim default/many, request r: adding 40 devices exceeds the claim limit of 32, with 0 already accounted for"
    )
    assert result["messages"] == {"default/one": f'running "DynamicResources" filter plugin: {reason}'}


def test_a_queue_names_claims_for_extended_resources_under_the_pods_name(objects: list[Any]) -> None:
    result = answer(objects, a_pod("one", gpus="1"), a_pod("two", gpus="1"))
    name = "default/<extended-resources>/one"
    assert list(result["claims"]) == [name]
    assert result["claims"][name]["generateName"] == "one-extended-resources-"
    assert result["pod_status"]["default/one"]["extendedResourceClaimStatus"]["resourceClaimName"] == name


def test_a_queue_takes_allocations_back_that_are_in_the_way(objects: list[Any]) -> None:
    away = resource_claim("away", exactly("r"), allocation=allocation("n3"))
    result = answer([*objects, away], a_pod("one", "away"), a_pod("two", "away"))
    assert [placement.get("node") for placement in result["placements"]] == [None, "n1"]
    assert result["claims"]["default/away"]["status"]["allocation"] == {
        **allocation("n1"),
        "allocationTimestamp": "2100-01-01T00:00:00Z",
    }
