import gc
import weakref

import msgspec
import pytest

from podium.objects.core import (
    Container,
    Node,
    Pod,
    PodCondition,
    PodResourceClaim,
    PodSpec,
    PodStatus,
    SchedulingGroup,
    has_references,
    once_per_spec,
    without_references,
)
from podium.objects.pod_volumes import Volume

POD = b"""{
  "apiVersion": "v1", "kind": "Pod",
  "metadata": {"name": "web-1", "namespace": "shop", "uid": "u1", "resourceVersion": "7", "labels": {"app": "web"},
               "deletionTimestamp": "2026-01-02T03:04:05Z", "managedFields": [{"manager": "x"}]},
  "spec": {"nodeName": "n1", "schedulerName": "podium", "priority": 5, "restartPolicy": "Always",
           "containers": [{"name": "c", "resources": {"requests": {"cpu": "100m", "memory": 1024}},
                           "ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1"}]}],
           "initContainers": [{"name": "s", "restartPolicy": "Always"}],
           "volumes": [{"name": "token", "projected": {}}, {"name": "d", "persistentVolumeClaim": {"claimName": "q"}}],
           "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}}}},
  "status": {"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True"}]}
}"""

decode_pod = msgspec.json.Decoder(Pod).decode


def test_a_pod_is_read_from_the_wire() -> None:
    pod = decode_pod(POD)
    assert (pod.key, pod.uid, pod.node_name, pod.priority) == ("shop/web-1", "u1", "n1", 5)
    assert pod.is_terminating
    assert pod.spec.containers[0].resources.requests == {"cpu": "100m", "memory": 1024}
    assert pod.spec.containers[0].ports[0].host_ip == "10.0.0.1"
    assert pod.spec.init_containers[0].is_sidecar
    assert pod.spec.affinity is not None
    assert pod.spec.affinity.node_affinity is not None
    required_selector = pod.spec.affinity.node_affinity.required
    assert required_selector is not None
    assert required_selector.node_selector_terms[0].match_fields[0].values == ("n1",)


def test_volumes_that_scheduling_never_looks_at_are_dropped() -> None:
    assert [volume.name for volume in decode_pod(POD).spec.volumes] == ["d"]
    assert not Volume(name="token").has_source


def test_replicas_share_one_spec_wherever_they_run() -> None:
    first = decode_pod(POD)
    second = decode_pod(POD.replace(b"web-1", b"web-2").replace(b'"nodeName": "n1", ', b""))
    assert second.node_name == ""
    assert first.spec is second.spec
    assert first.spec is not decode_pod(POD.replace(b"100m", b"200m")).spec


def test_binding_a_pod_keeps_its_spec() -> None:
    pod = Pod(spec=PodSpec(containers=(Container(name="c"),)))
    bound_pod = pod.on_node("n2")
    assert (bound_pod.node_name, pod.node_name) == ("n2", "")
    assert bound_pod.spec is pod.spec


def test_an_unused_spec_is_forgotten() -> None:
    pod = Pod(spec=PodSpec(scheduler_name="brief"))
    spec = weakref.ref(pod.spec)
    del pod
    gc.collect()
    assert spec() is None


def test_a_result_is_computed_once_for_all_pods_of_a_spec() -> None:
    calls: list[str] = []

    @once_per_spec
    def scheduler_of(spec: PodSpec) -> str:
        calls.append(spec.scheduler_name)
        return spec.scheduler_name

    keep = [Pod(spec=PodSpec(scheduler_name="c")) for _ in range(3)]
    assert [scheduler_of(pod.spec) for pod in keep] == ["c", "c", "c"]
    assert calls == ["c"]


def test_pods_that_differ_in_their_group_only_share_a_result() -> None:
    calls: list[str] = []

    @once_per_spec
    def scheduler_of(spec: PodSpec) -> str:
        calls.append(spec.scheduler_name)
        return spec.scheduler_name

    specs = [PodSpec(scheduler_name="g", scheduling_group=SchedulingGroup(name)) for name in ("a", "b", "a")]
    keep = [Pod(spec=spec) for spec in specs]
    assert [scheduler_of(pod.spec) for pod in keep] == ["g", "g", "g"]
    assert calls == ["g"]
    assert keep[0].spec is not keep[1].spec


def test_pods_that_differ_in_the_names_of_their_claims_only_share_a_result() -> None:
    calls: list[int] = []

    @once_per_spec
    def claim_count_of(spec: PodSpec) -> int:
        calls.append(len(spec.resource_claims))
        return len(spec.resource_claims)

    claims = [PodResourceClaim(name="gpu", resource_claim_name=name) for name in ("a", "b")]
    specs = [PodSpec(resource_claims=(claim,)) for claim in claims] + [PodSpec(resource_claims=(*claims,)), PodSpec()]
    keep = [Pod(spec=spec) for spec in specs]
    assert [claim_count_of(pod.spec) for pod in keep] == [1, 1, 2, 0]
    assert calls == [1, 2, 0]
    spec = without_references(keep[0].spec)
    assert spec is without_references(keep[1].spec)
    assert has_references(keep[0].spec)
    assert not has_references(spec)


def test_an_error_is_not_remembered() -> None:
    calls: list[int] = []

    @once_per_spec
    def failing(_spec: PodSpec) -> None:
        calls.append(1)
        raise LookupError

    spec = PodSpec()
    for _ in range(2):
        with pytest.raises(LookupError):
            failing(spec)
    assert len(calls) == 2


def test_a_condition_is_found_by_its_type() -> None:
    status = PodStatus(conditions=(PodCondition(type="Ready"), PodCondition(type="PodScheduled", status="True")))
    condition = status.condition("PodScheduled")
    assert condition is not None
    assert condition.status == "True"
    assert status.condition("Absent") is None


def test_a_node_is_read_from_the_wire() -> None:
    node = msgspec.json.decode(
        b'{"metadata": {"name": "n1", "uid": "u"}, "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},'
        b' "status": {"allocatable": {"cpu": "4"}, "images": [{"names": ["a:1"], "sizeBytes": 5}]}}',
        type=Node,
    )
    assert (node.key, node.name, node.uid) == ("n1", "n1", "u")
    assert node.spec.taints[0].effect == "NoSchedule"
    assert node.status.images[0].size_bytes == 5


def test_the_creation_time_of_an_object_that_was_never_stored_is_null() -> None:
    assert decode_pod(b'{"metadata": {"creationTimestamp": null}}').metadata.creation_timestamp is None
