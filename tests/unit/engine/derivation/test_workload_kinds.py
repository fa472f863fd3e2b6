import pytest

from podium.engine.derivation.workload_kinds import (
    REPLICAS_MAX,
    PodTemplate,
    demand_template,
    replicas_of,
    template_of,
    templates_in,
)
from podium.engine.errors import ManifestError
from podium.engine.files import LocatedManifest
from tests.manifests import pod
from tests.workload_manifests import template, workload


def _object(version, kind, **spec):
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "it"}, "spec": spec}


def _with_origins(*manifests):
    return [LocatedManifest(manifest, "it.yaml") for manifest in manifests]


FARM = (
    "found 0: the file holds Farm; podium does not know where a Farm keeps its pod template: "
    "save the template's metadata and spec as a Pod, or as spec.template of a Deployment, and ask about that"
)
KNOWN = [
    (workload("StatefulSet", replicas=3), [("", 3)]),
    (workload("Job", parallelism=4), [("", 4)]),
    (_object("batch/v1", "CronJob", jobTemplate={"spec": {"parallelism": 2, "template": template()}}), [("", 2)]),
    ({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "it"}, "template": template()}, [("", None)]),
    (
        _object(
            "batch.volcano.sh/v1alpha1",
            "Job",
            tasks=[
                {"name": "ps", "replicas": 1, "template": template()},
                {"name": "worker", "replicas": 3, "template": template()},
            ],
        ),
        [("ps", 1), ("worker", 3)],
    ),
    (
        _object(
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            replicatedJobs=[{"name": "all", "template": {"spec": {"parallelism": 5, "template": template()}}}],
        ),
        [("all", 5)],
    ),
    (
        _object(
            "kubeflow.org/v1",
            "PyTorchJob",
            pytorchReplicaSpecs={
                "Master": {"replicas": 1, "template": template()},
                "Worker": {"replicas": 7, "template": template()},
            },
        ),
        [("Master", 1), ("Worker", 7)],
    ),
    (
        _object(
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            replicatedJobs=[
                {"name": "all", "replicas": 2, "template": {"spec": {"parallelism": 5, "template": template()}}},
                {"name": "one", "replicas": 4, "template": {"spec": {"template": template()}}},
            ],
        ),
        [("all", 10), ("one", 4)],
    ),
    (
        _object(
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            replicas=2,
            leaderWorkerTemplate={"size": 3, "workerTemplate": template()},
        ),
        [("workerTemplate", 6)],
    ),
    (
        _object(
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            replicas=2,
            leaderWorkerTemplate={"size": 3, "leaderTemplate": template(), "workerTemplate": template()},
        ),
        [("leaderTemplate", 2), ("workerTemplate", 4)],
    ),
    (
        _object(
            "ray.io/v1",
            "RayCluster",
            headGroupSpec={"template": template()},
            workerGroupSpecs=[{"groupName": "gpu", "replicas": 3, "numOfHosts": 2, "template": template()}],
        ),
        [("headGroupSpec", None), ("gpu", 6)],
    ),
    (_object("argoproj.io/v1alpha1", "Rollout", replicas=2, template=template()), [("", 2)]),
]
PODLESS = [
    _object("bitnami.com/v1alpha1", "SealedSecret", template={"metadata": {"name": "db"}}),
    _object("karpenter.sh/v1", "NodePool", template={"spec": {"requirements": []}}),
    _object("cluster.x-k8s.io/v1beta1", "MachineDeployment", replicas=3, template={"spec": {"bootstrap": {}}}),
    _object("example.com/v1", "Deployment", template=template()),
    {"apiVersion": "example.com/v1", "kind": "Pod", "spec": pod("a")["spec"]},
]


@pytest.mark.parametrize(("manifest", "parts"), KNOWN, ids=[manifest["kind"] for manifest, _ in KNOWN])
def test_the_templates_of_kinds_that_have_pods_are_known(manifest, parts):
    templates = templates_in(manifest)
    assert [(template.name, template.replicas) for template in templates] == parts
    assert all(
        pod_template.content == template() or "app" in pod_template.content["metadata"]["labels"]
        for pod_template in templates
    )


