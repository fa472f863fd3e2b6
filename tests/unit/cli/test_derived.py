"""All questions are asked about the pods and claims that would exist, not about templates."""

import json

import pytest

from tests.device_manifests import device_class, devices, exactly, held_claim, resource_slice
from tests.manifests import node, nodes, pod
from tests.unit.cli.commands import run, write_objects
from tests.workload_manifests import (
    SCHEDULER,
    claim,
    claim_template,
    claims_from,
    device_claim_template,
    limit_range,
    priority_class,
    runtime_class,
    storage,
    template,
    with_owner,
    workload,
)

VOLUME = {"name": "data", "persistentVolumeClaim": {"claimName": "any"}}


@pytest.fixture
def ask(tmp_path):
    """Ask a question about a workload beside the objects of a cluster; the answer in JSON."""

    def ask_about(face, manifest, *objects):
        cluster, asked_file = (
            write_objects(tmp_path / "cluster.yaml", *objects),
            write_objects(tmp_path / "asked.yaml", manifest),
        )
        options = {
            "evaluate": ("evaluate", "-f", cluster, "--pod", asked_file),
            "capacity": ("capacity", "-f", cluster, "--pod", asked_file),
            "estimate": ("estimate", "-f", cluster, "--workload", asked_file, "--mode", "accurate"),
            "what-if": ("what-if", "-f", cluster, "--apply", asked_file),
        }[face]
        result = run(*options, "-o", "json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout), result.stderr

    return ask_about


def _fits(face, answer):
    """Whether a pod fits at all, in the answer of that command."""
    return {
        "evaluate": lambda: bool(answer["node"]),
        "capacity": lambda: bool(answer["fits"]),
        "estimate": lambda: bool(answer["replicas"]),
        "what-if": lambda: bool(answer["placed"]),
    }[face]()


FACES = pytest.mark.parametrize("face", ["evaluate", "capacity", "estimate", "what-if"])


def _database(size="5Gi", **fields):
    return workload("StatefulSet", "db", volumeClaimTemplates=[claim_template(size=size)], **fields)


@FACES
@pytest.mark.parametrize(("size", "fits"), [("20Gi", False), ("5Gi", True)])
def test_the_claims_of_a_stateful_set_need_room(ask, face, size, fits):
    answer, _ = ask(face, _database(size), *nodes(2), *storage("10Gi"))
    assert _fits(face, answer) is fits


@FACES
def test_a_volume_of_the_template_is_replaced_by_the_claim_of_its_name(ask, face):
    answer, _ = ask(face, _database(pod_spec={"volumes": [VOLUME]}), *nodes(2), *storage("10Gi"))
    assert _fits(face, answer)


@FACES
def test_a_claim_without_a_class_is_one_of_the_default_class(ask, face):
    database = workload("StatefulSet", "db", volumeClaimTemplates=[claim_template(storage_class=None, size="5Gi")])
    default_storage, plain = storage("10Gi", is_default=True), storage("10Gi")
    assert _fits(face, ask(face, database, *nodes(2), *default_storage)[0])
    assert not _fits(face, ask(face, database, *nodes(2), *plain)[0])


@FACES
@pytest.mark.parametrize(("size", "fits"), [("20Gi", False), ("5Gi", True)])
def test_the_claims_of_ephemeral_volumes_need_room(ask, face, size, fits):
    volume = {"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": claim_template(size=size)["spec"]}}}
    answer, _ = ask(face, workload("Deployment", pod_spec={"volumes": [volume]}), *nodes(2), *storage("10Gi"))
    assert _fits(face, answer) is fits


def _gpus(count):
    return (
        device_class(),
        resource_slice("gpus", devices(count), node="node-0"),
        device_claim_template("gpu", exactly()),
    )


@FACES
@pytest.mark.parametrize("count", [0, 3])
def test_claims_from_templates_need_devices(ask, face, count):
    train = workload("Deployment", "train", pod_spec={"resourceClaims": claims_from("gpu")})
    answer, _ = ask(face, train, *nodes(2), *_gpus(count))
    assert _fits(face, answer) is (count > 0)
    if face in ("capacity", "estimate"):
        assert answer["fits" if face == "capacity" else "replicas"] == count


