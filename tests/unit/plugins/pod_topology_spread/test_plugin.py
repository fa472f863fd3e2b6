from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.cluster import Snapshot
from podium.config.args import LIST_DEFAULTING, PodTopologySpreadArgs, TopologySpreadConstraint
from podium.framework.contract.cluster_event import HintScope, QueueingHint
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.status import SKIP, Code, Status, unresolvable, unschedulable
from podium.objects import resource_types
from podium.objects.core import Node, Pod
from podium.objects.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from podium.plugins.pod_topology_spread.constraints import HARD
from podium.plugins.pod_topology_spread.plugin import PodTopologySpread
from tests.builders import ZONE_LABEL, node, pod, snapshot_of
from tests.unit.plugins.clusters import RecordingHandle, filtered_one_by_one, normalize

HOSTNAME = "kubernetes.io/hostname"
NO_LABEL = unresolvable("node(s) didn't match pod topology spread constraints (missing required label)")
TOO_SKEWED = unschedulable("node(s) didn't match pod topology spread constraints")
WEB = {"matchLabels": {"app": "web"}}
BROKEN = {"matchExpressions": [{"key": "app", "operator": "Like"}]}


def spread(*constraints: dict[str, Any], **kwargs: Any) -> Pod:
    defaults = {"maxSkew": 1, "topologyKey": ZONE_LABEL, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": WEB}
    constraints = tuple({**defaults, **constraint} for constraint in constraints or ({},))
    return web("new", spec={"topologySpreadConstraints": constraints, **kwargs.pop("spec", {})}, **kwargs)


def web(name: str, **kwargs: Any) -> Pod:
    return pod(name, **{"labels": {"app": "web"}, **kwargs})


def zone_nodes(**zones: str) -> list[Node]:
    return [node(name, zone=zone, labels={HOSTNAME: name}) for name, zone in zones.items()]


def plugin(args: PodTopologySpreadArgs | None = None, **objects: Any) -> PodTopologySpread:
    kinds = {resource_type.plural: resource_type for resource_type in resource_types.ALL}
    handle = RecordingHandle(objects={kinds[name]: items for name, items in objects.items()})
    return PodTopologySpread(args or PodTopologySpreadArgs(), handle)


def rejections_of(incoming: Pod, snapshot: Snapshot) -> dict[str, Status]:
    state, spreading = CycleState(), plugin()
    assert spreading.pre_filter(state, incoming, snapshot) == (None, None)
    return filtered_one_by_one(spreading, incoming, snapshot, state)


def scores(spreading: PodTopologySpread, incoming: Pod, snapshot: Snapshot, *only: str) -> dict[str, int] | None:
    state = CycleState()
    rows = snapshot.order if not only else snapshot.order[[snapshot.name(row) in only for row in snapshot.order]]
    status = spreading.pre_score(state, incoming, snapshot, rows)
    if status is not None:
        assert status is SKIP
        return None
    return normalize(spreading, incoming, snapshot, state, rows)


# ---------------------------------------------------------------- filtering


def test_a_domain_takes_no_pod_that_would_skew_it_too_much() -> None:
    snapshot = snapshot_of(*zone_nodes(a="1", b="1", c="2"), web("x", node="a"))
    assert rejections_of(spread(), snapshot) == {"a": TOO_SKEWED, "b": TOO_SKEWED}
    assert rejections_of(spread({"maxSkew": 2}), snapshot) == {}


def test_the_pod_itself_counts_only_if_it_is_selected() -> None:
    snapshot = snapshot_of(*zone_nodes(a="1", b="2"), web("x", node="a"))
    assert rejections_of(spread(labels={"app": "db"}), snapshot) == {}


def test_a_node_without_the_label_is_out_for_good_and_counts_nowhere() -> None:
    snapshot = snapshot_of(*zone_nodes(a="1", b="2"), node("c", labels={}), web("x", node="c"))
    assert rejections_of(spread(), snapshot) == {"c": NO_LABEL}


def test_only_nodes_with_the_labels_of_all_constraints_make_domains() -> None:
    snapshot = snapshot_of(
        *zone_nodes(a="1", b="2"), node("c", zone="3", labels={}), web("x", node="a"), web("y", node="b")
    )
    constraints = ({}, {"topologyKey": HOSTNAME})
    assert rejections_of(spread(*constraints), snapshot) == {"c": NO_LABEL}


def test_too_few_domains_are_as_good_as_an_empty_one() -> None:
    snapshot = snapshot_of(*zone_nodes(a="1", b="2"), web("x", node="a"), web("y", node="b"))
    assert rejections_of(spread({"minDomains": 2}), snapshot) == {}
    assert rejections_of(spread({"minDomains": 3}), snapshot) == {"a": TOO_SKEWED, "b": TOO_SKEWED}


def test_pods_that_are_going_away_or_of_other_namespaces_do_not_count() -> None:
    pods = (web("x", node="a", terminating=True), web("y", node="a", namespace="other"))
    assert rejections_of(spread(), snapshot_of(*zone_nodes(a="1", b="2"), *pods)) == {}


def test_nodes_that_the_pod_could_not_go_to_anyway_are_left_out_by_default() -> None:
    nodes = [
        *zone_nodes(a="1", b="2"),
        node("c", zone="3", labels={HOSTNAME: "c", "old": "yes"}, taints=["gpu:NoSchedule"]),
    ]
    snapshot = snapshot_of(*nodes, web("x", node="a"), web("y", node="b"))
    selector = {"nodeSelector": {HOSTNAME: "a"}}
    assert rejections_of(spread(spec=selector), snapshot) == {}
    assert "a" in rejections_of(spread({"nodeAffinityPolicy": "Ignore"}, spec=selector), snapshot)
    assert "a" in rejections_of(spread(), snapshot)
    assert rejections_of(spread({"nodeTaintsPolicy": "Honor"}), snapshot) == {}
    tolerant = spread({"nodeTaintsPolicy": "Honor"}, tolerations=[{"operator": "Exists"}])
    assert "a" in rejections_of(tolerant, snapshot)


def test_labels_to_match_narrow_the_selector_to_the_pods_own_values() -> None:
    old = web("x", node="a", labels={"app": "web", "version": "1"})
    snapshot = snapshot_of(*zone_nodes(a="1", b="2"), old)
    new = {"app": "web", "version": "2"}
    assert rejections_of(spread({"matchLabelKeys": ["version"]}, labels=new), snapshot) == {}
    assert rejections_of(spread({"matchLabelKeys": ["absent"]}, labels=new), snapshot) == {"a": TOO_SKEWED}


def test_a_selector_of_everything_counts_no_pod_but_the_new_one() -> None:
    snapshot = snapshot_of(*zone_nodes(a="1", b="2"), web("x", node="a"), web("y", node="a"))
    assert rejections_of(spread({"labelSelector": {}}), snapshot) == {}
    assert set(rejections_of(spread({"labelSelector": {}, "maxSkew": 0}), snapshot)) == {"a", "b"}
    assert rejections_of(spread({"labelSelector": None}), snapshot) == {}


def test_filtering_is_skipped_without_hard_constraints_and_fails_on_a_broken_one() -> None:
    snapshot = snapshot_of(*zone_nodes(a="1"))
    soft = spread({"whenUnsatisfiable": "ScheduleAnyway", "labelSelector": BROKEN})
    assert plugin().pre_filter(CycleState(), soft, snapshot) == (None, SKIP)
    assert plugin().pre_filter(CycleState(), web("new"), snapshot) == (None, SKIP)
    _, status = plugin().pre_filter(CycleState(), spread({"labelSelector": BROKEN}), snapshot)
    assert status is not None
    assert status.code is Code.ERROR
    assert "matchExpressions[0].operator" in status.message


def test_a_pod_that_is_going_away_counts_while_it_is_tried_out() -> None:
    leaving = web("x", node="a", terminating=True)
    snapshot = snapshot_of(*zone_nodes(a="1", b="2"), leaving)
    state, spreading, incoming = CycleState(), plugin(), spread()
    spreading.pre_filter(state, incoming, snapshot)
    spreading.pre_filter_extensions().remove_pod(state, incoming, leaving, snapshot.node(snapshot.row_of["a"]))
    assert spreading.filter(state, incoming, snapshot.node(snapshot.row_of["b"])) == TOO_SKEWED


# ---------------------------------------------------------------- scoring


def soft(**constraint: Any) -> dict[str, Any]:
    return {"whenUnsatisfiable": "ScheduleAnyway", **constraint}


def test_domains_with_fewer_pods_score_higher() -> None:
    snapshot = snapshot_of(*zone_nodes(a="1", b="2"), web("x", node="a"), web("y", node="a"), web("z", node="b"))
    # 2 and 1 pods, each weighted with ln(2 + 2): 2.77 and 1.39, rounded to 3 and 1
    assert scores(plugin(), spread(soft()), snapshot) == {"a": 33, "b": 100}
    assert scores(plugin(), spread(soft(), labels={"app": "db"}), snapshot) == {"a": 33, "b": 100}


def test_a_larger_allowance_waters_the_difference_down() -> None:
    snapshot = snapshot_of(*zone_nodes(a="1", b="2"), web("x", node="a"), web("y", node="a"), web("z", node="b"))
    assert scores(plugin(), spread(soft(maxSkew=9)), snapshot) == {"a": 81, "b": 100}


def test_nodes_without_the_label_score_nothing() -> None:
    snapshot = snapshot_of(*zone_nodes(a="1"), node("c", labels={}))
    assert scores(plugin(), spread(soft()), snapshot) == {"a": 100, "c": 0}


def test_pods_on_nodes_that_are_not_feasible_count_in_their_domain() -> None:
    snapshot = snapshot_of(*zone_nodes(a="1", b="1", c="2"), web("x", node="b"), web("y", node="b"))
    assert scores(plugin(), spread(soft()), snapshot, "a", "c") == {"a": 0, "c": 100}


def test_host_names_count_what_is_on_the_node_itself() -> None:
    snapshot = snapshot_of(*zone_nodes(a="1", b="1"), web("x", node="a"))
    assert scores(plugin(), spread(soft(topologyKey=HOSTNAME)), snapshot) == {"a": 0, "b": 100}


def test_scoring_is_skipped_without_soft_constraints_and_fails_on_a_broken_one() -> None:
    snapshot = snapshot_of(*zone_nodes(a="1"))
    assert scores(plugin(), spread(), snapshot) is None
    malformed_pod = spread(soft(labelSelector=BROKEN))
    status = plugin().pre_score(CycleState(), malformed_pod, snapshot, snapshot.order)
    assert status is not None
    assert status.code is Code.ERROR


# ---------------------------------------------------------------- defaults


def obj(kind: type, name: str, selector: Any, namespace: str = "default") -> Any:
    content = {"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": selector}}
    return msgspec.convert(content, kind)


