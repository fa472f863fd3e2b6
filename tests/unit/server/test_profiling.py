from __future__ import annotations

import threading
import tracemalloc
from typing import Any

import pytest

from podium.server.profiling import cpu_profile, memory_profile
from tests.patience import PATIENCE_S


def names(profile: dict[str, Any]) -> list[list[str]]:
    """The calls of each sample."""
    frames = [frame["name"] for frame in profile["shared"]["frames"]]
    (only,) = profile["profiles"]
    assert only["endValue"] == pytest.approx(sum(only["weights"]))
    assert len(only["samples"]) == len(only["weights"])
    return [[frames[index] for index in sample] for sample in only["samples"]]


def test_a_cpu_profile_shows_what_a_thread_is_busy_with_from_the_outermost_call() -> None:
    finish, start = threading.Event(), threading.Event()

    def spin() -> None:
        start.set()
        while not finish.is_set():
            sum(range(100))

    def outer() -> None:
        spin()

    thread = threading.Thread(target=outer)
    thread.start()
    assert start.wait(PATIENCE_S)
    try:
        assert thread.ident is not None
        profile: dict[str, Any] = {}
        # A loaded machine may give the thread no time at all.
        while not profile or not profile["profiles"][0]["samples"]:
            profile = cpu_profile(thread.ident, 0.1, threading.Event())
    finally:
        finish.set()
        thread.join()
    assert profile["profiles"][0]["unit"] == "seconds"
    assert min(profile["profiles"][0]["weights"]) > 0
    stacks = [[name.rpartition(".")[2] for name in stack] for stack in names(profile)]
    assert any("outer" in stack and stack[stack.index("outer") + 1] == "spin" for stack in stacks)


def test_a_cpu_profile_ends_when_it_is_stopped() -> None:
    stop_event = threading.Event()
    stop_event.set()
    assert names(cpu_profile(threading.get_ident(), 3600, stop_event)) == []


def test_a_memory_profile_shows_who_allocated_what_is_still_held_and_ends_the_tracing() -> None:
    buffers: list[bytearray] = []
    stop_event = threading.Event()

    def allocate() -> None:
        while not tracemalloc.is_tracing():
            stop_event.wait(0.001)
        buffers.append(bytearray(10_000_000))
        stop_event.set()

    thread = threading.Thread(target=allocate)
    thread.start()
    profile = memory_profile(3600, stop_event)
    thread.join()
    assert not tracemalloc.is_tracing()
    (only,) = profile["profiles"]
    assert (only["unit"], only["weights"][0] >= 10_000_000) == ("bytes", True)
    assert names(profile)[0][-1].partition(":")[0] == __file__
