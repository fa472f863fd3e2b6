"""Capacity is what then binds: that many copies find a node in a fresh cluster, and one more does not."""

from collections import Counter

from podium.insight import Cluster
from tests.unit.insight.clusters import copies, count_bound, random_objects


def test_capacity_equals_the_number_of_bound_copies_on_random_clusters():
    answers = Counter()
    for seed in range(40):
        objects, (incoming, *_) = random_objects(seed)
        answer = Cluster.load(objects).capacity(incoming)
        assert count_bound(objects, copies(incoming, answer.fits + 1)) == answer.fits
        assert sum(node.fits for node in answer.nodes) == sum(answer.zones.values()) == answer.fits
        assert all(node.limit for node in answer.nodes)
        answers[min(answer.fits, 3)] += 1
    assert answers.keys() == {0, 1, 2, 3}


def test_capacity_together_equals_the_copies_bound_in_rotation():
    totals = set()
    for seed in range(20):
        objects, incoming = random_objects(seed)
        answer = Cluster.load(objects).capacity_together(incoming)
        fits = [capacity.fits for capacity in answer]
        copies_max = max(fits) + 2
        queue = [
            pod for turn in zip(*(copies(template, copies_max) for template in incoming), strict=True) for pod in turn
        ]
        counts = Counter(
            placement.pod.metadata.name.rpartition("-")[0]
            for placement in Cluster.load(objects).place_all(queue)
            if placement.node is not None
        )
        assert [counts[template["metadata"]["name"]] for template in incoming] == fits
        totals.add(min(sum(fits), 4))
    assert {0, 4} <= totals


# ---------------------------------------------------------------- headroom


def test_headroom_is_true_on_random_clusters():
    for seed in range(12):
        objects, (incoming, *_) = random_objects(seed)
        answer = Cluster.load(objects).headroom(incoming, 2)
        for resource, amount in answer.amounts.items():
            ((container, *other_containers),) = [incoming["spec"]["containers"]]
            requests = {**container["resources"]["requests"], resource: amount}
            larger_container = {**container, "resources": {**container["resources"], "requests": requests}}
            larger = {**incoming, "spec": {**incoming["spec"], "containers": [larger_container, *other_containers]}}
            assert Cluster.load(objects).capacity(larger).fits >= 2
