from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from podium.binder import failed_scheduling
from podium.cluster.pod_states import PodState
from podium.config import NEWEST, RELEASES
from podium.daemon.handlers import RESOURCE_EVENTS, DeviceTaintRuleHandler, ResourceClaimHandler, ResourceHandler
from podium.framework.contract.cluster_event import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    ActionType,
    ClusterEvent,
)
from podium.lib.clock import ManualClock
from podium.objects.claims import AllocationResult, ResourceClaim, ResourceClaimMeta, ResourceClaimStatus
from podium.objects.core import Pod
from podium.objects.meta import ObjectMeta
from podium.objects.resource_types import NODES, PODS, EventResource
from podium.objects.unreadable import UnreadableClaim, UnreadablePod, UnreadableVolumeClaim
from podium.objects.wire import BrokenObject
from podium.queues import QueueState
from tests.builders import node, pod
from tests.unit.daemon.loop_bench import LoopBench, with_changes
from tests.unit.devices.cluster import a_slice
from tests.unit.devices.test_taint_rules import a_rule

OURS = pod("web-1")
BOUND = OURS.on_node("n1")
OTHERS = pod("theirs", scheduler="somebody-else")
BAD_AMOUNT = {"containers": [{"name": "app", "image": "app", "resources": {"requests": {"cpu": "much"}}}]}
BAD_SELECTOR = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}]
        }
    }
}


@dataclass
class QueueRecord:
    """The calls of the queue, in order, and what the cache held at that moment."""

    calls: list[str] = field(default_factory=list)
    checks: list[Any] = field(default_factory=list)
    objects: list[tuple[Any, Any]] = field(default_factory=list)
    cache_checks: list[bool] = field(default_factory=list)


class Watched(LoopBench):
    """A loop at rest whose queue is listened to."""

    def __init__(self) -> None:
        super().__init__(clock=ManualClock())
        self.record = QueueRecord()
        for name in ("add", "update", "delete", "move_all"):
            self._listen(name)

    def _listen(self, name: str) -> None:
        call = getattr(self.queue, name)

        def listen(*args: Any) -> None:
            record = self.record
            if name == "move_all":
                record.calls.append(args[0].label)
                record.objects.append((args[1], args[2]))
                record.checks.append(args[3] if len(args) > 3 else None)
                record.cache_checks.append("n1" in self.cache.node_names())
            else:
                record.calls.append(name)
            call(*args)

        setattr(self.queue, name, listen)

    def calls(self) -> list[str]:
        """Return the calls since the last time."""
        calls, self.record = self.record.calls, QueueRecord()
        return calls


@pytest.fixture
def bench() -> Watched:
    return Watched()


def state(bench: LoopBench, pod: Pod = OURS) -> PodState:
    return bench.cache.state_of(pod.uid)


# ---------------------------------------------------------------- nodes


def test_a_new_node_is_in_the_cache_before_the_queue_gets_its_event(bench: Watched) -> None:
    new = node("n1")
    bench.put(new)
    assert bench.record.objects == [(None, new)]
    assert bench.record.cache_checks == [True]
    assert bench.calls() == [NODE_ADD.label]


def test_a_changed_node_tells_of_each_kind_of_change(bench: Watched) -> None:
    bench.put(node("n1"))
    bench.calls()
    old, new = node("n1"), node("n1", cpu="8", labels={"disk": "ssd"}, taints=["a=b:NoSchedule"])
    bench.put(new)
    assert bench.record.objects == [(old, new)] * 3
    assert bench.calls() == ["NodeUpdateNodeAllocatable", "NodeUpdateNodeLabel", "NodeUpdateNodeTaint"]


def test_a_node_that_changes_in_nothing_that_matters_tells_of_nothing(bench: Watched) -> None:
    bench.put(node("n1"))
    bench.calls()
    bench.put(node("n1", status={"nodeInfo": {"kubeletVersion": "v9"}}))
    assert bench.calls() == []


def test_the_queue_gets_the_event_of_a_deleted_node_before_the_cache_drops_it(bench: Watched) -> None:
    deleted_node = node("n1")
    bench.put(deleted_node)
    bench.calls()
    bench.node_handler.on_delete(deleted_node)
    assert bench.record.objects == [(deleted_node, None)]
    assert bench.record.cache_checks == [True]
    assert bench.calls() == [NODE_DELETE.label]
    assert list(bench.cache.node_names()) == []


