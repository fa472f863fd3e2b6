"""New queues with pod groups: recorded ones with other nodes, other sizes of gangs and pods, and in another order.

Among places for a group that score alike, upstream takes one by chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from tests.parity.cross.drawing import Json, chance, copy_of, of_kind

_NODE_CPUS = ("1", "2", "3", "4", "6")
_POD_CPUS = ("500m", "1", "2", "3")
_DISRUPTION_MODES: tuple[Json, ...] = ({"all": {}}, {"single": {}})


def crossed_pod_groups(recorded: Sequence[Json], seed: int, count: int) -> Iterator[Json]:
    """As many queues."""
    for number in range(count):
        random = chance(seed, number)
        question: Json = copy_of({**random.choice(recorded), "expect": None})
        del question["expect"]
        for node in of_kind(question["objects"], "Node"):
            if "cpu" in node["status"]["allocatable"] and random.random() < 0.5:
                node["status"]["allocatable"]["cpu"] = random.choice(_NODE_CPUS)
        for group in of_kind(question["objects"], "PodGroup"):
            _change_group(group["spec"], random)
        if random.random() < 0.5:
            _let_groups_run(question["objects"], random)
        if random.random() < 0.5:
            question["pods"].append(_important_pod(random))
        random.shuffle(question["pods"])
        for pod in question["pods"]:
            if random.random() < 0.15:
                resources = pod["spec"]["containers"][0].setdefault("resources", {})
                resources.setdefault("requests", {})["cpu"] = random.choice(_POD_CPUS)
        yield {**question, "id": f"{question['id']}-{seed}-{number}"}


def _let_groups_run(objects: list[Json], random: Random) -> None:
    """Have some of the pods that run be of groups, which may have to leave as a whole."""
    names = ("running-0", "running-1")
    for pod in of_kind(objects, "Pod"):
        if "schedulingGroup" not in pod["spec"] and random.random() < 0.7:
            pod["spec"]["schedulingGroup"] = {"podGroupName": random.choice(names)}
    for name in names:
        spec = {"schedulingPolicy": {"basic": {}}, "priority": random.choice((0, 5, 50, 5000))}
        mode = random.choice(({}, *({"disruptionMode": mode} for mode in _DISRUPTION_MODES)))
        metadata = {"name": name, "namespace": "default", "uid": name}
        group = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": metadata}
        objects.append({**group, "spec": {**spec, **mode}})


def _important_pod(random: Random) -> Json:
    """A pod that is of no group, and may preempt pods that are."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": random.choice(_POD_CPUS)}}}
    metadata = {"name": "important", "namespace": "default", "uid": "important"}
    spec = {"schedulerName": "default-scheduler", "priority": 1000, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _change_group(spec: Json, random: Random) -> None:
    gang = spec["schedulingPolicy"].get("gang")
    if gang is not None and random.random() < 0.3:
        gang["minCount"] = max(1, gang["minCount"] + random.choice((-1, 1)))
    if random.random() < 0.3:
        spec["disruptionMode"] = random.choice(_DISRUPTION_MODES)
