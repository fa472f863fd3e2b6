import re

import pytest

from podium.engine.derivation.pods import (
    COMPLETION_INDEX,
    TEMPLATE_HASH,
    asked_pod,
    daemon_set_pod,
    generated_name,
    job_pod,
    named_pod,
    replica_set_of,
    sample_pod,
    stateful_set_pod,
    uid_of,
)
from podium.engine.files import LocatedManifest
from tests.manifests import pod
from tests.workload_manifests import claim_template, workload

DATA = {"name": "data", "emptyDir": {}}
OTHER = {"name": "other", "emptyDir": {}}


def _sample(manifest):
    return sample_pod(manifest, manifest["spec"]["template"])


def _claims(manifest):
    return [(volume["name"], volume["persistentVolumeClaim"]["claimName"]) for volume in manifest["spec"]["volumes"]]


def test_a_pod_of_a_stateful_set_has_the_name_labels_and_claims_of_its_ordinal():
    database = workload("StatefulSet", "db", volumeClaimTemplates=[claim_template("data"), claim_template("log")])
    result = stateful_set_pod(database, 3)
    assert result["metadata"]["name"] == "db-3"
    assert result["metadata"]["labels"] == {
        "app": "db",
        "statefulset.kubernetes.io/pod-name": "db-3",
        "apps.kubernetes.io/pod-index": "3",
    }
    assert _claims(result) == [("data", "data-db-3"), ("log", "log-db-3")]


def test_a_volume_of_the_template_is_replaced_by_the_claim_of_its_name():
    database = workload(
        "StatefulSet", "db", pod_spec={"volumes": [DATA, OTHER]}, volumeClaimTemplates=[claim_template()]
    )
    claim_volume, plain_volume = stateful_set_pod(database, 0)["spec"]["volumes"]
    assert claim_volume == {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}
    assert plain_volume == OTHER


def test_a_stateful_set_without_claims_keeps_its_volumes():
    database = workload("StatefulSet", "db", pod_spec={"volumes": [DATA]})
    assert stateful_set_pod(database, 0)["spec"]["volumes"] == [DATA]


def test_questions_about_a_stateful_set_are_about_its_first_pod():
    assert _sample(workload("StatefulSet", "db"))["metadata"]["name"] == "db-0"
    assert _sample(workload("StatefulSet", "db", ordinals={"start": 5}))["metadata"]["name"] == "db-5"


def test_a_daemon_has_an_affinity_to_just_its_node():
    labels = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]}
    soft = [{"weight": 1, "preference": {}}]
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": labels,
        "preferredDuringSchedulingIgnoredDuringExecution": soft,
    }
    daemons = workload("DaemonSet", pod_spec={"affinity": {"nodeAffinity": affinity}})
    result = daemon_set_pod(daemons, "web-x", "n1")["spec"]["affinity"]["nodeAffinity"]
    (term,) = result["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    assert result["preferredDuringSchedulingIgnoredDuringExecution"] == soft
    assert daemon_set_pod(daemons, "web-x")["spec"]["affinity"]["nodeAffinity"] == affinity


def test_a_daemon_tolerates_node_condition_taints_once():
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    result = daemon_set_pod(workload("DaemonSet", pod_spec={"tolerations": [own, {"key": "team"}]}), "web-x")
    keys = [(toleration["key"], toleration.get("effect")) for toleration in result["spec"]["tolerations"]]
    assert len(set(keys)) == len(keys) == 7
    assert ("node.kubernetes.io/network-unavailable", "NoSchedule") not in keys
    hosts = daemon_set_pod(workload("DaemonSet", pod_spec={"hostNetwork": True}), "web-x")
    assert hosts["spec"]["tolerations"][-1]["key"] == "node.kubernetes.io/network-unavailable"


def test_a_pod_of_a_job_has_its_labels_and_its_index():
    job = workload("Job", "sum")
    assert job_pod(job, "sum-x")["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "sum"
    indexed = job_pod(job, "sum-2-x", 2)["metadata"]
    assert indexed["labels"][COMPLETION_INDEX] == indexed["annotations"][COMPLETION_INDEX] == "2"
    assert COMPLETION_INDEX not in job_pod(job, "sum-x")["metadata"]["labels"]


def test_a_deployments_pods_have_the_hash_of_its_template():
    first, twin, different = (replica_set_of(workload("Deployment", cpu=cpu)) for cpu in ("1", "1", "2"))
    assert first == twin
    letters = {
        replica_set["spec"]["template"]["metadata"]["labels"][TEMPLATE_HASH] for replica_set in (first, different)
    }
    assert len(letters) == 2
    assert first["spec"]["selector"]["matchLabels"] == first["metadata"]["labels"]
    result = _sample(workload("Deployment"))["metadata"]
    assert result["labels"][TEMPLATE_HASH] == first["metadata"]["labels"][TEMPLATE_HASH]
    assert result["ownerReferences"][0]["name"] == first["metadata"]["name"]
    assert first["metadata"]["ownerReferences"][0]["name"] == "web"


def test_generated_names_are_as_the_api_server_makes_them():
    assert re.fullmatch("web-[bcdfghjklmnpqrstvwxz2456789]{5}", generated_name("web-", 1))
    assert len({generated_name("web-", number) for number in range(100)}) == 100
    assert generated_name("web-", 1) == generated_name("web-", 1)
    assert len(generated_name("w" * 80)) == 63


def test_a_pod_with_a_prefix_only_gets_a_name():
    manifest = pod("x")
    manifest["metadata"] = {"generateName": "web-"}
    name = named_pod(manifest)["metadata"]["name"]
    assert name.startswith("web-")
    assert named_pod(manifest, 1)["metadata"]["name"] != name
    pod_with_name = pod("x")
    assert named_pod(pod_with_name) is pod_with_name


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"])
def test_a_sample_pod_is_controlled_by_its_workload(kind):
    (owner,) = _sample(workload(kind))["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["controller"]) == ("ReplicaSet" if kind == "Deployment" else kind, True)


def test_the_pod_that_is_asked_about_comes_with_the_other_objects_of_its_file():
    service, web = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}, workload("Deployment")
    subject, rest_of_file = asked_pod([LocatedManifest(service, "f"), LocatedManifest(web, "f")], "f")
    assert subject.manifest["metadata"]["name"] == "web"
    assert [item.manifest["kind"] for item in rest_of_file] == ["Service", "Deployment", "ReplicaSet"]
    subject, rest_of_file = asked_pod([LocatedManifest(pod("a"), "f"), LocatedManifest(service, "f")], "f")
    assert (subject.manifest["metadata"]["name"], [item.manifest for item in rest_of_file]) == ("a", [service])


def test_an_object_without_a_uid_gets_one_of_its_kind_and_key():
    assert uid_of(workload("Job", "sum")) == "Job/default/sum"
    assert uid_of({"metadata": {"uid": "u"}}) == "u"
