"""Defines the steps of a what-if question, and reads them from a document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from podium.config import KubeSchedulerConfiguration
from podium.engine.derivation.control_objects import is_control_kind, key_in, mapping_at, namespace_of
from podium.engine.derivation.manager import KINDS
from podium.engine.derivation.pods import named_pod, pod_of, sample_pod
from podium.engine.derivation.workload_kinds import (
    KINDS_WITH_TEMPLATES,
    REPLICAS_MAX,
    replicas_of,
    templates_in,
    unknown_place_advice,
)
from podium.engine.errors import ClusterError, ManifestError
from podium.engine.files import LocatedManifest
from podium.engine.manifests import Manifest, is_namespaced, resource_of
from podium.framework.contract.status import ScheduleError
from podium.insight.cluster import Cluster
from podium.insight.loading import node_named, pod_named
from podium.insight.new_nodes import daemons_alike, devices_alike
from podium.insight.node_edits import added_node
from podium.insight.trial import Trial
from podium.lib.nearest import nearest
from podium.lib.plurals import count_of
from podium.lib.time_limit import UNLIMITED, TimeIsUpError, TimeLimit
from podium.objects.core import Pod
from podium.objects.custom_resources import all_resources
from podium.objects.resource_types import NODES, POD_GROUPS, PODS, REPLICA_SETS, ResourceType

NODES_MAX: Final = 10_000
"""The maximum number of nodes that one step may add."""

_WORKLOADS = {kind.lower(): kind for kind in KINDS}
_ABOVE = {"ReplicaSet": "Deployment", "Job": "CronJob"}


class Step(Protocol):
    """One change of the cluster."""

    @property
    def text(self) -> str:
        """Describes the step."""

    def carry_out(self, trial: Trial) -> None:
        """Change the trial's world.

        Raises:
            ClusterError: the step is not possible in this cluster.
        """


@dataclass(frozen=True, slots=True)
class Drain:
    """Cordon a node and evict its pods."""

    node: str

    @property
    def text(self) -> str:
        """Describes the step."""
        return f"drain {self.node}"

    def carry_out(self, trial: Trial) -> None:
        """Evict the pods. Raises: ClusterError: there is no such node."""
        trial.drain(node_named(trial.world, self.node))


@dataclass(frozen=True, slots=True)
class AddNodes:
    """Add nodes with the labels, taints and resources of another one, on which only DaemonSets run."""

    count: int
    like: str

    @property
    def text(self) -> str:
        """Describes the step."""
        return f"add {count_of(self.count, 'node')} like {self.like}"

    def carry_out(self, trial: Trial) -> None:
        """Add the nodes. Raises: ClusterError: there is no such node."""
        like = node_named(trial.world, self.like)
        for _ in range(self.count):
            new, edit = added_node(like, trial.world.store.objects(NODES).keys())
            assert edit.manifest is not None
            for devices in devices_alike(trial.world, new.name, like):
                trial.world.add(devices)
            trial.world.add(edit.manifest)
            for daemon in daemons_alike(trial.world, new.name, like):
                trial.world.put_pending(daemon)
        trial.on_nodes()


@dataclass(frozen=True, slots=True)
class Apply:
    """Create objects, or apply manifests to the existing ones. Controllers create the pods of workloads."""

    name: str
    objects: Sequence[LocatedManifest]

    @property
    def text(self) -> str:
        """Describes the step."""
        return f"apply {self.name}"

    def carry_out(self, trial: Trial) -> None:
        """Apply the objects in order.

        Raises:
            ManifestError: an object cannot be read, the API server refuses it, or there are no objects.
        """
        # A step without effect would look like an answer: nothing changes.
        if not any(_is_read(item.manifest) for item in self.objects):
            kinds = ", ".join(dict.fromkeys(str(item.manifest["kind"]) for item in self.objects)) or "nothing"
            advice = unknown_place_advice(self.objects)
            raise ManifestError(f"the file holds nothing that a scheduler reads: it holds {kinds}{advice}")
        for number, item in enumerate(self.objects):
            try:
                self._apply(trial, item, number)
            except ManifestError as error:
                source = "" if str(error).startswith(item.location) else f"{item.location}: "
                raise ManifestError(f"{source}{error}") from None

    def _apply(self, trial: Trial, item: LocatedManifest, number: int) -> None:
        manifest, world = item.manifest, trial.world
        resource = resource_of(manifest)
        _demand_valid(manifest)
        if resource is PODS:
            _apply_pod(trial, named_pod(manifest, number))
            return
        if is_control_kind(manifest):
            for template in templates_in(manifest):
                replicas_of(item, template, default=1)
                world.read_pod(sample_pod(manifest, template.content))
            trial.controllers.apply(manifest)
        elif templates_in(manifest):
            # Its controller is unknown, so podium creates as many pods as the manifest says.
            trial.world.admission.objects.put(manifest)
            _create_pods(trial, item)
        old = new = None
        if resource is not None:
            _, new = world.read(manifest)
            old = world.store.get(resource, new.key)
            if old is None:
                world.create(resource, new)
            else:
                world.put(resource, new)
        trial.on_objects(resource, old, new)


def _is_read(manifest: Manifest) -> bool:
    return resource_of(manifest) is not None or bool(templates_in(manifest)) or is_control_kind(manifest)


def _demand_valid(manifest: Manifest) -> None:
    """Raise ManifestError if the API server would refuse what decides how many pods there are, or start together."""
    name = f"{manifest.get('kind')} {namespace_of(manifest)}/{mapping_at(manifest, 'metadata').get('name') or ''}"
    if is_control_kind(manifest) and manifest.get("kind") in KINDS and not templates_in(manifest):
        raise ManifestError(f"{name}: spec.template: required")
    if resource_of(manifest) is POD_GROUPS:
        gang = mapping_at(manifest, "spec", "schedulingPolicy", "gang")
        if isinstance(count := gang.get("minCount"), int) and count < 1:
            raise ManifestError(
                f"{name}: spec.schedulingPolicy.gang.minCount: {count} is not a positive number of pods"
            )


def _apply_pod(trial: Trial, manifest: Manifest) -> None:
    """Create the pod, or replace the one of its name, because most of a pod's spec is immutable."""
    world = trial.world
    key = f"{namespace_of(manifest)}/{mapping_at(manifest, 'metadata').get('name')}"
    existing = world.store.get(PODS, key)
    if existing is not None:
        # Not graceful, since the new pod has the same name.
        trial.delete(existing, is_replaced=False, is_graceful=False)
    trial.create(manifest)


