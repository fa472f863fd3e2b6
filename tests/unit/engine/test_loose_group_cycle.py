from __future__ import annotations

from podium.config import RELEASES
from podium.engine.group_decisions import RejectedWithGroup
from podium.engine.loose_group_cycle import LooseGroupCycle
from podium.framework.contract.bind import ReservePlugin
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.pod_groups import SimulatedGroup
from podium.framework.contract.status import Status, unschedulable
from podium.framework.cycle.schedule import DoesNotFit, Failed
from podium.objects.core import Node, Pod
from tests.builders import node, pod, pod_group
from tests.unit.engine.group_bench import GroupBench, members, message, nodes_of

GATES = "GenericWorkload=true,GangScheduling=true"
WAITS = (
    "waiting for minCount pods from a gang to be scheduled, one or more plugins asked to wait and no plugin rejected"
)


class Bench(GroupBench):
    release = RELEASES["1.36"]
    cycle = LooseGroupCycle
    gates = GATES


def test_a_gang_that_fits_gets_a_node_for_every_pod() -> None:
    bench = Bench(members(3), node("n1", cpu="2"), node("n2", cpu="2"))
    decision = bench.decide()
    assert decision.status is None
    assert decision.result == "scheduled"
    assert sorted(str(each) for each in nodes_of(decision)) in (["n1", "n1", "n2"], ["n1", "n2", "n2"])


def test_nothing_of_the_simulation_remains() -> None:
    bench = Bench(members(2, nominated="n1"), node("n1", cpu="2"))
    for waiting_pod in bench.pods:
        bench.nominator.add(waiting_pod)
    decision = bench.decide()
    assert bench.cache.statistics()["assumed_pods"] == 0
    assert bench.cache.snapshot().pod_count.sum() == 0
    assert bench.state is not None
    assert bench.state.scheduled_count == 0
    assert [bench.nominator.node_of(pod.uid) for pod in bench.pods] == ["n1", "n1"]
    for member in decision.members:
        assert member.cycle.state.read(SimulatedGroup).state is None


def test_a_gang_that_fits_in_part_gets_no_node() -> None:
    decision = Bench(members(3), node("n1", cpu="2")).decide()
    assert decision.status is not None
    assert decision.result == "unschedulable"
    assert decision.status.message == "pod group is unschedulable"
    first, second, third = (member.decision for member in decision.members)
    assert isinstance(first, RejectedWithGroup)
    assert message(first) == message(second) == f"pod group is unschedulable, {WAITS} pod"
    assert message(third).startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_pods_beyond_the_minimum_may_be_left_over() -> None:
    decision = Bench(members(3), node("n1", cpu="2"), group=pod_group("gang", min_count=2)).decide()
    assert decision.status is None
    assert nodes_of(decision) == ["n1", "n1", None]


def test_a_basic_group_takes_what_it_gets() -> None:
    decision = Bench(members(2), node("n1", cpu="1"), group=pod_group("gang")).decide()
    assert decision.status is None
    assert nodes_of(decision) == ["n1", None]


def test_running_pods_of_the_gang_count() -> None:
    there = pod("there", group="gang", node="n1")
    decision = Bench(members(1), node("n1"), there, group=pod_group("gang", min_count=2)).decide()
    assert nodes_of(decision) == ["n1"]


def test_a_gang_that_fits_after_preemption_is_nominated_as_a_whole() -> None:
    victims = [pod(f"v{at}", cpu="1", node="n1", priority=0) for at in range(2)]
    decision = Bench(members(3, priority=9), node("n1", cpu="2"), node("n2", cpu="1"), *victims).decide()
    assert decision.result == "waiting_on_preemption"
    assert decision.status is not None
    assert decision.status.message == "pod group is unschedulable, pod group is waiting for preemption to complete"
    assert {victim.key for eviction in decision.evictions for victim in eviction.help.victims} <= {
        "default/v0",
        "default/v1",
    }
    named = {member.cycle.pod.metadata.name: member.decision for member in decision.members}
    placed = [each for each in named.values() if isinstance(each, RejectedWithGroup)]
    assert [move.nominated_node_name for move in placed] == ["n2"]
    assert all(
        each.post_filter is not None and each.post_filter.nominated_node_name == "n1" and not each.post_filter.victims
        for each in named.values()
        if isinstance(each, DoesNotFit)
    )


