"""The library asks about the pods that would exist, as the commands do."""

import pytest

from podium import Cluster
from podium.engine import cluster as engine_cluster
from podium.engine.errors import ManifestError
from tests.device_manifests import device_class, devices, exactly, resource_slice
from tests.manifests import node, nodes
from tests.workload_manifests import (
    claim_template,
    claims_from,
    device_claim_template,
    priority_class,
    runtime_class,
    storage,
    workload,
)


def _plan(manifest, *objects):
    """The pods for which nodes would be bought beside one that is too small for any."""
    cluster = Cluster.load([node("n1", "2"), node("n2", "0"), *objects])
    plan = cluster.plan(adopt_nodes=True, assume_unschedulable=True, rules="podium", add=manifest).as_dict()
    return [name for new_node in plan["new_nodes"] for name in new_node["pods"]], len(plan["new_nodes"])


@pytest.mark.parametrize("question", ["evaluate", "capacity", "why", "fixes"])
@pytest.mark.parametrize(
    ("field", "item"),
    [("priorityClassName", priority_class("other", 1)), ("runtimeClassName", runtime_class("other"))],
)
def test_pods_that_the_api_server_refuses_are_no_question(question, field, item):
    cluster = Cluster.load([*nodes(1), item])
    with pytest.raises(ManifestError, match=r"is forbidden: .*absent"):
        getattr(cluster, question)(workload("Deployment", pod_spec={field: "absent"}))
    getattr(cluster, question)(workload("Deployment", pod_spec={field: "other"}))


@pytest.mark.parametrize(("size", "fits"), [("20Gi", 0), ("5Gi", 32)])
def test_the_claims_of_a_stateful_set_need_room(size, fits):
    database = workload("StatefulSet", "db", volumeClaimTemplates=[claim_template(size=size)])
    cluster = Cluster.load([*nodes(2), *storage("10Gi")])
    assert cluster.capacity(database).fits == fits
    assert bool(cluster.evaluate(database).node) is bool(fits)
    assert bool(cluster.why(database).node) is bool(fits)
    assert len(cluster.scores(database)) == (2 if fits else 0)
    assert cluster.headroom(database, 2).fits is bool(fits)


@pytest.mark.parametrize(("size", "where"), [("20Gi", None), ("5Gi", "node-0")])
def test_a_placed_pod_of_a_stateful_set_has_its_claims(size, where):
    database = workload("StatefulSet", "db", volumeClaimTemplates=[claim_template(size=size)])
    for place in (lambda cluster: [cluster.place(database)], lambda cluster: cluster.place([database])):
        cluster = Cluster.load([*nodes(1), *storage("10Gi")])
        (placement,) = place(cluster)
        assert placement.node == where
        assert "not found" not in placement.message
        claim = cluster.manifest_of("PersistentVolumeClaim", "data-db-0")
        assert bool(claim["spec"].get("volumeName")) is bool(where)


def test_a_placed_pod_of_a_deployment_counts_for_the_next_one_of_its_revision():
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    keys = {"matchLabelKeys": ["pod-template-hash"]}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [{**term, **keys}]}
    web = workload("Deployment", pod_spec={"affinity": {"podAntiAffinity": terms}})
    cluster = Cluster.load(nodes(1))
    assert cluster.place(web).node == "node-0"
    assert cluster.capacity(web).fits == 0


def test_a_question_leaves_no_workload_behind():
    database = workload("StatefulSet", "db", volumeClaimTemplates=[claim_template()])
    cluster = Cluster.load([*nodes(2), *storage("10Gi")])
    cluster.capacity(database)
    cluster.why(workload("Deployment"))
    cluster.add(database)
    cluster.add(workload("Deployment"))
    assert next(pod.metadata.name for pod in cluster.pods) == "db-0"


def test_claims_from_templates_need_devices():
    objects = device_class(), resource_slice("gpus", devices(3), node="node-0"), device_claim_template("gpu", exactly())
    train = workload("Deployment", pod_spec={"resourceClaims": claims_from("gpu")})
    cluster = Cluster.load([*nodes(2), *objects])
    assert cluster.capacity(train).fits == 3
    assert cluster.why(train).node == "node-0"


def test_a_daemon_fits_once_on_each_node():
    assert Cluster.load(nodes(3)).capacity(workload("DaemonSet", "agent")).fits == 3


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ({"parallelism": 5, "completions": 3}, 1),
        ({"parallelism": 5}, 3),
        ({"parallelism": 5, "suspend": True}, 0),
        ({"parallelism": 5, "completions": 4, "completionMode": "Indexed"}, 2),
    ],
)
def test_plans_are_for_the_pods_that_a_job_allows(spec, count):
    assert len(_plan(workload("Job", **spec))[0]) == count


def test_daemons_take_their_part_of_nodes_that_are_bought():
    web = workload("Deployment", replicas=4)
    assert _plan(web)[1] == 1
    assert _plan(web, workload("DaemonSet", "agent", cpu="600m"))[1] == 3


def test_classes_that_were_applied_count_after_another_configuration_decides():
    cluster = Cluster.load([*nodes(1), priority_class("other", 1)])
    web = workload("Deployment", pod_spec={"priorityClassName": "urgent"})
    profile = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler"}],
    }
    outcome = cluster.what_if([{"apply": priority_class("urgent", 5)}, {"config": profile}, {"apply": web}])
    assert (len(outcome.placed), outcome.refused) == (1, ())


@pytest.mark.parametrize("ask", ["evaluate", "fixes"])
def test_claims_are_derived_once_for_a_question(ask, monkeypatch):
    calls = []
    with_claims = engine_cluster.with_claims

    def counting(*args):
        calls.append(args[0]["metadata"]["name"])
        return with_claims(*args)

    monkeypatch.setattr(engine_cluster, "with_claims", counting)
    cluster = Cluster.load([*nodes(2), *storage("10Gi")])
    getattr(cluster, ask)(workload("StatefulSet", "db", volumeClaimTemplates=[claim_template()]))
    assert len(calls) == 1
