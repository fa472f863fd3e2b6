"""Asks for the outlook of each pod that waits in a random cluster, and plays on in the sandbox to see what comes.

The daemon, the stand-in kubelets and the stand-in controllers run in virtual time. First until the last pod has ended
whose time is known. Then pods end that run to completion, then all that can leave are deleted, those last that other
pods want to be near.
"""

from __future__ import annotations

import asyncio
import enum
import itertools
import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final
from unittest import mock

from podium.client import history, informer_set
from podium.client.reflector import Reflector, ReflectorSettings
from podium.config import LeaderElection, default_configuration, load, parse_feature_gates
from podium.engine.files import LocatedManifest
from podium.framework.profile.runtime import registry_of
from podium.insight.cluster import Cluster
from podium.insight.forecast import Forecast
from podium.insight.outlook import PodOutlook, Verdict
from podium.insight.outlook_questions import outlook_of
from podium.lib.clock import Clock
from podium.objects.resource_types import PODS
from podium.plugins import IN_TREE
from podium.plugins.contrib import CONTRIB
from podium.sandbox.embedded import Sandbox
from podium.sandbox.resources import resource_named
from tests.manifests import Json
from tests.outlook.clusters import NAMESPACE, WaitingCluster, waiting_cluster
from tests.outlook.extras import GANG
from tests.outlook.times import GRACES_S, LAST_END_S, START_DELAY_S
from tests.provisioned.sandboxed import at_rest, daemon_beside, run, sandbox_of
from tests.virtual_time import START_S, LoopClock

_FOR_EVER_S: Final = 1e9
_TICK_S: Final = 0.5
_REST_S: Final = 14.0
"""A pod that is tried again is tried within 10 s."""
_LAST_GRACE_S: Final = 2.0
"""How long pods take to end after the first phase: no answer has a time from then on."""
_FIRST_PHASE_S: Final = LAST_END_S + 3 * max(GRACES_S) + 32
"""Ends that objects announce may let pods be preempted, which end later."""
_CLAIMS_S: Final = 0.05
"""The time that the controllers have before the scheduler starts: in a cluster that runs they have acted."""
_OTHER_LISTS_S: Final = 0.01
"""The time in which a scheduler that starts has listed all kinds but pods."""
_MOMENT_S: Final = 0.1
"""Ends within this time come in an order that no object gives."""
_LATE_S: Final = 16.0
"""How much later than its time a pod may be bound: stand-ins act with a delay, and a backoff may last 10 s."""
_EARLY_S: Final = 1.5
_QUIET_WATCHES: Final = ReflectorSettings(quiet_watch_s_min=900.0, quiet_watch_s_max=900.0, idle_s_max=1000.0)
_FLUSH_S: Final = 340.0
"""Within this time the queue tries each pod again, whatever its hints said."""


class TickingClock(LoopClock):
    """A clock on which no two moments are the same, so that pods have an order in the queue."""

    def __init__(self) -> None:
        self._readings = 0

    def now(self) -> float:
        return START_S + self.monotonic()

    def monotonic(self) -> float:
        self._readings += 1
        return super().monotonic() + 1e-7 * self._readings


class LateListOfPods(Reflector[Any]):
    """Lists pods after all other kinds: a scheduler that has run all the time heard of what they need before them.

    One that starts hears of the kinds in any order, and a pod whose claim it does not know yet enters its queue late.
    """

    async def run(self) -> None:
        if self.resource.path == PODS.path:
            await asyncio.sleep(_OTHER_LISTS_S)
        await super().run()


class Order(enum.Enum):
    """The order in which pods end within a moment."""

    DELETION = enum.auto()
    TOGETHER = enum.auto()
    REVERSE = enum.auto()


@dataclass(frozen=True, slots=True)
class Binding:
    """The node of a pod, and the seconds from the question to its binding.

    Attributes:
        phase_ends_s: those of its play, if that is another one than the others' play.
    """

    node: str
    after_s: float
    phase_ends_s: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """The pod whose neighbours leave last: those on other nodes than one, or only one of them.

    Attributes:
        deletes_first: whether pods are deleted before any ends by itself at an unknown time.
    """

    pod: str
    node: str = ""
    partner: str = ""
    deletes_first: bool = False


