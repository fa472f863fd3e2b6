from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from podium.objects.core import Node, Pod
from podium.objects.objects_with_json import json_of, node_with_json, pending_pod_with_json, pod_with_json

POD: dict[str, Any] = {
    "metadata": {"name": "a", "namespace": "ns", "uid": "u", "managedFields": [{"manager": "kubectl"}]},
    "spec": {"containers": [{"name": "c", "image": "i", "command": ["x"]}], "serviceAccountName": "builder"},
}


def read(content: Any) -> Any:
    return json.loads(msgspec.json.encode(json_of(content)))


def pod_and_json(**spec: Any) -> tuple[Pod, bytes]:
    content = json.dumps({**POD, "spec": {**POD["spec"], **spec}}).encode()
    return msgspec.json.decode(content, type=Pod), content


def test_a_pod_is_whole_but_for_its_managed_fields():
    assert read(pod_with_json(*pod_and_json())) == {**POD, "metadata": {"name": "a", "namespace": "ns", "uid": "u"}}


def test_what_podium_reads_of_a_whole_pod_is_the_same():
    typed_pod, content = pod_and_json(nodeName="n1")
    pod_with_text = pod_with_json(typed_pod, content)
    assert (pod_with_text.spec, pod_with_text.metadata, pod_with_text.status, pod_with_text.node_name) == (
        typed_pod.spec,
        typed_pod.metadata,
        typed_pod.status,
        "n1",
    )


def test_an_assumed_pod_is_whole_with_its_node():
    assumed_pod = pod_with_json(*pod_and_json()).on_node("n2")
    assert assumed_pod.node_name == "n2"
    assert read(assumed_pod)["spec"] == {**POD["spec"], "nodeName": "n2"}


def test_only_pending_pods_are_kept_whole_where_no_more_is_asked_for():
    assert read(pending_pod_with_json(*pod_and_json()))["spec"] == POD["spec"]
    bound_pod, content = pod_and_json(nodeName="n1")
    assert pending_pod_with_json(bound_pod, content) is bound_pod


def test_a_node_is_whole():
    content: dict[str, Any] = {"metadata": {"name": "n1"}, "status": {"nodeInfo": {"architecture": "arm64"}}}
    text = json.dumps(content).encode()
    assert read(node_with_json(msgspec.json.decode(text, type=Node), text)) == content


def test_an_object_that_was_cut_down_is_not_passed_off_as_whole():
    with pytest.raises(AssertionError, match="ns/a was not kept with its JSON"):
        json_of(pod_and_json()[0])
