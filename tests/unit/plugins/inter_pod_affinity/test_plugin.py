from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.cluster import Snapshot
from podium.config import NEWEST, RELEASES
from podium.config.args import InterPodAffinityArgs
from podium.framework.contract.cluster_event import QueueingHint
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.status import SKIP, Code, Status, unresolvable, unschedulable
from podium.objects import resource_types
from podium.objects.core import Node, Pod
from podium.objects.workloads import Namespace
from podium.plugins.inter_pod_affinity.plugin import InterPodAffinity
from tests.builders import ZONE_LABEL, node, pod, snapshot_of
from tests.unit.plugins.clusters import RecordingHandle, filtered_one_by_one, normalize

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NOT_NEAR = unresolvable("node(s) didn't match pod affinity rules")
TOO_NEAR = unschedulable("node(s) didn't match pod anti-affinity rules")
UNWELCOME = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")
QUEUES, SKIPS = QueueingHint.QUEUE, QueueingHint.SKIP
BROKEN = {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "Like"}]}}
NODES = (node("a", zone="1"), node("b", zone="1"), node("c", zone="2"), node("d"))


def term(app: str = "web", **content: Any) -> dict[str, Any]:
    return {"topologyKey": ZONE_LABEL, "labelSelector": {"matchLabels": {"app": app}}, **content}


def weighted_term(weight: int, app: str = "web", **content: Any) -> dict[str, Any]:
    return {"weight": weight, "podAffinityTerm": term(app, **content)}


def affine(
    name: str = "new",
    *,
    near: Any = (),
    far: Any = (),
    likes: Any = (),
    dislikes: Any = (),
    **kwargs: Any,
) -> Pod:
    rules = {
        "podAffinity": {REQUIRED: list(near), PREFERRED: list(likes)},
        "podAntiAffinity": {REQUIRED: list(far), PREFERRED: list(dislikes)},
    }
    return pod(name, affinity=rules, **kwargs)


def web(name: str, **kwargs: Any) -> Pod:
    return pod(name, **{"labels": {"app": "web"}, **kwargs})


def plugin(
    args: InterPodAffinityArgs | None = None, minor: str = NEWEST.minor, **namespaces: dict[str, str]
) -> InterPodAffinity:
    namespace_objects = [
        msgspec.convert({"metadata": {"name": name, "labels": labels}}, Namespace)
        for name, labels in namespaces.items()
    ]
    handle = RecordingHandle(objects={resource_types.NAMESPACES: namespace_objects}, release=RELEASES[minor])
    return InterPodAffinity(args or InterPodAffinityArgs(), handle)


def rejections_of(incoming: Pod, *pods: Pod, by: InterPodAffinity | None = None) -> dict[str, Status]:
    snapshot, state, affinity = snapshot_of(*NODES, *pods), CycleState(), by or plugin()
    _, status = affinity.pre_filter(state, incoming, snapshot)
    if status is SKIP:
        return {}
    return filtered_one_by_one(affinity, incoming, snapshot, state)


def scores(incoming: Pod, *pods: Pod, by: InterPodAffinity | None = None) -> dict[str, int] | None:
    snapshot, state, affinity = snapshot_of(*NODES, *pods), CycleState(), by or plugin()
    status = affinity.pre_score(state, incoming, snapshot, snapshot.order)
    if status is not None:
        assert status is SKIP
        return None
    return normalize(affinity, incoming, snapshot, state)


# ---------------------------------------------------------------- filtering


def test_a_pod_goes_where_the_pods_are_that_it_must_be_near_to() -> None:
    assert rejections_of(affine(near=[term()]), web("x", node="a")) == {"c": NOT_NEAR, "d": NOT_NEAR}


def test_one_pod_must_meet_all_the_terms() -> None:
    double_pod = affine(near=[term("web"), term("db")])
    pods = web("x", node="a"), pod("y", labels={"app": "db"}, node="a")
    assert set(rejections_of(double_pod, *pods)) == set("abcd")


def test_the_first_of_a_kind_may_go_anywhere_in_the_topology() -> None:
    first = affine(near=[term()], labels={"app": "web"})
    assert rejections_of(first) == {"d": NOT_NEAR}
    assert set(rejections_of(first, web("x", node="c"))) == set("abd")
    assert set(rejections_of(affine(near=[term()]))) == set("abcd")


def test_a_match_outside_the_topology_does_not_make_a_pod_the_second_of_its_kind() -> None:
    assert rejections_of(affine(near=[term()], labels={"app": "web"}), web("x", node="d")) == {"d": NOT_NEAR}


