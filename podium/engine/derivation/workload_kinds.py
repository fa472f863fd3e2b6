"""The table of workload kinds: the paths of their pod templates, and of the numbers of pods.

Only these kinds have pods: in other kinds `spec.template` is something else, such as a Secret or a Machine.

Source: the APIs apps/v1 and batch/v1; of custom resources, the definitions that their projects publish.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final, TypeGuard

from podium.engine.derivation.control_objects import group_of, mapping_at
from podium.engine.errors import ManifestError
from podium.engine.files import LocatedManifest
from podium.engine.manifests import Manifest
from podium.lib.nearest import MISSPELT, nearest

REPLICAS_MAX: Final = 100_000
"""The maximum number of pods of one workload in a question."""

_MANY: Final = "*"
"""In a path, this stands for each item of a list, or each value of a mapping."""


@dataclass(frozen=True, slots=True)
class _Place:
    """The path of a pod template, and the fields whose product is the number of its pods.

    Attributes:
        counts: each is read from the path's last mapping that has it.
        leader: a template beside this one, whose pod the first field counts too; "" without such a template.
    """

    path: tuple[str, ...]
    counts: tuple[str, ...] = ("replicas",)
    leader: str = ""


def _places(*paths: str, count: str = "replicas") -> tuple[_Place, ...]:
    """Return the places at these paths.

    Args:
        count: the fields with the number of pods, separated by `*`.
    """
    return tuple(_Place(tuple(path.split(".")), tuple(count.split("*"))) for path in paths)


_TEMPLATE: Final = _places("spec.template")
_PLACES: Final[Mapping[tuple[str, str], tuple[_Place, ...]]] = {
    ("", "PodTemplate"): _places("template"),
    ("", "ReplicationController"): _TEMPLATE,
    ("apps", "Deployment"): _TEMPLATE,
    ("apps", "ReplicaSet"): _TEMPLATE,
    ("apps", "StatefulSet"): _TEMPLATE,
    ("apps", "DaemonSet"): _TEMPLATE,
    ("extensions", "Deployment"): _TEMPLATE,
    ("batch", "Job"): _places("spec.template", count="parallelism"),
    ("batch", "CronJob"): _places("spec.jobTemplate.spec.template", count="parallelism"),
    ("apps.kruise.io", "CloneSet"): _TEMPLATE,
    ("apps.kruise.io", "StatefulSet"): _TEMPLATE,
    ("apps.kruise.io", "DaemonSet"): _TEMPLATE,
    ("apps.openshift.io", "DeploymentConfig"): _TEMPLATE,
    ("argoproj.io", "Rollout"): _TEMPLATE,
    ("serving.knative.dev", "Service"): _TEMPLATE,
    ("serving.knative.dev", "Configuration"): _TEMPLATE,
    ("batch.volcano.sh", "Job"): _places("spec.tasks.*.template"),
    ("kueue.x-k8s.io", "Workload"): _places("spec.podSets.*.template", count="count"),
    ("jobset.x-k8s.io", "JobSet"): _places(
        "spec.replicatedJobs.*.template.spec.template", count="parallelism*replicas"
    ),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): (
        _Place(("spec", "leaderWorkerTemplate", "leaderTemplate")),
        # `size` counts the leader, which has the workers' template unless `leaderTemplate` is set.
        _Place(("spec", "leaderWorkerTemplate", "workerTemplate"), ("size", "replicas"), "leaderTemplate"),
    ),
    ("kubeflow.org", "PyTorchJob"): _places("spec.pytorchReplicaSpecs.*.template"),
    ("kubeflow.org", "TFJob"): _places("spec.tfReplicaSpecs.*.template"),
    ("kubeflow.org", "MPIJob"): _places("spec.mpiReplicaSpecs.*.template"),
    ("kubeflow.org", "XGBoostJob"): _places("spec.xgbReplicaSpecs.*.template"),
    ("kubeflow.org", "PaddleJob"): _places("spec.paddleReplicaSpecs.*.template"),
    ("ray.io", "RayCluster"): (
        *_places("spec.headGroupSpec.template"),
        # A worker of KubeRay may span hosts, each of which is a pod.
        *_places("spec.workerGroupSpecs.*.template", count="numOfHosts*replicas"),
    ),
    ("ray.io", "RayJob"): (
        *_places("spec.rayClusterSpec.headGroupSpec.template"),
        *_places("spec.rayClusterSpec.workerGroupSpecs.*.template", count="numOfHosts*replicas"),
    ),
}

KINDS_WITH_TEMPLATES: Final[Mapping[str, str]] = {kind.lower(): kind for _, kind in _PLACES}
"""The spelling of each kind, by its name in lower case."""


@dataclass(frozen=True, slots=True)
class PodTemplate:
    """A pod template of an object.

    Attributes:
        content: metadata and spec of its pods; the object itself if it is a pod.
        name: the name of the workload's part with this template; "" if the workload has only one template.
        replicas: the unchecked value of the field with the number of pods; None if it is absent.
        count_field: the name of that field.
    """

    content: Mapping[str, Any]
    name: str = ""
    replicas: Any = None
    count_field: str = "replicas"


def templates_in(manifest: Manifest) -> list[PodTemplate]:
    """Return the pod templates of an object; the list is empty if its kind has no pods."""
    kind = manifest.get("kind")
    if kind == "Pod" and not group_of(manifest):
        return [PodTemplate(manifest)]
    places = _PLACES.get((group_of(manifest), str(kind)), ())
    return [template for place in places for template in _templates_at(manifest, place, place.path, _part_name(place))]


def has_template(manifest: Manifest) -> bool:
    """Return whether the object is a workload with pod templates, not a pod."""
    return (group_of(manifest), str(manifest.get("kind"))) in _PLACES


def template_of(manifest: Manifest) -> Mapping[str, Any] | None:
    """Return the first pod template of an object, which is the object itself if it is a pod; None if it has no pods."""
    return next((template.content for template in templates_in(manifest)), None)


def _templates_at(
    content: Any, place: _Place, path: tuple[str, ...], name: str = "", fields: Mapping[str, Any] | None = None
) -> Iterator[PodTemplate]:
    """Yield the templates below this content at the rest of the path.

    Args:
        fields: those of the mappings above, of which the last one counts.
    """
    fields = fields or {}
    if not path:
        if isinstance(content, Mapping):
            yield PodTemplate(content, name, *_count(place, fields))
        return
    names = (*place.counts, place.leader)
    fields = {**fields, **{field: value for field, value in mapping_at(content).items() if field in names}}
    for part, child in _children(content, path[0]):
        yield from _templates_at(child, place, path[1:], part or name, fields)


def _part_name(place: _Place) -> str:
    """Return the field that tells the template from others of its object, such as `leaderTemplate`; "" if none does."""
    step = next((step for step in reversed(place.path) if step != "template"), "")
    return "" if step in ("spec", _MANY) else step


def _count(place: _Place, fields: Mapping[str, Any]) -> tuple[Any, str]:
    """Return the number of pods, or the value that is not a valid number, and the field that has it."""
    counts = {field: fields[field] for field in place.counts if fields.get(field) is not None}
    if place.leader and isinstance(fields.get(place.leader), Mapping):
        size = counts.get(place.counts[0], 1)
        counts[place.counts[0]] = max(size - 1, 0) if _is_count(size) else size
    invalid = next((field for field, value in counts.items() if not _is_count(value)), None)
    if invalid is not None:
        return counts[invalid], invalid
    return (prod(counts.values()) if counts else None), " * ".join(counts) or place.counts[0]


def _is_count(value: Any) -> TypeGuard[int]:
    # In Python a bool is an int, but `replicas: true` is a mistake.
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= REPLICAS_MAX


def _children(content: Any, step: str) -> list[tuple[str, Any]]:
    """Return the values below that step of a path, each with its name among its siblings."""
    if step != _MANY:
        return [("", content[step])] if isinstance(content, Mapping) and step in content else []
    if isinstance(content, Mapping):
        return [(str(name), child) for name, child in content.items()]
    if isinstance(content, list):
        names = (mapping_at(item).get("name") or mapping_at(item).get("groupName") for item in content)
        return [(str(name or index), item) for index, (name, item) in enumerate(zip(names, content, strict=True))]
    return []


def demand_template(items: Sequence[LocatedManifest], name: str) -> tuple[LocatedManifest, PodTemplate]:
    """Return the only object with a pod template among those of a file, and its template.

    Args:
        name: what to call the file.

    Raises:
        ManifestError: the file has no pod template, or several.
    """
    templates = [(item, template) for item in items for template in templates_in(item.manifest)]
    if len(templates) == 1:
        return templates[0]
    kinds = ", ".join(dict.fromkeys(str(item.manifest["kind"]) for item in items)) or "nothing"
    # Without this advice, a file of an unknown kind would only be refused for having no pod.
    advice = "" if templates else unknown_place_advice(items)
    if len({id(item) for item, _ in templates}) == 1:
        parts = ", ".join(template.name for _, template in templates)
        advice = f"; {kinds} has several ({parts}): {_EXTRACT}"
    raise ManifestError(
        f"{name}: expected one pod or workload with a pod template, found {len(templates)}: "
        f"the file holds {kinds}{advice}"
    )


def unknown_place_advice(items: Sequence[LocatedManifest]) -> str:
    """Return what to extract from an object whose kind is unknown and seems to have pods; "" without one."""
    kinds = _unknown_workloads(items)
    return f"; {_unknown_place(next(iter(kinds)))}" if kinds else ""


def left_out_workloads(items: Iterable[LocatedManifest]) -> str:
    """Return which objects are left out, as their kinds are unknown and they seem to have pods; "" without one.

    The sentence says what to extract from them.
    """
    kinds = _unknown_workloads(items)
    if not kinds:
        return ""
    names = ", ".join(f"{kind} {name}" for kind, names in kinds.items() for name in names)
    count = sum(map(len, kinds.values()))
    return f"{names} {'is' if count == 1 else 'are'} left out: {_unknown_place(' or a '.join(kinds))}"


def _unknown_workloads(items: Iterable[LocatedManifest]) -> Mapping[str, list[str]]:
    """Return the names of objects whose kinds are unknown and that seem to have pods, by kind."""
    names: dict[str, list[str]] = {}
    for item in items:
        if not templates_in(item.manifest) and _seems_to_have_pods(item.manifest):
            metadata = mapping_at(item.manifest.get("metadata"))
            name = str(metadata.get("name") or metadata.get("generateName") or "without a name")
            names.setdefault(str(item.manifest["kind"]), []).append(name)
    return names


def _unknown_place(kind: str) -> str:
    return f"podium does not know where a {kind} keeps its pod template: {_EXTRACT}"


_EXTRACT: Final = (
    "save the template's metadata and spec as a Pod, or as spec.template of a Deployment, and ask about that"
)


def _seems_to_have_pods(manifest: Manifest) -> bool:
    """Return whether the object's spec has a field `containers` at any depth."""
    pending: list[Any] = [manifest.get("spec")]
    # The files are of any origin, so that the walk must end even in a huge object.
    for _ in range(1_000):
        if not pending:
            break
        content = pending.pop()
        if isinstance(content, Mapping):
            if isinstance(content.get("containers"), list):
                return True
            pending += content.values()
        elif isinstance(content, list):
            pending += content
    return False


def replicas_of(workload: LocatedManifest, template: PodTemplate, default: int) -> int:
    """Return the number of pods that the workload has of the template; `default` if the field is absent.

    Raises:
        ManifestError: the value is not a number up to `REPLICAS_MAX`, or the field is misspelt.
    """
    count = template.replicas
    if count is None:
        # A workload of one pod would be another question than that of as many as were meant.
        for name in mapping_at(workload.manifest, "spec").keys() - {template.count_field}:
            if suggestion := nearest(str(name), (template.count_field,), cutoff=MISSPELT):
                raise ManifestError(f"{workload.location}: spec.{name}: unknown field{suggestion}")
        return default
    if not _is_count(count):
        raise ManifestError(
            f"{workload.location}: spec.{template.count_field}: "
            f"{count!r} is not a number of pods up to {REPLICAS_MAX:,}"
        )
    return count
