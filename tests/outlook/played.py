"""Asks for the outlook of each pod that waits in a random cluster, and plays on in the sandbox to see what comes.

The daemon, the stand-in kubelets and the stand-in controllers run in virtual time. First until the last pod has ended
whose time is known. Then pods end that run to completion, then all that can leave are deleted, those last that other
pods want to be near.
"""

from __future__ import annotations

import asyncio
import enum
import json
from collections.abc import Callable, Mapping, Sequence
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
from tests.outlook.comparison import MOMENT_S, Binding, Play, fault_count, faults_of, pair_up
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


@dataclass(frozen=True, slots=True)
class Question:
    """The pod whose neighbours leave last: those on other nodes than one, or only one of them.

    Attributes:
        partner: what the names of these begin with; "" for all that it needs.
        deletes_first: whether pods are deleted before any ends by itself at an unknown time.
        first_node: the node whose pods leave before those of others, so that pods that wait come to it; "" for none.
    """

    pod: str
    node: str = ""
    partner: str = ""
    deletes_first: bool = False
    first_node: str = ""


@dataclass(slots=True)
class CheckedOutlooks:
    """One cluster, and the answers that did not hold.

    Attributes:
        races: those that hold in one order of the ends at one moment, and not in the other: no object says which it is.
    """

    seed: int
    verdicts: list[Verdict] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    races: list[str] = field(default_factory=list)


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
    answers: Sequence[PodOutlook],
    faults_in: Callable[[Order], tuple[Mapping[str, str], Play]],
    checked: CheckedOutlooks,
) -> None:
    """Note what did not hold; and what holds in one order only of pods that end at one moment."""
    checked.verdicts += [answer.verdict for answer in answers]
    faults, play = faults_in(Order.DELETION)
    other_faults = faults_in(Order.TOGETHER)[0] if play.order_is_open else faults
    checked.faults += min(faults, other_faults, key=len).values()
    if not faults or not other_faults:
        checked.races += {**faults, **other_faults}.values()


def _faults_of_waiting(
    waiting: WaitingCluster, outlooks: Sequence[PodOutlook], seed: int, order: Order
) -> tuple[Mapping[str, str], Play]:
    plays: list[Play] = []

    def play_on(question: Question | None) -> Play:
        plays.append(run(partial(_play, waiting, None, seed, order, question)))
        return plays[-1]

    answers = dict(zip(waiting.waiting, outlooks, strict=True))
    play = play_on(None)
    for name in waiting.waiting:
        play.bindings |= _binding_for(name, answers[name], play, waiting.objects, play_on)
    members = [name for name in waiting.waiting if name.startswith(GANG)]
    answers |= pair_up(members, [answers[name] for name in members], play)
    # What never runs does so in no play.
    never = {name: answer for name, answer in answers.items() if answer.verdict is Verdict.NEVER}
    return {
        **faults_of(answers, play),
        **{name: text for item in plays for name, text in faults_of(never, item).items()},
    }, play


def _faults_of_comers(
    waiting: WaitingCluster, outlooks: Sequence[PodOutlook], seed: int, order: Order
) -> tuple[Mapping[str, str], Play]:
    """What did not hold of the pods that come, in the play in which most answers hold.

    An answer without a time holds if it does of one of the replicas in any of the plays, as in `_binding_for`.
    """

    def play_on(question: Question | None) -> Play:
        return run(partial(_play, waiting, waiting.comer, seed, order, question))

    plays = [play_on(None)]
    for question in _questions("comer", outlooks, waiting.objects):
        if all(fault_count(pair_up(play.comers, outlooks, play), play) for play in plays):
            plays.append(play_on(question))
    best = min(plays, key=lambda play: fault_count(pair_up(play.comers, outlooks, play), play))
    if len(best.comers) != len(outlooks):
        return {"": f"{len(outlooks)} pods were expected to come, and {len(best.comers)} came"}, best
    answers = pair_up(best.comers, outlooks, best)
    open_answers = {name for name, answer in answers.items() if answer.verdict is Verdict.LATER and answer.by_s is None}
    elsewhere = {
        name
        for name in open_answers
        if any(not faults_of({comer: answers[name]}, play) for play in plays for comer in play.comers)
    }
    return {name: text for name, text in faults_of(answers, best).items() if name not in elsewhere}, best


def _binding_for(
    name: str, answer: PodOutlook, play: Play, objects: Sequence[Json], play_on: Callable[[Question], Play]
) -> Mapping[str, Binding]:
    """The binding of a pod that may get a node: as played, or in a play in which other pods stay until last.

    Which pods leave first decides about pods that want to be near others, and no object says it.
    """
    if answer.verdict is not Verdict.LATER or answer.by_s is not None or not faults_of({name: answer}, play):
        return {}
    for question in _questions(name, [answer], objects):
        other_play = play_on(question)
        if not faults_of({name: answer}, other_play):
            return {name: replace(other_play.bindings[name], phase_ends_s=other_play.phase_ends_s)}
    return {}


def _questions(name: str, answers: Sequence[PodOutlook], objects: Sequence[Json]) -> Sequence[Question]:
    """The orders in which pods may leave that answers without a time are about."""
    nodes = dict.fromkeys(node for answer in answers for node in answer.nodes)
    questions = [Question(name, node) for node in ("", *nodes)]
    # Nodes without ends are open only if pods leave: those that end by themselves need not do so first.
    deletes_first = any(not answer.ends for answer in answers)
    if deletes_first:
        questions.append(Question(name, deletes_first=True))
    questions += [Question(name, partner=partner) for partner in _partners(objects, name)]
    all_nodes = [manifest["metadata"]["name"] for manifest in objects if manifest["kind"] == "Node"]
    return questions + [Question(name, deletes_first=deletes_first, first_node=node) for node in all_nodes]


