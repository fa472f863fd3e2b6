from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.cluster.pod_groups import PodGroupState
from podium.config import NEWEST, RELEASES, Release
from podium.config.args import DynamicResourcesArgs
from podium.framework.contract.cluster_event import QueueingHint
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.plugin import Scope
from podium.framework.contract.pod_groups import SimulatedGroup
from podium.framework.contract.status import SKIP, Code, Status
from podium.framework.cycle.diagnosis import Diagnosis
from podium.objects.claims import AllocationResult, ResourceClaim
from podium.objects.core import Pod
from podium.objects.devices import DeviceTaintRule
from podium.objects.unreadable import UnreadableClaim
from podium.plugins.dynamic_resources.plugin import DynamicResources
from podium.plugins.dynamic_resources.pod_devices import PodDevices
from podium.plugins.shared.cluster_devices import ClusterDevices
from tests.builders import node, pod, snapshot_of
from tests.device_manifests import resource_claim
from tests.unit.devices.test_taint_rules import TAINT, a_rule
from tests.unit.plugins.clusters import normalize, score_nodes, scored_one_by_one
from tests.unit.plugins.dynamic_resources.claims import (
    GPU,
    DeviceHandle,
    a_claim,
    a_slice,
    allocation,
    special_claim,
    user,
)

NODES = snapshot_of(node("n1"), node("n2"))
WANTS_GPU = pod(spec={"containers": [{"name": "main", "resources": {"requests": {GPU: "1"}}}]})
OLD, NEW = RELEASES["1.36"], RELEASES["1.37"]
QUEUE, HINT_SKIP = QueueingHint.QUEUE, QueueingHint.SKIP


class Attempt:
    """PreFilter and Filter of one pod on all nodes."""

    def __init__(self, item: Pod, *objects: Any, release: Release = NEWEST, **args: Any) -> None:
        self.handle = DeviceHandle(*objects, release=release)
        self.plugin = DynamicResources(DynamicResourcesArgs(**args), self.handle)
        self.state, self.pod = CycleState(), item
        self.before = self.plugin.pre_filter(self.state, item, NODES)[1]
        self.statuses: dict[str, Status] = {}
        if self.before is None:
            verdicts = self.plugin.filter_rows(self.state, item, NODES, NODES.order)
            assert verdicts is not None
            self.statuses = {
                NODES.name(row): self.plugin.explain(self.state, item, verdict)
                for row, verdict in zip(NODES.order, verdicts.tolist(), strict=True)
                if verdict
            }

    @property
    def reasons(self) -> dict[str, str]:
        return {name: status.message for name, status in self.statuses.items()}

    @property
    def pod_devices(self) -> PodDevices:
        return self.state.read(PodDevices)

    def post_filter(self) -> Status | None:
        return self.plugin.post_filter(self.state, self.pod, NODES, Diagnosis())[1]


def test_a_pod_without_claims_is_left_alone() -> None:
    plugin, state = DynamicResources(DynamicResourcesArgs(), DeviceHandle()), CycleState()
    plain = pod()
    assert plugin.pre_enqueue(plain) is None
    assert plugin.filter_scope(plain.spec) is plugin.score_scope(plain.spec) is Scope.NODE
    assert plugin.pre_filter(state, plain, NODES) == (None, SKIP)
    assert score_nodes(plugin, plain, NODES) == scored_one_by_one(plugin, plain, NODES) == {"n1": 0, "n2": 0}
    assert normalize(plugin, plain, NODES) == {"n1": 0, "n2": 0}
    assert plugin.reserve(state, plain, "n1") is None
    plugin.unreserve(state, plain, "n1")
    assert plugin.pre_bind_pre_flight(state, plain, "n1")[1] is SKIP
    assert plugin.clean_up(state, plain) is None
    assert plugin.writes_before_binding(state, plain, "n1") == plugin.writes_after_failure(state, plain) == []
    assert plugin.post_filter(state, plain, NODES, Diagnosis())[1] == Status(Code.UNSCHEDULABLE)


