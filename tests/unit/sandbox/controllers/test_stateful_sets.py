import pytest

HASH = "controller-revision-hash"


def claim_template(name="data", storage="1Gi"):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
    return {"metadata": {"name": name, "labels": {"tier": "db"}}, "spec": spec}


def scale(bench, replicas):
    bench.store.patch("statefulsets", "web", {"spec": {"replicas": replicas}})


def run(bench, *names):
    for name in names:
        bench.run(bench.store.get("pods", name))
    bench.settle()


def vanish(bench, *names):
    for name in names:
        bench.store.delete("pods", name, grace_period_s=0)
    bench.settle()


def image_of(bench, name):
    return bench.store.get("pods", name)["spec"]["containers"][0]["image"]


def test_pods_are_created_in_order_each_when_those_before_it_are_ready(bench, workload):
    bench.store.create(workload("StatefulSet", replicas=3, ordinals={"start": 1}, serviceName="web"))
    bench.settle()
    assert bench.names() == {"web-1"}
    run(bench, "web-1")
    assert bench.names() == {"web-1", "web-2"}
    run(bench, "web-2")
    pod = bench.store.get("pods", "web-3")
    assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "3"
    assert pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "web-3"
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("web-3", "web")
    run(bench, "web-3")
    status = bench.store.get("statefulsets", "web")["status"]
    assert (status["replicas"], status["readyReplicas"], status["updatedReplicas"]) == (3, 3, 3)


def test_pods_are_created_at_once_in_parallel(bench, workload):
    bench.store.create(workload("StatefulSet", replicas=3, podManagementPolicy="Parallel"))
    bench.settle()
    assert bench.names() == {"web-0", "web-1", "web-2"}


def test_each_pod_has_claims_of_its_own_which_outlive_it(bench, workload):
    manifest = workload("StatefulSet", replicas=2, volumeClaimTemplates=[claim_template()])
    volumes = [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]
    manifest["spec"]["template"]["spec"]["volumes"] = volumes
    bench.store.create(manifest)
    bench.settle(running=True)
    claims = {claim["metadata"]["name"]: claim for claim in bench.store.list("persistentvolumeclaims")}
    assert claims.keys() == {"data-web-0", "data-web-1"}
    assert claims["data-web-0"]["metadata"]["labels"] == {"app": "web", "tier": "db"}
    # The volume of the claim replaces the one of the template that has its name.
    own = {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}}
    assert bench.store.get("pods", "web-1")["spec"]["volumes"] == [own, {"name": "tmp", "emptyDir": {}}]
    scale(bench, 1)
    bench.settle()
    vanish(bench, "web-1")
    assert len(bench.store.list("persistentvolumeclaims")) == 2


def test_a_claim_that_is_refused_holds_back_its_pod(bench, workload):
    limit = {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "limits"}, "spec": {"limits": [limit]}}
    bench.store.create(limits)
    bench.store.create(workload("StatefulSet", volumeClaimTemplates=[claim_template(storage="2Gi")]))
    bench.settle()
    assert bench.names() == set()
    bench.store.delete("limitranges", "limits")
    bench.pass_time(1)
    bench.settle()
    assert bench.names() == {"web-0"}


def test_scale_down_takes_the_highest_and_waits_for_it(bench, workload):
    bench.store.create(workload("StatefulSet", replicas=3))
    bench.settle(running=True)
    scale(bench, 1)
    bench.settle()
    assert bench.names() == {"web-0", "web-1"}
    vanish(bench, "web-2")
    assert bench.names() == {"web-0"}


def test_scale_down_in_order_waits_while_a_pod_that_stays_is_not_ready(bench, workload):
    bench.store.create(workload("StatefulSet", replicas=3))
    bench.settle(running=True)
    bench.set_phase("web-0", "Running", conditions=[{"type": "Ready", "status": "False"}])
    scale(bench, 2)
    bench.settle()
    assert bench.names() == {"web-0", "web-1", "web-2"}


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_an_ended_pod_is_replaced(bench, workload, phase):
    bench.store.create(workload("StatefulSet"))
    bench.settle(running=True)
    uid = bench.store.get("pods", "web-0")["metadata"]["uid"]
    bench.set_phase("web-0", phase)
    bench.settle()
    assert bench.store.get("pods", "web-0")["metadata"]["uid"] != uid


