"""Now, after a preemption, later, or never."""

from __future__ import annotations

from typing import Any

import pytest

import podium
from podium.engine import ClusterError
from podium.engine.errors import ManifestError
from podium.insight.outlook import Outlook, PodOutlook, Verdict
from podium.lib.clock import ManualClock
from podium.lib.time_limit import TimeIsUpError, TimeLimit
from tests.device_manifests import claiming, device_class, devices, exactly, resource_claim, resource_slice
from tests.gang_manifests import COSCHEDULING, UPSTREAM, group, member, members, with_coscheduling
from tests.manifests import HOSTNAME, ZONE, Json, node, pod
from tests.workload_manifests import claims_from, device_claim_template

AT = "2026-03-01T12:00:00Z"
EARLIER = "2026-03-01T11:00:00Z"
SCHEDULER = "default-scheduler"


def waiting(name: str, cpu: str = "3", since: str = "", **fields: Any) -> Json:
    manifest = pod(name, cpu, scheduler=SCHEDULER, **fields)
    if since:
        manifest["metadata"]["creationTimestamp"] = since
    return manifest


def running(name: str, cpu: str = "3", node: str = "n1", **fields: Any) -> Json:
    return pod(name, cpu, scheduler=SCHEDULER, node=node, status={"phase": "Running", "startTime": EARLIER}, **fields)


def outlook(target: Any, *objects: Json, **options: Any) -> Outlook:
    return podium.Cluster.load(objects).outlook(target, at=AT, **options)


def only(answer: Outlook) -> PodOutlook:
    (entry,) = answer.pods
    return entry


def test_a_pod_that_fits_gets_its_node_now() -> None:
    answer = outlook("default/web", node("n1", "4"), waiting("web"))
    assert (answer.verdict, only(answer).node, only(answer).ahead) == (Verdict.NOW, "n1", 0)
    assert answer.lines() == ["default/web: now, on n1"]


def test_pods_ahead_in_the_queue_take_their_room_first() -> None:
    objects = [node("n1", "4"), waiting("web", since="2026-03-01T11:59:00Z"), waiting("old", since=EARLIER)]
    assert only(outlook("default/old", *objects)).verdict is Verdict.NOW
    behind = only(outlook("default/web", *objects))
    assert (behind.verdict, behind.ahead, list(behind.nodes)) == (Verdict.LATER, 1, ["n1"])
    first = waiting("web", since="2026-03-01T11:59:00Z", priority=10)
    assert only(outlook("default/web", *objects[:1], first, objects[2])).verdict is Verdict.NOW


def test_a_new_pod_waits_behind_those_that_wait_already() -> None:
    objects = [node("n1", "4"), waiting("old")]
    assert only(outlook(waiting("web"), *objects)).verdict is Verdict.LATER
    assert only(outlook(waiting("web", "500m"), *objects)).verdict is Verdict.NOW
    assert list(only(outlook(waiting("web", priority=5), *objects)).victims) == ["default/old"]


def test_a_preemption_names_its_victims_and_their_grace() -> None:
    victim = running("low", priority=-1, terminationGracePeriodSeconds=7)
    objects = [node("n1", "4"), victim, waiting("web")]
    entry = only(outlook("default/web", *objects))
    assert (entry.verdict, entry.node, list(entry.victims)) == (Verdict.AFTER_PREEMPTION, "n1", ["default/low"])
    assert entry.by == "2026-03-01T12:00:07Z"
    cluster = podium.Cluster.load(objects[:2])
    assert only(cluster.outlook(waiting("web"), at=AT)).as_dict() | {"why": ""} == entry.as_dict() | {"why": ""}