def test_1_36_says_why_no_claim_is_deallocated() -> None:
    handle, state = DeviceHandle(), CycleState()
    handle.release = RELEASES["1.36"]
    plugin = DynamicResources(DynamicResourcesArgs(), handle)
    plugin.pre_filter(state, pod(), NODES)
    assert plugin.post_filter(state, pod(), NODES, Diagnosis())[1] == Status(
        Code.UNSCHEDULABLE, ("no new claims to deallocate",)
    )


def test_after_an_attempt_that_never_reached_it_it_fails_as_upstream_does() -> None:
    plugin = DynamicResources(DynamicResourcesArgs(), DeviceHandle())
    for status in (
        plugin.post_filter(CycleState(), pod(), NODES, Diagnosis())[1],
        plugin.filter(CycleState(), pod(), NODES.node(0)),
    ):
        assert status is not None
        assert (status.code, status.message) == (Code.ERROR, "not found")


def test_a_pod_is_gated_while_its_claim_is_missing() -> None:
    attempt = Attempt(user("c"))
    gate = attempt.plugin.pre_enqueue(attempt.pod)
    assert gate == attempt.before
    assert gate is not None
    assert (gate.code, gate.message) == (
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        'could not find ResourceClaim "default/c"',
    )
    attempt.handle.claims.put(a_claim())
    assert attempt.plugin.pre_enqueue(attempt.pod) is None


def test_nodes_without_a_free_device_are_rejected() -> None:
    attempt = Attempt(user("c"), a_claim(), a_slice("n1", "g0"))
    assert attempt.plugin.filter_scope(attempt.pod.spec) is Scope.CLUSTER
    assert attempt.reasons == {"n2": "cannot allocate all claims"}
    assert [result.device for result in attempt.pod_devices.by_node["n1"].results[0].devices.results] == ["g0"]
    full_attempt = Attempt(user("c"), a_claim(), a_slice("n1", "g0"), a_claim("other", allocation=allocation("g0")))
    assert full_attempt.reasons == dict.fromkeys(("n1", "n2"), "cannot allocate all claims")


@pytest.mark.parametrize(
    ("claim", "code", "reason"),
    [
        (a_claim(of_class="none"), Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "request r: device class none does not exist"),
        (a_claim(of_class=""), Code.ERROR, "request r: unsupported request type"),
    ],
)
def test_claims_that_cannot_be_allocated_reject_the_pod(claim: Any, code: Code, reason: str) -> None:
    status = Attempt(user("c"), claim).before
    assert status is not None
    assert (status.code, status.message) == (code, reason)


def test_a_claim_that_is_being_allocated_is_waited_for() -> None:
    first = Attempt(user("c"), a_claim(), a_slice("n1", "g0"))
    assert first.plugin.reserve(first.state, first.pod, "n1") is None
    _, status = first.plugin.pre_filter(CycleState(), user("c", name="web-2"), NODES)
    assert status is not None
    assert status.message == "resource claim default/c is in the process of being allocated"
    first.plugin.unreserve(first.state, first.pod, "n1")
    assert first.plugin.pre_filter(CycleState(), user("c", name="web-2"), NODES)[1] is None


def test_a_pod_that_saw_devices_withheld_is_tried_again_when_they_no_longer_are() -> None:
    attempt = Attempt(user("c"), a_claim(), a_claim("other"), a_slice("n1", "g0"))
    assert attempt.handle.activated_later == {}
    devices = attempt.handle.shared(ClusterDevices)
    devices.doubt(a_claim("other"), msgspec.convert(allocation("g0"), AllocationResult))
    attempt.handle.clock.advance(45.0)
    attempt.plugin.pre_filter(CycleState(), attempt.pod, NODES)
    assert attempt.handle.activated_later == {"default/web-1": 15.0}


