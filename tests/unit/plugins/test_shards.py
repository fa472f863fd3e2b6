"""Tests for the plugin that keeps a member of a group on its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from podium.framework import contract as fwk
from podium.objects.core import Node, Pod
from podium.objects.devices import DeviceClass, DeviceClassSpec
from podium.objects.meta import ObjectMeta
from podium.plugins.shards import Shards
from podium.plugins.shared.shard_state import ShardState
from podium.shards import OVERSEER, Announcement, Ownership, Role, Visits, owner
from podium.testing import RecordingHandle
from tests.builders import ZONE_LABEL, node, pod, snapshot_of

MEMBERS = frozenset({"m1", "m2", "m3"})
NODES = [node(f"n{number}", labels={ZONE_LABEL: f"zone-{number}"}) for number in range(9)]


def mine(member: str = "m1") -> list[str]:
    return [item.name for item in NODES if owner(item.metadata.labels[ZONE_LABEL], MEMBERS) == member]


class ShardBench:
    """The plugin of one member, and an attempt at a pod."""

    def __init__(self, *nodes: Node) -> None:
        self.snapshot = snapshot_of(*(nodes or NODES))
        self.handle = RecordingHandle(self.snapshot, nodes or NODES)
        self.plugin = Shards(None, self.handle)
        self.shards = self.handle.shared(ShardState)
        self.shards.use(Ownership("m1", ZONE_LABEL, MEMBERS, (MEMBERS,)))

    def feasible(self, subject: Pod) -> list[str]:
        """The nodes that pass, which both forms have to agree on."""
        state = fwk.CycleState()
        _, status = self.plugin.pre_filter(state, subject, self.snapshot)
        rows = self.snapshot.order
        if status is fwk.SKIP:
            only = state.find(fwk.OnlyRows)
            return [self.snapshot.name(row) for row in (rows if only is None else only.rows).tolist()]
        verdicts = self.plugin.filter_rows(state, subject, self.snapshot, rows)
        statuses = [self.plugin.filter(state, subject, self.snapshot.node(row)) for row in rows.tolist()]
        codes = [None] * len(rows) if verdicts is None else verdicts.tolist()
        for verdict, node_status in zip(codes, statuses, strict=True):
            assert node_status == (self.plugin.explain(state, subject, verdict) if verdict else None)
        pairs = zip(rows.tolist(), statuses, strict=True)
        return [self.snapshot.name(row) for row, node_status in pairs if node_status is None]


def home_pod() -> Pod:
    """A pod that m1 decides on."""
    names = (f"web-{number}" for number in range(100))
    return next(pod(name) for name in names if owner(f"pod/uid-{name}", MEMBERS) == "m1")


def placed_on(node_name: str) -> Pod:
    subject = home_pod()
    condition = Visits(frozenset({"m2"}), node_name).condition()
    return replace(subject, status=replace(subject.status, conditions=(condition,)))


def test_a_pod_at_home_goes_to_the_members_own_nodes() -> None:
    assert sorted(ShardBench().feasible(home_pod())) == mine()


def test_the_members_own_rows_are_one_array_until_the_ownership_or_a_node_changes() -> None:
    bench = ShardBench()
    rows = bench.shards.own_rows(bench.snapshot)
    assert bench.shards.own_rows(bench.snapshot) is rows
    bench.shards.use(Ownership("m2", ZONE_LABEL, MEMBERS, (MEMBERS,)))
    assert [bench.snapshot.name(row) for row in bench.shards.own_rows(bench.snapshot).tolist()] == mine("m2")


def test_a_placed_pod_goes_to_its_node_alone() -> None:
    assert ShardBench().feasible(placed_on(mine()[0])) == [mine()[0]]


def test_a_pod_of_another_member_goes_nowhere() -> None:
    assert ShardBench().feasible(placed_on(mine("m2")[0])) == []


def test_a_member_alone_sees_all_nodes() -> None:
    bench = ShardBench()
    bench.shards.use(Ownership("m1", ZONE_LABEL, frozenset({"m1"}), (frozenset({"m1"}),)))
    assert len(bench.feasible(home_pod())) == len(NODES)


def test_the_column_follows_ownership_and_nodes() -> None:
    bench = ShardBench()
    bench.feasible(home_pod())
    assert bench.shards.owned_count == len(mine())
    bench.shards.use(Ownership("m1", ZONE_LABEL, MEMBERS, (MEMBERS,), (Announcement("m2", claims_all=True),)))
    assert bench.feasible(home_pod()) == []
    assert bench.shards.owned_count == 0


def test_members_that_divide_by_other_labels_are_asked_node_by_node() -> None:
    bench = ShardBench()
    rival = Announcement("m2", "rack", (MEMBERS,))
    bench.shards.use(Ownership("m1", ZONE_LABEL, MEMBERS, (MEMBERS,), (rival,)))
    assert sorted(bench.feasible(home_pod())) == [
        item.name for item in NODES if item.name in mine() and not rival.claims(item)
    ]


def test_before_it_has_joined_a_member_holds_no_pod() -> None:
    bench = ShardBench()
    bench.shards.use(Ownership("m1", ZONE_LABEL))
    assert bench.shards.role(home_pod()) is Role.NONE


def attempt(bench: ShardBench, subject: Pod) -> fwk.CycleState:
    state = fwk.CycleState()
    bench.plugin.pre_filter(state, subject, bench.snapshot)
    return state


def test_only_the_member_that_sees_all_goes_on_to_preempt() -> None:
    bench = ShardBench()
    _, status = bench.plugin.post_filter(attempt(bench, home_pod()), home_pod(), bench.snapshot, None)  # type: ignore[arg-type]
    assert status is not None
    assert status.code is fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    bench.shards.use(Ownership("m1", ZONE_LABEL, frozenset({"m1"}), (frozenset({"m1"}),)))
    _, status = bench.plugin.post_filter(attempt(bench, home_pod()), home_pod(), bench.snapshot, None)  # type: ignore[arg-type]
    assert status is not None
    assert status.code is fwk.Code.UNSCHEDULABLE


def test_a_node_that_was_given_up_during_the_attempt_is_not_reserved() -> None:
    bench = ShardBench()
    state = attempt(bench, home_pod())
    assert bench.plugin.reserve(state, home_pod(), mine()[0]) is None
    assert bench.plugin.reserve(state, home_pod(), mine("m2")[0]) is not None


@pytest.mark.anyio
async def test_a_pod_for_another_members_node_is_handed_over() -> None:
    bench = ShardBench()
    overseer = owner(OVERSEER, MEMBERS)
    bench.shards.use(Ownership(overseer, ZONE_LABEL, MEMBERS, (MEMBERS,)))
    member = next(name for name in sorted(MEMBERS) if name != overseer)
    gang = pod("g-0", labels={"scheduling.x-k8s.io/pod-group": "g"})
    placements: list[tuple[str, str]] = []

    async def place(subject: Pod, node_name: str) -> fwk.Status | None:
        placements.append((subject.key, node_name))
        return None

    bench.shards.place = place
    state = attempt(bench, gang)
    assert bench.plugin.reserve(state, gang, mine(member)[0]) is None
    assert await bench.plugin.bind(state, gang, mine(member)[0]) is None
    assert placements == [(gang.key, mine(member)[0])]
    state = attempt(bench, gang)
    assert bench.plugin.reserve(state, gang, mine(overseer)[0]) is None
    assert await bench.plugin.bind(state, gang, mine(overseer)[0]) is fwk.SKIP


def test_the_overseer_decides_on_nothing_before_its_predecessor_has_let_go() -> None:
    bench, gang = ShardBench(), pod("g-0", labels={"scheduling.x-k8s.io/pod-group": "g"})
    overseer = owner(OVERSEER, MEMBERS)
    bench.shards.use(Ownership(overseer, ZONE_LABEL, MEMBERS, (MEMBERS,)))
    state = attempt(bench, gang)
    settling = Announcement("former", ZONE_LABEL, (frozenset({"other"}), frozenset({"former"})))
    bench.shards.use(Ownership(overseer, ZONE_LABEL, MEMBERS, (MEMBERS,), (settling,)))
    _, status = bench.plugin.pre_filter(fwk.CycleState(), gang, bench.snapshot)
    assert status is not None
    assert status.code is fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert bench.plugin.reserve(state, gang, mine(overseer)[0]) == status


def test_pods_that_request_devices_by_an_extended_resource_need_the_overseer() -> None:
    device_class = DeviceClass(
        metadata=ObjectMeta(name="gpu"), spec=DeviceClassSpec(extended_resource_name="example.com/gpu")
    )
    shards = RecordingHandle(snapshot_of(*NODES), [*NODES, device_class]).shared(ShardState)
    shards.use(Ownership("m1", ZONE_LABEL, MEMBERS, (MEMBERS,)))
    for resource, is_overseen in (("example.com/gpu", True), ("example.com/nic", False)):
        containers = [{"name": "main", "resources": {"requests": {resource: "1"}}}]
        assert shards.was_overseen(pod("web-1", spec={"containers": containers})) is is_overseen


def pod_of(member: str, spec: Mapping[str, Any] | None = None) -> Pod:
    names = (f"web-{number}" for number in range(100))
    return next(pod(name, spec=spec) for name in names if owner(f"pod/uid-{name}", MEMBERS) == member)


SPREAD = {"maxSkew": 1, "topologyKey": ZONE_LABEL, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}


def test_a_pod_that_counts_pods_of_other_shards_waits_until_all_of_them_are_known() -> None:
    bench, calls = ShardBench(), []

    def sees_all_pods() -> bool:
        calls.append(True)
        return False

    bench.shards.sees_all_pods = sees_all_pods
    spread_pod = pod_of("m1", {"topologySpreadConstraints": [SPREAD]})
    assert not bench.shards.holds(spread_pod)
    _, status = bench.plugin.pre_filter(fwk.CycleState(), spread_pod, bench.snapshot)
    assert status is not None
    assert status.reasons == ("the pods of other shards are still being read",)
    assert len(calls) == 2
    bench.shards.sees_all_pods = lambda: True
    assert bench.shards.holds(spread_pod)
    assert sorted(bench.feasible(spread_pod)) == mine()


def test_all_pods_are_needed_by_the_member_that_decides_on_a_pod_with_rules_over_nodes_and_no_other() -> None:
    bench = ShardBench()
    specs: tuple[Mapping[str, Any], ...] = ({}, {"topologySpreadConstraints": [SPREAD]})
    pods = [pod_of(member, spec) for spec in specs for member in ("m1", "m2")]
    assert [bench.shards.needs_all(item) for item in pods] == [False, False, True, False]


def test_a_pod_that_counts_pods_of_its_node_only_waits_for_no_others() -> None:
    bench = ShardBench()
    bench.shards.sees_all_pods = lambda: pytest.fail("nobody needs to know")
    assert bench.shards.holds(pod_of("m1"))
    assert not bench.shards.holds(pod_of("m2"))
    assert sorted(bench.feasible(pod_of("m1"))) == mine()


def test_the_member_that_sees_all_nodes_waits_until_all_pods_are_known() -> None:
    bench = ShardBench()
    everybody = frozenset({"m1"})
    bench.shards.use(Ownership("m1", ZONE_LABEL, everybody, (everybody,)))
    bench.shards.sees_all_pods = lambda: False
    assert not bench.shards.holds(pod_of("m1"))
