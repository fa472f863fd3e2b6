"""How much an attempt does, counted instead of timed: a change that makes it do more has to raise a number here."""

from __future__ import annotations

import gc
import itertools
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.in_process import RECORDER_BYTES, FullCluster, pods_of
from benchmarks.subsystems import UNSCHEDULABLE
from benchmarks.workloads import WORKLOADS, Workload
from podium.daemon.face import Face, MakeFace
from podium.daemon.observers import Observers
from podium.daemon.options import Options
from podium.daemon.tracing import Tracing, tracing
from podium.engine.flight_recorder import FlightRecorder
from podium.engine.flight_recorder.segment import ATTEMPTS_MAX
from podium.lib.clock import ManualClock
from podium.objects.core import Pod
from podium.objects.pod_groups import group_of
from podium.telemetry import Metrics
from tests import builders
from tests.unit.framework.profiles import Recorder
from tests.unit.queues.builders import QueueBench

NODES, ATTEMPTS, WARM_UP = 300, 20, 20

CALLS_MAX = {
    "plain": 396,
    "node-affinity": 415,
    "zone-spread": 488,
    "zone-spread-soft": 472,
    "pod-affinity": 630,
    "pod-affinity-preferred": 579,
    "anti-affinity": 650,
    "mixed": 645,
    "policies": 538,
}
"""Calls of functions for one attempt, in Python and in C, from the snapshot to Reserve.

With Python 3.11; others need fewer.
"""
GANG_CALLS_MAX = {3: 789, 200: 734}
"""As many for each pod of a gang of that size: tried with the others, and then placed."""
DEVICES_CALLS_MAX = 1100
"""As many for a pod with a claim for devices, on a tenth of the nodes."""
PREEMPTION_CALLS_MAX = 1069
"""As many for a pod that finds victims, while others have found theirs."""
REJECTION_CALLS_MAX = 203
"""As many for a pod that fits nowhere, after others of its kind, with the text of its condition."""
QUEUE_CALLS_MAX = 97
"""As many for a pod's way through the queue, with the reading of how long it took."""
KINDS = {"mixed": 6}
KEPT = ("NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodeResourcesFit")
KEPT_SCORES = ("TaintToleration", "NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality")


@dataclass(frozen=True)
class Work:
    """The work of one attempt, on average."""

    calls: float
    evaluations: Counter[tuple[str, str]]


def work_of(workload: Workload, running: int) -> Work:
    count = WARM_UP + ATTEMPTS
    engine = FullCluster(NODES, workload.objects_before(NODES, count, running), profile=workload.profile)
    pods = pods_of(workload, count)
    for pod in pods[:WARM_UP]:
        engine.attempt(pod)
    recorder = engine._framework.observer = Recorder()
    return Work(calls_of(engine, pods[WARM_UP:]) / ATTEMPTS, recorder.evaluations)


def calls_of(engine: FullCluster, pods: Sequence[Pod]) -> int:
    """The calls of functions while these pods are tried."""

    def attempt_all() -> None:
        for pod in pods:
            engine.attempt(pod)

    return count_calls(attempt_all)


