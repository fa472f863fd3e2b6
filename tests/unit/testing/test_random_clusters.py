from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from podium.testing import schedule_once
from podium.testing.random_clusters import random_cluster

FILTERS = {
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
}


def test_the_same_seed_makes_the_same_cluster() -> None:
    assert random_cluster(Random("0/1")) == random_cluster(Random("0/1"))
    assert random_cluster(Random("0/1")) != random_cluster(Random("0/2"))


@pytest.mark.long
def test_the_clusters_that_plugins_are_checked_on_give_every_filter_something_to_reject() -> None:
    rejections: Counter[str] = Counter()
    fitting = 0
    for number in range(30):
        cluster = random_cluster(Random(f"0/{number}"))
        for pod in cluster.incoming:
            result = schedule_once(pod, cluster.nodes, cluster.existing_pods)
            rejections.update(status.plugin for status in result.rejected.values())
            fitting += result.node_name is not None
    assert rejections.keys() >= FILTERS
    assert 10 < fitting < 80
