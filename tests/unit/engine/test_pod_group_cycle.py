"""The cycle of a group that is one entry of the queue: each row of its two tables of outcomes."""

from __future__ import annotations

from typing import Any

import pytest

from podium.config import NEWEST
from podium.engine.group_decisions import RejectedWithGroup
from podium.engine.pod_group_cycle import PodGroupCycle
from podium.framework.contract.bind import PermitPlugin, ReservePlugin
from podium.framework.contract.filter import FilterPlugin, PreFilterPlugin
from podium.framework.contract.status import Code, Status, unresolvable, unschedulable
from podium.framework.cycle.schedule import DoesNotFit, Failed, Suggested
from podium.framework.profile.observer import Observer
from podium.objects.pod_groups import PodGroup
from tests.builders import ZONE_LABEL, node, pod, pod_group
from tests.unit.engine.group_bench import GroupBench, members, message, nodes_of

TOPOLOGY = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true"
NO_VICTIMS = "pod group preemption: No preemption victims found for incoming preemptor"


class Bench(GroupBench):
    release = NEWEST
    cycle = PodGroupCycle
    gates = "GenericWorkload=true"


class NoConstructor:
    def __init__(self, args: Any, handle: Any) -> None:
        pass


class Breaks(NoConstructor, FilterPlugin):
    """Fails for the pod m1."""

    def filter(self, state: Any, pod: Any, node: Any) -> None:
        if pod.metadata.name == "m1":
            raise RuntimeError("broken")


class RefusesReserve(NoConstructor, ReservePlugin):
    """Rejects the pod m0 at Reserve."""

    def reserve(self, state: Any, pod: Any, node_name: str) -> Status | None:
        return unschedulable("not here") if pod.metadata.name == "m0" else None

    def unreserve(self, state: Any, pod: Any, node_name: str) -> None:
        return None


class CountsPermits(NoConstructor, PermitPlugin):
    """Counts how often it is asked."""

    asked = 0

    def permit(self, state: Any, pod: Any, node_name: str) -> tuple[Status | None, float]:
        type(self).asked += 1
        return None, 0.0


class Narrow(NoConstructor, PreFilterPlugin):
    """Rejects every pod before it is filtered."""

    def pre_filter(self, state: Any, pod: Any, snapshot: Any) -> Any:
        return None, unresolvable("never")


def gang(min_count: int, priority: int = 0, **spec: Any) -> PodGroup:
    return pod_group("gang", min_count=min_count, spec={"priority": priority, **spec})


def messages(decision: Any) -> list[str]:
    return [message(member.decision) for member in decision.members]


def nominations(decision: Any) -> list[str | None]:
    """The node that each pod is nominated to; None if its nomination stays."""
    found: list[str | None] = []
    for member in decision.members:
        if isinstance(member.decision, DoesNotFit):
            result = member.decision.post_filter
            found.append(None if result is None else result.nominated_node_name)
        else:
            found.append(member.decision.nominated_node_name)
    return found


# ---------------------------------------------------------------- the group as a whole


def test_a_gang_that_fits_gets_a_node_for_every_pod_and_permit_is_not_asked_yet() -> None:
    CountsPermits.asked = 0
    bench = Bench(members(3), node("n1", cpu="2"), node("n2", cpu="2"), plugins=[CountsPermits])
    decision = bench.decide()
    assert decision.status is None
    assert None not in nodes_of(decision)
    assert CountsPermits.asked == 0
    condition = decision.condition(bench.group)
    assert condition is not None
    assert (condition.type, condition.status, condition.reason, condition.message) == (
        "PodGroupInitiallyScheduled", "True", "Scheduled", "",
    )  # fmt: skip


def test_pods_beyond_the_minimum_are_tried_too_and_left_over() -> None:
    decision = Bench(members(4), node("n1", cpu="2"), group=gang(2)).decide()
    assert decision.status is None
    assert nodes_of(decision) == ["n1", "n1", None, None]
    assert messages(decision)[2] == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_basic_group_needs_one_pod() -> None:
    decision = Bench(members(2), node("n1", cpu="1"), group=pod_group("gang")).decide()
    assert decision.status is None
    decision = Bench(members(2), node("n1", cpu="0"), group=pod_group("gang")).decide()
    assert decision.status is not None
    assert decision.status.message == f"minCount (1) cannot be satisfied: 0 scheduled, 0 remaining, {NO_VICTIMS}"


