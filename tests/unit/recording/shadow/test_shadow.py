import json

from podium.config.types import Extender
from podium.insight.evaluate import Evaluator
from podium.recording.shadow.comparison import Verdict
from podium.recording.shadow.report import Reason
from tests.manifests import node, nodes, pod
from tests.unit.recording.shadow.following import Following, web

BIG, SMALL = node("big", "16"), node("small", "4", memory="16Gi")


def test_a_binding_is_compared_with_the_cluster_without_the_pod():
    following = Following(BIG, SMALL, web(cpu="14"))
    following.bind(web(cpu="14"), "big")
    assert [comparison.verdict for comparison in following.comparisons] == [Verdict.SAME_NODE]
    assert following.settle() == []
    assert (following.shadow.report.compared_count, following.shadow.report.agreed_count) == (1, 1)


def test_bound_pods_count_for_the_pods_after_them():
    following = Following(BIG, SMALL, web("first", "15"), web("second", "3"))
    following.bind(web("first", "15"), "big")
    following.bind(web("second", "3"), "small")
    assert [comparison.verdict for comparison in following.comparisons] == [Verdict.SAME_NODE] * 2


def test_a_disagreement_that_no_earlier_state_explains_stays_unexplained():
    following = Following(BIG, SMALL, web())
    following.bind(web(), "small")
    (disagreement,) = following.settle()
    assert (disagreement.pod, disagreement.reason, disagreement.comparison.verdict) == (
        "default/web",
        Reason.UNEXPLAINED,
        Verdict.LOWER_SCORE,
    )
    assert disagreement.comparison.plugin in ("NodeResourcesFit", "NodeResourcesBalancedAllocation")


def test_extenders_may_be_the_reason_and_the_question_is_asked_without_them():
    following = Following(BIG, SMALL, web(), extenders=(Extender(url_prefix="http://127.0.0.1:1", filter_verb="f"),))
    following.bind(web(), "small")
    (disagreement,) = following.settle()
    assert disagreement.reason is Reason.EXTENDERS
    (scenario,) = following.scenarios
    answer = Evaluator().answer_line(json.dumps(scenario).encode(), "")
    assert answer == {"id": scenario["id"], **scenario["expect"]}


def test_a_disagreement_is_looked_at_again_only_once_later_bindings_were_seen():
    following = Following(BIG, SMALL, web())
    following.bind(web(), "small")
    assert list(following.shadow.settle()) == []
    assert following.shadow.unsettled_count == 1
    list(following.shadow.settle(is_final=True))
    assert following.shadow.unsettled_count == 0


def test_a_binding_that_was_overtaken_explains_the_choice():
    first, second = web("first", "15"), web("second", "3")
    following = Following(BIG, SMALL, first, second)
    following.bind(second, "small")
    assert not following.comparisons[0].verdict.agrees
    following.bind(first, "big")
    (disagreement,) = following.settle()
    assert (disagreement.pod, disagreement.reason) == ("default/second", Reason.STALE_VIEW)
    assert disagreement.view == "Pod default/first bound to big, seen later"


def test_a_pod_that_was_behind_in_the_queue_does_not_count_although_it_was_seen_bound_first():
    urgent, foreign_pod = web("urgent", "3", priority=10), web("other", "15")
    following = Following(BIG, SMALL, foreign_pod, urgent)
    following.bind(foreign_pod, "big")
    following.bind(urgent, "big")
    (disagreement,) = following.settle()
    assert (disagreement.comparison.verdict, disagreement.comparison.plugin) == (Verdict.REFUSED, "NodeResourcesFit")
    assert (disagreement.reason, disagreement.view) == (Reason.STALE_VIEW, "not yet Pod default/other bound to big")


