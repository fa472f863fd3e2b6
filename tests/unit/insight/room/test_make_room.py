"""Which pods move, in which order, and what is proved."""

from __future__ import annotations

from typing import Any

import pytest

from podium.engine.errors import ClusterError
from podium.insight import Cluster
from podium.insight.room.make_room import make_room, subject_named
from podium.insight.room.plan import RoomAnswer, Verdict
from podium.insight.room.rehearsal import Rehearsal
from podium.lib.clock import ManualClock
from podium.lib.time_limit import TimeLimit
from tests.device_manifests import device_class, devices, exactly, resource_slice
from tests.gang_manifests import UPSTREAM, group, member
from tests.manifests import HOSTNAME, ZONE, Json, node, pod
from tests.workload_manifests import (
    SCHEDULER,
    budget,
    claims_from,
    device_claim_template,
    ready,
    with_owner,
    workload,
)


def running(name: str, cpu: str, node: str, kind: str = "ReplicaSet", of: str = "", **fields: Any) -> Json:
    """A ready pod of a workload on a node."""
    workload_name = of or name.rpartition("-")[0] or name
    fields.setdefault("labels", {"app": workload_name})
    item = pod(name, cpu, node=node, scheduler=SCHEDULER, status=ready(), **fields)
    return with_owner(item, kind, workload_name)


def waiting(cpu: str = "4", name: str = "big", **fields: Any) -> Json:
    return pod(name, cpu, scheduler=SCHEDULER, **fields)


def room_for(*objects: Json, subject: str = "default/big", **limits: Any) -> RoomAnswer:
    cluster = Cluster.load(list(objects))
    return make_room(cluster, subject_named(cluster, subject), **limits)


def steps_of(answer: RoomAnswer) -> list[tuple[str, str, str]]:
    assert answer.plan is not None, answer.text
    return [(step.pod.partition("/")[2], step.source, step.target) for step in answer.plan.steps]


def test_one_pod_moves_and_the_pod_gets_its_node() -> None:
    answer = room_for(
        node("n1", "4"), node("n2", "4"), running("web-1", "1", "n1"), running("api-1", "2", "n2"), waiting()
    )
    assert steps_of(answer) == [("web-1", "n1", "n2")]
    assert answer.plan is not None
    assert answer.plan.nodes == {"default/big": "n1"}
    assert answer.is_proven
    assert answer.text == "default/big fits after 1 move (proven: no fewer do; 2 nodes, 2 movable pods)"


def test_the_node_of_a_moved_pod_is_cordoned_until_its_room_is_used() -> None:
    # Without it the replacement would come back: it fits beside the pod that is ending.
    objects = node("n1", "8"), node("n2", "4"), running("web-1", "3", "n1"), running("api-1", "1", "n2"), waiting("6")
    answer = room_for(*objects)
    assert answer.plan is not None
    assert answer.plan.steps[0].cordons == ("n1",)
    assert answer.plan.uncordons == ("n1",)


def test_a_moved_pod_may_need_the_move_of_another() -> None:
    objects = [
        node("n1", "4"),
        node("n2", "3"),
        node("n3", "1"),
        running("web-1", "3", "n1"),
        running("api-1", "1", "n2"),
    ]
    answer = room_for(*objects, waiting())
    assert steps_of(answer) == [("api-1", "n2", "n3"), ("web-1", "n1", "n2")]
    assert answer.plan is not None
    assert [step.opens for step in answer.plan.steps] == ["", "n2"]
    assert answer.is_proven
    assert answer.ruled_out == 1


def test_of_equal_moves_the_one_with_the_fewest_bytes_is_chosen_then_that_of_the_lowest_priority() -> None:
    nodes = [node("n1", "4"), node("n2", "4"), node("n3", "2")]
    pods = [running("web-1", "1", "n1", memory="2Gi"), running("api-1", "1", "n2", memory="1Gi")]
    assert [step[0] for step in steps_of(room_for(*nodes, *pods, waiting()))] == ["api-1"]
    pods = [running("web-1", "1", "n1", priority=5), running("api-1", "1", "n2", priority=7)]
    answer = room_for(*nodes, *pods, waiting(priority=9, preemptionPolicy="Never"))
    assert [step[0] for step in steps_of(answer)] == ["web-1"]
    two_containers = running("web-1", "500m", "n1", memory="32Mi")
    two_containers["spec"]["containers"].append({**two_containers["spec"]["containers"][0], "name": "second"})
    pods = [two_containers, running("api-1", "1", "n2")]
    assert [step[0] for step in steps_of(room_for(*nodes, *pods, waiting()))] == ["api-1"]


