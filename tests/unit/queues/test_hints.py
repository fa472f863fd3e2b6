from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from podium.cluster import NodeInfo
from podium.config import RELEASES
from podium.framework.contract.cluster_event import (
    ALL_EVENTS,
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    FORCE_ACTIVATE,
    NODE_ADD,
    NODE_DELETE,
    UNSCHEDULABLE_TIMEOUT,
    ActionType,
    ClusterEvent,
    EventRegistration,
    HintFunction,
    HintScope,
    QueueingHint,
    on,
)
from podium.framework.contract.plugin import Plugin
from podium.framework.contract.queued_pod import QueuedPodGroupInfo, QueuedPodInfo
from podium.framework.contract.score import ScorePlugin
from podium.lib.clock import ManualClock
from podium.objects.core import Pod
from podium.objects.resource_types import EventResource
from podium.queues import HintMap, build_hint_map
from podium.queues.hints import Hints, Strategy
from tests.builders import pod, pod_group
from tests.unit.queues.builders import PROFILE, Recorder, Rejecter, WithoutArgs

TARGET_POD_UPDATE = ClusterEvent(EventResource.TARGET_POD, ActionType.UPDATE)
NODE_TAINTED = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)
NODE_LABELLED = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
RULES_1_36 = RELEASES["1.36"].events
ANY_NODE_UPDATE = ClusterEvent(EventResource.NODE, ActionType.UPDATE)


class Scorer(WithoutArgs, ScorePlugin):
    """A plugin that can reject no pod and says nothing about events."""

    def score(self, state: Any, pod: Pod, node: NodeInfo) -> int:
        return 0


class ScorerThatCares(Scorer):
    def events_to_register(self) -> Sequence[EventRegistration]:
        return (on(EventResource.NODE, ActionType.ADD),)


class Unsaid(Rejecter):
    events_to_register = Plugin.events_to_register  # type: ignore[assignment]


def always(hint: QueueingHint) -> HintFunction:
    return lambda pod, old, new: hint


def fails(pod: Pod, old: Any, new: Any) -> QueueingHint:
    raise LookupError("no such node")


QUEUE, SKIP = always(QueueingHint.QUEUE), always(QueueingHint.SKIP)


def on_node(hint: HintFunction | None = None) -> EventRegistration:
    return on(EventResource.NODE, ActionType.ADD, ActionType.UPDATE_NODE_TAINT, hint=hint)


class HintsBench:
    def __init__(self, *plugins: Plugin) -> None:
        self.recorder = Recorder()
        self.hints = Hints({PROFILE: build_hint_map(plugins)}, ManualClock(), self.recorder)

    def strategy(
        self, event: ClusterEvent, *rejectors: str, pending: Sequence[str] = (), old: Any = None, new: Any = None
    ) -> Strategy:
        info = QueuedPodInfo(pod("web"), 0.0, unschedulable_plugins=set(rejectors), pending_plugins=set(pending))
        return self.hints.strategy(info, self.hints.interest(event), old, new)


def events(hint_map: HintMap, plugin: str) -> list[str]:
    return [registration.event.label for registration in hint_map[plugin]]


# ---------------------------------------------------------------- registration


def test_a_rejecting_plugin_that_says_nothing_is_registered_for_everything() -> None:
    hint_map = build_hint_map([Unsaid("Fit")])
    assert tuple(hint_map["Fit"]) == ALL_EVENTS


def test_a_plugin_that_cannot_reject_pods_is_registered_only_if_it_says_so() -> None:
    assert build_hint_map([Scorer()]) == {}
    assert list(build_hint_map([ScorerThatCares()])) == ["ScorerThatCares"]


def test_extenders_are_registered_for_everything() -> None:
    assert build_hint_map([], has_extenders=True) == {"Extender": ALL_EVENTS}


def test_in_1_36_who_waits_for_new_nodes_waits_for_their_taints_too() -> None:
    plugins = [Rejecter("Fit", on(EventResource.NODE, ActionType.ADD, hint=SKIP))]
    assert events(build_hint_map(plugins), "Fit") == ["NodeAdd"]
    hint_map = build_hint_map(plugins, RULES_1_36)
    assert events(hint_map, "Fit") == ["NodeAdd", "NodeUpdateNodeTaint"]
    assert hint_map["Fit"][1].hint is None


