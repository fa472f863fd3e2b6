"""What an API server sends and nobody can read, from the wire to the decision: it never makes room."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.cluster import Cache
from podium.config.args import DefaultPreemptionArgs
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.schedule import DoesNotFit, Suggested, schedule
from podium.framework.cycle.search import Rotation
from podium.objects.core import Pod
from podium.objects.resource_types import NODES, POD_DISRUPTION_BUDGETS, PODS
from podium.objects.wire import ObjectDecoder
from podium.queues import Nominator
from tests.builders import pod
from tests.unit.plugins.clusters import RecordingHandle
from tests.unit.plugins.test_default_preemption import profile

ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def decode(item: Any, resource: Any = PODS) -> Any:
    line = msgspec.json.encode({"type": "ADDED", "object": item})
    return ObjectDecoder(resource).event(line).object


def decoded_node(name: str, zone: str = "a", **fields: Any) -> Any:
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
    item = {"metadata": {"name": name, "uid": name, "labels": {ZONE: zone}}, "status": status, **fields}
    return decode(item, NODES)


def running(spec: Any = None, metadata: Any = None, name: str = "hostile", on: str = "n1") -> Any:
    names = {"name": name, "namespace": "theirs", "uid": f"u-{name}", "resourceVersion": "7"}
    container = {"name": "c", "resources": {"requests": {"cpu": "3"}}}
    return decode(
        {"metadata": names | (metadata or {}), "spec": {"nodeName": on, "containers": [container]} | (spec or {})}
    )


class Cluster:
    """Nodes of 4 CPUs, and pods on them."""

    def __init__(self, *items: Any, budgets: Any = ()) -> None:
        self.cache = Cache(lambda item, error: None)
        for item in items:
            (self.cache.put_pod if isinstance(item, Pod) else self.cache.put_node)(item)
        handle = RecordingHandle(self.cache.snapshot(), objects={POD_DISRUPTION_BUDGETS: budgets})
        self.framework = profile(DefaultPreemptionArgs(), handle)

    def decide(self, incoming: Pod) -> Any:
        snapshot = self.cache.snapshot()
        return schedule(Cycle(self.framework, incoming, snapshot, Nominator({}.get)), Rotation(), 0)

    def place(self, *incoming: Pod) -> list[str]:
        """QueueState one after the other; where each goes, or nothing."""
        nodes = []
        for item in incoming:
            decision = self.decide(item)
            nodes.append(decision.node_name if isinstance(decision, Suggested) else "")
            if nodes[-1]:
                self.cache.assume_pod(item, nodes[-1])
        return nodes


WEB = [pod(f"web-{number}", cpu="900m", labels={"app": "web"}) for number in range(4)]


@pytest.mark.parametrize(
    "hostile",
    [
        running(metadata={"labels": {f"k{number}": "v" for number in range(10_001)}}),
        running({"nodeSelector": {f"k{number}": "v" for number in range(10_001)}}),
        running({"tolerations": 5, "topologySpreadConstraints": "none"}),
        running(metadata={"annotations": 5}),
    ],
    ids=["labels", "nodeSelector", "tolerations", "annotations"],
)
def test_a_pod_that_can_be_counted_leaves_the_room_that_there_is(hostile: Any) -> None:
    assert Cluster(decoded_node("n1"), hostile).place(*WEB) == ["n1", "", "", ""]


CONTAINER = {"name": "c"}
UNCOUNTED: dict[str, Any] = {
    "containers": running({"containers": 5}),
    "a container": running({"containers": [CONTAINER, "c"]}),
    "requests": running({"containers": [CONTAINER | {"resources": {"requests": [3]}}]}),
    "a request": running({"containers": [CONTAINER | {"resources": {"requests": {"cpu": {}}}}]}),
    "a quantity": running({"containers": [CONTAINER | {"resources": {"requests": {"cpu": "three"}}}]}),
    "infinitely much": running({"containers": [CONTAINER | {"resources": {"requests": {"cpu": "1" * 2_000}}}]}),
    "many containers": running({"containers": [CONTAINER] * 3_001}),
    "a port": running({"containers": [CONTAINER | {"ports": [{"hostPort": "80"}]}]}),
    "overhead": running({"overhead": "3"}),
    "volumes": running({"volumes": {"name": "data"}}),
    "priority": running({"priority": 1 << 40}),
    "labels": running(metadata={"labels": {"app": 5}}),
    "a name": running(metadata={"name": "no name"}),
    "a uid": running(metadata={"uid": 5}),
    "anti-affinity": running({"affinity": {"podAntiAffinity": {REQUIRED: [5]}}}),
}


@pytest.mark.parametrize("kind", UNCOUNTED)
def test_a_pod_that_cannot_be_counted_closes_its_node(kind: str) -> None:
    assert Cluster(decoded_node("n1"), decoded_node("n2"), UNCOUNTED[kind]).place(*WEB) == ["n2"] * 4
    decision = Cluster(decoded_node("n1"), UNCOUNTED[kind]).decide(WEB[0])
    assert isinstance(decision, DoesNotFit)
    assert decision.error.message.startswith("0/1 nodes are available: 1 node(s) closed to new pods: a pod there has ")


@pytest.mark.parametrize("kind", UNCOUNTED)
def test_a_pod_that_cannot_be_counted_is_nobodys_victim(kind: str) -> None:
    decision = Cluster(decoded_node("n1"), UNCOUNTED[kind]).decide(pod("urgent", cpu="4", priority=1000))
    assert isinstance(decision, DoesNotFit)
    assert decision.post_filter is None or not decision.post_filter.victims


def test_what_can_be_read_of_a_pod_counts_in_its_zone() -> None:
    terms = [{"topologyKey": ZONE, "namespaceSelector": {}, "labelSelector": {"matchLabels": {"app": "web"}}}]
    hostile = running({"containers": 5, "affinity": {"podAntiAffinity": {REQUIRED: terms}}})
    items = decoded_node("n1"), decoded_node("n2"), decoded_node("n3", zone="b")
    assert Cluster(*items, hostile).place(WEB[0]) == ["n3"]


@pytest.mark.parametrize("count", [1_001, 8_000])
def test_the_last_of_very_many_anti_affinity_terms_is_heeded(count: int) -> None:
    terms = [
        {"topologyKey": ZONE, "namespaces": ["default"], "labelSelector": {"matchLabels": {"app": app}}}
        for app in (*(f"a{number}" for number in range(count - 1)), "web")
    ]
    hostile = running({"affinity": {"podAntiAffinity": {REQUIRED: terms}}})
    items = decoded_node("n1"), decoded_node("n2"), decoded_node("n3", zone="b")
    assert Cluster(*items, hostile).place(WEB[0]) == ["n3"]
    assert Cluster(decoded_node("n1"), hostile).place(pod("other", cpu="900m", labels={"app": "db"})) == ["n1"]


@pytest.mark.parametrize(
    "fields",
    [
        {"spec": {"taints": 5}},
        {"spec": {"taints": [{"key": "a", "effect": ["NoSchedule"]}]}},
        {"spec": {"unschedulable": "true"}},
        {"spec": 5},
        {"status": {"allocatable": {"cpu": "4", "memory": [], "pods": "110"}}},
        {"status": {"allocatable": {"cpu": "four", "memory": "8Gi", "pods": "110"}}},
        {"metadata": {"name": "n1", "uid": "n1", "labels": {ZONE: 5}}},
    ],
    ids=str,
)
def test_a_node_that_cannot_be_read_takes_no_pods_until_it_can(fields: Any) -> None:
    cluster = Cluster(decoded_node("n1"), decoded_node("n1", **fields))
    [decision] = [cluster.decide(WEB[0])]
    assert isinstance(decision, DoesNotFit)
    assert "1 node(s) closed to new pods: the node has a field that cannot be read" in decision.error.message
    cluster.cache.put_node(decoded_node("n1"))
    assert cluster.place(WEB[0]) == ["n1"]


def test_pods_on_a_node_that_cannot_be_read_still_count_in_its_zone() -> None:
    terms = [{"topologyKey": ZONE, "namespaceSelector": {}, "labelSelector": {"matchLabels": {"app": "web"}}}]
    minding = running({"affinity": {"podAntiAffinity": {REQUIRED: terms}}})
    odd = decoded_node("n1", metadata={"name": "n1", "uid": "n1", "labels": {ZONE: 5}}, spec={"taints": 5})
    items = decoded_node("n1"), decoded_node("n2"), decoded_node("n3", zone="b"), minding
    assert Cluster(*items, odd).place(WEB[0]) == ["n3"]


@pytest.mark.parametrize(
    "budget",
    [
        {"spec": {"selector": {"matchLabels": {"app": "db"}}}, "status": {"disruptionsAllowed": "all"}},
        {"spec": {"selector": {"matchLabels": 5}}, "status": {"disruptionsAllowed": 5}},
        {"spec": 5, "status": {"disruptionsAllowed": 5}},
    ],
    ids=str,
)
def test_a_budget_that_cannot_be_read_lets_nobody_be_preempted(budget: Any) -> None:
    metadata = {"name": "b", "namespace": "theirs", "uid": "b"}
    victim = running(metadata={"labels": {"app": "db"}})
    urgent = pod("urgent", cpu="4", priority=1000)
    without = Cluster(decoded_node("n1"), victim).decide(urgent)
    assert [victim.key for victim in without.post_filter.victims] == ["theirs/hostile"]
    odd = decode({"metadata": metadata, **budget}, POD_DISRUPTION_BUDGETS)
    decision = Cluster(decoded_node("n1"), victim, budgets=[odd]).decide(urgent)
    assert not decision.post_filter.victims
