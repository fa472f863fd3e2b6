"""The task of one member: lists the Leases of its group, announces its view, and applies the ownership that follows.

Nodes are given up at once, and taken over a while after their old owner has let go, once all watches are connected: its
last bindings have to be seen first.
"""

from __future__ import annotations

from typing import Final

from podium.client.dispatcher import Requester
from podium.client.informer import Informer
from podium.client.informer_set import InformerSet
from podium.cluster import Cache
from podium.daemon.shards.held_pods import HeldPods
from podium.daemon.shards.placements import Placements
from podium.daemon.shards.pod_handler import ShardPodHandler
from podium.framework.contract.cluster_event import ActionType, ClusterEvent
from podium.lib.clock import Clock
from podium.lib.log import get_logger
from podium.objects.api_errors import ApiError
from podium.objects.core import Node, Pod
from podium.objects.devices import DeviceClass
from podium.objects.resource_types import NODES, PODS, EventResource
from podium.objects.wire import BrokenObject
from podium.plugins.shared.shard_state import ShardState
from podium.queues import SchedulingQueue
from podium.server.election import Elector, LeaseLock
from podium.server.election.shard_leases import ShardLeases
from podium.server.wakeup import WakeUp
from podium.shards import OVERSEER, Announcement, Membership, Ownership, ShardIdentity, Visits, unit_of
from podium.shards.announcement import View

log = get_logger("shards")

SHARDS_CHANGED: Final = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "ShardsChanged")
_PERIOD_S: Final = 1.0
_CATCH_UP_S: Final = 1.0


class DeviceClassWatch:
    """Has the member divide its pods again when device classes change, by which some go to the overseer."""

    def __init__(self, member: ShardMember) -> None:
        self._member = member

    def on_add(self, new: DeviceClass) -> None:
        """Handle an added class."""
        del new
        self._member.has_other_devices = True

    def on_update(self, old: DeviceClass, new: DeviceClass) -> None:
        """Handle a changed class."""
        if old.spec.extended_resource_name != new.spec.extended_resource_name:
            self._member.has_other_devices = True

    def on_delete(self, old: DeviceClass) -> None:
        """Handle a deleted class."""
        del old
        self._member.has_other_devices = True

    def on_broken(self, item: BrokenObject) -> None:
        """Leave a class that cannot be decoded as it was."""


