from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.engine.flight_recorder import FlightRecorder, Result
from podium.engine.flight_recorder.explaining import explain_attempt
from podium.engine.flight_recorder.recorder import MEMORY_BYTES_MIN
from podium.engine.flight_recorder.ring import Ring
from podium.engine.flight_recorder.segment import ATTEMPTS_MAX
from podium.framework.cycle.scored import NONE, Scored
from podium.framework.profile.score_history import ScoreHistory
from tests.builders import pod
from tests.recorder_memory import measure
from tests.unit.engine.flight_recorder.recording import (
    FULL,
    TAINTED,
    Cluster,
    numbered_pod,
    place,
    reject,
    rejection,
    scores,
)

THREE = Cluster("n0", "n1", "n2")


def seal(recorder):
    recorder.settle()
    recorder._placed.seal()
    recorder._rejected.seal()


@pytest.mark.parametrize("is_sealed", [False, True])
def test_scheduled_pod_keeps_its_node_its_scores_and_its_story_in_the_queue(is_sealed):
    recorder = FlightRecorder(MEMORY_BYTES_MIN)
    entries = scores([1, 2], Fit=[70, 50], Spread=[100, 90])
    place(recorder, THREE, pod("web"), 1, rejection([0], TAINTED), scores=entries, at_s=7.0)
    if is_sealed:
        seal(recorder)
    recorder.on_bound(pod("web"), 0.25)
    (attempt,) = recorder.newest_first("default", "web")
    assert (attempt.result, attempt.node, attempt.total_s) == (Result.SCHEDULED, "n1", 0.25)
    assert (attempt.started_s, attempt.attempt, attempt.node_count) == (7.0, 1, 3)
    assert [(line.event, line.new_state) for line in attempt.story] == [
        ("UnscheduledPodAdd", "active"),
        ("Pop", "in flight"),
    ]
    details = recorder.details(attempt)
    assert details.totals == {"n1": 170, "n2": 140}
    assert details.plugins == {"Fit": [70, 50], "Spread": [100, 90]}
    assert details.rejections == {"n0": ("TaintToleration", "had taints")}
    explanation = explain_attempt(attempt, details)
    assert explanation.verdict == "n1 beats n2 by 30: Fit +20, Spread +10"


def test_cached_scores_are_weighted_and_constant_ones_are_filled_in():
    recorder = FlightRecorder(MEMORY_BYTES_MIN)
    history = ScoreHistory(np.array([[10, 3], [0, 0], [20, 4]], np.int8))
    details_by_name = Scored(np.array([0, 2]), {}, history, 0, {"Fit": 1, "Spread": 2}, {"Taints": 300})
    place(recorder, THREE, pod("web"), 2, scores=details_by_name)
    seal(recorder)
    (attempt,) = recorder.newest_first()
    details = recorder.details(attempt)
    assert details.plugins == {"Fit": [10, 20], "Spread": [6, 8], "Taints": [300, 300]}
    assert details.totals == {"n0": 316, "n2": 328}


def test_attempts_of_different_signatures_keep_their_own_scores():
    recorder = FlightRecorder(MEMORY_BYTES_MIN)
    rows, history = np.array([0, 2]), ScoreHistory(np.array([[100], [50], [0]], np.int8))
    place(recorder, THREE, pod("a"), scores=Scored(rows, {}, history, 0, {"Fit": 3}, {"Taints": 7}))
    heavy = {"Spread": (1, np.array([100, 5], np.int8)), "Own": (700, np.array([0, 100], np.int8))}
    place(recorder, THREE, pod("b"), scores=Scored(np.array([1, 0]), heavy))
    place(recorder, THREE, pod("alone"))
    computed, history = (
        {"Spread": (1, np.array([8, 9], np.int8))},
        ScoreHistory(np.array([[1, 3], [0, 0], [2, 4]], np.int8)),
    )
    both_scores = Scored(rows, computed, history, 0, {"Fit": 1, "Own": 2})
    place(recorder, THREE, pod("c"), scores=both_scores)
    seal(recorder)
    details_by_name = {attempt.name: recorder.details(attempt) for attempt in recorder.newest_first()}
    assert {name: detail.plugins for name, detail in details_by_name.items()} == {
        "a": {"Fit": [300, 0], "Taints": [7, 7]},
        "b": {"Spread": [100, 5], "Own": [0, 70_000]},
        "alone": {},
        "c": {"Fit": [1, 2], "Own": [6, 8], "Spread": [8, 9]},
    }
    assert details_by_name["a"].totals == {"n0": 307, "n2": 7}
    assert details_by_name["b"].totals == {"n1": 100, "n0": 70_005}
    assert details_by_name["c"].totals == {"n0": 15, "n2": 19}


