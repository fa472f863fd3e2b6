"""Tests for what is read of a pod's watch line to see whom the pod concerns."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podium.objects.core import Pod
from podium.objects.coscheduling import GROUP_LABEL
from podium.objects.resource_types import PODS
from podium.objects.wire import Change, ObjectDecoder
from podium.shards import CONDITION, owner_key
from podium.shards.outline import line_to_keep, outline_of

Json = dict[str, Any]

OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-web", "controller": True}
FIELDS = [{"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": {"f:metadata": {}, "f:spec": {}}}]


def manifest(*, metadata: Json | None = None, status: Json | None = None, **spec: Any) -> Json:
    containers = [{"name": "main", "image": "registry.invalid/app:1", "resources": {"requests": {"cpu": "1"}}}]
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": "web-1",
            "namespace": "ns",
            "uid": "u-1",
            "resourceVersion": "7",
            **(metadata or {}),
        },
        "spec": {"containers": containers, "schedulerName": "podium", **spec},
        "status": status or {"phase": "Pending"},
    }


def line(content: Json, kind: str = "ADDED") -> bytes:
    # As Go writes it.
    return json.dumps({"type": kind, "object": content}, separators=(",", ":")).encode()


def concerns_all(content: Json) -> bool:
    change = outline_of(line(content))
    assert change is not None
    return change.object.concerns_all


def decode_pod(text: bytes) -> Pod:
    event = ObjectDecoder(PODS).event(text)
    assert isinstance(event, Change)
    return event.object


@pytest.mark.parametrize("metadata", [{}, {"ownerReferences": [{**OWNER, "controller": False}, OWNER]}])
def test_an_outline_has_the_identity_the_owner_and_the_node_of_the_decoded_pod(metadata: Json) -> None:
    text = line(manifest(metadata=metadata, nodeName="n1"))
    change, pod = outline_of(text), decode_pod(text)
    assert change is not None
    outline, meta = change.object, pod.metadata
    assert (outline.key, outline.node_name) == (pod.key, pod.node_name)
    assert (outline.metadata.uid, outline.metadata.resource_version) == (meta.uid, meta.resource_version)
    assert outline.spec.scheduler_name == pod.spec.scheduler_name
    assert owner_key(outline.metadata) == owner_key(meta)


def test_text_in_annotations_and_labels_cannot_pass_for_a_field() -> None:
    texts = ['"nodeName":"n9"', '{"spec":{"nodeName":"n9","affinity":{}}}', 'n1"},"spec":{"nodeName":"n9']
    annotations = {f"a{number}": text for number, text in enumerate(texts)}
    labels = {"nodeName": "n9", "uid": "u-9", "schedulerName": "other"}
    change = outline_of(line(manifest(metadata={"annotations": annotations, "labels": labels}, nodeName="n1")))
    assert change is not None
    outline = change.object
    assert (outline.node_name, outline.metadata.uid, outline.spec.scheduler_name) == ("n1", "u-1", "podium")
    assert not outline.concerns_all


def test_a_field_that_comes_twice_counts_as_in_the_decoded_pod() -> None:
    text = line(manifest(nodeName="n1")).replace(b'"nodeName":"n1"', b'"nodeName":"n1","nodeName":"n2"')
    change = outline_of(text)
    assert change is not None
    assert change.object.node_name == decode_pod(text).node_name == "n2"


CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}


@pytest.mark.parametrize(
    "content",
    [
        manifest(affinity={"podAffinity": {}}),
        manifest(affinity={"nodeAffinity": {}, "podAntiAffinity": {}}),
        manifest(topologySpreadConstraints=[{"maxSkew": 1}]),
        manifest(resourceClaims=[{"name": "gpu"}]),
        manifest(schedulingGroup={"podGroupName": "g"}),
        manifest(metadata={"labels": {GROUP_LABEL: "g"}}),
        manifest(volumes=[{"name": "tmp", "emptyDir": {}}, CLAIM]),
        manifest(volumes=[{"name": "data", "ephemeral": {"volumeClaimTemplate": {}}}]),
        manifest(containers=[{"name": "a", "resources": {"limits": {"example.com/gpu": "1"}}}]),
        manifest(initContainers=[{"name": "a", "resources": {"requests": {"example.com/gpu": "1"}}}]),
        manifest(resources={"requests": {"example.com/gpu": "1"}}),
        manifest(overhead={"example.com/gpu": "1"}),
        manifest(status={"nominatedNodeName": "n1"}),
        manifest(status={"conditions": [{"type": "PodScheduled"}, {"type": CONDITION, "message": "tried: m1"}]}),
    ],
)
def test_a_pod_with_something_that_reaches_over_nodes_concerns_all(content: Json) -> None:
    assert concerns_all(content)


def test_an_extended_resource_written_with_escapes_is_found() -> None:
    text = line(manifest(overhead={"example.com/gpu": "1"})).replace(b"example.com/gpu", b"example.com\\u002fgpu")
    change = outline_of(text)
    assert change is not None
    assert change.object.concerns_all


def test_a_pod_of_its_node_alone_does_not_concern_all() -> None:
    assert not concerns_all(
        manifest(
            metadata={"ownerReferences": [OWNER]},
            affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
            tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
            volumes=[{"name": "kube-api-access", "projected": {"sources": []}}],
            initContainers=[{"name": "init", "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}}],
            status={"conditions": [{"type": "PodScheduled", "status": "True"}]},
        )
    )


@pytest.mark.parametrize(
    "text",
    [
        b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"9"}}}',
        b'{"type":"ERROR","object":{"kind":"Status","code":410}}',
        line(manifest(), "RENAMED"),
        line({**manifest(), "kind": "Node"}),
        line(manifest(metadata={"labels": None})),
        line(manifest(metadata={"name": "a/b"})),
        line(manifest(metadata={"uid": ""})),
        b'{"type":"ADDED"',
        b"\xff",
    ],
)
def test_what_is_not_as_expected_has_no_outline(text: bytes) -> None:
    assert outline_of(text) is None


def test_what_is_kept_is_the_same_pod_without_managed_fields() -> None:
    text = line(manifest(metadata={"managedFields": FIELDS}, nodeName="n1"))
    change = outline_of(text)
    assert change is not None
    short_line = line_to_keep(text, change.object)
    assert b"kube-controller-manager" not in short_line
    assert decode_pod(short_line) == decode_pod(text)


@pytest.mark.parametrize(
    "content",
    [
        manifest(metadata={"annotations": {"note": json.dumps({"managedFields": FIELDS})}, "managedFields": FIELDS}),
        manifest(metadata={"annotations": {"managedFields": json.dumps(FIELDS)}, "managedFields": FIELDS}),
        {"another": {"managedFields": FIELDS}, **manifest(metadata={"managedFields": FIELDS})},
        {**manifest(metadata={"managedFields": FIELDS}), "another": FIELDS},
        manifest(metadata={"managedFields": []}),
        manifest(),
    ],
)
def test_whatever_else_is_in_a_line_the_pod_is_kept(content: Json) -> None:
    for text in (line(content), json.dumps({"type": "ADDED", "object": content}).encode()):
        change = outline_of(text)
        assert change is not None
        assert decode_pod(line_to_keep(text, change.object)) == decode_pod(text)


def test_a_deletion_is_told_apart() -> None:
    changes = [outline_of(line(manifest(), kind)) for kind in ("ADDED", "MODIFIED", "DELETED")]
    assert [change is not None and change.is_deletion for change in changes] == [False, False, True]


def test_a_pod_that_is_not_scheduled_by_name_has_the_default_scheduler() -> None:
    content = manifest()
    del content["spec"]["schedulerName"]
    change = outline_of(line(content))
    assert change is not None
    assert change.object.spec.scheduler_name == decode_pod(line(content)).spec.scheduler_name