def owned_pod(api_version: str, kind: str, **labels: str) -> Pod:
    owner = {"apiVersion": api_version, "kind": kind, "name": "owner", "controller": True}
    meta = {"name": "new", "namespace": "default", "labels": labels or {"app": "web"}, "ownerReferences": [owner]}
    return msgspec.convert({"metadata": meta}, Pod)


BUSY = snapshot_of(*zone_nodes(a="1", b="2"), *(web(f"x{index}", node="a") for index in range(9)))


def test_hints_are_asked_about_every_pod_where_its_owner_has_a_say() -> None:
    listed_args = PodTopologySpreadArgs((TopologySpreadConstraint(1, ZONE_LABEL, HARD),), LIST_DEFAULTING)
    for args, sees in ((None, HintScope.LABELS), (listed_args, HintScope.ANYTHING)):
        assert {registration.scope for registration in plugin(args).events_to_register()} == {sees}


def test_pods_of_a_service_spread_by_default() -> None:
    services = [obj(Service, "web", {"app": "web"}), obj(Service, "db", {"app": "db"})]
    assert scores(plugin(services=services), web("new"), BUSY) == {"a": 19, "b": 100}


@pytest.mark.parametrize(
    "objects",
    [
        {},
        {"services": [obj(Service, "other", {"app": "web"}, namespace="other")]},
        {"services": [obj(Service, "all", {})]},
    ],
)
def test_a_pod_that_nothing_selects_is_not_spread_by_default(objects: dict[str, Any]) -> None:
    assert scores(plugin(**objects), web("new"), BUSY) is None