def test_a_pod_of_higher_priority_that_waits_takes_the_room_that_a_new_pod_makes() -> None:
    first = waiting("first", priority=1000, preemptionPolicy="Never")
    objects = [node("n1", "4"), running("low", priority=-1), first]
    comer = waiting("web", priority=5)
    cluster = podium.Cluster.load(objects)
    assert only(cluster.outlook("default/first", at=AT)).verdict is Verdict.LATER
    assert only(cluster.outlook(comer, at=AT)).verdict is Verdict.LATER
    for harmless in ({"priority": 5}, {"schedulingGates": [{"name": "hold"}]}, {"schedulerName": "other"}):
        first["spec"] |= {"priority": 1000} | harmless
        assert only(outlook(comer, *objects)).verdict is Verdict.AFTER_PREEMPTION


@pytest.mark.parametrize(
    ("spec", "metadata", "by"),
    [
        ({"activeDeadlineSeconds": 4000}, {}, "2026-03-01T12:07:10Z"),
        ({"activeDeadlineSeconds": 4000, "terminationGracePeriodSeconds": 0}, {}, "2026-03-01T12:06:40Z"),
        ({}, {"deletionTimestamp": "2026-03-01T12:00:20Z"}, "2026-03-01T12:00:20Z"),
    ],
)
def test_a_pod_gets_its_node_when_another_ends_at_a_time_that_an_object_tells(
    spec: Json, metadata: Json, by: str
) -> None:
    neighbour = running("other", **spec)
    neighbour["metadata"] |= metadata
    entry = only(outlook("default/web", node("n1", "4"), neighbour, waiting("web")))
    assert (entry.verdict, entry.node, entry.by) == (Verdict.LATER, "n1", by)
    assert [end.pod for end in entry.ends] == ["default/other"]


def test_pods_of_a_job_end_at_its_deadline() -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "report", "namespace": "default", "uid": "u"},
        "spec": {"activeDeadlineSeconds": 3700, "template": {"spec": {"containers": [{"name": "c"}]}}},
        "status": {"startTime": EARLIER},
    }
    job_pod = running("report-x", restartPolicy="Never")
    job_pod["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "report", "uid": "u", "controller": True}
    ]
    entry = only(outlook("default/web", node("n1", "4"), job, job_pod, waiting("web")))
    assert (entry.verdict, entry.by) == (Verdict.LATER, "2026-03-01T12:02:10Z")
    assert entry.ends[0].reason == "the activeDeadlineSeconds of Job default/report"


def test_without_a_time_the_answer_names_the_pods_that_end_and_their_nodes() -> None:
    once = running("once", restartPolicy="Never")
    entry = only(outlook("default/web", node("n1", "4"), once, waiting("web")))
    assert (entry.verdict, entry.node, entry.by, list(entry.nodes)) == (Verdict.LATER, "", "", ["n1"])
    assert [end.pod for end in entry.ends] == ["default/once"]
    assert "time unknown, when enough of these pods end: default/once, on n1" in entry.text


def test_pods_that_take_the_room_of_those_that_end_are_told_of() -> None:
    objects = [node("n1", "4"), running("once", restartPolicy="Never"), waiting("old", since=EARLIER), waiting("web")]
    old, web = (only(outlook(f"default/{name}", *objects)) for name in ("old", "web"))
    assert ([end.pod for end in old.ends], old.is_contended) == (["default/once"], False)
    assert ([end.pod for end in web.ends], web.is_contended) == (["default/once"], True)
    assert "other pods take the room if all of these pods end at once" in web.details()
    # A pod that comes is behind those that wait, unless it is more important.
    cluster = podium.Cluster.load(objects)
    cluster.outlook("default/web", at=AT)
    for priority, is_contended in ((0, True), (5, False)):
        comer = waiting("comer", priority=priority, preemptionPolicy="Never")
        assert only(cluster.outlook(comer, at=AT)).is_contended == is_contended


def test_a_time_that_has_passed_is_none() -> None:
    stuck = running("stuck")
    stuck["metadata"]["deletionTimestamp"] = "2026-03-01T11:30:00Z"
    entry = only(outlook("default/web", node("n1", "4"), stuck, waiting("web")))
    assert (entry.verdict, entry.by) == (Verdict.LATER, "")
    assert entry.ends[0].reason == "it is being deleted, which was due by 2026-03-01T11:30:00Z"


