import pytest
from msgspec import convert

from podium.estimator.errors import EstimateError
from podium.estimator.requirements import ObjectReference
from podium.estimator.workloads import Deployment, TemplatedReplicaSet
from podium.objects.core import Pod
from podium.objects.times import format_time
from tests.unit.estimator.members import member

NOW_S = 1_700_000_000.0
WEB = ObjectReference(api_version="apps/v1", kind="Deployment", namespace="default", name="web")


def _owner_references(by):
    return [{"uid": by, "controller": True}]


def _template(image="new", cpu="1", **labels):
    container = {"name": "c", "image": image, "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"labels": {"app": "web", **labels}}, "spec": {"containers": [container]}}


def _deployment(template=None, namespace="default"):
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template or _template()}
    return convert({"metadata": {"name": "web", "namespace": namespace, "uid": "d"}, "spec": spec}, Deployment)


def _replica_set(name="new", template=None, creation_time="2026-01-01T00:00:00Z", owner="d"):
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"rs-{name}",
        "creationTimestamp": creation_time,
        "ownerReferences": _owner_references(owner),
    }
    template = template or _template(**{"pod-template-hash": name})
    return convert({"metadata": metadata, "spec": {"template": template}}, TemplatedReplicaSet)


def _pod_of_the_deployment(name, since_s=600.0, *, owner="rs-new", status="False", reason="Unschedulable", app="web"):
    condition = {
        "type": "PodScheduled",
        "status": status,
        "reason": reason,
        "lastTransitionTime": format_time(NOW_S - since_s),
    }
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": name,
        "labels": {"app": app},
        "ownerReferences": _owner_references(owner),
    }
    return convert({"metadata": metadata, "status": {"conditions": [condition]}}, Pod)


def _count(*objects, threshold_s=300.0, workload=WEB):
    return member(*objects).unschedulable_replicas(workload, threshold_s, NOW_S)


def test_pods_of_the_newest_template_that_wait_longer_than_the_threshold_count():
    pods = [
        _pod_of_the_deployment("long"),
        _pod_of_the_deployment("exactly", 300.0),
        _pod_of_the_deployment("short", 10.0),
        _pod_of_the_deployment("placed", status="True"),
        _pod_of_the_deployment("gated", reason="SchedulingGated"),
        _pod_of_the_deployment("stranger", app="db"),
        _pod_of_the_deployment("old", owner="rs-old"),
    ]
    old = _replica_set("old", _template("old"))
    assert _count(_deployment(), _replica_set(), old, *pods) == 1
    assert _count(_deployment(), _replica_set(), old, *pods, threshold_s=-5.0) == 3


def test_templates_are_the_same_whatever_their_hash_what_is_empty_and_how_amounts_are_written():
    template = _template(cpu="1000m", **{"pod-template-hash": "x"})
    template["spec"]["volumes"] = []
    assert _count(_deployment(), _replica_set(template=template), _pod_of_the_deployment("long")) == 1


def test_oldest_of_several_replica_sets_with_the_template_counts():
    younger = _replica_set("newer", creation_time="2026-02-01T00:00:00Z")
    pods = [_pod_of_the_deployment("long"), _pod_of_the_deployment("other", owner="rs-newer")]
    assert _count(_deployment(), younger, _replica_set(), *pods) == 1


def test_deployment_whose_replica_set_is_not_there_has_no_pods():
    assert _count(_deployment(), _replica_set(owner="somebody"), _pod_of_the_deployment("long")) == 0


@pytest.mark.parametrize(
    ("workload", "text"),
    [
        (None, "resource is nil"),
        (
            ObjectReference(kind="Deployment", namespace="default", name="gone"),
            'deployments.apps "default/gone" not found',
        ),
        (ObjectReference(kind="Job", namespace="a", name="b"), "kind(Job) of workload(a/b) is not supported"),
    ],
)
def test_workload_that_cannot_be_counted_is_an_error_in_upstreams_words(workload, text):
    with pytest.raises(EstimateError) as error:
        _count(_deployment(), workload=workload)
    assert str(error.value) == text


def test_pod_that_is_gone_no_longer_counts():
    cluster = member(_deployment(), _replica_set(), _pod_of_the_deployment("long"))
    cluster.drop_pod(_pod_of_the_deployment("long"))
    assert cluster.unschedulable_replicas(WEB, 300.0, NOW_S) == 0