@dataclass(slots=True)
class CheckedOutlooks:
    """One cluster, and the answers that did not hold.

    Attributes:
        races: those that hold if the pods that end at one moment end in another order, which no object gives.
    """

    seed: int
    verdicts: list[Verdict] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    races: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Play:
    """What has come in the sandbox.

    Attributes:
        bindings: the pods that were bound, by name.
        phase_ends_s: when the first phase ended, in which only ends came that were announced, and the second one.
        comers: the names of the pods that came after the question.
    """

    bindings: dict[str, Binding] = field(default_factory=dict)
    phase_ends_s: list[float] = field(default_factory=list)
    comers: list[str] = field(default_factory=list)


def check_outlooks(seed: int) -> CheckedOutlooks:
    """Ask about each pod that waits, and about what comes to the cluster; then play on."""
    waiting = waiting_cluster(seed)
    checked = CheckedOutlooks(seed)
    cluster = Cluster.load(waiting.objects, waiting.config)
    forecast = Forecast(cluster, START_S)
    answers = [
        outlook_of(cluster, f"{NAMESPACE}/{name}", START_S, fix=False, forecast=forecast).pods[0]
        for name in waiting.waiting
    ]
    _check(answers, partial(_faults_of_waiting, waiting, answers, seed), checked)
    if waiting.comer is not None:
        objects = [LocatedManifest(waiting.comer, "comer")]
        outlooks = outlook_of(cluster, objects, START_S, fix=False, forecast=forecast).pods
        _check(outlooks, partial(_faults_of_comers, waiting, outlooks, seed), checked)
    return checked


def _check(
    answers: Sequence[PodOutlook], faults_in: Callable[[Order], Sequence[str]], checked: CheckedOutlooks
) -> None:
    """Note what did not hold as the cluster was played, unless it does in another order of ends at one moment."""
    checked.verdicts += [answer.verdict for answer in answers]
    faults = faults_in(Order.DELETION)
    is_race = bool(faults) and any(not faults_in(order) for order in (Order.TOGETHER, Order.REVERSE))
    (checked.races if is_race else checked.faults).extend(faults)


def _faults_of_waiting(
    waiting: WaitingCluster, outlooks: Sequence[PodOutlook], seed: int, order: Order
) -> Sequence[str]:
    play_on = partial(_play, waiting, None, seed, order)
    answers = dict(zip(waiting.waiting, outlooks, strict=True))
    play = run(partial(play_on, None))
    for name in waiting.waiting:
        play.bindings |= _binding_for(name, answers[name], play, _partners(waiting.objects, name), play_on)
    members = [name for name in waiting.waiting if name.startswith(GANG)]
    answers |= _pairing(members, [answers[name] for name in members], play)
    return _faults(answers, play)


def _faults_of_comers(
    waiting: WaitingCluster, outlooks: Sequence[PodOutlook], seed: int, order: Order
) -> Sequence[str]:
    play = _play_of_comers(outlooks, partial(_play, waiting, waiting.comer, seed, order))
    if len(play.comers) != len(outlooks):
        return [f"{len(outlooks)} pods were expected to come, and {len(play.comers)} came"]
    return _faults(_pairing(play.comers, outlooks, play), play)


def _play_of_comers(
    outlooks: Sequence[PodOutlook], play_on: Callable[[Question | None], Coroutine[Any, Any, Play]]
) -> Play:
    """What comes of the pods that come: of several plays that in which most answers hold, as in `_binding_for`."""
    best = run(partial(play_on, None))
    for node in dict.fromkeys(node for outlook in outlooks for node in outlook.nodes):
        if _fault_count(_pairing(best.comers, outlooks, best), best):
            other_play = run(partial(play_on, Question("comer", node)))
            best = min(best, other_play, key=lambda play: _fault_count(_pairing(play.comers, outlooks, play), play))
    return best