@pytest.mark.parametrize(
    ("owner", "objects"),
    [
        (
            ("v1", "ReplicationController"),
            {"replicationcontrollers": [obj(ReplicationController, "owner", {"app": "web"})]},
        ),
        (("apps/v1", "ReplicaSet"), {"replicasets": [obj(ReplicaSet, "owner", WEB)]}),
        (("apps/v1", "StatefulSet"), {"statefulsets": [obj(StatefulSet, "owner", WEB)]}),
    ],
)
def test_pods_of_a_workload_spread_by_default(owner: tuple[str, str], objects: dict[str, Any]) -> None:
    assert scores(plugin(**objects), owned_pod(*owner), BUSY) == {"a": 19, "b": 100}
    assert scores(plugin(), owned_pod(*owner), BUSY) is None
    assert scores(plugin(**objects), owned_pod("example.com/v1", owner[1]), BUSY) is None


@pytest.mark.parametrize("selector", [None, {}, BROKEN])
def test_a_workload_that_does_not_say_what_it_selects_adds_nothing(selector: Any) -> None:
    replica_sets = [obj(ReplicaSet, "owner", selector)]
    assert scores(plugin(replicasets=replica_sets), owned_pod("apps/v1", "ReplicaSet"), BUSY) is None


def test_a_workload_narrows_down_what_services_select() -> None:
    objects = {
        "services": [obj(Service, "web", {"app": "web"})],
        "replicasets": [obj(ReplicaSet, "owner", {"matchLabels": {"v": "2"}})],
    }
    assert scores(plugin(**objects), owned_pod("apps/v1", "ReplicaSet", app="web", v="2"), BUSY) == {"a": 100, "b": 100}


