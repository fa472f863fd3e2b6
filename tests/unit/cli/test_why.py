import gzip
import json
from functools import partial

import pytest

from tests.device_manifests import (
    claiming,
    device_class,
    devices,
    exactly,
    held_claim,
    resource_claim,
    resource_slice,
)
from tests.gang_manifests import COSCHEDULING, group, members
from tests.manifests import node, pod
from tests.unit.cli.commands import run, write_objects

TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}
NODES = node("n1", "4"), node("n2", "2", taints=[TAINT]), node("n3", "4", unschedulable=True, taints=[TAINT])

_run = partial(run, "why")


@pytest.fixture
def cluster(tmp_path):
    pods = pod("full", "4", node="n1"), pod("web", "1"), pod("big", "99")
    return write_objects(tmp_path / "cluster.yaml", *NODES, *pods)


def lines(result):
    assert result.exit_code == 0
    return [" ".join(line.split()) for line in result.stdout.splitlines()]


def test_a_pending_pods_blockers_are_shown_for_every_node(cluster):
    output_lines = lines(_run("web", "-f", cluster))
    assert output_lines[0].startswith("default/web fits on no node: 0/3 nodes are available: 1 Insufficient cpu, ")
    assert "2 TaintToleration node(s) had untolerated taint(s) (team=a:NoSchedule) n2, n3" in output_lines
    assert "1 NodeUnschedulable node(s) were unschedulable n3" in output_lines
    assert "2 nodes are one edit away: n1, n2" in output_lines
    assert output_lines[-1].startswith("Preemption does not help: ")


def test_fixes_are_shown_with_their_patches(cluster):
    output_lines = lines(_run("web", "-f", cluster, "--fix"))
    at = output_lines.index("default/web fits after one edit")
    assert output_lines[at + 1] == "tolerate the taint team=a:NoSchedule → n2"
    assert output_lines[at + 2].startswith('Pod web: [{"op":"add","path":"/spec/tolerations","value":[{"key":"team"')
    assert "evict default/full from n1 → n1" in output_lines
    assert "add a node like n1 → n1-like-1" in output_lines


def test_pod_that_fits_needs_no_edit(cluster):
    assert lines(_run("full", "-f", cluster, "--fix"))[-1] == "default/full fits as it is"
    answer = json.loads(_run("full", "-f", cluster, "--fix", "-o", "json").stdout)
    assert (answer["fits"], answer["fixes"]) == (True, [])