def test_a_node_that_cannot_be_read_is_reported_once_and_used_when_it_is_mended(bench: Watched) -> None:
    with capture_logs() as logs:
        bench.put(node("n1", cpu="much"))
        bench.put(node("n1", cpu="much", labels={"a": "b"}))
    assert [entry["log_level"] for entry in logs] == ["error"]
    assert bench.metrics.value("podium_broken_objects_total", kind="Node") == 1
    assert bench.calls() == []
    bench.put(node("n1", cpu="4", labels={"a": "b"}))
    assert bench.calls() == [NODE_ADD.label]
    assert list(bench.cache.node_names()) == ["n1"]


def test_a_node_that_breaks_goes_as_far_as_waiting_pods_are_concerned(bench: Watched) -> None:
    bench.put(readable_node := node("n1"), unreadable_node := node("n1", cpu="much"))
    assert bench.record.objects[-1] == (readable_node, None)
    assert bench.calls() == [NODE_ADD.label, NODE_DELETE.label]
    bench.put(node("n1", cpu="more"))
    bench.node_handler.on_delete(unreadable_node)
    assert bench.calls() == []


def test_a_node_that_was_broken_when_it_went_comes_back_as_any_other(bench: Watched) -> None:
    unreadable_node = node("n1", cpu="much")
    bench.put(unreadable_node)
    bench.node_handler.on_delete(unreadable_node)
    bench.nodes.clear()
    bench.put(node("n1"))
    bench.calls()
    bench.put(node("n1", labels={"a": "b"}))
    assert bench.calls() == ["NodeUpdateNodeLabel"]


# ---------------------------------------------------------------- bound pods


@pytest.mark.parametrize("pod_seen", [BOUND, OTHERS.on_node("n1")])
def test_a_pod_seen_bound_counts_whoever_bound_it(bench: Watched, pod_seen: Pod) -> None:
    bench.put(pod_seen)
    assert bench.record.objects == [(None, pod_seen)]
    assert bench.calls() == [ASSIGNED_POD_ADD.label]
    assert state(bench, pod_seen) is PodState.ADDED


def test_a_bound_pod_that_changes_is_brought_up_to_date(bench: Watched) -> None:
    bench.put(BOUND)
    bench.calls()
    newer = with_changes(BOUND, labels={"a": "b"})
    bench.put(newer)
    assert bench.record.objects == [(BOUND, newer)]
    assert bench.calls() == ["AssignedPodUpdatePodLabel"]
    assert bench.cache.pod(BOUND.uid) is newer


def test_a_binding_confirms_what_was_assumed_and_ends_the_wait(bench: Watched) -> None:
    bench.put(OURS)
    bench.cache.assume_pod(OURS, "n1")
    bench.calls()
    bench.put(BOUND)
    assert bench.record.objects == [(None, BOUND)]
    assert bench.calls() == [ASSIGNED_POD_ADD.label, "delete"]
    assert state(bench) is PodState.ADDED
    assert bench.place(OURS) is QueueState.GONE


def test_a_binding_of_a_pod_that_was_relabelled_on_its_way_tells_of_that_too(bench: Watched) -> None:
    bench.put(OURS)
    bench.cache.assume_pod(OURS, "n1")
    bench.put(with_changes(OURS, labels={"a": "b"}))
    bench.calls()
    bench.put(with_changes(BOUND, labels={"a": "b"}))
    assert bench.calls() == [ASSIGNED_POD_ADD.label, "AssignedPodUpdatePodLabel", "delete"]


def test_topology_labels_that_the_api_server_adds_with_the_binding_are_no_event(bench: Watched) -> None:
    bench.put(OURS)
    bench.cache.assume_pod(OURS, "n1")
    bench.calls()
    bench.put(with_changes(BOUND, labels={"topology.kubernetes.io/zone": "a", "topology.kubernetes.io/region": "r"}))
    assert bench.calls() == [ASSIGNED_POD_ADD.label, "delete"]


def test_another_schedulers_binding_counts_and_leaves_the_queue_alone(bench: Watched) -> None:
    bench.put(OTHERS)
    assert bench.calls() == []
    bench.put(OTHERS.on_node("n1"))
    assert bench.calls() == [ASSIGNED_POD_ADD.label]
    assert state(bench, OTHERS) is PodState.ADDED


