"""The smallest fixes of small random gangs, and all sets of edits by brute force.

The brute force edits manifests: it knows none of the search, and the engine only tells it whether the gang then fits.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from itertools import combinations
from random import Random

from podium.engine.gangs import gang_of, try_gang
from podium.insight import Cluster, EditKind, GangFix
from tests.gang_manifests import COSCHEDULING, UPSTREAM, group, member
from tests.manifests import ZONE, Json, node, pod

CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "podium"}],
}
_TAINT = {"key": "team", "value": "a", "effect": "NoSchedule"}
_LABELS = (("disk", "ssd"), ("pool", "train"))
_LEAST = {"requests": {"cpu": "0", "memory": "64Mi"}}
_EDITS_MAX = 2

Change = Callable[[list[Json]], None]
"""An edit of the cluster's objects in place."""


def gang_cluster(seed: int) -> list[Json]:
    """Return two to four nodes with what keeps pods off them, running pods, and a gang of two to five."""
    random = Random(seed)
    nodes = []
    for number in range(random.randint(2, 4)):
        labels = {ZONE: f"z{number % 2}"} | {key: value for key, value in _LABELS if random.random() < 0.5}
        taints = [_TAINT] if random.random() < 0.3 else []
        cordoned = random.random() < 0.25
        nodes.append(
            node(f"n{number}", str(random.randint(2, 6)), labels=labels, taints=taints, unschedulable=cordoned)
        )
    running = [
        pod(f"run-{number}", str(random.randint(1, 3)), node=f"n{random.randrange(len(nodes))}")
        for number in range(random.randint(0, 4))
    ]
    kind = random.choice((UPSTREAM, COSCHEDULING))
    templates = [_template(random) for _ in range(random.choice((1, 1, 2)))]
    count = random.randint(2, 5)
    members = [member(kind, f"train-{number}", **templates[number % len(templates)]) for number in range(count)]
    minimum = count if random.random() < 0.7 else random.randint(1, count)
    zoned = {"schedulingConstraints": {"topology": [{"key": ZONE}]}}
    is_zoned = kind == UPSTREAM and random.random() < 0.3
    return [*nodes, *running, group(kind, minimum, **(zoned if is_zoned else {})), *members]


def _template(random: Random) -> Json:
    selector = {key: value for key, value in _LABELS if random.random() < 0.2}
    spec: Json = {"nodeSelector": selector} if selector else {}
    if random.random() < 0.15:
        term = {"labelSelector": {}, "topologyKey": "kubernetes.io/hostname"}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return {"cpu": str(random.randint(1, 4)), **spec}


def check_fixes(seed: int) -> list[str]:
    """Return what is wrong with the fixes of the gang of a seed."""
    objects = gang_cluster(seed)
    cluster = Cluster.load(objects, CONFIG)
    subject = next(item for item in cluster.pods if item.metadata.name == "train-0")
    answer = cluster.fixes(subject)
    if answer.fits or answer.problem:
        return [] if _fits(objects) or answer.problem else [f"seed {seed}: the gang does not fit"]
    faults = []
    for fix in answer.fixes:
        assert isinstance(fix, GangFix)
        if not _gang_fits(apply_fix(cluster, fix)):
            faults.append(f"seed {seed}: not enough: {[part.text for part in fix.edits]}")
    fewest = len(answer.fixes[0].edits) if answer.fixes else 99
    for size in range(1, min(fewest, _EDITS_MAX + 1)):
        for changes in combinations(_changes(objects), size):
            edited = copy.deepcopy(objects)
            for _, change in changes:
                change(edited)
            if _fits(edited):
                return [*faults, f"seed {seed}: {fewest} edits, but enough is: {[text for text, _ in changes]}"]
    return faults


def _fits(objects: list[Json]) -> bool:
    return _gang_fits(Cluster.load(objects, CONFIG))


def _gang_fits(cluster: Cluster) -> bool:
    subject = next(item for item in cluster.pods if item.metadata.name == "train-0")
    gang = gang_of(cluster, subject)
    assert gang is not None
    return len(try_gang(cluster, gang).nodes) >= gang.min_count