def test_a_pod_without_a_fix_says_so(cluster, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: podium, pluginConfig: [{name: NodeAffinity, args: {addedAffinity: "
        "{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: "
        "[{key: metadata.name, operator: In, values: [other]}]}]}}}}]}]\n"
    )
    result = _run("web", "-f", cluster, "--fix", "--config", config)
    assert "No set of up to 3 edits lets default/web fit" in lines(result)


def test_json_has_everything(cluster):
    answer = json.loads(_run("web", "-f", cluster, "--fix", "-o", "json").stdout)
    assert (answer["node"], answer["nodes"], answer["one_edit_away"]) == (None, 3, ["n1", "n2"])
    assert [blocker["plugin"] for blocker in answer["blockers"]["n3"]] == ["NodeUnschedulable", "TaintToleration"]
    assert answer["blockers"]["n1"][0]["detail"] == "asks for 1 cpu, 0 left"
    assert answer["groups"][0]["count"] == 2
    assert answer["fixes"][0]["edits"][0]["kind"] == "tolerate-taint"
    assert all(fix["minimum"] for fix in answer["fixes"])
    assert not answer["fits"]


def test_a_bound_pods_node_is_explained_against_the_others(tmp_path):
    nodes = node("n1", "4"), node("n2", "8"), node("n3", unschedulable=True)
    cluster = write_objects(tmp_path / "cluster.yaml", *nodes, pod("web", "1", node="n2"))
    output_lines = lines(_run("web", "-f", cluster, "--node", "n3"))
    assert output_lines[0] == "default/web is on n2. If it were pending now, it would go to n2"
    assert any(line.startswith("NODE TOTAL ") for line in output_lines)
    assert any(line.startswith("n2 beats n1 by ") for line in output_lines)
    assert "It does not fit on n3:" in output_lines
    assert "NodeUnschedulable: node(s) were unschedulable" in output_lines
    assert "It fits on n1, which is number 2 of 2" in lines(_run("web", "-f", cluster, "--node", "n1"))
    answer = json.loads(_run("web", "-f", cluster, "-o", "json").stdout)
    assert (answer["bound_to"], [score["node"] for score in answer["scores"]]) == ("n2", ["n2", "n1"])


def test_unknown_pods_and_nodes_are_reported_with_the_nearest_names(cluster):
    result = _run("wed", "-f", cluster)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "there is no pod default/wed; did you mean default/web?" in result.stderr
    result = _run("web", "-f", cluster, "--node", "n22")
    assert (result.exit_code, "there is no node n22; did you mean n2?" in result.stderr) == (1, True)


def test_exit_status_shows_that_the_pod_fits_nowhere(cluster):
    assert _run("web", "-f", cluster, "--exit-code").exit_code == 3
    assert _run("full", "-f", cluster, "--exit-code").exit_code == 0


def test_gated_pod_is_named_as_gated(tmp_path):
    gated_pod = pod("web", schedulingGates=[{"name": "hold"}])
    output_lines = lines(_run("web", "-f", write_objects(tmp_path / "c.yaml", NODES[0], gated_pod)))
    assert "It would not be tried yet: waiting for scheduling gates: [hold] (SchedulingGates)" in output_lines


def test_recorded_scenarios_are_answered_a_line_each(tmp_path):
    packed = tmp_path / "cases.jsonl.gz"
    cases = [
        {"id": "a", "objects": [NODES[1]], "pod": pod("web", "1", scheduler=None)},
        {"id": "b", "objects": [NODES[0]], "pod": pod("web", "1", scheduler=None)},
        {"id": "c", "objects": [NODES[0]], "pod": pod("web", "1", scheduler="x")},
    ]
    packed.write_bytes(gzip.compress("\n".join(json.dumps(case) for case in cases).encode() + b"\nnonsense"))
    first, second, third, last = (
        json.loads(line) for line in _run("--cases", packed, "--fix", "--output", "jsonl").stdout.splitlines()
    )
    assert (first["id"], first["fits"], first["fixes"][0]["node"]) == ("a", False, "n2")
    edit = first["fixes"][0]["edits"][0]
    assert edit["object"] == {"kind": "Pod", "namespace": "default", "name": "web"}
    assert edit.keys() == {"kind", "object", "patch"}
    assert (second["fits"], second["fixes"]) == (True, [])
    assert "no profile is named 'x'" in third["error"]
    assert last["error"].startswith("not a scenario: ")


# ---------------------------------------------------------------- who schedules it, and by what it was judged


def configuration_file(tmp_path, *names):
    profiles = ", ".join(f"{{schedulerName: {name}}}" for name in names)
    path = tmp_path / "config.yaml"
    path.write_text(
        f"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{profiles}]\n"
    )
    return path


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("podum", "No profile serves spec.schedulerName podum: nothing schedules it; did you mean podium?"),
        ("default-schduler", "No profile serves spec.schedulerName default-schduler: nothing schedules it; "),
        ("volcano", "No pod of spec.schedulerName volcano is on a node: nothing here shows that such a scheduler runs"),
    ],
)
def test_a_scheduler_without_a_sign_of_life_is_named_first(tmp_path, name, first):
    output_lines = lines(
        _run("web", "-f", write_objects(tmp_path / "c.yaml", NODES[0], pod("web", "1", scheduler=name)))
    )
    assert output_lines[0].startswith(first)
    assert output_lines[1].startswith("If the pod were for kube-scheduler's default profile")


def test_a_scheduler_whose_pods_are_on_nodes_runs(tmp_path):
    pods = pod("web", "1", scheduler="podum"), pod("old", "1", scheduler="podum", node="n1")
    output_lines = lines(_run("web", "-f", write_objects(tmp_path / "c.yaml", NODES[0], *pods)))
    assert output_lines[0].startswith("default/web fits on 1 of 1 nodes")
    assert output_lines[1].startswith("Answered by kube-scheduler's default profile, as nothing says which one is used")


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("podum", "No profile serves spec.schedulerName podum: nothing schedules it; did you mean podium?"),
        ("default-scheduler", "kube-scheduler schedules it, as spec.schedulerName is default-scheduler: "),
        ("batch", "Another scheduler schedules it, batch, which has placed 1 pod here: "),
        ("volcano", "No profile serves spec.schedulerName volcano: nothing schedules it, unless another scheduler "),
    ],
)
def test_a_pod_without_a_profile_in_the_configuration_is_reported_first(tmp_path, name, first):
    pods = pod("web", "1", scheduler=name), pod("old", "1", scheduler="batch", node="n1")
    cluster = write_objects(tmp_path / "c.yaml", NODES[0], *pods)
    config = configuration_file(tmp_path, "podium", "spread")
    output_lines = lines(_run("web", "-f", cluster, "--config", config))
    assert output_lines[0].startswith(first)
    assert f" If the pod were for the profile podium of {config}: " in " ".join(output_lines)
    answer = json.loads(_run("web", "-f", cluster, "--config", config, "-o", "json").stdout)
    assert (answer["scheduler"]["name"], answer["scheduler"]["own"]) == (name, False)
    assert answer["scheduler"].get("meant") == ("podium" if name == "podum" else None)