def test_pods_that_nothing_ends_leave_the_time_open() -> None:
    entry = only(outlook("default/web", node("n1", "4"), running("service"), waiting("web")))
    assert (entry.verdict, list(entry.ends), list(entry.nodes)) == (Verdict.LATER, [], ["n1"])
    assert "no object says that they end" in entry.text


def test_what_fits_on_no_node_without_all_pods_that_can_leave_never_runs_and_a_fix_is_named() -> None:
    answer = outlook("default/web", node("n1", "4"), running("service"), waiting("web", "5"))
    assert (answer.verdict, only(answer).node) == (Verdict.NEVER, "")
    assert "never, unless: " in only(answer).text
    assert answer.as_dict()["pods"][0]["fixes"]
    assert "fixes" not in outlook("default/web", node("n1", "4"), waiting("web", "5"), fix=False).as_dict()["pods"][0]


@pytest.mark.parametrize(
    "metadata",
    [
        {
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "a", "uid": "u", "controller": True}
            ]
        },
        {"annotations": {"kubernetes.io/config.mirror": "x"}},
    ],
    ids=["of a DaemonSet", "static"],
)
def test_pods_that_belong_to_a_node_do_not_leave(metadata: Json) -> None:
    agent = running("agent", "2")
    agent["metadata"] |= metadata
    assert only(outlook("default/web", node("n1", "4"), agent, waiting("web"))).verdict is Verdict.NEVER


def test_victims_that_end_at_the_same_moment_make_room_together() -> None:
    low = [running(name, "2", priority=-1) for name in ("low-a", "low-b")]
    objects = [node("n1", "4"), *low, waiting("large", "4"), waiting("small", "2", preemptionPolicy="Never")]
    entry = only(outlook("default/large", *objects))
    assert (entry.verdict, entry.by, len(entry.victims)) == (Verdict.AFTER_PREEMPTION, "2026-03-01T12:00:30Z", 2)
    assert only(outlook("default/small", *objects)).by == ""


def test_what_a_gang_preempts_is_not_foreseen() -> None:
    low = running("low", "4", priority=-1)
    objects = [node("n1", "4"), low, group(UPSTREAM, 2), *members(UPSTREAM, 2, cpu="2", scheduler=SCHEDULER)]
    answers = outlook("default/train-0", *objects).pods
    assert {(entry.verdict, entry.by, tuple(entry.victims)) for entry in answers} == {(Verdict.LATER, "", ())}


def test_a_controller_replaces_the_pod_that_is_preempted() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    low = running("web-a", "3", priority=-1, activeDeadlineSeconds=9000)
    low["metadata"]["ownerReferences"] = [owner]
    neighbour = running("other", "3", "n2", activeDeadlineSeconds=4000)
    objects = [node("n1", "4"), node("n2", "4"), low, neighbour, waiting("new", nodeSelector={HOSTNAME: "n1"})]
    assert only(outlook("default/new", *objects)).victims == ("default/web-a",)
    last = waiting("last", priority=-5)
    assert only(outlook("default/last", *objects, last)).by == ""
    assert only(outlook("default/last", node("n2", "4"), neighbour, last)).by == "2026-03-01T12:07:10Z"


def _near(app: str) -> Json:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOSTNAME}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@pytest.mark.parametrize(
    ("partner_cpu", "verdict"), [("1", Verdict.LATER), ("2", Verdict.NEVER)], ids=["beside it", "not beside it"]
)
def test_a_pod_that_has_to_be_near_another_fits_beside_it_or_never(partner_cpu: str, verdict: Verdict) -> None:
    partner = running("db", partner_cpu, labels={"app": "db"})
    objects = [node("n1", "4"), node("n2", "4"), partner, running("service", "2"), waiting("web", affinity=_near("db"))]
    assert only(outlook("default/web", *objects)).verdict is verdict


