from podium.engine.derivation.control_objects import ControlObjects
from podium.engine.derivation.manager import ControllerManager
from podium.engine.manifests import read_manifest
from podium.objects.resource_types import PERSISTENT_VOLUME_CLAIMS, PODS
from tests import builders
from tests.manifests import pod
from tests.workload_manifests import claim, names_of, with_owner, workload


def _pods(*manifests):
    return [read_manifest(manifest, PODS) for manifest in manifests]


def _web(name, kind="ReplicaSet", of="web", **fields):
    return with_owner(pod(name, node="n1", labels={"app": of}, **fields), kind, of)


def _manager(objects=(), pods=(), nodes=(), claims=()):
    stored_claims = {claim.key: claim for claim in (read_manifest(item, PERSISTENT_VOLUME_CLAIMS) for item in claims)}
    return ControllerManager(ControlObjects(objects), _pods(*pods), lambda: nodes, stored_claims.get)


def _creations(manager):
    return names_of(manifest for workload_sync in manager.sync() for manifest in workload_sync.sync.create)


def _deletions(manager):
    return [pod.metadata.name for workload_sync in manager.sync() for pod in workload_sync.sync.delete]


def test_a_known_workload_replaces_a_pod_that_is_gone():
    manager = _manager([workload("ReplicaSet", replicas=1)], [_web("web-a")])
    assert manager.sync() == []
    manager.on_pod_gone(*_pods(_web("web-a")))
    assert len(_creations(manager)) == 1


def test_a_job_replaces_a_pod_only_after_its_backoff():
    manager = _manager([workload("Job")], [_web("web-a", "Job")])
    manager.on_pod_gone(*_pods(_web("web-a", "Job")))
    assert manager.sync() == []
    assert manager.end_backoffs()
    assert len(_creations(manager)) == 1
    assert not manager.end_backoffs()


