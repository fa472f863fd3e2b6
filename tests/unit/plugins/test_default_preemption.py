from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.cluster import Snapshot
from podium.config import RELEASES, Extender, Profile
from podium.config.args import ARGS_BY_PLUGIN, DefaultPreemptionArgs
from podium.config.types import Plugin as Enabled
from podium.config.types import PluginConfig, Plugins, PluginSet
from podium.framework.contract.cluster_event import QueueingHint
from podium.framework.contract.post_filter import PostFilterResult
from podium.framework.contract.questions import ExtenderFailed
from podium.framework.contract.status import unresolvable
from podium.framework.contract.steps import PAUSE, Steps
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.evaluation import evaluate_all
from podium.framework.cycle.extenders import Extenders
from podium.framework.cycle.schedule import Decision, DoesNotFit, Suggested, schedule
from podium.framework.cycle.schedule import attempt as attempt_asking
from podium.framework.cycle.search import Rotation
from podium.framework.profile.observer import Observer
from podium.framework.profile.runtime import Framework
from podium.objects.core import Node, Pod
from podium.objects.resource_types import POD_DISRUPTION_BUDGETS
from podium.objects.workloads import PodDisruptionBudget
from podium.plugins import IN_TREE
from podium.plugins.default_preemption import DefaultPreemption
from podium.queues import Nominator
from tests.builders import node, pod, snapshot_of
from tests.unit.framework.profiles import Nominated
from tests.unit.plugins.clusters import RecordingHandle

ENABLED = (
    "PrioritySort",
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "DynamicResources",
    "DefaultPreemption",
    "DefaultBinder",
)
NOT_HELPFUL = "Preemption is not helpful for scheduling"


def profile(args: DefaultPreemptionArgs, handle: RecordingHandle) -> Framework:
    plugins = Plugins(multi_point=PluginSet(tuple(Enabled(name) for name in ENABLED)))
    kinds = {name: ARGS_BY_PLUGIN[name]() for name in ENABLED if name in ARGS_BY_PLUGIN}
    configured = tuple(
        PluginConfig(name, plugin_args) for name, plugin_args in (kinds | {"DefaultPreemption": args}).items()
    )
    return Framework(Profile("podium", None, plugins, configured), IN_TREE, handle, Observer())


def attempt(
    incoming: Pod, snapshot: Snapshot, *, handle: RecordingHandle | None = None, nominator: Any = None, **args: int
) -> Any:
    framework = profile(DefaultPreemptionArgs(**args), handle or RecordingHandle(snapshot))
    return schedule(Cycle(framework, incoming, snapshot, nominator or Nominator({}.get)), Rotation(), 0)


def plan(*items: Node | Pod, incoming: Pod | None = None, **how: Any) -> tuple[str, list[str]]:
    """The nominated node, and the names of the victims."""
    decision = attempt(incoming or urgent(), snapshot_of(*items), **how)
    assert isinstance(decision, DoesNotFit)
    assert decision.post_filter is not None
    return decision.post_filter.nominated_node_name, [victim.metadata.name for victim in decision.post_filter.victims]


def message(*items: Node | Pod, incoming: Pod | None = None, **how: Any) -> str:
    decision = attempt(incoming or urgent(), snapshot_of(*items), **how)
    assert isinstance(decision, DoesNotFit)
    return decision.error.post_filter_message


def urgent(**fields: Any) -> Pod:
    return pod("urgent", **{"priority": 100, "cpu": "4"} | fields)


def small(name: str, on: str, cpu: str = "4", priority: int = 1, **fields: Any) -> Pod:
    return pod(name, node=on, cpu=cpu, priority=priority, **fields)


# ---------------------------------------------------------------- who may


def test_a_pod_of_the_lowest_priority_has_no_victims():
    assert message(node("n1"), small("a", "n1", priority=100)) == (
        "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_a_pod_that_never_preempts_keeps_its_nomination():
    decision = attempt(urgent(spec={"preemptionPolicy": "Never"}), snapshot_of(node("n1"), small("a", "n1")))
    assert decision.error.post_filter_message.endswith("preemption: not eligible due to preemptionPolicy=Never.")
    assert decision.post_filter is None


LEAVING = {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]}


