"""What the sandbox makes of the question of a workload: its store and stand-in controllers, without a scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from fractions import Fraction
from functools import partial
from typing import Any

from podium.sandbox.amounts import pod_amounts
from podium.sandbox.controllers import Controllers
from podium.sandbox.errors import ApiError
from podium.sandbox.pods import evict
from podium.sandbox.quantities import parse_quantity
from podium.sandbox.store import Store
from tests.parity.workloads.naming import Json, Naming

_ROUNDS_MAX = 200
_BACKOFF_S = 10
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NODE_LOST = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("not-ready", "unreachable")
]


class Sandboxed:
    """A sandbox with the cluster of a question, after its step.

    Attributes:
        refused: what the API server refused of the step, by kind and name.
    """

    def __init__(self, question: Json) -> None:
        self._now = datetime.fromisoformat(question["at"])
        self._timers: list[tuple[datetime, Callable[[], None]]] = []
        self.store = Store(now=lambda: self._now)
        self._question = question
        self.refused: dict[str, str] = {}
        for item in question["objects"]:
            self.store.put_raw(item)
        self._before = {pod["metadata"]["uid"] for pod in self.store.list("pods")}
        self._controllers = Controllers(self.store, self._call_later)
        self._take_step(question["step"])
        self.settle()
        self._preempt(question["expect"]["preempted"])
        self.settle()

    def _call_later(self, delay_s: float, function: Callable[..., None], *arguments: Any) -> None:
        self._timers.append((self._now + timedelta(seconds=delay_s), partial(function, *arguments)))

    def settle(self) -> None:
        """Work until nothing changes any more, with time for the first backoff of a Job."""
        self._work()
        self._now += timedelta(seconds=_BACKOFF_S)
        for time, function in self._timers:
            if time <= self._now:
                function()
        self._work()

    def _work(self) -> None:
        """Work until nothing changes any more. Pods that are being deleted go at once."""
        for _ in range(_ROUNDS_MAX):
            revision = self.store.revision
            self._controllers.work()
            for pod in self.store.list("pods"):
                if "deletionTimestamp" in pod["metadata"]:
                    metadata = pod["metadata"]
                    self.store.delete("pods", metadata["name"], metadata["namespace"], grace_period_s=0)
            if self.store.revision == revision:
                return
        raise AssertionError("the controllers come to no end")

    def new_pods(self) -> dict[str, list[Json]]:
        """The pods that were created by the step, by workload."""
        naming = self._naming()
        by_workload: dict[str, list[Json]] = {}
        for pod in self.store.list("pods"):
            if pod["metadata"]["uid"] not in self._before:
                by_workload.setdefault(naming.workload_of(pod), []).append(pod)
        return by_workload

    def refusals_of_controllers(self) -> list[str]:
        """Why ReplicaSets could not create pods, and what the store says to a Job that tries."""
        messages = [
            condition["message"]
            for replica_set in self.store.list("replicasets")
            for condition in (replica_set.get("status") or {}).get("conditions") or ()
        ]
        for job in self.store.list("jobs"):
            template = job["spec"]["template"]
            metadata = {**template["metadata"], "generateName": f"{job['metadata']['name']}-"}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
            try:
                with self.store.dry_run():
                    self.store.create(pod, namespace=job["metadata"]["namespace"])
            except ApiError as error:
                messages.append(error.message)
        return messages

    def _preempt(self, victims: Json) -> None:
        """Delete the pods that the scheduler preempted: their workloads create others."""
        naming = self._naming()
        for victim, count in victims.items():
            workload, _, node = victim.partition(" on ")
            pods = [pod for pod in self._pods_on(node) if naming.workload_of(pod) == workload]
            for pod in pods[:count]:
                self.store.delete("pods", pod["metadata"]["name"], pod["metadata"]["namespace"], grace_period_s=0)

    def _naming(self) -> Naming:
        objects_applied = self._question["step"].get("apply", ())
        return Naming([*self._question["objects"], *objects_applied, *self._owners(), *self.store.list("pods")])

    def _owners(self) -> Iterator[Json]:
        for plural in ("deployments", "replicasets", "statefulsets", "daemonsets", "jobs"):
            yield from self.store.list(plural)

    def _take_step(self, step: Json) -> None:
        ((action, value),) = step.items()
        if action == "apply":
            for item in value:
                self._apply(item)
        elif action == "scale":
            field = "parallelism" if value["kind"] == "Job" else "replicas"
            patch = {"spec": {field: value["replicas"]}}
            self.store.patch(value["kind"], value["name"], patch, value["namespace"])
        elif action == "drain":
            self.store.patch("nodes", value, {"spec": {"unschedulable": True}})
            self._evict(value)
        else:
            self.store.delete("nodes", value)
            for pod in self._pods_on(value):
                self.store.delete("pods", pod["metadata"]["name"], pod["metadata"]["namespace"], grace_period_s=0)

    def _apply(self, item: Json) -> None:
        metadata = item["metadata"]
        try:
            if any(namesake["metadata"]["name"] == metadata.get("name") for namesake in self._namesakes(item)):
                patch = {**item, "metadata": {"labels": metadata.get("labels")}}
                self.store.patch(item["kind"], metadata["name"], patch, metadata.get("namespace"))
            else:
                self.store.create(item)
        except ApiError as error:
            self.refused[f"{item['kind']}/{metadata.get('name')}"] = error.message

    def _namesakes(self, item: Json) -> list[Json]:
        return self.store.list(item["kind"], item["metadata"].get("namespace"))

    def _evict(self, node: str) -> None:
        for pod in self._pods_on(node):
            metadata = pod["metadata"]
            owners = metadata.get("ownerReferences") or ()
            if not any(owner["kind"] == "DaemonSet" for owner in owners):
                try:
                    evict(self.store, metadata["namespace"], metadata["name"], {})
                except ApiError:
                    continue

    def _pods_on(self, node: str) -> list[Json]:
        return [pod for pod in self.store.list("pods") if pod["spec"].get("nodeName") == node]


def admitted_of(pod: Json) -> Json:
    """Return a pod after admission as it is recorded: without what every pod gets."""
    spec = pod["spec"]
    admitted_fields: Json = {
        "containers": [container["resources"] for container in spec["containers"]],
        "tolerations": [toleration for toleration in spec["tolerations"] if toleration not in _NODE_LOST],
        **{name: spec.get(name) for name in _FIELDS},
        "affinity": _affinity_of_template(spec.get("affinity") or {}),
        "claims": [
            volume["persistentVolumeClaim"]["claimName"]
            for volume in spec.get("volumes") or ()
            if "persistentVolumeClaim" in volume and not _is_of_stateful_set(pod)
        ],
    }
    return {
        "requests": _totals(spec),
        **{name: value for name, value in admitted_fields.items() if value not in (None, [], {})},
    }


def _is_of_stateful_set(pod: Json) -> bool:
    return any(owner["kind"] == "StatefulSet" for owner in pod["metadata"].get("ownerReferences") or ())


def _affinity_of_template(affinity: Json) -> Json:
    """The affinity without the part for nodes if that aims a daemon at its node, which is not recorded."""
    required_terms = (affinity.get("nodeAffinity") or {}).get(_REQUIRED) or {}
    if not any("matchFields" in term for term in required_terms.get("nodeSelectorTerms") or ()):
        return affinity
    return {name: value for name, value in affinity.items() if name != "nodeAffinity"}


def without_hash(value: Any) -> Any:
    """Selectors without the values of requirements on the hash of a template, which differs."""
    if isinstance(value, list):
        return [without_hash(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("key") == "pod-template-hash":
        return {**value, "values": ["hash"]}
    return {name: without_hash(item) for name, item in value.items()}


_FIELDS = (
    "priority",
    "preemptionPolicy",
    "priorityClassName",
    "runtimeClassName",
    "overhead",
    "nodeSelector",
    "affinity",
    "topologySpreadConstraints",
    "resources",
)


def _totals(spec: Json) -> Json:
    totals = {name: parse_quantity(amount) for name, amount in pod_amounts(spec, "requests").items()}
    for name, amount in (spec.get("overhead") or {}).items():
        totals[name] = totals.get(name, Fraction(0)) + parse_quantity(amount)
    return {name: int(amount * (1000 if name == "cpu" else 1)) for name, amount in totals.items()}
