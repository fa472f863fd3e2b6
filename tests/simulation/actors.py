"""Who acts on the simulated cluster, and how often: users, operators, a neighbour, controllers, bad luck.

Each action is one method; it changes the API server's store directly, as clients of their own would, and says in one
line what it did, or nothing where there was nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from podium.sandbox.embedded import Sandbox
from podium.sandbox.errors import ApiError
from podium.sandbox.resources import resource_named
from tests.simulation import random_objects
from tests.simulation.network import Network

Json = dict[str, Any]
Action = Callable[[], str | None]

PODS_MAX: Final = 40
NODES_MIN, NODES_MAX = 4, 10


class Actors:
    """Chooses and performs actions; every choice comes from the one random source.

    Args: `restores` says whether etcd may be taken back to an earlier state.
    """

    def __init__(self, sandbox: Sandbox, network: Network, random: Random, *, restores: bool = True) -> None:
        self.faults = 0
        self.shrunk_at_s: dict[str, float] = {}
        self._store, self._faults, self._network, self._random = sandbox.store, sandbox.faults, network, random
        self._pods_made = self._nodes_made = 0
        usual: dict[Action, int] = {
            self.create_pods: 30,
            self.delete_pod: 12,
            self.remove_gate: 6,
            self.finish_pod: 8,
            self.relabel_pod: 3,
            self.place_foreign_pod: 6,
            self.add_node: 2,
            self.delete_node: 2,
            self.cordon: 3,
            self.uncordon: 3,
            self.taint: 2,
            self.untaint: 2,
            self.resize_node: 3,
            self.budget_changes: 2,
        }
        unlucky: dict[Action, int] = {
            self.fail_requests: 5,
            self.refuse_writes_as_conflicts: 2,
            self.slow_down: 3,
            self.lose_answers: 4,
            self.tear_lists: 1,
            self.throttle: 2,
            self.throttle_a_namespace: 2,
            self.slow_a_namespace_down: 2,
            self.answer_senselessly: 4,
            self.drop_watches: 2,
            self.expire_watches: 2,
            self.compact: 1,
            self.break_connections: 2,
            self.silence_connections: 1,
            self.restart_api_server: 1,
            self.restore_etcd: int(restores),
            self.narrow_connections: 1,
        }
        self._unlucky = unlucky.keys()
        self._actions = list((usual | unlucky).items())

    def furnish(self) -> None:
        """Create the objects of the start."""
        for _ in range(6):
            self.add_node()
        for app in random_objects.APPS[:2]:
            self._store.create(random_objects.budget(app))

    def act(self) -> str | None:
        """One action by chance."""
        actions, weights = zip(*self._actions, strict=True)
        action = self._random.choices(actions, weights)[0]
        line = action()
        if line is not None and action in self._unlucky:
            self.faults += 1
        return line

    # ------------------------------------------------------------ users

    def create_pods(self) -> str | None:
        pod_count = min(self._random.choice((1, 1, 1, 2, 5)), PODS_MAX - len(self._store.list("pods")))
        names = [self._create_pod() for _ in range(pod_count)]
        return f"create {' '.join(names)}" if names else None

    def _create_pod(self) -> str:
        self._pods_made += 1
        name = f"pod-{self._pods_made}"
        self._store.create(self._draw_pod(name))
        return name

    def _draw_pod(self, name: str) -> Json:
        return random_objects.random_pod(name, self._random)

    def delete_pod(self) -> str | None:
        pod = self._one_of("pods")
        if pod is None:
            return None
        options = {"gracePeriodSeconds": 0} if self._random.random() < 0.3 else {}
        return self._delete("pods", pod, options)

    def remove_gate(self) -> str | None:
        pod = self._one_of("pods", lambda pod: bool(pod["spec"].get("schedulingGates")))
        if pod is None:
            return None
        pod["spec"].pop("schedulingGates")
        return self._update(pod, "remove the gate of")

    def relabel_pod(self) -> str | None:
        pod = self._one_of("pods")
        if pod is None:
            return None
        pod["metadata"]["labels"]["app"] = self._random.choice(random_objects.APPS)
        return self._update(pod, "relabel")

    # ------------------------------------------------------------ kubelets, neighbours, controllers

    def finish_pod(self) -> str | None:
        pod = self._one_of("pods", lambda pod: pod["status"].get("phase") == "Running")
        if pod is None:
            return None
        pod["status"]["phase"] = "Succeeded"
        return self._update(pod, "finish", subresource="status")

    def place_foreign_pod(self) -> str | None:
        """A neighbour binds a pod where it would fit as far as the neighbour knows."""
        node = self._one_of("nodes")
        if node is None or len(self._store.list("pods")) >= PODS_MAX:
            return None
        self._pods_made += 1
        pod = random_objects.random_pod(f"foreign-{self._pods_made}", self._random)
        pod["spec"].pop("schedulingGates", None)
        pod["spec"] |= {"schedulerName": random_objects.FOREIGN, "nodeName": node["metadata"]["name"]}
        pods_on_node = [pod for pod in self._store.list("pods") if _is_on(pod, node["metadata"]["name"])]
        amounts = random_objects.total_amounts(random_objects.requests_of(item) for item in [*pods_on_node, pod])
        if any(need > has for need, has in zip(amounts, random_objects.room(node["status"]), strict=True)):
            return None
        self._store.create(pod)
        return f"place {pod['metadata']['name']} on {node['metadata']['name']}"

    def budget_changes(self) -> str | None:
        budget = self._one_of("poddisruptionbudgets")
        if budget is None:
            return None
        budget["status"]["disruptionsAllowed"] = self._random.choice((0, 0, 1, 5))
        return self._update(budget, f"allow {budget['status']['disruptionsAllowed']} by", subresource="status")

    # ------------------------------------------------------------ operators

    def add_node(self) -> str | None:
        if len(self._store.list("nodes")) >= NODES_MAX:
            return None
        self._nodes_made += 1
        name = f"node-{self._nodes_made}"
        self._store.create(random_objects.random_node(name, self._random))
        return f"add {name}"

    def delete_node(self) -> str | None:
        """The node goes, and with it its pods, as the node lifecycle and garbage collectors have it."""
        node = self._one_of("nodes")
        if node is None or len(self._store.list("nodes")) <= NODES_MIN:
            return None
        name = node["metadata"]["name"]
        self._delete("nodes", node, {})
        for pod in self._store.list("pods"):
            if pod["spec"].get("nodeName") == name:
                self._delete("pods", pod, {"gracePeriodSeconds": 0})
        return f"delete {name}"

    def cordon(self) -> str | None:
        node = self._one_of("nodes", lambda node: not node["spec"].get("unschedulable"))
        if node is None:
            return None
        node["spec"]["unschedulable"] = True
        return self._update(node, "cordon")

    def uncordon(self) -> str | None:
        node = self._one_of("nodes", lambda node: bool(node["spec"].get("unschedulable")))
        if node is None:
            return None
        node["spec"].pop("unschedulable")
        return self._update(node, "uncordon")

    def taint(self) -> str | None:
        node = self._one_of("nodes", lambda node: not node["spec"].get("taints"))
        if node is None:
            return None
        node["spec"]["taints"] = [{"key": "simulation/taint", "effect": "NoSchedule"}]
        return self._update(node, "taint")

    def untaint(self) -> str | None:
        node = self._one_of("nodes", lambda node: bool(node["spec"].get("taints")))
        if node is None:
            return None
        node["spec"].pop("taints")
        return self._update(node, "untaint")

    def resize_node(self) -> str | None:
        node = self._one_of("nodes")
        if node is None:
            return None
        cpu_milli = self._random.choice((2000, 4000, 4000, 6000))
        node["status"]["allocatable"] = random_objects.allocatable(cpu_milli)
        return self._update(node, f"resize to {cpu_milli}m", subresource="status")

    # ------------------------------------------------------------ bad luck

    def fail_requests(self) -> str | None:
        times, code = self._random.choice((1, 1, 3, 8)), self._random.choice((500, 503, 504))
        target = self._target()
        self._faults.server_error(times, code=code, **target)
        return f"answer {times} with {code} {_scope_text(target)}"

    def refuse_writes_as_conflicts(self) -> str | None:
        code = self._random.choice((403, 404, 409, 409))
        self._faults.server_error(1, code=code, verb="create", resource="pods", subresource="binding")
        return f"refuse a binding with {code}"

    def slow_down(self) -> str | None:
        times, delay_s = self._random.choice((1, 5)), self._random.choice((0.2, 2.0, 12.0, 45.0))
        target = self._target()
        self._faults.latency(delay_s, times, **target)
        return f"slow {times} down by {delay_s} s {_scope_text(target)}"

    def lose_answers(self) -> str | None:
        target = self._random.choice((BINDINGS, BINDINGS, STATUSES, EVENTS))
        times = self._random.choice((1, 2))
        self._faults.lose_response(times, **target)
        return f"lose {times} answers {_scope_text(target)}"

    def tear_lists(self) -> str | None:
        times = self._random.choice((1, 2))
        self._faults.tear_response(times, **LISTS)
        return f"tear {times} lists"

    def throttle(self) -> str | None:
        times = self._random.choice((1, 4))
        self._faults.too_many_requests(times, retry_after_s=self._random.choice((1, 3)), **self._target())
        return f"throttle {times}"

    def throttle_a_namespace(self) -> str | None:
        times, retry_after_s = self._random.choice((1, 4, 20)), self._random.choice((1, 10, 60))
        target, namespace = self._random.choice((BINDINGS, STATUSES, EVENTS)), self._namespace()
        self._faults.too_many_requests(times, retry_after_s=retry_after_s, namespace=namespace, **target)
        return f"throttle {times} for {retry_after_s} s in {namespace} {_scope_text(target)}"

    def slow_a_namespace_down(self) -> str | None:
        times, delay_s = self._random.choice((3, 10)), self._random.choice((2.0, 12.0, 45.0))
        namespace = self._namespace()
        self._faults.latency(delay_s, times, namespace=namespace, **BINDINGS)
        return f"slow {times} bindings in {namespace} down by {delay_s} s"

    def answer_senselessly(self) -> str | None:
        times, (code, body) = self._random.choice((1, 3)), self._random.choice(random_objects.SENSELESS)
        target = self._random.choice((BINDINGS, BINDINGS, STATUSES, EVENTS, DELETIONS, LISTS, LISTS, WATCHES, READS))
        body = body.replace("REVISION", str(self._store.revision))
        self._faults.invalid_answer(times, code=code, body=body, **target)
        return f"answer {times} with {code} {body[:12]!r} {_scope_text(target)}"

    def drop_watches(self) -> str | None:
        return f"drop {self._faults.drop_watches(mid_line=self._random.random() < 0.5)} watches"

    def expire_watches(self) -> str | None:
        return f"expire {self._faults.expire_watches()} watches"

    def compact(self) -> str | None:
        self._store.compact()
        return "compact"

    def break_connections(self) -> str | None:
        return f"break {self._network.break_connections()} connections"

    def silence_connections(self) -> str | None:
        return f"silence {self._network.silence_connections()} connections"

    def narrow_connections(self) -> str | None:
        """From now on what the server says comes in small pieces, until all connections break."""
        self._network.narrow()
        return "narrow connections"

    def restart_api_server(self) -> str | None:
        seconds = self._random.choice((0.1, 3.0, 20.0))
        self._faults.refuse_connections(seconds)
        return f"restart the API server for {seconds} s"

    def restore_etcd(self) -> str | None:
        """The API server comes back with what was true before some of the last changes of pods and nodes.

        Where little was lost, and has changed again before podium can ask, nobody could tell.
        """
        revisions = [
            int(item["metadata"]["resourceVersion"]) for item in self._store.list("pods") + self._store.list("nodes")
        ]
        revision = sorted(revisions)[-min(self._random.choice((5, 20)), len(revisions) // 2)] - 1
        try:
            self._store.rewind(revision)
        except ApiError:
            return None  # That has been forgotten.
        self._faults.refuse_connections(self._random.choice((0.1, 3.0)))
        return f"restore etcd as of {revision}"

    # ------------------------------------------------------------ tools

    def _namespace(self) -> str:
        return self._random.choice(random_objects.NAMESPACES)

    def _target(self) -> dict[str, str]:
        return self._random.choice((BINDINGS, BINDINGS, STATUSES, EVENTS, WATCHES, LISTS, DELETIONS, {}))

    def _one_of(self, resource: str, is_meant: Callable[[Json], bool] = lambda _: True) -> Json | None:
        candidates = [candidate for candidate in self._store.list(resource) if is_meant(candidate)]
        return self._random.choice(candidates) if candidates else None

    def _update(self, obj: Json, action: str, *, subresource: str | None = None) -> str:
        self._store.update(obj, subresource=subresource)
        return f"{action} {obj['metadata']['name']}"

    def _delete(self, resource: str, obj: Json, options: Json) -> str:
        kind = resource_named(resource)
        metadata = obj["metadata"]
        record = self._store.record(kind, metadata.get("namespace"), metadata["name"])
        self._store.delete_record(kind, record, options)
        return f"delete {metadata['name']}"


BINDINGS = {"verb": "create", "resource": "pods", "subresource": "binding"}
STATUSES = {"verb": "patch", "resource": "pods", "subresource": "status"}
DELETIONS = {"verb": "delete", "resource": "pods"}
EVENTS = {"verb": "create", "resource": "events"}
READS = {"verb": "get", "resource": "pods"}
WATCHES = {"verb": "watch"}
LISTS = {"verb": "list"}


def _scope_text(target: dict[str, str]) -> str:
    return "of " + (" ".join(target.values()) or "all kinds")


def _is_on(pod: Json, name: str) -> bool:
    return pod["spec"].get("nodeName") == name and pod["status"].get("phase") not in ("Succeeded", "Failed")