def test_a_pod_stays_away_from_those_it_must_be_far_from() -> None:
    assert rejections_of(affine(far=[term()]), web("x", node="a")) == {"a": TOO_NEAR, "b": TOO_NEAR}
    assert rejections_of(affine(far=[term()]), web("x", node="d")) == {}


def test_running_pods_keep_those_away_that_they_must_be_far_from() -> None:
    minding = affine("x", far=[term()], node="a")
    assert rejections_of(web("new"), minding) == {"a": UNWELCOME, "b": UNWELCOME}
    assert rejections_of(pod("new", labels={"app": "db"}), minding) == {}


def test_affinity_is_looked_at_first_and_the_running_pods_terms_last() -> None:
    picky = affine(near=[term("db")], far=[term("web")], labels={"app": "web"})
    pods = (
        affine("x", far=[term()], node="a", labels={"app": "web"}),
        affine("y", far=[term()], node="c"),
        pod("z", labels={"app": "db"}, node="a"),
    )
    assert rejections_of(picky, *pods) == {"a": TOO_NEAR, "b": TOO_NEAR, "c": NOT_NEAR, "d": NOT_NEAR}


def test_pods_that_are_going_away_count() -> None:
    assert rejections_of(affine(far=[term()]), web("x", node="a", terminating=True)) == {"a": TOO_NEAR, "b": TOO_NEAR}


def test_a_term_means_its_pods_own_namespace_unless_it_says_otherwise() -> None:
    foreign_pod = web("x", node="a", namespace="other")
    assert rejections_of(affine(far=[term()]), foreign_pod) == {}
    assert set(rejections_of(affine(far=[term(namespaces=["other"])]), foreign_pod)) == set("ab")
    assert set(rejections_of(affine(far=[term(namespaceSelector={})]), foreign_pod)) == set("ab")


def test_namespaces_can_be_selected_by_their_labels() -> None:
    team = {"matchLabels": {"team": "x"}}
    selective = affine(far=[term(namespaceSelector=team)])
    foreign_pod = web("x", node="a", namespace="other")
    assert set(rejections_of(selective, foreign_pod, by=plugin(other={"team": "x"}))) == set("ab")
    assert rejections_of(selective, foreign_pod, by=plugin(other={"team": "y"})) == {}
    assert rejections_of(selective, foreign_pod) == {}


@pytest.mark.parametrize(("minor", "nodes"), [("1.37", set()), ("1.36", set("ab"))])
def test_a_selector_that_only_excludes_namespaces_meant_them_all_before_1_37(minor: str, nodes: set[str]) -> None:
    without_team = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
    foreign_pod = web("x", node="a", namespace="other")
    selective = affine(far=[term(namespaceSelector=without_team)])
    assert set(rejections_of(selective, foreign_pod, by=plugin(minor=minor, other={"team": "x"}))) == nodes
    assert set(rejections_of(selective, foreign_pod, by=plugin(minor=minor, other={}))) == set("ab")


def test_running_pods_terms_look_at_the_labels_of_the_incoming_pods_namespace() -> None:
    without_team = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
    minding = affine("x", far=[term(namespaceSelector=without_team)], node="a")
    assert set(rejections_of(web("new"), minding)) == set("ab")
    assert rejections_of(web("new"), minding, by=plugin(default={"team": "x"})) == {}


def test_filtering_is_skipped_where_nobody_demands_anything() -> None:
    affinity, state = plugin(), CycleState()
    keyless = snapshot_of(*NODES, affine("x", far=[term(topologyKey="rack")], node="a"))
    assert affinity.pre_filter(state, web("new"), keyless) == (None, SKIP)
    assert affinity.pre_filter(state, affine(likes=[weighted_term(1)]), keyless) == (None, SKIP)
    assert affinity.pre_filter(state, affine(far=[term()]), keyless) == (None, None)


def test_a_broken_term_rejects_the_pod_and_leaves_a_running_one_with_its_other_terms() -> None:
    _, status = plugin().pre_filter(CycleState(), affine(near=[term(**BROKEN)]), snapshot_of(*NODES))
    assert status is not None
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message.startswith("parsing pod: requiredAffinityTerms: matchExpressions[0].operator")
    two = affine(near=[term(**BROKEN)], far=[term(**BROKEN)])
    _, status = plugin().pre_filter(CycleState(), two, snapshot_of(*NODES))
    assert status is not None
    assert status.message.startswith("parsing pod: [requiredAffinityTerms: ")
    closes: list[str] = []
    snapshot = snapshot_of(
        *NODES, affine("x", far=[term(), term(**BROKEN)], node="a"), report=lambda _, error: closes.append(error.path)
    )
    affinity, state = plugin(), CycleState()
    assert affinity.pre_filter(state, web("new"), snapshot) == (None, None)
    assert filtered_one_by_one(affinity, web("new"), snapshot, state) == rejections_of(
        web("new"), affine("x", far=[term()], node="a")
    )
    assert closes == [
        "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[1].matchExpressions[0].operator"
    ]
    assert list(snapshot.closed) == [snapshot.row_of["a"]]


