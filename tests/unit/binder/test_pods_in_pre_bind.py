from __future__ import annotations

import pytest

from podium.binder import PodsInPreBind

pytestmark = pytest.mark.anyio


async def test_a_pod_is_found_while_it_is_in_pre_bind() -> None:
    pods = PodsInPreBind()
    tracked = pods.add("u1")
    assert pods.get("u1") is tracked
    pods.remove("u1")
    assert pods.get("u1") is None
    pods.remove("u1")


async def test_the_first_cause_is_kept_and_ends_in_no_binding() -> None:
    tracked = PodsInPreBind().add("u1")
    assert tracked.cancel("preempted by DefaultPreemption")
    assert tracked.cancel("again")
    assert tracked.cause == "preempted by DefaultPreemption"
    assert tracked.scope.cancel_called
    assert not tracked.mark_pre_bound()


async def test_a_pod_that_is_pre_bound_cannot_be_stopped() -> None:
    tracked = PodsInPreBind().add("u1")
    assert tracked.mark_pre_bound()
    assert not tracked.cancel("too late")
    assert not tracked.scope.cancel_called