def test_a_pod_that_still_waits_may_be_the_one_to_be_near() -> None:
    objects = [node("n1", "4"), running("service", "3"), waiting("db", "2", labels={"app": "db"})]
    near = waiting("web", "1", affinity=_near("db"))
    assert only(outlook("default/web", *objects, near)).verdict is Verdict.LATER
    assert only(outlook("default/web", *objects[:2], near)).verdict is Verdict.NEVER


def test_a_pod_that_still_waits_must_leave_room_for_the_one_near_it() -> None:
    objects = [node("n1", "4"), running("service", "3"), waiting("db", "2", labels={"app": "db"})]
    near = waiting("web", "3", affinity=_near("db"))
    assert only(outlook("default/web", *objects, near)).verdict is Verdict.NEVER
    assert only(outlook("default/web", node("n2", "3"), *objects, near)).verdict is Verdict.NEVER


def test_a_pod_that_itself_never_gets_a_node_is_none_to_be_near() -> None:
    objects = [node("n1", "4"), running("service", "4")]
    near = waiting("web", "1", affinity=_near("db"))
    gated_pod = waiting("db", "1", labels={"app": "db"}, schedulingGates=[{"name": "example.com/quota"}])
    assert only(outlook("default/web", *objects, gated_pod, near)).verdict is Verdict.NEVER
    going = waiting("db", "1", labels={"app": "db"})
    going["metadata"]["deletionTimestamp"] = AT
    assert only(outlook("default/web", *objects, going, near)).verdict is Verdict.NEVER
    # It needs a third one, which there is not, or the pod in question.
    for app in ("cache", "web"):
        tied = waiting("db", "1", labels={"app": "db"}, affinity=_near(app))
        tied_near = waiting("web", "1", labels={"app": "web"}, affinity=_near("db"))
        assert only(outlook("default/web", *objects, tied, tied_near)).verdict is Verdict.NEVER


def test_what_others_preempt_after_ends_may_open_a_node() -> None:
    once = running("once", "2", restartPolicy="Never", priority=10)
    low = running("low", "2", priority=-1)
    subject = waiting("web", "4", priority=1000, preemptionPolicy="Never")
    rival = waiting("rival", "3", priority=5)
    entry = only(outlook("default/web", node("n1", "4"), once, low, subject, rival))
    assert ([end.pod for end in entry.ends], list(entry.nodes)) == (["default/once"], ["n1"])
    alone = only(outlook("default/web", node("n1", "4"), once, low, subject))
    assert list(alone.ends) == []


def test_a_pod_to_be_near_may_come_when_others_have_ended() -> None:
    once = running("once", "4", restartPolicy="Never")
    objects = [node("n1", "4"), once, waiting("db", "2", labels={"app": "db"})]
    entry = only(outlook("default/web", *objects, waiting("web", "2", affinity=_near("db"))))
    assert ([end.pod for end in entry.ends], list(entry.nodes)) == (["default/once"], ["n1"])


def test_ends_do_not_help_a_pod_if_others_then_preempt_those_to_be_near() -> None:
    once = running("once", "1", restartPolicy="Never", priority=100)
    partner = running("db", "1", labels={"app": "db"}, priority=-1)
    objects = [node("n1", "4"), once, partner, running("service", "1", priority=100)]
    subject = waiting("web", "2", affinity=_near("db"))
    assert [end.pod for end in only(outlook("default/web", *objects, subject)).ends] == ["default/once"]
    entry = only(outlook("default/web", *objects, subject, waiting("rival", "3", priority=5)))
    assert (entry.verdict, list(entry.ends), list(entry.nodes)) == (Verdict.LATER, [], ["n1"])


