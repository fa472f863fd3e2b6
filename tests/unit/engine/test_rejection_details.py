from __future__ import annotations

import pytest

from podium.engine.cluster import Cluster
from podium.engine.explanation import Group
from podium.engine.rejection_details import RejectionDetails
from tests.builders import cache_of, node, pod
from tests.manifests import node as node_manifest

CACHE = cache_of(
    node("n1", cpu="4"),
    node("n2", cpu="2", taints=["team=a:NoSchedule"]),
    node("n3", cpu="2", taints=["team=b:NoSchedule"]),
    pod("there", cpu="1500m", node="n1"),
)

SCHEDULER = "default-scheduler"
FRAMEWORKS = {SCHEDULER: Cluster.load([node_manifest("any")]).framework_for(pod(scheduler=SCHEDULER))}


@pytest.mark.parametrize(
    ("plugin", "nodes", "detail"),
    [
        ("NodeResourcesFit", ("n1", "n2"), "requests 3, at most 2.5 free (n1)"),
        ("NodeResourcesFit", ("n2", "gone"), "requests 3, at most 2 free (n2)"),
        ("TaintToleration", ("n2",), "untolerated taint team=a:NoSchedule"),
        (
            "TaintToleration",
            ("n2", "n3"),
            "untolerated taint team=a:NoSchedule on 1 node, untolerated taint team=b:NoSchedule on 1 node",
        ),
        ("TaintToleration", ("gone",), ""),
        ("NodeUnschedulable", ("n1",), ""),
    ],
)
def test_what_rejects_a_pod_is_said_in_amounts_and_names(plugin: str, nodes: tuple[str, ...], detail: str) -> None:
    details = RejectionDetails(lambda: FRAMEWORKS, CACHE)
    assert details.on_group(pod("web", scheduler=SCHEDULER, cpu="3"), Group(plugin, "why", nodes)) == detail


def test_nothing_is_said_of_a_pod_that_no_profile_serves_or_that_fits_by_now() -> None:
    group = Group("NodeResourcesFit", "Insufficient cpu", ("n1",))
    assert RejectionDetails(dict, CACHE).on_group(pod("web", scheduler=SCHEDULER, cpu="3"), group) == ""
    details = RejectionDetails(lambda: FRAMEWORKS, CACHE)
    assert details.on_group(pod("web", scheduler=SCHEDULER, cpu="1"), group) == ""