def test_victims_are_evicted_even_if_the_gang_does_not_fit_after_all() -> None:
    victim = pod("victim", cpu="1", node="n1", priority=0)
    big = pod("big", group="gang", cpu="9", priority=9)
    decision = Bench([*members(1, priority=9), big], node("n1", cpu="1"), victim).decide()
    assert decision.result == "unschedulable"
    assert [eviction.help.victims for eviction in decision.evictions] == [(victim,)]
    first = decision.members[0].decision
    assert isinstance(first, RejectedWithGroup)
    assert first.nominated_node_name == ""


class Fussy(ReservePlugin):
    """Rejects one pod and fails for another; counts what is reserved."""

    reserved: list[str] = []  # noqa: RUF012 - shared by the test and the plugin

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        if pod.metadata.name == "fails":
            raise ValueError("broken")
        self.reserved.append(pod.metadata.name)
        return unschedulable("not here") if pod.metadata.name == "rejected" else None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        if pod.metadata.name in self.reserved:
            self.reserved.remove(pod.metadata.name)


def test_a_pod_that_reserve_rejects_is_left_out() -> None:
    pods = [pod("rejected", group="gang"), *members(1)]
    decision = Bench(pods, node("n1"), group=pod_group("gang", min_count=1), plugins=[Fussy]).decide()
    assert nodes_of(decision) == [None, "n1"]
    assert message(decision.members[0].decision) == "0/1 nodes are available: 1 not here."
    assert Fussy.reserved == []


def test_an_error_ends_the_attempt_for_all() -> None:
    pods = [*members(1), pod("fails", group="gang"), pod("later", group="gang")]
    decision = Bench(pods, node("n1"), plugins=[Fussy]).decide()
    assert decision.result == "error"
    own = 'running Reserve plugin "Fussy": ValueError: broken'
    whole = f"failed to schedule other pod from a pod group: {own}"
    assert [message(member.decision) for member in decision.members] == [whole, own, whole]
    assert Fussy.reserved == []


def test_all_pods_must_have_one_scheduler_name() -> None:
    decision = Bench([*members(1), pod("other", group="gang", scheduler="b")], node("n1")).decide()
    assert decision.result == "error"
    text = 'all pods in a single pod group should have the same .spec.schedulerName set, got: "b" and "podium"'
    assert [message(member.decision) for member in decision.members] == [text, text]
    assert all(isinstance(member.decision, Failed) for member in decision.members)


def test_the_condition_states_the_decision_on_the_group() -> None:
    group = pod_group("gang", min_count=3, metadata={"generation": 4})
    fits, does_not = Bench(members(3), node("n1"), group=group), Bench(members(3, cpu="9"), node("n1"), group=group)
    good, bad = fits.decide().condition(group), does_not.decide().condition(group)
    assert good is not None
    assert (good.type, good.status, good.reason, good.message, good.observed_generation) == (
        "PodGroupScheduled", "True", "Scheduled", "", 4,
    )  # fmt: skip
    assert bad is not None
    assert (bad.status, bad.reason, bad.message) == ("False", "Unschedulable", "pod group is unschedulable")
    scheduled = pod_group("gang", status={"conditions": [{"type": "PodGroupScheduled", "status": "True"}]})
    assert does_not.decide().condition(scheduled) is None
    assert fits.decide().condition(scheduled) is not None


# ---------------------------------------------------------------- topology

TOPOLOGY = f"{GATES},TopologyAwareWorkloadScheduling=true"
RACKS = pod_group("gang", min_count=2, topology="rack")


def rack(name: str, which: str, cpu: str = "1") -> Node:
    return node(name, cpu=cpu, labels={"rack": which})


def test_a_group_with_a_topology_stays_in_one_domain() -> None:
    nodes = [rack("a1", "a"), rack("b1", "b"), rack("b2", "b")]
    bench = Bench(members(2), *nodes, group=RACKS, gates=TOPOLOGY)
    assert sorted(str(each) for each in nodes_of(bench.decide())) == ["b1", "b2"]


