"""Why a gang waits: who has a node, who would get one, and what the others lack."""

from __future__ import annotations

from typing import Any

import pytest

from podium.config import default_configuration
from podium.engine.gang_story import GangStory
from podium.insight import Cluster
from podium.plugins.contrib.coscheduling.plugin import Coscheduling
from tests.device_manifests import device_class, devices, exactly, resource_slice
from tests.gang_manifests import COSCHEDULING, MIN_MEMBER, UPSTREAM, group, member, members, with_coscheduling
from tests.manifests import ZONE, Json, node, pod

KINDS = pytest.mark.parametrize("kind", [COSCHEDULING, UPSTREAM])
CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "podium"}],
}


def load(*objects: Json, config: Json | None = None) -> Cluster:
    return Cluster.load(list(objects), config or CONFIG, [Coscheduling])


def story(cluster: Cluster, name: str) -> GangStory:
    (target,) = (pod for pod in cluster.pods if pod.metadata.name == name)
    answer = cluster.why(target).gang
    assert answer is not None
    return answer


@KINDS
def test_a_gang_that_waits_says_who_gets_a_node_and_what_the_others_lack(kind: str) -> None:
    answer = story(load(node("n1", "4"), node("n2", "4"), group(kind, 3), *members(kind, 3)), "train-1")
    assert (answer.gang, answer.api, answer.needed, answer.count) == ("default/train", kind, 3, 3)
    assert answer.would_get == {"default/train-0": "n1", "default/train-1": "n2"}
    assert answer.lacking == {"default/train-2": "0/2 nodes are available: 2 Insufficient cpu."}
    assert answer.missing == ((2, "Insufficient cpu (asks for 3 cpu, 1 left on n1)"),)
    assert (answer.short, answer.fits, answer.is_complete) == (1, False, False)
    assert "1 more must get a node, so none of those that wait starts" in answer.lines


@KINDS
def test_members_that_have_a_node_count(kind: str) -> None:
    bound_members = [member(kind, "train-0", node="n1"), member(kind, "train-1", node="n2")]
    waiting_members = [member(kind, "train-2"), member(kind, "train-3")]
    answer = story(load(node("n1", "4"), node("n2", "4"), group(kind, 3), *bound_members, *waiting_members), "train-3")
    assert answer.placed == {"default/train-0": "n1", "default/train-1": "n2"}
    assert list(answer.lacking) == ["default/train-2", "default/train-3"]
    assert "default/train-0, default/train-1 have a node: n1, n2" in answer.lines


@KINDS
def test_a_gang_that_fits(kind: str) -> None:
    cluster = load(node("n1", "16"), group(kind, 3), *members(kind, 3))
    answer = story(cluster, "train-0")
    assert answer.fits
    assert answer.lines[-1 if kind == COSCHEDULING and not answer.note else -2] == "the whole gang fits"
    assert not cluster.pods[0].node_name


@KINDS
def test_a_gang_that_lacks_pods_says_so(kind: str) -> None:
    answer = story(load(node("n1", "16"), group(kind, 5), *members(kind, 3)), "train-0")
    assert answer.problem == "only 3 of the 5 pods that it needs exist"
    assert not answer.fits


def test_a_group_that_does_not_exist() -> None:
    answer = story(load(node("n1"), *members(UPSTREAM, 1)), "train-0")
    assert answer.problem == "the PodGroup default/train does not exist, and no member is tried before it does"
    answer = story(load(node("n1"), *members(COSCHEDULING, 1)), "train-0")
    assert answer.problem.startswith("neither a PodGroup default/train nor an annotation")


def test_a_gang_without_a_podgroup_may_say_its_size_itself() -> None:
    pods = members(COSCHEDULING, 3)
    for entry in pods:
        entry["metadata"]["annotations"] = {MIN_MEMBER: "3"}
    assert story(load(node("n1", "4"), *pods), "train-0").needed == 3
    pods[0]["metadata"]["annotations"] = {MIN_MEMBER: "many"}
    assert "is not a positive number of pods" in story(load(node("n1", "4"), *pods), "train-0").problem


def test_the_time_that_members_wait_is_the_groups_or_the_profiles() -> None:
    pods = members(COSCHEDULING, 2)
    config = with_coscheduling(permitWaitingTimeSeconds=90)
    own = group(COSCHEDULING, 2, scheduleTimeoutSeconds=30)
    assert story(load(node("n1", "4"), own, *pods, config=config), "train-0").wait_s == 30
    answer = story(load(node("n1", "4"), group(COSCHEDULING, 2), *pods, config=config), "train-0")
    assert (answer.wait_s, answer.note) == (90, "")
    assert "a member that gets a node waits for the others for 90 s at most" in answer.lines[-1]


def test_members_of_a_group_of_kubernetes_hold_nothing_while_they_wait() -> None:
    answer = story(load(node("n1", "4"), group(UPSTREAM, 2), *members(UPSTREAM, 2)), "train-0")
    assert "no member holds a node meanwhile: the whole gang is tried again after its backoff" in answer.lines
    assert "GenericWorkload" in answer.note


