"""One plan that is carried out in the sandbox, beside the daemon with its queue and the controllers.

Checked at every change of a pod: each PodDisruptionBudget. Checked in the end: each pod of the plan was evicted and no
other one is gone, its replacement runs where the carrier said, neither where it came from nor on a node that was
cordoned for the step, no device belongs to two pods, no node is overfull, and the pods in question are bound.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from podium.binder import ApiClient
from podium.client.credentials import load
from podium.client.dispatcher import Dispatcher
from podium.client.session import ApiSession
from podium.insight import Cluster
from podium.insight.room.carrying_out import CarryingOutError, Expectation, MoveCarrier
from podium.insight.room.make_room import make_room
from podium.insight.room.plan import RoomPlan, Verdict
from podium.lib.system_clock import SystemClock
from podium.sandbox.embedded import Sandbox
from podium.sandbox.feeds import Feed
from podium.sandbox.journal import ADDED, DELETED
from podium.sandbox.resources import resource_named
from tests.make_room.clusters import FullCluster, amount_of, devices_of
from tests.manifests import Json
from tests.provisioned.sandboxed import at_rest, daemon_beside, run, sandbox_of
from tests.virtual_time import LoopClock

_KINDS: Final = (
    *("nodes", "priorityclasses", "replicasets", "poddisruptionbudgets", "pods", "namespaces"),
    *("resourceslices", "deviceclasses", "resourceclaims", "resourceclaimtemplates"),
)
_PODS: Final = resource_named("pods")
_MOVED: Final = re.compile(r"\d+ of \d+: (?P<pod>\S+) has moved from (?P<source>\S+) to (?P<node>\S+)")


@dataclass(slots=True)
class CarriedOut:
    """A plan that was carried out.

    Attributes:
        name: what the cluster is like.
        verdict: of the answer; None if the daemon itself has placed the pod.
        moves: how many; None if there was no plan.
        as_said: the replacements that came to the very node that the plan names. Scores and chance may bring the
            others to another one.
        devices: how many devices the moved pods and the pod in question have.
    """

    seed: int
    name: str = ""
    verdict: Verdict | None = None
    moves: int | None = None
    as_said: int = 0
    devices: int = 0
    faults: list[str] = field(default_factory=list)


def carried_out(seed: int, cluster: FullCluster, steps_max: int, name: str = "") -> CarriedOut:
    """Make room in the cluster, and carry the plan out beside the daemon in the sandbox."""
    checked = CarriedOut(seed, name)
    run(lambda: _carry_out(cluster, checked, steps_max))
    return checked


async def _carry_out(cluster: FullCluster, checked: CarriedOut, steps_max: int) -> None:
    async with sandbox_of(cluster.objects, controllers=True) as sandbox, daemon_beside(sandbox, checked.seed):
        await at_rest(sandbox)
        world = Cluster.load([item for kind in _KINDS for item in sandbox.store.list(kind)])
        if world.read_pod(cluster.pod).node_name:
            return
        answer = make_room(world, cluster.pod, steps_max=steps_max)
        checked.verdict = answer.verdict
        if answer.plan is None:
            return
        checked.moves = len(answer.plan.steps)
        with _Watch(sandbox, checked).watching() as watch:
            nodes = await _run_plan(sandbox, world, answer.plan, checked)
            await at_rest(sandbox)
        checked.as_said = sum(nodes.get(step.pod) == step.target for step in answer.plan.steps)
        checked.faults += _faults_of_moves(sandbox, answer.plan, nodes, watch)
        checked.faults += _faults_of_nodes(sandbox)
        for key in answer.plan.nodes:
            pod = sandbox.store.get("pods", key.partition("/")[2])
            checked.devices += devices_of(pod)
            if not pod["spec"].get("nodeName"):
                checked.faults.append(f"{key} has no node")


async def _run_plan(sandbox: Sandbox, world: Cluster, plan: RoomPlan, checked: CarriedOut) -> Mapping[str, str]:
    """Carry the plan out, and return to which node the replacement of each pod came."""
    clock, lines = LoopClock(), list[str]()
    credentials = await load(None, SystemClock(), master=sandbox.url, environ={})
    async with ApiSession(credentials) as session:
        carrier = MoveCarrier(session, ApiClient(Dispatcher(session, clock), clock), clock, lines.append)
        expectation = Expectation.of(world, plan)
        try:
            await carrier.dry_run(plan, expectation)
            await carrier.carry_out(plan, expectation)
        except CarryingOutError as error:
            checked.faults.append(str(error))
    moves = [match for line in lines if (match := _MOVED.fullmatch(line))]
    return {match["pod"]: match["node"] for match in moves}


class _Watch:
    """Looks at the pods at each of their changes.

    Attributes:
        replacements: by key of a pod that is gone, the uid of the next pod that its owner created.
    """

    def __init__(self, sandbox: Sandbox, checked: CarriedOut) -> None:
        self._sandbox = sandbox
        self._checked = checked
        self._feed = Feed(sandbox.store.collection(_PODS))
        self._counts_before = _ready_counts(sandbox.store.list("pods"))
        self._waiting: dict[str, str] = {}
        self.replacements: dict[str, str] = {}

    @contextmanager
    def watching(self) -> Iterator[_Watch]:
        self._feed.read()
        with self._feed.waking(self._look):
            yield self

    def _look(self) -> None:
        for change in self._feed.read():
            pod = change.record.obj
            (owner,) = pod["metadata"].get("ownerReferences") or [{"uid": ""}]
            if change.type == ADDED and owner["uid"] in self._waiting:
                self.replacements[self._waiting.pop(owner["uid"])] = pod["metadata"]["uid"]
            elif change.type == DELETED or "deletionTimestamp" in pod["metadata"]:
                key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
                if key not in self.replacements:
                    self._waiting[owner["uid"]] = key
        self._check_budgets()

    def _check_budgets(self) -> None:
        """Note each budget of which fewer pods are ready than it demands, or than were at the start."""
        counts = _ready_counts(self._sandbox.store.list("pods"))
        for item in self._sandbox.store.list("poddisruptionbudgets"):
            name = item["metadata"]["name"]
            replicas = self._sandbox.store.get("replicasets", name, "default")["spec"]["replicas"]
            least = min(replicas - item["spec"]["maxUnavailable"], self._counts_before[name])
            if counts[name] < least:
                self._checked.faults.append(f"{counts[name]} pods of {name} are ready, fewer than {least}")


def _faults_of_moves(sandbox: Sandbox, plan: RoomPlan, nodes: Mapping[str, str], watch: _Watch) -> list[str]:
    """Return what is wrong with where the pods of the plan, and all others, came to."""
    faults = []
    pods = {pod["metadata"]["uid"]: pod for pod in sandbox.store.list("pods")}
    for step in plan.steps:
        node = nodes.get(step.pod)
        replacement = pods.get(watch.replacements.get(step.pod, ""))
        if replacement is None or replacement["spec"].get("nodeName") != node:
            faults.append(f"the replacement of {step.pod} is not on {node}, where it was said to be")
        if node == step.source or node in set(step.cordons) - {step.opens}:
            faults.append(f"{step.pod} moved from {step.source} to {node}, which was cordoned")
        if step.uid in pods:
            faults.append(f"{step.pod} was not evicted")
    if unasked_keys := watch.replacements.keys() - {step.pod for step in plan.steps}:
        faults.append(f"gone without being asked to: {sorted(unasked_keys)}")
    if names := [item["metadata"]["name"] for item in sandbox.store.list("nodes") if item["spec"].get("unschedulable")]:
        faults.append(f"still cordoned: {names}")
    return faults


def _faults_of_nodes(sandbox: Sandbox) -> list[str]:
    """Return which nodes and devices are given to more than they have room for."""
    faults = []
    pods = [pod for pod in sandbox.store.list("pods") if pod["spec"].get("nodeName")]
    for item in sandbox.store.list("nodes"):
        name, allocatable = item["metadata"]["name"], item["status"]["allocatable"]
        for resource in ("cpu", "memory"):
            total = sum(amount_of(pod, resource) for pod in pods if pod["spec"]["nodeName"] == name)
            if total > int(allocatable[resource][:-1]):
                faults.append(f"{name} has {allocatable[resource]} {resource}, and pods for {total}")
    holders = Counter(
        (result["pool"], result["device"])
        for claim in sandbox.store.list("resourceclaims")
        for result in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
    )
    return faults + [f"device {device} is allocated {count} times" for device, count in holders.items() if count > 1]


def _ready_counts(pods: Iterable[Json]) -> Counter[str]:
    """Return how many pods of each ReplicaSet are ready."""
    counts = Counter[str]()
    for pod in pods:
        conditions = {entry["type"]: entry["status"] for entry in pod.get("status", {}).get("conditions", ())}
        if conditions.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]:
            counts[pod["metadata"]["labels"]["app"]] += 1
    return counts