def test_the_fuller_domain_is_taken_where_several_do() -> None:
    nodes = [rack("a1", "a", cpu="4"), rack("b1", "b", cpu="2")]
    assert nodes_of(Bench(members(2), *nodes, group=RACKS, gates=TOPOLOGY).decide()) == ["b1", "b1"]


def test_without_a_topology_all_nodes_are_one_placement() -> None:
    nodes = [rack("a1", "a"), rack("b1", "b")]
    decision = Bench(members(2), *nodes, gates=TOPOLOGY).decide()
    assert sorted(str(each) for each in nodes_of(decision)) == ["a1", "b1"]


def test_the_first_domain_is_reported_if_the_group_fits_in_none() -> None:
    decision = Bench(members(2), rack("a1", "a"), rack("b1", "b"), group=RACKS, gates=TOPOLOGY).decide()
    assert decision.status is not None
    text = "0/2 placements are available, first placement status: pod group is unschedulable"
    assert decision.status.message == text
    rejected = decision.members[1].decision
    limited = "preemption: not eligible due to placement-based pod group scheduling limitation"
    assert message(rejected) == f"0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, {limited}"


def test_a_group_has_no_placement_without_labelled_nodes() -> None:
    decision = Bench(members(2, nominated="n1"), node("n1"), group=RACKS, gates=TOPOLOGY).decide()
    assert decision.result == "unschedulable"
    for member in decision.members:
        assert isinstance(member.decision, RejectedWithGroup)
        assert message(member.decision) == "no feasible placements found"
        assert member.decision.nominated_node_name is None


# ---------------------------------------------------------------- preemption for the group

AS_GROUPS = f"{GATES},WorkloadAwarePreemption=true"
IMPORTANT = pod_group("gang", min_count=2, spec={"priority": 5})


def test_room_is_made_for_the_group_as_a_whole() -> None:
    victims = [pod(f"v{at}", cpu="1", node=f"n{at}", priority=at) for at in range(3)]
    nodes = [node(f"n{at}", cpu="1") for at in range(3)]
    decision = Bench(members(2, priority=9), *nodes, *victims, group=IMPORTANT, gates=AS_GROUPS).decide()
    assert decision.result == "waiting_on_preemption"
    assert [victim.metadata.name for victim in decision.victims] == ["v1", "v0"]
    assert decision.evictions == []
    limited = "preemption: not eligible due to workload aware preemption enabled"
    assert message(decision.members[0].decision).endswith(limited)
    assert decision.status is not None
    assert decision.status.message == "pod group is unschedulable"


def test_the_groups_own_priority_counts_and_not_that_of_its_pods() -> None:
    victim = pod("victim", cpu="1", node="n1", priority=5)
    decision = Bench(members(2, priority=9), node("n1", cpu="2"), victim, group=IMPORTANT, gates=AS_GROUPS).decide()
    assert decision.status is not None
    text = "pod group is unschedulable, No preemption victims found for incoming preemptor"
    assert decision.status.message == text


def test_preemption_that_does_not_help_says_why() -> None:
    victim = pod("victim", cpu="1", node="n1", priority=0)
    decision = Bench(members(2), node("n1", cpu="1"), victim, group=IMPORTANT, gates=AS_GROUPS).decide()
    assert decision.status is not None
    assert decision.status.message == "pod group is unschedulable, pod group is unschedulable"
    assert decision.victims == ()


def test_a_group_that_is_gone_cannot_preempt() -> None:
    bench = Bench(members(2, cpu="9"), node("n1"), group=pod_group("gang"), gates=AS_GROUPS)
    bench.has_group = False
    assert bench.decide().result == "error"


def test_a_group_with_a_topology_cannot_preempt() -> None:
    group = pod_group("gang", min_count=2, topology="rack")
    decision = Bench(members(2), rack("a1", "a"), group=group, gates=f"{AS_GROUPS},{TOPOLOGY}").decide()
    assert decision.status is not None
    text = "workload aware preemption is not supported for pod groups with scheduling constraints"
    assert decision.status.message.endswith(text)