@pytest.mark.parametrize(
    "registrations",
    [
        [on(EventResource.NODE, ActionType.ADD, ActionType.UPDATE_NODE_TAINT)],
        [on(EventResource.NODE, ActionType.ADD), on(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)],
        [on(EventResource.NODE, ActionType.DELETE)],
        [on(EventResource.POD, ActionType.ADD)],
        [on(EventResource.NODE, ActionType.ALL)],
        [],
    ],
)
def test_other_registrations_are_left_alone(registrations: list[EventRegistration]) -> None:
    assert list(build_hint_map([Rejecter("Fit", *registrations)], RULES_1_36)["Fit"]) == registrations


# ---------------------------------------------------------------- matching


@pytest.mark.parametrize(
    ("registered", "incoming", "matches"),
    [
        (on(EventResource.NODE, ActionType.ADD), NODE_ADD, True),
        (on(EventResource.NODE, ActionType.ADD), NODE_DELETE, False),
        (on(EventResource.NODE, ActionType.UPDATE_NODE_LABEL), NODE_LABELLED, True),
        (on(EventResource.NODE, ActionType.UPDATE_NODE_LABEL), ANY_NODE_UPDATE, False),
        (on(EventResource.NODE, ActionType.UPDATE), ANY_NODE_UPDATE, True),
        (on(EventResource.NODE, ActionType.UPDATE), NODE_LABELLED, True),
        (on(EventResource.POD, ActionType.DELETE), ASSIGNED_POD_DELETE, True),
        (on(EventResource.POD, ActionType.UPDATE), TARGET_POD_UPDATE, True),
        (on(EventResource.ASSIGNED_POD, ActionType.UPDATE), TARGET_POD_UPDATE, False),
        (on(EventResource.WILDCARD, ActionType.ADD), NODE_ADD, True),
        (on(EventResource.WILDCARD, ActionType.ALL), NODE_DELETE, True),
        (on(EventResource.CSI_NODE, ActionType.ADD), NODE_ADD, False),
    ],
)
def test_a_registration_matches_an_event(registered: EventRegistration, incoming: ClusterEvent, matches: bool) -> None:
    bench = HintsBench(Rejecter("Fit", registered))
    assert (bench.hints.interest(incoming).plugins == ("Fit",)) is matches
    strategy = Strategy.AFTER_BACKOFF if matches else Strategy.SKIP
    assert bench.strategy(incoming, "Fit") is strategy


def test_an_event_has_its_metric_label() -> None:
    assert HintsBench().hints.interest(NODE_TAINTED).label == "NodeUpdateNodeTaint"


# ---------------------------------------------------------------- worth another try?


def test_without_a_rejector_every_event_is_worth_a_try() -> None:
    assert HintsBench().strategy(NODE_ADD) is Strategy.AFTER_BACKOFF


def test_only_rejectors_are_asked() -> None:
    bench = HintsBench(Rejecter("Fit", on_node(QUEUE)), Rejecter("Taints", on_node(SKIP)))
    assert bench.strategy(NODE_ADD, "Taints") is Strategy.SKIP
    assert bench.recorder.hints == [("Taints", "NodeAdd", "QueueSkip")]


def test_one_rejector_that_says_queue_is_enough() -> None:
    bench = HintsBench(
        Rejecter("Taints", on_node(SKIP)), Rejecter("Fit", on_node(QUEUE)), Rejecter("Late", on_node(QUEUE))
    )
    assert bench.strategy(NODE_ADD, "Fit", "Taints", "Late") is Strategy.AFTER_BACKOFF
    assert bench.recorder.hints == [("Taints", "NodeAdd", "QueueSkip"), ("Fit", "NodeAdd", "Queue")]


def test_a_plugin_may_have_several_hints_for_an_event() -> None:
    bench = HintsBench(Rejecter("Fit", on_node(SKIP), on_node(QUEUE)))
    assert bench.strategy(NODE_ADD, "Fit") is Strategy.AFTER_BACKOFF


def test_a_pending_plugin_that_says_queue_skips_the_backoff() -> None:
    bench = HintsBench(Rejecter("Fit", on_node(QUEUE)), Rejecter("Claims", on_node(QUEUE)))
    assert bench.strategy(NODE_ADD, "Fit", pending=["Claims"]) is Strategy.IMMEDIATELY
    assert bench.strategy(NODE_ADD, pending=["Claims"]) is Strategy.IMMEDIATELY


def test_a_pending_plugin_that_says_skip_leaves_it_to_the_others() -> None:
    bench = HintsBench(Rejecter("Fit", on_node(QUEUE)), Rejecter("Claims", on_node(SKIP)))
    assert bench.strategy(NODE_ADD, "Fit", pending=["Claims"]) is Strategy.AFTER_BACKOFF
    assert bench.strategy(NODE_ADD, pending=["Claims"]) is Strategy.SKIP


