"""Seeds run clean, a seed is one history, and each checker finds the mistake that it is there for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from podium.binder.api_client import ApiClient
from podium.client.consistency import Consistency
from podium.client.dispatcher import Dispatcher
from podium.client.informer import Informer
from podium.client.informer_set import InformerSet
from podium.client.reflector import Reflector
from podium.client.streams import Stream
from podium.client.write_lanes import Lane
from podium.cluster import Cache
from podium.daemon.confirmations import Confirmations
from podium.daemon.conflicts import Conflicts
from podium.daemon.handlers import NodeHandler
from podium.devices import AllocatedDevices
from podium.framework.contract.cycle_state import CycleState
from podium.framework.contract.status import Status
from podium.framework.profile.runtime import Framework
from podium.objects.api_errors import TooManyRequests
from podium.objects.core import Pod
from podium.objects.coscheduling import GROUP_LABEL, GangSpec
from podium.objects.wire import ObjectDecoder
from podium.plugins.contrib.coscheduling.gangs import Gangs
from podium.plugins.contrib.coscheduling.plugin import Coscheduling
from podium.plugins.dynamic_resources.claim_writer import ClaimWriter
from podium.plugins.dynamic_resources.plugin import DynamicResources
from podium.plugins.node_resources_fit import NodeResourcesFit
from podium.queues import SchedulingQueue
from podium.sandbox import pods
from tests.simulation.simulation import CALM_EVERY, simulate

pytestmark = pytest.mark.usefixtures("no_log")

_CALMS = {1: 1, 2: 1, 30: 2, 135: 5, 144: 2, 160: 3, 161: 1, 179: 2}
KEPT = {seed: calms * CALM_EVERY for seed, calms in _CALMS.items()}
"""Seeds worth so many steps each time: those that broke a rule, and one each with and without `--avoid-conflicts`."""

_SEEDS_TRIED = range(1, 10)

Plant = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize(("seed", "steps"), KEPT.items())
def test_seed_is_clean(seed: int, steps: int) -> None:
    history = simulate(seed, steps)
    assert history.violation is None, "\n".join(history.lines[-25:])
    assert history.bound_count > 20
    assert history.faults > 20


@pytest.mark.parametrize("seed", [3, 8])
def test_with_devices_a_seed_is_clean(seed: int) -> None:
    """Seed 8 once gave a device away that the API server still wrote into the claim of a pod that had been given up."""
    history = simulate(seed, CALM_EVERY, devices=True)
    assert history.violation is None, "\n".join(history.lines[-25:])
    assert sum("claimant" in line and " is bound" in line for line in history.lines) > 10


def test_with_gangs_a_seed_is_clean() -> None:
    history = simulate(6, CALM_EVERY, gangs=True)
    assert history.violation is None, "\n".join(history.lines[-25:])
    assert sum("gang-" in line and " is bound" in line for line in history.lines) > 5


@pytest.mark.parametrize("seed", [14, 5010])
def test_with_devices_and_gangs_a_seed_is_clean(seed: int) -> None:
    """Members of gangs have claims: devices are in flight for as long as a gang comes together, and all given back."""
    history = simulate(seed, CALM_EVERY, devices=True, gangs=True)
    assert history.violation is None, "\n".join(history.lines[-25:])
    lines = [line for line in history.lines if " pods each of gang-" in line and " with " in line]
    gangs = [word for line in lines for word in line.split() if word.startswith("gang-")]
    assert sum(" is bound" in line and any(name in line for name in gangs) for line in history.lines) > 3


def test_a_pod_that_is_bound_after_its_binding_was_given_up_keeps_its_claim() -> None:
    history = simulate(5247, CALM_EVERY, devices=True, gangs=True)
    assert history.violation is None, "\n".join(history.lines[-25:])
    assert sum("claimant" in line and " is bound" in line for line in history.lines) > 10


def _start_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Coscheduling, "permit", lambda *_: (None, 0.0))


def _wait_for_ever(patch: pytest.MonkeyPatch) -> None:
    permit = Coscheduling.permit

    def wait_long(plugin: Coscheduling, *arguments: Any) -> tuple[Status | None, float]:
        return permit(plugin, *arguments)[0], 900.0

    patch.setattr(Coscheduling, "permit", wait_long)
    patch.setattr(Coscheduling, "_reject_waiting", lambda *_: None)


def _wait_for_members_that_nobody_needs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Gangs, "spec_of", lambda *_: GangSpec(min_member=99))


def test_a_seed_makes_one_history_and_another_seed_another() -> None:
    first, repetition, other_history = simulate(3, 150), simulate(3, 150), simulate(4, 150)
    assert first.lines == repetition.lines
    assert first.digest != other_history.digest


def _see_no_devices_in_use(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AllocatedDevices, "is_dedicated", lambda *_: False)


def _keep_answers_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AllocatedDevices, "version", lambda *_: 0)


def _bind_without_writing_claims(patch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: Any) -> None:
        pass

    patch.setattr(ClaimWriter, "write", nothing)


@pytest.mark.parametrize(
    ("plant", "checker", "option", "seeds"),
    [
        (_start_alone, "gang in part", "gangs", (1, 2, 3)),
        (_wait_for_ever, "held on", "gangs", _SEEDS_TRIED),
        # Few calms have a gang that waits and would fit.
        (_wait_for_members_that_nobody_needs, "gang forgotten", "gangs", (17, 46, 53)),
        (_see_no_devices_in_use, "device twice", "devices", _SEEDS_TRIED),
        (_keep_answers_for_ever, "device twice", "devices", _SEEDS_TRIED),
        (_bind_without_writing_claims, "bound without", "devices", _SEEDS_TRIED),
    ],
)
def test_the_checkers_of_gangs_and_devices_find_what_is_planted(
    plant: Plant, checker: str, option: str, seeds: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    violations = (simulate(seed, CALM_EVERY, **{option: True}).violation for seed in seeds)
    assert next(violation for violation in violations if violation is not None).checker == checker


def test_devices_that_a_gang_keeps_when_it_gives_up_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither devices nor gangs alone can show this."""
    unreserve = DynamicResources.unreserve

    def keep(plugin: DynamicResources, state: CycleState, pod: Pod, node_name: str) -> None:
        if GROUP_LABEL not in pod.metadata.labels:
            unreserve(plugin, state, pod, node_name)

    monkeypatch.setattr(DynamicResources, "unreserve", keep)
    violations = (simulate(seed, CALM_EVERY, devices=True, gangs=True).violation for seed in (9, 12))
    assert any(violation is not None and violation.checker == "in flight for ever" for violation in violations)