def count_calls(do: Callable[[], None]) -> int:
    """The calls of functions that this makes."""
    calls = 0

    def count_call(frame: Any, event: str, arg: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    profiler = sys.getprofile()
    # A collection calls what listens to it, and what ends with the garbage of other tests.
    gc.disable()
    sys.setprofile(count_call)
    try:
        do()
    finally:
        sys.setprofile(profiler)
        gc.enable()
    # Not those of the function itself, and of what ends the counting.
    return calls - 2


@pytest.mark.long
@pytest.mark.parametrize("name", CALLS_MAX)
def test_attempt_does_no_more_than_it_did_whatever_the_number_of_running_pods(name):
    workload = WORKLOADS[name]
    few_pods, many_pods = work_of(workload, NODES // 2), work_of(workload, NODES * 8)
    assert few_pods.calls <= CALLS_MAX[name]
    assert many_pods.calls <= few_pods.calls * 1.03
    # Of what is kept, only the row that the last pod of each kind went to is looked at again.
    looked_at = {(plugin, "Filter"): few_pods.evaluations[plugin, "Filter"] for plugin in KEPT}
    looked_at |= {(plugin, "Score"): few_pods.evaluations[plugin, "Score"] for plugin in KEPT_SCORES}
    assert max(looked_at.values()) <= ATTEMPTS * KINDS.get(name, 1), looked_at
    assert looked_at["NodeResourcesFit", "Filter"] >= ATTEMPTS


@pytest.mark.long
@pytest.mark.parametrize("size", GANG_CALLS_MAX)
def test_a_pod_of_a_gang_costs_no_more_than_it_did(size):
    workload = WORKLOADS["gangs"]
    engine = FullCluster(NODES, workload.objects_before(NODES, workload.pods, 0), gates=workload.gates)
    gangs = [list(pods) for _, pods in itertools.groupby(pods_of(workload, workload.pods), group_of)]
    first, *next_gangs = [pods for pods in gangs if len(pods) == size][:ATTEMPTS]
    engine.attempt_group(first)

    def attempt_all() -> None:
        for pods in next_gangs:
            engine.attempt_group(pods)

    assert count_calls(attempt_all) / (size * len(next_gangs)) <= GANG_CALLS_MAX[size]


def test_a_pod_with_devices_costs_no_more_than_it_did():
    workload, nodes = WORKLOADS["devices"], NODES // 10
    engine = FullCluster(nodes, workload.objects_before(nodes, 2 * ATTEMPTS, 0))
    pods = pods_of(workload, 2 * ATTEMPTS)
    calls_of(engine, pods[:ATTEMPTS])
    assert calls_of(engine, pods[ATTEMPTS:]) / ATTEMPTS <= DEVICES_CALLS_MAX


def test_a_pod_that_preempts_costs_no_more_than_it_did():
    workload = WORKLOADS["preemption"]
    count = WARM_UP + ATTEMPTS
    engine = FullCluster(NODES, workload.objects_before(NODES, count, 0))
    pods = pods_of(workload, count)

    def preempt_for(pods: Sequence[Pod]) -> None:
        for pod in pods:
            engine.preempt(pod)

    preempt_for(pods[:WARM_UP])
    assert count_calls(lambda: preempt_for(pods[WARM_UP:])) / ATTEMPTS <= PREEMPTION_CALLS_MAX


def test_a_pod_that_fits_nowhere_costs_no_more_than_it_did():
    count = WARM_UP + ATTEMPTS
    engine = FullCluster(NODES, UNSCHEDULABLE.objects_before(NODES, count))
    pods = pods_of(UNSCHEDULABLE, count)
    messages = [engine.reject(pod) for pod in pods[:WARM_UP]]
    unhelpful = "preemption: 0/300 nodes are available: 300 Preemption is not helpful for scheduling."
    assert set(messages) == {f"0/300 nodes are available: 300 Insufficient cpu. {unhelpful}"}

    def reject_all() -> None:
        for pod in pods[WARM_UP:]:
            engine.reject(pod)

    assert count_calls(reject_all) / ATTEMPTS <= REJECTION_CALLS_MAX


@pytest.mark.long
def test_the_flight_recorder_adds_twelve_calls_to_an_attempt():
    """Keeping the scores, counting and sealing included; making an observation for the queue is no work of its own."""
    calls = {}
    for recorder in (None, FlightRecorder(RECORDER_BYTES)):
        count = WARM_UP + 2 * ATTEMPTS_MAX
        engine = FullCluster(NODES, WORKLOADS["plain"].objects_before(NODES, count, 0), recorder)
        pods = pods_of(WORKLOADS["plain"], count)
        for pod in pods[:WARM_UP]:
            engine.attempt(pod)
        calls[type(recorder)] = calls_of(engine, pods[WARM_UP:])
    assert (calls[FlightRecorder] - calls[type(None)]) / (2 * ATTEMPTS_MAX) <= 12


def test_tracing_that_is_off_adds_no_call():
    """Reports that tracing would observe cost the same calls as without the face of tracing."""
    sampling = Tracing(ManualClock(), Random(1), 0, lambda _: None)
    faces = (lambda _: Face(), tracing, lambda _: Face(observers=[sampling]))
    without, off, on = (calls_of_reports(face) for face in faces)
    assert without == off < on


def calls_of_reports(make: MakeFace) -> int:
    """The calls that each report makes which tracing hears, in a scheduler with that face."""
    scheduler: Any = SimpleNamespace(options=Options(), metrics=Metrics())
    observers = Observers(scheduler.metrics, "")
    for observer in make(scheduler).observers:
        observers.add(observer)
    plugins, attempts = observers.plugins.observer, observers.attempts.observer
    subject: Any = builders.pod("web-1")

    def report() -> None:
        plugins.observe_extension_point("Filter", "Success", "podium", 0.01)
        plugins.observe_plugin("DefaultBinder", "Bind", "Success", 0.01)
        plugins.observe_permit_wait("Success", 0.01)
        attempts.on_decision(subject, subject, subject, 0.0, 0.01)
        attempts.on_bound(subject, 0.01)
        attempts.on_failure(subject, "error", "", 0.01)

    report()
    return count_calls(report)


def test_the_latency_of_a_pod_is_measured_with_one_hundredth_of_an_attempts_calls():
    """Only that call is counted; the queue notes the time while it moves the pod, and reads no clock for it."""
    metrics, bound_pod = Metrics(), builders.pod("web-1")
    assert 0 < count_calls(lambda: metrics.observe_latency(0.01, bound_pod)) <= 0.01 * CALLS_MAX["plain"]
    bench = QueueBench()

    def schedule() -> None:
        bench.queue.add(bound_pod)
        bench.queue.seconds_waited(bench.pop())
        bench.queue.done(bound_pod.uid)

    assert count_calls(schedule) <= QUEUE_CALLS_MAX


def test_rows_that_nobody_changed_are_not_looked_at_again():
    engine = FullCluster(NODES)
    first, second, third, fourth = pods_of(WORKLOADS["plain"], 4)
    for pod in (first, second, third):
        engine.attempt(pod)
    recorder = engine._framework.observer = Recorder()
    engine.attempt(fourth)
    assert {key: times for key, times in recorder.evaluations.items() if key[1] in ("Filter", "Score")} == {
        ("NodeResourcesFit", "Filter"): 1,
        ("NodeResourcesFit", "Score"): 1,
        ("NodeResourcesBalancedAllocation", "Score"): 1,
    }
