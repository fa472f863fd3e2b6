"""The pods that this member has nothing to do with: kept as JSON, and decoded only once they concern it.

A pod is held from its first appearance on, while another member decides on it, or owns the node that it is bound to,
and while it has no rule that reaches over nodes (`podium.shards.outline`). Handlers, the cache and the queue do not
know of it. Once it concerns this member it is put into the store as if it had just appeared, and never held again.

Invariant: no pod is held on a node that this member may decide on, nor one that it would have in its queue. A pod that
can only be decided on with all pods in sight (`needs_all_pods`) waits until none is held, and none is held until no
such pod has waited for a while.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from typing import Final

from msgspec import Struct

from podium.client.informer import Informer
from podium.lib.clock import Clock
from podium.lib.turns import Turns
from podium.objects.api_errors import ApiError
from podium.objects.core import Node, Pod
from podium.objects.resource_types import PODS
from podium.objects.resource_versions import is_older
from podium.objects.wire import Bookmark, BrokenObject, ObjectDecoder
from podium.shards import Ownership, owner, owner_key, unit_of
from podium.shards.outline import PodOutline, line_to_keep, outline_of

_UNITS_MAX: Final = 100_000
_ALL_NEEDED_S: Final = 60.0
"""How long after a decision that needed all pods none is held."""


class _HeldPod(Struct, frozen=True, gc=False):
    """A pod that is held, as its last watch line says."""

    uid: str
    version: str
    node_name: str
    line: bytes


class _Division:
    """What an ownership gives to this member now, or will give once others have let go.

    `divides` is whether there is another member.
    """

    def __init__(self, ownership: Ownership) -> None:
        self._member, self._shard_key = ownership.member, ownership.shard_key
        self.divides = len(ownership.members) > 1
        self._views = {ownership.members, *ownership.views}
        self._members = ownership.members
        self._gives_unit = lru_cache(_UNITS_MAX)(self._is_in_a_view)

    def gives(self, node: Node) -> bool:
        """Return whether the node is, or may become, this member's."""
        return self._gives_unit(unit_of(node, self._shard_key))

    def is_home_of(self, outline: PodOutline) -> bool:
        """Return whether this member decides on the pending pod."""
        return owner(owner_key(outline.metadata), self._members) == self._member

    def _is_in_a_view(self, unit: str) -> bool:
        return any(owner(unit, view) == self._member for view in self._views)