def test_nobody_is_tried_if_too_few_pods_are_there() -> None:
    bench = Bench(members(2), node("n1"), group=gang(3))
    decision = bench.decide()
    assert decision.status is not None
    # No pod has reached DynamicResources in this cycle, which that plugin takes for an error.
    assert decision.status.message == 'error in "DynamicResources" PodGroupPostFilter plugins: not found'
    assert decision.status_before_help is not None
    assert decision.status_before_help.message == (
        "pod group is unschedulable, minCount (3) cannot be satisfied: 0 scheduled, 2 remaining"
    )
    assert decision.status_before_help.code is Code.UNSCHEDULABLE


def test_the_attempt_ends_with_the_first_pod_that_makes_the_gang_impossible() -> None:
    decision = Bench(members(3, cpu="9"), node("n1"), group=gang(3)).decide()
    assert decision.status is not None
    text = "minCount (3) cannot be satisfied: 0 scheduled, 2 remaining"
    assert decision.status.message == f"{text}, {NO_VICTIMS}"
    assert messages(decision) == ["0/1 nodes are available: 1 Insufficient cpu.", text, text]
    assert [type(member.decision) for member in decision.members] == [DoesNotFit, RejectedWithGroup, RejectedWithGroup]
    assert decision.result == "unschedulable"


def test_running_pods_of_the_gang_count() -> None:
    running = pod("running", group="gang", node="n1", cpu="1")
    decision = Bench(members(1), node("n1", cpu="2"), running, group=gang(2)).decide()
    assert decision.status is None


def test_a_group_that_is_complete_without_the_waiting_pods_is_unschedulable_if_none_fits() -> None:
    running = pod("running", group="gang", node="n1", cpu="2")
    decision = Bench(members(1), node("n1", cpu="2"), running, group=gang(1)).decide()
    assert decision.status is not None
    assert decision.status.message == f"pod group is unschedulable, {NO_VICTIMS}"


def test_an_error_ends_the_attempt_for_all() -> None:
    decision = Bench(members(3), node("n1"), plugins=[Breaks], group=gang(1)).decide()
    assert decision.status is not None
    assert decision.result == "error"
    first, second, third = messages(decision)
    assert first == third == decision.status.message == f"failed to schedule other pod from a pod group: {second}"
    assert second == 'running "Breaks" filter plugin: RuntimeError: broken'
    assert nominations(decision) == ["", "", ""]


def test_pods_of_a_group_see_each_others_affinity() -> None:
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    }
    pods = members(2, labels={"app": "x"}, spec={"affinity": apart})
    labels = {"kubernetes.io/hostname": "n1"}
    assert Bench(pods, node("n1", labels=labels), group=gang(2)).decide().status is not None
    other = {"kubernetes.io/hostname": "n2"}
    both = Bench(pods, node("n1", labels=labels), node("n2", labels=other), group=gang(2)).decide()
    assert sorted(filter(None, nodes_of(both))) == ["n1", "n2"]


def test_nothing_of_the_simulation_remains() -> None:
    bench = Bench(members(2, nominated="n1"), node("n1", cpu="1"), group=gang(2))
    for waiting_pod in bench.pods:
        bench.nominator.add(waiting_pod)
    bench.decide()
    assert bench.cache.statistics()["assumed_pods"] == 0
    assert bench.cache.snapshot().pod_count.sum() == 0
    assert bench.state is not None
    assert bench.state.scheduled_count == 0
    assert [bench.nominator.node_of(each.uid) for each in bench.pods] == ["n1", "n1"]


# ---------------------------------------------------------------- what is not tried at all


def test_a_group_whose_object_is_gone_fails_without_a_condition() -> None:
    bench = Bench(members(2), node("n1"))
    bench.has_group = False
    decision = bench.decide()
    assert messages(decision) == ["pod group object not found for pod group podgroup/default/gang"] * 2
    assert decision.result == "error"
    assert decision.condition(bench.group) is None


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"scheduler": "other"},
            'all pods in a single pod group should have the same .spec.schedulerName set, got: "other" and "podium"',
        ),
        (
            {"priority": 5},
            "all pods in a single pod group should have the same priority as the pod group's priority, got 5 and 0",
        ),
        (
            {"spec": {"preemptionPolicy": "Never"}},
            "all pods in a single pod group should have the same preemption policy, got Never and PreemptLowerPriority",
        ),
    ],
)
@pytest.mark.parametrize("node_name", ["", "n1"], ids=["waiting", "running"])
def test_pods_that_contradict_their_group_fail_with_all_others(
    fields: dict[str, Any], problem: str, node_name: str
) -> None:
    odd = pod("odd", group="gang", **fields, **({"node": node_name} if node_name else {}))
    waiting, running = ([], [odd]) if node_name else ([odd], [])
    bench = Bench([*members(1), *waiting], node("n1"), *running, group=gang(1))
    decision = bench.decide()
    assert set(messages(decision)) == {problem}
    assert {type(member.decision) for member in decision.members} == {Failed}
    condition = decision.condition(bench.group)
    assert condition is not None
    assert (condition.status, condition.reason, condition.message) == ("False", "SchedulerError", problem)


