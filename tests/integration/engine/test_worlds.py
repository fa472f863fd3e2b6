"""A fork that was changed is the cluster that would be built of its objects, and has changed no other."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from podium import Cluster
from podium.config import default_configuration
from podium.engine.store import ObjectStore
from podium.objects.core import Node, Pod
from podium.objects.resource_types import NODES, PODS
from podium.testing.random_clusters import random_cluster

CONFIG = default_configuration()
SCHEDULER = CONFIG.profiles[0].scheduler_name
CLUSTERS, SLICES = 500, 10


def ours(pod: Pod) -> Pod:
    return Pod(pod.metadata, replace(pod.spec, scheduler_name=SCHEDULER), pod.status, pod.node_name)


def sized(node: Node) -> Node:
    """The node, with images that are as large as they are elsewhere: which node reported a size first is history."""
    images = tuple(replace(each, size_bytes=sum(map(len, each.names)) << 25) for each in node.status.images)
    return replace(node, status=replace(node.status, images=images))


def built(nodes: tuple[Node, ...], pods: tuple[Pod, ...]) -> Cluster:
    """A cluster of these objects, built at once."""
    objects = [*((NODES, each) for each in nodes), *((PODS, each) for each in pods)]
    return Cluster(CONFIG, ObjectStore(objects))


def answers(cluster: Cluster, asked: list[Pod]) -> list[object]:
    return [cluster.evaluate(each).as_dict() for each in asked] if cluster.nodes else []


def change(cluster: Cluster, random: Random, number: int) -> None:
    """Let something come, change or go."""
    drawn = random_cluster(random)
    nodes, pods = cluster.nodes, cluster.pods
    match random.randrange(6):
        case 0:
            new = sized(drawn.nodes[0])
            cluster.put(NODES, replace(new, metadata=replace(new.metadata, name=f"new-{number}", uid=f"new-{number}")))
        case 1 if nodes:
            known, other = random.choice(nodes), sized(drawn.nodes[0])
            cluster.put(NODES, replace(other, metadata=replace(other.metadata, name=known.name, uid=known.uid)))
        case 2 if len(nodes) > 1:
            cluster.remove("Node", random.choice(nodes).name)
        case 3 if pods:
            gone = random.choice(pods)
            cluster.remove("Pod", gone.metadata.name, gone.metadata.namespace)
        case 4 if nodes:
            name = f"put-{number}"
            fields = ours(drawn.incoming[0])
            own = replace(fields.metadata, name=name, uid=name)
            cluster.put(PODS, Pod(own, fields.spec, fields.status).on_node(random.choice(nodes).name))
        case 5 if nodes:
            name = f"placed-by-us-{number}"
            fields = ours(drawn.incoming[0])
            cluster.place(Pod(replace(fields.metadata, name=name, uid=name), fields.spec, fields.status))


@pytest.mark.parametrize("part", range(SLICES))
def test_a_changed_fork_equals_a_fresh_build_and_changes_nothing_else(part: int) -> None:
    for seed in range(part, CLUSTERS, SLICES):
        random = Random(seed)
        drawn = random_cluster(random)
        asked = [ours(each) for each in drawn.incoming[:2]]
        parent = built(tuple(map(sized, drawn.nodes)), tuple(ours(each) for each in drawn.existing_pods))
        before = answers(parent, asked)
        fork, sibling = parent.fork(), parent.fork()
        forks = [fork]
        for number in range(random.randint(1, 12)):
            if random.random() < 0.2:
                forks.append(forks[-1].fork())
            change(forks[-1], random, number)
        for each in (*forks, sibling):
            assert answers(each, asked) == answers(built(each.nodes, each.pods), asked), seed
        assert answers(parent, asked) == answers(sibling, asked) == before, seed
