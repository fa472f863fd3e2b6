"""The steps of a what-if question, and reading them from a document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec

from podium.config import KubeSchedulerConfiguration
from podium.engine.admission import Admission
from podium.engine.cluster import read_object
from podium.engine.errors import ClusterError, ManifestError
from podium.engine.files import Found
from podium.engine.manifests import Manifest, resource_of
from podium.engine.templates import REPLICAS_MAX, pod_like, replicas_of, template_of
from podium.insight.cluster import Cluster
from podium.insight.loading import node_named
from podium.insight.node_edits import added_node
from podium.insight.what_if import Trial
from podium.lib.nearest import nearest
from podium.objects.core import Pod
from podium.objects.resource_types import ALL, NODES, PODS, REPLICA_SETS

NODES_MAX: Final = 10_000
"""How many nodes one step may add."""

_KINDS = {each.kind.lower(): each for each in ALL}
_ABOVE = {"ReplicaSet": "Deployment", "Job": "CronJob"}


class Step(Protocol):
    """One change of the cluster in question."""

    @property
    def text(self) -> str:
        """What it does, in words."""

    def carry_out(self, trial: Trial) -> None:
        """Change the trial's world.

        Raises:
            ClusterError: it is not possible in this cluster.
        """


@dataclass(frozen=True, slots=True)
class Drain:
    """Cordon a node and move its pods."""

    node: str

    @property
    def text(self) -> str:
        """What it does, in words."""
        return f"drain {self.node}"

    def carry_out(self, trial: Trial) -> None:
        """Move the pods. Raises: ClusterError: there is no such node."""
        node_named(trial.world, self.node)
        trial.note_all(trial.world.drain(self.node))


@dataclass(frozen=True, slots=True)
class AddNodes:
    """Add empty nodes with the labels, taints and resources of another one."""

    count: int
    like: str

    @property
    def text(self) -> str:
        """What it does, in words."""
        return f"add {self.count} node(s) like {self.like}"

    def carry_out(self, trial: Trial) -> None:
        """Add the nodes. Raises: ClusterError: there is no such node."""
        like = node_named(trial.world, self.like)
        for _ in range(self.count):
            _, edit = added_node(like, trial.world.store.objects(NODES).keys())
            assert edit.manifest is not None
            trial.world.add(edit.manifest)


@dataclass(frozen=True, slots=True)
class Apply:
    """Add objects, or replace those of the same name. A workload's pods are created from its template."""

    name: str
    objects: Sequence[Found]

    @property
    def text(self) -> str:
        """What it does, in words."""
        return f"apply {self.name}"

    def carry_out(self, trial: Trial) -> None:
        """Put the objects. Raises: ManifestError: one of them cannot be read, or there are none."""
        if all(resource_of(each.manifest) is None and template_of(each.manifest) is None for each in self.objects):
            kinds = ", ".join(dict.fromkeys(str(each.manifest["kind"]) for each in self.objects)) or "nothing"
            raise ManifestError(f"the file holds nothing that a scheduler reads: it holds {kinds}")
        admission = Admission(each.manifest for each in self.objects)
        for found in self.objects:
            resource = resource_of(found.manifest)
            if (
                resource is not None
                and resource is not REPLICA_SETS
                and template_of(found.manifest) in (None, found.manifest)
            ):
                item = read_object(found, resource, admission)
                known = trial.world.store.get(resource, item.key)
                if known is None:
                    trial.world.add(found.manifest)
                else:
                    trial.world.replace(found.manifest)
            elif (template := template_of(found.manifest)) is not None:
                self._roll_out(trial, found, pod_like(found.manifest, template), admission)

    def _roll_out(self, trial: Trial, found: Found, like: Manifest, admission: Admission) -> None:
        """Replace the pods of the workload by those that its template makes."""
        manifest = found.manifest
        pod: Pod = read_object(Found(like, found.where), PODS, admission)
        namespace, name = pod.metadata.namespace, pod.metadata.name
        old = pods_of(trial.world, namespace, manifest["kind"], name)
        count = replicas_of(found, default=len(old) or 1)
        for each in old:
            trial.world.remove("Pod", each.metadata.name, namespace)
        owner = {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "name": name, "controller": True}
        for number in range(count):
            made = {**like["metadata"], "name": f"{name}-{number}", "ownerReferences": [{**owner, "uid": name}]}
            trial.world.put_pending(read_object(Found({**like, "metadata": made}, found.where), PODS, admission))