def test_one_of_the_pods_to_be_near_may_end_last() -> None:
    labels, near = {"app": "db"}, _near("db")
    near["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]["topologyKey"] = ZONE
    objects = [
        *(node(name, "4", labels={ZONE: "a"}) for name in ("n1", "n2")),
        *(running(f"once-{name}", "4", name, labels=labels, restartPolicy="Never") for name in ("n1", "n2")),
    ]
    here = {"nodeSelector": {HOSTNAME: "n1"}}
    entry = only(outlook("default/web", *objects, waiting("web", "2", affinity=near, **here)))
    assert ([end.pod for end in entry.ends], list(entry.nodes)) == (["default/once-n1"], ["n1"])


def test_the_end_of_a_pod_elsewhere_may_open_a_node() -> None:
    far = _near("web")["podAffinity"]
    far["requiredDuringSchedulingIgnoredDuringExecution"][0]["topologyKey"] = ZONE
    once = running("once", "4", restartPolicy="Never", affinity={"podAntiAffinity": far})
    objects = [*(node(name, "4", labels={ZONE: "a"}) for name in ("n1", "n2")), once]
    here = {"nodeSelector": {HOSTNAME: "n2"}}
    entry = only(outlook("default/web", *objects, waiting("web", "2", labels={"app": "web"}, **here)))
    assert ([end.pod for end in entry.ends], list(entry.nodes)) == (["default/once"], ["n2"])


def test_a_gated_pod_and_one_that_is_deleted_say_so() -> None:
    entry_pod = waiting("web", schedulingGates=[{"name": "example.com/quota"}])
    entry = only(outlook("default/web", node("n1", "4"), entry_pod, waiting("old", "9")))
    # A pod that is gated is not in the queue, and so has no pods ahead of it.
    assert (entry.verdict, "gate" in entry.why, entry.ahead) == (Verdict.NEVER, True, 0)
    going = waiting("web")
    going["metadata"]["deletionTimestamp"] = AT
    assert only(outlook("default/web", node("n1", "4"), going)).why == "it is being deleted"


def test_each_replica_of_a_deployment_has_its_own_outlook() -> None:
    labels = {"app": "web"}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": waiting("any", "2")["spec"]},
        },
    }
    neighbour = running("other", "2", activeDeadlineSeconds=4000)
    answer = outlook(deployment, node("n1", "4"), node("n2", "2"), neighbour)
    assert sorted((entry.verdict.value, entry.node) for entry in answer.pods) == [
        ("later", "n1"),
        ("now", "n1"),
        ("now", "n2"),
    ]
    assert answer.verdict is Verdict.LATER


@pytest.mark.parametrize(
    ("cpu", "ending", "verdict"),
    [("1", "2", Verdict.NOW), ("2", "2", Verdict.LATER), ("5", "1", Verdict.NEVER)],
)
def test_a_gang_gets_its_nodes_together(cpu: str, ending: str, verdict: Verdict) -> None:
    neighbour = running("other", ending, activeDeadlineSeconds=4000)
    objects = [node("n1", "4"), neighbour, group(UPSTREAM, 2), *members(UPSTREAM, 2, cpu=cpu, scheduler=SCHEDULER)]
    answer = outlook("default/train-0", *objects)
    assert (answer.gang, [entry.verdict for entry in answer.pods]) == ("default/train", [verdict, verdict])
    if verdict is Verdict.LATER:
        assert {entry.by for entry in answer.pods} == {"2026-03-01T12:07:19Z"}


def test_ends_that_leave_room_for_some_of_a_gang_are_no_reason_for_the_others() -> None:
    gang = members(UPSTREAM, 3, cpu="3", scheduler=SCHEDULER, preemptionPolicy="Never")
    once = [running(f"once-{name}", "4", name, restartPolicy="Never") for name in ("n1", "n2")]
    objects = [*(node(name, "4") for name in ("n1", "n2", "n3")), *once, running("service", "4", "n3")]
    answers = outlook("default/train-0", *objects, group(UPSTREAM, 2), *gang).pods
    assert [entry.verdict for entry in answers] == [Verdict.LATER] * 3
    assert [len(entry.ends) for entry in answers] == [2, 2, 0]


