"""Asks for the outlook of each pod that waits in a random cluster, and plays on in the sandbox to see what comes.

The daemon, the stand-in kubelets and the stand-in controllers run in virtual time. First until the last pod has ended
whose time is known. Then pods end that run to completion, then all that can leave are deleted, those last that other
pods want to be near.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from podium.engine.files import LocatedManifest
from podium.insight.cluster import Cluster
from podium.insight.forecast import Forecast, outlook_of
from podium.insight.outlook import PodOutlook, Verdict
from podium.sandbox.embedded import Sandbox
from podium.sandbox.resources import resource_named
from tests.manifests import Json
from tests.outlook.clusters import GRACE_S, LAST_END_S, NAMESPACE, waiting_cluster
from tests.provisioned.sandboxed import at_rest, daemon_beside, run, sandbox_of
from tests.virtual_time import START_S, LoopClock

_FOR_EVER_S: Final = 1e9
_SOONEST: Final = list(Verdict)
_TICK_S: Final = 0.5
_REST_S: Final = 14.0
"""A pod that is tried again is tried within 10 s."""
_LATE_S: Final = 16.0
"""How much later than its time a pod may be bound: stand-ins act with a delay, and a backoff may last 10 s."""
_EARLY_S: Final = 1.5


class TickingClock(LoopClock):
    """A clock on which no two moments are the same, so that pods have an order in the queue."""

    def __init__(self) -> None:
        self._readings = 0

    def now(self) -> float:
        return START_S + self.monotonic()

    def monotonic(self) -> float:
        self._readings += 1
        return super().monotonic() + 1e-7 * self._readings


@dataclass(frozen=True, slots=True)
class Binding:
    """The node of a pod, and the seconds from the question to its binding."""

    node: str
    after_s: float


@dataclass(slots=True)
class CheckedOutlooks:
    """One cluster, and the answers that did not hold."""

    seed: int
    verdicts: list[Verdict] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


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
    cluster = Cluster.load(waiting.objects)
    forecast = Forecast(cluster, START_S)
    answers = {
        name: outlook_of(cluster, f"{NAMESPACE}/{name}", START_S, fix=False, forecast=forecast).pods[0]
        for name in waiting.waiting
    }
    _check(waiting.waiting, answers, run(partial(_play, waiting.objects, None, seed)), checked)
    if waiting.comer is not None:
        objects = [LocatedManifest(waiting.comer, "comer")]
        outlooks = outlook_of(cluster, objects, START_S, fix=False, forecast=forecast).pods
        play = run(partial(_play, waiting.objects, waiting.comer, seed))
        # Replicas have other names there, and any of them may be the first.
        comers = sorted(play.comers, key=lambda name: _when(play.bindings.get(name)))
        expectations = sorted(
            outlooks, key=lambda answer: (_SOONEST.index(answer.verdict), answer.by_s or 0.0, answer.node)
        )
        if len(comers) != len(expectations):
            checked.faults.append(f"{len(expectations)} pods were expected to come, and {len(comers)} came")
        _check(comers, dict(zip(comers, expectations, strict=False)), play, checked)
    return checked


def _when(binding: Binding | None) -> tuple[float, str]:
    return (_FOR_EVER_S, "") if binding is None else (binding.after_s, binding.node)


# ---------------------------------------------------------------- the sandbox


async def _play(objects: Iterable[Json], comer: Json | None, seed: int) -> Play:
    play = Play()
    sandbox = sandbox_of(objects, controllers=True, kubelet_delay_s=float(GRACE_S), job_s=_FOR_EVER_S)
    async with sandbox, daemon_beside(sandbox, seed, clock=TickingClock()):
        loop = asyncio.get_running_loop()
        names = {pod["metadata"]["name"] for pod in sandbox.store.list("pods")}
        # The others are in the queue by then.
        await asyncio.sleep(_TICK_S)
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
            await asyncio.sleep(LAST_END_S + 2 * _LATE_S - loop.time())
            play.phase_ends_s.append(loop.time())
            await _end_finite(sandbox)
            play.phase_ends_s.append(loop.time())
            await _leave(sandbox)
        finally:
            watch.cancel()
    return play


async def _watch(sandbox: Sandbox, play: Play) -> None:
    loop = asyncio.get_running_loop()
    while True:
        for pod in sandbox.store.list("pods"):
            if node := pod["spec"].get("nodeName"):
                play.bindings.setdefault(pod["metadata"]["name"], Binding(node, loop.time()))
        await asyncio.sleep(_TICK_S)


async def _end_finite(sandbox: Sandbox) -> None:
    """End all pods that run to completion, those too that begin only then."""
    resource = resource_named("pods")
    while True:
        running = [
            record
            for record in list(sandbox.store.collection(resource).records.values())
            if record.obj["spec"].get("nodeName")
            and record.obj["spec"].get("restartPolicy") in ("Never", "OnFailure")
            and (record.obj.get("status") or {}).get("phase") == "Running"
        ]
        for record in running:
            status = record.obj["status"] | {"phase": "Succeeded"}
            sandbox.store.replace_record(
                resource, record, record.obj | {"metadata": dict(record.obj["metadata"]), "status": status}
            )
        await at_rest(sandbox, _REST_S)
        if not running:
            return


async def _leave(sandbox: Sandbox) -> None:
    """Delete the pods on nodes, those last that a pod that waits wants to be near, until no pod is bound any more."""
    _orphan(sandbox)
    for is_last in (False, True):
        while True:
            pods = sandbox.store.list("pods")
            apps = {app for pod in pods if not pod["spec"].get("nodeName") for app in _wanted_apps(pod)}
            leaving = [
                pod
                for pod in pods
                if pod["spec"].get("nodeName")
                and "deletionTimestamp" not in pod["metadata"]
                and (is_last or pod["metadata"]["labels"].get("app") not in apps)
            ]
            for pod in leaving:
                sandbox.store.delete("pods", pod["metadata"]["name"], namespace=NAMESPACE)
            await at_rest(sandbox, _REST_S)
            if not leaving:
                break


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


def _wanted_apps(pod: Json) -> Iterable[str]:
    terms = pod["spec"].get("affinity", {}).get("podAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    return [term["labelSelector"]["matchLabels"]["app"] for term in terms or ()]


# ---------------------------------------------------------------- the comparison


def _check(names: Sequence[str], answers: Mapping[str, PodOutlook], play: Play, checked: CheckedOutlooks) -> None:
    for name in names:
        if (answer := answers.get(name)) is not None:
            checked.verdicts.append(answer.verdict)
            if fault := _fault(answer, play.bindings.get(name), play.phase_ends_s):
                checked.faults.append(f"{name}: {fault}; the answer: {answer.text}")


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
        return "" if binding.after_s < GRACE_S else outcome
    if answer.by_s is not None:
        late_s = binding.after_s - (answer.by_s - START_S)
        return "" if -_EARLY_S <= late_s <= _LATE_S else outcome
    first_s, second_s = phase_ends_s
    if answer.ends:
        # Those ahead of it may take the room in the second phase.
        is_right = first_s <= binding.after_s and (binding.after_s > second_s or binding.node in answer.nodes)
    else:
        is_right = second_s <= binding.after_s
    return "" if is_right else outcome