def apply_fix(cluster: Cluster, fix: GangFix) -> Cluster:
    """Return the cluster after the edits, patch by patch."""
    world = cluster.fork()
    for part in fix.edits:
        edit = part.edit
        if edit.manifest is not None:
            world.add(edit.manifest)
        elif edit.kind is EditKind.EVICT:
            world.remove("Pod", edit.name, edit.namespace)
        elif part.members:
            for key in part.members:
                world.patch("Pod", key.partition("/")[2], edit.patch)
        else:
            world.patch("Node", edit.name, edit.patch)
    return world


# ---------------------------------------------------------------- all edits


def _changes(objects: list[Json]) -> list[tuple[str, Change]]:
    return [*_changes_of_nodes(objects), *_changes_of_members(objects)]


def _changes_of_nodes(objects: list[Json]) -> Iterator[tuple[str, Change]]:
    for item in objects:
        name = item["metadata"]["name"]
        if item["kind"] == "Node":
            if item["spec"]["unschedulable"]:
                yield f"uncordon {name}", _on(name, lambda entry: entry["spec"].update(unschedulable=False))
            if item["spec"]["taints"]:
                yield f"no taint on {name}", _on(name, lambda entry: entry["spec"].update(taints=[]))
            for key, value in _LABELS:
                if key not in item["metadata"]["labels"]:
                    yield f"{key} on {name}", _on(name, lambda entry, k=key, v=value: _label(entry, k, v))
            yield f"one more like {name}", lambda entries, like=item: entries.append(_copy_of(like))
        elif item["kind"] == "Pod" and item["spec"].get("nodeName"):
            yield f"evict {name}", _without(name)


def _changes_of_members(objects: list[Json]) -> Iterator[tuple[str, Change]]:
    specs: list[Json] = []
    for item in objects:
        if not item["metadata"]["name"].startswith("train-") or item["spec"] in specs:
            continue
        spec = copy.deepcopy(item["spec"])
        specs.append(spec)
        yield "no request", _of(spec, lambda entry: entry["containers"][0].update(resources=_LEAST))
        for key in spec.get("nodeSelector", ()):
            yield f"no selector {key}", _of(spec, lambda entry, k=key: entry["nodeSelector"].pop(k, None))
        if "affinity" in spec:
            yield "no affinity", _of(spec, lambda entry: entry.pop("affinity", None))
        yield "toleration", _of(spec, lambda entry: _tolerate(entry, _TAINT["key"]))
        yield "cordon", _of(spec, lambda entry: _tolerate(entry, "node.kubernetes.io/unschedulable"))


def _on(name: str, change: Callable[[Json], object]) -> Change:
    def apply(objects: list[Json]) -> None:
        for item in objects:
            if item["metadata"]["name"] == name:
                change(item)

    return apply


def _of(spec: Json, change: Callable[[Json], object]) -> Change:
    """Change all members of the template, also after another change of them: they differ in their first request."""

    def apply(objects: list[Json]) -> None:
        for item in objects:
            if item["metadata"]["name"].startswith("train-") and _is_of(item, spec):
                change(item["spec"])

    def _is_of(item: Json, spec: Json) -> bool:
        mark = item["spec"].setdefault("mark", copy.deepcopy(item["spec"]))
        return bool(mark == spec)

    return apply


def _without(name: str) -> Change:
    def apply(objects: list[Json]) -> None:
        objects[:] = [item for item in objects if item["metadata"]["name"] != name]

    return apply


def _label(item: Json, key: str, value: str) -> None:
    item["metadata"]["labels"][key] = value


def _tolerate(spec: Json, key: str) -> None:
    spec["tolerations"] = [*spec.get("tolerations", ()), {"key": key, "operator": "Exists"}]


def _copy_of(item: Json) -> Json:
    new = copy.deepcopy(item)
    name = f"{item['metadata']['name']}-again"
    new["metadata"] = {"name": name, "labels": {**item["metadata"]["labels"], "kubernetes.io/hostname": name}}
    new["spec"]["unschedulable"] = False
    return new
