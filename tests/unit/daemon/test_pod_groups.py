from __future__ import annotations

from dataclasses import replace
from typing import Any

import anyio
import pytest

from podium.config import LOOSE_GROUPS, PodGroupRules
from podium.config.args import DefaultPreemptionArgs, NodeResourcesFitArgs
from podium.framework.contract.bind import ReservePlugin
from podium.framework.contract.status import Status
from podium.objects.api_errors import InternalError
from podium.objects.core import Pod
from podium.objects.resource_types import POD_DISRUPTION_BUDGETS
from podium.plugins.default_preemption import DefaultPreemption
from podium.plugins.gang_scheduling import GangScheduling
from podium.plugins.node_resources_fit import NodeResourcesFit
from podium.queues import QueueState
from tests.builders import node, pod, pod_group
from tests.unit.daemon.loop_bench import LoopBench, settle, with_changes
from tests.unit.framework.profiles import Built
from tests.unit.framework.rooms import budget
from tests.virtual_time import VIRTUAL_TIME

pytestmark = pytest.mark.anyio

GANG = pod_group("gang", min_count=3, metadata={"generation": 1})
A, B, C = (pod(name, group="gang", cpu="1") for name in "abc")
SMALL, BIG = node("n1", cpu="2"), node("n2", cpu="2")
KEYS = {pod.key for pod in (A, B, C)}
TOO_FEW = "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining, "
"""Without plugins at PodGroupPostFilter, whose text would follow."""


class Fit(NodeResourcesFit):
    def __init__(self, args: Any, handle: Any) -> None:
        super().__init__(NodeResourcesFitArgs(), handle)


class Preempts(DefaultPreemption):
    def __init__(self, args: Any, handle: Any) -> None:
        super().__init__(DefaultPreemptionArgs(), handle)


@pytest.fixture(scope="module")
def anyio_backend() -> object:
    return VIRTUAL_TIME


def gang_bench(*plugins: type[Any], **rules: bool) -> LoopBench:
    return LoopBench(Fit, *plugins, GangScheduling, rules=replace(PodGroupRules(), **rules))


def group_conditions(bench: LoopBench) -> list[tuple[str, str, str]]:
    """Status, reason and message of each condition that was written to a group."""
    conditions = [
        request.body["status"]["conditions"][0] for request in bench.requests_sent("PATCH", "podgroups/gang/status")
    ]
    return [(condition["status"], condition["reason"], condition["message"]) for condition in conditions]


def bound_keys(bench: LoopBench) -> set[str]:
    return {f"default/{name}" for name, _ in bench.bindings}


async def test_a_gang_is_bound_as_soon_as_it_is_complete_and_fits() -> None:
    bench = gang_bench()
    bench.put(SMALL, BIG, GANG)
    async with bench.running():
        bench.put(A, B)
        await settle()
        assert bench.bindings == []
        assert bench.place(A) is bench.place(B) is QueueState.GATED
        bench.put(C)
        await settle()
        assert bound_keys(bench) == KEYS
    # All of them were let through before the first binding cycle began.
    assert all("/podgroups/" in request.path for request in bench.requests_sent("PATCH"))
    assert group_conditions(bench) == [("True", "Scheduled", "")]
    assert bench.metrics.value("scheduler_podgroup_schedule_attempts_total", result="scheduled", profile="podium") == 1
    assert bench.metrics.value("scheduler_podgroup_scheduling_algorithm_duration_seconds") == 1


async def test_a_gang_that_gathers_costs_one_question_for_each_of_its_pods() -> None:
    questions: list[str] = []

    class Asked(GangScheduling):
        name = "GangScheduling"

        def pre_enqueue(self, pod: Pod) -> Status | None:
            questions.append(pod.key)
            return super().pre_enqueue(pod)

    count = 40
    bench = LoopBench(Fit, Asked, rules=PodGroupRules())
    bench.put(node(cpu="64"), pod_group("gang", min_count=count))
    async with bench.running():
        bench.put(*(pod(f"p{at}", group="gang", cpu="1") for at in range(count)))
        await settle()
        assert len(bound_keys(bench)) == count
    # Once when it comes, and once when the last one has come.
    assert len(questions) <= 2 * count


async def test_a_gang_waits_for_its_pod_group() -> None:
    bench = gang_bench()
    bench.put(SMALL, BIG)
    async with bench.running():
        bench.put(A, B, C)
        await settle()
        assert bench.bindings == []
        bench.put(GANG)
        await settle()
        assert bound_keys(bench) == KEYS


async def test_a_gang_that_fits_in_part_is_not_bound_and_is_tried_again_as_a_whole() -> None:
    bench = gang_bench()
    bench.put(SMALL, GANG)
    async with bench.running():
        bench.put(A, B, C)
        await settle()
        assert bench.bindings == []
        assert bench.cache.statistics()["assumed_pods"] == 0
        assert group_conditions(bench) == [("False", "Unschedulable", TOO_FEW)]
        assert len(bench.conditions) == 4
        bench.put(BIG)
        await settle()
        assert bench.bindings == []
        await anyio.sleep(2.0)
        assert bound_keys(bench) == KEYS
    assert group_conditions(bench)[-1] == ("True", "Scheduled", "")


