"""What comes of the cluster by itself: Jobs that replace their pods, and which changes wake which pods."""

from __future__ import annotations

from typing import Any

import pytest

import podium
from podium.engine.placement import Placement
from podium.insight.rehearsal import Rehearsal
from tests.device_manifests import claiming, device_class, devices, exactly, held_claim, resource_claim, resource_slice
from tests.gang_manifests import COSCHEDULING, UPSTREAM, group, members, with_coscheduling
from tests.manifests import HOSTNAME, Json, node, pod
from tests.unit.insight.test_outlook import AT, EARLIER, SCHEDULER, only, outlook, running, waiting
from tests.workload_manifests import claim, claims_from, device_claim_template, storage, with_owner, workload

START_S = 1_772_366_400.0
"""The time of `AT`."""


def job(**spec: Any) -> Json:
    template = {"spec": {"containers": pod("any", "3")["spec"]["containers"], "restartPolicy": "Never", "priority": -1}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "report", "namespace": "default", "uid": "u"},
        "spec": {"template": template, "completions": 1, **spec},
    }


def pod_of_job(**fields: Any) -> Json:
    manifest = running("report-x", priority=-1, restartPolicy="Never", **fields)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "report", "uid": "u", "controller": True}
    manifest["metadata"]["ownerReferences"] = [owner]
    return manifest


def times_of_new_pods(*objects: Json) -> list[int]:
    """When the pods that controllers create come, in seconds from the start."""
    times: list[int] = []

    class Watched(Rehearsal):
        def create(self, pod: Any) -> None:
            times.append(round(self.clock.now() - self.start_s))
            super().create(pod)

    rehearsal = Watched(podium.Cluster.load(objects), start_s=START_S)
    rehearsal.play_queue()
    rehearsal.play_ends()
    return times


def test_a_job_replaces_a_preempted_pod_after_ten_seconds_though_it_still_ends() -> None:
    assert times_of_new_pods(node("n1", "4"), job(), pod_of_job(), waiting("web", priority=5)) == [10]


@pytest.mark.parametrize("policy", [{"podReplacementPolicy": "Failed"}, {"podFailurePolicy": {"rules": []}}])
def test_with_the_replacement_policy_failed_it_waits_for_the_end_of_the_pod_first(policy: Json) -> None:
    assert times_of_new_pods(node("n1", "4"), job(podReplacementPolicy="Failed"), pod_of_job(), waiting("web")) == [40]
    rule = {"podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "Other"}]}]}}
    objects = [node("n1", "4"), job(**policy, **({} if "podFailurePolicy" in policy else rule)), pod_of_job()]
    assert len(times_of_new_pods(*objects, waiting("web"))) == 1


def test_a_job_over_its_limit_of_failures_replaces_nothing_and_ends_its_other_pods() -> None:
    neighbour = running("report-y", node="n2", priority=9, restartPolicy="Never")
    neighbour["metadata"]["ownerReferences"] = pod_of_job()["metadata"]["ownerReferences"]
    limited = job(backoffLimit=0, parallelism=2, completions=2)
    objects = [node("n1", "4"), node("n2", "4"), limited, pod_of_job(), neighbour, waiting("web"), waiting("next")]
    assert times_of_new_pods(*objects) == []
    (entry,) = outlook("default/web", *objects).pods
    assert (entry.verdict.value, entry.node) == ("later", "n2")
    assert [end.reason for end in entry.ends] == ["the backoffLimit of Job default/report"]


@pytest.mark.parametrize(("action", "count"), [("Ignore", 1), ("FailJob", 0)])
def test_a_rule_on_the_condition_of_a_preemption_decides_about_the_job(action: str, count: int) -> None:
    rules = [{"action": action, "onPodConditions": [{"type": "DisruptionTarget"}]}]
    limited = job(backoffLimit=0 if action == "Ignore" else 6, podFailurePolicy={"rules": rules})
    assert len(times_of_new_pods(node("n1", "4"), limited, pod_of_job(), waiting("web"))) == count


def test_a_pod_of_a_job_that_is_being_deleted_has_failed_when_it_was_deleted() -> None:
    ending = pod_of_job()
    ending["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:24Z"
    assert times_of_new_pods(node("n1", "4"), job(), ending) == [4]


def test_a_workload_that_comes_wakes_no_pod_that_waits() -> None:
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "app", "namespace": "default"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "app"}},
            "template": {
                "metadata": {"labels": {"app": "app"}},
                "spec": {"containers": pod("any", "3")["spec"]["containers"]},
            },
        },
    }
    objects = [node("n1", "4"), running("other", activeDeadlineSeconds=4000), waiting("old")]
    # The older pod is the first to be tried when the other one ends.
    (entry,) = outlook(deployment, *objects).pods
    assert (entry.verdict.value, entry.node) == ("later", "")