@pytest.mark.parametrize("attempts", [1, 99])
def test_recorded_scores_do_not_change_later(attempts):
    recorder, nodes = FlightRecorder(MEMORY_BYTES_MIN), Cluster(*[f"n{number}" for number in range(100)])
    table = np.full((100, 2), 90, np.int8)
    history = ScoreHistory(table)
    for number in range(attempts):
        record = Scored(np.arange(60), {}, history, history.version, {"Fit": 1, "Own": 2})
        place(recorder, nodes, numbered_pod(number), scores=record)
        table[number % 7] -= 1
        history.note(number % 7, table[number % 7].tolist())
    details = [recorder.details(attempt) for attempt in recorder.newest_first()]
    seal(recorder)
    assert [recorder.details(attempt) for attempt in recorder.newest_first()] == details
    assert [sum(entry.plugins["Fit"]) for entry in reversed(details)] == [
        60 * 90 - number for number in range(attempts)
    ]


def test_total_that_extenders_added_to_is_kept():
    recorder = FlightRecorder(MEMORY_BYTES_MIN)
    record = scores([1, 0], Fit=[50, 40])
    record.extended = np.array([50, 1040])
    place(recorder, THREE, pod("web"), scores=record)
    seal(recorder)
    (attempt,) = recorder.newest_first()
    assert recorder.details(attempt).totals == {"n1": 50, "n0": 1040}


def test_rejected_pod_keeps_its_reasons_by_node():
    recorder = FlightRecorder(MEMORY_BYTES_MIN)
    reject(recorder, THREE, pod("big"), rejection([0, 2], FULL), rejection([1], TAINTED))
    seal(recorder)
    (attempt,) = recorder.newest_first(result="unschedulable")
    assert attempt.message.startswith("0/3 nodes are available: 1 had taints, 2 Insufficient cpu")
    explanation = explain_attempt(attempt, recorder.details(attempt))
    assert [(group.plugin, group.count, group.examples) for group in explanation.groups] == [
        ("NodeResourcesFit", 2, ("n0", "n2")),
        ("TaintToleration", 1, ("n1",)),
    ]


def test_binding_that_fails_after_its_attempt_was_sealed_says_why():
    recorder = FlightRecorder(MEMORY_BYTES_MIN)
    place(recorder, THREE, pod("web"))
    seal(recorder)
    (attempt,) = recorder.newest_first()
    assert (attempt.result, attempt.total_s) == (Result.BINDING, None)
    recorder.on_failure(pod("web"), "error", "no such node", 0.5)
    (attempt,) = recorder.newest_first()
    assert (attempt.result, attempt.message, attempt.total_s) == (Result.ERROR, "no such node", 0.5)


def test_attempts_are_found_by_namespace_name_and_result_the_newest_first():
    recorder = FlightRecorder(MEMORY_BYTES_MIN)
    for number in range(3):
        place(recorder, THREE, numbered_pod(number))
        reject(recorder, THREE, pod("web-0", namespace="shop"), rejection([0, 1, 2], FULL))
        if number == 1:
            seal(recorder)
    entries = [(attempt.namespace, attempt.name) for attempt in recorder.newest_first(name="web-0")]
    assert entries == [("shop", "web-0")] * 3 + [("default", "web-0")]
    assert [attempt.sequence for attempt in recorder.newest_first()] == [6, 5, 4, 3, 2, 1]
    assert [attempt.name for attempt in recorder.newest_first("default")] == ["web-2", "web-1", "web-0"]
    assert len(list(recorder.newest_first(result="unschedulable"))) == 3
    assert not list(recorder.newest_first("default", "web"))