def test_a_hint_sees_the_pod_and_both_objects() -> None:
    calls: list[tuple[str, Any, Any]] = []

    def hint(pod: Pod, old: Any, new: Any) -> QueueingHint:
        calls.append((pod.metadata.name, old, new))
        return QueueingHint.SKIP

    HintsBench(Rejecter("Fit", on_node(hint))).strategy(NODE_ADD, "Fit", old="before", new="after")
    assert calls == [("web", "before", "after")]


def test_a_failing_hint_queues_and_is_reported() -> None:
    bench = HintsBench(Rejecter("Fit", on_node(fails)))
    assert bench.strategy(NODE_ADD, "Fit") is Strategy.AFTER_BACKOFF
    assert bench.recorder.hints == [("Fit", "NodeAdd", "Error")]
    assert bench.recorder.failures == [("Fit", "QueueingHint", "no such node")]


def test_the_timeout_is_worth_a_try_to_every_rejected_pod() -> None:
    bench = HintsBench(Rejecter("Fit"))
    assert bench.strategy(UNSCHEDULABLE_TIMEOUT, "Fit") is Strategy.AFTER_BACKOFF
    assert bench.strategy(UNSCHEDULABLE_TIMEOUT, pending=["Fit"]) is Strategy.AFTER_BACKOFF


def test_an_activation_is_for_the_pod_itself() -> None:
    bench = HintsBench(Rejecter("Fit"))
    assert bench.strategy(FORCE_ACTIVATE, "Fit", new=pod("web", labels={"a": "b"})) is Strategy.AFTER_BACKOFF
    assert bench.strategy(FORCE_ACTIVATE, "Fit", new=pod("other")) is Strategy.SKIP


def test_a_pod_is_only_judged_by_its_own_profile() -> None:
    hints = Hints(
        {PROFILE: build_hint_map([Rejecter("Fit", on_node())]), "spread": build_hint_map([Rejecter("Fit")])},
        ManualClock(),
        Recorder(),
    )
    info = QueuedPodInfo(pod(scheduler="spread"), 0.0, unschedulable_plugins={"Fit"})
    assert hints.strategy(info, hints.interest(NODE_ADD), None, None) is Strategy.SKIP


def test_an_event_that_nobody_registered_for_interests_nobody() -> None:
    bench = HintsBench(Rejecter("Fit", on_node()))
    assert bench.hints.interest(ASSIGNED_POD_ADD).plugins == ()


# ---------------------------------------------------------------- groups


def group_entry(*members: Pod, rejectors: Sequence[str] = ("Gang",)) -> QueuedPodGroupInfo:
    first, *infos = (QueuedPodInfo(member, 0.0, unschedulable_plugins=set(rejectors)) for member in members)
    entry = QueuedPodGroupInfo.of(pod_group("gang"), first)
    entry.members += infos
    return entry


@pytest.mark.parametrize(
    ("scope", "names"),
    [
        (HintScope.SPEC, ["a", "big", "c"]),
        (HintScope.ANYTHING, ["a", "b", "big", "c", "d"]),
    ],
)
def test_a_hint_is_asked_once_about_replicas_in_a_group_that_it_cannot_tell_apart(
    scope: HintScope, names: list[str]
) -> None:
    questions: list[str] = []

    def hint(pod: Pod, old: Any, new: Any) -> QueueingHint:
        questions.append(pod.metadata.name)
        return QueueingHint.SKIP

    bench = HintsBench(Rejecter("Gang", on(EventResource.NODE, ActionType.ADD, hint=hint, scope=scope)))
    members = [pod(name, group="gang", cpu="2" if name == "big" else "1") for name in ("a", "b", "big", "c", "d")]
    strategy = bench.hints.strategy(group_entry(*members), bench.hints.interest(NODE_ADD), None, None)
    assert (strategy, questions) == (Strategy.SKIP, names)


def test_a_hint_is_asked_about_a_pod_of_a_group_that_the_event_is_about() -> None:
    def hint(pod: Pod, old: Any, new: Any) -> QueueingHint:
        return QueueingHint.QUEUE if pod.uid == new.uid else QueueingHint.SKIP

    update = on(EventResource.TARGET_POD, ActionType.UPDATE, hint=hint, scope=HintScope.SPEC)
    bench = HintsBench(Rejecter("Gang", update))
    members = [pod(name, group="gang") for name in "abc"]
    interest = bench.hints.interest(TARGET_POD_UPDATE)
    for member in members:
        assert bench.hints.strategy(group_entry(*members), interest, member, member) is Strategy.AFTER_BACKOFF
    newcomer = pod("d", group="gang")
    assert bench.hints.strategy(group_entry(*members), interest, newcomer, newcomer) is Strategy.SKIP
