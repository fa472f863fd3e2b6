import gc
import signal
import time
from dataclasses import replace

import pytest

from benchmarks import subsystems
from benchmarks.nodes import CPUS
from benchmarks.sampled_run import Sampler
from benchmarks.subsystems import Cost, Split, subsystem_of
from benchmarks.workloads import WORKLOADS

PODIUM = "/home/me/podium/podium/"
COST = Cost(
    workload="plain",
    nodes=5_000,
    pods=3_000,
    cpu_ms_per_pod=0.35,
    decision_p99_ms=1.5,
    sampled_ms_per_pod=0.45,
    parts_ms=dict.fromkeys(subsystems.SUBSYSTEMS, 0.03),
)


@pytest.mark.parametrize(
    ("frames", "part"),
    [
        ([("client/session.py", "request"), ("binder/api_client.py", "bind")], subsystems.BINDING),
        ([("client/session.py", "request"), ("binder/api_client.py", "patch_status")], subsystems.STATUS),
        ([("client/http_connection.py", "send"), ("binder/events/recorder.py", "_send")], subsystems.EVENT),
        ([("client/http_connection.py", "data_received")], subsystems.ANSWERS),
        ([("objects/wire.py", "event"), ("client/reflector.py", "_deliver")], subsystems.DECODE),
        ([("cluster/snapshot.py", "update"), ("daemon/loop.py", "_attempt")], subsystems.SNAPSHOT),
        ([("telemetry/log_writer.py", "write"), ("daemon/loop.py", "_attempt")], subsystems.LOGGING),
        ([("telemetry/families.py", "observe"), ("queues/scheduling_queue.py", "pop")], subsystems.METRICS),
        ([("server/stall_watch.py", "_look")], subsystems.LOOP),
        ([], subsystems.LOOP),
    ],
)
def test_the_innermost_function_with_a_rule_decides(frames: list[tuple[str, str]], part: str) -> None:
    assert subsystem_of((PODIUM + file, function) for file, function in frames) == part


def test_libraries_belong_to_whoever_calls_them() -> None:
    site_packages = "/venv/lib/python3.11/site-packages/"
    structlog = (site_packages + "structlog/_base.py", "_proxy_to_logger")
    assert subsystem_of([structlog, (PODIUM + "daemon/loop.py", "run")]) == subsystems.LOGGING
    assert subsystem_of([("/usr/lib/python3.11/asyncio/tasks.py", "x"), (PODIUM + "queues/heap.py", "y")]) == (
        subsystems.QUEUE
    )
    assert subsystem_of([("/usr/lib/python3.11/ssl.py", "read")]) == subsystems.TLS


def test_the_parts_add_up_to_the_cpu_time_even_where_calls_in_c_delay_the_timer() -> None:
    handler = signal.getsignal(signal.SIGPROF)
    sampler = Sampler()
    sampler.start()
    try:
        ends_s = time.process_time() + 0.1
        while time.process_time() < ends_s:
            sum(range(200_000))
    finally:
        split = sampler.stop()
        signal.signal(signal.SIGPROF, handler)
    assert sum(split.seconds.values()) == pytest.approx(split.cpu_s, rel=0.02)


def test_a_collection_is_garbage_whatever_was_interrupted_after_it() -> None:
    now_s = 10.0
    sampler = Sampler(lambda: now_s)
    handler = signal.getsignal(signal.SIGPROF)
    sampler.start()
    try:
        # The timer has no part in it.
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        on_garbage = gc.callbacks[-1]
        on_garbage("start", {})
        now_s += 2.0
        # The interruption that has waited for the end of the collection.
        sampler._sample(signal.SIGPROF, None)
        on_garbage("stop", {})
        now_s += 3.0
    finally:
        split = sampler.stop()
        signal.signal(signal.SIGPROF, handler)
    assert split.seconds == {subsystems.GARBAGE: 2.0, subsystems.LOOP: 3.0}
    assert split.cpu_s == 5.0


def test_a_table_that_does_not_add_up_and_a_dear_pod_miss_their_targets() -> None:
    assert [check.is_met for check in subsystems.checks([COST])] == [True] * 3
    dear = replace(COST, cpu_ms_per_pod=0.45, decision_p99_ms=5.5, sampled_ms_per_pod=0.5)
    assert [check.is_met for check in subsystems.checks([dear])] == [False] * 3
    assert subsystems.table([COST]).row_count == len(subsystems.SUBSYSTEMS) + 4


def test_a_rejection_is_measured_with_pods_that_fit_nowhere() -> None:
    workload = subsystems.workload_named("unschedulable")
    pod = workload.pod(0)
    assert int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]) > CPUS
    assert "unschedulable" in subsystems.DEFAULT
    assert subsystems.workload_named("plain") is WORKLOADS["plain"]


def test_the_dearest_functions_are_named_by_where_they_are() -> None:
    split = Split({}, [(subsystems.QUEUE, f"{PODIUM}queues/heap.py:pop", 0.03)], 0.03)
    assert list(subsystems.dearest_functions(split, 1_000)) == ["queue: podium/queues/heap.py:pop 30 µs"]