def test_row_that_another_node_takes_keeps_its_former_name_for_former_attempts():
    recorder, cluster = FlightRecorder(MEMORY_BYTES_MIN), Cluster("n0", "n1")
    reject(recorder, cluster, pod("before"), rejection([0, 1], FULL))
    cluster.change("n0", "")
    reject(recorder, cluster, pod("between"), rejection([0], FULL))
    cluster.change("n0", "n9", "n3")
    reject(recorder, cluster, pod("after"), rejection([1, 2], FULL))
    nodes = {attempt.name: set(recorder.details(attempt).rejections) for attempt in recorder.newest_first()}
    assert nodes == {"before": {"n0", "n1"}, "between": {"n0"}, "after": {"n9", "n3"}}


def test_replicas_that_are_rejected_alike_share_their_verdicts():
    recorder = FlightRecorder(4 * MEMORY_BYTES_MIN)
    cluster = Cluster(*(f"n{number}" for number in range(5000)))
    spec = pod("web").spec
    for number in range(50):
        replica = numbered_pod(number)
        replica = type(replica)(metadata=replica.metadata, spec=spec)
        reject(recorder, cluster, replica, rejection(range(5000), FULL))
    seal(recorder)
    assert recorder._rejected._details_bytes < 25_000
    assert all(len(recorder.details(attempt).rejections) == 5000 for attempt in recorder.newest_first(name="web-7"))


def test_replicas_that_are_rejected_differently_keep_their_own_reasons():
    recorder, spec = FlightRecorder(MEMORY_BYTES_MIN), pod("web").spec
    rejection_of_all = rejection([0, 1, 2], FULL)
    for number, part in enumerate(
        [rejection_of_all, rejection_of_all, rejection([0, 1, 2], TAINTED), rejection_of_all, rejection([0, 1], FULL)]
    ):
        replica = numbered_pod(number)
        reject(recorder, THREE, type(replica)(metadata=replica.metadata, spec=spec), part)
    rejections = [recorder.details(attempt).rejections for attempt in recorder.newest_first()]
    full, tainted = (FULL.plugin, FULL.message), (TAINTED.plugin, TAINTED.message)
    nodes = ("n0", "n1", "n2")
    assert rejections[::-1] == [
        dict.fromkeys(nodes, full),
        dict.fromkeys(nodes, full),
        dict.fromkeys(nodes, tainted),
        dict.fromkeys(nodes, full),
        dict.fromkeys(nodes[:2], full),
    ]


def test_replica_is_recorded_after_an_attempt_that_is_too_large_for_its_details():
    recorder, spec = FlightRecorder(MEMORY_BYTES_MIN), pod("web").spec
    # With rows that repeat, so that it takes no names of thousands of nodes.
    small, large = rejection([0], FULL), rejection([0, 1, 2] * 4000, FULL)
    first, last = (type(item)(metadata=item.metadata, spec=spec) for item in (numbered_pod(1), numbered_pod(3)))
    reject(recorder, THREE, first, small)
    seal(recorder)
    reject(recorder, THREE, pod("large"), large)
    reject(recorder, THREE, last, small)
    rejections = {attempt.name: recorder.details(attempt).rejections for attempt in recorder.newest_first()}
    assert rejections["large"] == {}
    assert rejections["web-3"] == {"n0": (FULL.plugin, FULL.message)}


def test_scheduled_pods_do_not_displace_the_only_attempt_at_a_pending_one():
    recorder = FlightRecorder(MEMORY_BYTES_MIN)
    reject(recorder, THREE, pod("pending"), rejection([0, 1, 2], FULL))
    for number in range(ATTEMPTS_MAX * 40):
        place(recorder, THREE, numbered_pod(number), scores=scores([0, 1], Fit=[1, 2]))
        recorder.on_bound(numbered_pod(number), 0.1)
    assert len(list(recorder.newest_first("default", "pending"))) == 1
    assert not list(recorder.newest_first("default", "web-0"))


def test_names_that_do_not_fit_leave_the_attempts_without_their_details():
    recorder = FlightRecorder(MEMORY_BYTES_MIN)
    reject(recorder, Cluster(*(f"{number:0200}" for number in range(5000))), pod("web"), rejection([0], FULL))
    (attempt,) = recorder.newest_first()
    assert recorder.details(attempt).rejections == {}
    assert recorder.nbytes <= MEMORY_BYTES_MIN


