"""Gangs for the workload `gangs`: 300 of three pods, and then some of 200, each of which is placed as a whole.

Source: kubernetes test/integration/scheduler_perf/podgroup/gangscheduling (templates), v1.37.2.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from benchmarks import pods
from benchmarks.nodes import Json

GATES: Final = ("GenericWorkload",)
API: Final = "scheduling.k8s.io/v1beta1"
_SMALL: Final = 3
_SMALL_GANGS: Final = 300
_LARGE: Final = 200
_LARGE_GANGS: Final = 3
PODS: Final = _SMALL * _SMALL_GANGS + _LARGE * _LARGE_GANGS


def pod_in_gang(number: int, app: str) -> Json:
    """A pod that is started with the others of its gang."""
    return pods.pod(f"{app}-{number:06}", app, schedulingGroup={"podGroupName": gang_name(number)})


def gang_name(number: int) -> str:
    """The gang of the pod of that number."""
    large = number - _SMALL * _SMALL_GANGS
    return f"small-{number // _SMALL:04}" if large < 0 else f"large-{large // _LARGE:04}"


def pod_groups(node_count: int, pod_count: int) -> Iterator[Json]:
    """The PodGroup of each gang. Of a last gang that is cut short, the pods that there are suffice."""
    del node_count
    for name, members in itertools.groupby(range(pod_count), gang_name):
        policy = {"gang": {"minCount": len(list(members))}}
        yield {
            "apiVersion": API,
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": pods.NAMESPACE},
            "spec": {"schedulingPolicy": policy, "disruptionMode": {"single": {}}, "priority": 0},
        }
