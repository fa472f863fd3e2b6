"""The devices of the demo's pods: events while they are allocated, and rows of the summary. Prints nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from podium.objects.claims import ResourceClaim
from podium.objects.core import Pod
from podium.objects.devices import ResourceSlice
from podium.objects.wire import BrokenObject


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """A claim with its devices: the pods that use it, their node, and its requests."""

    pods: tuple[str, ...]
    node: str
    devices: tuple[str, ...]
    asked_for: str


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """The allocation of the cluster's devices.

    Attributes: ``total``, the number of devices of each kind; ``claims``, all that hold devices; ``twice``, the devices
    that more than one claim holds, which must never happen.
    """

    total: dict[str, int]
    claims: tuple[ClaimUse, ...] = ()
    twice: tuple[str, ...] = ()

    @property
    def in_use(self) -> int:
        """The number of devices that claims hold."""
        return sum(len(claim.devices) for claim in self.claims)


def device_use(claims: Iterable[ResourceClaim], slices: Iterable[ResourceSlice], pods: Iterable[Pod]) -> DeviceUse:
    """Collect the claims with their devices and users."""
    total: Counter[str] = Counter()
    for resource_slice in slices:
        total[resource_slice.spec.driver] += len(resource_slice.spec.devices)
    nodes = {pod.metadata.uid: pod.node_name for pod in pods}
    uses = []
    holders: Counter[tuple[str, str, str]] = Counter()
    for claim in claims:
        if claim.status.allocation is None:
            continue
        results = claim.status.allocation.devices.results
        holders.update((result.driver, result.pool, result.device) for result in results)
        users = claim.status.reserved_for
        node = next((nodes[user.uid] for user in users if nodes.get(user.uid)), "")
        names = tuple(sorted(user.name for user in users))
        uses.append(ClaimUse(names, node, tuple(result.device for result in results), asked_for(claim)))
    twice = tuple(sorted("/".join(device) for device, count in holders.items() if count > 1))
    return DeviceUse(dict(total), tuple(sorted(uses, key=lambda use: use.pods)), twice)


def asked_for(claim: ResourceClaim) -> str:
    """Describe the requests of a claim in a few words."""
    devices = claim.spec.devices
    words = []
    for request in devices.requests:
        if request.exactly is None:
            words.append("the first of " + ", ".join(subrequest.name for subrequest in request.first_available))
        else:
            words.append(f"{request.exactly.count or 1} {request.exactly.device_class_name.partition('.')[0]}")
    attributes = (constraint.match_attribute for constraint in devices.constraints if constraint.match_attribute)
    return ", ".join([*words, *(f"same {name.rpartition('/')[2]}" for name in attributes)])


class ClaimWatcher:
    """Reports the devices of each claim once, when the API server reports their allocation."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._reported: set[str] = set()

    def on_add(self, new: ResourceClaim, /) -> None:
        """Handle a new claim as `on_update` does."""
        self._look_at(new)

    def on_update(self, old: ResourceClaim, new: ResourceClaim, /) -> None:
        """Report a claim that is allocated and in use."""
        del old
        self._look_at(new)

    def on_delete(self, old: ResourceClaim, /) -> None:
        """Do nothing: the demo deletes no claims."""

    def on_broken(self, broken_object: BrokenObject, /) -> None:
        """Do nothing: the demo creates no unreadable claims."""

    def _look_at(self, claim: ResourceClaim) -> None:
        allocation, users = claim.status.allocation, claim.status.reserved_for
        if allocation is None or not users or claim.metadata.uid in self._reported:
            return
        self._reported.add(claim.metadata.uid)
        results = allocation.devices.results
        names = " and ".join(result.device for result in results)
        self._tell(f"{users[0].name} gets {names} of {results[0].pool}")
