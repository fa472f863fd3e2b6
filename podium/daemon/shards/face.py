"""Makes a scheduler a member of its group: the face that joins it."""

from __future__ import annotations

from podium.daemon.face import Face
from podium.daemon.scheduler import Scheduler
from podium.daemon.shards.member import DeviceClassWatch, ShardMember
from podium.daemon.shards.passing_on import PassingOn
from podium.daemon.shards.placements import Placements
from podium.daemon.shards.pod_handler import ShardPodHandler
from podium.objects.resource_types import DEVICE_CLASSES, NODES, PODS
from podium.plugins.shared.shard_state import ShardState
from podium.shards import ShardIdentity


def member_of_shards(scheduler: Scheduler, identity: ShardIdentity) -> Face:
    """Return the face of a member of a group of shards."""
    shards, handler, client = scheduler.share(ShardState), scheduler.pod_handler, scheduler.writes.client
    assert isinstance(handler, ShardPodHandler)
    lookup = scheduler.informers.informer(PODS).get
    placements = Placements(shards, lookup, client, scheduler.metrics)
    shards.place = placements.place
    passing_on = PassingOn(shards, lookup, handler, client, scheduler.metrics)
    member = ShardMember(
        identity, shards, scheduler.cache, scheduler.queue, scheduler.informers, handler, placements, scheduler.clock
    )
    scheduler.metrics.read_shards(members=lambda: len(shards.ownership.members), owned_nodes=lambda: shards.owned_count)
    return Face(
        observers=(passing_on,),
        handlers={PODS: placements, NODES: member, DEVICE_CLASSES: DeviceClassWatch(member)},
        on_election=member.join,
        scheduling_tasks={"shards": member.run, "pods passed on": passing_on.run},
    )