async def test_two_gangs_that_fit_only_one_at_a_time_do_not_block_each_other() -> None:
    other_group = pod_group("other", min_count=3)
    theirs = [pod(f"other-{at}", group="other", cpu="1") for at in range(3)]
    bench = gang_bench()
    bench.put(SMALL, node("n2", cpu="1"), GANG, other_group)
    async with bench.running():
        for mine, rival in zip((A, B, C), theirs, strict=True):
            bench.put(mine, rival)
        await settle()
        assert len(bench.bindings) == 3
        assert bound_keys(bench) in (KEYS, {rival.key for rival in theirs})


async def test_pods_without_a_group_are_scheduled_as_ever() -> None:
    bench = gang_bench()
    bench.put(SMALL, GANG)
    async with bench.running():
        bench.put(pod("alone"), A)
        await settle()
        assert bound_keys(bench) == {"default/alone"}


async def test_pods_that_are_being_deleted_are_left_out() -> None:
    bench = gang_bench()
    bench.put(SMALL, pod_group("gang"))
    async with bench.running():
        bench.put(A, with_changes(B, terminating=True))
        await settle()
        assert bound_keys(bench) == {A.key}


class Quarrels(Built, ReservePlugin):
    """Raises for one pod."""

    def reserve(self, state: Any, pod: Pod, node_name: str) -> Status | None:
        if pod.metadata.name == "b":
            raise ValueError("broken")
        return None

    def unreserve(self, state: Any, pod: Pod, node_name: str) -> None:
        """Nothing is reserved."""


async def test_an_error_is_written_to_every_pod_and_to_the_group() -> None:
    bench = gang_bench(Quarrels)
    bench.put(SMALL, BIG, GANG)
    async with bench.running():
        bench.put(A, B, C)
        await settle()
        assert bench.bindings == []
        ((status, reason, message),) = group_conditions(bench)
    assert (status, reason) == ("False", "SchedulerError")
    assert message.startswith("failed to schedule other pod from a pod group: ")
    assert bench.attempts("error") == 3


async def test_an_unchanged_condition_is_not_written_again() -> None:
    bench = gang_bench()
    condition = {
        "type": "PodGroupInitiallyScheduled", "status": "False", "reason": "Unschedulable",
        "message": TOO_FEW, "observedGeneration": 1,
    }  # fmt: skip
    bench.put(SMALL, pod_group("gang", min_count=3, metadata={"generation": 1}, status={"conditions": [condition]}))
    async with bench.running():
        bench.put(A, B, C)
        await settle()
        assert group_conditions(bench) == []
        assert bench.attempts("unschedulable") == 3


async def test_a_write_whose_answer_was_lost_is_repeated() -> None:
    bench = gang_bench()
    losses = iter([True])

    def answer(request: Any) -> Any:
        if "podgroups" in request.path and next(losses, False):
            raise InternalError("no answer")
        return {}

    bench.wire.answer = answer
    bench.put(SMALL, BIG, GANG)
    async with bench.running():
        bench.put(A, B, C)
        await settle()
    assert group_conditions(bench) == [("True", "Scheduled", "")] * 2


async def test_room_is_made_for_single_pods_of_a_group_that_wait_one_by_one() -> None:
    bench = LoopBench(Fit, Preempts, GangScheduling, rules=LOOSE_GROUPS)
    victim = pod("victim", cpu="1", node="n1")
    bench.put(SMALL, victim, pod_group("gang", min_count=2))
    async with bench.running():
        bench.put(*(pod(name, group="gang", cpu="1", priority=9) for name in "ab"))
        await settle()
        assert [request.path.rpartition("/")[2] for request in bench.requests_sent("DELETE")] == ["victim"]
        assert group_conditions(bench)[0][2].endswith("pod group is waiting for preemption to complete")
        assert bench.queue.nominator.node_of("uid-a") == bench.queue.nominator.node_of("uid-b") == "n1"


async def test_room_is_made_for_a_group_as_a_whole() -> None:
    bench = gang_bench(Preempts)
    victim = pod("victim", cpu="1", node="n1")
    bench.put(SMALL, victim, pod_group("gang", min_count=2, spec={"priority": 9}))
    async with bench.running():
        bench.put(*(pod(name, group="gang", cpu="1", priority=9) for name in "ab"))
        await settle()
        assert [request.path.rpartition("/")[2] for request in bench.requests_sent("DELETE")] == ["victim"]
        assert bench.queue.nominator.node_of("uid-a") == bench.queue.nominator.node_of("uid-b") == "n1"
        assert bench.place(A) is QueueState.GATED, "its victim still runs"
        assert group_conditions(bench)[0][2].endswith(
            "pod group preemption: found a placement for podgroup, preempting 1 victims"
        )
        bench.pods.on_delete(victim)
        bench.known.pop(victim.key, None)
        await anyio.sleep(3.0)
        assert bound_keys(bench) == {"default/a", "default/b"}
    assert ("Preempted", "Preempted by podgroup uid-gang on node cluster") in bench.recorder.notes
    messages = [
        condition["message"]
        for request in bench.requests_sent("PATCH", "pods/victim/status")
        for condition in request.body["status"]["conditions"]
    ]
    assert messages == ["podium: preempting to accommodate a higher priority podgroup"]


