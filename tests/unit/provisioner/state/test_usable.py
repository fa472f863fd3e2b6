"""Objects with values that have no meaning: what of them still counts, and that they stop nothing else."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from podium.objects.errors import FieldError
from podium.provisioner.apis.objects import ClusterObjects
from podium.provisioner.disruption.disruption_state import DisruptionState
from podium.provisioner.planners.planner import Planner
from podium.provisioner.provisioning.plan import Plan
from podium.provisioner.state.reading import KINDS
from podium.provisioner.state.settings import Settings
from podium.provisioner.state.usable import usable_form
from tests.unit.provisioner.clusters import (
    CAPACITY_TYPE,
    HOSTNAME,
    NOW,
    TYPES,
    Document,
    catalogue,
    daemon_set,
    managed_node,
    node_claim,
    node_pool,
    pod,
    requirement,
)

NODE = (managed_node("n1", **{CAPACITY_TYPE: "on-demand", "zone": "zone-1"}), node_claim())
_BAD: Document = {"key": "n", "operator": "Gt", "values": ["abc"]}
_SELECTOR: Document = {"matchExpressions": [{"key": "a", "operator": "Bogus", "values": ["x"]}]}
_POD_TERM: Document = {"topologyKey": HOSTNAME, "namespaceSelector": _SELECTOR}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_PREFERENCE: Document = {
    "affinity": {"nodeAffinity": {_PREFERRED: [{"weight": 1, "preference": {"matchExpressions": [_BAD]}}]}}
}
_OTHER_PREFERENCES = [
    {"affinity": {"podAffinity": {_PREFERRED: [{"weight": 1, "podAffinityTerm": _POD_TERM}]}}},
    {"affinity": {"podAntiAffinity": {_PREFERRED: [{"weight": 1, "podAffinityTerm": _POD_TERM}]}}},
]
_DEMANDS: list[Document] = [
    {"affinity": {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [_BAD]}]}}}},
    {"affinity": {"podAffinity": {_REQUIRED: [_POD_TERM]}}},
    {"affinity": {"podAntiAffinity": {_REQUIRED: [_POD_TERM]}}},
]


def objects_of(*documents: Document) -> tuple[ClusterObjects, list[FieldError]]:
    """Read the objects as the controller does, and return their faults, too."""
    lists: dict[str, list[Any]] = {name: [] for name, _ in KINDS.values()}
    faults: list[FieldError] = []
    for document in documents:
        name, kind = KINDS[document["kind"]]
        item, fault = usable_form(msgspec.convert(document, kind))
        lists[name] += [] if item is None else [item]
        faults += [] if fault is None else [fault]
    return ClusterObjects(**{name: tuple(items) for name, items in lists.items()}), faults


def plan_of(*documents: Document) -> tuple[Plan, list[FieldError]]:
    objects, faults = objects_of(node_pool(requirements=[requirement(CAPACITY_TYPE, "In", "on-demand")]), *documents)
    return Planner(catalogue(*TYPES[:2]), Settings()).plan(objects, NOW), faults


def blockers_of(*documents: Document) -> dict[str, list[str]]:
    objects, _ = objects_of(node_pool(), *documents)
    state = DisruptionState.of(objects, catalogue(*TYPES[:2]), Settings(), NOW)
    return {name: [blocker.text for blocker in blockers] for name, blockers in state.blockers().items()}


@pytest.mark.parametrize("rules", [_PREFERENCE, *_OTHER_PREFERENCES, *_DEMANDS])
def test_a_running_pod_that_planning_cannot_use_still_takes_its_node(rules: Document) -> None:
    running = pod("odd", cpu="3500m", node="n1", **rules)
    plan, faults = plan_of(*NODE, running, pod("web", cpu="1"))
    assert len(faults) == 1
    assert (len(plan.nodes), plan.existing) == (1, {})


@pytest.mark.parametrize("requests", [{"cpu": "abc"}, {"memory": "1Gj"}])
def test_a_node_takes_no_pods_while_it_is_not_known_what_one_of_its_pods_takes(requests: Document) -> None:
    running = pod("odd", node="n1")
    running["spec"]["containers"][0]["resources"] = {"requests": requests}
    documents = (*NODE, running)
    plan, _ = plan_of(*documents, pod("web", cpu="100m"))
    assert (len(plan.nodes), plan.existing) == (1, {})
    assert "cannot be judged" in blockers_of(*documents)["n1"][0]


@pytest.mark.parametrize("rules", _DEMANDS)
def test_a_node_stays_whose_pod_demands_what_has_no_meaning(rules: Document) -> None:
    (texts,) = blockers_of(*NODE, pod("odd", node="n1", **rules)).values()
    assert texts[0].startswith("Pod default/odd (spec.affinity.")
    assert texts[0].endswith(" cannot be judged")


@pytest.mark.parametrize("rules", [_PREFERENCE, *_OTHER_PREFERENCES])
def test_a_preference_without_meaning_is_one_that_is_not_met(rules: Document) -> None:
    assert blockers_of(*NODE, pod("odd", node="n1", **rules)) == {}
    plan, faults = plan_of(pod("odd", **rules), pod("web"))
    assert len(faults) == 1
    assert sorted(pod.metadata.name for node in plan.nodes for pod in node.pods) == ["odd", "web"]


@pytest.mark.parametrize("rules", _DEMANDS[1:])
def test_a_waiting_pod_without_meaning_is_left_out_and_stops_no_other(rules: Document) -> None:
    plan, faults = plan_of(pod("odd", **rules), pod("web"))
    assert len(faults) == 1
    assert [pod.metadata.name for node in plan.nodes for pod in node.pods] == ["web"]


def test_a_budget_that_cannot_be_read_protects_all_pods_of_its_namespace() -> None:
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "odd", "namespace": "default"},
        "spec": {"maxUnavailable": 1, "selector": _SELECTOR},
        "status": {"disruptionsAllowed": 1},
    }
    texts = blockers_of(*NODE, pod("web", node="n1"), budget)
    assert texts == {"n1": ["Pdb prevents pod evictions (PodDisruptionBudget=[default/odd])"]}


def test_a_node_that_cannot_be_used_takes_no_pods_and_stays() -> None:
    node, claim = map(copy.deepcopy, NODE)
    node["status"]["capacity"]["cpu"] = "many"
    plan, _ = plan_of(node, claim, pod("web", cpu="1"))
    assert (len(plan.nodes), plan.existing) == (1, {})
    assert blockers_of(node, claim)["n1"][0].startswith("Node n1 (status.capacity[cpu]: ")


@pytest.mark.parametrize("requests", [{"cpu": "abc"}, {"cpu": "1", "memory": "1Gj"}])
def test_a_daemon_set_whose_requests_cannot_be_read_stops_nothing(requests: Document) -> None:
    for kind in ("requests", "limits"):
        agent = daemon_set(containers=[{"name": "main", "resources": {kind: requests}}])
        plan, faults = plan_of(agent, pod("web"))
        assert len(plan.nodes) == 1
        assert faults[0].path.startswith("spec.template.spec.containers[0].resources.")