def test_members_of_a_gang_start_one_by_one_under_a_profile_that_knows_no_gangs() -> None:
    gang = members(COSCHEDULING, 2, cpu="3", scheduler=SCHEDULER)
    for objects in (gang, [group(COSCHEDULING, 2), *gang]):
        answer = outlook("default/train-0", node("n1", "4"), *objects)
        assert (answer.gang, only(answer).verdict) == ("", Verdict.NOW)


def test_a_gang_that_lacks_its_group_or_members_never_starts() -> None:
    alone = member(UPSTREAM, "train-0", cpu="1", scheduler=SCHEDULER)
    assert "does not exist" in only(outlook("default/train-0", node("n1"), alone)).why
    entry = only(outlook("default/train-0", node("n1"), group(UPSTREAM, 2), alone))
    assert (entry.verdict, "only 1 of the 2 pods" in entry.why) == (Verdict.NEVER, True)


def test_a_gang_ahead_holds_nothing_unless_it_is_complete() -> None:
    gang = [group(UPSTREAM, 2), *members(UPSTREAM, 2, cpu="3", scheduler=SCHEDULER)]
    assert only(outlook("default/web", node("n1", "4"), *gang, waiting("web"))).verdict is Verdict.NOW


def test_a_pod_on_a_node_is_running() -> None:
    answer = outlook("default/other", node("n1", "4"), running("other"))
    assert (list(answer.pods), list(answer.running)) == ([], [("default/other", "n1")])
    assert answer.lines() == ["default/other: it has a node, n1"]


def test_a_question_changes_nothing_and_what_is_kept_is_dropped_with_a_change() -> None:
    cluster = podium.Cluster.load([node("n1", "4"), waiting("web")])
    assert only(cluster.outlook("default/web", at=AT)).verdict is Verdict.NOW
    assert cluster.pods[0].node_name == ""
    cluster.add(running("other", "2"))
    assert only(cluster.outlook("default/web", at=AT)).verdict is Verdict.LATER
    cluster.remove("Pod", "other")
    assert only(cluster.outlook("default/web", at=AT)).verdict is Verdict.NOW


def test_what_cannot_be_asked_is_refused_by_name() -> None:
    cluster = podium.Cluster.load([node("n1", "4"), waiting("web")])
    with pytest.raises(ClusterError, match="there is no pod wbe"):
        cluster.outlook("wbe")
    with pytest.raises(ValueError, match="tomorrow"):
        cluster.outlook("default/web", at="tomorrow")
    with pytest.raises(ClusterError, match=r"spec\.schedulerName: no profile is named 'other'"):
        cluster.outlook(pod("new", scheduler="other"))
    with pytest.raises(ManifestError, match="there is neither a pod nor a workload"):
        cluster.outlook({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})


def test_a_question_that_takes_too_long_ends() -> None:
    clock = ManualClock()
    limit = TimeLimit(clock, 1.0)
    clock.advance(2.0)
    with pytest.raises(TimeIsUpError):
        outlook("default/web", node("n1", "4"), waiting("web"), limit=limit)


def test_fixes_are_those_of_the_pod_in_question_and_not_of_an_earlier_one() -> None:
    cluster = podium.Cluster.load([node("n1", "4")])
    for _ in range(5):
        large, elsewhere = (
            only(cluster.outlook(waiting("web", cpu, nodeSelector=selector), at=AT)).fixes
            for cpu, selector in (("9", {}), ("1", {"no": "such"}))
        )
        assert large is not None
        assert elsewhere is not None
        assert "cpu" in large.fixes[0].edits[0].text
        assert "cpu" not in elsewhere.fixes[0].edits[0].text


def test_ends_may_leave_enough_room_for_a_preemption() -> None:
    objects = [node("n1", "4"), running("once", "2", restartPolicy="Never"), running("low", "2", priority=-1)]
    entry = only(outlook("default/web", *objects, waiting("web", "4", preemptionPolicy="PreemptLowerPriority")))
    assert entry.verdict is Verdict.LATER
    assert ([end.pod for end in entry.ends], list(entry.nodes)) == (["default/once"], ["n1"])