def test_a_pod_that_fits_needs_no_moves() -> None:
    answer = room_for(node("n1", "8"), running("web-1", "1", "n1"), waiting())
    assert answer.verdict is Verdict.FITS
    assert answer.text == "default/big fits as it is, on n1"


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (pod("solo", "1", node="n1", scheduler=SCHEDULER), "it has no controller"),
        (running("agent-1", "1", "n1", "DaemonSet"), "it belongs to its node"),
        (running("web-1", "1", "n1", schedulerName="theirs"), "the scheduler theirs would place its replacement"),
        (running("web-1", "1", "n1", schedulingGroup={"podGroupName": "train"}), "it is a pod of a gang"),
    ],
    ids=["bare", "daemon", "other scheduler", "gang"],
)
def test_pods_that_cannot_move_are_named(item: Json, reason: str) -> None:
    answer = room_for(node("n1", "4"), node("n2", "2"), item, waiting())
    assert answer.verdict is Verdict.IMPOSSIBLE
    assert answer.is_proven
    assert [reason in pod.reason for pod in answer.immovable] == [True]


def test_annotations_keep_pods() -> None:
    for name, value in (
        ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
        ("karpenter.sh/do-not-disrupt", "true"),
    ):
        item = running("web-1", "1", "n1")
        item["metadata"]["annotations"] = {name: value}
        answer = room_for(node("n1", "4"), node("n2", "2"), item, waiting())
        assert answer.verdict is Verdict.IMPOSSIBLE
        assert name in answer.immovable[0].reason


def test_a_pod_that_its_budget_holds_stays() -> None:
    nodes, pods = [node("n1", "4"), node("n2", "2")], [running("web-1", "1", "n1")]
    answer = room_for(*nodes, *pods, waiting(), budget({"app": "web"}, minAvailable=1))
    assert answer.verdict is Verdict.IMPOSSIBLE
    assert answer.immovable[0].reason == "PodDisruptionBudget default/budget allows no disruption now"


def test_a_pod_that_two_budgets_select_stays() -> None:
    budgets = [budget({"app": "web"}, name, maxUnavailable=1) for name in ("first", "second")]
    answer = room_for(node("n1", "4"), node("n2", "2"), running("web-1", "1", "n1"), waiting(), *budgets)
    assert answer.verdict is Verdict.IMPOSSIBLE
    assert answer.immovable[0].reason.endswith("default/first and default/second select it")


def test_two_pods_of_a_budget_move_one_after_the_other() -> None:
    web = workload("ReplicaSet", "web", 2)
    web["metadata"]["uid"] = "ReplicaSet/default/web"
    nodes = [node("n1", "4"), node("n2", "2")]
    pods = [running(f"web-{number}", "1", "n1") for number in (1, 2)]
    answer = room_for(*nodes, *pods, web, waiting(), budget({"app": "web"}, maxUnavailable=1))
    assert steps_of(answer) == [("web-1", "n1", "n2"), ("web-2", "n1", "n2")]


def test_amounts_alone_may_prove_that_no_moves_help() -> None:
    answer = room_for(
        node("n1", "4"), node("n2", "4"), running("web-1", "3", "n1"), running("api-1", "3", "n2"), waiting()
    )
    assert answer.verdict is Verdict.IMPOSSIBLE
    assert answer.is_proven
    assert "all nodes together have less cpu free than is asked for" in answer.reason


def test_trying_everything_may_prove_that_no_moves_help() -> None:
    # Two cpus are free on each node, and no pod is small enough to go to the other.
    nodes = [node("n1", "5"), node("n2", "5")]
    answer = room_for(*nodes, running("web-1", "3", "n1"), running("api-1", "3", "n2"), waiting())
    assert answer.verdict is Verdict.IMPOSSIBLE
    assert answer.is_proven
    assert "every way to make room was tried" in answer.reason


def test_two_pods_that_change_places_need_a_third_node_for_a_while() -> None:
    # n1 and n2 would fit in the end, but each move waits for the other; the small pod opens the way.
    nodes = [node("n1", "6"), node("n2", "4"), node("n3", "1")]
    pods = [running("web-1", "4", "n1"), running("api-1", "2", "n2"), running("tiny-1", "1", "n2")]
    answer = room_for(*nodes, *pods, waiting("4"))
    assert answer.verdict in (Verdict.MOVES, Verdict.IMPOSSIBLE)
    assert answer.is_proven