def test_a_workload_of_which_only_pods_are_known_can_be_scaled():
    manager = _manager([], [_web("web-a", cpu="2"), _web("web-b", cpu="2")])
    assert manager.scale("ReplicaSet", "default/web", 3)
    ((sync,),) = [workload_sync.sync.create for workload_sync in manager.sync()]
    assert sync["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "2"
    assert "nodeName" not in sync["spec"]
    assert not manager.scale("ReplicaSet", "default/other", 3)


def test_a_deployment_is_made_up_through_the_name_of_its_replica_set():
    pods = [with_owner(pod(f"web-5d-{letter}", node="n1"), "ReplicaSet", "web-5d") for letter in "ab"]
    manager = _manager([], pods)
    assert manager.workloads() == ["default/Deployment/web", "default/ReplicaSet/web-5d"]
    assert manager.scale("Deployment", "default/web", 1)
    manager.sync()
    assert _deletions(manager) == ["web-5d-b"]


def test_a_known_deployment_owns_the_pods_of_replica_sets_that_are_not_known():
    pods = [with_owner(pod(f"web-5d-{letter}", node="n1"), "ReplicaSet", "web-5d") for letter in "ab"]
    manager = _manager([workload("Deployment", replicas=2)], pods)
    assert manager.scale("Deployment", "default/web", 3)
    manager.sync()
    assert len(_creations(manager)) == 1
    assert manager.new_replica_sets == []
    manager = _manager([workload("Deployment", replicas=2)], pods)
    removed_pods = manager.remove("Deployment", "default/web")
    assert [pod.metadata.name for pod in removed_pods or ()] == ["web-5d-a", "web-5d-b"]


def test_a_stateful_set_is_made_up_with_the_claims_of_its_pods():
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}
    database = with_owner(pod("db-0", node="n1", volumes=[volume]), "StatefulSet", "db")
    manager = _manager([], [database], claims=[claim("data-db-0", "7Gi")])
    assert manager.scale("StatefulSet", "default/db", 2)
    ((manifest,),) = [workload_sync.sync.create for workload_sync in manager.sync()]
    assert manifest["metadata"]["name"] == "db-1"
    assert manifest["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == "data-db-1"


def test_a_workload_without_pods_can_be_scaled():
    manager = _manager([workload("StatefulSet", "db", 0)])
    assert manager.scale("StatefulSet", "default/db", 2)
    assert _creations(manager) == ["db-0"]


def test_the_parallelism_of_a_job_is_scaled():
    manager = _manager([workload("Job")])
    assert manager.scale("Job", "default/web", 3)
    assert len(_creations(manager)) == 3


def test_pods_without_a_controller_are_adopted():
    manager = _manager([workload("ReplicaSet", replicas=1)], [pod("web-x", node="n1", labels={"app": "web"})])
    manager.touch("ReplicaSet", "default/web")
    ((orphan,),) = [workload_sync.sync.adopt for workload_sync in manager.sync()]
    assert orphan.metadata.controller.name == "web"
    manager.on_pod(orphan)
    assert manager.sync() == []


def test_a_stateful_set_adopts_pods_of_its_names_only():
    labels = {"app": "db"}
    orphans = [pod("db-0", node="n1", labels=labels), pod("other-0", node="n1", labels=labels)]
    manager = _manager([workload("StatefulSet", "db", 1)], orphans)
    manager.touch("StatefulSet", "default/db")
    ((orphan,),) = [workload_sync.sync.adopt for workload_sync in manager.sync()]
    assert orphan.metadata.name == "db-0"


def test_a_removed_workload_takes_its_pods_along_and_is_not_made_up_again():
    manager = _manager([workload("ReplicaSet", replicas=1)], [_web("web-a")])
    removed_pods = manager.remove("ReplicaSet", "default/web")
    assert [pod.metadata.name for pod in removed_pods or ()] == ["web-a"]
    manager.on_pod_gone(*_pods(_web("web-a")))
    assert manager.sync() == []
    assert manager.remove("ReplicaSet", "default/other") is None


def test_an_applied_workload_keeps_its_number_of_replicas_unless_it_says_another():
    manager = _manager([workload("ReplicaSet", replicas=3)], [_web(f"web-{letter}") for letter in "abc"])
    manager.apply(workload("ReplicaSet"))
    assert manager.sync() == []
    manager.apply(workload("ReplicaSet", replicas=2))
    assert _deletions(manager) == ["web-c"]


def test_a_changed_template_of_a_stateful_set_rolls_its_pods():
    pods = [
        with_owner(pod(f"db-{number}", node="n1", labels={"app": "db"}), "StatefulSet", "db") for number in range(2)
    ]
    manager = _manager([workload("StatefulSet", "db", 2)], pods)
    manager.apply(workload("StatefulSet", "db", 2))
    assert manager.sync() == []
    manager.apply(workload("StatefulSet", "db", 2, cpu="2"))
    assert _deletions(manager) == ["db-1"]


def _pod_of_revision(name, revision, kind="StatefulSet", label="controller-revision-hash", of="db", **fields):
    item = _web(name, kind, of=of, **fields)
    item["metadata"]["labels"][label] = revision
    return item


REVISIONS = {"currentRevision": "db-1a", "updateRevision": "db-2b"}


def test_a_rollout_of_a_stateful_set_that_was_begun_goes_on():
    pods = [_pod_of_revision("db-0", "db-1a"), _pod_of_revision("db-1", "db-1a"), _pod_of_revision("db-2", "db-2b")]
    manager = _manager([workload("StatefulSet", "db", 3, status=REVISIONS)], pods)
    assert manager.sync() == []
    manager.touch("StatefulSet", "default/db")
    assert _deletions(manager) == ["db-1"]


def test_a_rollout_of_a_daemon_set_that_was_begun_goes_on():
    agent = workload("DaemonSet", "agent")
    agent["metadata"]["annotations"] = {"deprecated.daemonset.template.generation": "2"}
    pods = [
        _pod_of_revision(f"agent-{generation}", generation, "DaemonSet", "pod-template-generation", "agent")
        for generation in ("1", "2")
    ]
    pods[1]["spec"]["nodeName"] = "n2"
    manager = _manager([agent], pods, nodes=[builders.node("n1"), builders.node("n2")])
    manager.touch("DaemonSet", "default/agent")
    assert _deletions(manager) == ["agent-1"]


def _cpu_of_created(manager):
    return [
        create["spec"]["containers"][0]["resources"]["requests"]["cpu"]
        for workload_sync in manager.sync()
        for create in workload_sync.sync.create
    ]


def test_a_pod_below_the_partition_comes_back_from_the_template_that_it_had():
    partition = {"updateStrategy": {"rollingUpdate": {"partition": 1}}}
    pods = [_pod_of_revision("db-0", "db-1a", cpu="1"), _pod_of_revision("db-1", "db-2b", cpu="2")]
    manager = _manager([workload("StatefulSet", "db", 2, cpu="2", status=REVISIONS, **partition)], pods)
    manager.on_pod_gone(*_pods(pods[0]))
    assert _cpu_of_created(manager) == ["1"]
    manager.on_pod(*_pods(pods[0]))
    manager.on_pod_gone(*_pods(pods[1]))
    assert _cpu_of_created(manager) == ["2"]


def test_a_template_that_is_changed_now_does_not_change_pods_below_the_partition():
    partition = {"updateStrategy": {"rollingUpdate": {"partition": 3}}}
    pods = [_web(f"db-{number}", "StatefulSet", of="db", cpu="1") for number in range(2)]
    manager = _manager([workload("StatefulSet", "db", 2, cpu="1", **partition)], pods)
    manager.apply(workload("StatefulSet", "db", 4, cpu="2", **partition))
    assert _cpu_of_created(manager) == ["1"]


def test_a_changed_template_of_a_deployment_gets_a_replica_set_of_its_own():
    manager = _manager([workload("Deployment", replicas=2)])
    manager.touch("Deployment", "default/web")
    manager.sync()
    manager.apply(workload("Deployment", replicas=2, cpu="2"))
    manager.sync()
    first, second = manager.new_replica_sets
    assert first["metadata"]["name"] != second["metadata"]["name"]


def test_a_daemon_set_is_synced_when_nodes_change():
    nodes = [builders.node("n1")]
    manager = _manager([workload("DaemonSet")], nodes=nodes)
    manager.on_nodes()
    assert len(_creations(manager)) == 1
    nodes.append(builders.node("n2"))
    assert manager.sync() == []
    manager.on_nodes()
    assert len(_creations(manager)) == 2  # the first was not reported


def test_expected_pods_are_those_that_the_workloads_want():
    pods = [_web("web-a"), _web("other-a", of="other"), pod("bare", node="n1")]
    manager = _manager([workload("ReplicaSet", replicas=5)], pods)
    assert manager.expected_pods(_pods(*pods)) == 6
    assert manager.expected_pods(_pods(_web("sum-a", "Job"))) is None
    assert manager.expected_pods(_pods(_web("agent-a", "DaemonSet"))) is None


def test_a_replica_sets_deployment_says_how_many_pods_are_expected():
    replica_set = with_owner(workload("ReplicaSet", "web-5d", 2), "Deployment", "web")
    manager = _manager([replica_set, workload("Deployment", replicas=9)], [_web("web-a", of="web-5d")])
    assert manager.expected_pods(_pods(_web("web-a", of="web-5d"))) == 9


def test_only_pods_of_unknown_controllers_are_replaced_alike():
    manager = _manager([workload("ReplicaSet")], [])
    (web_pod,), (unknown,) = _pods(_web("web-a")), _pods(_web("other-a", of="other"))
    assert not manager.is_replaced_alike(web_pod)
    assert manager.is_replaced_alike(unknown)
    for item in (pod("bare"), _web("db-0", "StatefulSet"), _web("agent-a", "DaemonSet")):
        assert not manager.is_replaced_alike(*_pods(item))