def test_a_bound_pod_that_goes_gives_its_room_back(bench: Watched) -> None:
    bench.put(BOUND)
    bench.calls()
    bench.delete(BOUND)
    assert bench.record.objects == [(BOUND, None)]
    assert bench.calls() == [ASSIGNED_POD_DELETE.label]
    assert state(bench) is PodState.UNKNOWN


def test_a_change_that_the_cache_refuses_is_logged_and_still_reaches_the_queue(bench: Watched) -> None:
    with capture_logs() as logs:
        bench.pods.on_delete(BOUND)
    assert [(entry["event"], entry["pod"]) for entry in logs] == [("The cache refused a change", "default/web-1")]
    assert bench.calls() == [ASSIGNED_POD_DELETE.label]


# ---------------------------------------------------------------- pods that wait


def test_a_new_pod_of_ours_waits_and_one_of_others_does_not(bench: Watched) -> None:
    bench.put(OURS, OTHERS)
    assert bench.calls() == ["add"]
    assert (bench.place(OURS), bench.place(OTHERS)) == (QueueState.ACTIVE, QueueState.GONE)
    bench.put(with_changes(OTHERS, labels={"a": "b"}))
    bench.delete(OTHERS)
    assert bench.calls() == []


def test_a_pod_that_changes_while_it_waits_is_looked_at_anew(bench: Watched) -> None:
    bench.put(OURS)
    newer = with_changes(OURS, labels={"a": "b"})
    bench.put(newer)
    assert bench.calls() == ["add", "update"]
    info = bench.queue.get(OURS)
    assert info is not None
    assert info.pod is newer


def test_a_pod_that_goes_while_it_waits_is_forgotten(bench: Watched) -> None:
    bench.put(OURS)
    bench.delete(OURS)
    assert bench.calls() == ["add", "delete"]
    assert bench.place(OURS) is QueueState.GONE


def test_an_assumed_pod_that_changes_is_left_alone(bench: Watched) -> None:
    bench.put(OURS)
    bench.cache.assume_pod(OURS, "n1")
    bench.calls()
    bench.put(with_changes(OURS, labels={"a": "b"}, nominated_node="n1"))
    assert bench.calls() == []
    assert state(bench) is PodState.ASSUMED


@pytest.mark.parametrize("how", ["deletion", "end"])
def test_an_assumed_pod_that_goes_gives_its_room_back_at_once(bench: Watched, how: str) -> None:
    bench.put(OURS)
    bench.cache.assume_pod(OURS, "n1")
    bench.calls()
    if how == "deletion":
        bench.put(with_changes(OURS, terminating=True))
    else:
        bench.delete(OURS)
    ((old, new),) = bench.record.objects
    assert (old.node_name, new) == ("n1", None)
    assert bench.calls() == [*(["delete"] if how == "end" else []), ASSIGNED_POD_DELETE.label]
    assert state(bench) is PodState.UNKNOWN


def test_an_assumed_pod_that_waits_at_permit_when_it_goes_is_rejected_and_undone_by_its_binding_cycle(
    bench: Watched,
) -> None:
    bench.put(OURS)
    bench.cache.assume_pod(OURS, "n1")
    bench.waiting_pods.add(OURS, "n1", {"Gang": 60.0})
    bench.calls()
    bench.put(with_changes(OURS, terminating=True))
    assert bench.calls() == [ASSIGNED_POD_DELETE.label]
    assert state(bench) is PodState.ASSUMED
    assert not bench.waiting_pods.reject(OURS.uid)


def test_an_assumed_pod_whose_deletion_was_known_before_is_left_alone(bench: Watched) -> None:
    old = with_changes(OURS, terminating=True)
    bench.put(old)
    bench.cache.assume_pod(OURS, "n1")
    bench.calls()
    bench.put(with_changes(old, labels={"a": "b"}))
    assert bench.calls() == []


def nomination_checks(bench: Watched) -> Iterator[bool]:
    (check,) = bench.record.checks
    return (check(pod("other", priority=priority)) for priority in (4, 5, 6))


def test_the_end_of_a_nomination_wakes_pods_of_no_higher_priority(bench: Watched) -> None:
    nominee = pod("web-1", priority=5, nominated="n1")
    bench.put(nominee)
    bench.calls()
    bench.put(with_changes(nominee, nominated_node="n2"))
    assert bench.record.objects == [(nominee, None)]
    assert list(nomination_checks(bench)) == [True, True, False]
    assert bench.calls() == ["update", ASSIGNED_POD_DELETE.label]


