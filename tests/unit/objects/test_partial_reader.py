from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.objects.core import Node, Pod
from podium.objects.partial_reader import UNREAD_MAX, PartialReader


def read(content: Any, kind: Any = Pod) -> tuple[Any, list[str]]:
    reader, error = PartialReader(), ""
    raw = content if isinstance(content, bytes) else msgspec.json.encode(content)
    try:
        msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as refusal:
        error = str(refusal)
    return reader.read(raw, kind, error), [unread_field.path for unread_field in reader.unread]


def test_what_decodes_is_read_whole() -> None:
    content = {"metadata": {"name": "a"}, "spec": {"nodeName": "n1", "containers": [{"name": "c"}]}}
    assert read(content) == (msgspec.convert(content, Pod), [])


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def apart(selector: Any) -> Any:
    return {"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": "z", "labelSelector": selector}]}}}


@pytest.mark.parametrize(
    ("spec", "paths", "remainder"),
    [
        ({"containers": 5}, ["spec.containers"], {}),
        ({"containers": {"name": "c"}}, ["spec.containers"], {}),
        ({"containers": [{"name": "c"}, 5]}, ["spec.containers[1]"], {"containers": [{"name": "c"}]}),
        (
            {"containers": [{"name": 5, "resources": {"requests": {"cpu": "1", "memory": [1]}}}]},
            ["spec.containers[0].name", "spec.containers[0].resources.requests[memory]"],
            {"containers": [{"resources": {"requests": {"cpu": "1"}}}]},
        ),
        (
            {"containers": [{"ports": [{"hostPort": 1 << 31}]}]},
            ["spec.containers[0].ports[0].hostPort"],
            {"containers": [{"ports": [{}]}]},
        ),
        ({"priority": 1 << 70}, ["spec.priority"], {}),
        ({"priority": "high", "hostNetwork": True}, ["spec.priority"], {"hostNetwork": True}),
        ({"nodeSelector": {"a": 5, "b": "c", "d": None}}, ["spec.nodeSelector[a]"], {"nodeSelector": {"b": "c"}}),
        ({"affinity": {"nodeAffinity": None, "podAffinity": []}}, ["spec.affinity.podAffinity"], {"affinity": {}}),
        (
            apart({"matchExpressions": [{"operator": "In"}]}),
            [f"spec.affinity.podAntiAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0]"],
            apart({}),
        ),
    ],
)
def test_fields_of_a_wrong_type_are_named_and_all_others_read(spec: Any, paths: list[str], remainder: Any) -> None:
    pod_read, unread = read({"metadata": {"name": "a"}, "spec": {"nodeName": "n1", **spec}})
    assert unread == paths
    assert pod_read == msgspec.convert({"metadata": {"name": "a"}, "spec": {"nodeName": "n1", **remainder}}, Pod)


@pytest.mark.parametrize("content", [5, "x", [], b'"\xff"', b"[" * 10])
def test_what_is_no_object_is_not_read(content: Any) -> None:
    assert read(content) == (None, [])


def test_after_a_hundred_fields_the_rest_of_a_list_or_map_is_left_out() -> None:
    node_read, unread = read(
        {"status": {"allocatable": {f"r{number}": [] for number in range(500)} | {"cpu": "4"}}}, Node
    )
    assert len(unread) == UNREAD_MAX
    assert node_read.status.allocatable == {}