class HeldPods:
    """Takes the watch lines of pods aside that do not concern this member. An `Aside` of the reflector of pods.

    Args:
        pods: the store of pods, which holds all others.
        node_named: returns the node with that name.
        scheduler_names: podium's; pending pods of other schedulers are not held.
    """

    def __init__(
        self,
        pods: Informer[Pod],
        node_named: Callable[[str], Node | None],
        scheduler_names: Collection[str],
        clock: Clock,
    ) -> None:
        self._pods = pods
        self._node_named = node_named
        self._scheduler_names = scheduler_names
        self._clock = clock
        self._decode = ObjectDecoder(PODS).event
        self._by_key: dict[str, _HeldPod] = {}
        self._on_node: dict[str, dict[str, None]] = {}
        self._divisions: tuple[_Division, ...] = ()
        self.on_wanted: Callable[[], None] = lambda: None
        self.is_over = False
        """Whether no pod may be held now."""
        self._all_needed_at_s = -math.inf

    def __len__(self) -> int:
        """Return the number of pods that are held."""
        return len(self._by_key)

    # ------------------------------------------------------------ what the reflector calls

    def take(self, line: bytes) -> PodOutline | None:
        """Take a watch line aside and return its pod; None if it is to be decoded and stored as usual."""
        if not self._divisions or (self.is_over and not self._by_key):
            return None
        change = outline_of(line)
        if change is None:
            self._forget(self._key_in(line))
            return None
        outline = change.object
        key, metadata, is_deletion = outline.key, outline.metadata, change.is_deletion
        uid, version = metadata.uid, metadata.resource_version
        held_pod = self._by_key.get(key)
        if held_pod is not None and held_pod.uid != uid:
            if is_deletion:
                self._pods.note_gone(uid, version)
                return outline
            # Another pod of that name.
            self._drop(key, held_pod.uid, held_pod.version)
            held_pod = None
        if held_pod is None:
            if is_deletion or self._pods.knows(key, uid):
                return None
        elif is_deletion:
            if not is_older(version, held_pod.version):
                self._drop(key, uid, version)
            return outline
        elif version and not is_older(held_pod.version, version):
            return outline
        if not self._may_hold(outline):
            self._forget(key)
            return None
        self._hold(key, outline, line, "" if held_pod is None else held_pod.node_name)
        return outline

    async def release_all(self) -> None:
        """Put all pods that are held into the store, in turns, as before a list that is compared with the store."""
        turns = Turns(self._clock)
        for key in [*self._by_key]:
            self._put(key)
            if turns.is_over():
                await turns.next()

    # ------------------------------------------------------------ what the member calls

    async def follow(self, ownership: Ownership) -> None:
        """Hold no pod that concerns this member by this ownership or the former one; release those that are held."""
        self._divisions = (*self._divisions[-1:], _Division(ownership))
        turns = Turns(self._clock)
        for key in [*self._by_key]:
            if not self._may_stay(key):
                self._put(key)
            if turns.is_over():
                await turns.next()

    def settle(self) -> None:
        """Regard the last ownership alone: it is in use now."""
        self._divisions = self._divisions[-1:]

    def release_on(self, node: Node) -> None:
        """Put the pods on a node into the store if it may be this member's, before it can be chosen."""
        for key in [*self._on_node.get(node.name, ())]:
            if not self._may_stay(key):
                self._put(key)

    def has_none(self) -> bool:
        """Return whether all pods are in the store; if there are other members, hold none for a while."""
        # A member that is alone holds none, and may not be alone for long.
        if self._divisions and self._divisions[0].divides:
            self._hold_none_from(self._clock.monotonic())
        if self._by_key:
            self.on_wanted()
        return not self._by_key

    def hold_none(self) -> None:
        """Never hold a pod: some part of the scheduler may read any."""
        self._hold_none_from(math.inf)

    async def hold_again(self, needs_all: Callable[[Pod], bool]) -> None:
        """Hold pods that appear from now on, if all pods were not needed lately and no waiting pod needs them.

        Args:
            needs_all: whether this member has to decide on a pending pod, and can only do so with all pods in sight.
        """
        needed_at_s = self._all_needed_at_s
        if not self.is_over or self._clock.monotonic() < needed_at_s + _ALL_NEEDED_S:
            return
        turns = Turns(self._clock)
        for pod in [*self._pods.list()]:
            # What happens to pods that are held wakes none that waits, so one that needs all has to see all.
            if not pod.node_name and pod.spec.scheduler_name in self._scheduler_names and needs_all(pod):
                self._hold_none_from(self._clock.monotonic())
            if turns.is_over():
                await turns.next()
        self.is_over = self._all_needed_at_s != needed_at_s

    def decode_all(self) -> Iterator[Pod]:
        """Yield the pods that are held, for somebody who looks once."""
        for held_pod in [*self._by_key.values()]:
            item = self._decode_pod(held_pod)
            if isinstance(item, Pod):
                yield item

    # ------------------------------------------------------------ inside

    def _hold_none_from(self, now_s: float) -> None:
        self.is_over, self._all_needed_at_s = True, max(self._all_needed_at_s, now_s)

    def _may_hold(self, outline: PodOutline) -> bool:
        if self.is_over or outline.concerns_all:
            return False
        node_name = outline.node_name
        if not node_name:
            if outline.spec.scheduler_name not in self._scheduler_names:
                return False
            return not any(division.is_home_of(outline) for division in self._divisions)
        node = self._node_named(node_name)
        # An unknown node may turn out to be this member's.
        return node is not None and not any(division.gives(node) for division in self._divisions)

    def _may_stay(self, key: str) -> bool:
        held_pod = self._by_key.get(key)
        change = None if held_pod is None else outline_of(held_pod.line)
        return change is None or self._may_hold(change.object)

    def _hold(self, key: str, outline: PodOutline, line: bytes, former_node_name: str) -> None:
        metadata, node_name = outline.metadata, outline.node_name
        self._by_key[key] = _HeldPod(metadata.uid, metadata.resource_version, node_name, line_to_keep(line, outline))
        if node_name == former_node_name:
            return
        if former_node_name:
            self._leave_node(key, former_node_name)
        if node_name:
            self._on_node.setdefault(node_name, {})[key] = None

    def _forget(self, key: str) -> None:
        held_pod = self._by_key.pop(key, None)
        if held_pod is not None and held_pod.node_name:
            self._leave_node(key, held_pod.node_name)

    def _leave_node(self, key: str, node_name: str) -> None:
        on_node = self._on_node[node_name]
        del on_node[key]
        if not on_node:
            del self._on_node[node_name]

    def _drop(self, key: str, uid: str, version: str) -> None:
        self._pods.note_gone(uid, version)
        self._forget(key)

    def _put(self, key: str) -> None:
        held_pod = self._by_key.get(key)
        if held_pod is None:
            return
        self._forget(key)
        item = self._decode_pod(held_pod)
        if isinstance(item, BrokenObject):
            self._pods.mark_broken(item, deleted=False)
        else:
            self._pods.put(item)

    def _decode_pod(self, held_pod: _HeldPod) -> Pod | BrokenObject:
        event = self._decode(held_pod.line)
        assert not isinstance(event, Bookmark), "the line is of a pod"
        return event.object

    def _key_in(self, line: bytes) -> str:
        """Return the key of the pod in a line that has no outline; "" if it has none."""
        try:
            event = self._decode(line)
        except ApiError:
            return ""  # Whoever decodes it next raises the same.
        return "" if isinstance(event, Bookmark) else event.object.key