def test_a_pod_of_a_profile_is_judged_by_it(tmp_path):
    cluster = write_objects(tmp_path / "c.yaml", NODES[0], pod("web", "1", scheduler="spread"))
    config = configuration_file(tmp_path, "podium", "spread")
    assert f"Answered by the profile spread of {config}" in lines(_run("web", "-f", cluster, "--config", config))


# ---------------------------------------------------------------- its own condition


def refused_pod(message, **fields):
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message, **fields}
    return pod("web", "9", status={"conditions": [condition]})


def test_a_condition_that_says_the_same_is_not_repeated(tmp_path):
    message = "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 Preemption is not"
    cluster = write_objects(
        tmp_path / "c.yaml", NODES[0], refused_pod(message, lastTransitionTime="2026-01-01T00:00:00Z")
    )
    result = _run("web", "-f", cluster)
    assert "Its PodScheduled condition agrees: Unschedulable (since 2026-01-01T00:00:00Z)" in lines(result)
    assert result.stdout.count("1 Insufficient cpu") == 1


def test_a_condition_that_says_something_else_is_shown_with_the_reason(tmp_path):
    message = "0/7 nodes are available: 7 Insufficient memory."
    cluster = write_objects(tmp_path / "c.yaml", NODES[0], refused_pod(message))
    output_lines = lines(_run("web", "-f", cluster, "--config", configuration_file(tmp_path, "podium")))
    assert f"Its PodScheduled condition says: Unschedulable: {message}" in output_lines
    assert "They differ because it counts 7 nodes, and there are 1 now" in output_lines
    output_lines = lines(_run("web", "-f", cluster))
    assert any(
        line.startswith("They differ because it is by the scheduler podium, whose profile is not known here; ")
        for line in output_lines
    )
    answer = json.loads(_run("web", "-f", cluster, "-o", "json").stdout)
    assert answer["condition"]["message"] == message
    assert len(answer["condition"]["differences"]) == 2


def test_a_pod_without_a_condition_was_never_tried(tmp_path):
    cluster = write_objects(tmp_path / "c.yaml", NODES[0], pod("web", "1"))
    assert "It has no PodScheduled condition: no scheduler has tried it yet" in lines(_run("web", "-f", cluster))