def test_taints_selectors_and_volumes_of_moved_pods_are_respected() -> None:
    tainted = node("n2", "8", taints=[{"key": "team", "effect": "NoSchedule"}])
    objects = [node("n1", "4"), tainted, node("n3", "1"), running("web-1", "1", "n1")]
    assert steps_of(room_for(*objects, waiting())) == [("web-1", "n1", "n3")]
    bound_to_zone = running("web-1", "1", "n1", nodeSelector={HOSTNAME: "n1"})
    assert room_for(*objects[:3], bound_to_zone, waiting()).verdict is Verdict.IMPOSSIBLE


def test_a_pod_in_the_way_of_anti_affinity_is_moved() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOSTNAME}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    objects = [node("n1", "8"), node("n2", "2"), running("web-1", "1", "n1")]
    answer = room_for(*objects, waiting(affinity=affinity))
    assert steps_of(answer) == [("web-1", "n1", "n2")]


def test_replicas_kept_apart_do_not_move_together() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOSTNAME}
    apart = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    nodes = [node("n1", "4"), node("n2", "4"), node("n3", "1")]
    pods = [running("web-1", "1", "n1", **apart), running("web-2", "1", "n2", **apart)]
    assert steps_of(room_for(*nodes, *pods, waiting())) in ([("web-1", "n1", "n3")], [("web-2", "n2", "n3")])


def test_a_stateful_set_gets_its_pod_back_under_its_name() -> None:
    data = workload("StatefulSet", "db", 1)
    data["metadata"]["uid"] = "StatefulSet/default/db"
    objects = [node("n1", "4"), node("n2", "1"), data, running("db-0", "1", "n1", "StatefulSet")]
    assert steps_of(room_for(*objects, waiting())) == [("db-0", "n1", "n2")]


def test_a_pending_pod_that_would_take_the_room_of_a_later_step_does_not_get_it() -> None:
    objects = [
        node("n1", "4"),
        node("n2", "3"),
        node("n3", "1"),
        running("web-1", "3", "n1"),
        running("api-1", "1", "n2"),
    ]
    rival = waiting("3", "rival", preemptionPolicy="Never")
    answer = room_for(*objects, rival, waiting(priority=1, preemptionPolicy="Never"))
    assert steps_of(answer) == [("api-1", "n2", "n3"), ("web-1", "n1", "n2")]
    # One of a higher priority than the moved pod would take it: nominations protect against lower ones only.
    important = waiting("3", "rival", priority=1, preemptionPolicy="Never")
    answer = room_for(*objects, important, waiting(priority=1, preemptionPolicy="Never"))
    assert answer.plan is None
    assert not answer.is_proven


def test_extended_resources_and_devices_are_respected() -> None:
    objects = [
        node("n1", "4"),
        node("n2", "4"),
        device_class(),
        resource_slice("gpus", devices(1), node="n1"),
        device_claim_template("gpu", exactly()),
        running("web-1", "3", "n1"),
        running("api-1", "1", "n2"),
    ]
    answer = room_for(*objects, waiting("2", resourceClaims=claims_from("gpu")))
    assert steps_of(answer) == [("web-1", "n1", "n2")]
    assert answer.plan is not None
    assert answer.plan.nodes == {"default/big": "n1"}


def test_room_is_made_for_a_whole_gang() -> None:
    objects = [node(f"n{number}", "4") for number in (1, 2, 3)]
    pods = [running(f"web-{number}", "1", f"n{number}") for number in (1, 2)]
    members = [member(UPSTREAM, f"train-{number}", "train", cpu="4", scheduler=SCHEDULER) for number in range(2)]
    answer = room_for(*objects, *pods, group(UPSTREAM, 2, "train"), *members, subject="default/train")
    assert answer.subject == "the gang default/train"
    assert steps_of(answer) in ([("web-1", "n1", "n2")], [("web-2", "n2", "n1")])
    assert answer.plan is not None
    assert answer.plan.nodes.keys() == {"default/train-0", "default/train-1"}


def test_a_gated_pod_is_not_helped_by_room() -> None:
    answer = room_for(node("n1", "4"), waiting(schedulingGates=[{"name": "wait"}]))
    assert answer.verdict is Verdict.IMPOSSIBLE
    assert "held back whatever is free" in answer.reason