def _pairing(names: Sequence[str], outlooks: Sequence[PodOutlook], play: Play) -> dict[str, PodOutlook]:
    """The answers by the names of replicas in the sandbox: they are alike, and each answer may be about any of them."""
    pairings = (dict(zip(order, outlooks, strict=False)) for order in itertools.permutations(names))
    return min(pairings, key=lambda answers: _fault_count(answers, play))


def _fault_count(answers: Mapping[str, PodOutlook], play: Play) -> int:
    return len(_faults(answers, play))


def _binding_for(
    name: str,
    answer: PodOutlook,
    play: Play,
    partners: Sequence[str],
    play_on: Callable[[Question], Coroutine[Any, Any, Play]],
) -> Mapping[str, Binding]:
    """The binding of a pod that may get a node: as played, or in a play in which other pods stay until last.

    Which pods leave first decides about pods that want to be near others, and no object says it.
    """
    if name in play.bindings or answer.verdict is not Verdict.LATER:
        return {}
    questions = [Question(name, node) for node in ("", *answer.nodes)]
    if not answer.ends:
        # Its nodes are open only if pods leave: those that end by themselves need not do so first.
        questions.append(Question(name, deletes_first=True))
    for question in (*questions, *(Question(name, partner=partner) for partner in partners)):
        other_play = run(partial(play_on, question))
        if (binding := other_play.bindings.get(name)) is not None:
            return {name: replace(binding, phase_ends_s=other_play.phase_ends_s)}
    return {}


def _partners(objects: Sequence[Json], name: str) -> Sequence[str]:
    """The names of the pods that a pod wants to be near."""
    pods = [manifest for manifest in objects if manifest["kind"] == "Pod"]
    apps = {app for pod in pods if pod["metadata"]["name"] == name for app in _wanted_apps(pod)}
    partners = (pod["metadata"] for pod in pods if pod["metadata"]["name"] != name)
    return [metadata["name"] for metadata in partners if metadata["labels"].get("app") in apps]


# ---------------------------------------------------------------- the sandbox


async def _play(
    waiting: WaitingCluster, comer: Json | None, seed: int, order: Order, question: Question | None
) -> Play:
    """Play on. Pods that others want to be near leave last; if a pod is asked about, only those that it wants near."""
    play = Play()
    sandbox = sandbox_of(
        waiting.objects,
        controllers=True,
        kubelet_delay_s=float(START_DELAY_S),
        job_s=_FOR_EVER_S,
        ending_s=partial(_ending_s, order, play),
    )
    gates = parse_feature_gates(["GenericWorkload=true"])
    configuration = (
        default_configuration(gates)
        if waiting.config is None
        else load(json.dumps(waiting.config), "config", registry_of({**IN_TREE, **CONTRIB}), gates).config
    )
    # Hours pass in seconds: no connection need be proven alive meanwhile, and no leader elected.
    configuration = replace(configuration, leader_election=LeaderElection(leader_elect=False))
    quiet = mock.patch.object(informer_set, "ReflectorSettings", return_value=_QUIET_WATCHES)
    late_pods = mock.patch.object(informer_set, "Reflector", LateListOfPods)
    with quiet, late_pods, mock.patch.object(history, "CHECK_EVERY_S", _FOR_EVER_S):
        await _play_beside(
            sandbox, partial(daemon_beside, sandbox, seed, configuration, gates.pod_groups), comer, question, play
        )
    return play


async def _play_beside(
    sandbox: Sandbox,
    daemon: Callable[[Clock], AbstractAsyncContextManager[None]],
    comer: Json | None,
    question: Question | None,
    play: Play,
) -> None:
    async with sandbox:
        await asyncio.sleep(_CLAIMS_S)
        async with daemon(TickingClock()):
            # All pods are in the queue by then.
            await asyncio.sleep(_TICK_S)
            await _play_phases(sandbox, comer, question, play)