def test_a_nomination_that_stays_or_begins_frees_nothing(bench: Watched) -> None:
    bench.put(pod("web-1"))
    bench.put(pod("web-1", nominated="n1"))
    bench.put(pod("web-1", nominated="n1", labels={"a": "b"}))
    assert bench.calls() == ["add", "update", "update"]


def test_a_nominated_pod_that_goes_frees_what_was_kept_for_it(bench: Watched) -> None:
    nominee = pod("web-1", priority=5, nominated="n1")
    bench.put(nominee)
    bench.calls()
    bench.delete(nominee)
    assert list(nomination_checks(bench)) == [True, True, False]
    assert bench.calls() == ["delete", ASSIGNED_POD_DELETE.label]
    assert bench.queue.nominator.node_of(nominee.uid) is None


# ---------------------------------------------------------------- broken objects


def test_a_pod_with_an_amount_that_cannot_be_read_is_reported_once_and_queued_when_it_is_mended(bench: Watched) -> None:
    unreadable_pod = pod("web-1", spec=BAD_AMOUNT)
    with capture_logs() as logs:
        bench.put(unreadable_pod)
        bench.put(with_changes(unreadable_pod, labels={"a": "b"}))
    (line,) = logs
    assert (line["log_level"], line["object"], line["kind"]) == ("error", "default/web-1", "Pod")
    assert bench.metrics.value("podium_broken_objects_total", kind="Pod") == 1
    assert bench.recorder.events == [failed_scheduling(unreadable_pod, line["error"])]
    assert bench.place(unreadable_pod) is QueueState.GONE
    bench.put(OURS)
    assert bench.place(OURS) is QueueState.ACTIVE


def test_a_waiting_pod_that_breaks_waits_no_longer(bench: Watched) -> None:
    bench.put(OURS)
    bench.put(pod("web-1", spec=BAD_AMOUNT))
    assert bench.place(OURS) is QueueState.GONE


def test_a_broken_pod_that_breaks_anew_after_it_was_mended_is_reported_again(bench: Watched) -> None:
    for item in (pod("web-1", spec=BAD_AMOUNT), OURS, pod("web-1", spec=BAD_AMOUNT)):
        bench.put(item)
    assert bench.metrics.value("podium_broken_objects_total", kind="Pod") == 2


def test_an_invalid_selector_is_reported_once_and_the_pod_is_tried_all_the_same(bench: Watched) -> None:
    odd = pod("web-1", affinity=BAD_SELECTOR)
    with capture_logs() as logs:
        bench.put(odd)
        bench.put(with_changes(odd, labels={"a": "b"}))
    assert [entry["field"].partition("[")[0] for entry in logs] == [
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    ]
    assert bench.place(odd) is QueueState.ACTIVE
    assert bench.recorder.events == []


@pytest.mark.parametrize("spec", [BAD_AMOUNT, {"affinity": BAD_SELECTOR}])
@pytest.mark.parametrize("how", ["deleted", "bound"])
def test_nothing_is_remembered_of_broken_pods_that_are_gone(bench: Watched, spec: Any, how: str) -> None:
    for index in range(3):
        unreadable_pod = pod(f"web-{index}", spec=spec)
        bench.put(unreadable_pod)
        if how == "bound":
            bench.put(unreadable_pod.on_node("n1"))
        else:
            bench.delete(unreadable_pod)
    assert bench.pods._reported == {}


def test_an_object_that_does_not_decode_is_reported(bench: Watched) -> None:
    broken_object = BrokenObject("Pod", "default", "web-1", "u1", "7", "Expected `str`, got `int`")
    with capture_logs() as logs:
        bench.pods.on_broken(broken_object)
    assert [(entry["object"], entry["detail"]) for entry in logs] == [("default/web-1", "Expected `str`, got `int`")]
    assert bench.metrics.value("podium_broken_objects_total", kind="Pod") == 1


# ---------------------------------------------------------------- other resources, time taken


