"""The GPUs of nodes as single devices, of which pods have whole ones or parts.

Owns which pod has which devices, as an annotation says; what is free on each; and what every plugin that chooses
devices does besides scoring: it filters by device, reserves the devices, and writes the annotation before the binding.

Pods ask for whole GPUs with an extended resource, and for a part of one with another, in thousandths. Nodes offer both.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from podium.cluster import NodeInfo
from podium.framework import contract as fwk
from podium.objects.core import Pod, PodSpec
from podium.objects.errors import FieldError
from podium.objects.requests import pod_requests
from podium.objects.resource_names import CPU
from podium.objects.resource_types import PODS
from podium.plugins.contrib.plugin_args import PluginArgs
from podium.plugins.shared.followed import Followed

WHOLE: Final = 1000
_DEVICES_MAX: Final = 64


class GpuArgs(PluginArgs, frozen=True, kw_only=True):
    """The args of every plugin that chooses devices.

    Attributes:
        gpu_resource: the extended resource that counts whole GPUs.
        share_resource: the extended resource that counts thousandths of GPUs; a pod's are on one device.
        index_annotation: the annotation of a pod with the numbers of its devices, such as `0-2`.
    """

    gpu_resource: str = "nvidia.com/gpu"
    share_resource: str = "podium.io/gpu-milli"
    index_annotation: str = "podium.io/gpu-index"


class GpuDemand(NamedTuple):
    """What a pod takes: so many devices, `milli` thousandths of each; and cpu, in thousandths of a core."""

    cpu_milli: int
    gpus: int
    milli: int


class GpuDevices:
    """The devices of all nodes, for plugins with equal args.

    Cost: one step for each pod on a node when the pods there have changed.
    """

    def __init__(self, args: GpuArgs, handle: fwk.Handle) -> None:
        self._args = args
        self._reserved: dict[str, tuple[int, ...]] = {}
        self._free: dict[str, tuple[Mapping[str, Pod], tuple[int, ...]]] = {}
        self._followed = Followed(handle.lister(PODS), self._on_pod_change)

    def demand(self, spec: PodSpec) -> GpuDemand:
        """Return what a pod takes. Raises: FieldError."""
        requests = pod_requests(spec)
        share = requests.get(self._args.share_resource, 0)
        gpus = requests.get(self._args.gpu_resource, 0) or (1 if share > 0 else 0)
        return GpuDemand(requests.get(CPU, 0), gpus, (share // gpus or WHOLE) if gpus else 0)

    def free(self, node: NodeInfo, without: str = "") -> tuple[int, ...]:
        """Return the free thousandths of each of the node's devices, by number.

        Args:
            without: the uid of a pod that does not count.
        """
        self._followed.read()
        pods = node.snapshot.pods[node.row]
        count = min(node.allocatable(self._args.gpu_resource), _DEVICES_MAX)
        if without:
            return self._remainders([pod for uid, pod in pods.items() if uid != without], count)
        entry = self._free.get(node.name)
        if entry is None or entry[0] is not pods or len(entry[1]) != count:
            entry = self._free[node.name] = (pods, self._remainders(pods.values(), count))
        return entry[1]

    def reserve(self, pod: Pod, devices: tuple[int, ...]) -> None:
        """Count the devices as the pod's until it is gone."""
        self._reserved[pod.uid] = devices

    def unreserve(self, pod: Pod) -> None:
        """Take the devices back."""
        self._reserved.pop(pod.uid, None)

    def reservation(self, pod: Pod) -> tuple[int, ...]:
        """Return the devices that were reserved for the pod; empty if none were."""
        return self._reserved.get(pod.uid, ())

    def _remainders(self, pods: Iterable[Pod], count: int) -> tuple[int, ...]:
        free = [WHOLE] * count
        undetermined = []
        for pod in pods:
            try:
                demand = self.demand(pod.spec)
            except FieldError:
                continue
            devices = self._devices_of(pod, count)
            if demand.gpus and not devices:
                undetermined.append(demand)
            for device in devices:
                free[device] -= demand.milli
        for demand in sorted(undetermined, reverse=True):
            # Bound by another scheduler, without an annotation: it may be anywhere, and is taken to be packed.
            for device in pack(free, demand):
                free[device] -= demand.milli
        return tuple(max(milli, 0) for milli in free)

    def _devices_of(self, pod: Pod, count: int) -> Sequence[int]:
        text = pod.metadata.annotations.get(self._args.index_annotation, "")
        numbers = tuple(int(part) for part in text.split("-") if part.isascii() and part.isdecimal() and len(part) < 4)
        return [number for number in numbers or self.reservation(pod) if number < count]

    def _on_pod_change(self, old: Pod | None, new: Pod | None) -> None:
        if new is None and old is not None:
            self._reserved.pop(old.uid, None)


