"""Makes a scheduler a member of its group: the face that joins it."""

from __future__ import annotations

from typing import Final

from podium.daemon.face import Face
from podium.daemon.scheduler import Scheduler
from podium.daemon.shards.held_pods import HeldPods
from podium.daemon.shards.member import DeviceClassWatch, ShardMember
from podium.daemon.shards.passing_on import PassingOn
from podium.daemon.shards.placements import Placements
from podium.daemon.shards.pod_handler import ShardPodHandler
from podium.objects.resource_types import DEVICE_CLASSES, NODES, PODS
from podium.plugins.shared.shard_state import ShardState
from podium.shards import ShardIdentity

_IN_TREE: Final = "podium.plugins."
_CONTRIB: Final = f"{_IN_TREE}contrib."


def member_of_shards(scheduler: Scheduler, identity: ShardIdentity) -> Face:
    """Return the face of a member of a group of shards."""
    shards, handler, client = scheduler.share(ShardState), scheduler.pod_handler, scheduler.writes.client
    assert isinstance(handler, ShardPodHandler)
    lookup = scheduler.informers.informer(PODS).get
    nodes = scheduler.informers.informer(NODES).get
    held_pods = HeldPods(scheduler.informers.informer(PODS), nodes, scheduler.scheduler_names, scheduler.clock)
    if not _reads_own_nodes_only(scheduler):
        held_pods.hold_none()
    scheduler.informers.take_aside(PODS, held_pods)
    scheduler.pods_aside, shards.sees_all_pods = held_pods.decode_all, held_pods.has_none
    placements = Placements(shards, lookup, client, scheduler.metrics)
    shards.place = placements.place
    passing_on = PassingOn(shards, lookup, handler, client, scheduler.metrics)
    member = ShardMember(
        identity,
        shards,
        scheduler.cache,
        scheduler.queue,
        scheduler.informers,
        handler,
        placements,
        held_pods,
        scheduler.clock,
    )
    scheduler.metrics.read_shards(
        members=lambda: len(shards.ownership.members),
        owned_nodes=lambda: shards.owned_count,
        held_pods=lambda: len(held_pods),
    )
    return Face(
        observers=(passing_on,),
        handlers={PODS: placements, NODES: member, DEVICE_CLASSES: DeviceClassWatch(member)},
        on_election=member.join,
        scheduling_tasks={"shards": member.run, "pods passed on": passing_on.run},
    )


def _reads_own_nodes_only(scheduler: Scheduler) -> bool:
    """Return whether the pods on other members' nodes matter only where `podium.shards` says so.

    Extenders and plugins other than those of kube-scheduler may read any pod at any time.
    """
    plugins = (plugin for framework in scheduler.frameworks.values() for plugin in framework.plugins.values())
    modules = {type(plugin).__module__ for plugin in plugins}
    return not scheduler.config.extenders and all(
        module.startswith(_IN_TREE) and not module.startswith(_CONTRIB) for module in modules
    )