def test_rules_taint_devices_only_with_the_gate() -> None:
    objects = (user("c"), a_claim(), a_slice("n1", "g0", "g1"), a_rule(device="g0"))
    assert [result.device for result in _devices_chosen(Attempt(*objects, has_taint_rules=False))] == ["g0"]
    assert [result.device for result in _devices_chosen(Attempt(*objects))] == ["g1"]
    assert "n1" in Attempt(*objects, a_rule("all")).statuses


@pytest.mark.parametrize(("release", "is_tainted"), [(OLD, True), (NEW, False)], ids=["old", "new"])
def test_a_rule_without_a_selector_taints_no_device_in_newer_minors(release: Release, is_tainted: bool) -> None:
    rule = msgspec.convert({"metadata": {"name": "r"}, "spec": {"taint": TAINT}}, DeviceTaintRule)
    attempt = Attempt(user("c"), a_claim(), a_slice("n1", "g0"), rule, release=release)
    assert ("n1" in attempt.statuses) is is_tainted


@pytest.mark.parametrize(("has_fractional_ranges", "amount"), [(False, "2"), (True, "1500m")])
def test_fractions_of_a_capacity_are_consumed_only_with_the_gate(has_fractional_ranges: bool, amount: str) -> None:
    policy = {"validRange": {"min": "500m", "step": "500m"}}
    capacity = {"memory": {"value": "10", "requestPolicy": policy}}
    device = {"name": "g0", "allowMultipleAllocations": True, "capacity": capacity}
    exactly = {"deviceClassName": "gpu", "capacity": {"requests": {"memory": "1200m"}}}
    claim = msgspec.convert(resource_claim("c", {"name": "r", "exactly": exactly}), ResourceClaim)
    attempt = Attempt(user("c"), claim, a_slice("n1", device), has_fractional_ranges=has_fractional_ranges)
    assert [result.consumed_capacity for result in _devices_chosen(attempt)] == [{"memory": amount}]


@pytest.mark.parametrize("release", [OLD, NEW], ids=["old", "new"])
@pytest.mark.parametrize("features", [(), ("DRAOptionalNodeOperations",)])
def test_skipped_node_operations_need_a_node_that_declares_them_in_newer_minors(
    release: Release, features: tuple[str, ...]
) -> None:
    held = allocation("g0")
    held["devices"]["results"][0]["skipNodeOperations"] = ["*"]
    attempt = Attempt(user("c"), a_claim(allocation=held), release=release)
    declaring = node("n1", status={"declaredFeatures": list(features)})
    status = attempt.plugin.filter(attempt.state, attempt.pod, snapshot_of(declaring).node(0))
    if release is OLD or features:
        assert status is None
        return
    assert status is not None
    assert (status.code, status.message) == (
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        "resourceclaim not available on the node",
    )


def test_a_deleted_claim_wakes_pods_if_it_was_allocated() -> None:
    plugin = Attempt(user("c"), a_claim()).plugin
    held, waiting = a_claim("other", allocation=allocation("g0")), user("missing")
    assert plugin.after_claim_change(waiting, held, None) is QUEUE
    assert plugin.after_claim_change(waiting, a_claim("other"), None) is HINT_SKIP
    unknown = UnreadableClaim(metadata=held.metadata, field="status", detail="Expected `object`")
    assert plugin.after_claim_change(waiting, unknown, None) is QUEUE


def _devices_chosen(attempt: Attempt) -> Any:
    (result,) = attempt.pod_devices.by_node["n1"].results
    return result.devices.results


def test_a_search_that_takes_too_long_ends_the_attempt() -> None:
    attempt = Attempt(user("c"), a_claim(), a_slice("n1", "g0"), filter_timeout_s=0.00002)
    assert attempt.statuses["n1"].code is Code.ERROR
    assert attempt.reasons == dict.fromkeys(("n1", "n2"), "node n1: timed out trying to allocate devices")


