import json

import pytest

from podium.config import default_configuration
from podium.engine.errors import ClusterError, ManifestError
from podium.engine.files import read_objects
from podium.insight.evaluate import Question
from podium.objects import resource_types
from podium.plugins import IN_TREE
from tests.manifests import node, pod


def _file(*objects, name="cluster.yaml"):
    return name, "\n---\n".join(json.dumps(item) for item in objects).encode()


def _read(clusters, pod_file, complete_kinds=()):
    name, text = pod_file
    cluster = [document for source, content in clusters for document in read_objects(content, source)]
    return Question.read(cluster, list(read_objects(text, name)), name, complete_kinds)


def _ask(clusters, pod_file, *, any_scheduler=True):
    question = _read(clusters, pod_file)
    return question.ask(default_configuration(), IN_TREE, any_scheduler=any_scheduler)


def _pod_file(*objects):
    return _file(*objects, name="pod.yaml")


def test_pod_goes_where_it_fits():
    answer = _ask([_file(node("n1", cpu="1")), _file(node("n2"))], _pod_file(pod("web", cpu="2")))
    assert answer.evaluation.node == "n2"
    as_json = answer.to_json()
    assert (as_json["pod"], as_json["node"], as_json["feasible"]) == ("default/web", "n2", ["n2"])


def test_pod_asked_about_stands_in_for_the_one_in_the_cluster():
    answer = _ask([_file(node("n1", cpu="2"), pod("web", cpu="2", node="n1"))], _pod_file(pod("web", cpu="2")))
    assert answer.evaluation.node == "n1"


def test_objects_in_the_pods_file_belong_to_the_cluster():
    important = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 5,
    }
    cluster = _file(node("n1", cpu="1"), pod("low", cpu="950m", node="n1"))
    answer = _ask([cluster], _pod_file(important, pod("web", priorityClassName="high")))
    assert answer.to_json()["victims"] == ["default/low"]


def test_any_scheduler_name_is_served_unless_a_configuration_says_which():
    target = _pod_file(pod("web", scheduler="podium"))
    assert _ask([_file(node("n1"))], target).evaluation.node == "n1"
    with pytest.raises(ClusterError, match="no profile is named 'podium'"):
        _ask([_file(node("n1"))], target, any_scheduler=False)


def test_gates_are_listed_beside_the_node():
    answer = _ask([_file(node("n1"))], _pod_file(pod("web", schedulingGates=[{"name": "hold"}])))
    assert answer.evaluation.node == "n1"
    assert answer.to_json()["preenqueue"] == [
        {
            "code": "UnschedulableAndUnresolvable",
            "plugin": "SchedulingGates",
            "reasons": ["waiting for scheduling gates: [hold]"],
        }
    ]


_EXPECTED = "expected one pod or workload with a pod template"


@pytest.mark.parametrize(
    ("clusters", "pod_file", "error"),
    [
        ([], _pod_file(pod("a")), "no nodes: give the cluster's objects with -f"),
        ([_file(node("n1"))], _pod_file(), f"pod.yaml: {_EXPECTED}, found 0: the file holds nothing"),
        ([_file(node("n1"))], _pod_file(pod("a"), pod("b")), f"pod.yaml: {_EXPECTED}, found 2: the file holds Pod"),
        (
            [_file(node("n1"), pod("x", priority="no"))],
            _pod_file(pod("a")),
            "cluster.yaml: document 2: Pod default/x: spec.priority: expected int",
        ),
        (
            [_file(node("n1"))],
            _pod_file(pod("a", nodeSelector=[])),
            "pod.yaml: document 1: Pod default/a: spec.nodeSelector: expected object, got array",
        ),
    ],
)
def test_question_that_cannot_be_read_is_refused_by_file_document_and_field(clusters, pod_file, error):
    with pytest.raises(ManifestError) as failure:
        _read(clusters, pod_file)
    assert str(failure.value).startswith(error)


def test_two_pods_of_one_uid_are_refused():
    twins = [{**pod(name, node="n1"), "metadata": {"name": name, "uid": "same"}} for name in "ab"]
    with pytest.raises(ClusterError, match="already in added state"):
        _ask([_file(node("n1"), *twins)], _pod_file(pod("web")))


def test_a_workload_stands_for_a_pod_such_as_it_makes():
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    metadata = {"name": "web", "namespace": "shop", "labels": {"own": "1"}}
    for version, kind, template_spec in (
        ("apps.kruise.io/v1alpha1", "CloneSet", {"template": template}),
        ("batch/v1", "CronJob", {"jobTemplate": {"spec": {"template": template}}}),
    ):
        workload = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": template_spec}
        answer = _ask([_file(node("n1", cpu="1"), node("n2"))], _pod_file(workload))
        assert (answer.pod.key, answer.pod.metadata.labels, answer.evaluation.node) == (
            "shop/web",
            {"app": "web"},
            "n2",
        )


_CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "x"},
    "spec": {"storageClassName": "fast"},
}
_VOLUME = {"name": "v", "persistentVolumeClaim": {"claimName": "x"}}
_FAR = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "namespaceSelector": {}}]}


@pytest.mark.parametrize(
    ("objects", "incoming_pod", "missed"),
    [
        ([], pod("web"), ("services",)),
        ([], pod("web", affinity={"podAntiAffinity": _FAR}), ("namespaces", "services")),
        ([pod("low", cpu="4", node="n1")], pod("web", cpu="4", priority=5), ("poddisruptionbudgets",)),
        ([], pod("web", nodeSelector={"zone": "nowhere"}), ()),
        (
            [_CLAIM],
            pod("web", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}]),
            ("storageclasses",),
        ),
        ([], pod("web", priorityClassName="high"), ("priorityclasses", "services")),
        ([], pod("web", priorityClassName="high", priority=3), ("services",)),
    ],
    ids=["services", "namespaces", "budgets", "nothing", "classes", "priority-class", "priority-known"],
)
def test_missing_kinds_that_the_answer_depends_on_are_listed(objects, incoming_pod, missed):
    answer = _ask([_file(node("n1", cpu="4"), *objects)], _pod_file(incoming_pod))
    assert answer.missed == missed
    assert tuple(answer.to_json().get("missing", ())) == missed


def test_rejecting_taints_are_named_beside_upstreams_reason():
    tainted = node("n1")
    tainted["spec"] = {"taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}]}
    as_json = _ask([_file(tainted, node("n2"))], _pod_file(pod("web"))).to_json()
    assert as_json["filter"]["n1"]["reasons"] == ["node(s) had untolerated taint(s)"]
    assert as_json["details"] == {"n1": "untolerated taint team=a:NoSchedule"}


def test_no_kind_is_missing_from_complete_lists():
    question = _read([_file(node("n1"))], _pod_file(pod("web", priorityClassName="high")), resource_types.ALL)
    assert question.ask(default_configuration(), IN_TREE, any_scheduler=True).missed == ()
