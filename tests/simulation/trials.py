"""Trials: one misfortune at a time, on a cluster at rest, where it can be said how soon podium must have got over it.

Each has a node of its own that only its pods may go to. Among the random actions the same misfortunes come in all
mixtures, but there nothing can be said of time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from random import Random
from typing import Any

from podium.sandbox.embedded import Sandbox
from podium.sandbox.resources import resource_named
from tests.simulation import random_objects
from tests.simulation.actors import BINDINGS, EVENTS, LISTS
from tests.simulation.checkers import Violation
from tests.simulation.network import Network

Json = dict[str, Any]
Trial = Callable[[], Awaitable[None]]

OLDER_STATE = "an older state of etcd"
_PODS = resource_named("pods")
_KEY = "simulation/trial"
_TICK_S = 0.1
_SLOW_S, _SLOW_PODS = 12.0, 45
# A binding takes two transits of a millisecond; the rest is for the client's rate limit and the first gaps after a 429.
_UNDISTURBED_S = 2.0
_HALF_OPEN_S = 30.0
_RESTORED_S = 30.0
_TAKEN_IN_S = 45.0
_BOOKMARKED_S = 12.0


class Trials:
    """What may be tried, and the means to do so.

    Args:
        pause: lets so much time pass, and checks what must be true after every step.
    """

    def __init__(
        self, sandbox: Sandbox, network: Network, random: Random, pause: Callable[[float], Awaitable[None]]
    ) -> None:
        self._store, self._faults, self._network = sandbox.store, sandbox.faults, network
        self._random, self._pause = random, pause
        self._number = 0
        self.all: dict[str, Trial] = {
            "a slow namespace": self.slow_namespace,
            "a namespace that is refused": self.refused_namespace,
            "Events that are refused": self.refused_events,
            "connections that go silent": self.silent_connections,
            "a list amid attempts": self.list_amid_attempts,
            "a list that is none": self.senseless_list,
            OLDER_STATE: self.older_state,
        }

    async def run(self, name: str) -> None:
        """Hold a trial, and leave nothing of it behind."""
        self._number += 1
        try:
            await self.all[name]()
        finally:
            self._faults.clear()
            self._network.heal()
            for pod in self._store.list("pods", label_selector=_KEY):
                record = self._store.record(_PODS, pod["metadata"]["namespace"], pod["metadata"]["name"])
                self._store.delete_record(_PODS, record, {"gracePeriodSeconds": 0})
            for node in self._store.list("nodes", label_selector=_KEY):
                self._store.delete("nodes", node["metadata"]["name"])
        await self._pause(1.0)

    # ------------------------------------------------------------ trials

    async def slow_namespace(self) -> None:
        """Bindings in one namespace take long, by a webhook; there are more of them than may be under way at once."""
        slow, other_namespace = self._random.sample(random_objects.NAMESPACES, 2)
        self._add_node(pods=_SLOW_PODS + 10)
        self._faults.latency(_SLOW_S, namespace=slow, **BINDINGS)
        self._create(_SLOW_PODS, slow)
        await self._pause(1.0)
        await self._bound_within(_UNDISTURBED_S, self._create(5, other_namespace), "beside a slow namespace")

    async def refused_namespace(self) -> None:
        """Bindings in one namespace are refused with 429, by a webhook that wants to be left alone for long."""
        refused_namespace, other_namespace = self._random.sample(random_objects.NAMESPACES, 2)
        self._add_node(pods=20)
        self._faults.too_many_requests(None, retry_after_s=50, namespace=refused_namespace, **BINDINGS)
        self._create(10, refused_namespace)
        await self._pause(1.0)
        await self._bound_within(_UNDISTURBED_S, self._create(5, other_namespace), "beside a namespace that is refused")

    async def refused_events(self) -> None:
        """No Events are taken for long; bindings have nothing to do with them."""
        self._add_node(pods=20)
        self._faults.too_many_requests(None, retry_after_s=50, **EVENTS)
        self._create(5, random_objects.NAMESPACES[0])
        await self._pause(1.0)
        await self._bound_within(
            _UNDISTURBED_S, self._create(5, random_objects.NAMESPACES[0]), "while Events are refused"
        )

    async def silent_connections(self) -> None:
        """A balancer swallows what comes on the connections that are open, and says nothing."""
        self._add_node(pods=20)
        await self._pause(1.0)
        self._network.silence_connections()
        await self._bound_within(_HALF_OPEN_S, self._create(2, random_objects.NAMESPACES[0]), "over silent connections")

    async def list_amid_attempts(self) -> None:
        """What happened in a gap of all watches comes slowly, in pieces: a node first, later a pod that fills it."""
        names = self._create(4, random_objects.NAMESPACES[0], cpu_milli=1500)
        await self._pause(3.0)
        self._faults.latency(0.5, **LISTS, resource="pods")
        self._network.narrow()
        self._store.compact()
        self._faults.expire_watches()
        node = self._add_node(pods=20)
        self._place(node, cpu_milli=2500)
        self._store.compact()
        await self._one_fits_within(_TAKEN_IN_S, names, node, "amid a list")

    async def senseless_list(self) -> None:
        """In place of the pods a portal answers with something that has a version and is empty."""
        node = self._add_node(pods=20)
        self._place(node, cpu_milli=2500)
        await self._pause(1.0)
        for code, body in [*self._random.sample(random_objects.SENSELESS, 3), random_objects.ANOTHER_KINDS_LIST]:
            body_text = body.replace("REVISION", str(self._store.revision))
            self._faults.invalid_answer(code=code, body=body_text, **LISTS, resource="pods")
        self._faults.expire_watches()
        await self._pause(0.1)
        await self._one_fits_within(
            _TAKEN_IN_S, self._create(4, random_objects.NAMESPACES[0], cpu_milli=1500), node, "by a list"
        )

    async def older_state(self) -> None:
        """etcd is restored: what was bound is pending again, and versions start below those that were seen."""
        node = self._add_node(pods=40)
        await self._pause(1.0)
        names = self._create(3, random_objects.NAMESPACES[0])
        revision = self._store.revision
        await self._bound_within(_UNDISTURBED_S, names, "on a cluster at rest")
        # What others do brings the watches of pods and nodes beyond what will be the present; others have bookmarks.
        for number in range(20):
            self._place(node, cpu_milli=1)
            relabelled = self._store.get("nodes", node)
            relabelled["metadata"]["labels"]["changed"] = str(number)
            self._store.update(relabelled)
        await self._pause(_BOOKMARKED_S)
        self._faults.refuse_connections(0.5)
        self._store.rewind(revision)
        await self._pause(1.0)
        await self._bound_within(_RESTORED_S, names, "after etcd was restored")

    # ------------------------------------------------------------ means

    def _add_node(self, *, pods: int) -> str:
        name = f"trial-{self._number}"
        node = random_objects.random_node(name, self._random)
        node["metadata"]["labels"][_KEY] = str(self._number)
        node["spec"]["taints"] = [{"key": _KEY, "effect": "NoSchedule"}]
        node["status"]["allocatable"]["pods"] = str(pods)
        self._store.create(node)
        return name

    def _create(self, count: int, namespace: str, *, cpu_milli: int = 10) -> list[str]:
        pods = [self._trial_pod(namespace, cpu_milli) for _ in range(count)]
        return [self._store.create(pod)["metadata"]["name"] for pod in pods]

    def _place(self, node: str, *, cpu_milli: int) -> None:
        pod = self._trial_pod(random_objects.NAMESPACES[0], cpu_milli)
        pod["spec"] |= {"schedulerName": random_objects.FOREIGN, "nodeName": node}
        self._store.create(pod)

    def _trial_pod(self, namespace: str, cpu_milli: int) -> Json:
        requests = {"cpu": f"{cpu_milli}m", "memory": "1Mi"}
        labels = {_KEY: str(self._number)}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"generateName": f"trial-{self._number}-", "namespace": namespace, "labels": labels},
            "spec": {
                "schedulerName": random_objects.OURS,
                "nodeSelector": labels,
                "tolerations": [{"key": _KEY, "operator": "Exists"}],
                "containers": [{"name": "main", "image": "app", "resources": {"requests": requests}}],
            },
        }

    async def _one_fits_within(self, seconds: float, names: Iterable[str], node: str, how: str) -> None:
        await self._pause(seconds)
        pods_on_node = self._store.list("pods", field_selector=f"spec.nodeName={node}")
        amounts = random_objects.total_amounts(random_objects.requests_of(pod) for pod in pods_on_node)
        if amounts[0] > random_objects.NODE_CPU_MILLI:
            raise Violation("overfull", f"{how} {node} was given {amounts} in all")
        if not set(names) & {pod["metadata"]["name"] for pod in pods_on_node}:
            raise Violation("bounded", f"none of {names} was bound in {seconds} s {how}")

    async def _bound_within(self, seconds: float, names: Iterable[str], how: str) -> None:
        missing, waited_s = set(names), 0.0
        while missing:
            if waited_s > seconds:
                raise Violation(
                    "bounded", f"{len(missing)} pods, {min(missing)} among them, not bound in {seconds} s {how}"
                )
            await self._pause(_TICK_S)
            waited_s += _TICK_S
            bound_pods = self._store.list("pods", label_selector=_KEY, field_selector="spec.nodeName!=")
            missing -= {pod["metadata"]["name"] for pod in bound_pods}
