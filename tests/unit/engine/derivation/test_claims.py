import pytest

from podium.engine.derivation.claims import may_have_claims, with_claims
from podium.engine.derivation.control_objects import ControlObjects
from podium.engine.derivation.pods import stateful_set_pod
from tests import builders
from tests.device_manifests import exactly
from tests.manifests import pod
from tests.workload_manifests import claim_template, claims_from, device_claim_template, names_of, workload

DATABASE = workload("StatefulSet", "db", volumeClaimTemplates=[claim_template()])
SCRATCH = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": claim_template()["spec"]}}}]


def _claims(manifest, *objects, existing=()):
    return with_claims(manifest, ControlObjects(objects), lambda kind, key: (kind, key) in existing)


def test_each_pod_of_a_stateful_set_has_claims_by_its_ordinal():
    for ordinal in (0, 1):
        _, (claim,) = _claims(stateful_set_pod(DATABASE, ordinal), DATABASE)
        assert claim["metadata"] == {"name": f"data-db-{ordinal}", "namespace": "default", "labels": {"app": "db"}}
        assert claim["spec"] == claim_template()["spec"]


def test_a_claim_that_exists_is_used():
    existing = {("PersistentVolumeClaim", "default/data-db-0")}
    assert _claims(stateful_set_pod(DATABASE, 0), DATABASE, existing=existing)[1] == []
    assert names_of(_claims(stateful_set_pod(DATABASE, 1), DATABASE, existing=existing)[1]) == ["data-db-1"]


def test_a_pod_of_a_stateful_set_that_is_not_known_has_no_claims():
    assert _claims(stateful_set_pod(DATABASE, 0))[1] == []


def test_an_ephemeral_volume_has_a_claim_that_the_pod_owns():
    _, (claim,) = _claims(pod("job-1", volumes=SCRATCH))
    assert claim["metadata"]["name"] == "job-1-scratch"
    (owner,) = claim["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Pod", "job-1", True)
    assert claim["spec"] == claim_template()["spec"]


def test_devices_of_a_template_are_claimed_under_a_name_that_the_status_has():
    status_pod, (claim,) = _claims(
        pod("train", resourceClaims=claims_from("gpus")), device_claim_template("gpus", exactly(count=2))
    )
    name = claim["metadata"]["name"]
    assert name.startswith("train-gpus-")
    assert status_pod["status"]["resourceClaimStatuses"] == [{"name": "gpus", "resourceClaimName": name}]
    assert claim["spec"]["devices"]["requests"] == [exactly(count=2)]


def test_a_running_pods_own_claim_to_devices_is_used():
    status = {"resourceClaimStatuses": [{"name": "gpus", "resourceClaimName": "train-gpus-x1"}]}
    running = pod("train", resourceClaims=claims_from("gpus"), status=status)
    objects = [device_claim_template("gpus", exactly())]
    status_pod, claims = _claims(running, *objects, existing={("ResourceClaim", "default/train-gpus-x1")})
    assert (status_pod["status"], claims) == (status, [])
    status_pod, (claim,) = _claims(running, *objects)
    assert status_pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"] == claim["metadata"]["name"]


def test_a_template_that_is_not_known_makes_no_claim():
    status_pod, claims = _claims(pod("train", resourceClaims=claims_from("gpus")))
    assert claims == []
    assert "status" not in status_pod


@pytest.mark.parametrize(
    ("spec", "may_have"),
    [
        ({}, False),
        ({"volumes": [{"name": "a", "emptyDir": {}}]}, False),
        ({"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "a"}}]}, True),
        ({"volumes": SCRATCH}, True),
        ({"resourceClaims": claims_from("gpus")}, True),
        ({"resourceClaims": [{"name": "gpus", "resourceClaimName": "gpus"}]}, False),
    ],
)
def test_only_pods_with_such_volumes_or_templates_may_have_claims(spec, may_have):
    assert may_have_claims(builders.pod(spec=spec)) is may_have
