"""A filter: nodes with GPUs are for pods that ask for one."""

from podium.framework import ActionType, EventResource, FilterPlugin, NodeInfo, on, unresolvable

GPU = "nvidia.com/gpu"


class KeepGpusFree(FilterPlugin):
    def filter(self, state, pod, node: NodeInfo):
        if node.allocatable(GPU) and not wants_gpu(pod):
            return unresolvable("node(s) are kept for pods with GPUs")
        return None

    def events_to_register(self):
        # Only a node can make room for a pod that this has rejected.
        return [on(EventResource.NODE, ActionType.ADD, ActionType.UPDATE_NODE_ALLOCATABLE)]


def wants_gpu(pod) -> bool:
    return any(GPU in container.resources.requests for container in pod.spec.containers)