def _ending_s(order: Order, play: Play, pod: Json, since_s: float) -> float:
    """How long the pod takes to end: its grace period, and a little that changes the order of those of one moment."""
    if play.phase_ends_s:
        return _LAST_GRACE_S
    default_s = pod["spec"].get("terminationGracePeriodSeconds", 30)
    grace_s = float(pod["metadata"].get("deletionGracePeriodSeconds") or default_s)
    # Ends that objects announce are whole seconds, and within a moment, not at its edge.
    offset_s = (since_s + grace_s + _MOMENT_S / 4) % _MOMENT_S
    late_s = {Order.DELETION: 0.0, Order.TOGETHER: _MOMENT_S - offset_s, Order.REVERSE: _MOMENT_S - 2 * offset_s}
    return grace_s + late_s[order]


async def _play_phases(sandbox: Sandbox, comer: Json | None, question: Question | None, play: Play) -> None:
    loop = asyncio.get_running_loop()
    names = {pod["metadata"]["name"] for pod in sandbox.store.list("pods")}
    if comer is not None:
        sandbox.store.create(comer, namespace=NAMESPACE)
    watch = asyncio.create_task(_watch(sandbox, play))
    try:
        await asyncio.sleep(_TICK_S * 4)
        play.comers = [
            name
            for pod in sandbox.store.list("pods")
            if (name := pod["metadata"]["name"]) not in names and name.startswith("comer")
        ]
        await asyncio.sleep(_FIRST_PHASE_S - loop.time())
        play.phase_ends_s.append(loop.time())
        # Pods that others want to be near stay until nothing else is left to leave.
        if question is None or not question.deletes_first:
            await _end_finite(sandbox, question, is_last=False)
        play.phase_ends_s.append(loop.time())
        _orphan(sandbox)
        await _leave(sandbox, question, is_last=False)
        await _end_finite(sandbox, question, is_last=True)
        await _leave(sandbox, question, is_last=True)
        await _leave_until_flushed(sandbox, play)
    finally:
        watch.cancel()


async def _watch(sandbox: Sandbox, play: Play) -> None:
    loop = asyncio.get_running_loop()
    while True:
        for pod in sandbox.store.list("pods"):
            if node := pod["spec"].get("nodeName"):
                play.bindings.setdefault(pod["metadata"]["name"], Binding(node, loop.time()))
        _bind_claims(sandbox)
        await asyncio.sleep(_TICK_S)


