from __future__ import annotations

import pytest

from podium.framework.contract.status import Code
from podium.objects.api_errors import ApiError, Conflict
from podium.objects.core import Pod
from podium.plugins.default_binder import DefaultBinder
from tests.builders import pod
from tests.unit.plugins.clusters import STATE, RecordingHandle

pytestmark = pytest.mark.anyio


class Bindings:
    """Takes bindings, or answers each with an error."""

    def __init__(self, error: ApiError | None = None) -> None:
        self.error = error
        self.bound: list[tuple[str, str]] = []

    async def bind(self, pod: Pod, node_name: str) -> None:
        if self.error is not None:
            raise self.error
        self.bound.append((pod.key, node_name))


async def test_a_pod_is_bound_through_the_client() -> None:
    bindings = Bindings()
    assert await DefaultBinder(None, RecordingHandle(client=bindings)).bind(STATE, pod("web"), "n1") is None
    assert bindings.bound == [("default/web", "n1")]


async def test_a_refusal_is_an_error_in_the_servers_words() -> None:
    refusal = Conflict("pod web is already assigned to node n2", code=409, reason="Conflict")
    status = await DefaultBinder(None, RecordingHandle(client=Bindings(refusal))).bind(STATE, pod("web"), "n1")
    assert status is not None
    assert status.code is Code.ERROR
    assert status.message == "pod web is already assigned to node n2"
    assert status.error is not None
    assert status.error.__cause__ is refusal


async def test_nothing_that_happens_in_the_cluster_requeues_a_failed_binding() -> None:
    assert DefaultBinder(None, RecordingHandle()).events_to_register() == ()