async def test_preemption_for_a_group_is_measured() -> None:
    bench = gang_bench(Preempts)
    bench.objects_of[POD_DISRUPTION_BUDGETS]["default/keep"] = budget("keep", 0)
    victim = pod("victim", cpu="1", node="n1", group="low", labels={"app": "db"})
    bench.put(SMALL, pod_group("low"), victim, pod_group("gang", min_count=2, spec={"priority": 9}))
    async with bench.running():
        bench.put(*(pod(name, group="gang", cpu="1", priority=9) for name in "ab"))
        await settle()
    metrics = bench.metrics
    assert metrics.values("scheduler_workload_preemption_attempts_total") == {("Success",): 1}
    assert metrics.values("scheduler_preemption_evaluation_duration_seconds") == {("podgroup", "Success"): 1}
    assert metrics.values("scheduler_preemption_execution_duration_seconds") == {("podgroup", "success"): 1}
    assert metrics.values("scheduler_preemption_workload_disruptions") == {("podgroup",): 1}
    assert metrics.values("scheduler_preemption_pdb_violations_total") == {("podgroup",): 1}
    assert metrics.value("scheduler_workload_preemption_victims") == 1
    assert metrics.value("scheduler_preemption_victims") == 0


async def test_a_group_that_must_not_preempt_counts_as_an_attempt_without_a_search() -> None:
    bench = gang_bench(Preempts)
    bench.put(SMALL, pod_group("gang", min_count=3, spec={"priority": 9}))
    async with bench.running():
        bench.put(*(pod(name, group="gang", cpu="1", priority=9, spec={"preemptionPolicy": "Never"}) for name in "abc"))
        await settle()
    assert ("Unschedulable",) in bench.metrics.values("scheduler_workload_preemption_attempts_total")
    assert bench.metrics.values("scheduler_preemption_evaluation_duration_seconds") == {}


async def test_preemption_for_a_pod_is_measured_beside_groups() -> None:
    bench = gang_bench(Preempts)
    bench.objects_of[POD_DISRUPTION_BUDGETS]["default/keep"] = budget("keep", 0)
    bench.put(SMALL, pod("victim", cpu="2", node="n1", labels={"app": "db"}))
    async with bench.running():
        bench.put(pod("urgent", cpu="2", priority=9))
        await settle()
    metrics = bench.metrics
    assert metrics.values("scheduler_preemption_evaluation_duration_seconds") == {("pod", "Success"): 1}
    assert metrics.values("scheduler_preemption_execution_duration_seconds") == {("pod", "success"): 1}
    assert metrics.values("scheduler_preemption_pdb_violations_total") == {("pod",): 1}
    assert metrics.value("scheduler_preemption_victims") == 1
    assert metrics.values("scheduler_workload_preemption_attempts_total") == {}


async def test_pods_left_over_by_a_gang_are_tried_again_at_once_and_then_back_off() -> None:
    bench = gang_bench()
    bench.put(SMALL, pod_group("gang", min_count=2))
    async with bench.running():
        bench.put(A, B, C)
        await settle()
        assert bound_keys(bench) == {A.key, B.key}
        assert bench.attempts("unschedulable") == 2, "with the gang, and once more without it"
        assert bench.place(C) is QueueState.ERROR_BACKOFF
        bench.put(BIG)
        await anyio.sleep(3.0)
        assert bound_keys(bench) == KEYS
    assert set(group_conditions(bench)) == {("True", "Scheduled", "")}


async def test_a_pod_between_has_its_turn_by_the_groups_priority() -> None:
    bench = gang_bench()
    bench.put(SMALL, pod_group("gang", min_count=2, spec={"priority": 1}))
    async with bench.running():
        bench.put(*(pod(name, group="gang", cpu="1", priority=1) for name in "ab"), pod("low", cpu="1"))
        await settle()
        assert bound_keys(bench) == {A.key, B.key}


async def test_pods_whose_group_is_deleted_wait_for_another_one() -> None:
    bench = gang_bench()
    bench.put(SMALL, BIG, GANG)
    async with bench.running():
        bench.put(A, B)
        await settle()
        bench.objects.pop(GANG.key)
        bench.group_handler.on_delete(GANG)
        bench.put(C)
        await settle()
        assert bench.place(A) is bench.place(C) is QueueState.INCOMPLETE
        bench.put(GANG)
        await settle()
        assert bound_keys(bench) == KEYS
