from typing import Any

import pytest

from podium.insight import Cluster
from tests.manifests import HOSTNAME, node, pod

SCHEDULER = "default-scheduler"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
Json = dict[str, Any]


def web(name: str = "web", cpu: str = "1", **fields: Any) -> Json:
    return pod(name, cpu, scheduler=SCHEDULER, **fields)


def details(*objects: Json, pod: Json) -> list[str]:
    return [group.detail for group in Cluster.load(list(objects)).why(pod).groups]


def near(*expressions: Json, **labels: str) -> Json:
    return {"labelSelector": {"matchLabels": labels, "matchExpressions": expressions}, "topologyKey": HOSTNAME}


def test_the_node_that_has_most_is_named() -> None:
    nodes = node("n1", "1"), node("n2", "3"), node("n3", "2")
    assert details(*nodes, web("old", "500m", node="n2"), pod=web(cpu="4")) == ["requests 4, at most 2.5 free (n2)"]


def test_the_largest_free_amounts_may_be_on_different_nodes() -> None:
    nodes = node("n1", "1", memory="4Gi"), node("n2", "2", memory="1Gi")
    (detail,) = details(*nodes, pod=web(cpu="4", memory="8Gi"))
    assert detail == "requests 4 cpu, at most 2 free (n2); requests 8Gi memory, at most 4Gi free (n1)"


def test_capacity_reserved_for_nominated_pods_is_no_shortage() -> None:
    first = web("first", "4", priority=10, status={"nominatedNodeName": "n1"})
    assert details(node("n1", "4"), first, pod=web(cpu="2")) == [""]


@pytest.mark.parametrize(
    ("fields", "detail"),
    [
        ({"affinity": {"podAffinity": {REQUIRED: [near(app="db")]}}}, f"wants pods with app=db in the same {HOSTNAME}"),
        (
            {"affinity": {"podAffinity": {REQUIRED: [near({"key": "app", "operator": "In", "values": ["a", "b"]})]}}},
            f"wants pods with app In (a, b) in the same {HOSTNAME}",
        ),
        (
            {"affinity": {"podAntiAffinity": {REQUIRED: [near(app="x")]}}},
            "default/old-0, default/old-1, default/old-2 and 2 more (n1)",
        ),
        ({"host_port": 80}, "of 80; taken by default/port (n1)"),
    ],
)
def test_blocking_pods_are_named(fields: Json, detail: str) -> None:
    old = [web(f"old-{at}", node="n1", labels={"app": "x"}) for at in range(5)]
    assert details(node("n1"), *old, web("port", node="n1", host_port=80), pod=web(**fields)) == [detail]


def test_pods_that_keep_others_away_are_named() -> None:
    guard = web("guard", node="n1", affinity={"podAntiAffinity": {REQUIRED: [near(app="x")]}})
    assert details(node("n1"), guard, pod=web(labels={"app": "x"})) == ["default/guard (n1)"]


def test_the_constraints_that_are_violated_are_named() -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": HOSTNAME,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    soft = {**spread, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    target = web(labels={"app": "x"}, topologySpreadConstraints=[spread, soft])
    nodes = node("n1"), node("n2", unschedulable=True)
    (detail, _) = details(*nodes, web("old", node="n1", labels={"app": "x"}), pod=target)
    assert detail == f"over {HOSTNAME} with maxSkew 1"
