from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from podium.binder import WaitingPods
from podium.binder.events.event import plugin_event
from podium.client.informer_set import InformerSet
from podium.daemon.handle import PluginHandle
from podium.framework.contract.status import PluginError
from podium.lib.clock import ManualClock
from podium.objects.resource_types import NODES, PODS
from podium.queues import Nominator
from tests.builders import cache_of, node, pod
from tests.unit.daemon.loop_bench import Recorder


def handle(recorder: Any, cache: Any) -> PluginHandle:
    clock, random = ManualClock(), Random(1)
    absent: Any = None
    informers = InformerSet(absent, clock=clock, random=random)
    return PluginHandle(
        clock, random, absent, absent, WaitingPods(clock), Nominator(lambda key: None), recorder, cache, informers
    )


def test_a_kind_that_a_plugin_asks_for_is_watched_once() -> None:
    lent = handle(None, None)
    assert lent.lister(PODS) is lent.lister(PODS)
    lent.lister(NODES)
    assert list(lent.informers.resources) == [PODS, NODES]


def test_a_missing_resource_is_read_through_the_boundary() -> None:
    reads: list[bool] = []

    def reading(read: Callable[[], bool]) -> Callable[[], bool]:
        def read_and_note() -> bool:
            reads.append(read())
            return True

        return read_and_note

    lent = replace(handle(None, None), reading=reading, kubeconfig="/etc/podium")
    lent.lister(PODS)
    assert lent.is_missing(PODS)
    assert lent.is_missing(PODS)
    assert reads == [False, False]
    assert lent.kubeconfig == "/etc/podium"


def test_what_a_plugin_has_to_say_of_a_pod_becomes_an_event() -> None:
    recorder = Recorder([])
    handle(recorder, None).record(pod("web-1"), "Waiting", "for two more", action="Gathering", is_warning=True)
    assert recorder.events == [plugin_event(pod("web-1"), "Waiting", "for two more", "Gathering", is_warning=True)]


@pytest.mark.parametrize(
    ("junk", "field"),
    [((42, "note"), "reason"), (("Reason", None), "note"), (("Reason", ["a"]), "note"), ((object(), "note"), "reason")],
)
def test_an_event_that_cannot_be_written_is_refused_where_it_is_made(junk: Any, field: str) -> None:
    recorder = Recorder([])
    with pytest.raises(TypeError, match=rf"^record: {field} is not a string"):
        handle(recorder, None).record(pod("web-1"), *junk)
    with pytest.raises(TypeError, match=r"^record: action is not a string"):
        handle(recorder, None).record(pod("web-1"), "Reason", "note", action=3)  # type: ignore[arg-type]
    handle(recorder, None).record(pod("web-1"), "\ud800", "\ud800")
    assert [(event.reason, event.note) for event in recorder.events] == [("?", "?")]


def test_the_snapshot_is_the_cache_as_it_is() -> None:
    assert len(handle(None, cache_of(node("n1"))).snapshot()) == 1


@pytest.mark.parametrize(
    "ask",
    [
        lambda lent: lent.snapshot(),
        lambda lent: lent.activate([pod("web")]),
        lambda lent: lent.record(pod("web"), "A", ""),
    ],
    ids=["snapshot", "activate", "record"],
)
def test_plugins_that_are_not_in_use_yet_may_only_ask_for_listers(ask: Callable[[PluginHandle], Any]) -> None:
    lent = replace(handle(Recorder([]), cache_of(node("n1"))), opened=threading.Event())
    assert lent.lister(PODS) is lent.lister(PODS)
    with pytest.raises(PluginError, match="cannot be called in a constructor while podium runs"):
        ask(lent)
    assert lent.opened is not None
    lent.opened.set()
    ask(lent)