def _create_pods(trial: Trial, item: LocatedManifest) -> None:
    """Create the pods of a workload of an unknown kind, in place of those that it has."""
    manifest = item.manifest
    name, kind = str(mapping_at(manifest, "metadata").get("name") or ""), str(manifest["kind"])
    old = pods_of(trial.world, namespace_of(manifest), kind, name)
    for pod in old:
        # The new pods may have the same names.
        trial.delete(pod, is_replaced=False, is_graceful=False)
    templates = templates_in(manifest)
    for template in templates:
        prefix = f"{name}-{template.name}" if template.name and len(templates) > 1 else name
        for number in range(replicas_of(item, template, default=len(old) or 1)):
            trial.create(pod_of(manifest, template.content, f"{prefix}-{number}"))


@dataclass(frozen=True, slots=True)
class Scale:
    """Set the number of replicas of a workload."""

    namespace: str
    kind: str
    name: str
    replicas: int

    @property
    def text(self) -> str:
        """Describes the step."""
        return f"scale {self.namespace}/{self.kind}/{self.name} to {self.replicas}"

    def carry_out(self, trial: Trial) -> None:
        """Change the number of replicas. Raises: ClusterError: there is no such workload."""
        kind = _WORKLOADS.get(self.kind.lower(), self.kind)
        if trial.controllers.scale(kind, f"{self.namespace}/{self.name}", self.replicas):
            return
        pods = pods_of(trial.world, self.namespace, kind, self.name)
        if pods:
            trial.scale_unknown(pods, self.replicas)
        else:
            self._create_first(trial)

    def _create_first(self, trial: Trial) -> None:
        """Create the pods of a workload whose controller is not known, and that has none yet."""
        kind = KINDS_WITH_TEMPLATES.get(self.kind.lower(), self.kind)
        workload = trial.world.admission.objects.get(kind, self.name, self.namespace)
        if workload is None:
            target = f"{self.namespace}/{self.kind}/{self.name}"
            advice = nearest(target, trial.controllers.workloads()) or "; add it with an apply step"
            raise ClusterError(f"there is no workload {target} here{advice}")
        templates = templates_in(workload)
        # Only `replicas` is what people mean by scaling.
        if [template.count_field for template in templates] != ["replicas"]:
            raise ClusterError(f"a {kind} has no number of replicas; change its manifest, and apply that")
        for number in range(self.replicas):
            trial.create(pod_of(workload, templates[0].content, f"{self.name}-{number}"))


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete an object. A node's pods are deleted with it and created again; a workload's pods are deleted for good."""

    kind: str
    namespace: str
    name: str

    @property
    def text(self) -> str:
        """Describes the step."""
        return f"remove {self.kind}/{f'{self.namespace}/' if self.namespace else ''}{self.name}"

    def carry_out(self, trial: Trial) -> None:
        """Delete the object. Raises: ClusterError: it does not exist."""
        world = trial.world
        kinds = {resource.kind.lower(): resource for resource in reversed(all_resources())}
        resource = kinds.get(self.kind.lower())
        kind = _WORKLOADS.get(self.kind.lower(), self.kind)
        namespace = self.namespace or "default"
        if resource is NODES:
            trial.remove_node(node_named(world, self.name))
            return
        if resource is PODS:
            trial.delete(pod_named(world, self.name, namespace))
            return
        pods_owned = trial.controllers.remove(kind, key_in(kind, namespace, self.name))
        pods = pods_of(world, namespace, kind, self.name) if pods_owned is None else pods_owned
        for pod in pods:
            trial.delete(pod, is_replaced=False)
        if resource is None and pods_owned is None and not pods:
            workloads = trial.controllers.workloads()
            raise ClusterError(f"there is no {self.kind} {self.name} with pods{nearest(self.name, workloads)}")
        # A workload is in two places: what plugins read of it, and what its controller reads.
        old = None if resource is None else world.store.get(resource, _key_in(resource, namespace, self.name))
        if resource is not None and (old is not None or (pods_owned is None and not pods)):
            world.remove(resource.kind, self.name, self.namespace)
        trial.on_objects(resource, old, None)


def _key_in(resource: ResourceType[Any], namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if is_namespaced(resource) else name


@dataclass(frozen=True, slots=True)
class UseProfiles:
    """Switch to another configuration for the rest of the steps."""

    name: str
    config: KubeSchedulerConfiguration
    rebuilt: Callable[[Cluster, KubeSchedulerConfiguration], Cluster]

    @property
    def text(self) -> str:
        """Describes the step."""
        return f"schedule by {self.name}"

    def carry_out(self, trial: Trial) -> None:
        """Build the cluster again with the configuration."""
        trial.world = self.rebuilt(trial.world, self.config)
        trial.on_nodes()


def pods_of(cluster: Cluster, namespace: str, kind: str, name: str) -> list[Pod]:
    """Return the pods whose controller is that workload, or a ReplicaSet or Job of it."""
    workload = kind.lower(), name
    return [
        pod
        for pod in cluster.pods
        if pod.metadata.namespace == namespace
        and any((above.lower(), called) == workload for above, called in _controllers(cluster, pod))
    ]


def _controllers(cluster: Cluster, pod: Pod) -> Iterator[tuple[str, str]]:
    """Yield the kind and name of the pod's controller, and of that controller's own."""
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


def scale_of(text: str) -> Scale:
    """Read `NS/KIND/NAME=N`. Raises: ClusterError: the text has another form."""
    workload, equals, count = text.partition("=")
    parts = workload.split("/")
    replicas = number_in(count, REPLICAS_MAX)
    if not equals or len(parts) != 3 or not all(parts) or replicas is None:
        raise ClusterError(
            "scale: expected NAMESPACE/KIND/NAME=N, such as shop/Deployment/web=5, "
            f"with N up to {REPLICAS_MAX:,}, got {text!r:.60}"
        )
    namespace, kind, name = parts
    return Scale(namespace, kind, name, replicas)


def number_in(text: str, number_max: int) -> int | None:
    """Return the number; None if the text is not a number up to `number_max`."""
    is_number = text.isascii() and text.isdecimal() and len(text) < 10 and int(text) <= number_max
    return int(text) if is_number else None


def remove_of(text: str) -> Remove:
    """Read `KIND/NAME` or `KIND/NS/NAME`. Raises: ClusterError: the text has another form."""
    parts = text.split("/")
    if len(parts) not in (2, 3) or not all(parts):
        raise ClusterError(f"remove: expected KIND/NAME or KIND/NAMESPACE/NAME, such as Node/n1, got {text!r}")
    return Remove(parts[0], parts[1] if len(parts) == 3 else "", parts[-1])


def add_nodes_of(value: Any) -> AddNodes:
    """Read `{count, like}`. Raises: ClusterError: the value has another form."""
    if isinstance(value, Mapping) and value.keys() <= {"count", "like"} and isinstance(value.get("like"), str):
        count = value.get("count", 1)
        if isinstance(count, int) and not isinstance(count, bool) and 0 < count <= NODES_MAX:
            return AddNodes(count, value["like"])
    raise ClusterError(
        f"addNodes: expected a positive count up to {NODES_MAX:,} and the name of a node in like, got {value!r:.80}"
    )


def read_steps(document: Any, readers: Mapping[str, Callable[[str], Step]]) -> list[Step]:
    """Read the steps of a document: `steps`, a list of objects with one member each.

    Args:
        readers: makes the steps of further names, such as those that name a file.

    Raises:
        ClusterError: a step cannot be read.
    """
    steps = document.get("steps") if isinstance(document, Mapping) else document
    if not isinstance(steps, Sequence) or isinstance(steps, str) or (steps is not document and len(document) > 1):
        raise ClusterError("expected a list of steps, or an object with steps alone")
    if not steps:
        raise ClusterError("there are no steps")
    result = []
    step_readers: dict[str, Callable[[Any], Step]] = {
        "drain": Drain,
        "addNodes": add_nodes_of,
        "scale": scale_of,
        "remove": remove_of,
        **readers,
    }
    for number, step in enumerate(steps):
        if not isinstance(step, Mapping) or len(step) != 1:
            kind = f"{', '.join(map(str, step))} in one" if isinstance(step, Mapping) and step else f"{step!r:.60}"
            raise ClusterError(f"steps[{number}]: expected one of {', '.join(step_readers)}, got {kind}")
        ((name, value),) = step.items()
        if name not in step_readers:
            suggestion = nearest(str(name), step_readers) or f"; known are {', '.join(step_readers)}"
            raise ClusterError(f"steps[{number}].{name}: unknown step{suggestion}")
        if name not in ("addNodes", *readers) and not isinstance(value, str):
            raise ClusterError(f"steps[{number}].{name}: expected a string")
        try:
            result.append(step_readers[name](value))
        except ClusterError as error:
            raise ClusterError(f"steps[{number}].{error}") from error
    return result


def pods_applied(steps: Iterable[Step]) -> list[LocatedManifest]:
    """Return the pods in the applied files, and one sample pod for each workload's template."""
    return [
        LocatedManifest(
            named_pod(item.manifest)
            if template.content is item.manifest
            else sample_pod(item.manifest, template.content),
            item.location,
        )
        for step in steps
        if isinstance(step, Apply)
        for item in step.objects
        for template in templates_in(item.manifest)
    ]


def carry_out_steps(cluster: Cluster, steps: Iterable[Step], limit: TimeLimit = UNLIMITED) -> Trial:
    """Carry the steps out in a trial, as far as the time limit allows. The cluster itself is not changed.

    Raises:
        ClusterError: a step is not possible. The message names it.
        ScheduleError: an attempt failed.
    """
    trial = Trial(cluster, limit)
    for step in steps:
        try:
            step.carry_out(trial)
            trial.settle()
        except ManifestError as error:
            raise ClusterError(f"{step.text}: {error}") from error
        except (TimeIsUpError, ScheduleError):
            # Whatever interrupts the code of a plugin counts as its failure.
            if not limit.is_over():
                raise
            trial.is_partial = limit.is_noticed = True
            break
    trial.end_terminating()
    return trial
