import pytest

from podium.sandbox.fill import sample_pod
from podium.sandbox.pods import bind

FINALIZER = "resource.kubernetes.io/delete-protection"
ALLOCATION = {"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "gpu-0"}]}}


def template(name="one-gpu", **metadata):
    devices = {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
    spec = {"metadata": metadata, "spec": {"devices": devices}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": spec,
    }


def claim(name):
    return template(name) | {"kind": "ResourceClaim", "spec": template()["spec"]["spec"]}


def user(name="web", **entry):
    pod = sample_pod(name)
    pod["spec"]["resourceClaims"] = [{"name": "gpu", **(entry or {"resourceClaimTemplateName": "one-gpu"})}]
    return pod


def allocate(store, name, *pods):
    """What the scheduler writes."""
    claim = store.get("resourceclaims", name)
    claim["metadata"]["finalizers"] = [FINALIZER]
    store.update(claim)
    users = [{"resource": "pods", "name": pod, "uid": store.get("pods", pod)["metadata"]["uid"]} for pod in pods]
    claim = store.get("resourceclaims", name)
    claim["status"] = {"allocation": ALLOCATION, "reservedFor": users}
    store.update(claim, subresource="status")


def claim_name(store, pod="web"):
    """The name of the claim that was made for a pod; its status names it."""
    [status] = store.get("pods", pod)["status"]["resourceClaimStatuses"]
    assert status["name"] == "gpu"
    return status["resourceClaimName"]


def test_a_pod_gets_the_claim_of_its_template_and_is_its_owner(bench):
    bench.store.create(template(labels={"team": "a"}, annotations={"note": "b"}))
    bench.store.create(user())
    bench.settle()
    claim = bench.store.get("resourceclaims", claim_name(bench.store))
    metadata, pod = claim["metadata"], bench.store.get("pods", "web")
    assert metadata["name"].startswith("web-gpu-")
    assert metadata["labels"] == {"team": "a"}
    assert metadata["annotations"] == {"note": "b", "resource.kubernetes.io/pod-claim-name": "gpu"}
    [owner] = metadata["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Pod", pod["metadata"]["uid"], True)
    assert claim["spec"]["devices"]["requests"][0]["exactly"] == {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": 1,
    }
    assert len(bench.store.list("resourceclaims")) == 1


def test_a_pod_waits_for_a_template_that_comes_later(bench):
    bench.store.create(user())
    bench.settle()
    assert bench.store.list("resourceclaims") == []
    bench.store.create(template())
    bench.settle()
    assert claim_name(bench.store)


def test_a_claim_that_somebody_deletes_is_made_again(bench):
    bench.store.create(template())
    bench.store.create(user())
    bench.settle()
    first = claim_name(bench.store)
    bench.store.delete("resourceclaims", first)
    bench.settle()
    assert claim_name(bench.store) != first


def test_long_names_are_cut_alike(bench):
    bench.store.create(template())
    pod = user("a" * 60)
    pod["spec"]["resourceClaims"][0]["name"] = "b" * 40
    bench.store.create(pod)
    bench.settle()
    [claim] = bench.store.list("resourceclaims")
    name = claim["metadata"]["name"]
    assert len(name) <= 63
    assert name.count("a") > name.count("b") > 10


def test_a_generated_claim_goes_with_its_pod(bench):
    bench.store.create(template())
    bench.store.create(user())
    bench.settle()
    allocate(bench.store, claim_name(bench.store), "web")
    bench.settle()
    bench.store.delete("pods", "web", grace_period_s=0)
    bench.settle()
    assert bench.store.list("resourceclaims") == []


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_generated_claim_goes_when_its_pod_has_ended(bench, phase):
    bench.store.create(template())
    bench.store.create(user())
    bench.settle()
    allocate(bench.store, claim_name(bench.store), "web")
    bench.set_phase("web", phase)
    bench.settle()
    assert bench.store.list("resourceclaims") == []


def test_a_shared_claim_is_freed_by_its_last_pod_and_stays(bench):
    bench.store.create(claim("shared"))
    for name in ("one", "two"):
        bench.store.create(user(name, resourceClaimName="shared"))
    allocate(bench.store, "shared", "one", "two")
    bench.settle()
    bench.store.delete("pods", "one", grace_period_s=0)
    bench.settle()
    status = bench.store.get("resourceclaims", "shared")["status"]
    assert [item["name"] for item in status["reservedFor"]] == ["two"]
    assert status["allocation"] == ALLOCATION
    bench.store.delete("pods", "two", grace_period_s=0)
    bench.settle()
    resourceclaims = bench.store.get("resourceclaims", "shared")
    assert resourceclaims["status"] == {}
    assert resourceclaims["metadata"]["finalizers"] == []


def test_a_claim_that_is_in_use_is_deleted_when_its_pod_is_gone(bench):
    bench.store.create(claim("mine"))
    bench.store.create(user(resourceClaimName="mine"))
    allocate(bench.store, "mine", "web")
    bench.store.delete("resourceclaims", "mine")
    bench.settle()
    assert "deletionTimestamp" in bench.store.get("resourceclaims", "mine")["metadata"]
    bench.store.delete("pods", "web", grace_period_s=0)
    bench.settle()
    assert bench.store.list("resourceclaims") == []


def test_the_claim_of_extended_resources_goes_when_its_pod_has_ended(bench):
    pod = bench.store.create(sample_pod("web"))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": pod["metadata"]["uid"], "controller": True}
    special_claim = claim("special")
    special_claim["metadata"]["ownerReferences"] = [owner]
    bench.store.create(special_claim)
    allocate(bench.store, "special", "web")
    bench.set_phase("web", "Running", extendedResourceClaimStatus={"resourceClaimName": "special"})
    bench.settle()
    assert bench.store.list("resourceclaims")
    bench.set_phase("web", "Succeeded")
    bench.settle()
    assert bench.store.list("resourceclaims") == []


def test_a_pod_that_got_its_node_without_the_scheduler_is_listed_as_a_user(bench):
    bench.store.create(claim("shared"))
    bench.store.create(user("one", resourceClaimName="shared"))
    allocate(bench.store, "shared", "one")
    bench.store.create(user("two", resourceClaimName="shared"))
    bench.settle()
    assert len(bench.store.get("resourceclaims", "shared")["status"]["reservedFor"]) == 1
    bind(bench.store, "default", "two", {"target": {"name": "n1"}})
    bench.settle()
    assert len(bench.store.get("resourceclaims", "shared")["status"]["reservedFor"]) == 2