def test_an_unreadable_amount_fails_only_the_pod_that_asks_for_it() -> None:
    manifest = msgspec.to_builtins(a_claim("odd"))
    manifest["spec"]["devices"]["requests"][0]["exactly"]["capacity"] = {"requests": {"memory": "much"}}
    odd = msgspec.convert(manifest, ResourceClaim)
    gpu = a_slice("n1", {"name": "g0", "capacity": {"memory": {"value": "1Gi"}}})
    odd_attempt = Attempt(user("odd"), odd, a_claim(), gpu)
    assert odd_attempt.statuses["n1"].code is Code.ERROR
    assert Attempt(user("c"), odd, a_claim(), gpu).reasons == {"n2": "cannot allocate all claims"}


def test_pods_of_a_group_share_an_allocation_that_one_of_them_has_decided_on() -> None:
    handle = DeviceHandle(a_claim(), a_slice("n1", "g0", "g1"))
    plugin = DynamicResources(DynamicResourcesArgs(), handle)
    allocations = []
    for name in ("web-1", "web-2"):
        state, item = CycleState(), user("c", name=name)
        state.write(SimulatedGroup(PodGroupState({}, {}, {})))
        assert plugin.pre_filter(state, item, NODES)[1] is None
        assert plugin.filter(state, item, NODES.node(NODES.row_of["n1"])) is None
        assert plugin.reserve(state, item, "n1") is None
        allocations.append((state, item))
    (first, second) = (state.read(PodDevices).by_node["n1"].results for state, _ in allocations)
    assert first == second
    _, status = plugin.pre_filter(CycleState(), user("c", name="web-3"), NODES)
    assert status is not None
    assert status.message == "resource claim default/c is in the process of being allocated"
    for state, item in allocations:
        plugin.unreserve(state, item, "n1")
    assert not plugin.pre_filter(CycleState(), user("c", name="web-3"), NODES)[1]


# ---------------------------------------------------------------- allocated claims


def test_an_allocated_claim_keeps_its_pods_where_its_devices_are() -> None:
    attempt = Attempt(user("c"), a_claim(allocation=allocation("g0")))
    assert attempt.reasons == {"n2": "resourceclaim not available on the node"}
    assert attempt.plugin.reserve(attempt.state, attempt.pod, "n1") is None


def test_an_allocation_in_the_way_is_taken_back_if_no_other_pod_uses_it() -> None:
    own = Attempt(user("c", "d"), a_claim(allocation=allocation("g0"), users=["web-1"]), a_claim("d"))
    unused = Attempt(user("c"), a_claim(allocation=allocation("g0", node="n3")))
    shared_attempt = Attempt(user("c"), a_claim(allocation=allocation("g0", node="n3"), users=["web-1", "web-2"]))
    assert [attempt.post_filter() for attempt in (own, unused, shared_attempt)] == [
        Status(Code.UNSCHEDULABLE),
        Status(Code.UNSCHEDULABLE, ("deallocation of ResourceClaim completed",)),
        Status(Code.UNSCHEDULABLE),
    ]
    (write,) = unused.plugin.writes_after_failure(unused.state, unused.pod)
    assert write.before.status.allocation is not None
    assert write.after.status.allocation is None


def test_devices_that_were_not_ready_in_time_make_the_claim_unavailable() -> None:
    allocation_document = {
        **allocation("g0", bindingConditions=["ready"]),
        "allocationTimestamp": "1970-01-01T00:00:01Z",
    }
    unavailable = "resourceclaim not available on the node"
    assert Attempt(user("c"), a_claim(allocation=allocation_document)).reasons == dict.fromkeys(
        ("n1", "n2"), unavailable
    )
    allocation_document["allocationTimestamp"] = "2999-01-01T00:00:01Z"
    assert Attempt(user("c"), a_claim(allocation=allocation_document)).reasons == {"n2": unavailable}


# ---------------------------------------------------------------- extended resources