class ShardMember:
    """This process in its group.

    Args:
        handler: holds the pods that this member decides on.
        placements: the pods that other members have been asked to bind.
        held_pods: the pods that do not concern this member.
    """

    def __init__(
        self,
        identity: ShardIdentity,
        shards: ShardState,
        cache: Cache,
        queue: SchedulingQueue,
        informers: InformerSet,
        handler: ShardPodHandler,
        placements: Placements,
        held_pods: HeldPods,
        clock: Clock,
    ) -> None:
        self._identity = identity
        self._shards = shards
        self._cache = cache
        self._queue = queue
        self._informers = informers
        self._pods: Informer[Pod] = informers.informer(PODS)
        self._nodes: Informer[Node] = informers.informer(NODES)
        self._handler = handler
        self._placements = placements
        self._held_pods = held_pods
        self._clock = clock
        self._membership = Membership(identity.member, identity.shard_key, identity.lease_name)
        self._leases: ShardLeases | None = None
        self._following: Ownership | None = None
        self._following_since_s = 0.0
        self._wake_up = WakeUp()
        held_pods.on_wanted = self._wake_up.set
        self._changed_nodes: set[str] = set()
        self.has_other_devices = False
        """Set when device classes change: pods that request their resources may have another member now."""
        shards.use(Ownership(identity.member, identity.shard_key))
        self._doubts: frozenset[str] = frozenset()

    def join(self, elector: Elector, lock: LeaseLock, session: Requester, deadline_s: float) -> None:
        """Use the election of the member's own Lease, before it begins.

        A predecessor's claims must not be taken for those of this process, so its first write claims nothing.
        """
        self._leases = ShardLeases(session, lock, elector, self._identity.group, deadline_s)
        self._leases.prepare(self._membership.announcement)

    async def run(self) -> None:
        """Take part in the group until cancelled. A failed request is repeated; what is owned stays owned meanwhile."""
        assert self._leases is not None, "shards need the election of their Lease"
        while True:
            try:
                is_done = await self._step(self._leases)
            except ApiError as error:
                log.warning("Leases of the shards cannot be read", group=self._identity.group, error=str(error))
                is_done = True
            if self._held_pods.is_over and self._held_pods:
                await self._read_all_pods()
            await self._held_pods.hold_again(self._shards.needs_all)
            if self._changed_nodes:
                await self._divide_placed()
            if self.has_other_devices:
                self.has_other_devices = False
                await self._handler.divide_again(list(self._pods.list()))
            if is_done:
                await self._wake_up.wait(_PERIOD_S)

    def on_add(self, new: Node) -> None:
        """Handle an added node: a pod may have been placed on it already."""
        self._held_pods.release_on(new)
        self._changed_nodes.add(new.name)

    def on_update(self, old: Node, new: Node) -> None:
        """Handle a changed node, which may have gone to another member with its label."""
        shard_key = self._identity.shard_key
        if old.metadata.labels.get(shard_key) != new.metadata.labels.get(shard_key):
            self._held_pods.release_on(new)
            self._changed_nodes.add(new.name)

    def on_delete(self, old: Node) -> None:
        """Handle a deleted node: nobody can bind the pods any more that were placed on it."""
        self._changed_nodes.add(old.name)

    def on_broken(self, item: BrokenObject) -> None:
        """Leave a node that cannot be decoded as it was."""

    async def _read_all_pods(self) -> None:
        """Put all pods into the store that were held, and decide then on those that need them."""
        await self._held_pods.release_all()
        await self._handler.divide_again(list(self._pods.list()))
        self._queue.move_all(SHARDS_CHANGED)

    async def _divide_placed(self) -> None:
        """Divide the pods again that are placed on nodes that have come, gone, or changed their member."""
        names, self._changed_nodes = self._changed_nodes, set()
        self._placements.withdraw_stale()
        waiting = (pod for pod in self._pods.list() if not pod.node_name)
        await self._handler.divide_again([pod for pod in waiting if Visits.of(pod).node in names])

    async def _step(self, leases: ShardLeases) -> bool:
        """Take one step of the protocol, and return whether the next one may wait."""
        membership = self._membership
        requested_s = self._clock.monotonic()
        member_leases = await leases.list()
        membership.observe(member_leases, requested_s, self._clock.monotonic())
        self._report_doubts()
        view = membership.view
        if membership.announcement.views[:1] != (view,):
            # Before it is settled and announced: no new decision may be for a node that is given up.
            await self._use(self._shards.ownership.narrow_to(view, view))
        announcement = membership.next_announcement(self._is_settled)
        if announcement != membership.announcement:
            if not await leases.announce(announcement):
                return True
            membership.announce(announcement)
            # What the others claim counts only as it is after this announcement.
            return False
        await self._follow(membership.ownership)
        return True

    async def _follow(self, ownership: Ownership) -> None:
        """Act by a new ownership once the last bindings of the former owners have been seen."""
        if ownership == self._shards.ownership:
            self._following = None
            return
        now_s = self._clock.monotonic()
        if ownership != self._following:
            self._following, self._following_since_s = ownership, now_s
        if now_s >= self._following_since_s + _CATCH_UP_S and not self._informers.unconnected:
            await self._use(ownership)

    async def _use(self, ownership: Ownership) -> None:
        former_ownership = self._shards.ownership
        if ownership == former_ownership:
            return
        # Before it is in use: no node may be chosen whose pods are not known.
        await self._held_pods.follow(ownership)
        self._shards.use(ownership)
        self._held_pods.settle()
        log.info(
            "Shards have changed",
            group=self._identity.group,
            member=self._identity.member,
            members=sorted(ownership.members),
            settling=len(ownership.views) > 1,
        )
        if ownership.members != former_ownership.members:
            self._placements.withdraw_stale()
            await self._handler.divide_again(list(self._pods.list()))
        self._queue.move_all(SHARDS_CHANGED)

    def _is_settled(self, view: View) -> bool:
        """Return whether no pod is assumed on a node that this member announces and the view does not give to it.

        Nor may one be assumed that this member as the overseer has decided on, if the view has another one. A pod that
        another member has to bind does not count otherwise: that member waits until the node is given up.
        """
        announcement, claim = self._membership.announcement, Announcement(self._identity.member)
        stops_overseeing = announcement.claims_unit(OVERSEER) and not claim.claims_by(view, OVERSEER)
        for pod in self._cache.assumed_pods():
            if stops_overseeing and self._shards.was_overseen(pod):
                return False
            if self._placements.is_under_way(pod):
                continue
            node = self._nodes.get(pod.node_name)
            if node is None or claim.claims_by(view, unit_of(node, self._identity.shard_key)):
                continue
            if announcement.claims(node):
                return False
        return True

    def _report_doubts(self) -> None:
        """Log once what keeps members apart that should be alike."""
        doubts = set()
        for lease in self._membership.live:
            if lease.announcement.claims_all:
                doubts.add(f"{lease.name} cannot be understood (podium {lease.version or 'of an unknown version'})")
            elif lease.announcement.shard_key != self._identity.shard_key:
                doubts.add(f"{lease.member} divides nodes by {lease.announcement.shard_key!r}")
        for doubt in sorted(doubts - self._doubts):
            log.warning("Shards disagree, and keep off nodes that both claim", group=self._identity.group, cause=doubt)
        self._doubts = frozenset(doubts)