def test_a_pod_waits_while_its_victims_leave():
    leaving = small("a", "n1", terminating=True, status=LEAVING)
    decision = attempt(
        urgent(nominated="n1"), snapshot_of(node("n1"), leaving, node("n2"), small("b", "n2", priority=0))
    )
    assert decision.error.post_filter_message.endswith(
        "preemption: not eligible due to a terminating pod on the nominated node."
    )
    assert decision.post_filter is None


@pytest.mark.parametrize(
    "on_the_node",
    [
        small("a", "n1", terminating=True),
        small("a", "n1", status=LEAVING),
        small("a", "n1", terminating=True, priority=100, status=LEAVING),
        small("a", "n1", terminating=True, status={"conditions": [{"type": "DisruptionTarget", "status": "False"}]}),
        small(
            "a",
            "n1",
            terminating=True,
            status={"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]},
        ),
    ],
)
def test_nobody_waits_for_pods_that_leave_for_other_reasons(on_the_node: Pod):
    items = (node("n1"), on_the_node, node("n2"), small("b", "n2", priority=-5))
    assert plan(*items, incoming=urgent(nominated="n1")) == ("n2", ["b"])


def test_nobody_waits_at_a_node_that_will_never_do():
    leaving = small("a", "n1", terminating=True, status=LEAVING)
    items = (node("n1", unschedulable=True), leaving, node("n2"), small("b", "n2"))
    assert plan(*items, incoming=urgent(nominated="n1")) == ("n2", ["b"])


def test_nobody_waits_at_a_node_that_is_gone():
    assert plan(node("n2"), small("b", "n2"), incoming=urgent(nominated="n1")) == ("n2", ["b"])


# ---------------------------------------------------------------- what comes of it


def test_the_plan_names_the_node_and_its_victims():
    items = (node("n1"), small("dear", "n1", priority=9), node("n2"), small("cheap", "n2"))
    decision = attempt(urgent(), snapshot_of(*items))
    text = "preemption: found a potential placement for pod on node n2, preempting 1 victims"
    assert decision.post_filter == PostFilterResult("n2", (items[3],), text)
    assert decision.error.message == f"0/2 nodes are available: 2 Insufficient cpu. {text}"


def test_in_1_36_the_node_is_not_in_the_text_but_that_no_devices_were_freed():
    items, released = (node("n1"), small("cheap", "n1")), RecordingHandle(release=RELEASES["1.36"])
    decision = attempt(urgent(), snapshot_of(*items), handle=released)
    assert decision.post_filter == PostFilterResult("n1", (items[1],))
    assert decision.error.message == "0/1 nodes are available: 1 Insufficient cpu."
    assert message(*items, incoming=urgent(spec={"preemptionPolicy": "Never"}), handle=released) == (
        "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
    )


def test_victims_that_leave_already_are_in_the_number():
    leaving = small("leaving", "n1", cpu="2", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert message(node("n1"), leaving, small("b", "n1", cpu="2")).endswith("on node n1, preempting 2 victims")


def test_of_victims_that_have_not_started_the_last_one_of_the_node_goes():
    items = (node("n1", cpu="6"), *(small(name, "n1", cpu="2") for name in "abc"))
    assert plan(*items, incoming=urgent(cpu="2")) == ("n1", ["c"])


def test_where_no_victim_helps_the_nomination_ends():
    decision = attempt(
        urgent(cpu="9", nominated="n1"), snapshot_of(node("n1"), small("a", "n1"), node("n2", unschedulable=True))
    )
    assert decision.post_filter == PostFilterResult("")
    assert decision.error.message == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable. "
        f"preemption: 0/2 nodes are available: 2 {NOT_HELPFUL}."
    )


def test_the_message_counts_what_each_dry_run_found():
    items = (
        node("n1", unschedulable=True),
        *(node("n2"), small("a", "n2", priority=100)),
        *(node("n3"), small("b", "n3", cpu="1", priority=200), small("c", "n3", cpu="3")),
    )
    assert message(*items).endswith(
        "preemption: 0/3 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming pod, "
        f"1 {NOT_HELPFUL}."
    )


def test_nodes_without_pods_of_lower_priority_are_counted_and_no_candidates():
    items = [node(f"n{index}", cpu="4") for index in range(3)]
    items += [small("a", "n0", priority=100), small("b", "n1", priority=200), small("c", "n2", priority=99)]
    assert plan(*items) == ("n2", ["c"])
    assert message(*items, incoming=urgent(priority=99)).endswith(
        "preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."
    )


def test_pods_promised_to_the_node_keep_their_room():
    promised = Nominated({"n1": [pod("promised", cpu="2", priority=500)]})
    items = (node("n1"), small("a", "n1", cpu="2"), small("b", "n1", cpu="2", priority=0))
    assert plan(*items, incoming=urgent(cpu="2"), nominator=promised) == ("n1", ["a", "b"])
    assert plan(*items, incoming=urgent(cpu="2")) == ("n1", ["b"])


def test_a_budget_sends_the_pod_elsewhere():
    budget = msgspec.convert(
        {"metadata": {"name": "b", "namespace": "default"}, "spec": {"selector": {"matchLabels": {"app": "db"}}}},
        PodDisruptionBudget,
    )
    snapshot = snapshot_of(
        node("n1"), small("db", "n1", labels={"app": "db"}), node("n2"), small("web", "n2", priority=50)
    )
    handle = RecordingHandle(snapshot, objects={POD_DISRUPTION_BUDGETS: [budget]})
    assert attempt(urgent(), snapshot, handle=handle).post_filter.nominated_node_name == "n2"
    assert attempt(urgent(), snapshot).post_filter.nominated_node_name == "n1"


def many(count: int) -> list[Node | Pod]:
    """Nodes on which victims are the cheaper, the later they come."""
    return [
        item for index in range(count) for item in (node(f"n{index}"), small(f"p{index}", f"n{index}", priority=-index))
    ]


@pytest.mark.parametrize(
    ("args", "row_total"),
    [
        ({"min_candidate_nodes_percentage": 10, "min_candidate_nodes_absolute": 1}, 4),
        ({"min_candidate_nodes_percentage": 10, "min_candidate_nodes_absolute": 7}, 7),
        ({"min_candidate_nodes_percentage": 0, "min_candidate_nodes_absolute": 1}, 1),
        ({}, 40),
    ],
)
def test_no_more_nodes_are_tried_than_configured_from_a_random_one_on(args: dict[str, int], row_total: int):
    for seed in range(5):
        snapshot = snapshot_of(*many(40))
        start = Random(seed).randrange(40)
        rows = [(start + step) % 40 for step in range(row_total)]
        decision = attempt(urgent(), snapshot, handle=RecordingHandle(snapshot, random=Random(seed)), **args)
        assert decision.post_filter.nominated_node_name == f"n{max(rows)}"


def test_every_attempt_is_counted():
    snapshot = snapshot_of(node("n1"), small("a", "n1", priority=100))
    handle = RecordingHandle(snapshot)
    attempt(urgent(), snapshot, handle=handle)
    attempt(urgent(spec={"preemptionPolicy": "Never"}), snapshot, handle=handle)
    assert handle.attempts == 2


# ---------------------------------------------------------------- in the queue


def test_a_pod_is_held_back_while_its_victims_are_being_deleted():
    plugin = DefaultPreemption(DefaultPreemptionArgs(), RecordingHandle(preempting={"uid-urgent"}))
    assert plugin.pre_enqueue(urgent()) == unresolvable("waiting for the preemption for this pod to be finished")
    assert plugin.pre_enqueue(pod("other")) is None


def test_a_deleted_pod_asks_again_but_never_puts_the_pod_back_by_itself():
    plugin = DefaultPreemption(DefaultPreemptionArgs(), RecordingHandle())
    [registered] = plugin.events_to_register()
    assert (registered.event.resource.value, int(registered.event.action)) == ("AssignedPod", 2)
    assert plugin.after_pod_delete(urgent(), small("a", "n1"), None) is QueueingHint.SKIP


# ---------------------------------------------------------------- on any cluster

requests = st.fixed_dictionaries({"cpu": st.integers(0, 4), "memory": st.integers(0, 4)})
ports = st.lists(st.sampled_from((80, 443)), max_size=1)


@st.composite
def clusters(draw: st.DrawFn) -> list[Node | Pod]:
    items: list[Node | Pod] = []
    for index in range(draw(st.integers(1, 5))):
        room = draw(st.integers(2, 10))
        items.append(node(f"n{index}", cpu=str(room), memory=str(room), pods=draw(st.integers(1, 6))))
        pods_on_nodes = [draw(st.tuples(requests, st.integers(-2, 3), ports)) for _ in range(draw(st.integers(0, 6)))]
        items += (
            pod(f"p{index}-{number}", node=f"n{index}", requests=needs, priority=priority, host_ports=ports)
            for number, (needs, priority, ports) in enumerate(pods_on_nodes)
        )
    return items


def without(items: list[Node | Pod], uids: set[str]) -> Snapshot:
    return snapshot_of(*(item for item in items if item.uid not in uids))


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(items=clusters(), pod_requests=requests, pod_ports=ports, priority=st.integers(-1, 4), seed=st.integers(0, 9))
def test_victims_are_enough_and_none_of_them_could_have_stayed(
    items: list[Node | Pod], pod_requests: dict[str, int], pod_ports: list[int], priority: int, seed: int
):
    incoming = pod("new", requests=pod_requests, host_ports=pod_ports, priority=priority)
    snapshot = snapshot_of(*items)
    pods_before = [dict(pods) for pods in snapshot.pods]
    decision = attempt(incoming, snapshot, handle=RecordingHandle(snapshot, random=Random(seed)))
    assert [dict(pods) for pods in snapshot.pods] == pods_before
    lower = {item.uid for item in items if isinstance(item, Pod) and item.priority < priority}
    if isinstance(decision, Suggested):
        return
    plan = decision.post_filter
    if not plan.nominated_node_name:
        # Not even without any of them would it fit anywhere.
        assert isinstance(attempt(incoming, without(items, lower)), DoesNotFit)
        return
    victims = {victim.uid for victim in plan.victims}
    assert victims <= lower
    assert all(victim.node_name == plan.nominated_node_name for victim in plan.victims)
    assert fits(incoming, without(items, victims), plan.nominated_node_name)
    for uid in victims:
        assert not fits(incoming, without(items, victims - {uid}), plan.nominated_node_name)


def fits(incoming: Pod, snapshot: Snapshot, on: str) -> bool:
    framework = profile(DefaultPreemptionArgs(), RecordingHandle(snapshot))
    evaluation = evaluate_all(Cycle(framework, incoming, snapshot, Nominator({}.get)))
    return snapshot.row_of[on] in evaluation.filter_result.rows


# ---------------------------------------------------------------- extenders

ASKED = Extender("http://x", preempt_verb="preempt")


def plan_with(answer: Any, *items: Node | Pod, extender: Extender = ASKED) -> DoesNotFit:
    """Return the decision of a preemption where the extender answers so."""
    snapshot = snapshot_of(*items)
    steps = attempt_asking(
        Cycle(profile(DefaultPreemptionArgs(), RecordingHandle(snapshot)), urgent(), snapshot, Nominator({}.get)),
        Rotation(),
        0,
        Extenders([extender], Random(1)),
    )
    decision = _answer(steps, answer)
    assert isinstance(decision, DoesNotFit)
    return decision


def _answer(steps: Steps[Decision], answer: Any) -> Decision:
    reply = None
    try:
        while True:
            step = steps.send(reply)
            reply = None if step is PAUSE else answer(step)
    except StopIteration as end:
        decision: Decision = end.value
        return decision


TWO_NODES = (node("n1"), node("n2"), small("a", "n1"), small("b", "n2", priority=2), small("c", "n2", cpu="0"))


def test_an_extender_is_asked_about_all_candidates_and_the_best_that_is_left_is_taken():
    def only_n2(question):
        names_by_node = {
            name: [pod.metadata.name for pod in victims.pods] for name, victims in question.candidates.items()
        }
        assert names_by_node == {"n1": ["a"], "n2": ["b"]}
        return question.accept({"n2": (["uid-b", "uid-c"], 0)})

    plan = plan_with(only_n2, *TWO_NODES).post_filter
    assert plan is not None
    assert (plan.nominated_node_name, [victim.metadata.name for victim in plan.victims]) == ("n2", ["b", "c"])


def test_violations_that_an_extender_reports_count():
    def worse_on_n1(question):
        return question.accept({"n1": (["uid-a"], 1), "n2": (["uid-b"], 0)})

    plan = plan_with(worse_on_n1, *TWO_NODES).post_filter
    assert plan is not None
    assert plan.nominated_node_name == "n2"


def test_no_room_is_made_where_the_extender_leaves_no_candidate():
    decision = plan_with(lambda question: question.accept({}), *TWO_NODES)
    assert decision.post_filter is None
    assert decision.error.post_filter_message.endswith("preemption: no candidate node for preemption")


def test_no_room_is_made_where_the_extender_fails():
    decision = plan_with(lambda question: ExtenderFailed(question.extender, "code 500"), *TWO_NODES)
    assert decision.post_filter is None
    assert decision.error.post_filter_message == 'preemption: extender "http://x": code 500'


def test_a_failing_extender_that_may_be_ignored_leaves_the_choice():
    ignorable = replace(ASKED, ignorable=True)
    plan = plan_with(lambda question: ExtenderFailed(ignorable, "x"), *TWO_NODES, extender=ignorable).post_filter
    assert plan is not None
    assert plan.nominated_node_name == "n1"


def test_no_extender_is_asked_where_there_is_no_candidate():
    def never(question):
        raise AssertionError(question)

    decision = plan_with(never, node("n1"), small("a", "n1", priority=100))
    assert decision.post_filter == PostFilterResult("")


# ---------------------------------------------------------------- neighbours


@pytest.mark.parametrize("usage_alone", [True, False])
def test_pods_that_the_handle_spares_are_nobodys_victims(usage_alone: bool) -> None:
    ports = {} if usage_alone else {"host_ports": [80]}
    items = (
        node("n1", cpu="4"),
        node("n2", cpu="4"),
        pod("theirs", cpu="4", node="n1", scheduler="somebody-else", **ports),
        pod("ours", cpu="4", node="n2", priority=5, **ports),
    )
    incoming = pod("urgent", cpu="4", priority=10, **ports)
    assert plan(*items, incoming=incoming) == ("n1", ["theirs"])
    handle = RecordingHandle(snapshot_of(*items), spared={"somebody-else"})
    assert plan(*items, incoming=incoming, handle=handle) == ("n2", ["ours"])


def test_a_pod_that_is_held_back_from_all_nodes_does_not_preempt() -> None:
    items = (node("n1", cpu="4"), pod("low", cpu="4", node="n1"))
    incoming = pod("urgent", cpu="4", priority=10)
    decision = attempt(incoming, snapshot_of(*items), handle=RecordingHandle(held_back={"n1", "gone"}))
    assert isinstance(decision, DoesNotFit)
    assert decision.post_filter is None
    assert decision.error.message.endswith("preemption: not eligible: its victims keep coming back.")


def test_a_pod_that_is_held_back_from_a_node_preempts_on_another() -> None:
    items = (
        node("n1", cpu="4"),
        node("n2", cpu="4"),
        pod("low", cpu="4", node="n1"),
        pod("middle", cpu="4", node="n2", priority=5),
    )
    incoming = pod("urgent", cpu="4", priority=10)
    assert plan(*items, incoming=incoming) == ("n1", ["low"])
    handle = RecordingHandle(snapshot_of(*items), held_back={"n1"})
    assert plan(*items, incoming=incoming, handle=handle) == ("n2", ["middle"])


def test_the_message_tells_nodes_where_a_pod_is_held_back_from_those_where_preemption_is_no_help() -> None:
    items = (
        node("n1", cpu="4"),
        node("n2", cpu="4"),
        pod("low", cpu="4", node="n1"),
        pod("high", cpu="4", node="n2", priority=20),
    )
    incoming = pod("urgent", cpu="4", priority=10)
    decision = attempt(incoming, snapshot_of(*items), handle=RecordingHandle(snapshot_of(*items), held_back={"n1"}))
    assert isinstance(decision, DoesNotFit)
    assert "1 Preemption is held back: victims keep coming back" in decision.error.message
    assert "1 No preemption victims found for incoming pod" in decision.error.message
