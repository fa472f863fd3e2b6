from __future__ import annotations

import pytest

from podium.daemon.live_page import DecisionRows, QueueRows, node_rows
from podium.daemon.live_page.contents import DECISION_COLUMNS, NODE_COLUMNS, QUEUE_COLUMNS, SHOWN_MAX, Contents
from podium.daemon.live_page.tables import Row
from podium.engine.flight_recorder import FlightRecorder
from podium.framework.contract.cluster_event import ActionType, on
from podium.lib.clock import ManualClock
from podium.objects.resource_types import EventResource
from tests.builders import cache_of, node, pod, snapshot_of
from tests.unit.engine.flight_recorder.recording import FULL, Cluster, place, reject, rejection
from tests.unit.queues.builders import QueueBench, Rejecter

pytestmark = pytest.mark.anyio

FIT = Rejecter("Fit", on(EventResource.NODE, ActionType.ADD))


def cells_by_column(columns: tuple[str, ...], row: Row) -> dict[str, object]:
    return dict(zip(columns, row, strict=True))


async def test_a_node_has_what_its_pods_request_and_what_it_offers() -> None:
    rows = await node_rows(
        snapshot_of(
            node(
                "n1",
                cpu="4",
                memory="8Gi",
                pods="20",
                allocatable={"example.com/gpu": 8},
                labels={"topology.kubernetes.io/zone": "a"},
            ),
            node("n2", cpu="2", memory="1Gi", pods="5", unschedulable=True, taints=["dedicated=gpu:NoSchedule"]),
            pod("web-1", cpu="1", memory="1Gi", node="n1"),
            pod("web-2", cpu="500m", memory="1Gi", node="n1"),
        )
    )
    first = {"zone": "a", "cpu": 1500, "cpu_max": 4000, "memory": 2 << 30, "memory_max": 8 << 30}
    assert cells_by_column(NODE_COLUMNS, rows["n1"]) == {**first, "pods": 2, "pods_max": 20, "closed": ""} | {
        "taints": [],
        "others": {"example.com/gpu": (0, 8)},
        "devices": {},
    }
    second = cells_by_column(NODE_COLUMNS, rows["n2"])
    assert (second["closed"], second["taints"]) == ("cordoned", ["dedicated=gpu:NoSchedule"])


async def test_a_pod_of_the_queue_has_its_reason_and_its_next_try() -> None:
    bench = QueueBench(FIT)
    info = bench.add_rejected(pod("rejected", priority=9), "Fit")
    info.last_failure = "0/3 nodes are available"
    bench.add(pod("new"), pod("gated", gates=["quota"]))

    counts, rows = await QueueRows(bench.queue.listing).read()

    assert {state: count for state, count in counts.items() if count} == {"active": 1, "unschedulable": 1, "gated": 1}
    by_name = {row["name"]: row for row in (cells_by_column(QUEUE_COLUMNS, row) for row in rows.values())}
    assert by_name["rejected"]["plugins"] == ["Fit"]
    assert by_name["rejected"]["reason"] == "0/3 nodes are available"
    assert "Node Add" in by_name["rejected"]["events"]["Fit"]  # type: ignore[index]
    assert by_name["gated"]["plugins"] == ["Gates"]
    assert (by_name["new"]["queue"], by_name["new"]["next"]) == ("active", None)


@pytest.mark.parametrize(
    ("timestamp", "expected_s"), [("2026-01-01T00:00:00Z", 1767225600.0), ("soon", None), (None, None)]
)
async def test_a_pod_of_the_queue_has_the_time_of_its_creation(timestamp: str | None, expected_s: float | None) -> None:
    bench = QueueBench(FIT)
    bench.add(pod("new", metadata={"creationTimestamp": timestamp}))
    _, rows = await QueueRows(bench.queue.listing).read()
    (row,) = rows.values()
    assert cells_by_column(QUEUE_COLUMNS, row)["created"] == expected_s


async def test_a_pod_is_described_anew_when_something_has_happened_to_it() -> None:
    bench = QueueBench(FIT)
    bench.add(pod("new"))
    rows = QueueRows(bench.queue.listing)
    _, first_rows = await rows.read()
    _, next_rows = await rows.read()
    bench.pop()
    _, later_rows = await rows.read()
    (uid,) = first_rows
    assert next_rows[uid] is first_rows[uid]
    assert (
        cells_by_column(QUEUE_COLUMNS, first_rows[uid])["queue"],
        cells_by_column(QUEUE_COLUMNS, later_rows[uid])["queue"],
    ) == (
        "active",
        "in flight",
    )


async def test_of_many_pods_those_that_wait_longest_are_shown() -> None:
    bench = QueueBench()
    for number in range(SHOWN_MAX + 1):
        bench.add(pod(f"web-{number}"))
        bench.clock.advance(1.0)
    counts, rows = await QueueRows(bench.queue.listing).read()
    assert (counts["active"], len(rows)) == (SHOWN_MAX + 1, SHOWN_MAX)
    assert f"web-{SHOWN_MAX}" not in {cells_by_column(QUEUE_COLUMNS, row)["name"] for row in rows.values()}


def test_an_attempt_is_shown_as_it_is_decided_and_again_when_it_has_ended() -> None:
    recorder, cluster = FlightRecorder(2 << 20), Cluster("n0", "n1")
    rows = DecisionRows(recorder, ManualClock(100.0))
    assert rows.read() == {}
    assert rows.read() is None

    place(recorder, cluster, pod("web"), 1)
    decided_rows = rows.read()
    assert decided_rows is not None
    assert cells_by_column(DECISION_COLUMNS, decided_rows["1"])["result"] == "binding"
    recorder.on_bound(pod("web"), 0.25)
    ended_rows = rows.read()
    assert ended_rows is not None
    assert (
        cells_by_column(DECISION_COLUMNS, ended_rows["1"]).items()
        >= {"result": "scheduled", "node": "n1", "total": 0.25}.items()
    )
    assert rows.read() is None


def test_an_attempt_that_failed_has_its_message() -> None:
    recorder, cluster = FlightRecorder(2 << 20), Cluster("n0")
    rows = DecisionRows(recorder, ManualClock(100.0))
    reject(recorder, cluster, pod("big"), rejection([0], FULL))
    rows_read = rows.read()
    assert rows_read is not None
    assert cells_by_column(DECISION_COLUMNS, rows_read["1"]).items() >= {"at": 101.0, "result": "unschedulable"}.items()
    assert "Insufficient cpu" in str(cells_by_column(DECISION_COLUMNS, rows_read["1"])["message"])


async def test_versions_change_only_with_what_is_shown() -> None:
    bench, cache, recorder = QueueBench(), cache_of(node("n1")), FlightRecorder(2 << 20)
    contents = Contents(cache, bench.queue.listing, recorder, bench.clock, lambda: None)
    await contents.read()
    first = contents.versions
    await contents.read()
    assert contents.versions == first
    cache.add_pod(pod("web", node="n1", cpu="1"))
    await contents.read()
    assert contents.versions == first._replace(nodes=first.nodes + 1)
    bench.add(pod("new"))
    bench.clock.advance(10.0)
    await contents.read()
    assert contents.versions == (first.queue + 1, first.decisions, first.nodes + 1)
    assert contents.read_s == bench.clock.now()


async def test_without_a_recorder_there_are_no_attempts() -> None:
    bench = QueueBench()
    contents = Contents(cache_of(node("n1")), bench.queue.listing, None, bench.clock, lambda: "other")
    await contents.read()
    assert (contents.attempts, contents.decisions.version, contents.leader) == (0, 0, "other")
