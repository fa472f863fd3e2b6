"""What has to be kept for extenders of the objects that the API server sends.

An extender gets a pod as it is, and one without a node cache gets the nodes, and the victims of a preemption, as well.
podium itself keeps of an object only what it reads: the rest is kept just as far as these extenders need it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podium.config import Extender
from podium.kube.resource_types import NODES, PODS
from podium.kube.whole_objects import Keep, whole_node, whole_pending_pod, whole_pod


def kept_whole(extenders: Sequence[Extender]) -> Mapping[str, Keep[Any]]:
    """What is kept of pods and nodes, by the path of the resource; nothing where no extender is shown any."""
    without_cache = [each for each in extenders if not each.node_cache_capable]
    keep: dict[str, Keep[Any]] = {}
    if any(each.filter_verb or each.prioritize_verb or each.preempt_verb for each in extenders):
        keep[PODS.path] = whole_pending_pod
    if any(each.filter_verb or each.prioritize_verb for each in without_cache):
        keep[NODES.path] = whole_node
    if any(each.preempt_verb for each in without_cache):
        keep[PODS.path] = whole_pod
    return keep
