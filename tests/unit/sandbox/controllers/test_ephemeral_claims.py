def pod(name="web"):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    template = {"metadata": {"labels": {"tier": "tmp"}}, "spec": spec}
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}, {"name": "tmp", "emptyDir": {}}]
    containers = [{"name": "main", "image": "web:1"}]
    metadata = {"name": name}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers, "volumes": volumes},
    }


def claims(bench):
    return {claim["metadata"]["name"]: claim for claim in bench.store.list("persistentvolumeclaims")}


def test_a_claim_is_named_after_its_pod_and_collected_with_it(bench):
    bench.store.create(pod())
    bench.settle()
    claim = claims(bench)["web-scratch"]
    assert claim["metadata"]["labels"] == {"tier": "tmp"}
    [owner] = claim["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Pod", "web", True)
    assert claim["spec"]["resources"]["requests"] == {"storage": "1Gi"}
    bench.store.delete("pods", "web")
    bench.settle()
    assert claims(bench) == {}


def test_a_claim_that_is_deleted_is_made_again(bench):
    bench.store.create(pod())
    bench.settle()
    uid = claims(bench)["web-scratch"]["metadata"]["uid"]
    bench.store.delete("persistentvolumeclaims", "web-scratch")
    bench.settle()
    assert claims(bench)["web-scratch"]["metadata"]["uid"] != uid


def test_another_ones_claim_of_that_name_stays_as_it_is(bench):
    spec = {"accessModes": ["ReadWriteOnce"]}
    foreign_claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "web-scratch"},
        "spec": spec,
    }
    bench.store.create(foreign_claim)
    bench.store.create(pod())
    bench.settle()
    assert "ownerReferences" not in claims(bench)["web-scratch"]["metadata"]


def test_a_claim_that_is_refused_is_tried_again(bench):
    limit = {"type": "PersistentVolumeClaim", "min": {"storage": "5Gi"}}
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "limits"}, "spec": {"limits": [limit]}}
    bench.store.create(limits)
    bench.store.create(pod())
    bench.settle()
    assert claims(bench) == {}
    bench.store.delete("limitranges", "limits")
    bench.pass_time(1)
    bench.settle()
    assert claims(bench).keys() == {"web-scratch"}