# ---------------------------------------------------------------- amounts and names


API_VERSIONS = {"PersistentVolumeClaim": "v1", "ResourceClaim": "resource.k8s.io/v1"}


def claims(*names):
    return [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]


def test_missing_resources_are_shown_with_the_most_that_a_node_has(tmp_path):
    nodes = node("n1", "2"), node("n7", "3")
    small_pod = pod("used", "500m", node="n7")
    output_lines = lines(_run("web", "-f", write_objects(tmp_path / "c.yaml", *nodes, small_pod, pod("web", "3"))))
    assert "2 NodeResourcesFit Insufficient cpu: requests 3, at most 2.5 free (n7) n1, n7" in output_lines
    huge = pod("web", "3", memory="100Gi")
    output_lines = lines(_run("web", "-f", write_objects(tmp_path / "c.yaml", *nodes, small_pod, huge)))
    text = "requests 3 cpu, at most 2.5 free (n7); requests 100Gi memory, at most 64Gi free (n1)"
    assert any(text in line for line in output_lines), output_lines
    full = node("n1", pods="1")
    output_lines = lines(
        _run("web", "-f", write_objects(tmp_path / "c.yaml", full, pod("a", node="n1"), pod("web", "1")))
    )
    assert "1 NodeResourcesFit Too many pods: takes at most 1 pods (n1) n1" in output_lines


def near(app, key="kubernetes.io/hostname"):
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"host_port": 8080}, "of 8080; taken by default/old (n1)"),
        ({"affinity": {"podAntiAffinity": {REQUIRED: [near("a")]}}}, "anti-affinity rules: default/old (n1)"),
        (
            {"affinity": {"podAffinity": {REQUIRED: [near("b")]}}},
            "wants pods with app=b in the same kubernetes.io/hostname",
        ),
        ({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}, "1Gi of class late"),
    ],
)
def test_what_is_in_the_way_is_named(tmp_path, fields, text):
    old = pod("old", "1", node="n1", host_port=8080, labels={"app": "a"})
    unprovided = {**STORAGE, "provisioner": "kubernetes.io/no-provisioner"}
    claim = {**CLAIM, "spec": {**CLAIM["spec"], "resources": {"requests": {"storage": "1Gi"}}}}
    cluster = write_objects(tmp_path / "c.yaml", NODES[0], old, unprovided, claim, pod("web", "1", **fields))
    output_lines = lines(_run("web", "-f", cluster))
    assert any(text in line for line in output_lines), output_lines
    details = [
        group.get("detail", "") for group in json.loads(_run("web", "-f", cluster, "-o", "json").stdout)["groups"]
    ]
    assert any(detail in text or text in detail for detail in details)


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("PersistentVolumeClaim", {"volumes": claims("data")}),
        ("ResourceClaim", {"resourceClaims": [{"name": "gpu", "resourceClaimName": "data"}]}),
    ],
)
def test_a_missing_claim_is_shown_once_with_its_fix(tmp_path, kind, spec):
    other_object = {"apiVersion": API_VERSIONS[kind], "kind": kind, "metadata": {"name": "other"}, "spec": {}}
    cluster = write_objects(tmp_path / "c.yaml", *NODES, other_object, pod("web", "1", **spec))
    result = _run("web", "-f", cluster, "--fix")
    output_lines = lines(result)
    assert output_lines[0] == f"default/web fits on no node: the {kind} default/data does not exist: create it"
    assert f"create the {kind} default/data → n1" in output_lines
    assert "1 node is one edit away: n1" in output_lines
    assert result.stdout.count("default/data") == 2
    assert "not found" not in result.stdout
    (fix, *_) = json.loads(_run("web", "-f", cluster, "--fix", "-o", "json").stdout)["fixes"]
    target = {"kind": kind, "namespace": "default", "name": "data"}
    assert fix["edits"] == [{"kind": "create-claim", "object": target, "text": f"create the {kind} default/data"}]


