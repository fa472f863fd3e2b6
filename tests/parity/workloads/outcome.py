"""What came of a step on a real control plane, in the shape in which answers are recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from tests.parity.workloads.naming import Json, Naming, controller_of, key_of


def outcome_of(
    question: Json, pods_after: list[Json], preempted: Iterable[Json], refusals: list[Json], blocked_keys: list[str]
) -> Json:
    """The answer: `expect` of a recorded question.

    Args:
        question: its cluster and its step.
        after: the cluster at the end.
        preempted: the victims of preemption.
        blocked: the keys of the pods that budgets kept from being evicted.
    """
    naming = Naming([*question["objects"], *question["step"].get("apply", ()), *pods_after])
    pods_by_uid = {pod["metadata"]["uid"]: pod for pod in _pods(question["objects"])}
    uids = {pod["metadata"]["uid"] for pod in _pods(pods_after)}
    workloads: dict[str, Any] = {}
    for pod in _pods(pods_after):
        # A bare pod that was adopted counts as what it was: podium does not say whose it is.
        name = naming.workload_of(pods_by_uid.get(pod["metadata"]["uid"], pod))
        workload = workloads.setdefault(name, {"nodes": Counter(), "messages": [], "new": 0})
        node = pod["spec"].get("nodeName", "")
        workload["nodes"][node] += 1
        if pod["metadata"]["uid"] not in pods_by_uid:
            workload["new"] += 1
            if not node:
                workload["messages"].append(naming.plain_message(_message_of(pod)))
    return {
        "workloads": {
            name: {**workload, "messages": sorted(workload["messages"])} for name, workload in workloads.items()
        },
        "pods": {
            key_of(pod): pod["spec"].get("nodeName", "")
            for pod in _pods(pods_after)
            if _is_named_for_certain(pods_by_uid.get(pod["metadata"]["uid"], pod), pods_after)
        },
        "gone": sorted(key_of(pod) for uid, pod in pods_by_uid.items() if uid not in uids),
        "preempted": dict(
            Counter(f"{naming.workload_of(pod)} on {pod['spec'].get('nodeName', '')}" for pod in preempted)
        ),
        "refused": [
            {
                "object": naming.top_of(*refusal["object"].split("/")),
                "message": naming.plain_message(refusal["message"]),
            }
            for refusal in refusals
        ],
        "blocked": blocked_keys,
    }


def _pods(items: Iterable[Json]) -> list[Json]:
    return [item for item in items if item["kind"] == "Pod"]


def _message_of(pod: Json) -> str:
    conditions = pod.get("status", {}).get("conditions", ())
    return next((condition.get("message", "") for condition in conditions if condition["type"] == "PodScheduled"), "")


def _is_named_for_certain(pod: Json, items: Iterable[Json]) -> bool:
    """Return True if the name is not random: bare pods, and those of StatefulSets in order."""
    controller = controller_of(pod)
    if controller is None:
        return "generateName" not in pod["metadata"]
    if controller["kind"] != "StatefulSet":
        return False
    owner = next((item for item in items if item["metadata"]["uid"] == controller["uid"]), None)
    return owner is not None and owner["spec"].get("podManagementPolicy") != "Parallel"


def comparable(question: Json) -> Mapping[str, Any]:
    """Return what must be the same when a plan is carried out again: where pods were, and where they ended."""
    naming = Naming([*question["objects"], *question["step"].get("apply", ())])
    node_counts = Counter(
        (naming.workload_of(pod), pod["spec"].get("nodeName", "")) for pod in _pods(question["objects"])
    )
    expect = question["expect"]
    return {
        **expect,
        "before": node_counts,
        "gone": Counter(map(naming.workload_named, expect["gone"])),
        "blocked": Counter(map(naming.workload_named, expect["blocked"])),
        "refused": sorted({refusal["object"] for refusal in expect["refused"]}),
    }
