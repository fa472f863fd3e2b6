"""Fixes are true and minimum: the edited pod is placed where they say, and no smaller set of edits does it."""

from collections import Counter
from itertools import combinations

from podium.insight import Cluster
from podium.insight.node_edits import added_node, eviction, label_changes, label_edits, taint_edits
from podium.insight.pod_edits import wishes
from podium.objects.resource_types import NODES, PODS
from tests.unit.insight.clusters import random_objects
from tests.unit.insight.edited import placed_on


def universe(objects, incoming_pod):
    """Every edit that the search may use, without regard to what is in the way."""
    cluster = Cluster.load(objects)
    subject = cluster.read_pod(incoming_pod)
    nodes = cluster.store.objects(NODES).values()
    names = [node.name for node in nodes]
    answer = [wish.relaxed for wish in wishes(subject, cluster.engine.cache.snapshot())]
    for entry in nodes:
        answer += [
            *taint_edits(subject, entry),
            *label_edits(entry, label_changes(subject, entry) or {}),
            added_node(entry, names)[1],
        ]
    answer += [eviction(pod) for pod in cluster.store.objects(PODS).values()]
    return answer


def unschedulable(seeds):
    """Random clusters with a pod that fits nowhere."""
    for seed in seeds:
        objects, incoming = random_objects(seed)
        for incoming_pod in incoming:
            incoming_pod["metadata"].setdefault("namespace", "default")
            if placed_on(objects, incoming_pod) is None:
                yield objects, incoming_pod


def test_fixes_of_random_pods_are_true_and_no_part_of_them_is_enough():
    sizes = Counter()
    kinds = set()
    for objects, incoming in unschedulable(range(30)):
        answer = Cluster.load(objects).fixes(incoming)
        assert not answer.fits
        for fix in answer.fixes:
            assert placed_on(objects, incoming, fix.edits) == fix.node
            for size in range(len(fix.edits)):
                for part in combinations(fix.edits, size):
                    assert placed_on(objects, incoming, part) is None
            kinds |= {edit.kind for edit in fix.edits}
        sizes[len(answer.fixes[0].edits) if answer.fixes else 0] += 1
    assert sizes[1]
    assert sizes[2]
    assert len(kinds) >= 6


def test_no_smaller_set_of_edits_exists():
    counts = Counter()
    for objects, incoming in unschedulable(range(100, 125)):
        answer = Cluster.load(objects).fixes(incoming, most=1)
        size = len(answer.fixes[0].edits) if answer.fixes else 4
        if size > 2:
            continue
        counts[size] += 1
        for part in combinations(universe(objects, incoming), size - 1):
            assert placed_on(objects, incoming, part) is None
    assert counts[1]


# ---------------------------------------------------------------- one kind after the other