def test_a_pod_tried_out_brings_its_own_terms() -> None:
    snapshot, state, affinity = snapshot_of(*NODES), CycleState(), plugin()
    incoming = affine(far=[term("db")], labels={"app": "web"})
    assert affinity.pre_filter(state, incoming, snapshot) == (None, None)
    trial = state.clone()
    minding = affine("x", far=[term()])
    affinity.pre_filter_extensions().add_pod(trial, incoming, minding, snapshot.node(snapshot.row_of["c"]))
    assert filtered_one_by_one(affinity, incoming, snapshot, trial) == {"c": UNWELCOME}
    assert filtered_one_by_one(affinity, incoming, snapshot, state) == {}
    affinity.pre_filter_extensions().remove_pod(trial, incoming, minding, snapshot.node(snapshot.row_of["c"]))
    assert filtered_one_by_one(affinity, incoming, snapshot, trial) == {}


# ---------------------------------------------------------------- scoring


def test_preferences_weigh_for_and_against() -> None:
    wishful = affine(likes=[weighted_term(3)], dislikes=[weighted_term(1, "db")])
    assert scores(wishful, web("x", node="c"), pod("y", labels={"app": "db"}, node="a")) == {
        "a": 0,
        "b": 0,
        "c": 100,
        "d": 25,
    }


def test_preferences_of_running_pods_count_too() -> None:
    assert scores(web("new"), affine("x", likes=[weighted_term(2)], node="a")) == {"a": 100, "b": 100, "c": 0, "d": 0}
    assert scores(web("new"), affine("x", dislikes=[weighted_term(2)], node="a")) == {
        "a": 0,
        "b": 0,
        "c": 100,
        "d": 100,
    }


def test_required_terms_of_running_pods_count_with_the_configured_weight() -> None:
    following, liking = affine("x", near=[term()], node="a"), affine("y", likes=[weighted_term(4)], node="c")
    assert scores(web("new"), following, liking) == {"a": 25, "b": 25, "c": 100, "d": 0}
    heavy = plugin(InterPodAffinityArgs(hard_pod_affinity_weight=8))
    assert scores(web("new"), following, liking, by=heavy) == {"a": 100, "b": 100, "c": 50, "d": 0}
    assert scores(web("new"), following, by=plugin(InterPodAffinityArgs(hard_pod_affinity_weight=0))) is None


def test_scoring_is_skipped_only_where_no_term_means_anybody() -> None:
    assert scores(affine(likes=[weighted_term(1)]), pod("x", node="a")) is None
    assert scores(affine(likes=[weighted_term(1)]), web("x", node="d")) is None
    evened_out = affine(likes=[weighted_term(1)], dislikes=[weighted_term(1)])
    assert scores(evened_out, web("x", node="a")) == dict.fromkeys("abcd", 0)


def test_preferences_of_running_pods_can_be_ignored_for_pods_without_their_own() -> None:
    ignoring = plugin(InterPodAffinityArgs(ignore_preferred_terms_of_existing_pods=True))
    liking = affine("x", likes=[weighted_term(1)], node="a")
    assert scores(web("new"), liking, by=ignoring) is None
    wishful = affine(likes=[weighted_term(1, "db")], labels={"app": "web"})
    assert scores(wishful, liking, by=ignoring) == {"a": 100, "b": 100, "c": 0, "d": 0}


def test_a_broken_preference_fails_the_scoring() -> None:
    status = plugin().pre_score(CycleState(), affine(likes=[weighted_term(1, **BROKEN)]), Snapshot(), Snapshot().order)
    assert status is not None
    assert status.code is Code.ERROR
    assert status.message.startswith("failed to parse pod: preferredAffinityTerms: ")


# ---------------------------------------------------------------- requeueing

QUEUE, SKIPPED = QueueingHint.QUEUE, QueueingHint.SKIP
NEAR, FAR = affine(near=[term()]), affine(far=[term()])
WEB, DB = web("x", node="a"), pod("x", labels={"app": "db"}, node="a")