def _lose_pods(patch: pytest.MonkeyPatch) -> None:
    def drop(queue: SchedulingQueue, info: Any) -> None:
        queue.done(info.pod.uid)

    patch.setattr(SchedulingQueue, "add_unschedulable_if_not_present", drop)


def _fit_everywhere(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(NodeResourcesFit, "filter_rows", lambda *_: None)


def _move_bound_pods(patch: pytest.MonkeyPatch) -> None:
    """podium binds again instead of looking up what happened, elsewhere, and the API server lets it."""

    async def blindly(client: ApiClient, pod: Any, node_name: str, path: str, body: bytes, doubt: Exception) -> None:
        await client._dispatcher.send(0, "POST", path + "/binding", body.replace(b'"node-', b'"node-1'))  # type: ignore[arg-type]

    patch.setattr(ApiClient, "_settle", blindly)
    patch.setattr(pods, "_check_bindable", lambda *_: None)


def _keep_reservations(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Framework, "run_unreserve", lambda *_: None)


def _hold_assumed_pods(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Cache, "forget_pod", lambda *_: False)


def _sleep_through_events(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SchedulingQueue, "move_all", lambda *_: None)


def _never_dare(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Conflicts, "is_too_late", lambda *_: True)


def _miss_changes(patch: pytest.MonkeyPatch) -> None:
    real_put, numbers = Informer.put, iter(range(10**9))

    def miss_some(informer: Informer[Any], item: Any) -> None:
        if next(numbers) % 50:
            real_put(informer, item)

    patch.setattr(Informer, "put", miss_some)


def _stumble(patch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise LookupError("a mistake")

    patch.setattr(NodeHandler, "_taken_in", fail)


def _never_sync(patch: pytest.MonkeyPatch) -> None:
    async def wait(*_: Any) -> None:
        await asyncio.sleep(1e6)

    patch.setattr(InformerSet, "wait_synced", wait)


def _believe_any_list(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ObjectDecoder, "_check_list", lambda *_: None)


def _believe_any_answer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("podium.binder.api_client.check_success", lambda *_: None)
    # Which would look the pods up half a minute later.
    patch.setattr(Confirmations, "expect", lambda *_: None)


@pytest.mark.parametrize(
    ("plant", "checkers"),
    [
        (_lose_pods, {"one place"}),
        (_fit_everywhere, {"overfull"}),
        (_move_bound_pods, {"bound once"}),
        (_keep_reservations, {"reserve"}),
        (_hold_assumed_pods, {"assumed", "one place"}),
        (_sleep_through_events, {"forgotten"}),
        (_never_dare, {"forgotten"}),
        (_miss_changes, {"bounded", "informed", "one place"}),
        (_stumble, {"overfull", "surprise"}),
        (_never_sync, {"started"}),
        (_believe_any_answer, {"assumed", "forgotten", "informed", "reserve"}),
    ],
)
def test_planted_mistake_is_found(plant: Plant, checkers: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    violations = (simulate(seed, CALM_EVERY).violation for seed in _SEEDS_TRIED)
    violation = next(violation for violation in violations if violation is not None)
    assert violation.checker in checkers


def _put_all_namespaces_in_one_lane(patch: pytest.MonkeyPatch) -> None:
    send = Dispatcher.send

    async def send_in_one_lane(dispatcher: Dispatcher, *write: Any, namespace: str = "", **how: Any) -> bytes:
        del namespace
        return await send(dispatcher, *write, **how)

    patch.setattr(Dispatcher, "send", send_in_one_lane)


def _let_each_429_concern_everybody(patch: pytest.MonkeyPatch) -> None:
    refuse = Dispatcher._refuse

    def refuse_all(dispatcher: Dispatcher, lane: Lane, path: str, refusal: TooManyRequests) -> None:
        refusal.is_server_wide = True
        lane.priority, priority = 0, lane.priority
        refuse(dispatcher, lane, path, refusal)
        lane.priority = priority

    patch.setattr(Dispatcher, "_refuse", refuse_all)


def _decide_amid_lists(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Consistency, "is_consistent", True)
    patch.setattr(Consistency, "wait_s", lambda *_: 0.0)


def _wait_long_for_silent_watches(patch: pytest.MonkeyPatch) -> None:
    open_stream = Reflector._open_stream

    async def open_patiently(reflector: Reflector[Any], query: str, *_: float) -> Stream:
        return await open_stream(reflector, query, 600.0, 180.0)

    patch.setattr(Reflector, "_open_stream", open_patiently)


def _never_start_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(InformerSet, "_start_over", lambda *_: None)


TRIALS: dict[str, tuple[Plant, str]] = {
    "a slow namespace": (_put_all_namespaces_in_one_lane, "bounded"),
    "a namespace that is refused": (_let_each_429_concern_everybody, "bounded"),
    "Events that are refused": (_let_each_429_concern_everybody, "bounded"),
    "a list that is none": (_believe_any_list, "overfull"),
    "connections that go silent": (_wait_long_for_silent_watches, "bounded"),
    "an older state of etcd": (_never_start_over, "bounded"),
    "a list amid attempts": (_decide_amid_lists, "overfull"),
}


@pytest.mark.parametrize("trial", TRIALS)
def test_trial_finds_the_mistake_that_it_is_there_for(trial: str, monkeypatch: pytest.MonkeyPatch) -> None:
    history = simulate(2, 3, trial)
    assert history.violation is None, "\n".join(history.lines[-25:])
    plant, checker = TRIALS[trial]
    plant(monkeypatch)
    violation = simulate(2, 3, trial).violation
    assert violation is not None
    assert violation.checker == checker