@pytest.mark.long
@settings(max_examples=6, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([3, 400]))
def test_attempts_that_are_counted_later_are_kept_like_those_that_are_counted_at_once(seed, nodes):
    random, recorders = Random(seed), [FlightRecorder(2 * MEMORY_BYTES_MIN) for _ in range(2)]
    names, rows = [f"node-{number}" for number in range(nodes)], np.arange(nodes)
    cluster = Cluster(*names)
    histories = [ScoreHistory(np.zeros((nodes, 2), np.int8)) for _ in range(2)]
    for number in range(250):
        web, history = numbered_pod(number), random.choice(histories)
        first, draw, at_s = random.randrange(nodes), random.random(), random.random()
        for recorder in recorders:
            if draw < 0.1:
                reject(recorder, cluster, web, rejection(rows[first:], FULL))
            elif draw < 0.2:
                place(recorder, cluster, web, 0, rejection(rows[first:], FULL), scores=scores(rows[:1], Fit=[1]))
            else:
                own_rows = cluster.snapshot.order[first:nodes]
                record = Scored(
                    own_rows if draw < 0.8 else own_rows.astype(np.uint32), NONE, history, 0, {"Fit": 1, "Own": 2}
                )
                place(recorder, cluster, web, 0, scores=record, at_s=at_s)
            if draw < 0.3:
                recorder.on_failure(web, "error", "no such node", at_s)
            elif draw < 0.9:
                recorder.on_bound(numbered_pod(max(0, number - Random(number).randrange(200))), at_s)
        if draw > 0.99:
            cluster.change(*names, f"new-{number}")
        assert recorders[1].nbytes <= 2 * MEMORY_BYTES_MIN
    attempts = [list(recorder.newest_first()) for recorder in recorders]
    assert attempts[0] == attempts[1]
    assert recorders[0].nbytes == recorders[1].nbytes
    details = [[recorder.details(attempt) for attempt in attempts[0]] for recorder in recorders]
    assert details[0] == details[1]


def count_bytes(ring: Ring) -> int:
    """Count the size of everything in the ring again."""
    names = {id(record.names): record.names for record in (ring.newest, *ring._with_details)}.values()
    segments = sum(segment.head_bytes for segment in ring._segments) + sum(
        detail.detail_bytes for detail in ring._with_details
    )
    return segments + sum(name.nbytes for name in names) + ring.pending_bytes


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([3, 400, 3000]))
def test_the_bytes_are_the_sum_of_what_is_kept_and_never_above_the_limit(seed, nodes):
    random, recorder = Random(seed), FlightRecorder(2 * MEMORY_BYTES_MIN)
    names = [f"node-{number}" for number in range(nodes)]
    cluster = Cluster(*names)
    for number in range(150):
        rows = sorted(random.sample(range(nodes), random.randrange(1, nodes + 1)))
        if random.random() < 0.03:
            names[random.randrange(nodes)] = random.choice(["", f"new-{number}"])
            cluster.change(*names)
        elif random.random() < 0.5:
            reject(recorder, cluster, numbered_pod(number), rejection(rows, random.choice([FULL, TAINTED])))
        elif names[0]:
            place(recorder, cluster, numbered_pod(number), 0, scores=scores(rows, Fit=rows, Spread=rows))
            if random.random() < 0.9:
                recorder.on_bound(numbered_pod(number), 1.0)
        for ring in (recorder._placed, recorder._rejected):
            assert ring.nbytes == count_bytes(ring) <= ring.limit_bytes
    assert recorder.attempts == len(list(recorder.newest_first()))


@pytest.mark.long
def test_what_is_kept_takes_no_more_memory_than_it_may():
    """`python -m tests.recorder_memory` tries a million attempts."""
    entries = measure(attempts=3000, nodes=5000, memory_bytes=4 * MEMORY_BYTES_MIN, seed=1)
    assert max(entries.counted_bytes_max, entries.traced_bytes_max) <= 4 * MEMORY_BYTES_MIN
    assert entries.attempts > ATTEMPTS_MAX
