from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.kube.objects import LABELS_MAX, Pod
from podium.kube.pod_limits import LIMITS, excess, excess_of_pod_affinity
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
    "spread constraints": "spec.topologySpreadConstraints",
    "containers": "spec.containers",
    "resources": "spec.containers[].resources.requests",
    "ports": "spec.containers[].ports",
    "claims": "spec.volumes",
    "disks": "spec.volumes",
}


def pod_with(spec: dict[str, Any], labels: dict[str, str] | None = None) -> Pod:
    return msgspec.convert({"metadata": {"labels": labels or {}}, "spec": spec}, Pod)


@pytest.mark.parametrize(("crowd", "field"), LIMITED.items())
def test_a_pod_with_too_much_of_something_is_not_decided_on(crowd: str, field: str) -> None:
    said = excess(pod_with(CROWDS[crowd](range(2_500))).spec)
    assert said.startswith(f"{field}: ")
    assert said.endswith(" are decided on")


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


@pytest.mark.parametrize("crowd", ["labels of nodeSelector", "containers", "resources", "ports"])
def test_what_no_node_could_run_is_not_read(crowd: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"1000[1-9] .*, at most \d+ are read"):
        pod_with(CROWDS[crowd](range(10_001)))


def test_a_pod_with_too_many_labels_is_not_read() -> None:
    with pytest.raises(msgspec.ValidationError, match="10001 labels, at most 10000 are read"):
        pod_with({}, {f"k{number}": "v" for number in range(LABELS_MAX + 1)})
