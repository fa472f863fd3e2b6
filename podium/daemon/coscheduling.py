"""Serves the plugin Coscheduling: writes the status of its PodGroups, and ends their backoff.

Owns what is written into a PodGroup of `scheduling.x-k8s.io`. Never decides where pods go.

Source: sigs.k8s.io/scheduler-plugins pkg/controllers/podgroup_controller.go (for Kubernetes 1.35).
Differs: podium does not watch pods that have ended, so the phases Finished and Failed are left to that controller, and
a group in one of them is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import anyio

from podium.client.informer_set import InformerSet
from podium.framework.contract.handle import ApiClient
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects.api_errors import ApiError, NotFound
from podium.objects.core import Pod
from podium.objects.coscheduling import MIN_MEMBER, CoschedulingPodGroup, gang_of
from podium.objects.resource_types import COSCHEDULING_POD_GROUPS
from podium.objects.times import format_time
from podium.objects.wire import BrokenObject
from podium.plugins.contrib.coscheduling.gangs import Gang, Gangs
from podium.queues import SchedulingQueue

log = get_logger("scheduler")

_LOOK_EVERY_S: Final = 1.0
_PENDING, _SCHEDULING, _RUNNING = "Pending", "Scheduling", "Running"
_ENDED: Final = ("Finished", "Failed")
_OWNERS_SHOWN: Final = 10


def status_of(group: CoschedulingPodGroup, gang: Gang, now_s: float) -> Mapping[str, Any] | None:
    """Return the status to write for a group with these members, or None if it is left alone."""
    former, needed_count = group.status, group.spec.min_member
    if former.phase in _ENDED:
        return None
    running = sum(pod.status.phase == "Running" for pod in gang.members.values())
    is_complete = bool(gang.members) and len(gang.members) >= needed_count
    status: dict[str, Any] = {"phase": _PENDING, "running": running, "scheduled": len(gang.bound_uids)}
    if is_complete:
        status["phase"] = _RUNNING if running >= needed_count else _SCHEDULING
        status["occupiedBy"] = former.occupied_by or _owners_of(next(iter(gang.members.values())))
        status["scheduleStartTime"] = former.schedule_start_time or format_time(now_s)
    elif former.phase == _RUNNING and running:
        # Members that have ended are not seen, and may well be what is missing.
        status["phase"] = _RUNNING
    return status


def _owners_of(pod: Pod) -> str:
    owners = sorted(owner.name for owner in pod.metadata.owner_references)[:_OWNERS_SHOWN]
    return ",".join(f"{pod.metadata.namespace}/{name}" for name in owners)


class PodGroupKeeper:
    """Keeps the status of PodGroups up to date, and tries groups again when their backoff ends.

    A handler of the informers of pods and of PodGroups.
    """

    def __init__(
        self, gangs: Gangs, queue: SchedulingQueue, client: ApiClient, informers: InformerSet, clock: Clock
    ) -> None:
        self._gangs = gangs
        self._queue = queue
        self._client = client
        self._informers = informers
        self._clock = clock
        self._changed: dict[str, None] = {}
        self._sent: dict[str, Mapping[str, Any]] = {}

    def on_add(self, new: Pod | CoschedulingPodGroup) -> None:
        """Handle an added pod or PodGroup."""
        key = gang_of(new) if isinstance(new, Pod) else new.key
        if key is not None:
            self._changed[key] = None

    def on_update(self, old: Pod | CoschedulingPodGroup, new: Pod | CoschedulingPodGroup) -> None:
        """Handle a changed pod or PodGroup."""
        self.on_add(old)
        self.on_add(new)

    def on_delete(self, old: Pod | CoschedulingPodGroup) -> None:
        """Handle a deleted pod or PodGroup."""
        self.on_add(old)
        if not isinstance(old, Pod):
            self._sent.pop(old.key, None)

    def on_broken(self, broken: BrokenObject) -> None:
        """Ignore an object that cannot be decoded; another handler reports it."""

    async def run(self) -> None:
        """Look at what has changed, every second, until cancelled. The informers have synced."""
        if self._informers.is_absent(COSCHEDULING_POD_GROUPS):
            log.info(
                "The API server serves no PodGroups: pods say how many members their group needs",
                group=COSCHEDULING_POD_GROUPS.group,
                annotation=MIN_MEMBER,
            )
        while True:
            self.wake()
            await self.write()
            await anyio.sleep(_LOOK_EVERY_S)

    def wake(self) -> None:
        """Try the members again whose group has ended its backoff."""
        for gang in self._gangs.take_backed_off(self._clock.now()):
            self._queue.activate(list(gang.without_node()))

    async def write(self) -> None:
        """Write the status of the groups that have changed. One that cannot be written is tried again later."""
        changes, self._changed = self._changed, {}
        for key in changes:
            group = self._gangs.objects.get(key)
            if group is None:
                continue
            status = status_of(group, self._gangs.get(key), self._clock.now())
            if status is None or self._sent.get(key) == status:
                continue
            try:
                await self._client.patch(COSCHEDULING_POD_GROUPS, group, {"status": status}, "status")
            except NotFound:
                continue
            except ApiError as error:
                log.warning("PodGroup status could not be written", object=key, error=str(error))
                self._changed[key] = None
                continue
            self._sent[key] = status