def test_nodes_where_ends_leave_enough_room_for_a_preemption_are_named_beside_those_with_room() -> None:
    objects = [
        *(node("n1", "4"), running("low", "2", priority=-1), running("first", "2", restartPolicy="Never")),
        *(node("n2", "4"), running("second", "4", "n2", restartPolicy="Never")),
    ]
    entry = only(outlook("default/web", *objects, waiting("web", "4", preemptionPolicy="PreemptLowerPriority")))
    assert sorted(entry.nodes) == ["n1", "n2"]
    assert {end.pod for end in entry.ends} == {"default/first", "default/second"}


def test_claims_that_a_template_makes_are_no_reason_to_wait_and_the_lack_of_one_is() -> None:
    objects = [
        *(node(name, "4") for name in ("n1", "n2")),
        device_class(),
        resource_slice("n2", devices(1), node="n2"),
        device_claim_template("one", exactly()),
    ]
    first, second = (waiting(name, "1", resourceClaims=claims_from("one")) for name in ("first", "second"))
    assert only(outlook("default/first", *objects, first)).node == "n2"
    behind = only(outlook("default/second", *objects, first, second))
    assert (behind.verdict, list(behind.nodes)) == (Verdict.LATER, ["n2"])
    no_template = only(outlook("default/first", *objects[:-1], first))
    assert (no_template.verdict, "ResourceClaim not created yet" in no_template.why) == (Verdict.NEVER, True)


def test_a_gang_of_coscheduling_gets_its_nodes_together_later() -> None:
    objects = [
        *(node(name, "4") for name in ("n1", "n2")),
        running("once", "2", restartPolicy="Never"),
        group(COSCHEDULING, 4),
        *members(COSCHEDULING, 4, cpu="2", scheduler="podium"),
    ]
    answer = podium.Cluster.load(objects, with_coscheduling()).outlook("default/train-0", at=AT)
    assert [entry.verdict for entry in answer.pods] == [Verdict.LATER] * 4
    assert [end.pod for end in answer.pods[0].ends] == ["default/once"]


@pytest.mark.long
@pytest.mark.parametrize(("largest", "verdict"), [("3", Verdict.LATER), ("4", Verdict.NEVER)])
def test_a_gang_that_does_not_fit_in_the_order_of_its_members_may_fit_otherwise(largest: str, verdict: Verdict) -> None:
    # One after the other takes the middle of the larger node first.
    sizes = ("2", "2", largest)
    objects = [
        node("n1", "4"),
        node("n2", "3"),
        running("service", "3"),
        group(UPSTREAM, 3),
        *(member(UPSTREAM, f"train-{index}", cpu=cpu, scheduler=SCHEDULER) for index, cpu in enumerate(sizes)),
    ]
    answer = outlook("default/train-0", *objects)
    assert {entry.verdict for entry in answer.pods} == {verdict}
    assert all(entry.nodes for entry in answer.pods) is (verdict is Verdict.LATER)


def test_a_pod_that_shares_a_claim_is_tried_again_once_its_devices_are_known() -> None:
    objects = [
        node("n1", "3"),
        device_class(),
        resource_slice("n1", devices(1), node="n1"),
        resource_claim("shared", exactly()),
        *(waiting(name, "1", EARLIER, priority=5, resourceClaims=claiming("shared")) for name in ("a", "b")),
        waiting("c", "1", EARLIER),
    ]
    assert {only(outlook(f"default/{name}", *objects)).verdict for name in "abc"} == {Verdict.NOW}
    between = waiting("d", "1", EARLIER)
    assert only(outlook("default/d", *objects, between)).verdict is Verdict.NOW
    assert list(only(outlook("default/b", *objects, between)).victims) == ["default/d"]
