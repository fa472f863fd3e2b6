from __future__ import annotations

import pytest

from podium.framework.contract.cluster_event import QueueingHint
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.status import SKIP, Code, unresolvable, unschedulable
from podium.framework.cycle.diagnosis import Diagnosis
from podium.plugins.dynamic_resources import DynamicResources
from tests.builders import node, pod, snapshot_of
from tests.unit.plugins.clusters import (
    STATE,
    RecordingHandle,
    filtered,
    filtered_one_by_one,
    normalized,
    scored,
    scored_one_by_one,
)

PLUGIN = DynamicResources(None, RecordingHandle())
PLAIN, CLAIMING = pod(), pod(spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "my-gpu"}]})
NODES = snapshot_of(node("n1"), node("n2"))
REFUSED = unresolvable("podium cannot place pods with resource claims yet")
QUEUE, HINT_SKIP = QueueingHint.QUEUE, QueueingHint.SKIP


def test_a_pod_without_claims_is_left_alone() -> None:
    state = CycleState()
    assert PLUGIN.pre_enqueue(PLAIN) is None
    assert PLUGIN.pre_filter(state, PLAIN, NODES) == (None, SKIP)
    assert filtered(PLUGIN, PLAIN, NODES) == {}
    assert filtered_one_by_one(PLUGIN, PLAIN, NODES) == {}
    assert scored(PLUGIN, PLAIN, NODES) == scored_one_by_one(PLUGIN, PLAIN, NODES) == {"n1": 0, "n2": 0}
    assert normalized(PLUGIN, PLAIN, NODES) == {"n1": 0, "n2": 0}
    assert PLUGIN.reserve(state, PLAIN, "n1") is None
    assert PLUGIN.pre_bind_pre_flight(state, PLAIN, "n1") == (None, SKIP)
    PLUGIN.unreserve(state, PLAIN, "n1")


@pytest.mark.anyio
async def test_there_is_nothing_to_prepare_before_binding() -> None:
    assert await PLUGIN.pre_bind(STATE, PLAIN, "n1") is None


def test_a_pod_with_claims_is_let_into_the_queue_and_rejected_where_it_shows() -> None:
    assert PLUGIN.pre_enqueue(CLAIMING) is None
    assert PLUGIN.pre_filter(CycleState(), CLAIMING, NODES) == (None, REFUSED)
    assert set(filtered(PLUGIN, CLAIMING, NODES).values()) == {REFUSED}
    assert filtered_one_by_one(PLUGIN, CLAIMING, NODES) == filtered(PLUGIN, CLAIMING, NODES)


def test_after_filtering_it_has_no_claims_to_take_back() -> None:
    state = CycleState()
    PLUGIN.pre_filter(state, PLAIN, NODES)
    status = unschedulable("no new claims to deallocate")
    assert PLUGIN.post_filter(state, PLAIN, NODES, Diagnosis()) == (None, status)


def test_nobody_is_preempted_for_a_pod_with_claims() -> None:
    state = CycleState()
    PLUGIN.pre_filter(state, CLAIMING, NODES)
    assert PLUGIN.post_filter(state, CLAIMING, NODES, Diagnosis()) == (None, unresolvable())


def test_after_an_attempt_that_never_reached_it_it_fails_as_upstream_does() -> None:
    result, status = PLUGIN.post_filter(CycleState(), PLAIN, NODES, Diagnosis())
    assert result is None
    assert status is not None
    assert (status.code, status.message) == (Code.ERROR, "not found")


def test_generated_claims_help_the_pod_itself() -> None:
    assert PLUGIN.after_claims_generated(PLAIN, PLAIN, PLAIN) is QUEUE
    assert PLUGIN.after_claims_generated(PLAIN, None, pod("other")) is HINT_SKIP
    assert PLUGIN.after_claims_generated(CLAIMING, CLAIMING, CLAIMING) is HINT_SKIP


def test_it_registers_for_nodes_and_generated_claims() -> None:
    registered = {each.event.resource.value: int(each.event.action) for each in PLUGIN.events_to_register()}
    assert registered == {"Node": 1 | 4 | 8, "Pod": 4096}