def test_a_rolling_update_replaces_one_pod_after_the_other_from_the_highest(bench, workload):
    bench.store.create(workload("StatefulSet", replicas=2))
    bench.settle(running=True)
    bench.store.update(workload("StatefulSet", replicas=2, image="web:2"))
    bench.settle()
    assert bench.names() == {"web-0"}
    vanish(bench, "web-1")
    assert (image_of(bench, "web-0"), image_of(bench, "web-1")) == ("web:1", "web:2")
    run(bench, "web-1")
    assert bench.names() == {"web-1"}
    vanish(bench, "web-0")
    run(bench, "web-0")
    status = bench.store.get("statefulsets", "web")["status"]
    assert status["currentRevision"] == status["updateRevision"]
    assert image_of(bench, "web-0") == "web:2"


def test_pods_below_the_partition_keep_the_template_of_before(bench, workload):
    bench.store.create(workload("StatefulSet", replicas=2))
    bench.settle(running=True)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    bench.store.update(workload("StatefulSet", replicas=2, image="web:2", updateStrategy=strategy))
    bench.settle()
    vanish(bench, "web-1")
    run(bench, "web-1")
    vanish(bench, "web-0")
    assert (image_of(bench, "web-0"), image_of(bench, "web-1")) == ("web:1", "web:2")


def test_a_strategy_on_delete_leaves_pods_alone(bench, workload):
    strategy = {"type": "OnDelete"}
    bench.store.create(workload("StatefulSet", updateStrategy=strategy))
    bench.settle(running=True)
    bench.store.update(workload("StatefulSet", updateStrategy=strategy, image="web:2"))
    bench.settle()
    assert image_of(bench, "web-0") == "web:1"
    vanish(bench, "web-0")
    assert image_of(bench, "web-0") == "web:2"


def test_going_back_to_a_template_renews_its_revision(bench, workload):
    for image in ("web:1", "web:2", "web:1"):
        manifest = workload("StatefulSet", replicas=0, image=image)
        if bench.store.list("statefulsets"):
            bench.store.update(manifest)
        else:
            bench.store.create(manifest)
        bench.settle()
    numbers = sorted(revision["revision"] for revision in bench.store.list("controllerrevisions"))
    assert numbers == [2, 3]


def test_old_revisions_are_forgotten_and_all_go_with_their_workload(bench, workload):
    bench.store.create(workload("StatefulSet", replicas=0, revisionHistoryLimit=1))
    bench.settle()
    for number in range(2, 6):
        bench.store.update(workload("StatefulSet", replicas=0, revisionHistoryLimit=1, image=f"web:{number}"))
        bench.settle()
    assert [revision["revision"] for revision in bench.store.list("controllerrevisions")].count(5) == 1
    assert len(bench.store.list("controllerrevisions")) == 2
    bench.store.delete("statefulsets", "web")
    bench.settle()
    assert bench.store.list("controllerrevisions") == []


def test_only_pods_of_its_own_names_are_adopted(bench, workload):
    for name in ("web-0", "other-1", "web-x"):
        pod = workload("StatefulSet")["spec"]["template"]
        metadata = pod["metadata"] | {"name": name}
        bench.store.create(pod | {"apiVersion": "v1", "kind": "Pod", "metadata": metadata})
    bench.store.create(workload("StatefulSet", replicas=1, updateStrategy={"type": "OnDelete"}))
    bench.settle()
    owned_names = {pod["metadata"]["name"] for pod in bench.pods() if pod["metadata"].get("ownerReferences")}
    assert owned_names == {"web-0"}