@FACES
def test_daemons_tolerate_what_daemons_tolerate_and_no_more(ask, face):
    daemon_set = workload("DaemonSet", "agent")
    assert _fits(face, ask(face, daemon_set, node("n1", unschedulable=True))[0])
    tainted = node("n1", taints=[{"key": "team", "effect": "NoSchedule"}])
    assert not _fits(face, ask(face, daemon_set, tainted)[0])


@FACES
def test_overhead_of_a_runtime_class_counts(ask, face):
    kata = runtime_class(overhead={"podFixed": {"cpu": "2"}})
    web = workload("Deployment", pod_spec={"runtimeClassName": "kata"})
    assert not _fits(face, ask(face, web, node("n1", "2"), kata)[0])
    assert _fits(face, ask(face, web, node("n1", "3"), kata)[0])


@FACES
def test_defaults_of_a_limit_range_count(ask, face):
    bare = workload("Deployment", pod_spec={"containers": [{"name": "main"}]})
    limits = limit_range({"type": "Container", "defaultRequest": {"cpu": "3"}})
    assert not _fits(face, ask(face, bare, node("n1", "2"), limits)[0])
    assert _fits(face, ask(face, bare, node("n1", "3"), limits)[0])


@FACES
def test_requests_of_a_whole_pod_come_from_its_containers_and_limits(ask, face):
    deployment = workload("Deployment", cpu="3", pod_spec={"resources": {"limits": {"cpu": "8"}}})
    assert not _fits(face, ask(face, deployment, node("n1", "2"))[0])
    assert _fits(face, ask(face, deployment, node("n1", "3"))[0])


@pytest.mark.parametrize("face", ["evaluate", "capacity", "estimate"])
@pytest.mark.parametrize(
    ("objects", "spec", "message"),
    [
        ([runtime_class("other")], {"runtimeClassName": "kata"}, 'RuntimeClass "kata" not found'),
        ([priority_class("other", 1)], {"priorityClassName": "urgent"}, "no PriorityClass with name urgent was found"),
        (
            [limit_range({"type": "Pod", "max": {"cpu": "1"}})],
            {"containers": [{"name": "main", "resources": {"limits": {"cpu": "2"}}}]},
            "maximum cpu usage per Pod is 1, but limit is 2",
        ),
    ],
)
def test_a_pod_that_the_api_server_refuses_is_no_question(tmp_path, face, objects, spec, message):
    cluster = write_objects(tmp_path / "cluster.yaml", *nodes(1), *objects)
    web = write_objects(tmp_path / "web.yaml", workload("Deployment", pod_spec=spec))
    options = ("--workload", web, "--mode", "accurate") if face == "estimate" else ("--pod", web)
    result = run(face, "-f", cluster, *options)
    assert result.exit_code == 1
    assert message in result.stderr


@pytest.mark.parametrize("face", ["evaluate", "capacity", "estimate"])
def test_a_kind_that_decides_and_is_not_there_is_warned_about(ask, face):
    spec_fields = {"runtimeClassName": "kata", "priorityClassName": "urgent", "resourceClaims": claims_from("gpu")}
    answer, warnings = ask(face, workload("Deployment", pod_spec=spec_fields), *nodes(1))
    kinds = {"runtimeclasses", "priorityclasses", "resourceclaimtemplates"}
    assert face == "estimate" or kinds <= {*answer["missing"]}
    assert all(kind in warnings for kind in kinds)


@pytest.mark.parametrize("face", ["evaluate", "capacity", "estimate"])
def test_no_warning_names_a_kind_that_is_there(ask, face):
    spec_fields = {"runtimeClassName": "kata", "priorityClassName": "urgent"}
    objects = [*nodes(1), runtime_class(), priority_class("urgent", 5)]
    answer, warnings = ask(face, workload("Deployment", pod_spec=spec_fields), *objects)
    assert not {"runtimeclasses", "priorityclasses"} & {*answer.get("missing", [])}
    assert "runtimeclasses" not in warnings
    assert "priorityclasses" not in warnings


