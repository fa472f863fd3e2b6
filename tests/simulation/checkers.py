"""What must be true of the scheduler and the cluster after every step, and what after a calm."""

from __future__ import annotations

from typing import Any

from podium.cluster.pod_states import PodState
from podium.insight.evaluate.scenarios import Evaluator, Scenario
from podium.objects.coscheduling import GROUP_LABEL
from podium.queues.states import QueueState
from podium.sandbox.embedded import Sandbox
from podium.sandbox.journal import Change
from podium.sandbox.resources import resource_named
from tests.simulation import random_objects
from tests.simulation.observed import ObservedApp

Json = dict[str, Any]


class Violation(Exception):  # noqa: N818 - what has happened, not a mistake of the checker's
    """Something is not as it must be; names the checker."""

    def __init__(self, checker: str, text: str) -> None:
        super().__init__(checker, text)
        self.checker = checker

    def __str__(self) -> str:
        return ": ".join(self.args)


def stored_objects(sandbox: Sandbox, resource: str) -> list[Json]:
    """Return the objects as they are stored, for checks after every step: copies of all would take a tenth of a run."""
    collection = sandbox.store.collection(resource_named(resource))
    return [collection.records[key].obj for key in collection.sorted_keys()]


def check_one_place(app: ObservedApp) -> None:
    """Each pod of ours is in exactly one place: waiting, in flight, or on its way to a node."""
    assert app.parts is not None
    queue, cache = app.parts.queue, app.parts.cache
    waiting = 0
    for pod in app.pods.list():
        if pod.spec.scheduler_name != random_objects.OURS:
            continue
        place, state = queue.state_of(pod), cache.state_of(pod.uid)
        waiting += place is not QueueState.GONE and place is not QueueState.IN_FLIGHT
        if pod.node_name:
            if state is not PodState.ADDED:
                raise Violation("one place", f"{pod.key} is bound, and {state.name} in the cache")
            if place not in (QueueState.GONE, QueueState.IN_FLIGHT):
                raise Violation("one place", f"{pod.key} is bound, and {place.name} in the queue")
        elif state is PodState.ADDED:
            raise Violation("one place", f"{pod.key} is not bound, and ADDED in the cache")
        elif state is PodState.ASSUMED and place not in (QueueState.GONE, QueueState.IN_FLIGHT):
            raise Violation("one place", f"{pod.key} is assumed, and {place.name} in the queue")
        elif state is PodState.UNKNOWN and place is QueueState.GONE and not pod.is_terminating:
            raise Violation("one place", f"{pod.key} is lost: neither in the queue nor in the cache")
    statistics = queue.statistics()
    total = (
        statistics.active + statistics.backoff + statistics.error_backoff + statistics.unschedulable + statistics.gated
    )
    if total != waiting:
        raise Violation("one place", f"{total} pods are in the queue, {waiting} of them exist")


def check_room_at_assumption(app: ObservedApp, node_by_uid: dict[str, str], node_name: str) -> None:
    """As far as the scheduler could know, its decision leaves no node overfull.

    Args: `assumed` are the nodes of the pods that were assumed, by uid, this one included.
    """
    node = app.nodes.get(node_name)
    if node is None:
        raise Violation("overfull", f"a pod was assumed on {node_name}, which is not there")
    requests = [
        pod.spec.containers[0].resources.requests
        for pod in app.pods.list()
        if (pod.node_name or node_by_uid.get(pod.uid)) == node_name
    ]
    amounts, capacity = (
        random_objects.total_amounts(requests),
        random_objects.room({"allocatable": node.status.allocatable}),
    )
    if any(need > has for need, has in zip(amounts, capacity, strict=True)):
        raise Violation("overfull", f"{node_name} would hold {amounts} and offers {capacity}")


def check_binding(change: Change) -> None:
    """A pod is bound once, and never leaves its node."""
    if change.previous is None:
        return
    old_node, new_node = change.previous.obj["spec"].get("nodeName"), change.record.obj["spec"].get("nodeName")
    if old_node and old_node != new_node:
        raise Violation("bound once", f"{change.record.key[1]} went from {old_node} to {new_node}")


def check_reserves(app: ObservedApp) -> None:
    """No reservation is made twice, or missing."""
    if app.ledger.mistakes:
        raise Violation("reserve", app.ledger.mistakes[0])


