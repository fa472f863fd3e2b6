"""What surrounds the extension points of a plugin, its scopes, extensions, state and name, is not trusted either."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from podium.framework.contract.cluster_event import ActionType, ClusterEvent, EventRegistration
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.filter import FilterPlugin, PreFilterExtensions
from podium.framework.contract.plugin import Plugin, Scope
from podium.framework.contract.post_filter import AskingPostFilterPlugin
from podium.framework.contract.status import PluginError, unschedulable
from podium.framework.cycle.schedule import Decision, DoesNotFit, Failed, Suggested
from podium.objects.resource_types import EventResource
from podium.queues import build_hint_map
from tests.builders import pod
from tests.unit.daemon.hostile_plugins import EXCEPTIONS, ODD_VALUES
from tests.unit.framework.profiles import (
    Built,
    Nominated,
    Recorder,
    cluster,
    decide,
    framework,
    node_filter,
    node_scorer,
    pre_filter,
    pre_score,
    table_filter,
    table_scorer,
)

WAYS = {name: misbehaviour for name, misbehaviour in (EXCEPTIONS | ODD_VALUES).items() if "Mute" not in name}
SNAPSHOT = cluster(3)


def points(recorder: Recorder) -> set[tuple[str, str]]:
    return {(plugin, point) for plugin, point, _ in recorder.failures}


@pytest.mark.parametrize("method", ["filter_scope", "score_scope", "score_basis"])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_scope_that_is_none_counts_as_the_widest(method: str, way: Callable[[], Any]) -> None:
    recorder = Recorder()
    scope = {"score_scope": lambda self, spec: Scope.NODE} if method == "score_basis" else {}
    bad = {**scope, method: lambda self, *_: way()}
    culprit = node_scorer("Culprit", lambda name: 1, **bad)
    if method == "filter_scope":
        culprit = node_filter("Culprit", lambda name: None, **bad)
    runtime = framework(culprit, node_scorer("Other", lambda name: 1), observer=recorder)
    web = pod("web")
    for _ in range(3):
        assert isinstance(decide(runtime, web, SNAPSHOT), Suggested)
        assert isinstance(decide(runtime, web, SNAPSHOT, Nominated({"n1": [pod("v")]})), Suggested)
    if method != "score_basis" or way in EXCEPTIONS.values():
        assert points(recorder) == {("Culprit", "ScoreBasis" if method == "score_basis" else "Scope")}


class Extensions(PreFilterExtensions):
    def __init__(self, answer: Callable[[], Any]) -> None:
        self._answer = answer

    def add_pod(self, *_: Any) -> Any:
        return self._answer()

    remove_pod = add_pod


def beside_nominated(culprit: type[Any], recorder: Recorder) -> Decision:
    """An attempt in which a nominated pod has to be put on a node."""
    nowhere = node_filter("HintScope", lambda name: None)
    return decide(framework(culprit, nowhere, observer=recorder), pod(), SNAPSHOT, Nominated({"n1": [pod("v")]}))


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_extensions_that_misbehave_fail_the_attempt_by_name(way: Callable[[], Any]) -> None:
    recorder = Recorder()
    decision = beside_nominated(pre_filter("Culprit", lambda: (None, None), extensions=Extensions(way)), recorder)
    assert isinstance(decision, Failed)
    assert 'AddPod on PreFilter plugin "Culprit"' in decision.status.message
    assert points(recorder) == {("Culprit", "PreFilterExtensionAddPod")}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_extensions_that_are_none_fail_the_attempt_by_name(way: Callable[[], Any]) -> None:
    recorder = Recorder()
    culprit = pre_filter("Culprit", lambda: (None, None))
    culprit.pre_filter_extensions = lambda self: way()
    decision = beside_nominated(culprit, recorder)
    assert isinstance(decision, Failed)
    assert '"Culprit"' in decision.status.message
    assert points(recorder) <= {("Culprit", "PreFilterExtensionAddPod"), ("Culprit", "PreFilterExtensions")}
    assert recorder.failures


class Uncopied:
    def __init__(self, way: Callable[[], Any]) -> None:
        self._way = way

    def clone(self) -> Any:
        return self._way()


@pytest.mark.parametrize("way", EXCEPTIONS.values(), ids=EXCEPTIONS)
def test_state_that_cannot_be_copied_fails_the_attempt_with_its_class(way: Callable[[], Any]) -> None:
    state = CycleState()
    state.write(Uncopied(way))
    nominations = Nominated({"n1": [pod("v")]})
    runtime = framework(node_filter("HintScope", lambda name: None))
    decision = decide(runtime, pod(), SNAPSHOT, nominations, state=state)
    assert isinstance(decision, Failed)
    assert "Uncopied" in decision.status.message


def test_a_plugin_cannot_sort_the_nodes_of_others() -> None:
    def sort(*args: Any) -> Any:
        rows = args[-1]
        rows[:] = rows[::-1]

    for culprit, point in (
        (table_filter("Culprit", lambda snapshot, rows: sort(rows), lambda verdict: unschedulable("no")), "Filter"),
        (table_scorer("Culprit", sort), "Score"),
    ):
        recorder = Recorder()
        runtime = framework(culprit, node_scorer("Other", lambda name: 1), observer=recorder)
        assert isinstance(decide(runtime, pod(), SNAPSHOT), Failed)
        assert points(recorder) == {("Culprit", point)}
    assert SNAPSHOT.order.tolist() == [0, 1, 2]


def test_what_a_pre_score_gets_is_not_its_own() -> None:
    culprit = pre_score("Culprit", lambda: None)
    culprit.pre_score = lambda self, state, pod, snapshot, rows: rows.sort()
    assert isinstance(decide(framework(culprit, node_scorer("S", lambda name: 1)), pod(), SNAPSHOT), Failed)


def asking(steps: Callable[[], Any]) -> type[Any]:
    methods = {"post_filter": lambda *_: (None, unschedulable("no")), "post_filter_asking": lambda *_: steps()}
    return type("Culprit", (Built, AskingPostFilterPlugin), methods)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_post_filter_in_steps_fails_by_name_at_any_of_them(way: Callable[[], Any]) -> None:
    def first() -> Any:
        yield way()

    def last() -> Any:
        yield from ()
        return way()

    for steps in (first, last, way):
        recorder = Recorder()
        runtime = framework(node_filter("No", lambda name: unschedulable("no")), asking(steps), observer=recorder)
        decision = decide(runtime, pod(), SNAPSHOT)
        assert isinstance(decision, DoesNotFit)
        assert 'running PostFilter plugin "Culprit"' in decision.error.message
        assert points(recorder) == {("Culprit", "PostFilter")}


# ---------------------------------------------------------------- before the first attempt


@pytest.mark.parametrize("way", EXCEPTIONS.values(), ids=EXCEPTIONS)
def test_a_plugin_that_cannot_be_built_or_asked_for_its_events_is_refused_by_name(way: Callable[[], Any]) -> None:
    with pytest.raises(PluginError, match='initializing plugin "Culprit": '):
        framework(node_filter("Culprit", lambda name: None, __init__=lambda *_: way()))
    runtime = framework(node_filter("Culprit", lambda name: None, events_to_register=lambda self: way()))
    with pytest.raises(PluginError, match='plugin "Culprit" for its events_to_register: '):
        build_hint_map(runtime.plugins.values())


@pytest.mark.parametrize("answer", [True, 5, "no", ["NodeAdd"], [None], [EventRegistration]])
def test_events_that_are_none_are_refused_by_the_name_of_their_plugin(answer: Any) -> None:
    runtime = framework(node_filter("Culprit", lambda name: None, events_to_register=lambda self: answer))
    with pytest.raises(PluginError, match='plugin "Culprit" for its events_to_register: '):
        build_hint_map(runtime.plugins.values())


class DuckEvent:
    """Has what an event has, but for what it does."""

    resource, action, custom_label = EventResource.NODE, ActionType.ADD, ""


@pytest.mark.parametrize("fields", [{"event": "NodeAdd"}, {"event": DuckEvent()}, {"event": ClusterEvent("Node", 1)}])  # type: ignore[arg-type]
def test_a_registration_of_something_else_cannot_be_made(fields: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="EventRegistration"):
        EventRegistration(**fields)


def test_a_plugin_that_renames_itself_is_refused() -> None:
    def rename(self: Any, args: Any, handle: Any) -> None:
        self.name = 42

    with pytest.raises(PluginError, match='initializing plugin "Culprit": it calls itself 42'):
        framework(node_filter("Culprit", lambda name: None, __init__=rename))


@pytest.mark.parametrize("name", [42, None, "", property(lambda self: 1 / 0)])
def test_a_class_without_a_proper_name_cannot_be_made(name: Any) -> None:
    with pytest.raises(TypeError, match="name"):
        type("Culprit", (FilterPlugin,), {"name": name})
    assert Plugin.__subclasses__()


def test_columns_cannot_be_written_to() -> None:
    columns = [
        *(column("cpu") for column in (SNAPSHOT.allocatable, SNAPSHOT.requested, SNAPSHOT.nonzero_requested)),
        SNAPSHOT.allowed_pods,
        SNAPSHOT.pod_count,
        SNAPSHOT.unschedulable,
        SNAPSHOT.taint_set,
        SNAPSHOT.order,
    ]
    for column in columns:
        with pytest.raises(ValueError, match="read-only"):
            column[0] = np.zeros(1, column.dtype)[0]