def test_a_claim_of_a_kind_that_the_files_lack_may_exist(tmp_path):
    output_lines = lines(
        _run("web", "-f", write_objects(tmp_path / "c.yaml", NODES[0], pod("web", "1", volumes=claims("data"))))
    )
    assert "default/data does not exist in the files, which hold no object of this kind: create it" in output_lines[0]


def test_two_missing_claims_are_created_together(tmp_path):
    cluster = write_objects(tmp_path / "c.yaml", NODES[0], pod("web", "1", volumes=claims("data", "logs")))
    assert "create the PersistentVolumeClaim default/data and create the PersistentVolumeClaim default/logs → n1" in [
        " and ".join(sorted(line.partition(" → ")[0].split(" and "))) + " → n1"
        for line in lines(_run("web", "-f", cluster, "--fix"))
    ]


def test_a_claim_that_a_controller_creates_is_not_missing(tmp_path):
    volume = {"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "late"}}}}
    cluster = write_objects(tmp_path / "c.yaml", NODES[0], STORAGE, pod("web", "1", volumes=[volume]))
    assert lines(_run("web", "-f", cluster))[0] == "default/web fits on 1 of 1 nodes and would go to n1"


def ending(name, cpu, **fields):
    leaving_pod = pod(name, cpu, node="n1", **fields)
    leaving_pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return leaving_pod


def test_a_nominated_pod_waits_for_its_victims(tmp_path):
    web = pod("web", "4", priority=10, status={"nominatedNodeName": "n1"})
    output_lines = lines(
        _run("web", "-f", write_objects(tmp_path / "c.yaml", NODES[0], ending("low", "1"), web), "--fix")
    )
    waits = "It is nominated to n1, and waits for its victims there to end: default/low (since 2026-01-01T00:00:00Z)"
    assert waits in output_lines
    assert not any(line.startswith(("Preemption", "evict")) for line in output_lines)


def test_pods_that_are_ending_are_waited_for_and_not_evicted(tmp_path):
    output_lines = lines(
        _run("web", "-f", write_objects(tmp_path / "c.yaml", NODES[0], ending("low", "1"), pod("web", "4")), "--fix")
    )
    assert (
        "It fits on n1 as soon as pods that are ending there are gone: default/low (since 2026-01-01T00:00:00Z)"
        in output_lines
    )
    assert not any(line.startswith("evict") for line in output_lines)


STORAGE = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "late"},
    "provisioner": "csi.example",
    "volumeBindingMode": "WaitForFirstConsumer",
}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "data", "namespace": "default"},
    "spec": {"storageClassName": "late", "accessModes": ["ReadWriteOnce"]},
}


def test_a_pod_that_names_its_node_waits_for_a_volume_for_ever(tmp_path):
    bound_pod = pod("web", "1", node="n1", volumes=claims("data"))
    output_lines = lines(_run("web", "-f", write_objects(tmp_path / "c.yaml", NODES[0], STORAGE, CLAIM, bound_pod)))
    assert any("provisioning never starts, and the pod never runs" in line for line in output_lines)
    immediate = {**STORAGE, "volumeBindingMode": "Immediate"}
    claim_with_node = {
        **CLAIM,
        "metadata": {**CLAIM["metadata"], "annotations": {"volume.kubernetes.io/selected-node": "n1"}},
    }
    for objects in ((immediate, CLAIM), (STORAGE, claim_with_node)):
        output_lines = lines(_run("web", "-f", write_objects(tmp_path / "c.yaml", NODES[0], *objects, bound_pod)))
        assert not any("provisioning never starts" in line for line in output_lines)