def test_a_preemption_that_would_come_first_is_noted() -> None:
    objects = [node("n1", "4"), node("n2", "1"), running("web-1", "1", "n1")]
    answer = room_for(*objects, waiting(priority=5))
    assert steps_of(answer) == [("web-1", "n1", "n2")]
    assert answer.note == (
        "the scheduler preempts default/web-1 on n1 for default/big unless the pod's preemptionPolicy is Never"
    )


def test_a_search_without_time_says_what_it_lacks() -> None:
    clock = ManualClock()
    limit = TimeLimit(clock, 1.0)
    clock.advance(2.0)
    answer = room_for(node("n1", "4"), node("n2", "2"), running("web-1", "1", "n1"), waiting(), limit=limit)
    assert answer.verdict is Verdict.UNKNOWN
    assert answer.is_partial
    assert "not proven within the time limit" in answer.text


def test_a_search_without_steps_keeps_what_it_has() -> None:
    answer = room_for(node("n1", "4"), node("n2", "2"), running("web-1", "1", "n1"), waiting(), steps_max=0)
    assert answer.verdict is Verdict.UNKNOWN
    assert "the search ended after its steps" in answer.text


def test_moves_that_are_not_proven_are_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podium.insight.room.make_room._QUICK_STEPS", 1)
    monkeypatch.setattr("podium.insight.room.make_room._LEVEL_STEPS", 1)
    monkeypatch.setattr("podium.insight.room.make_room._STATES", 0)
    nodes = [node(name, "4") for name in ("n1", "n2", "n3")]
    pods = [running(f"{name}-1", "2", node_name) for name, node_name in (("api", "n2"), ("db", "n3"))]
    objects = [*nodes, running("web-1", "3", "n1"), *pods, running("x-1", "1", "n2"), waiting()]
    answer = room_for(*objects, steps_max=20)
    assert (len(steps_of(answer)), answer.is_proven, answer.ruled_out) == (2, False, 0)
    assert "(not proven: the search ended after its steps, best so far; up to 0 moves ruled out;" in answer.text

    monkeypatch.setattr("podium.insight.room.search._TIME_CHECKED", 1)
    clock, plan = ManualClock(), Rehearsal.plan

    def plan_and_take_long(*arguments: Any) -> Any:
        clock.advance(20.0)
        return plan(*arguments)

    monkeypatch.setattr(Rehearsal, "plan", plan_and_take_long)
    answer = room_for(*objects, limit=TimeLimit(clock, 10.0))
    assert (len(steps_of(answer)), answer.is_proven, answer.is_partial) == (2, False, True)
    assert "not proven within the time limit, best so far" in answer.text


def test_an_unknown_subject_is_refused() -> None:
    with pytest.raises(ClusterError, match=r"there is no pod and no gang default/bog; did you mean default/big\?"):
        room_for(node("n1"), waiting(), subject="default/bog")


def test_the_answer_as_json() -> None:
    objects = [node("n1", "4", labels={ZONE: "a"}), node("n2", "2"), running("web-1", "1", "n1")]
    assert room_for(*objects, waiting()).as_dict() == {
        "for": "default/big",
        "verdict": "moves",
        "proven": True,
        "steps": [{"evict": "default/web-1", "workload": "ReplicaSet/web", "from": "n1", "to": "n2", "cordon": ["n1"]}],
        "nodes": {"default/big": "n1"},
        "uncordon": ["n1"],
        "cost": {"moves": 1, "bytes": 64 * 2**20, "priorities": 0, "restarts": 1},
        "moves_ruled_out": 0,
        "searched": {"nodes": 2, "movable_pods": 1},
    }


def node_in_zone(name: str, zone: str, cpu: str = "8") -> Json:
    return node(name, cpu, labels={ZONE: zone, HOSTNAME: name})


def apart_from(app: str) -> Json:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_pods_leave_the_zone_from_which_anti_affinity_keeps_the_pod() -> None:
    objects = [node_in_zone("a1", "a"), node_in_zone("a2", "a"), node_in_zone("b1", "b")]
    objects += [running("web-1", "1", "a1"), running("web-2", "1", "a2"), running("web-3", "1", "b1")]
    answer = room_for(*objects, waiting("1", affinity=apart_from("web")))
    # One pod keeps it from zone b, two from zone a.
    assert [(pod, source) for pod, source, _ in steps_of(answer)] == [("web-3", "b1")]
    assert answer.plan is not None
    assert answer.plan.nodes == {"default/big": "b1"}
    assert answer.is_proven