# ---------------------------------------------------------------- kinds that have pods, and others

TASKS = {"tasks": [{"name": "worker", "replicas": 3, "template": template("1")}]}
VOLCANO = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "train"}, "spec": TASKS}
JOB_SET = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {"name": "train"},
    "spec": {"replicatedJobs": [{"name": "all", "template": {"spec": {"parallelism": 3, "template": template("1")}}}]},
}
POD_TEMPLATE = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "train"}, "template": template("1")}
SEALED = {
    "apiVersion": "bitnami.com/v1alpha1",
    "kind": "SealedSecret",
    "metadata": {"name": "shop-db"},
    "spec": {"template": {"metadata": {"name": "shop-db"}, "type": "Opaque"}},
}
NODE_POOL = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "default"},
    "spec": {"template": {"spec": {"requirements": []}}},
}
MACHINES = {
    "apiVersion": "cluster.x-k8s.io/v1beta1",
    "kind": "MachineDeployment",
    "metadata": {"name": "md"},
    "spec": {"replicas": 3, "template": {"spec": {"clusterName": "c"}}},
}
FARM = {
    "apiVersion": "example.com/v1",
    "kind": "Farm",
    "metadata": {"name": "f"},
    "spec": {"field": template()},
}


@FACES
@pytest.mark.parametrize("manifest", [VOLCANO, JOB_SET, POD_TEMPLATE], ids=lambda manifest: manifest["kind"])
def test_kinds_whose_templates_are_known_are_read(ask, face, manifest):
    assert _fits(face, ask(face, manifest, node("n1", "1"))[0])
    assert not _fits(face, ask(face, manifest, node("n1", "900m"))[0])


@pytest.mark.parametrize(("manifest", "count"), [(VOLCANO, 3), (JOB_SET, 3), (POD_TEMPLATE, 1)])
def test_they_have_as_many_pods_as_they_ask_for(ask, manifest, count):
    assert len(ask("what-if", manifest, *nodes(1))[0]["placed"]) == count


@FACES
@pytest.mark.parametrize("manifest", [SEALED, NODE_POOL, MACHINES, FARM], ids=lambda manifest: manifest["kind"])
def test_other_kinds_have_no_pods(tmp_path, face, manifest):
    cluster, pod_file = write_objects(tmp_path / "c.yaml", *nodes(1)), write_objects(tmp_path / "a.yaml", manifest)
    options = {
        "what-if": ("--apply", pod_file),
        "estimate": ("--workload", pod_file, "--mode", "accurate"),
    }.get(face, ("--pod", pod_file))
    result = run(face, "-f", cluster, *options)
    assert result.exit_code != 0
    assert manifest["kind"] in result.stderr
    if manifest is FARM:
        assert "podium does not know where a Farm keeps its pod template: save the template's" in result.stderr


@FACES
@pytest.mark.parametrize("foreign_objects", [[FARM], [FARM, {**FARM, "kind": "Grove"}]], ids=["one", "two kinds"])
def test_unknown_workloads_beside_others_are_named_with_what_to_extract(tmp_path, face, foreign_objects):
    options = {"what-if": ["--apply"], "estimate": ["--mode", "accurate", "--workload"]}.get(face, ["--pod"])
    cluster = write_objects(tmp_path / "c.yaml", *nodes(1))
    pod_file = write_objects(tmp_path / "a.yaml", workload("Deployment", replicas=2), *foreign_objects)
    result = run(face, "-f", cluster, *options, pod_file)
    assert result.exit_code == 0, result.stderr
    (warning,) = [line for line in result.stderr.splitlines() if "left out" in line]
    for item in foreign_objects:
        assert f"{item['kind']} {item['metadata']['name']}" in warning
    assert "keeps its pod template: save the template's metadata and spec as a Pod" in warning


def test_objects_without_pods_beside_a_workload_need_no_warning(tmp_path):
    cluster = write_objects(tmp_path / "c.yaml", *nodes(1))
    pod_file = write_objects(tmp_path / "a.yaml", workload("Deployment", replicas=2), SEALED, NODE_POOL, MACHINES)
    assert "left out" not in run("what-if", "-f", cluster, "--apply", pod_file).stderr


