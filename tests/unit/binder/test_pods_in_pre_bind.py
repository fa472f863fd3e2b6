from __future__ import annotations

import pytest

from podium.binder import PodsInPreBind

pytestmark = pytest.mark.anyio


async def test_a_pod_is_found_while_it_is_in_pre_bind() -> None:
    pods = PodsInPreBind()
    pod_in_pre_bind = pods.add("u1")
    assert pods.get("u1") is pod_in_pre_bind
    pods.remove("u1")
    assert pods.get("u1") is None
    pods.remove("u1")


async def test_the_first_cause_is_kept_and_ends_in_no_binding() -> None:
    pod_in_pre_bind = PodsInPreBind().add("u1")
    assert pod_in_pre_bind.cancel("preempted by DefaultPreemption")
    assert pod_in_pre_bind.cancel("again")
    assert pod_in_pre_bind.cause == "preempted by DefaultPreemption"
    assert pod_in_pre_bind.scope.cancel_called
    assert not pod_in_pre_bind.mark_pre_bound()


async def test_a_pod_that_is_pre_bound_cannot_be_stopped() -> None:
    pod_in_pre_bind = PodsInPreBind().add("u1")
    assert pod_in_pre_bind.mark_pre_bound()
    assert not pod_in_pre_bind.cancel("too late")
    assert not pod_in_pre_bind.scope.cancel_called