def test_a_gang_in_one_topology_domain() -> None:
    nodes = [node(f"n{index}", "4", labels={ZONE: f"z{index % 2}"}) for index in range(3)]
    one_domain = {"topology": [{"key": ZONE}]}
    answer = story(load(*nodes, group(UPSTREAM, 3, schedulingConstraints=one_domain), *members(UPSTREAM, 3)), "train-0")
    assert (answer.domain, set(answer.would_get.values())) == (f"{ZONE}=z0", {"n0", "n2"})
    bound_member = member(UPSTREAM, "train-0", node="n1")
    waiting = members(UPSTREAM, 3)[1:]
    answer = story(
        load(*nodes, group(UPSTREAM, 3, schedulingConstraints=one_domain), bound_member, *waiting), "train-1"
    )
    assert (answer.domain, answer.would_get) == (f"{ZONE}=z1", {})


def test_pods_that_need_no_others_have_no_gang() -> None:
    basic = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "train"}}
    basic["spec"] = {"schedulingPolicy": {"basic": {}}}  # type: ignore[assignment]
    cluster = load(node("n1"), basic, *members(UPSTREAM, 1), pod("web"))
    assert [cluster.why(pod).gang for pod in cluster.pods] == [None, None]


def test_a_gated_member_says_what_it_waits_for() -> None:
    gated_pod = member(COSCHEDULING, "train-1", schedulingGates=[{"name": "quota"}])
    answer = story(load(node("n1"), group(COSCHEDULING, 2), member(COSCHEDULING, "train-0"), gated_pod), "train-0")
    assert answer.lacking == {"default/train-1": "waiting for scheduling gates: [quota]"}


def test_a_question_does_not_make_the_gang_back_off() -> None:
    pods = members(COSCHEDULING, 2, cpu="20")
    cluster = load(node("n1", "4"), group(COSCHEDULING, 2), *pods, config=with_coscheduling())
    for _ in range(2):
        answer = cluster.why(cluster.pods[0])
        assert [(group.plugin, group.text) for group in answer.groups] == [("NodeResourcesFit", "Insufficient cpu")]


def test_the_profiles_own_configuration_may_be_the_default() -> None:
    assert Cluster.load([node("n1")], default_configuration()).why(pod("p", scheduler="default-scheduler")).gang is None


def test_json_has_the_story() -> None:
    cluster = load(node("n1", "4"), group(COSCHEDULING, 2), *members(COSCHEDULING, 2))
    answer: Any = cluster.why(cluster.pods[0]).as_dict()["gang"]
    assert (answer["needed"], answer["fits"], answer["would_get"]) == (2, False, {"default/train-0": "n1"})
    assert answer["missing"] == [{"count": 1, "text": "Insufficient cpu (asks for 3 cpu, 1 left on n1)"}]


def test_preemption_for_a_member_is_described() -> None:
    cluster = load(
        node("n1", "4"),
        pod("small", "2", node="n1"),
        group(COSCHEDULING, 1),
        member(COSCHEDULING, "train-0", priority=10),
    )
    answer = story(cluster, "train-0")
    sentence = "preemption would make room for default/train-0 on n1 by evicting default/small"
    assert (answer.preemption, f"  {sentence}" in answer.lines, answer.as_dict()["preemption"]) == (
        sentence,
        True,
        sentence,
    )


def test_a_member_of_another_scheduler_is_named_as_such() -> None:
    foreign_member = member(COSCHEDULING, "train-1", scheduler="other")
    cluster = load(node("n1"), group(COSCHEDULING, 2), member(COSCHEDULING, "train-0"), foreign_member)
    answer = story(cluster, "train-0")
    assert "no profile is named 'other'" in answer.lacking["default/train-1"]
    assert not cluster.fixes(cluster.pods[0]).fixes


def test_members_have_claims_of_their_own() -> None:
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpus", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [exactly(count=3)]}}},
    }
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
    slices = [resource_slice(name, devices(4), node=name) for name in ("n1", "n2")]
    pods = members(COSCHEDULING, 3, resourceClaims=claims)
    cluster = load(node("n1"), node("n2"), device_class("gpu"), template, *slices, group(COSCHEDULING, 3), *pods)
    answer = story(cluster, "train-0")
    assert len(answer.would_get) == 2
    ((count, text),) = answer.missing
    assert (count, "asks for 3 devices of class gpu: 4 of 4 match, 3 taken, 1 free" in text) == (2, True)


def test_a_gang_whose_pods_have_another_priority_than_their_group_says_so() -> None:
    objects = [node("n1", "16"), group(UPSTREAM, 2), *members(UPSTREAM, 2, priority=5)]
    answer = story(load(*objects), "train-0")
    assert answer.problem == (
        "all pods in a single pod group should have the same priority as the pod group's priority, got 5 and 0"
    )
    assert story(Cluster.load(objects, CONFIG, [Coscheduling], decide_as="1.36"), "train-0").problem == ""
