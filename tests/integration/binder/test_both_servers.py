"""What we write, as the embedded API server and the real one take it."""

from __future__ import annotations

import anyio
import pytest

from podium.binder import EventRecorder, failed_scheduling, not_scheduled, scheduled_event
from podium.lib.system_clock import SystemClock
from podium.objects.api_errors import Conflict, Invalid, NotFound
from podium.objects.core import Pod, PodCondition
from tests.control_plane.client import Json
from tests.integration.binder.conftest import EVENTS, PODS, Cluster
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.anyio


async def test_a_pod_is_bound(cluster: Cluster) -> None:
    pod = await cluster.create_pod("a")
    await cluster.client.bind(pod, "n1")
    assert (await cluster.pod("a")).node_name == "n1"
    assert (await cluster.condition("a"))["status"] == "True"


async def test_a_binding_whose_answer_was_lost_has_been_made_once(cluster: Cluster) -> None:
    pod = await cluster.create_pod("a")
    cluster.session.to_lose = 1
    await cluster.client.bind(pod, "n1")
    assert (await cluster.pod("a")).node_name == "n1"
    assert await cluster.changes_since(pod) == {"a": 1}
    assert cluster.session.writes == [f"POST {PODS}/a/binding"]


async def test_a_pod_that_is_bound_already_is_a_conflict(cluster: Cluster) -> None:
    pod = await cluster.create_pod("a")
    await cluster.client.bind(pod, "n1")
    with pytest.raises(Conflict, match='pod a is already assigned to node "n1"'):
        await cluster.client.bind(pod, "n2")
    assert (await cluster.pod("a")).node_name == "n1"


async def test_a_pod_that_is_gone_is_not_found(cluster: Cluster) -> None:
    pod = await cluster.create_pod("a")
    await cluster.admin.delete(f"{PODS}/a")
    with pytest.raises(NotFound):
        await cluster.client.bind(pod, "n1")


async def test_another_pod_of_the_same_name_is_not_bound(cluster: Cluster) -> None:
    pod = await cluster.create_pod("a")
    await cluster.admin.delete(f"{PODS}/a")
    await cluster.create_pod("a")
    with pytest.raises(Conflict):
        await cluster.client.bind(pod, "n1")
    assert (await cluster.pod("a")).node_name == ""


async def test_a_condition_is_set_then_worded_anew_with_its_transition_time_kept(cluster: Cluster) -> None:
    pod = await cluster.create_pod("a")
    assert await cluster.client.patch_status(pod, condition=not_scheduled(pod, "no room", is_rejected=True))
    first = await cluster.condition("a")
    assert {name: first[name] for name in ("status", "reason", "message", "observedGeneration")} == {
        "status": "False",
        "reason": "Unschedulable",
        "message": "no room",
        "observedGeneration": 1,
    }
    await anyio.sleep(1.1)
    pod = await cluster.pod("a")
    assert not await cluster.client.patch_status(pod, condition=not_scheduled(pod, "no room", is_rejected=True))
    assert await cluster.client.patch_status(pod, condition=not_scheduled(pod, "oops", is_rejected=False))
    second = await cluster.condition("a")
    assert (second["reason"], second["message"]) == ("SchedulerError", "oops")
    assert second["lastTransitionTime"] == first["lastTransitionTime"]


async def test_a_pod_is_nominated_and_the_nomination_taken_back(cluster: Cluster) -> None:
    await cluster.client.patch_status(await cluster.create_pod("a"), nominated_node_name="n1")
    pod = await cluster.pod("a")
    assert pod.status.nominated_node_name == "n1"
    pod_condition = not_scheduled(pod, "no room", is_rejected=True)
    await cluster.client.patch_status(pod, condition=pod_condition, nominated_node_name="")
    assert (await cluster.pod("a")).status.nominated_node_name == ""
    assert (await cluster.condition("a"))["message"] == "no room"


async def test_the_status_of_another_pod_of_the_same_name_is_left_alone(cluster: Cluster) -> None:
    pod = await cluster.create_pod("a")
    await cluster.admin.delete(f"{PODS}/a")
    await cluster.create_pod("a")
    with pytest.raises(Invalid, match="field is immutable"):
        await cluster.client.patch_status(pod, nominated_node_name="n1")
    assert (await cluster.pod("a")).status.nominated_node_name == ""


async def events_of(cluster: Cluster, pod: Pod) -> list[Json]:
    return [event for event in await cluster.admin.list(EVENTS) if event["regarding"]["uid"] == pod.uid]


async def test_events_are_taken_and_become_a_series(cluster: Cluster) -> None:
    pod = await cluster.create_pod("a")
    recorder = EventRecorder(cluster.dispatcher, SystemClock(), hostname="host-1")
    async with anyio.create_task_group() as group:
        group.start_soon(recorder.run)
        recorder.record(scheduled_event(pod, "n1"))
        recorder.record(failed_scheduling(pod, "no room: " + "é" * 1000))
        with anyio.fail_after(PATIENCE_S):
            while recorder.statistics().open:  # noqa: ASYNC110
                await anyio.sleep(0.01)
        recorder.record(failed_scheduling(pod, "still no room"))
        recorder.record(failed_scheduling(pod, "still no room"))
        assert await recorder.aclose(10.0) == 0
    assert recorder.statistics().given_up_total == 0
    bind_event, failure_event = sorted(await events_of(cluster, pod), key=lambda event: str(event["type"]))
    assert bind_event["note"] == "Successfully assigned default/a to n1"
    assert (bind_event["reportingController"], bind_event["reportingInstance"]) == ("podium", "podium-host-1")
    assert failure_event["reason"] == "FailedScheduling"
    assert failure_event["note"].endswith("é ...")
    assert failure_event["series"]["count"] == 3


async def test_an_event_whose_answer_was_lost_is_there_once(cluster: Cluster) -> None:
    pod = await cluster.create_pod("a")
    recorder = EventRecorder(cluster.dispatcher, SystemClock(), hostname="host-1", retry_s=0.1)
    cluster.session.to_lose = 1
    async with anyio.create_task_group() as group:
        group.start_soon(recorder.run)
        recorder.record(scheduled_event(pod, "n1"))
        assert await recorder.aclose(10.0) == 0
    assert recorder.statistics().written_total == 1
    assert len(await events_of(cluster, pod)) == 1


async def test_a_pod_is_deleted_by_uid_and_no_other_of_its_name(cluster: Cluster) -> None:
    first = await cluster.create_pod("a")
    assert await cluster.client.delete_pod(first)
    second = await cluster.create_pod("a")
    assert not await cluster.client.delete_pod(first)
    assert (await cluster.pod("a")).uid == second.uid
    assert await cluster.client.delete_pod(second)
    assert not await cluster.client.delete_pod(second)


async def test_a_condition_is_set_and_taken_away_again_and_others_stay(cluster: Cluster) -> None:
    pod = await cluster.create_pod("a")
    await cluster.client.patch_status(pod, condition=not_scheduled(pod, "no room", is_rejected=True))
    pod = await cluster.pod("a")
    target = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler", message="go")
    await cluster.client.patch_status(pod, condition=target)
    assert {condition.type for condition in (await cluster.pod("a")).status.conditions} == {
        "PodScheduled",
        "DisruptionTarget",
    }
    await cluster.client.remove_condition(pod, "DisruptionTarget")
    assert {condition.type for condition in (await cluster.pod("a")).status.conditions} == {"PodScheduled"}
