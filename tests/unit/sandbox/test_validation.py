import pytest

from podium.sandbox.errors import ApiError
from podium.sandbox.store import Store

CONTAINERS = [{"name": "main", "image": "web:1"}]


def workload(kind, **spec):
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": CONTAINERS, "restartPolicy": "Never"}}
    spec_fields = {"selector": {"matchLabels": {"app": "web"}}} if kind == "Deployment" else {}
    version = "apps/v1" if kind == "Deployment" else "batch/v1" if kind == "Job" else "policy/v1"
    spec_fields |= {} if kind == "PodDisruptionBudget" else {"template": template}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "web"}, "spec": spec_fields | spec}


@pytest.mark.parametrize(
    ("manifest", "field"),
    [
        (workload("Deployment", replicas=-1), "spec.replicas"),
        (workload("Deployment", replicas="3"), "spec.replicas"),
        (workload("Deployment", selector=None), "spec.selector"),
        (workload("Deployment", selector={"matchLabels": {"app": "api"}}), "spec.template.metadata.labels"),
        (workload("Job", parallelism=True), "spec.parallelism"),
        (workload("Job", template={"spec": {"containers": CONTAINERS}}), "spec.template.spec.restartPolicy"),
        (workload("Job", template={"spec": {"restartPolicy": "Never"}}), "spec.template.spec.containers"),
        (workload("PodDisruptionBudget", minAvailable=1, maxUnavailable=1), "spec"),
        (workload("PodDisruptionBudget", minAvailable="half"), "spec.minAvailable"),
    ],
)
def test_a_workload_that_makes_no_sense_is_refused(manifest, field):
    with pytest.raises(ApiError) as caught:
        Store().create(manifest)
    assert caught.value.code == 422
    assert caught.value.details["causes"][0]["field"] == field


@pytest.mark.parametrize("field", ["selector", "template", "strategy"])
def test_a_workload_of_the_wrong_shape_cannot_be_decoded(field):
    with pytest.raises(ApiError) as caught:
        Store().create(workload("Deployment", **{field: "text"}))
    assert caught.value.code == 400