def test_an_extended_resource_comes_from_devices_where_a_node_has_none_of_it() -> None:
    attempt = Attempt(WANTS_GPU, a_slice("n1", "g0"))
    assert attempt.plugin.filter_scope(WANTS_GPU.spec) is Scope.CLUSTER
    assert attempt.reasons == {"n2": "cannot allocate all claims"}
    on_node = attempt.pod_devices.by_node["n1"]
    assert on_node.special is not None
    assert [request.name for request in on_node.special.spec.devices.requests] == ["container-0-request-0"]
    assert attempt.plugin.writes_before_binding(attempt.state, WANTS_GPU, "n2") == []
    attempt.plugin.reserve(attempt.state, WANTS_GPU, "n1")
    (write,) = attempt.plugin.writes_before_binding(attempt.state, WANTS_GPU, "n1")
    assert write.before is None
    assert write.after.metadata.name.startswith("web-1-extended-resources-")
    assert write.after.is_reserved_for(WANTS_GPU.uid)
    assert not attempt.pod_devices.in_flight


def test_without_a_class_the_resource_is_none_of_its_business() -> None:
    handle = DeviceHandle(classes=())
    plugin = DynamicResources(DynamicResourcesArgs(), handle)
    assert plugin.filter_scope(WANTS_GPU.spec) is Scope.NODE
    assert plugin.pre_filter(CycleState(), WANTS_GPU, NODES) == (None, SKIP)


def test_a_claim_left_over_from_an_earlier_attempt_is_deleted_first() -> None:
    attempt = Attempt(WANTS_GPU, special_claim("web-1-old", "web-1"), a_slice("n1", "g0"))
    assert attempt.reasons == dict.fromkeys(("n1", "n2"), "cannot schedule extended resource claim")
    assert attempt.post_filter() == Status(Code.UNSCHEDULABLE, ("deletion of ResourceClaim completed",))
    (write,) = attempt.plugin.writes_after_failure(attempt.state, attempt.pod)
    assert (write.before.metadata.name, write.after) == ("web-1-old", None)


# ---------------------------------------------------------------- scores and hints


def test_earlier_alternatives_score_higher() -> None:
    alternatives = [{"name": "big", "deviceClassName": "gpu", "count": 2}, {"name": "small", "deviceClassName": "gpu"}]
    manifest = msgspec.to_builtins(a_claim())
    manifest["spec"]["devices"]["requests"] = [{"name": "r", "firstAvailable": alternatives}]
    claim = msgspec.convert(manifest, ResourceClaim)
    attempt = Attempt(user("c"), claim, a_slice("n1", "g0", "g1"), a_slice("n2", "g0"))
    scores = attempt.plugin.score_rows(attempt.state, attempt.pod, NODES, NODES.order)
    assert scores.tolist() == [8, 7]
    assert [attempt.plugin.score(attempt.state, attempt.pod, NODES.node(row)) for row in NODES.order] == [8, 7]


def test_generated_claims_help_the_pod_itself() -> None:
    plugin = DynamicResources(DynamicResourcesArgs(), DeviceHandle(a_claim()))
    mine = user("c")
    assert plugin.after_claims_generated(mine, mine, mine) is QUEUE
    assert plugin.after_claims_generated(mine, None, user("c", name="other")) is HINT_SKIP
    assert plugin.after_claims_generated(mine, mine, user("missing")) is HINT_SKIP


def test_changes_of_claims_help_whom_they_may_concern() -> None:
    plugin = DynamicResources(DynamicResourcesArgs(), DeviceHandle(a_claim(), a_claim("other")))
    mine, held_claim = user("c"), a_claim("other", allocation=allocation("g0"))
    assert plugin.after_claim_change(mine, None, a_claim()) is QUEUE
    assert plugin.after_claim_change(mine, None, a_claim("other")) is HINT_SKIP
    assert plugin.after_claim_change(mine, held_claim, a_claim("other")) is QUEUE
    assert plugin.after_claim_change(mine, a_claim(), a_claim(version="2")) is HINT_SKIP
    assert plugin.after_claim_change(mine, a_claim(), a_claim(allocation=allocation("g0"))) is QUEUE
    assert plugin.after_claim_change(user("missing"), held_claim, a_claim("other")) is HINT_SKIP