def test_a_preemption_is_not_waited_for_where_another_pod_ends_before() -> None:
    ending = running("ending", node="n2", priority=9)
    ending["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:05Z"
    objects = [node("n1", "4"), node("n2", "4"), running("low", priority=-1), ending]
    (entry,) = outlook(waiting("web"), *objects).pods
    assert (entry.verdict.value, entry.node, entry.by) == ("later", "n2", "2026-03-01T12:00:05Z")


def test_the_pods_that_it_must_be_near_may_be_the_last_to_end() -> None:
    near = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": HOSTNAME}
            ]
        }
    }
    partner = running("db", "1", labels={"app": "db"}, restartPolicy="Never")
    objects = [node("n1", "4"), partner, running("other", "3", restartPolicy="Never")]
    (entry,) = outlook(waiting("web", affinity=near), *objects).pods
    assert {end.pod for end in entry.ends} == {"default/db", "default/other"}


def attempts_in(*objects: Json) -> list[str]:
    """The keys of the pods that are tried until the last end that is announced, in order."""
    attempts: list[str] = []

    class Watched(Rehearsal):
        def _note(self, placement: Placement) -> bool:
            attempts.append(placement.pod.key)
            return super()._note(placement)

    rehearsal = Watched(podium.Cluster.load(objects), start_s=START_S)
    rehearsal.play_queue()
    rehearsal.play_ends()
    return attempts


def test_the_end_of_a_pod_of_a_job_wakes_others_once_though_the_job_counts_it_later() -> None:
    ending = job(activeDeadlineSeconds=60)
    ending["status"] = {"startTime": AT}
    assert attempts_in(node("n1", "4"), ending, pod_of_job(), waiting("web", "9")) == ["default/web"] * 2


def test_the_placement_of_a_pod_with_volumes_wakes_none_that_only_lacks_room() -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    large, small = (waiting(name, cpu, volumes=volumes) for name, cpu in (("large", "9"), ("small", "1")))
    assert attempts_in(node("n1", "4"), *storage("9Gi"), claim(), large, small) == ["default/large", "default/small"]


def test_devices_are_free_only_after_others_have_been_tried_where_their_pod_has_ended() -> None:
    holder = running("holder", "4", resourceClaims=claiming("held"))
    holder["metadata"] |= {"uid": "uid-holder", "deletionTimestamp": "2026-03-01T12:00:20Z"}
    objects = [
        *(
            node("n1", "4"),
            device_class(),
            resource_slice("n1", devices(1), node="n1"),
            device_claim_template("one", exactly()),
        ),
        *(holder, held_claim("held", {"n1": ["gpu-0"]}, ["holder"])),
        waiting("first", "2", EARLIER, resourceClaims=claims_from("one")),
        waiting("second", "3", AT),
    ]
    cluster = podium.Cluster.load(objects)
    assert [only(cluster.outlook(f"default/{name}", at=AT)).by for name in ("first", "second")] == [
        "",
        "2026-03-01T12:00:20Z",
    ]


def test_devices_are_free_before_a_pod_ends_that_was_deleted_at_another_time() -> None:
    holder = running("holder", "4", resourceClaims=claiming("held"))
    holder["metadata"] |= {"uid": "uid-holder", "deletionTimestamp": "2026-03-01T12:00:30Z"}
    objects = [
        *(node("n1", "4"), device_class(), resource_slice("n1", devices(1), node="n1")),
        *(holder, held_claim("held", {"n1": ["gpu-0"]}, ["holder"]), device_claim_template("one", exactly())),
        *(node("n2", "4"), running("victim", "4", "n2", priority=-1)),
        waiting("preemptor", "4", nodeSelector={HOSTNAME: "n2"}, priority=10),
        waiting("first", "2", resourceClaims=claims_from("one"), priority=5),
        waiting("second", "4", priority=-200, preemptionPolicy="Never", terminationGracePeriodSeconds=7),
    ]
    # The victim's end in between would find the second pod in the first one's way, and still no device free.
    entry = only(outlook("default/first", *objects))
    assert (entry.by, list(entry.victims)) == ("2026-03-01T12:00:37Z", ["default/second"])