def _bind_claims(sandbox: Sandbox) -> None:
    """Bind claims to the volumes that the scheduler has chosen for them, as the controller of volumes does."""
    resource = resource_named("persistentvolumeclaims")
    for volume in sandbox.store.list("persistentvolumes"):
        key = (NAMESPACE, volume["spec"].get("claimRef", {}).get("name", ""))
        record = sandbox.store.collection(resource).records.get(key)
        if record is not None and "volumeName" not in record.obj["spec"]:
            metadata = record.obj["metadata"] | {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
            spec = record.obj["spec"] | {"volumeName": volume["metadata"]["name"]}
            bound_claim = record.obj | {"metadata": metadata, "spec": spec, "status": {"phase": "Bound"}}
            sandbox.store.replace_record(resource, record, bound_claim)


async def _end_finite(sandbox: Sandbox, question: Question | None, *, is_last: bool) -> None:
    """End all pods that run to completion, those that begin only then, too; at last those that others want near."""
    resource = resource_named("pods")
    while True:
        is_wanted = _wanted_pods(sandbox, question)
        running = [
            record
            for record in list(sandbox.store.collection(resource).records.values())
            if record.obj["spec"].get("nodeName")
            and record.obj["spec"].get("restartPolicy") in ("Never", "OnFailure")
            and (record.obj.get("status") or {}).get("phase") == "Running"
            and (is_last or not is_wanted(record.obj))
        ]
        for record in running:
            status = record.obj["status"] | {"phase": "Succeeded"}
            sandbox.store.replace_record(
                resource, record, record.obj | {"metadata": dict(record.obj["metadata"]), "status": status}
            )
        await at_rest(sandbox, _REST_S)
        if not running:
            return


async def _leave(sandbox: Sandbox, question: Question | None, *, is_last: bool) -> None:
    """Delete the pods on nodes until no pod is bound any more; at last those that others want to be near."""
    while True:
        is_wanted = _wanted_pods(sandbox, question)
        leaving = [
            pod
            for pod in sandbox.store.list("pods")
            if pod["spec"].get("nodeName")
            and "deletionTimestamp" not in pod["metadata"]
            and (is_last or not is_wanted(pod))
        ]
        for pod in leaving:
            sandbox.store.delete("pods", pod["metadata"]["name"], namespace=NAMESPACE)
        await at_rest(sandbox, _REST_S)
        if not leaving:
            return


async def _leave_until_flushed(sandbox: Sandbox, play: Play) -> None:
    """Wait until the queue has tried all pods again, as long as one more gets a node."""
    count = -1
    while len(play.bindings) > count and sandbox.store.list("pods"):
        count = len(play.bindings)
        await asyncio.sleep(_FLUSH_S)
        await _leave(sandbox, None, is_last=True)


def _orphan(sandbox: Sandbox) -> None:
    """Delete the controllers of the pods, which would create others in the place of those that leave."""
    pods = resource_named("pods")
    for record in list(sandbox.store.collection(pods).records.values()):
        dependence = ("ownerReferences", "finalizers")
        metadata = {name: value for name, value in record.obj["metadata"].items() if name not in dependence}
        sandbox.store.replace_record(pods, record, record.obj | {"metadata": metadata})
    for plural in ("deployments", "replicasets", "jobs"):
        resource = resource_named(plural)
        for record in list(sandbox.store.collection(resource).records.values()):
            sandbox.store.remove_record(resource, record)


def _wanted_pods(sandbox: Sandbox, question: Question | None) -> Callable[[Json], bool]:
    """Whether pods without a node want to be near a pod: any of them, or the one that is asked about."""
    if question is not None and question.partner:
        return lambda pod: pod["metadata"]["name"] == question.partner
    apps = {
        app
        for pod in sandbox.store.list("pods")
        if not pod["spec"].get("nodeName") and (question is None or pod["metadata"]["name"].startswith(question.pod))
        for app in _wanted_apps(pod)
    }
    node = "" if question is None else question.node
    return lambda pod: pod["metadata"]["labels"].get("app") in apps and pod["spec"].get("nodeName") != node


def _wanted_apps(pod: Json) -> Sequence[str]:
    """The values of `app` that the pod wants near."""
    affinity = pod["spec"].get("affinity", {}).get("podAffinity", {})
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", ())
    return [term["labelSelector"]["matchLabels"]["app"] for term in terms]


# ---------------------------------------------------------------- the comparison


def _faults(answers: Mapping[str, PodOutlook], play: Play) -> Sequence[str]:
    faults = {name: _fault(answer, play.bindings.get(name), play.phase_ends_s) for name, answer in answers.items()}
    return [f"{name}: {fault}; the answer: {answers[name].text}" for name, fault in faults.items() if fault]


def _fault(answer: PodOutlook, binding: Binding | None, phase_ends_s: Sequence[float]) -> str:
    """Say what of the answer did not hold; "" if all of it did."""
    if answer.verdict is Verdict.NEVER:
        return "" if binding is None else f"it was bound to {binding.node} after {binding.after_s:g} s"
    if binding is None:
        return "it was never bound"
    outcome = f"it was bound to {binding.node} after {binding.after_s:g} s"
    if answer.node and answer.node != binding.node:
        return outcome
    if answer.verdict is Verdict.NOW:
        return "" if binding.after_s < min(GRACES_S) else outcome
    if answer.by_s is not None:
        late_s = binding.after_s - (answer.by_s - START_S)
        return "" if -_EARLY_S <= late_s <= _LATE_S else outcome
    first_s, second_s = binding.phase_ends_s or phase_ends_s
    if answer.ends:
        # Those ahead of it may take the room in the second phase.
        is_right = first_s <= binding.after_s and (binding.after_s > second_s or binding.node in answer.nodes)
    else:
        is_right = second_s <= binding.after_s
    return "" if is_right else outcome