@pytest.mark.parametrize("manifest", PODLESS, ids=lambda manifest: manifest["kind"])
def test_spec_template_of_other_kinds_is_no_pod_template(manifest):
    assert templates_in(manifest) == []
    assert template_of(manifest) is None


def test_a_pod_is_its_own_template():
    manifest = pod("a")
    assert template_of(manifest) is manifest


def test_the_workload_of_a_file_is_found_beside_other_objects():
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    items = _with_origins(service, workload("Deployment"))
    item, part = demand_template(items, "it.yaml")
    assert (item, part.content) == (items[1], items[1].manifest["spec"]["template"])


@pytest.mark.parametrize(
    ("manifests", "message"),
    [
        ([], "it.yaml: expected one pod or workload with a pod template, found 0: the file holds nothing"),
        ([PODLESS[0]], r"found 0: the file holds SealedSecret$"),
        ([pod("a"), pod("b")], r"found 2: the file holds Pod$"),
        (
            [_object("example.com/v1", "Farm", deep={"parts": [template()]})],
            FARM,
        ),
        ([KNOWN[4][0]], r"found 2: the file holds Job; Job has several \(ps, worker\): save the template's metadata"),
    ],
)
def test_a_file_without_exactly_one_template_is_refused_with_what_to_extract(manifests, message):
    with pytest.raises(ManifestError, match=message):
        demand_template(_with_origins(*manifests), "it.yaml")


def test_the_number_of_pods_is_checked():
    (item,) = _with_origins(workload("Job"))
    assert replicas_of(item, PodTemplate({}, replicas=None), default=4) == 4
    assert replicas_of(item, PodTemplate({}, replicas=0), default=4) == 0
    for count in (-1, True, "3", REPLICAS_MAX + 1):
        with pytest.raises(
            ManifestError, match=r"it\.yaml: spec\.parallelism: .* is not a number of pods up to 100,000"
        ):
            replicas_of(item, PodTemplate({}, replicas=count, count_field="parallelism"), default=1)


@pytest.mark.parametrize(("field", "value"), [("size", "3"), ("replicas", -1)])
def test_each_factor_of_the_number_of_pods_is_checked(field, value):
    counts = {"size": 2, "replicas": 2, field: value}
    parts = {"size": counts["size"], "workerTemplate": template()}
    spec = {"replicas": counts["replicas"], "leaderWorkerTemplate": parts}
    (item,) = _with_origins(_object("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", **spec))
    (part,) = templates_in(item.manifest)
    with pytest.raises(ManifestError, match=rf"spec\.{field}: {value!r} is not a number of pods"):
        replicas_of(item, part, default=1)


@pytest.mark.parametrize(
    "spec", [{"template": 5}, {"template": None}, {}, {"tasks": 5}, {"tasks": [5, {"template": 5}]}]
)
def test_malformed_workloads_have_no_templates(spec):
    assert templates_in(_object("apps/v1", "Deployment", **spec)) == []
    assert templates_in(_object("batch.volcano.sh/v1alpha1", "Job", **spec)) == []


@pytest.mark.parametrize(("field", "count_field"), [("replica", "replicas"), ("paralelism", "parallelism")])
def test_a_misspelt_number_of_pods_is_refused(field, count_field):
    item = LocatedManifest({"kind": "Deployment", "spec": {field: 7, "template": {}}}, "w.yaml: document 1")
    with pytest.raises(
        ManifestError, match=rf"w.yaml: document 1: spec\.{field}: unknown field; did you mean {count_field}"
    ):
        replicas_of(item, PodTemplate({}, replicas=None, count_field=count_field), default=1)


def test_fields_beside_an_absent_number_of_pods_are_no_misspellings():
    spec = {"replicas": None, "minReplicas": 1, "replicatedJobs": [], "paused": True, "revisionHistoryLimit": 3}
    item = LocatedManifest({"kind": "Deployment", "spec": spec}, "w.yaml")
    assert replicas_of(item, PodTemplate({}, replicas=None), default=4) == 4
