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


def with_image_sizes(node: Node) -> Node:
    """The node, with images that are as large as they are elsewhere: which node reported a size first is history."""
    images = tuple(replace(image, size_bytes=sum(map(len, image.names)) << 25) for image in node.status.images)
    return replace(node, status=replace(node.status, images=images))


def build(nodes: tuple[Node, ...], pods: tuple[Pod, ...]) -> Cluster:
    """A cluster of these objects, built at once."""
    objects = [*((NODES, node) for node in nodes), *((PODS, pod) for pod in pods)]
    return Cluster(CONFIG, ObjectStore(objects))


def answers(cluster: Cluster, pods: list[Pod]) -> list[object]:
    return [cluster.evaluate(pod).as_dict() for pod in pods] if cluster.nodes else []


def change(cluster: Cluster, random: Random, number: int) -> None:
    """Let something come, change or go."""
    random_objects = random_cluster(random)
    nodes, pods = cluster.nodes, cluster.pods
    match random.randrange(6):
        case 0:
            new = with_image_sizes(random_objects.nodes[0])
            cluster.put(NODES, replace(new, metadata=replace(new.metadata, name=f"new-{number}", uid=f"new-{number}")))
        case 1 if nodes:
            old_node, new_node = random.choice(nodes), with_image_sizes(random_objects.nodes[0])
            cluster.put(
                NODES, replace(new_node, metadata=replace(new_node.metadata, name=old_node.name, uid=old_node.uid))
            )
        case 2 if len(nodes) > 1:
            cluster.remove("Node", random.choice(nodes).name)
        case 3 if pods:
            pod = random.choice(pods)
            cluster.remove("Pod", pod.metadata.name, pod.metadata.namespace)
        case 4 if nodes:
            name = f"put-{number}"
            fields = ours(random_objects.incoming[0])
            own = replace(fields.metadata, name=name, uid=name)
            cluster.put(PODS, Pod(own, fields.spec, fields.status).on_node(random.choice(nodes).name))
        case 5 if nodes:
            name = f"placed-by-us-{number}"
            fields = ours(random_objects.incoming[0])
            cluster.place(Pod(replace(fields.metadata, name=name, uid=name), fields.spec, fields.status))


@pytest.mark.parametrize("part", range(SLICES))
def test_a_changed_fork_equals_a_fresh_build_and_changes_nothing_else(part: int) -> None:
    for seed in range(part, CLUSTERS, SLICES):
        random = Random(seed)
        random_objects = random_cluster(random)
        incoming_pods = [ours(pod) for pod in random_objects.incoming[:2]]
        parent = build(
            tuple(map(with_image_sizes, random_objects.nodes)),
            tuple(ours(existing_pod) for existing_pod in random_objects.existing_pods),
        )
        first_answers = answers(parent, incoming_pods)
        fork, sibling = parent.fork(), parent.fork()
        forks = [fork]
        for number in range(random.randint(1, 12)):
            if random.random() < 0.2:
                forks.append(forks[-1].fork())
            change(forks[-1], random, number)
        for world in (*forks, sibling):
            assert answers(world, incoming_pods) == answers(build(world.nodes, world.pods), incoming_pods), seed
        assert answers(parent, incoming_pods) == answers(sibling, incoming_pods) == first_answers, seed
