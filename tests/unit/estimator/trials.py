"""Replicas tried out on clusters that stand still, and the same replicas bound one by one."""

from __future__ import annotations

from random import Random

import msgspec

from podium.config import default_configuration
from podium.engine.cluster import Cluster
from podium.engine.store import ObjectStore
from podium.estimator.accurate import accurate_replicas
from podium.objects.core import Pod
from podium.objects.resource_types import NODES, PODS
from podium.testing.random_clusters import random_cluster
from tests.builders import pod

CONFIG = default_configuration()
SCHEDULER = CONFIG.profiles[0].scheduler_name


def still(*objects):
    return Cluster(CONFIG, ObjectStore((PODS if isinstance(item, Pod) else NODES, item) for item in objects))


def estimate(cluster, replica, waiting=(), **options):
    return accurate_replicas(cluster.engine, cluster.framework_for(replica), replica, waiting, **options)


def ours(item, **spec):
    """The pod as one of the default scheduler's that preempts nobody."""
    scheduled_spec = msgspec.structs.replace(item.spec, scheduler_name=SCHEDULER, preemption_policy="Never", **spec)
    return Pod(metadata=item.metadata, spec=scheduled_spec, status=item.status, node_name=item.node_name)


def replica(name="web", **fields):
    return ours(pod(name, **fields))


def count_bound(objects, waiting, template, count):
    """How many of so many replicas find a node after those that wait."""
    cluster = still(*objects)
    replicas = [
        Pod(metadata=msgspec.structs.replace(template.metadata, name=f"r{index}", uid=f"r{index}"), spec=template.spec)
        for index in range(count)
    ]
    for subject in (*waiting, *replicas):
        cluster.store.put(PODS, subject)
    first = sorted(waiting, key=lambda pod: (-pod.priority, pod.key))
    placements = cluster.place_all([*first, *replicas])
    return sum(placement.node is not None for placement in placements[len(waiting) :])


def hold(seed):
    """Compare on one random cluster; returns the estimate."""
    random_objects = random_cluster(Random(seed))
    template, *waiting = map(ours, random_objects.incoming)
    objects = [*random_objects.nodes, *random_objects.existing_pods]
    answer = estimate(still(*objects), template, waiting)
    assert count_bound(objects, waiting, template, answer + 1) == answer
    return answer
