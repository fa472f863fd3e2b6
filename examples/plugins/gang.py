"""A gang: pods of one group are bound together, or not at all.

A pod names its gang and how many it has with the labels example.com/gang and example.com/gang-size.
"""

from dataclasses import dataclass

from podium.framework import Code, PermitPlugin, ReservePlugin, Status, resource_types

NAME, SIZE = "example.com/gang", "example.com/gang-size"


class Gang(PermitPlugin, ReservePlugin):
    @dataclass(frozen=True)
    class Args:
        seconds: float = 30.0

    def __init__(self, args, handle):
        super().__init__(args, handle)
        self.pods = handle.lister(resource_types.PODS)

    def permit(self, state, pod, node_name):
        if NAME not in pod.metadata.labels:
            return None, 0.0
        waiting, bound = self.waiting(pod), self.bound(pod)
        if len(waiting) + len(bound) + 1 < int(pod.metadata.labels.get(SIZE, "1")):
            return Status(Code.WAIT), self.args.seconds
        for other in waiting:
            other.allow(self.name)
        return None, 0.0

    def reserve(self, state, pod, node_name):
        return None

    def unreserve(self, state, pod, node_name):
        """One gives up, and with it the others: nobody holds room for a gang that does not come together."""
        for other in self.waiting(pod):
            other.reject(self.name, f"{pod.metadata.name} of the same gang gave up")

    def waiting(self, pod):
        return [each for each in self.handle.waiting_pods if is_mate(each.pod, pod)]

    def bound(self, pod):
        pods = self.pods.in_namespace(pod.metadata.namespace)
        return [each for each in pods if each.node_name and is_mate(each, pod)]


def is_mate(one, other) -> bool:
    """Whether two pods, not the same, are of one gang."""
    a, b = one.metadata, other.metadata
    return NAME in b.labels and (a.namespace, a.labels.get(NAME)) == (b.namespace, b.labels[NAME]) and a.uid != b.uid