def test_pods_with_a_priority_need_it_in_their_group() -> None:
    assert Bench(members(2, priority=5), node("n1"), group=gang(2)).decide().result == "error"
    assert Bench(members(2, priority=5), node("n1"), group=gang(2, priority=5)).decide().result == "scheduled"


# ---------------------------------------------------------------- what becomes of each pod


def test_a_pod_that_would_fit_is_rejected_with_its_group_and_loses_its_nomination() -> None:
    decision = Bench(members(2), node("n1", cpu="1"), group=gang(2)).decide()
    group_text = f"minCount (2) cannot be satisfied: 1 scheduled, 0 remaining, {NO_VICTIMS}"
    assert messages(decision) == [
        f"pod group is unschedulable, {group_text}",
        "0/1 nodes are available: 1 Insufficient cpu.",
    ]
    assert nominations(decision) == ["", None], "the pod that does not fit keeps its nomination"


def test_a_pod_that_reserve_rejects_loses_its_nomination() -> None:
    decision = Bench(members(2), node("n1"), plugins=[RefusesReserve], group=gang(2)).decide()
    assert isinstance(decision.members[0].decision, DoesNotFit)
    assert nominations(decision)[0] == ""


def test_no_victim_is_evicted_for_a_single_pod_of_a_group() -> None:
    low = pod("low", node="n1", cpu="2")
    decision = Bench(members(2, priority=9), node("n1", cpu="2"), low, group=gang(2, priority=9)).decide()
    assert decision.evictions == ()
    assert "preemption:" not in messages(decision)[0]


# ---------------------------------------------------------------- preemption


def test_room_is_made_for_a_gang_over_two_nodes() -> None:
    singles = [pod(f"low-{name}", node=name, cpu="1") for name in ("n1", "n2")]
    bench = Bench(members(2, priority=9), node("n1", cpu="1"), node("n2", cpu="1"), *singles, group=gang(2, priority=9))
    decision = bench.decide()
    assert decision.result == "waiting_on_preemption"
    assert {victim.key for victim in decision.victims} == {"default/low-n1", "default/low-n2"}
    assert sorted(filter(None, nominations(decision))) == ["n1", "n2"]
    text = "minCount (2) cannot be satisfied: 0 scheduled, 1 remaining"
    help_text = "pod group preemption: found a placement for podgroup, preempting 2 victims"
    assert decision.status is not None
    assert decision.status.message == f"{text}, {help_text}"
    assert messages(decision) == ["0/2 nodes are available: 2 Insufficient cpu.", text]
    assert decision.status_before_help is not None
    assert decision.status_before_help.message == text
    assert decision.condition(bench.group) is not None


def test_a_pod_that_fits_waits_with_the_groups_status_and_its_nomination() -> None:
    low = pod("low", node="n1", cpu="1")
    decision = Bench(members(2, priority=9), node("n1", cpu="2"), low, group=gang(2, priority=9)).decide()
    assert decision.status is not None
    assert messages(decision)[0] == decision.status.message
    assert nominations(decision) == ["n1", "n1"]


def test_a_victim_stays_if_the_gang_fits_beside_it_on_the_nodes_of_the_simulation() -> None:
    # Without the victims both pods go to n1, and stay there; the one on n2 need not leave.
    pods = members(2, priority=9)
    big, small = pod("big", node="n1", cpu="4"), pod("small", node="n2", cpu="1")
    decision = Bench(pods, node("n1", cpu="4"), node("n2", cpu="1"), big, small, group=gang(2, priority=9)).decide()
    assert [victim.metadata.name for victim in decision.victims] == ["big"]
    assert nominations(decision) == ["n1", "n1"]


def test_pods_that_never_preempt_do_not() -> None:
    pods = members(2, priority=9, spec={"preemptionPolicy": "Never"})
    low = pod("low", node="n1", cpu="2")
    decision = Bench(pods, node("n1", cpu="2"), low, group=gang(2, priority=9)).decide()
    assert decision.status is not None
    assert decision.status.message == (
        "minCount (2) cannot be satisfied: 0 scheduled, 1 remaining, deallocation and deletion of ResourceClaims "
        "completed, pod group preemption: not eligible due to preemptionPolicy=Never."
    )