def check_no_surprise(app: ObservedApp) -> None:
    """No plugin, handler or task failed in a way nobody had planned for."""
    if app.surprises:
        raise Violation("surprise", app.surprises[0])


# ---------------------------------------------------------------- after a calm


def check_nothing_held(app: ObservedApp) -> None:
    """After a calm, assumed pods were confirmed or forgotten, and reservations have ended."""
    assert app.parts is not None
    if assumed_count := app.parts.cache.statistics()["assumed_pods"]:
        raise Violation("assumed", f"{assumed_count} pods are still assumed")
    if app.ledger.open:
        raise Violation("reserve", f"never ended: {sorted(app.ledger.open.values())}")
    if in_flight := app.parts.queue.statistics().in_flight:
        raise Violation("one place", f"{in_flight} pods are still in flight")


def check_informed(app: ObservedApp, pods: list[Json], nodes: list[Json]) -> None:
    """After a calm, the scheduler knows what the API server knows, and counts it."""
    assert app.parts is not None
    live = [pod for pod in pods if pod["status"].get("phase") not in ("Succeeded", "Failed")]
    for kind, informer, true in (
        ("pods", app.pods, {_key(pod): pod["metadata"]["resourceVersion"] for pod in live}),
        ("nodes", app.nodes, {node["metadata"]["name"]: node["metadata"]["resourceVersion"] for node in nodes}),
    ):
        versions = {item.key: item.metadata.resource_version for item in informer.list()}
        if versions != true:
            differing = sorted(key for key, _ in versions.items() ^ true.items())
            raise Violation("informed", f"{kind} that podium has not the present state of: {' '.join(differing[:5])}")
    snapshot = app.parts.cache.snapshot()
    for node in nodes:
        name = node["metadata"]["name"]
        pods_on_node = [pod for pod in live if pod["spec"].get("nodeName") == name]
        node_view = snapshot.node(snapshot.row_of[name])
        amounts = random_objects.total_amounts(random_objects.requests_of(pod) for pod in pods_on_node)
        amounts_counted = node_view.requested("cpu"), node_view.requested("memory") >> 20, len(node_view.pods)
        if amounts_counted != amounts:
            raise Violation("informed", f"{name} holds {amounts}, the snapshot says {amounts_counted}")


def _key(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def check_nobody_forgotten(app: ObservedApp, pods: list[Json], nodes: list[Json], besides: list[Json]) -> None:
    """After a calm, no pod waits that would fit. Members of gangs, which may have to wait all the same, do not count.

    Args: `besides` are the other objects that matter.
    """
    left_alone = _left_alone(app)
    for pod in pods:
        spec = pod["spec"]
        if spec["schedulerName"] != random_objects.OURS or spec.get("nodeName") or spec.get("schedulingGates"):
            continue
        if GROUP_LABEL in pod["metadata"].get("labels", {}):
            continue
        if "deletionTimestamp" in pod["metadata"] or pod["metadata"]["uid"] in left_alone:
            continue
        check_fits_nowhere(pod, pods, [*nodes, *besides])


def check_fits_nowhere(pod: Json, pods: list[Json], objects: list[Json]) -> None:
    """No node takes a pod that waits.

    Args: `objects` are the nodes, and the other objects that matter beside the pods.
    """
    other_pods = [_with_default_scheduler(other_pod) for other_pod in pods if other_pod is not pod]
    answer = Evaluator().answer(Scenario(objects=[*objects, *other_pods], pod=_with_default_scheduler(pod)))
    if answer.get("feasible"):
        raise Violation("forgotten", f"{pod['metadata']['name']} waits, and fits on {answer['feasible']}")


def _with_default_scheduler(pod: Json) -> Json:
    """The pod as the evaluator knows it. A nomination counts only if the pod is of the scheduler that is asked."""
    if pod["spec"]["schedulerName"] != random_objects.OURS:
        return pod
    return {**pod, "spec": {**pod["spec"], "schedulerName": "default-scheduler"}}


def _left_alone(app: ObservedApp) -> set[str]:
    """The UIDs of pods that were last turned down by the plugin that only another pod of their kind can satisfy.

    Their conditions may not tell: the API server may have been away when they were written.
    """
    assert app.parts is not None
    waiting = (app.parts.queue.get(pod) for pod in app.pods.list())
    return {info.pod.uid for info in waiting if info is not None and info.unschedulable_plugins == {"Hesitation"}}