def test_a_change_that_the_scheduler_had_not_seen_explains_the_choice():
    following = Following(BIG, SMALL, web())
    following.tell({**BIG, "spec": {"taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}]}})
    following.bind(web(), "big")
    (disagreement,) = following.settle()
    assert disagreement.comparison.verdict is Verdict.REFUSED
    assert (disagreement.reason, disagreement.view) == (Reason.STALE_VIEW, "not yet Node big changed")


def test_changes_may_come_while_a_disagreement_is_looked_at_again():
    following = Following(BIG, SMALL, web())
    for index in range(5):
        following.tell(node(f"more-{index}", "8"))
    following.bind(web(), "small")
    following.clock.advance(10.0)
    for _ in following.shadow.settle():
        following.tell(node("late", "64"))
        following.delete(node("late"))
    (disagreement,) = following.shadow.report.disagreements
    assert (disagreement.reason, disagreement.comparison.choice, disagreement.views_tried) == (
        Reason.UNEXPLAINED,
        "big",
        10,
    )


def test_pods_of_other_schedulers_count_and_are_not_compared():
    foreign_pod = pod("other", "15", scheduler="other")
    following = Following(BIG, SMALL, foreign_pod, web(cpu="3"))
    following.bind(foreign_pod, "big")
    following.bind(web(cpu="3"), "small")
    assert [comparison.node for comparison in following.comparisons] == ["small"]
    assert following.comparisons[0].verdict is Verdict.SAME_NODE


def test_a_pod_that_was_never_seen_pending_is_counted_and_not_compared():
    following = Following(BIG, web("static", node="big"))
    assert following.comparisons == []
    assert dict(following.shadow.report.not_compared) == {"never seen pending": 1}


def test_a_pod_that_the_first_list_shows_bound_is_no_binding_that_was_seen():
    following = Following()
    following.is_complete = False
    following.tell(BIG, web("old", node="big"), web("new"))
    following.is_complete = True
    following.tell(web("old", node="big"))
    following.bind(web("new"), "big")
    assert (following.shadow.report.bound_count, following.shadow.report.compared_count) == (1, 1)


def test_pods_that_were_bound_while_objects_are_listed_again_are_counted_once_seen_pending_or_not():
    following = Following(BIG, web("pending"))
    following.is_complete = False
    following.bind(web("pending"), "big")
    following.tell(web("unseen", node="big"))
    following.is_complete = True
    for name in ("pending", "unseen"):
        following.tell(web(name, node="big", labels={"seen": "again"}))
    report = following.shadow.report
    assert dict(report.not_compared) == {"bound while objects were listed": 2}
    assert (report.bound_count, len(following.skips)) == (2, 2)


def test_the_first_list_after_the_start_may_show_a_binding_before_anything_else_has_changed():
    following = Following()
    following.is_complete = False
    following.tell(BIG)
    following.shadow.on_synced()
    following.tell(web(node="big"))
    assert following.shadow.report.bound_count == 1


def test_a_pod_that_comes_back_under_its_name_is_another_one():
    following = Following(*nodes(1), web())
    recreated = web()
    recreated["metadata"] = {**recreated["metadata"], "uid": "again"}
    following.tell(recreated)
    following.bind(recreated, "node-0")
    assert following.shadow.report.compared_count == 1


def test_a_deleted_pod_counts_no_more():
    first = web("first", "15")
    following = Following(BIG, SMALL, first, web("second", "14"))
    following.bind(first, "big")
    following.delete(first)
    following.bind(web("second", "14"), "big")
    assert following.comparisons[-1].verdict is Verdict.SAME_NODE


def test_a_claim_that_the_scheduler_bound_for_the_pod_does_not_decide_for_it():
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"storageClassName": "late", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {}}},
    }
    storage = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "late"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    volumes = [volume("on-big", "big"), volume("on-small", "small")]
    claiming_pod = web(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
    following = Following(BIG, SMALL, storage, claim, *volumes, claiming_pod)
    reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data"}
    following.tell({**volumes[1], "spec": {**volumes[1]["spec"], "claimRef": reference}})
    following.tell({**claim, "spec": {**claim["spec"], "volumeName": "on-small"}})
    following.bind(claiming_pod, "small")
    # With the claim as it is now the pod could only go where its volume is.
    assert (following.comparisons[0].verdict, following.comparisons[0].choice) == (Verdict.LOWER_SCORE, "big")


def volume(name, node_name):
    expressions = [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node_name]}]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "late",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}},
        },
        "status": {"phase": "Available"},
    }


def test_a_disagreement_is_a_question_that_can_be_asked_again():
    first, second = web("first", "15"), web("second", "3")
    following = Following(BIG, SMALL, first, second)
    following.bind(second, "small")
    following.bind(first, "big")
    following.settle()
    answers = {}
    for scenario in following.scenarios:
        answer = Evaluator().answer_line(json.dumps(scenario).encode(), "")
        assert answer == {"id": scenario["id"], **scenario["expect"]}
        answers[scenario["id"]] = answer
    assert answers.keys() == {"default/second as seen", "default/second as decided"}
    scores = answers["default/second as seen"]["scores"]
    assert scores["big"]["total"] > scores["small"]["total"]
    assert answers["default/second as decided"]["feasible"] == ["small"]


def test_the_report_has_every_count():
    following = Following(BIG, SMALL, web("a"), web("b"))
    following.bind(web("a"), "small")
    following.bind(web("b"), "big")
    following.settle()
    report = following.shadow.report.to_json()
    assert (report["compared"], report["agreed"]) == (2, 1)
    assert report["verdicts"]["lower score"] == report["reasons"]["unexplained"] == 1
    assert sum(report["plugins"].values()) == 1
    assert report["evaluation_s"] == {"p50": 0.0, "p99": 0.0}