@pytest.mark.parametrize("resource", RESOURCE_EVENTS.values(), ids=str)
def test_changes_of_other_kinds_are_events_of_their_resource(bench: Watched, resource: EventResource) -> None:
    handler = ResourceHandler(resource, bench.queue, bench.clock, bench.metrics)
    handler.on_add("new")  # type: ignore[arg-type]
    handler.on_update("old", "new")  # type: ignore[arg-type]
    handler.on_delete("old")  # type: ignore[arg-type]
    assert bench.record.objects == [(None, "new"), ("old", "new"), ("old", None)]
    actions = (ActionType.ADD, ActionType.UPDATE, ActionType.DELETE)
    labels = [ClusterEvent(resource, action).label for action in actions]
    assert bench.calls() == labels
    for label in labels:
        assert bench.metrics.value("scheduler_event_handling_duration_seconds", event=label) == 1


def test_an_allocated_claim_that_is_gone_has_lost_its_allocation_first(bench: Watched) -> None:
    """Between two lists nobody sees it lose the allocation, and that is what pods wait for in older minors."""
    events, older = EventResource.RESOURCE_CLAIM, RELEASES["1.36"].devices
    handler = ResourceClaimHandler(events, bench.queue, bench.clock, bench.metrics, older)
    free = msgspec.convert({"metadata": {"name": "free", "namespace": "default", "uid": "1"}}, ResourceClaim)
    allocated_claim = replace(free, status=ResourceClaimStatus(AllocationResult()))
    for claim in (free, allocated_claim):
        handler.on_delete(claim)
    assert bench.record.objects == [(free, None), (allocated_claim, free), (allocated_claim, None)]
    actions = (ActionType.DELETE, ActionType.UPDATE, ActionType.DELETE)
    assert bench.calls() == [ClusterEvent(events, action).label for action in actions]


def test_an_allocated_claim_that_is_gone_is_one_event_where_pods_wait_for_that(bench: Watched) -> None:
    events = EventResource.RESOURCE_CLAIM
    handler = ResourceClaimHandler(events, bench.queue, bench.clock, bench.metrics, NEWEST.devices)
    allocated_claim = ResourceClaim(
        metadata=ResourceClaimMeta(name="held", namespace="default", uid="1"),
        status=ResourceClaimStatus(AllocationResult()),
    )
    handler.on_delete(allocated_claim)
    assert bench.record.objects == [(allocated_claim, None)]
    assert bench.calls() == ["resource.k8s.io/ResourceClaimDelete"]


def test_an_unreadable_field_of_a_claim_is_reported_once(bench: Watched) -> None:
    events = EventResource.RESOURCE_CLAIM
    handler = ResourceClaimHandler(events, bench.queue, bench.clock, bench.metrics, NEWEST.devices)
    readable_claim = ResourceClaim(metadata=ResourceClaimMeta(name="c", namespace="default", uid="1"))
    unreadable_claim = UnreadableClaim(metadata=readable_claim.metadata, field="spec", detail="Expected `object`")
    handler.on_add(unreadable_claim)
    handler.on_update(unreadable_claim, replace(unreadable_claim))
    assert bench.metrics.value("podium_broken_objects_total", kind="ResourceClaim") == 1
    handler.on_update(unreadable_claim, readable_claim)
    handler.on_update(readable_claim, unreadable_claim)
    assert bench.metrics.value("podium_broken_objects_total", kind="ResourceClaim") == 2


def test_an_unreadable_field_of_an_object_that_only_waiting_pods_mind_is_reported_once(bench: Watched) -> None:
    handler = ResourceHandler(EventResource.PERSISTENT_VOLUME_CLAIM, bench.queue, bench.clock, bench.metrics)
    meta = ObjectMeta(name="c", namespace="default", uid="1")
    unreadable_claim = UnreadableVolumeClaim(metadata=meta, field="spec", detail="Expected `object`")
    handler.on_add(unreadable_claim)
    handler.on_update(unreadable_claim, replace(unreadable_claim))
    assert bench.metrics.value("podium_broken_objects_total", kind="PersistentVolumeClaim") == 1


def test_rules_that_taint_devices_change_slices_for_waiting_pods_but_not_by_their_status(bench: Watched) -> None:
    slices = [a_slice("s", "g0", "g1")]
    handler = DeviceTaintRuleHandler(bench.queue, bench.clock, bench.metrics, NEWEST.devices, lambda: slices)
    rule = a_rule()
    handler.on_add(rule)
    handler.on_update(rule, replace(rule, metadata=ObjectMeta(name="r", resource_version="2")))
    assert bench.calls() == ["resource.k8s.io/ResourceSliceUpdate"]
    handler.on_update(rule, a_rule(pool="q"))
    handler.on_delete(rule)
    assert bench.calls() == ["resource.k8s.io/ResourceSliceUpdate"] * 2
    handler.on_add(a_rule(pool="q"))
    handler.on_update(a_rule(), a_rule(pool="p"))
    assert bench.calls() == []