def test_a_pod_that_names_its_node_waits_for_an_ephemeral_volume_for_ever(tmp_path):
    volume = {"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM["spec"]}}}
    bound_pod = pod("web", "1", node="n1", volumes=[volume])
    output_lines = lines(_run("web", "-f", write_objects(tmp_path / "c.yaml", NODES[0], STORAGE, bound_pod)))
    assert any("provisioner of default/web-data" in line and "never starts" in line for line in output_lines)


@pytest.mark.parametrize(("node_name", "is_missing"), [("n9", True), ("n1", False)])
def test_a_pod_whose_node_does_not_exist_is_never_run(tmp_path, node_name, is_missing):
    bound_pod = pod("web", "1", node=node_name)
    output_lines = lines(_run("web", "-f", write_objects(tmp_path / "c.yaml", NODES[0], bound_pod)))
    assert (
        any(f"spec.nodeName is {node_name}, and there is no such node" in line for line in output_lines) is is_missing
    )


@pytest.mark.parametrize(("amount", "on_node", "suggestion"), [("1", "0", None), ("4", "0", None), ("4", "2", "2")])
def test_no_fix_takes_all_devices_away(tmp_path, amount, on_node, suggestion):
    gpus = {"nvidia.com/gpu": amount}
    machine = node("n1")
    machine["status"]["allocatable"]["nvidia.com/gpu"] = on_node
    web = pod("web", containers=[{"name": "main", "resources": {"requests": gpus, "limits": gpus}}])
    output_lines = lines(_run("web", "-f", write_objects(tmp_path / "c.yaml", machine, web), "--fix"))
    suggestions = [line for line in output_lines if line.startswith("lower")]
    assert suggestions == (
        [] if suggestion is None else [f"lower the request for nvidia.com/gpu from {amount} to {suggestion} → n1"]
    )
    assert (
        f"{'0 nodes are' if suggestion is None else '1 node is'} one edit away{'' if suggestion is None else ': n1'}"
        in output_lines
    )
    assert f"add a node like n1 with {amount} nvidia.com/gpu → n1-like-1" in output_lines


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give the name of a pod, or recorded scenarios"),
        (["web", "--cases", "x"], "give the name of a pod, or recorded scenarios"),
        (["--cases", "x"], "--cases goes with --fix"),
        (["web", "-f", "x", "--kubeconfig", "y"], "give either files with -f"),
    ],
)
def test_bad_command_lines_are_refused(arguments, message):
    result = _run(*arguments)
    assert (result.exit_code, message in result.stderr) == (2, True)


@pytest.fixture
def gpus(tmp_path):
    gpu_devices = devices(2, attributes={"model": "a100"})
    claims = held_claim("train", {"n1": ["gpu-1"]}, ["trainer-0"]), resource_claim("c", exactly(count=2))
    slices = [resource_slice(name, gpu_devices, node=name) for name in ("n1", "n4")]
    asking = pod("web", resourceClaims=claiming("c"))
    objects = node("n4", "4", unschedulable=True), device_class("gpu"), asking
    return write_objects(tmp_path / "gpus.yaml", NODES[0], *objects, *claims, *slices)


def test_devices_that_are_missing_are_shown_by_request_with_those_who_have_them(gpus):
    output_lines = lines(_run("web", "-f", gpus))
    at = output_lines.index("devices:")
    assert output_lines[at + 1 : at + 4] == [
        "n1:",
        "request gpu of claim default/c asks for 2 devices of class gpu: 2 of 2 match, 1 taken, 1 free",
        "n1: gpu-1 of gpu.example.com/n1: taken by claim default/train (pod trainer-0)",
    ]
    answer = json.loads(_run("web", "-f", gpus, "-o", "json").stdout)
    assert answer["devices"][0]["nodes"]["n1"]["requests"][0]["taken_by"][0]["pods"] == ["trainer-0"]


@pytest.mark.parametrize("command", ["evaluate", "capacity"])
def test_other_questions_say_what_devices_are_missing_as_well(command, gpus, tmp_path):
    asking = write_objects(tmp_path / "pod.yaml", pod("api", resourceClaims=claiming("c")))
    output = " ".join(run(command, "-f", gpus, "--pod", asking).stdout.split())
    assert "cannot allocate all claims (request gpu of claim default/c asks for 2 devices of class gpu: " in output