def test_a_pod_whose_claim_another_one_allocates_loses_its_nomination() -> None:
    ending = running("ending", "4", "n2")
    ending["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:20Z"
    objects = [
        *(node("n1", "4"), running("low", "2", priority=-1), node("n2", "4"), ending, device_class()),
        *(resource_slice(name, devices(1), node=name) for name in ("n1", "n2")),
        resource_claim("shared", exactly()),
        waiting("a", priority=10, preemptionPolicy="Never", resourceClaims=claiming("shared")),
        waiting("b", since=EARLIER, resourceClaims=claiming("shared")),
        waiting("c", "2", AT, preemptionPolicy="Never"),
    ]
    cluster = podium.Cluster.load(objects)
    assert only(cluster.outlook("default/a", at=AT)).node == "n2"
    assert only(cluster.outlook("default/c", at=AT)).by == "2026-03-01T12:00:20Z"


def test_a_pod_takes_the_room_that_is_kept_for_another_until_that_one_loses_its_nomination() -> None:
    ending = running("low", "3800m", priority=-1)
    ending["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:20Z"
    first = waiting("first", "2800m", priority=50, preemptionPolicy="Never")
    small, large = waiting("small", "1", since=EARLIER), waiting("large", "2800m", since=AT)
    entry = only(outlook("default/small", node("n1", "4"), ending, first, small, large))
    assert (entry.node, entry.by) == ("n1", "2026-03-01T12:00:20Z")


def test_the_end_of_a_nomination_wakes_no_pod_of_higher_priority() -> None:
    ending = running("low", "3800m", priority=-1)
    ending["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:20Z"
    first = waiting("first", "2800m", priority=50, preemptionPolicy="Never")
    second = waiting("second", "2800m", priority=40, preemptionPolicy="Never")
    third, last = waiting("third", "2800m", since=EARLIER), waiting("last", "2800m", since=AT)
    keys = attempts_in(node("n1", "4"), ending, first, second, third, last)
    # Of the same priority it wakes all, once those that were ready have been tried.
    attempts = [f"default/{name}" for name in ("first", "second", "third", "last")]
    assert keys == [*attempts, *attempts, "default/third", "default/last"]


def test_a_pod_whose_nomination_gives_way_to_a_preemption_keeps_no_room() -> None:
    old = with_owner(running("front-x", "2", priority=-1, labels={"app": "front"}, host_port=80), "ReplicaSet", "front")
    template = {"priority": 100, "host_port": 80, "schedulerName": SCHEDULER}
    front = workload("ReplicaSet", "front", 1, pod_spec=template, cpu="1")
    small = waiting("small", "1", since=EARLIER)
    large = waiting("large", "4", since=AT, status={"phase": "Pending", "nominatedNodeName": "n1"})
    # The large pod preempts the old one, whose replacement is of higher priority and takes the node for itself.
    entry = only(outlook("default/small", node("n1", "4"), old, front, small, large))
    assert (entry.verdict.value, entry.node) == ("now", "n1")


def test_pods_that_come_preempt_later_than_those_that_wait() -> None:
    objects = [
        *(node("n1", "4"), running("one", "4", priority=-1)),
        *(node("n2", "4"), running("two", "4", "n2", priority=-2)),
        waiting("early", nodeSelector={HOSTNAME: "n1"}),
    ]
    cluster = podium.Cluster.load(objects)
    cluster.outlook("default/early", at=AT)
    assert only(cluster.outlook(waiting("late", priority=5), at=AT)).node == "n1"


def test_no_end_brings_the_attempt_at_a_gang_forward() -> None:
    gang = members(UPSTREAM, 2, cpu="2", scheduler="default-scheduler", preemptionPolicy="Never")
    objects = [node("n1", "4"), running("other", "4", activeDeadlineSeconds=4000), group(UPSTREAM, 2), *gang]
    answers = outlook("default/train-0", *objects).pods
    assert [entry.by for entry in answers] == ["2026-03-01T12:07:19Z"] * 2
    quick = waiting("quick", "1")
    assert only(outlook("default/quick", *objects, quick)).by == "2026-03-01T12:07:10Z"
    assert {entry.by for entry in outlook("default/train-0", *objects, quick).pods} == {""}


def test_a_gang_of_coscheduling_waits_until_its_backoff_ends() -> None:
    gang = members(COSCHEDULING, 2, cpu="2", scheduler="podium", priority=5)
    objects = [node("n1", "4"), running("other", "4", activeDeadlineSeconds=4000), group(COSCHEDULING, 2), *gang]
    answer = podium.Cluster.load(objects, with_coscheduling()).outlook("default/train-0", at=AT)
    assert [entry.by for entry in answer.pods] == ["2026-03-01T12:07:15Z"] * 2


def test_the_start_of_these_tests_is_the_time_of_the_questions() -> None:
    assert outlook("default/web", node("n1", "4"), waiting("web")).at_s == START_S, AT
