from __future__ import annotations

import anyio
import pytest

from podium.binder import WaitingPods
from podium.framework.contract.status import Code, Status
from podium.lib.clock import ManualClock
from tests.builders import pod
from tests.virtual_time import LoopClock

pytestmark = pytest.mark.anyio


async def test_a_pod_goes_once_every_plugin_has_allowed_it() -> None:
    waiting = WaitingPods(LoopClock()).add(pod(), "n1", {"Gang": 60.0, "Quota": 60.0})
    results: list[Status | None] = []

    async def wait() -> None:
        results.append(await waiting.wait())

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await anyio.sleep(1.0)
        waiting.allow("Gang")
        await anyio.sleep(1.0)
        assert waiting.pending_plugins == ("Quota",)
        assert not results
        waiting.allow("Quota")
    assert results == [None]
    assert LoopClock().monotonic() == 2.0


async def test_waits_that_end_without_consent_are_counted() -> None:
    waiting_pods = WaitingPods(LoopClock())
    first, second, late = (waiting_pods.add(pod(name), "n1", {"Gang": 1.0}) for name in ("a", "b", "c"))
    first.allow("Gang")
    assert not first.reject("Gang", "no")
    assert waiting_pods.rejections == 0
    assert second.reject("Gang", "no")
    assert not second.reject("Gang", "no")
    assert waiting_pods.rejections == 1
    await late.wait()
    assert waiting_pods.rejections == 2


@pytest.mark.parametrize(
    ("timeouts_s", "after_s", "message"),
    [
        ({"Gang": 300.0}, 300.0, "rejected due to timeout after waiting 5m0s at plugin Gang"),
        ({"Gang": 0.25}, 0.25, "rejected due to timeout after waiting 250ms at plugin Gang"),
        ({"Gang": 90.0, "Quota": 1.5}, 1.5, "rejected due to timeout after waiting 1.5s at plugin Quota"),
        ({"Gang": 86400.0}, 900.0, "rejected due to timeout after waiting 15m0s at plugin Gang"),
    ],
)
async def test_the_plugin_whose_time_runs_out_first_rejects(
    timeouts_s: dict[str, float], after_s: float, message: str
) -> None:
    clock = LoopClock()
    started_s = clock.monotonic()
    status = await WaitingPods(clock).add(pod(), "n1", timeouts_s).wait()
    assert status is not None
    assert status.code is Code.UNSCHEDULABLE
    assert status.message == message
    assert status.plugin == message.rpartition(" ")[2]
    assert clock.monotonic() - started_s == pytest.approx(after_s)


async def test_a_plugin_that_has_allowed_the_pod_times_out_no_more() -> None:
    clock = LoopClock()
    started_s = clock.monotonic()
    waiting = WaitingPods(clock).add(pod(), "n1", {"Gang": 1.0, "Quota": 10.0})
    waiting.allow("Gang")
    status = await waiting.wait()
    assert status is not None
    assert status.plugin == "Quota"
    assert clock.monotonic() - started_s == pytest.approx(10.0)


async def test_the_time_runs_from_registration_not_from_the_wait() -> None:
    clock = LoopClock()
    waiting = WaitingPods(clock).add(pod(), "n1", {"Gang": 5.0})
    await anyio.sleep(4.0)
    before_s = clock.monotonic()
    await waiting.wait()
    assert clock.monotonic() - before_s == pytest.approx(1.0)


async def test_a_rejection_ends_the_wait_at_once() -> None:
    waiting = WaitingPods(LoopClock()).add(pod(), "n1", {"Gang": 60.0, "Quota": 60.0})
    assert waiting.reject("Quota", "over quota")
    status = await waiting.wait()
    assert status == Status(Code.UNSCHEDULABLE, ("over quota",), "Quota")


async def test_the_first_signal_wins() -> None:
    waiting = WaitingPods(LoopClock()).add(pod(), "n1", {"Gang": 60.0})
    assert waiting.preempt("DefaultPreemption", "preempted")
    assert not waiting.reject("Quota", "over quota")
    waiting.allow("Gang")
    assert await waiting.wait() == Status(Code.ERROR, ("preempted",), "DefaultPreemption")


async def test_an_allow_after_the_time_has_passed_comes_too_late_even_if_nobody_was_waiting() -> None:
    clock = ManualClock()
    waiting = WaitingPods(clock).add(pod(), "n1", {"Gang": 5.0})
    clock.advance(5.0)
    waiting.allow("Gang")
    status = await waiting.wait()
    assert status is not None
    assert status.message == "rejected due to timeout after waiting 5s at plugin Gang"


async def test_an_allow_of_a_plugin_that_nobody_waits_for_changes_nothing() -> None:
    waiting = WaitingPods(LoopClock()).add(pod(), "n1", {"Gang": 5.0})
    waiting.allow("Quota")
    assert waiting.pending_plugins == ("Gang",)


async def test_a_cancelled_wait_leaves_the_pod_waiting() -> None:
    waiting = WaitingPods(LoopClock()).add(pod(), "n1", {"Gang": 60.0})
    with anyio.move_on_after(1.0) as scope:
        await waiting.wait()
    assert scope.cancelled_caught
    assert waiting.reject("Gang", "no") is True


async def test_pods_are_found_by_uid_iterated_and_removed() -> None:
    pods = WaitingPods(LoopClock())
    first = pods.add(pod("a", uid="ua"), "n1", {"Gang": 60.0})
    second = pods.add(pod("b", uid="ub"), "n2", {"Gang": 60.0})
    assert pods.get("ua") is first
    for waiting in pods:
        waiting.allow("Gang")
        pods.remove(waiting.pod.uid)
    assert len(pods) == 0
    assert pods.get("ub") is None
    assert await second.wait() is None


async def test_a_pod_that_is_gone_is_rejected_as_removed() -> None:
    pods = WaitingPods(LoopClock())
    waiting = pods.add(pod(uid="ua"), "n1", {"Gang": 60.0})
    assert pods.reject("ua")
    assert not pods.reject("ua")
    assert not pods.reject("unknown")
    assert await waiting.wait() == Status(Code.UNSCHEDULABLE, ("removed",), "")
