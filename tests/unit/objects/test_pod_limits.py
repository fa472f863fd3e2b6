from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.objects.core import Pod
from podium.objects.pod_limits import LABELS_MAX, LIMITS, excess, excess_of, excess_of_pod_affinity
from tests.fuzz.crowds import CROWDS

LIMITED = {
    "labels of nodeSelector": "spec.affinity.nodeAffinity",
    "node expressions": "spec.affinity.nodeAffinity",
    "node terms": "spec.affinity.nodeAffinity",
    "node fields": "spec.affinity.nodeAffinity",
    "preferred node terms": "spec.affinity.nodeAffinity",
    "pod expressions": "spec.affinity",
    "pod labels": "spec.affinity",
    "namespaces": "spec.affinity",
    "pod terms": "spec.affinity",
    "preferred pod terms": "spec.affinity",
    "anti-affinity terms": "spec.affinity",
    "anti-affinity expressions": "spec.affinity",
    "topology keys": "spec.affinity",
    "spread constraints": "spec.topologySpreadConstraints",
    "containers": "spec.containers",
    "resources": "spec.containers[].resources.requests",
    "ports": "spec.containers[].ports",
    "host addresses": "spec.containers[].ports",
    "claims": "spec.volumes",
    "disks": "spec.volumes",
}


def pod_with(spec: dict[str, Any], labels: dict[str, str] | None = None) -> Pod:
    return msgspec.convert({"metadata": {"labels": labels or {}}, "spec": spec}, Pod)


@pytest.mark.parametrize(("crowd", "field"), LIMITED.items())
def test_a_pod_with_too_much_of_something_is_not_decided_on(crowd: str, field: str) -> None:
    message = excess(pod_with(CROWDS[crowd](range(2_500))).spec)
    assert message.startswith(f"{field}: ")
    assert message.endswith(" are decided on")


@pytest.mark.parametrize("crowd", CROWDS)
def test_a_pod_with_a_few_hundred_of_anything_is_decided_on(crowd: str) -> None:
    assert excess(pod_with(CROWDS[crowd](range(300))).spec) == ""


def test_every_limit_is_reached_by_some_crowd() -> None:
    assert {field for field, _, _ in LIMITS.values()} == set(LIMITED.values())


def test_many_values_count_as_demands() -> None:
    spec = pod_with(CROWDS["values"](range(20_000))).spec
    assert (
        excess(spec)
        == excess_of_pod_affinity(spec)
        == "spec.affinity: 1252 demands of pods, at most 1000 are decided on"
    )


def test_only_affinity_to_pods_is_too_much_of_it() -> None:
    assert excess_of_pod_affinity(pod_with(CROWDS["node terms"](range(2_500))).spec) == ""


@pytest.mark.parametrize("crowd", CROWDS)
def test_a_pod_with_thousands_of_anything_is_read(crowd: str) -> None:
    assert pod_with({**CROWDS[crowd](range(12_000)), "nodeName": "n1"}).node_name == "n1"


def test_a_pod_with_too_many_labels_is_not_decided_on() -> None:
    labels = {f"k{number}": "v" for number in range(LABELS_MAX)}
    assert excess_of(pod_with({}, labels)) == ""
    assert excess_of(pod_with({}, {**labels, "more": "v"})) == (
        "metadata.labels: 10001 labels, at most 10000 are decided on"
    )
    assert excess_of(pod_with(CROWDS["pod terms"](range(1_000)))).startswith("spec.affinity: ")
