from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from podium.objects.core import Node, Pod
from podium.objects.whole_objects import json_of, whole_node, whole_pending_pod, whole_pod

POD: dict[str, Any] = {
    "metadata": {"name": "a", "namespace": "ns", "uid": "u", "managedFields": [{"manager": "kubectl"}]},
    "spec": {"containers": [{"name": "c", "image": "i", "command": ["x"]}], "serviceAccountName": "builder"},
}


def read(content: Any) -> Any:
    return json.loads(msgspec.json.encode(json_of(content)))


def pod(**spec: Any) -> tuple[Pod, bytes]:
    content = json.dumps({**POD, "spec": {**POD["spec"], **spec}}).encode()
    return msgspec.json.decode(content, type=Pod), content


def test_a_pod_is_whole_but_for_its_managed_fields():
    assert read(whole_pod(*pod())) == {**POD, "metadata": {"name": "a", "namespace": "ns", "uid": "u"}}


def test_what_podium_reads_of_a_whole_pod_is_the_same():
    typed, content = pod(nodeName="n1")
    whole = whole_pod(typed, content)
    assert (whole.spec, whole.metadata, whole.status, whole.node_name) == (
        typed.spec,
        typed.metadata,
        typed.status,
        "n1",
    )


def test_an_assumed_pod_is_whole_with_its_node():
    assumed = whole_pod(*pod()).on_node("n2")
    assert assumed.node_name == "n2"
    assert read(assumed)["spec"] == {**POD["spec"], "nodeName": "n2"}


def test_only_pending_pods_are_kept_whole_where_no_more_is_asked_for():
    assert read(whole_pending_pod(*pod()))["spec"] == POD["spec"]
    bound, content = pod(nodeName="n1")
    assert whole_pending_pod(bound, content) is bound


def test_a_node_is_whole():
    content: dict[str, Any] = {"metadata": {"name": "n1"}, "status": {"nodeInfo": {"architecture": "arm64"}}}
    text = json.dumps(content).encode()
    assert read(whole_node(msgspec.json.decode(text, type=Node), text)) == content


def test_an_object_that_was_cut_down_is_not_passed_off_as_whole():
    with pytest.raises(AssertionError, match="ns/a was not kept whole"):
        json_of(pod()[0])
