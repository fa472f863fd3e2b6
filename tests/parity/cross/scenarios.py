"""New scenarios and queues of pods: clusters, pods and configurations of recorded ones, combined by chance."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from random import Random

from tests.parity.cross.drawing import ASKED, Json, ask_as, chance, copy_of, distinct, of_kind
from tests.parity.recorded import category_of

OBJECTS_MAX = 400
"""Of larger clusters there are few, and each takes long."""

_QUEUE_MIN, _QUEUE_MAX = 20, 60
_URGENT = 10_000
"""Few recorded pods may preempt, and fewer find somebody to preempt."""

_OF_SPECS = (
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "nodeSelector",
    "containers",
    "initContainers",
    "overhead",
    "priority",
    "preemptionPolicy",
    "resources",
)


def crossed_scenarios(recordings: Sequence[Json], seed: int, count: int) -> Iterator[Json]:
    """As many scenarios; each has most from one category, and some from all."""
    small = [scenario for scenario in recordings if len(scenario["objects"]) < OBJECTS_MAX]
    by_category: dict[str, list[Json]] = defaultdict(list)
    for scenario in small:
        by_category[category_of(scenario["id"])].append(scenario)
    for number in range(count):
        random = chance(seed, number)
        category = random.choice(list(by_category))
        own = by_category[category]
        pool = own if random.random() < 0.6 else small
        config = random.choice(own if random.random() < 0.7 else small)["config"]
        objects = _cluster(random, own, pool)
        pod = ask_as(_crossed_pod(random, pool), config)
        yield {"id": f"{category}-{seed}x{number}", "objects": objects, "pod": pod, "config": config}


def _cluster(random: Random, own: Sequence[Json], pool: Sequence[Json]) -> list[Json]:
    """One cluster, or two in one, in which pods and nodes have been changed."""
    joined_objects = copy_of(random.choice(own)["objects"])
    if random.random() < 0.4:
        joined_objects += copy_of(random.choice(pool)["objects"])
    objects = distinct(joined_objects)
    nodes, pods = of_kind(objects, "Node"), of_kind(objects, "Pod")
    for pod in pods:
        if nodes and pod["spec"].get("nodeName") and random.random() < 0.2:
            pod["spec"]["nodeName"] = random.choice(nodes)["metadata"]["name"]
    for node in nodes:
        _resemble(random, node, nodes)
    if random.random() < 0.15:
        _fill(nodes, pods)
    if random.random() < 0.2:
        random.shuffle(objects)
    return objects


def _resemble(random: Random, node: Json, nodes: Sequence[Json]) -> None:
    """Now and then the node has labels, taints or resources of another."""
    meta = node["metadata"]
    if random.random() < 0.15 and (labels := random.choice(nodes)["metadata"].get("labels")):
        meta["labels"] = {**labels, "kubernetes.io/hostname": meta["name"]}
    if random.random() < 0.1 and (taints := random.choice(nodes)["spec"].get("taints")):
        node["spec"]["taints"] = taints
    if random.random() < 0.1:
        node["status"] = random.choice(nodes)["status"]


def _fill(nodes: Sequence[Json], pods: Sequence[Json]) -> None:
    """No node has room for another pod, so that only preemption can help."""
    counts = Counter(pod["spec"].get("nodeName") for pod in pods)
    for node in nodes:
        status = node["status"] = copy_of(node["status"])
        status.setdefault("allocatable", {})["pods"] = str(counts[node["metadata"]["name"]])


def _crossed_pod(random: Random, pool: Sequence[Json]) -> Json:
    """One pod, with parts of others."""
    pod: Json = copy_of(random.choice(pool)["pod"])
    for field in _OF_SPECS:
        if random.random() < 0.25:
            donor_spec = random.choice(pool)["pod"]["spec"]
            if field in donor_spec:
                pod["spec"][field] = copy_of(donor_spec[field])
            elif field != "containers":
                pod["spec"].pop(field, None)
    if random.random() < 0.25 and (labels := random.choice(pool)["pod"]["metadata"].get("labels")):
        pod["metadata"]["labels"] = labels
    if random.random() < 0.2:
        pod["spec"]["priority"] = _URGENT
    return pod


def crossed_sequences(recordings: Sequence[Json], seed: int, count: int) -> Iterator[Json]:
    """As many queues: pods of two in one, before the cluster of a third, under the configuration of a fourth."""
    for number in range(count):
        random = chance(seed, number)
        pods = copy_of([*random.choice(recordings)["pods"], *random.choice(recordings)["pods"]])
        random.shuffle(pods)
        del pods[random.randint(_QUEUE_MIN, _QUEUE_MAX) :]
        config = random.choice(recordings)["config"]
        yield {
            "id": f"sequence-{seed}x{number}",
            "objects": distinct(copy_of(random.choice(recordings)["objects"])),
            "pods": [ask_as(pod, config, f"{ASKED}-{turn}", f"{ASKED}-uid-{turn}") for turn, pod in enumerate(pods)],
            "config": config,
        }
