"""Which waiting pods are ignored, and with which words."""

from __future__ import annotations

import pytest

from podium.provisioner.apis.labels import CAPACITY_TYPE, NODE_POOL, WELL_KNOWN
from podium.provisioner.scheduling.volumes import Volumes
from podium.provisioner.state.reading import read_objects
from podium.provisioner.state.validation import fault_of, is_provisionable
from tests.unit.provisioner.clusters import Document, as_pod, node_affinity, owned_by, pod, requirement


def fault(document: Document) -> str:
    return fault_of(as_pod(document), Volumes(read_objects([])), WELL_KNOWN) or ""


def test_only_pods_that_kube_scheduler_refused_are_provisionable() -> None:
    assert is_provisionable(as_pod(pod("a")))
    assert not is_provisionable(as_pod(pod("a", node="n1")))
    assert not is_provisionable(as_pod(pod("a", metadata=owned_by("DaemonSet", "agent"))))
    assert not is_provisionable(as_pod(pod("a", metadata=owned_by("Node", "n1", "v1"))))
    nomination = {**pod("a")["status"], "nominatedNodeName": "n1"}
    assert not is_provisionable(as_pod(pod("a", status=nomination)))


def test_an_ordinary_pod_has_no_fault() -> None:
    assert fault(pod("a", nodeSelector={"team": "x", CAPACITY_TYPE: "spot"})) == ""


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        (requirement(NODE_POOL, "DoesNotExist"), "configured to not run on a Karpenter provisioned node (requirement="),
        (requirement("kubernetes.io/hostname", "In", "n1"), "using label kubernetes.io/hostname is not allowed as it "),
        (requirement("sub.karpenter.sh/x", "Exists"), "using label sub.karpenter.sh/x is not allowed as it "),
        (requirement("team", "Near", "x"), "key team has an unsupported operator Near not in ["),
        (requirement("team", "In"), "key team with operator In must have a value defined"),
        (requirement("team", "Gt", "x"), "key team with operator Gt must have a single positive integer value"),
        (requirement("team", "In", "not a value"), "invalid value not a value for key team"),
        (requirement("not a key", "Exists"), "key not a key is not a qualified name"),
        (
            requirement(CAPACITY_TYPE, "In", "preemptible"),
            (
                "no valid values found in [preemptible] for karpenter.sh/capacity-type, expected one of: "
                "map[on-demand:{} reserved:{} spot:{}], got: [preemptible]"
            ),
        ),
    ],
)
def test_every_required_alternative_is_checked(expression: Document, answer: str) -> None:
    assert fault(pod("a", affinity=node_affinity(expression))).startswith(answer)


def test_preferences_are_not_checked() -> None:
    wish = node_affinity(preferences=[(1, requirement("karpenter.sh/custom", "Exists"))])
    assert fault(pod("a", affinity=wish)) == ""


def test_all_faults_are_listed() -> None:
    fields = {"nodeSelectorTerms": [{"matchFields": [requirement("metadata.name", "In", "n1")]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": fields}}
    answer = fault(pod("a", affinity=affinity, nodeSelector={"karpenter.sh/custom": "x"}))
    assert answer.startswith("using label karpenter.sh/custom")
    assert answer.endswith("; node selector term with matchFields is not supported")