def test_pods_and_nodes_have_handlers_of_their_own() -> None:
    assert not {PODS, NODES} & set(RESOURCE_EVENTS)


def test_the_time_each_kind_of_event_takes_is_observed(bench: Watched) -> None:
    bench.put(node("n1"), OURS, with_changes(OURS, labels={"a": "b"}), BOUND, with_changes(BOUND, labels={"a": "c"}))
    bench.delete(BOUND)
    bench.put(pod("web-2"))
    bench.delete(pod("web-2"))
    bench.put(node("n1"), node("n1", labels={"a": "b"}, cpu="8"), node("n1", cpu="many"))
    assert bench.metrics.values("scheduler_event_handling_duration_seconds") == {
        ("NodeAdd",): 1,
        ("NodeUpdateNodeAllocatable",): 1,
        ("NodeUpdateNodeLabel",): 1,
        ("NodeDelete",): 1,
        ("UnscheduledPodAdd",): 2,
        ("UnscheduledPodUpdate",): 1,
        ("UnscheduledPodUpdatePodLabel",): 1,
        ("AssignedPodAdd",): 1,
        ("AssignedPodUpdate",): 1,
        ("AssignedPodUpdatePodLabel",): 1,
        ("AssignedPodDelete",): 1,
        ("UnscheduledPodDelete",): 1,
    }


def test_a_node_with_a_pod_that_cannot_be_read_is_closed_and_its_opening_wakes_pods(bench: Watched) -> None:
    odd = pod("odd", spec=BAD_AMOUNT).on_node("n1")
    bench.put(node("n1"))
    with capture_logs() as logs:
        bench.put(odd)
    assert [(entry["object"], entry["node_closed"]) for entry in logs] == [("default/odd", "n1")]
    assert len(bench.cache.snapshot().closed) == 1
    bench.calls()
    bench.delete(odd)
    assert not bench.cache.snapshot().closed
    assert NODE_ADD.label in bench.calls()


def test_a_waiting_pod_that_is_seen_bound_but_cannot_be_read_leaves_the_queue_and_counts(bench: Watched) -> None:
    bench.put(node("n1"))
    bench.put(OURS)
    assert bench.place(OURS) is QueueState.ACTIVE
    bench.put(UnreadablePod(metadata=OURS.metadata, node_name="n1", field="spec.containers", detail="Expected `array`"))
    assert bench.place(OURS) is QueueState.GONE
    assert bench.cache.state_of(OURS.uid) is PodState.ADDED
    assert len(bench.cache.snapshot().closed) == 1


# ---------------------------------------------------------------- a history that went back


def test_a_bound_pod_that_is_pending_again_waits_again_and_its_room_is_free(bench: Watched) -> None:
    bench.put(node("n1"), pod("web-1", node="n1"))
    bench.calls()
    bench.put(pod("web-1"))
    assert state(bench, pod("web-1")) is PodState.UNKNOWN
    assert bench.place(pod("web-1")) is QueueState.ACTIVE
    assert bench.calls() == [ASSIGNED_POD_DELETE.label, "add"]
    assert [item.key for item in bench.unbound] == ["default/web-1"]


def test_a_bound_pod_of_another_scheduler_that_is_pending_again_counts_nowhere(bench: Watched) -> None:
    bench.put(node("n1"), pod("web-1", node="n1", scheduler="other"), pod("web-1", scheduler="other"))
    assert bench.cache.statistics()["pods"] == 0
    assert bench.place(pod("web-1")) is QueueState.GONE


def test_a_bound_pod_that_is_bound_elsewhere_counts_there(bench: Watched) -> None:
    bench.put(node("n1"), node("n2"), pod("web-1", node="n1"))
    bench.calls()
    bench.put(pod("web-1", node="n2"))
    assert [item.key for item in bench.cache.pods_on("n2")] == ["default/web-1"]
    assert not bench.cache.pods_on("n1")
    assert bench.calls() == [ASSIGNED_POD_DELETE.label, ASSIGNED_POD_ADD.label]
    assert len(bench.unbound) == 1
