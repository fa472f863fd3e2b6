"""Every set of edits, without regard to what is in the way: is any set of up to so many enough for a pod?

The kinds of edits are those that docs/questions.md lists, but for claims to create, made from the manifests by other
code than the search for fixes, and each as far-reaching as its kind allows: a request for CPU or memory is lowered to
nothing, one for devices to one for each container, a taint tolerated by its key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import comb
from typing import Any

import msgspec

from podium.engine.cluster import Cluster, stays_on_node
from podium.engine.configurations import Configurations
from podium.engine.errors import ManifestError
from podium.engine.manifests import read_manifest
from podium.engine.recorded_questions import RecordedQuestion
from podium.framework.preemption.candidates import Budgets
from podium.objects.core import Pod
from podium.objects.resource_types import NODES, POD_DISRUPTION_BUDGETS, PODS
from podium.plugins import IN_TREE
from tests.parity.cross.drawing import Json, copy_of, of_kind

CORDON = "node.kubernetes.io/unschedulable"
HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ZONES = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)

Edit = tuple[Any, ...]


class EverySet:
    """The sets of edits of one scenario."""

    def __init__(self, scenario: Json, configurations: Configurations) -> None:
        self._pod: Json = copy_of(scenario["pod"])
        self._pod["metadata"].setdefault("namespace", "default")
        question = RecordedQuestion(objects=scenario["objects"], pod=self._pod, config=scenario["config"])
        subject, store = read_manifest(self._pod, PODS), question.store()
        store.put(PODS, subject)
        config = configurations.of(scenario["config"])
        self._cluster = Cluster(config, store, IN_TREE, asked=[subject.key])
        self._asked = subject
        self._nodes: dict[str, Json] = {
            name: {"apiVersion": "v1", "kind": "Node", **msgspec.to_builtins(node)}
            for name, node in store.objects(NODES).items()
        }
        self._budgets = Budgets(store.objects(POD_DISRUPTION_BUDGETS).values(), config.release.preemption)
        self._evictable: dict[str, Pod] = {
            key: pod
            for key, pod in store.objects(PODS).items()
            if pod.node_name
            and key != subject.key
            and not pod.is_terminating
            and not stays_on_node(pod)
            and not self._budgets.forbid(pod)
        }
        affinity = (self._pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
        self._selectors: list[Json] = [affinity[REQUIRED]] if affinity.get(REQUIRED) else []
        self._of_pod = list(self._pod_edits())
        self._of_world = list(self._world_edits(scenario))

    def count(self, size_max: int) -> int:
        """Return the number of sets of at most so many edits."""
        return sum(comb(len(self._of_pod) + len(self._of_world), size) for size in range(size_max + 1))

    def enough(self, size_max: int) -> tuple[Edit, ...] | None:
        """A smallest set of up to so many edits after which the pod fits; None if there is none."""
        for size in range(size_max + 1):
            for of_world in range(size + 1):
                for changes in combinations(self._of_world, of_world):
                    if (world := self._world(changes)) is None:
                        continue
                    for wishes in combinations(self._of_pod, size - of_world):
                        if _fits(world, self._edit_pod(wishes)):
                            return (*changes, *wishes)
        return None

    # ------------------------------------------------------------ what may be edited

    def _pod_edits(self) -> Iterator[Edit]:
        spec = self._pod["spec"]
        for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
            if constraint["whenUnsatisfiable"] == "DoNotSchedule":
                yield "spread", index
                yield "skew", index
        keys = {taint["key"] for node in self._nodes.values() for taint in node.get("spec", {}).get("taints") or ()}
        if any(node.get("spec", {}).get("unschedulable") for node in self._nodes.values()):
            keys.add(CORDON)
        yield from (("tolerate", key) for key in sorted(keys))
        resources = set(spec.get("resources", {}).get("requests") or {})
        for kind in ("containers", "initContainers"):
            for at, container in enumerate(spec.get(kind) or ()):
                resources |= set(container.get("resources", {}).get("requests") or {})
                for index, port in enumerate(container.get("ports") or ()):
                    if port.get("hostPort"):
                        yield "port", kind, at, index
        yield from (("request", name) for name in sorted(resources))
        yield from (("selector", key) for key in spec.get("nodeSelector") or {})
        if self._selectors:
            yield ("node affinity",)
        for field in ("podAffinity", "podAntiAffinity"):
            terms = ((spec.get("affinity") or {}).get(field) or {}).get(REQUIRED) or ()
            yield from ((field, index) for index, _ in enumerate(terms))
        if spec.get("nodeName"):
            yield ("node name",)

    def _world_edits(self, scenario: Json) -> Iterator[Edit]:
        labels = set(self._labels(scenario))
        for name, node in self._nodes.items():
            spec = node.get("spec", {})
            taints = {taint["key"] for taint in spec.get("taints") or ()}
            if spec.get("unschedulable"):
                yield "uncordon", name
                taints.discard(CORDON)
            yield from (("untaint", name, key) for key in sorted(taints))
            node_labels = node["metadata"].get("labels") or {}
            for key, value in sorted(labels, key=repr):
                if node_labels.get(key) != value:
                    yield "label", name, key, value
            yield "add", name
        yield from (("evict", key) for key in self._evictable)

    def _labels(self, scenario: Json) -> Iterator[tuple[str, str | None]]:
        """Labels that a selector may ask for, and those that it may exclude."""
        yield from (self._pod["spec"].get("nodeSelector") or {}).items()
        selectors = list(self._selectors)
        for volume in of_kind(scenario["objects"], "PersistentVolume"):
            required_selector = (volume["spec"].get("nodeAffinity") or {}).get("required")
            selectors += [required_selector] if required_selector else []
            zones = {key: label for key, label in (volume["metadata"].get("labels") or {}).items() if key in ZONES}
            yield from ((key, zone) for key, zone_value in zones.items() for zone in zone_value.split("__"))
        for profile in (scenario["config"] or {}).get("profiles") or ():
            for entry in profile.get("pluginConfig") or ():
                added_affinity = (entry.get("args") or {}).get("addedAffinity") or {}
                selectors += [added_affinity[REQUIRED]] if added_affinity.get(REQUIRED) else []
        for selector in selectors:
            for term in selector.get("nodeSelectorTerms") or ():
                for entry in term.get("matchExpressions") or ():
                    yield from ((entry["key"], value) for value in _values(entry))

    # ------------------------------------------------------------ edited objects

    def _edit_pod(self, wishes: Sequence[Edit]) -> Json:
        pod: Json = copy_of(self._pod)
        spec = pod["spec"]
        # Of a list the last is removed first, when everything else is done.
        for kind, *arguments in sorted(wishes, key=lambda wish: (wish[0] == "skew", repr(wish)), reverse=True):
            if kind == "spread":
                del spec["topologySpreadConstraints"][arguments[0]]
            elif kind == "tolerate":
                spec["tolerations"] = [*(spec.get("tolerations") or ()), {"key": arguments[0], "operator": "Exists"}]
            elif kind == "port":
                port = spec[arguments[0]][arguments[1]]["ports"][arguments[2]]
                port["hostPort"] = 61_000 + 100 * arguments[1] + arguments[2]
            elif kind == "request":
                _request_least(spec, arguments[0])
            elif kind == "selector":
                del spec["nodeSelector"][arguments[0]]
            elif kind == "node affinity":
                del spec["affinity"]["nodeAffinity"][REQUIRED]
            elif kind in ("podAffinity", "podAntiAffinity"):
                del spec["affinity"][kind][REQUIRED][arguments[0]]
            elif kind == "node name":
                del spec["nodeName"]
            else:
                spec["topologySpreadConstraints"][arguments[0]]["maxSkew"] = 2**31 - 1
        return pod

    def _world(self, changes: Sequence[Edit]) -> Cluster | None:
        """The cluster after these edits; None if the budgets do not allow them all."""
        victims = [self._evictable[key] for kind, key, *_ in changes if kind == "evict"]
        if self._budgets.split(victims)[0]:
            return None
        if not changes:
            return self._cluster
        world = self._cluster.fork()
        nodes: dict[str, Json] = {}
        for number, (kind, name, *arguments) in enumerate(changes):
            if kind == "evict":
                pod = self._evictable[name].metadata
                world.remove("Pod", pod.name, pod.namespace)
            elif kind == "add":
                world.add(self._new_node(self._nodes[name], f"{name}-like-{number}"))
            else:
                node = nodes.setdefault(name, copy_of(self._nodes[name]))
                _change(node, kind, *arguments)
        for node in nodes.values():
            world.replace(node)
        return world

    def _new_node(self, like: Json, name: str) -> Json:
        labels = {**(like["metadata"].get("labels") or {}), HOSTNAME: name}
        taints = [taint for taint in like.get("spec", {}).get("taints") or () if taint["key"] != CORDON]
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": taints},
            "status": {"allocatable": like["status"].get("allocatable") or like["status"].get("capacity") or {}},
        }


def _values(requirement: Mapping[str, Any]) -> Iterator[str | None]:
    operator, values = requirement["operator"], requirement.get("values") or [""]
    if operator == "In":
        yield from values
    elif operator == "Exists":
        yield "true"
    elif operator in ("Gt", "Lt"):
        if values[0].lstrip("-").isdigit():
            yield str(int(values[0]) + (1 if operator == "Gt" else -1))
    else:
        yield None


def _change(node: Json, kind: str, *arguments: Any) -> None:
    spec, meta = node.setdefault("spec", {}), node["metadata"]
    if kind == "label":
        key, value = arguments
        meta["labels"] = {**(meta.get("labels") or {}), key: value}
        if value is None:
            del meta["labels"][key]
        return
    key = arguments[0] if kind == "untaint" else CORDON
    spec["taints"] = [taint for taint in spec.get("taints") or () if taint["key"] != key]
    if kind == "uncordon":
        spec["unschedulable"] = False


def _request_least(spec: Json, resource: str) -> None:
    least = "0" if resource in ("cpu", "memory", "ephemeral-storage") else "1"
    for part in (spec, *(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        for amounts in (part.get("resources") or {}).values():
            if isinstance(amounts, dict) and str(amounts.get(resource, "0")) != "0":
                amounts[resource] = least


def _fits(world: Cluster, pod: Json) -> bool:
    try:
        return world.evaluate(pod).node is not None
    except ManifestError:
        return False
