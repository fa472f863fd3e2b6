from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from podium.cluster import Snapshot
from podium.framework.contract.group_post_filter import GroupHelp, UnscheduledGroup
from podium.framework.contract.status import unschedulable
from podium.framework.contract.steps import Steps, run_unasked
from podium.framework.cycle.group_dry_runs import ForkedGroupDryRun
from podium.framework.preemption.candidates import Budgets, Importance
from podium.framework.preemption.pod_groups import Unit, preempt_for_loose_group, units_of
from podium.objects.core import Pod
from podium.objects.pod_groups import PodGroup
from podium.objects.workloads import PodDisruptionBudget
from tests.builders import node, pod, pod_group, snapshot_of

IMPORTANCE = Importance(0.0)
WHOLE = pod_group("whole", spec={"disruptionMode": "PodGroup", "priority": 3})
SINGLE = pod_group("single", spec={"priority": 3})
GROUPS = {group.key: group for group in (WHOLE, SINGLE)}


def running(name: str, on: str = "n1", second: int = 0, **fields: Any) -> Pod:
    return pod(name, node=on, cpu="1", status={"startTime": f"2026-01-01T00:00:{second:02}Z"}, **fields)


def cluster(*pods: Pod) -> Snapshot:
    return snapshot_of(node("n1"), node("n2"), *pods)


def names(pods: Iterable[Pod]) -> list[str]:
    return [pod.metadata.name for pod in pods]


def units(*pods: Pod, by_group: bool = False) -> list[Unit]:
    snapshot = cluster(*pods)
    return list(units_of(snapshot, snapshot.order.tolist(), GROUPS.get, IMPORTANCE, by_group=by_group))


def needs(count: int) -> Callable[[Snapshot], Steps[ForkedGroupDryRun]]:
    """A group that fits if no more than this many pods are left."""

    def simulate(snapshot: Snapshot) -> Steps[ForkedGroupDryRun]:
        yield from ()
        status = None if snapshot.pod_count.sum() <= count else unschedulable("too many pods")
        return ForkedGroupDryRun(status, snapshot, ())

    return simulate


def preempt(
    *pods: Pod,
    pods_left: int,
    group: PodGroup | None = None,
    waiting: Pod | None = None,
    budgets: Iterable[PodDisruptionBudget] = (),
    is_protected: Callable[[Pod], bool] = lambda _: False,
) -> list[str] | str:
    """The victims, or why there are none."""
    help_found = run_unasked(
        preempt_for_loose_group(
            UnscheduledGroup(
                group or pod_group("gang", spec={"priority": 9}),
                [waiting or pod("waiting", group="gang")],
                (),
                cluster(*pods),
                needs(pods_left),
            ),
            GROUPS.get,
            Budgets(budgets),
            IMPORTANCE,
            is_protected,
        )
    )
    return names(help_found.victims) if isinstance(help_found, GroupHelp) else help_found.message


def test_only_groups_that_say_so_are_disrupted_as_a_whole() -> None:
    unit_list = units(
        running("a", group="whole"),
        running("b", group="whole", on="n2"),
        running("c", group="single", priority=1),
        running("d", group="unknown"),
        running("e", priority=2),
    )
    assert [(names(unit.pods), unit.priority) for unit in unit_list] == [
        (["a", "b"], 3),
        (["c"], 1),
        (["d"], 0),
        (["e"], 2),
    ]


def test_pods_of_groups_have_their_groups_priority_and_units_start_with_their_first_pod() -> None:
    found = units(
        running("a", group="whole", second=5, priority=1),
        running("b", group="whole", on="n2", second=2),
        running("c", group="single", priority=1),
        running("d", group="unknown", priority=7),
        by_group=True,
    )
    assert [(unit.priority, unit.started_s % 60) for unit in found] == [(3, 2.0), (3, 0.0), (7, 0.0)]


def test_the_most_important_unit_comes_first() -> None:
    unit_list = units(
        running("late", second=9),
        running("early", second=1),
        running("grouped", group="single", second=9),
        running("high", priority=1),
        running("w1", group="whole"),
        running("w2", group="whole", on="n2"),
    )
    ranked = sorted(unit_list, key=lambda unit: unit.rank)
    assert [names(unit.pods) for unit in ranked] == [["w1", "w2"], ["high"], ["grouped"], ["early"], ["late"]]


def test_the_least_important_pods_go() -> None:
    pods = [running("low"), running("mid", priority=1), running("high", priority=2)]
    assert preempt(*pods, pods_left=2) == ["low"]
    assert preempt(*pods, pods_left=0) == ["high", "mid", "low"]


def test_pods_of_one_unit_go_together() -> None:
    pods = [running("a", group="whole"), running("b", group="whole", on="n2"), running("high", priority=5)]
    assert preempt(*pods, pods_left=2) == ["a", "b"]


def test_only_pods_of_lower_priority_than_the_group_may_go() -> None:
    peer = running("peer", priority=9)
    assert preempt(peer, pods_left=0) == "No preemption victims found for incoming preemptor"
    assert preempt(running("low"), peer, pods_left=0) == "too many pods"


def test_a_group_whose_pods_never_preempt_does_not() -> None:
    waiting = pod(group="gang", spec={"preemptionPolicy": "Never"})
    assert preempt(running("low"), pods_left=0, waiting=waiting) == "not eligible due to preemptionPolicy=Never."


def test_pods_of_a_budget_are_spared_first() -> None:
    import msgspec

    budget = msgspec.convert(
        {
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "db"}}},
            "status": {"disruptionsAllowed": 0},
        },
        PodDisruptionBudget,
    )
    covered = running("covered", labels={"app": "db"})
    assert preempt(covered, running("high", priority=1), pods_left=1, budgets=[budget]) == ["high"]
    assert preempt(covered, running("high", priority=1), pods_left=1) == ["covered"]


def test_protected_pods_protect_their_unit() -> None:
    pods = [running("a", group="whole"), running("b", group="whole", on="n2"), running("low")]
    assert preempt(*pods, pods_left=2, is_protected=lambda candidate: candidate.metadata.name == "b") == ["low"]