def pack(free: Sequence[int], demand: GpuDemand) -> tuple[int, ...]:
    """Return the devices with the least free part that is enough; fewer than are asked for if there are not so many."""
    by_size = sorted((milli, device) for device, milli in enumerate(free) if milli >= demand.milli)
    return tuple(sorted(device for _, device in by_size[: demand.gpus]))


class GpuPlugin(fwk.FilterPlugin, fwk.ScorePlugin, fwk.ReservePlugin, fwk.PreBindPlugin):
    """Filters by device, scores by what would be left, and reserves devices."""

    args: GpuArgs

    def __init__(self, args: GpuArgs, handle: fwk.Handle) -> None:
        super().__init__(args, handle)
        self.devices = GpuDevices(args, handle)

    def filter_scope(self, spec: PodSpec) -> fwk.Scope:
        """Filter depends on the pods on the node."""
        return fwk.Scope.PODS_ON_NODE

    def score_scope(self, spec: PodSpec) -> fwk.Scope:
        """Score depends on the pods on the node."""
        return fwk.Scope.PODS_ON_NODE

    def filter(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> fwk.Status | None:
        """Return success, Unschedulable without enough free devices, or Error for a quantity that cannot be read."""
        try:
            demand = self.devices.demand(pod.spec)
        except FieldError as error:
            return fwk.error_status(error)
        if not demand.gpus or len(pack(self.devices.free(node), demand)) == demand.gpus:
            return None
        part = "a whole free GPU" if demand.milli == WHOLE else "a GPU with enough left"
        return fwk.unschedulable(f"node(s) didn't have {part}" + (f" {demand.gpus} times" if demand.gpus > 1 else ""))

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register pods that go, and nodes that come or offer more."""
        return (
            fwk.on(fwk.EventResource.ASSIGNED_POD, fwk.ActionType.DELETE),
            fwk.on(fwk.EventResource.NODE, fwk.ActionType.ADD, fwk.ActionType.UPDATE_NODE_ALLOCATABLE),
        )

    def score(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> int:
        """Score the node by what would be left. Raises: ScheduleError for a quantity that cannot be read."""
        try:
            demand = self.devices.demand(pod.spec)
        except FieldError as error:
            raise fwk.ScheduleError(str(error)) from error
        return self.score_devices(node, self.devices.free(node), demand)

    @abstractmethod
    def score_devices(self, node: NodeInfo, free: tuple[int, ...], demand: GpuDemand) -> int:
        """Return the score of a node with these free devices."""

    def choose(self, node: NodeInfo, free: tuple[int, ...], demand: GpuDemand) -> tuple[int, ...]:
        """Return the devices for the pod; by default those with the least that is enough."""
        return pack(free, demand)

    def reserve(self, state: fwk.CycleState, pod: Pod, node_name: str) -> fwk.Status | None:
        """Choose devices and reserve them. Returns: Unschedulable if there are not enough any more."""
        demand = self.devices.demand(pod.spec)
        if not demand.gpus:
            return None
        snapshot = self.handle.snapshot()
        node = snapshot.node(snapshot.row_of[node_name])
        devices = self.choose(node, self.devices.free(node, without=pod.uid), demand)
        if len(devices) < demand.gpus:
            return fwk.unschedulable("not enough free GPUs are left on the node")
        self.devices.reserve(pod, devices)
        return None

    def unreserve(self, state: fwk.CycleState, pod: Pod, node_name: str) -> None:
        """Take the devices back."""
        self.devices.unreserve(pod)

    async def pre_bind(self, state: fwk.CycleState, pod: Pod, node_name: str) -> fwk.Status | None:
        """Write the devices into the pod's annotation, for the device plugin and for later starts of podium."""
        if devices := self.devices.reservation(pod):
            annotations = {self.args.index_annotation: "-".join(map(str, devices))}
            # This very pod, in whatever version: its status changes when podium nominates it before PreBind.
            any_version = replace(pod, metadata=replace(pod.metadata, resource_version=""))
            change = {"metadata": {"uid": pod.uid, "annotations": annotations}}
            await self.handle.client.patch(PODS, any_version, change)
        return None