def test_system_defaults_score_nodes_without_a_zone_too() -> None:
    nodes = [node("c", labels={HOSTNAME: "c"}), *zone_nodes(a="1", e="")]
    snapshot = snapshot_of(*nodes, *(web(f"x{index}", node="c") for index in range(9)))
    services = [obj(Service, "web", {"app": "web"})]
    # On "e" the pods on "c" count: no zone, and the zone named by the empty string, are one.
    host, zone = (2 + 9 * 1.6094, 2 + 0.0), 4 + 9 * 1.3863
    raw = {"c": round(host[0]), "a": round(host[1] + 4), "e": round(host[1] + zone)}
    highest, least = max(raw.values()), min(raw.values())
    scores_expected = {name: 100 * (highest + least - score) // highest for name, score in raw.items()}
    assert scores(plugin(services=services), web("new"), snapshot) == scores_expected


def test_listed_defaults_can_be_hard_and_need_the_label() -> None:
    listed_args = PodTopologySpreadArgs((TopologySpreadConstraint(1, ZONE_LABEL, "DoNotSchedule"),), LIST_DEFAULTING)
    spreading = plugin(listed_args, services=[obj(Service, "web", {"app": "web"})])
    state = CycleState()
    assert spreading.pre_filter(state, web("new"), BUSY) == (None, None)
    assert spreading.filter(state, web("new"), BUSY.node(BUSY.row_of["a"])) == TOO_SKEWED
    assert scores(spreading, web("new"), BUSY) is None
    nothing = plugin(PodTopologySpreadArgs((), LIST_DEFAULTING))
    assert nothing.pre_filter(CycleState(), web("new"), BUSY) == (None, SKIP)


def test_a_pods_own_constraints_take_the_place_of_all_defaults() -> None:
    services = [obj(Service, "web", {"app": "web"})]
    assert scores(plugin(services=services), spread(), BUSY) is None


# ---------------------------------------------------------------- requeueing

QUEUE, SKIPPED = QueueingHint.QUEUE, QueueingHint.SKIP
TAINTS_COUNT = spread({"nodeTaintsPolicy": "Honor"})


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (None, web("x", node="a"), QUEUE),
        (web("x", node="a"), None, QUEUE),
        (None, web("x", nominated="a"), QUEUE),
        (None, web("x"), SKIPPED),
        (None, web("x", node="a", namespace="other"), SKIPPED),
        (None, pod("x", node="a"), SKIPPED),
        (web("x", node="a"), pod("x", node="a"), QUEUE),
        (web("x", node="a"), web("x", node="a"), SKIPPED),
        (pod("x", node="a"), pod("x", node="a", labels={"app": "db"}), SKIPPED),
        (web("new"), web("new", tolerations=[{"operator": "Exists"}]), SKIPPED),
        (web("new"), pod("new"), QUEUE),
    ],
)
def test_a_pod_helps_if_it_counts_or_comes_to_count_or_ceases_to(old: Any, new: Any, hint: QueueingHint) -> None:
    assert plugin().after_pod_change(spread(), old, new) is hint


def test_new_tolerations_help_where_taints_count() -> None:
    tolerant = web("new", tolerations=[{"operator": "Exists"}])
    assert plugin().after_pod_change(TAINTS_COUNT, web("new"), tolerant) is QUEUE


IN_1, IN_2, NOWHERE = node("n", zone="1"), node("n", zone="2"), node("n")
TAINTED = node("n", zone="1", taints=["gpu:NoSchedule"])


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (None, IN_1, QUEUE),
        (None, NOWHERE, SKIPPED),
        (IN_1, None, QUEUE),
        (NOWHERE, None, SKIPPED),
        (IN_1, IN_2, QUEUE),
        (IN_1, NOWHERE, QUEUE),
        (NOWHERE, IN_1, QUEUE),
        (IN_1, TAINTED, QUEUE),
        (IN_1, IN_1, SKIPPED),
        (NOWHERE, node("n", taints=["gpu:NoSchedule"]), SKIPPED),
    ],
)
def test_a_node_helps_if_it_comes_to_a_domain_leaves_one_or_changes_there(
    old: Any, new: Any, hint: QueueingHint
) -> None:
    assert plugin().after_node_change(spread(), old, new) is hint


def test_it_registers_for_pods_and_nodes() -> None:
    assert [
        (registration.event.resource.value, int(registration.event.action))
        for registration in plugin().events_to_register()
    ] == [
        ("AssignedPod", 1 | 2 | 512),
        ("TargetPod", 512 | 4096),
        ("Node", 1 | 2 | 8 | 16),
    ]