@pytest.mark.parametrize(
    ("waiting", "old", "new", "hint"),
    [
        (NEAR, None, WEB, QUEUE),
        (NEAR, None, DB, SKIPPED),
        (NEAR, None, web("x"), SKIPPED),
        (NEAR, None, web("x", nominated="a"), QUEUE),
        (NEAR, DB, WEB, QUEUE),
        (NEAR, WEB, DB, SKIPPED),
        (NEAR, WEB, None, SKIPPED),
        (FAR, None, WEB, SKIPPED),
        (FAR, WEB, None, QUEUE),
        (FAR, DB, None, SKIPPED),
        (FAR, WEB, DB, QUEUE),
        (FAR, DB, WEB, SKIPPED),
        (web("new"), affine("x", far=[term()], node="a"), None, QUEUE),
        (pod("new"), affine("x", far=[term()], node="a"), None, SKIPPED),
        (web("new"), web("new"), pod("new"), QUEUE),
        (affine(near=[term(), term("db")]), None, WEB, SKIPPED),
    ],
)
def test_a_pod_helps_if_it_meets_the_terms_or_no_longer_breaks_them(
    waiting: Pod, old: Pod | None, new: Pod | None, hint: QueueingHint
) -> None:
    assert plugin().after_pod_change(waiting, old, new) is hint


IN_1, IN_2, NOWHERE = node("n", zone="1"), node("n", zone="2"), node("n")


XY, X = {"x": "1", "y": "1"}, {"x": "1"}


def other_pod(labels: dict[str, str], **fields: Any) -> Pod:
    return pod("other", labels=labels, node="a", **fields)


def keeping_off(*labels: str) -> list[dict[str, Any]]:
    """One required term for each label."""
    return [term(labelSelector={"matchLabels": {label: "1"}}) for label in labels]


@pytest.mark.parametrize(
    ("waiting", "old", "new", "hints"),
    [
        # It matches one of two terms of the waiting pod, and goes.
        (affine(far=keeping_off("x", "y")), other_pod(X), None, {"1.36": SKIPS, "1.37": QUEUES}),
        # It matched both, and still matches one.
        (affine(far=keeping_off("x", "y")), other_pod(XY), other_pod(X), {"1.36": QUEUES, "1.37": SKIPS}),
        # The waiting pod matches one of two terms of the pod that goes.
        (
            pod("new", labels=X),
            affine("other", far=keeping_off("x", "y"), node="a"),
            None,
            {"1.36": SKIPS, "1.37": QUEUES},
        ),
    ],
)
@pytest.mark.parametrize("minor", RELEASES)
def test_one_anti_affinity_term_that_matches_is_in_the_way_since_1_37(
    waiting: Pod, old: Pod, new: Pod | None, hints: dict[str, QueueingHint], minor: str
) -> None:
    assert plugin(minor=minor).after_pod_change(waiting, old, new) is hints[minor]


@pytest.mark.parametrize(
    ("waiting", "old", "new", "hint"),
    [
        (NEAR, None, IN_1, QUEUE),
        (NEAR, None, NOWHERE, SKIPPED),
        (NEAR, NOWHERE, IN_1, QUEUE),
        (NEAR, IN_1, IN_2, QUEUE),
        (NEAR, IN_1, NOWHERE, SKIPPED),
        (NEAR, IN_1, IN_1, SKIPPED),
        (FAR, None, NOWHERE, QUEUE),
        (FAR, IN_1, NOWHERE, QUEUE),
        (FAR, IN_1, IN_2, QUEUE),
        (FAR, NOWHERE, IN_1, SKIPPED),
        (web("new"), None, IN_1, SKIPPED),
    ],
)
def test_a_node_helps_if_it_moves_in_the_topology_of_a_term(
    waiting: Pod, old: Node | None, new: Node, hint: QueueingHint
) -> None:
    assert plugin().after_node_change(waiting, old, new) is hint


def test_a_broken_term_leaves_the_hint_open() -> None:
    with pytest.raises(ValueError, match="requiredAffinityTerms"):
        plugin().after_node_change(affine(near=[term(**BROKEN)]), None, IN_1)


def test_it_registers_for_pods_and_nodes() -> None:
    assert [
        (registration.event.resource.value, int(registration.event.action))
        for registration in plugin().events_to_register()
    ] == [
        ("AssignedPod", 1 | 2 | 512),
        ("TargetPod", 512),
        ("Node", 1 | 8),
    ]