def test_a_group_waits_for_victims_that_are_terminating_and_keeps_its_nominations() -> None:
    leaving = pod(
        "leaving",
        node="n1",
        cpu="2",
        metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"},
        status={"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]},
    )
    pods = [
        pod("m0", group="gang", cpu="1", priority=9, nominated="n1"),
        pod("m1", group="gang", cpu="1", priority=9),
    ]
    decision = Bench(pods, node("n1", cpu="2"), leaving, group=gang(2, priority=9)).decide()
    assert decision.result == "waiting_on_preemption"
    assert decision.victims == ()
    assert nominations(decision) == ["n1", ""]
    assert decision.status is not None
    assert decision.status.message.endswith("pod group preemption: ongoing preemption on nominated nodes")


def test_preemption_that_does_not_help_repeats_the_status() -> None:
    low = pod("low", node="n1", cpu="1")
    decision = Bench(members(2, cpu="3", priority=9), node("n1", cpu="4"), low, group=gang(2, priority=9)).decide()
    text = "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
    assert decision.status is not None
    assert decision.status.message == (
        f"{text}, deallocation and deletion of ResourceClaims completed, pod group preemption: {text}"
    )


def test_no_victim_is_chosen_if_no_pod_has_reached_the_devices() -> None:
    low = pod("low", node="n1", cpu="2")
    decision = Bench(
        members(2, priority=9), node("n1", cpu="2"), low, plugins=[Narrow], group=gang(2, priority=9)
    ).decide()
    assert decision.victims == ()


# ---------------------------------------------------------------- topology


def zones(**cpus: str) -> list[Any]:
    return [node(name, cpu=cpu, labels={ZONE_LABEL: name}) for name, cpu in cpus.items()]


def test_a_group_with_a_topology_stays_in_one_domain() -> None:
    group = pod_group("gang", min_count=2, topology=ZONE_LABEL)
    decision = Bench(members(2), *zones(n1="1", n2="2"), group=group, gates=TOPOLOGY).decide()
    assert nodes_of(decision) == ["n2", "n2"]


def test_placements_are_counted_and_each_that_is_tried_is_measured() -> None:
    class Measures(Observer):
        def __init__(self) -> None:
            self.generated: list[int] = []
            self.feasible: list[bool] = []

        def count_placements(self, profile: str, count: int) -> None:
            self.generated.append(count)

        def observe_placement(self, profile: str, seconds: float, *, is_feasible: bool) -> None:
            self.feasible.append(is_feasible)

    group = pod_group("gang", min_count=2, topology=ZONE_LABEL)
    bench = Bench(members(2), *zones(n1="1", n2="2"), group=group, gates=TOPOLOGY)
    bench.framework.observer = measures = Measures()
    bench.decide()
    assert measures.generated == [2]
    assert sorted(measures.feasible) == [False, True]


def test_a_group_that_fits_in_no_domain_says_why_the_first_does_not_help() -> None:
    group = pod_group("gang", min_count=2, topology=ZONE_LABEL)
    decision = Bench(members(2), *zones(n1="1", n2="1"), group=group, gates=TOPOLOGY).decide()
    assert decision.status is not None
    assert decision.status.message == (
        "pod group is unschedulable, 0/2 placements are available, first placement status: "
        f"minCount (2) cannot be satisfied: 1 scheduled, 0 remaining, {NO_VICTIMS}"
    )


def test_room_is_made_for_a_group_with_a_topology_too() -> None:
    group = pod_group("gang", min_count=2, topology=ZONE_LABEL, spec={"priority": 9})
    low = pod("low", node="n2", cpu="2")
    bench = Bench(members(2, priority=9), *zones(n1="1", n2="2"), low, group=group, gates=TOPOLOGY)
    decision = bench.decide()
    assert [victim.key for victim in decision.victims] == ["default/low"]
    assert nominations(decision) == ["n2", "n2"]


def test_a_decision_places_the_pods_of_a_gang_only_if_it_is_scheduled() -> None:
    decision = Bench(members(2), node("n1", cpu="1"), group=gang(2)).decide()
    assert not any(isinstance(member.decision, Suggested) for member in decision.members)


class TakesLong(FilterPlugin):
    """Takes a second for each node."""

    def __init__(self, args: Any, handle: Any) -> None:
        self.handle = handle

    def filter(self, state: Any, pod: Any, node: Any) -> None:
        self.handle.clock.advance(1.0)


def test_the_attempt_at_each_pod_has_a_time_of_its_own() -> None:
    bench = Bench(members(3), node("n1", cpu="4"), group=gang(3), plugins=[TakesLong])
    first, second, third = (member.cycle.seconds for member in bench.decide().members)
    assert first == 1.0
    # Of a known spec, the second pod has the nodes filtered for all that follow.
    assert second is not None
    assert third is not None
    assert max(second, third) < 3.0
