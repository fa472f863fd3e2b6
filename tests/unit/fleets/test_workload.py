import pytest

from podium.engine.errors import ManifestError
from tests.manifests import node, pod
from tests.unit.fleets.fleets import workload_of
from tests.workload_manifests import claim_template, template, workload


def _labels(result):
    return [manifest["metadata"]["labels"] for manifest in result.pods]


@pytest.mark.parametrize(
    ("manifest", "count"),
    [
        (workload("Deployment", replicas=3), 3),
        (workload("StatefulSet", replicas=2), 2),
        (workload("Job", parallelism=4, completions=9), 4),
        (workload("Job", parallelism=4, completions=3), 3),
        (pod("alone"), 1),
    ],
)
def test_pods_are_those_that_controllers_create(manifest, count):
    assert len(workload_of(manifest).pods) == count


def test_custom_workloads_have_as_many_pods_as_they_say():
    job = {"template": {"spec": template()}, "replicas": 2}
    job["template"]["spec"] = {"parallelism": 3, "template": template()}
    job_set = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train", "namespace": "ml"},
        "spec": {"replicatedJobs": [{"name": "workers", **job}]},
    }
    result = workload_of(job_set)
    assert (len(result.pods), result.name) == (6, "JobSet ml/train")


def test_a_workload_of_kueue_has_the_pods_of_its_sets():
    admission = {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": "job-train", "namespace": "ml"},
        "spec": {"podSets": [{"name": "main", "count": 4, "template": template()}]},
    }
    result = workload_of(admission)
    assert len(result.pods) == 4
    assert {manifest["metadata"]["namespace"] for manifest in result.pods} == {"ml"}


def test_suspension_gates_and_nodes_are_left_out_since_no_cluster_is_chosen_yet():
    assert len(workload_of(workload("Job", suspend=True, parallelism=2, completions=2)).pods) == 2
    gates = [{"name": "kueue.x-k8s.io/admission"}]
    result = workload_of(pod("gated", node="n1", schedulingGates=gates))
    assert result.pods[0]["spec"].keys() == {"containers", "schedulerName"}


def test_pods_of_a_template_share_their_spec():
    result = workload_of(workload("Deployment", replicas=5))
    assert len({id(manifest["spec"]) for manifest in result.pods}) == 1


def test_what_is_submitted_beside_it_comes_along():
    result = workload_of(workload("Deployment", replicas=1), {"apiVersion": "v1", "kind": "Service", **_meta("web")})
    assert sorted(manifest["kind"] for manifest in result.objects) == ["ReplicaSet", "Service"]
    assert not result.control_objects
    database = workload_of(workload("StatefulSet", "db", 1, volumeClaimTemplates=[claim_template()]))
    assert [manifest["kind"] for manifest in database.control_objects] == ["StatefulSet"]


def _meta(name):
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"selector": {"app": name}}}


@pytest.mark.parametrize(
    ("manifests", "message"),
    [
        ([], "expected pods or workloads with pod templates, found nothing"),
        ([{"apiVersion": "v1", "kind": "Service", **_meta("web")}], "found Service"),
        ([workload("DaemonSet")], "a DaemonSet has a pod on every node"),
        ([workload("Deployment", replicas=0)], "Deployment default/web: it has no pods"),
        ([workload("Deployment", replicas=-1)], "spec.replicas: -1 is not a number of pods"),
        ([workload("Deployment", replicas=2**31)], "spec.replicas: 2147483648 is not a number of pods"),
        ([workload("Job"), node("n1")], "the objects of a workload hold a Node"),
        ([{**workload("Job"), "metadata": {}}], "metadata.name: required"),
    ],
)
def test_what_is_no_workload_is_refused(manifests, message):
    with pytest.raises(ManifestError, match=message):
        workload_of(*manifests)


def test_more_pods_than_are_allowed_are_refused_before_they_are_made():
    from podium.fleets.workload import read_workload
    from tests.unit.fleets.fleets import with_location

    with pytest.raises(ManifestError, match="may have 10 pods here, and this one has 100,000"):
        read_workload(with_location(workload("Deployment", replicas=100_000)), 10)
