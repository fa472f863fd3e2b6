from __future__ import annotations

import pytest

from podium.framework import resource_types
from podium.testing import RecordingHandle, node, pod, snapshot_of

pytestmark = pytest.mark.anyio


def test_listers_list_the_objects_of_their_kind() -> None:
    handle = RecordingHandle(snapshot_of(), [node("n1"), pod("web-1"), pod("web-2", namespace="other")])
    pods = handle.lister(resource_types.PODS)
    assert [pod.key for pod in pods.list()] == ["default/web-1", "other/web-2"]
    assert [item.key for item in pods.in_namespace("other")] == ["other/web-2"]
    assert pods.get("default/web-1") == pod("web-1")
    assert [item.key for item in handle.lister(resource_types.NODES).list()] == ["n1"]
    assert list(handle.lister(resource_types.NAMESPACES).list()) == []


def test_nominated_pods_are_known() -> None:
    handle = RecordingHandle(snapshot_of(), [pod("web-1", nominated="n1"), pod("web-2")])
    assert [pod.key for pod in handle.nominator.pods("n1")] == ["default/web-1"]
    assert handle.nominator.node_of("uid-web-2") is None


async def test_what_is_asked_of_the_api_server_is_remembered() -> None:
    client = RecordingHandle(snapshot_of()).client
    await client.bind(pod("web-1"), "n1")
    assert await client.patch(resource_types.NODES, node("n1"), {"metadata": {}}) == node("n1")
    assert (client.bound, client.patches) == ({"default/web-1": "n1"}, [("n1", {"metadata": {}})])


async def test_time_passes_only_by_advance_and_ends_a_wait() -> None:
    handle = RecordingHandle(snapshot_of())
    waiting = handle.waiting_pods.add(pod("web-1"), "n1", {"Gang": 5.0})
    handle.clock.advance(5)
    status = await waiting.wait()
    assert status is not None
    assert status.message == "rejected due to timeout after waiting 5s at plugin Gang"
    assert not handle.preemptions.is_preempting("uid-web-1")