@dataclass(frozen=True, slots=True)
class Scale:
    """Give a workload so many pods, by copying one of its pods or deleting some."""

    namespace: str
    kind: str
    name: str
    replicas: int

    @property
    def text(self) -> str:
        """What it does, in words."""
        return f"scale {self.namespace}/{self.kind}/{self.name} to {self.replicas}"

    def carry_out(self, trial: Trial) -> None:
        """Add or delete pods. Raises: ClusterError: the workload has no pod."""
        world = trial.world
        pods = pods_of(world, self.namespace, self.kind, self.name)
        if not pods:
            what = f"{self.namespace}/{self.kind}/{self.name}"
            advice = nearest(what, _workloads(world)) or "; add it with an apply step"
            raise ClusterError(f"{what} has no pod here{advice}")
        names = {each.metadata.name for each in pods}
        fresh = (name for number in range(self.replicas + 1) if (name := f"{self.name}-scaled-{number}") not in names)
        for name in list(fresh)[: max(self.replicas - len(pods), 0)]:
            meta = msgspec.structs.replace(pods[0].metadata, name=name, uid=f"Pod/{self.namespace}/{name}")
            world.put_pending(Pod(metadata=meta, spec=pods[0].spec))
        # As a ReplicaSet does: pending pods go first, then the youngest.
        oldest = sorted(pods, key=lambda pod: (not pod.node_name, pod.metadata.creation_timestamp or "", pod.key))
        for each in oldest[self.replicas :]:
            world.remove("Pod", each.metadata.name, each.metadata.namespace)


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete an object; with a node its pods, which come back elsewhere, with a workload its pods for good."""

    kind: str
    namespace: str
    name: str

    @property
    def text(self) -> str:
        """What it does, in words."""
        return f"remove {self.kind}/{f'{self.namespace}/' if self.namespace else ''}{self.name}"

    def carry_out(self, trial: Trial) -> None:
        """Delete it. Raises: ClusterError: there is none."""
        world = trial.world
        resource = _KINDS.get(self.kind.lower())
        pods = pods_of(world, self.namespace or "default", self.kind, self.name)
        if resource is NODES:
            node_named(world, self.name)
            trial.evict([pod for pod in world.pods if pod.node_name == self.name])
        for each in pods:
            world.remove("Pod", each.metadata.name, each.metadata.namespace)
        if resource is None and not pods:
            raise ClusterError(f"there is no {self.kind} {self.name} with pods{nearest(self.name, _workloads(world))}")
        if resource is not None and not (pods and resource is REPLICA_SETS):
            world.remove(resource.kind, self.name, self.namespace)


@dataclass(frozen=True, slots=True)
class UseProfiles:
    """Let another configuration decide from here on."""

    name: str
    config: KubeSchedulerConfiguration
    rebuilt: Callable[[Cluster, KubeSchedulerConfiguration], Cluster]

    @property
    def text(self) -> str:
        """What it does, in words."""
        return f"schedule by {self.name}"

    def carry_out(self, trial: Trial) -> None:
        """Build the cluster again."""
        trial.world = self.rebuilt(trial.world, self.config)


def pods_of(cluster: Cluster, namespace: str, kind: str, name: str) -> list[Pod]:
    """The pods whose controller is that workload, or a ReplicaSet or Job of it."""
    wanted = kind.lower(), name
    return [
        pod
        for pod in cluster.pods
        if pod.metadata.namespace == namespace
        and any((above.lower(), called) == wanted for above, called in _controllers(cluster, pod))
    ]


def _controllers(cluster: Cluster, pod: Pod) -> Iterator[tuple[str, str]]:
    """Kind and name of what controls the pod, and of what controls that."""
    owner = pod.metadata.controller
    if owner is None:
        return
    yield owner.kind, owner.name
    replica_set = cluster.store.get(REPLICA_SETS, f"{pod.metadata.namespace}/{owner.name}")
    above = replica_set.metadata.controller if replica_set is not None else None
    if above is not None:
        yield above.kind, above.name
    elif owner.kind in _ABOVE:
        # Without the ReplicaSet or Job, its name says whose it is.
        yield _ABOVE[owner.kind], owner.name.rpartition("-")[0]


def _workloads(cluster: Cluster) -> set[str]:
    """All workloads that have pods, as NAMESPACE/KIND/NAME."""
    return {
        f"{pod.metadata.namespace}/{kind}/{name}" for pod in cluster.pods for kind, name in _controllers(cluster, pod)
    }


def scale_of(text: str) -> Scale:
    """`NS/KIND/NAME=N`. Raises: ClusterError: it is something else."""
    what, equals, count = text.partition("=")
    parts = what.split("/")
    replicas = number_in(count, REPLICAS_MAX)
    if not equals or len(parts) != 3 or not all(parts) or replicas is None:
        raise ClusterError(
            "scale: expected NAMESPACE/KIND/NAME=N, such as shop/Deployment/web=5, "
            f"with N up to {REPLICAS_MAX:,}, got {text!r:.60}"
        )
    namespace, kind, name = parts
    return Scale(namespace, kind, name, replicas)


def number_in(text: str, most: int) -> int | None:
    """The number; None if it is none, or more than `most`."""
    is_number = text.isascii() and text.isdecimal() and len(text) < 10 and int(text) <= most
    return int(text) if is_number else None


def remove_of(text: str) -> Remove:
    """`KIND/NAME` or `KIND/NS/NAME`. Raises: ClusterError: it is something else."""
    parts = text.split("/")
    if len(parts) not in (2, 3) or not all(parts):
        raise ClusterError(f"remove: expected KIND/NAME or KIND/NAMESPACE/NAME, such as Node/n1, got {text!r}")
    return Remove(parts[0], parts[1] if len(parts) == 3 else "", parts[-1])


def add_nodes_of(value: Any) -> AddNodes:
    """`{count, like}`. Raises: ClusterError: it is something else."""
    if isinstance(value, Mapping) and value.keys() <= {"count", "like"} and isinstance(value.get("like"), str):
        count = value.get("count", 1)
        if isinstance(count, int) and not isinstance(count, bool) and 0 < count <= NODES_MAX:
            return AddNodes(count, value["like"])
    raise ClusterError(f"addNodes: expected a positive count up to {NODES_MAX:,} and the name of a node in like")


def read_steps(document: Any, others: Mapping[str, Callable[[str], Step]]) -> list[Step]:
    """The steps of a document: `steps`, a list of objects with one member each.

    Args:
        others: the steps that name a file.

    Raises:
        ClusterError: a step cannot be read.
    """
    steps = document.get("steps") if isinstance(document, Mapping) else document
    if not isinstance(steps, Sequence) or isinstance(steps, str):
        raise ClusterError("expected a list of steps, or an object with steps")
    if not steps:
        raise ClusterError("there are no steps")
    found = []
    known: dict[str, Callable[[Any], Step]] = {
        "drain": Drain,
        "addNodes": add_nodes_of,
        "scale": scale_of,
        "remove": remove_of,
        **others,
    }
    for number, step in enumerate(steps):
        if not isinstance(step, Mapping) or len(step) != 1 or next(iter(step)) not in known:
            raise ClusterError(f"steps[{number}]: expected one of {', '.join(known)}")
        ((name, value),) = step.items()
        if name != "addNodes" and not isinstance(value, str):
            raise ClusterError(f"steps[{number}].{name}: expected a string")
        try:
            found.append(known[name](value))
        except ClusterError as error:
            raise ClusterError(f"steps[{number}].{error}") from error
    return found


def pods_applied(steps: Iterable[Step]) -> list[Found]:
    """The pods in the files that are applied, and one of each workload."""
    return [
        found if template is found.manifest else Found(pod_like(found.manifest, template), found.where)
        for step in steps
        if isinstance(step, Apply)
        for found in step.objects
        if (template := template_of(found.manifest)) is not None
    ]


def carried_out(cluster: Cluster, steps: Iterable[Step]) -> Trial:
    """The trial after these steps. The cluster itself is not changed.

    Raises:
        ClusterError: a step is not possible. The message names it.
        ScheduleError: an attempt failed.
    """
    trial = Trial(cluster)
    for step in steps:
        try:
            step.carry_out(trial)
        except ManifestError as error:
            raise ClusterError(f"{step.text}: {error}") from error
        trial.settle()
    return trial