@pytest.mark.parametrize("manifest", [SEALED, NODE_POOL, MACHINES], ids=lambda manifest: manifest["kind"])
def test_other_kinds_beside_a_workload_add_no_pods(tmp_path, manifest):
    cluster = write_objects(tmp_path / "c.yaml", *nodes(1), manifest)
    pod_file = write_objects(tmp_path / "a.yaml", workload("Deployment", replicas=2), manifest)
    answer = json.loads(run("what-if", "-f", cluster, "--apply", pod_file, "-o", "json").stdout)
    assert len(answer["placed"]) == 2


# ---------------------------------------------------------------- pods of the cluster


def _why(tmp_path, name, *objects, options=()):
    cluster = write_objects(tmp_path / "cluster.yaml", *objects)
    result = run("why", name, "-f", cluster, *options, "-o", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def _training(name, number=None, node_name=""):
    claims = [] if number is None else [held_claim(f"{name}-gpu", {"node-0": [f"gpu-{number}"]}, [name])]
    for document in claims:
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"uid-{name}", "controller": True}
        document["metadata"]["ownerReferences"] = [owner]
    statuses = [{"name": "gpu", "resourceClaimName": f"{name}-gpu"}] if claims else []
    status = {"phase": "Running", "resourceClaimStatuses": statuses}
    training_pod = pod(name, scheduler=SCHEDULER, node=node_name, resourceClaims=claims_from("gpu"), status=status)
    training_pod["metadata"]["uid"] = f"uid-{name}"
    return [training_pod, *claims]


def test_why_creates_the_claims_of_a_pending_pod(tmp_path):
    assert _why(tmp_path, "new", node("node-0"), *_gpus(1), *_training("new"))["node"] == "node-0"
    running_training = _training("old", 0, "node-0")
    answer = _why(tmp_path, "new", node("node-0"), *_gpus(1), *_training("new"), *running_training)
    assert answer["node"] is None


def test_the_devices_of_a_running_pod_count_as_free_when_it_is_asked_about(tmp_path):
    answer = _why(tmp_path, "old", node("node-0"), *_gpus(1), *_training("old", 0, "node-0"))
    assert answer["node"] == "node-0"
    trainings = [*_training("old", 0, "node-0"), *_training("other", 1, "node-0")]
    assert _why(tmp_path, "old", node("node-0"), *_gpus(2), *trainings)["node"] == "node-0"


def test_a_pod_of_a_stateful_set_that_waits_for_its_claim_is_explained(tmp_path):
    volume = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}]
    waiting = with_owner(pod("db-0", scheduler=SCHEDULER, volumes=volume), "StatefulSet", "db")
    answer = _why(tmp_path, "db-0", *nodes(1), *storage("10Gi"), waiting, _database("5Gi"))
    assert answer["node"] == "node-0"
    answer = _why(tmp_path, "db-0", *nodes(1), *storage("10Gi"), waiting, _database("20Gi"))
    assert answer["node"] is None
    bound_claim = claim("data-db-0", "20Gi")
    assert _why(tmp_path, "db-0", *nodes(1), *storage("10Gi"), waiting, _database("5Gi"), bound_claim)["node"] is None


def test_a_node_that_is_added_as_a_fix_runs_daemons(tmp_path):
    big = pod("big", "3", scheduler=SCHEDULER)
    busy = pod("busy", "3", scheduler=SCHEDULER, node="n1", priority=5)
    objects = [node("n1", "4"), big, busy]
    adding = [fix for fix in _fixes(tmp_path, *objects) if fix == ["add-node"]]
    assert adding
    assert ["add-node"] not in _fixes(tmp_path, *objects, workload("DaemonSet", "agent", cpu="1500m"))


def _fixes(tmp_path, *objects):
    answer = _why(tmp_path, "big", *objects, options=["--fix"])
    return [[edit["kind"] for edit in fix["edits"]] for fix in answer["fixes"]]