def _partners(objects: Sequence[Json], name: str) -> Sequence[str]:
    """The names of the pods that a pod needs, or what they begin with: those that it wants near, and its gang's."""
    pods = [manifest for manifest in objects if manifest["kind"] == "Pod"]
    apps = {app for pod in pods if pod["metadata"]["name"] == name for app in _wanted_apps(pod)}
    # Members of a gang, and no other pods, have its name as their app. All may stay, or one of them.
    gang = [GANG] if name.startswith(GANG) else []
    partners = (pod["metadata"] for pod in pods if pod["metadata"]["name"] != name)
    return gang + [metadata["name"] for metadata in partners if metadata["labels"].get("app") in (*apps, *gang)]


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
    """How long the pod takes to end: its grace period, and a little so that those of one moment end together."""
    if play.phase_ends_s:
        return _LAST_GRACE_S
    default_s = pod["spec"].get("terminationGracePeriodSeconds", 30)
    grace_s = float(pod["metadata"].get("deletionGracePeriodSeconds") or default_s)
    play.ends_s[pod["metadata"]["name"]] = since_s + grace_s
    # Ends that objects announce are whole seconds, and within a moment, not at its edge.
    offset_s = (since_s + grace_s + MOMENT_S / 4) % MOMENT_S
    return grace_s + (MOMENT_S - offset_s if order is Order.TOGETHER else 0.0)


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
        first_node = "" if question is None else question.first_node
        if question is None or not question.deletes_first:
            await _end_finite(sandbox, question, is_last=False, first_node=first_node)
            first_node = ""
        play.phase_ends_s.append(loop.time())
        _orphan(sandbox)
        await _leave(sandbox, question, is_last=False, first_node=first_node)
        await _end_finite(sandbox, question, is_last=True)
        await _leave(sandbox, question, is_last=True)
        await _leave_until_flushed(sandbox, play)
    finally:
        watch.cancel()


async def _watch(sandbox: Sandbox, play: Play) -> None:
    loop = asyncio.get_running_loop()
    while True:
        bound_pods = [pod for pod in sandbox.store.list("pods") if pod["spec"].get("nodeName")]
        staying = frozenset(pod["metadata"]["name"] for pod in bound_pods if not _is_ending(pod))
        for pod in bound_pods:
            binding = Binding(pod["spec"]["nodeName"], loop.time(), staying)
            play.bindings.setdefault(pod["metadata"]["name"], binding)
        _bind_claims(sandbox)
        await asyncio.sleep(_TICK_S)


def _is_ending(pod: Json) -> bool:
    has_ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return has_ended or "deletionTimestamp" in pod["metadata"]


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


async def _end_finite(sandbox: Sandbox, question: Question | None, *, is_last: bool, first_node: str = "") -> None:
    """End all pods that run to completion, those that begin only then, too; at last those that others want near."""
    resource = resource_named("pods")
    while True:
        may_leave = _leaving_pods(sandbox, question, is_last=is_last, first_node=first_node)
        running = [
            record
            for record in list(sandbox.store.collection(resource).records.values())
            if record.obj["spec"].get("nodeName")
            and record.obj["spec"].get("restartPolicy") in ("Never", "OnFailure")
            and (record.obj.get("status") or {}).get("phase") == "Running"
            and may_leave(record.obj)
        ]
        for record in running:
            status = record.obj["status"] | {"phase": "Succeeded"}
            sandbox.store.replace_record(
                resource, record, record.obj | {"metadata": dict(record.obj["metadata"]), "status": status}
            )
        await at_rest(sandbox, _REST_S)
        if not running and not first_node:
            return
        first_node = ""


async def _leave(sandbox: Sandbox, question: Question | None, *, is_last: bool, first_node: str = "") -> None:
    """Delete the pods on nodes until no pod is bound any more; at last those that others want to be near."""
    while True:
        may_leave = _leaving_pods(sandbox, question, is_last=is_last, first_node=first_node)
        leaving = [
            pod
            for pod in sandbox.store.list("pods")
            if pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"] and may_leave(pod)
        ]
        for pod in leaving:
            sandbox.store.delete("pods", pod["metadata"]["name"], namespace=NAMESPACE)
        await at_rest(sandbox, _REST_S)
        if not leaving and not first_node:
            return
        first_node = ""


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


def _leaving_pods(
    sandbox: Sandbox, question: Question | None, *, is_last: bool, first_node: str
) -> Callable[[Json], bool]:
    """Whether a pod leaves now: all on the node that is first; else those that no pod wants near, and at last all."""
    if first_node:
        return lambda pod: pod["spec"].get("nodeName") == first_node
    is_wanted = _wanted_pods(sandbox, question)
    return lambda pod: is_last or not is_wanted(pod)


def _wanted_pods(sandbox: Sandbox, question: Question | None) -> Callable[[Json], bool]:
    """Whether pods without a node want to be near a pod: any of them, or the one that is asked about."""
    if question is not None and question.partner:
        return lambda pod: pod["metadata"]["name"].startswith(question.partner)
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