def test_pods_of_several_nodes_leave_the_zone() -> None:
    objects = [node_in_zone("a1", "a"), node_in_zone("a2", "a"), node_in_zone("b1", "b", "2")]
    objects += [running("web-1", "1", "a1"), running("web-2", "1", "a2")]
    answer = room_for(*objects, waiting("4", affinity=apart_from("web")))
    assert [(source, target) for _, source, target in steps_of(answer)] == [("a1", "b1"), ("a2", "b1")]
    assert answer.is_proven


def test_pods_that_keep_a_newcomer_from_their_zone_by_their_own_anti_affinity_leave_it() -> None:
    objects = [node_in_zone("a1", "a"), node_in_zone("b1", "b")]
    objects += [running("web-1", "1", "a1", affinity=apart_from("big")), running("api-1", "6", "b1")]
    answer = room_for(*objects, waiting("4", labels={"app": "big"}))
    assert steps_of(answer) == [("web-1", "a1", "b1")]


def test_a_pod_that_cannot_move_keeps_the_other_from_its_zone() -> None:
    objects = [
        node_in_zone("a1", "a"),
        node_in_zone("b1", "b", "2"),
        pod("bare", "1", node="a1", labels={"app": "web"}),
    ]
    answer = room_for(*objects, waiting("4", affinity=apart_from("web")))
    assert answer.plan is None


def spread_over_zones(app: str = "web", **fields: Any) -> Json:
    """Fields of a pod that is spread together with the pods of web."""
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "big"]}]}
    rule = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {"labels": {"app": app}, "topologySpreadConstraints": [rule | fields]}


def test_a_pod_leaves_the_domain_that_has_too_many() -> None:
    # Only zone a has room, but two pods already, as against one in b and in c.
    objects = [node_in_zone("a1", "a"), node_in_zone("b1", "b", "3"), node_in_zone("c1", "c", "1")]
    objects += [running(f"web-{number}", "1", at) for number, at in enumerate(("a1", "a1", "b1", "c1"))]
    answer = room_for(*objects, waiting("4", **spread_over_zones()))
    assert steps_of(answer) == [("web-0", "a1", "b1")]
    assert answer.plan is not None
    assert answer.plan.nodes == {"default/big": "a1"}
    assert answer.is_proven


def test_a_pod_goes_to_the_smallest_domain_so_that_others_may_have_more() -> None:
    # Zone b has a pod that stays and all the room, c has none and room for a small pod: one of a goes there.
    objects = [node_in_zone("a1", "a", "2"), node_in_zone("b1", "b"), node_in_zone("c1", "c", "1")]
    objects += [running(f"web-{number}", "1", "a1") for number in range(2)]
    objects += [pod("bare", "1", node="b1", labels={"app": "web"}, scheduler=SCHEDULER, status=ready())]
    answer = room_for(*objects, waiting("4", **spread_over_zones("big")))
    assert [(source, target) for _, source, target in steps_of(answer)] == [("a1", "c1")]
    assert answer.plan is not None
    assert answer.plan.nodes == {"default/big": "b1"}
    assert answer.is_proven


def test_a_moved_pod_goes_only_where_its_own_spread_lets_it() -> None:
    # From a to b it may go, but not to c, which has two of its pods already and the most room.
    objects = [node_in_zone("a1", "a", "4"), node_in_zone("b1", "b", "2"), node_in_zone("c1", "c")]
    objects += [
        running(f"web-{number}", "1", at, **spread_over_zones()) for number, at in enumerate(("a1", "c1", "c1"))
    ]
    answer = room_for(*objects, running("api-1", "5", "c1"), waiting("4"))
    assert steps_of(answer) == [("web-0", "a1", "b1")]


def test_pods_that_stay_may_keep_the_skew_and_that_is_proven() -> None:
    objects = [node_in_zone("a1", "a"), node_in_zone("b1", "b", "1")]
    objects += [pod("bare", "1", node="a1", labels={"app": "web"}, scheduler=SCHEDULER, status=ready())]
    answer = room_for(*objects, waiting("4", **spread_over_zones("big")))
    assert answer.verdict is Verdict.IMPOSSIBLE
    assert answer.is_proven