@pytest.fixture
def gang(tmp_path):
    objects = group(COSCHEDULING, 3), *members(COSCHEDULING, 3), NODES[0], node("n4", "4")
    return write_objects(tmp_path / "gang.yaml", *objects)


def test_a_gang_members_answer_has_the_gangs_story(gang):
    output_lines = lines(_run("train-0", "-f", gang))
    assert output_lines[0].endswith("and would go to n1, but its gang does not fit")
    assert output_lines[1].startswith("It is a member of the gang default/train (scheduling.x-k8s.io): 3 of its 3 pods")
    assert "default/train-2 gets none: 0/2 nodes are available: 2 Insufficient cpu." in output_lines
    assert "1 more must get a node, so none of those that wait starts" in output_lines
    assert _run("train-0", "-f", gang, "--exit-code").exit_code == 3


def test_the_fixes_of_a_member_are_those_of_the_gang(gang):
    output_lines = lines(_run("train-0", "-f", gang, "--fix"))
    at = output_lines.index("The whole gang default/train fits after one edit")
    assert output_lines[at + 1 : at + 4] == [
        "lower the request for cpu from 3 to 2, on each of 3 pods → n1, n4",
        'Pod train-0 and 2 more: [{"op":"add","path":"/spec/containers/0/resources/requests/cpu","value":"2"}]',
        "add a node like n1 → n1, n4, n1-like-1",
    ]
    answer = json.loads(_run("train-0", "-f", gang, "--fix", "-o", "json").stdout)
    assert (answer["gang"]["fits"], answer["gang_of_fixes"]) == (False, "default/train")
    assert len(answer["fixes"][0]["edits"][0]["members"]) == 3


def test_attempts_that_fail_because_of_a_pool_are_explained(tmp_path):
    twice = [resource_slice(name, devices(1), node="n1", slices=2) for name in ("s1", "s2")]
    claim, asking = resource_claim("c", exactly(allocationMode="All")), pod("web", resourceClaims=claiming("c"))
    cluster = write_objects(tmp_path / "c.yaml", NODES[0], device_class("gpu"), claim, *twice, asking)
    output_lines = lines(_run("web", "-f", cluster, "--fix"))
    problem = "request gpu: asks for all devices, but resource pool gpu.example.com/n1 is currently invalid"
    assert output_lines[0].startswith("default/web cannot be placed, its attempts fail: ")
    assert f"claim default/c, {problem}" in output_lines
    assert "n1: pool gpu.example.com/n1: device gpu-0 is in slice s1 and in s2" in output_lines
    answer = json.loads(_run("web", "-f", cluster, "-o", "json").stdout)
    assert answer["error"].endswith(problem)
    assert answer["devices"][0]["nodes"]["n1"]["broken_pools"]


def in_namespace(namespace, manifest):
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}


def test_a_pod_needs_no_namespace_if_it_is_in_the_default_one_or_alone_has_its_name(tmp_path):
    pods = pod("web", "1"), in_namespace("shop", pod("web", "1")), in_namespace("shop", pod("report", "1"))
    twice = in_namespace("a", pod("twin", "1")), in_namespace("b", pod("twin", "1"))
    ask = partial(run, "why", "-f", write_objects(tmp_path / "c.yaml", *NODES, *pods, *twice))
    assert lines(ask("web"))[0].startswith("default/web ")
    assert lines(ask("web", "-n", "shop"))[0].startswith("shop/web ")
    for words in (["report"], ["shop/report"], ["report", "-n", "shop"], ["shop/report", "-n", "shop"]):
        assert lines(ask(*words))[0].startswith("shop/report ")
    assert ask("twin").stderr == "Error: there are 2 pods named twin: give one of a/twin, b/twin\n"
    assert "there is no pod default/report; did you mean shop/report" in ask("report", "-n", "default").stderr
    refusal = ask("shop/report", "-n", "other")
    assert (
        refusal.exit_code,
        "shop/report is in the namespace shop, and --namespace names other" in refusal.stderr,
    ) == (2, True)
