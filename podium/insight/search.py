"""The search for the smallest sets of edits after which a pod fits.

All sets of one edit are tried, then those of two, then those of three; the first size with sets that are enough ends
the search (`FixSearch.fixes`). There are millions of sets, and each trial is a scheduling attempt. So candidates are
derived from the filters' verdicts on all nodes, in this order:

1. `blockers` asks every filter about every node. An attempt stops at the first filter that rejects a node, but a node
   with two blockers takes two edits.
2. What the pod asks for is a list of wishes (`pod_edits.Wish`): a request, a label of its node selector, a spread
   constraint. For each combination of up to three wishes the filters are asked about the pod without them. On the nodes
   that are feasible now, giving up these wishes is enough.
3. If the combination leaves some of the edits, they go to the nodes that are still rejected (`_beside`): their blockers
   say which taints to remove, which labels to set, and which pods to evict. Nodes that are alike in all of these are
   one group (`alike_nodes`), so that 5,000 nodes cost as much as their few groups. Or a new node is added, like one of
   each shape (`_with_new_node`).
4. Until here a wish is given up altogether, since only that answers whether anything else rejects the pod.
   `smallest_edits` then gives up as little as is enough: the largest request that is free on a node, the lowest maxSkew
   by bisection, one more value in the node affinity.
5. `_try` carries a set out in a fork and makes an attempt. Filters that look beyond one node (spreading, pod affinity,
   volumes) may prove a derived set wrong, so only sets that have passed this step are returned.

Example: the pod requests 4 CPUs and selects disk=ssd. On n1, which has the label, 2 of 4 CPUs are free; n2 has 8 free
CPUs and no label. Without the request (step 2) n1 is feasible, which step 4 turns into "lower the request for cpu from
4 to 2"; without the selector n2 is. With no wish given up, n2 lacks one label and n1 the requests of one pod (step 3),
and an empty node like n1 would do. The answer is these five sets of one edit, the least intrusive kind first
(`edits.EditKind`), and no set of two is looked at.

Two rules may surprise. At most three sets of the same kinds of edits are returned: if one label is missing, it is
missing on every node of a pool, and the answer would be as long as the list of nodes. And a fix is only called a
minimum if no smaller candidate was left out: the limits below bound the time on large clusters, and what they cut off
might have been enough.

Cost: for each set of wishes one call of every filter over all nodes; a fork for each set that changes nodes or pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, combinations, islice
from operator import itemgetter
from typing import Any, Final

import numpy as np

from podium.engine.cluster import Cluster
from podium.engine.device_refusals import DEVICES
from podium.framework.contract.status import ScheduleError
from podium.framework.preemption.candidates import Budgets
from podium.insight.absent_claims import missing_claims
from podium.insight.alike_nodes import LABELS, TAINTS, AlikeGroup, AlikeNodes
from podium.insight.applied_edits import EditsDoNotApplyError
from podium.insight.asked_pod import best_node
from podium.insight.blockers import Blockers, blockers_of
from podium.insight.edits import INTRUSIVENESS, Edit, EditKind, EditSet, in_order
from podium.insight.evictions import EXACT, Evictions
from podium.insight.new_nodes import node_like
from podium.insight.node_edits import LabelChanges, eviction, label_changes, label_edits, taint_edits
from podium.insight.pod_edits import Wish, append_toleration, apply_pod_edits, contradict, give_up, wishes
from podium.insight.requests import is_indispensable
from podium.insight.search_basis import SearchBasis
from podium.insight.smallest_edits import SmallestEdits
from podium.insight.volume_demands import volume_demands
from podium.lib.time_limit import UNLIMITED, TimeIsUpError, TimeLimit
from podium.objects.core import Node, Pod
from podium.objects.requests import filter_requests
from podium.objects.resource_types import POD_DISRUPTION_BUDGETS
from podium.plugins.node_affinity import NodeAffinity

EDITS_MAX: Final = 3
"""The size of the largest sets of edits."""
_FIT: Final = "NodeResourcesFit"
_CANDIDATES_MAX: Final = 20_000
"""The number of sets of one size that are derived."""
_TRIALS_MAX: Final = 300
_PER_NODE_MAX: Final = 50
"""The number of sets of victims that are derived for one node."""
_ALIKE_MAX: Final = 100
"""The number of nodes of a group, and of sets with the same kinds of edits, that are derived."""
_ALIKE_SHOWN: Final = 3
"""The number of sets with the same kinds of edits that are returned."""
_WORLDS_MIN: Final = 20
_NODES_COPIED_MAX: Final = 100_000
"""The number of nodes copied for worlds with a new node: 20 worlds at 5,000 nodes, one for each node at 300."""


@dataclass(frozen=True)
class _NodeEdits:
    """The edits that nodes of a group need.

    Attributes:
        kinds: the kinds of the edits of the node, and of one eviction if other filters reject the pod.
        changes: the labels to set or remove.
        eviction_filters: the filters that only an eviction may satisfy.
        has_taints: whether taints are to be removed.
    """

    kinds: tuple[EditKind, ...]
    changes: LabelChanges
    eviction_filters: frozenset[str]
    has_taints: bool

    def of(self, pod: Pod, node: Node) -> EditSet:
        """Return the edits of one of the nodes."""
        return (*(taint_edits(pod, node) if self.has_taints else ()), *label_edits(node, self.changes))


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits after which the pod is placed.

    Attributes:
        edits: in an order in which they apply.
        node: the node on which the scheduler then places the pod, by the scores of all nodes.
        is_minimum: no smaller set of edits of these kinds would do.
    """

    edits: EditSet
    node: str
    is_minimum: bool = True

    def as_dict(self, *, explain: bool = False) -> dict[str, Any]:
        """Return the fix as JSON values; with `explain` each edit also in words."""
        edits = [edit.as_dict() | ({"text": edit.text} if explain else {}) for edit in self.edits]
        return {"edits": edits, "node": self.node, "minimum": self.is_minimum}


class FixSearch:
    """The search for one pod in one cluster.

    Args:
        pod: a pending pod, which may be among the cluster's pods.
        new_nodes: the edits that add a node, instead of nodes like those that are there.
        basis: what is known already of the cluster.

    Attributes:
        is_over: whether the time limit ended the search early.
    """

    def __init__(
        self,
        cluster: Cluster,
        pod: Pod,
        limit: TimeLimit = UNLIMITED,
        new_nodes: Sequence[Edit] = (),
        basis: SearchBasis | None = None,
    ) -> None:
        self.is_over = False
        self._limit = limit
        self._basis = basis or SearchBasis(cluster)
        self._cluster = self._basis.cluster
        self._pod = pod
        self._engine = self._cluster.engine_to_ask
        self._framework = self._cluster.framework_for(pod)
        self._snapshot = self._engine.cache.snapshot()
        self._blockers: dict[frozenset[str], Blockers] = {}
        self._world_keys: set[object] = set()
        self._new_nodes = new_nodes
        self._shapes = [] if new_nodes else self._basis.shapes.one_of_each(pod)
        self._worlds_max = max(_WORLDS_MIN, _NODES_COPIED_MAX // max(len(self._snapshot), 1))
        self._is_complete = True
        self._has_skipped = False
        self._trials_left = _TRIALS_MAX
        store = self._cluster.store
        self._smallest = SmallestEdits(pod, self._framework, store, limit)
        rejecting = set(self.blockers().plugins)
        if rejecting & TAINTS:
            rejecting |= TAINTS
        candidates = (*missing_claims(store, pod), *wishes(pod, self._snapshot))
        self._wishes = [wish for wish in candidates if wish.plugin in rejecting]
        self._budgets = Budgets(store.objects(POD_DISRUPTION_BUDGETS).values(), self._framework.release.preemption)
        affinity = self._framework.plugins.get(NodeAffinity.__name__)
        added_terms = affinity.added_terms if isinstance(affinity, NodeAffinity) else None
        self._demands = [*volume_demands(store, pod), *([] if added_terms is None else [added_terms])]
        self._alike = AlikeNodes(self._snapshot, pod, self._demands)
        self._namespaces = self._basis.namespace_labels

    @cached_property
    def evictions(self) -> Evictions:
        """The pods to evict for the pod as it is."""
        return Evictions(self._snapshot, self._pod, self._namespaces, self._budgets)

    def blockers(self, concessions: Collection[Wish] = ()) -> Blockers:
        """Return the blockers of the pod without these wishes."""
        key = frozenset(wish.name for wish in concessions)
        if key not in self._blockers:
            self._limit.check()
            self._blockers[key] = blockers_of(self._engine, self._framework, give_up(self._pod, concessions))
        return self._blockers[key]

    def fixes(self, fixes_max: int) -> list[Fix]:
        """Return the best of the smallest sets of edits; empty if no set of up to three edits is enough.

        Raises:
            ScheduleError: a plugin failed.
        """
        for size in range(1, EDITS_MAX + 1):
            # Whether a set is the smallest depends on the smaller ones alone.
            is_minimum = self._is_complete
            fixes = self._try_in_time(self._at_level(size), fixes_max)
            if fixes or self.is_over:
                return [Fix(edits, node, is_minimum) for edits, node in fixes]
            if self._has_skipped:
                self._is_complete = False
        return []

    def rows_one_edit_away(self) -> set[int]:
        """Return the rows that a single edit, other than adding a node, would make feasible. Nothing is tried."""
        rows: set[int] = set()
        for wish in self._wishes:
            rows.update(self.blockers([wish]).feasible().tolist())
        for group in self._alike.rejected_groups(self.blockers(), 1):
            edits = self._edits_of(self._pod, group)
            if edits is None or len(edits.kinds) != 1:
                continue
            filters = edits.eviction_filters
            rows.update(
                row
                for row in self._snapshot.order[group.positions].tolist()
                if not filters or any(self.evictions.sets(row, filters, 1))
            )
        return rows

    # ------------------------------------------------------------ candidates

    @property
    def has_left_out(self) -> bool:
        """Return whether sets were left out for a limit, or since others are alike."""
        return self._has_skipped or not self._is_complete

    def sets_beside_pod(self, size: int) -> Iterator[EditSet]:
        """Yield the sets of that size that change other objects than the pod and may be enough. Nothing is tried."""
        for _, edits in self._beside((), size):
            yield edits
        yield from self._with_new_node((), size - 1)

    def _at_level(self, size: int) -> list[EditSet]:
        sets: dict[tuple[object, ...], EditSet] = {}
        candidates = islice(self._candidates(size), _CANDIDATES_MAX + 1)
        for number, edits in enumerate(candidates):
            if number == _CANDIDATES_MAX:
                self._is_complete = False
            sets.setdefault(tuple(sorted(edit.identity for edit in edits)), edits)
        return sorted((edits for edits in sets.values() if len(edits) == size), key=_rank)

    def _candidates(self, size: int) -> Iterator[EditSet]:
        for count in range(size + 1):
            for concessions in combinations(self._wishes, count):
                if contradict(concessions):
                    continue
                if count == size:
                    rows = self.blockers(concessions).feasible()
                    if len(rows):
                        yield from self._smallest.sets(concessions, rows.tolist(), self._engine)
                    continue
                for row, edits in self._beside(concessions, size - count):
                    for concession_edits in self._smallest.sets(concessions, [row], self._engine, edits):
                        yield (*concession_edits, *edits)
                yield from self._with_new_node(concessions, size - count - 1)

    def _beside(self, concessions: Sequence[Wish], count: int) -> Iterator[tuple[int, EditSet]]:
        """Yield rows, each with `count` edits of the node and of other pods that may be enough there."""
        pod = give_up(self._pod, concessions)
        evictions = Evictions(self._snapshot, pod, self._namespaces, self._budgets)
        places: list[tuple[int, _NodeEdits]] = []
        for group in self._alike.rejected_groups(self.blockers(concessions), count):
            edits = self._edits_of(pod, group)
            if edits is None or len(edits.kinds) > count or (not group.others and len(edits.kinds) != count):
                continue
            positions = group.positions
            if not group.others and len(positions) > _ALIKE_MAX:
                positions, self._has_skipped = positions[:_ALIKE_MAX], True
            places += [(place, edits) for place in positions.tolist()]
        places.sort(key=itemgetter(0))
        alike: Counter[tuple[EditKind, ...]] = Counter()
        for place, edits in places:
            row = int(self._snapshot.order[place])
            if alike[edits.kinds] >= _ALIKE_MAX and edits.eviction_filters <= EXACT:
                self._has_skipped = True
                continue  # the others would not be shown
            node_edits = edits.of(pod, self._node(row))
            if not edits.eviction_filters:
                alike[edits.kinds] += 1
                yield row, node_edits
                continue
            for victims in islice(evictions.sets(row, edits.eviction_filters, count - len(node_edits)), _PER_NODE_MAX):
                if len(node_edits) + len(victims) == count:
                    alike[edits.kinds] += 1
                    yield row, (*node_edits, *map(eviction, victims))

    def _edits_of(self, pod: Pod, group: AlikeGroup) -> _NodeEdits | None:
        """Return the edits of each node of the group that the filters require; None if no labels are enough."""
        first = self._node(int(self._snapshot.order[group.positions[0]]))
        changes: LabelChanges = {}
        if group.plugins & LABELS:
            changes = label_changes(pod, first, self._demands) or {}
            if not changes:
                return None
        has_taints = bool(group.plugins & TAINTS)
        kinds = [edit.kind for edit in taint_edits(pod, first)] if has_taints else []
        kinds += [EditKind.LABEL_NODE] * len(changes) + [EditKind.EVICT] * bool(group.others)
        return _NodeEdits(tuple(kinds), changes, group.others, has_taints=has_taints)

    def _node(self, row: int) -> Node:
        node = self._snapshot.nodes[row]
        assert node is not None
        return node

    def _with_new_node(self, concessions: Sequence[Wish], eviction_count: int) -> Iterator[EditSet]:
        """Yield the concessions with a new node on which the pod fits after `eviction_count` evictions."""
        pod = give_up(self._pod, concessions)
        blockers = self.blockers(concessions)
        is_hopeless = np.zeros(len(self._snapshot.nodes), np.bool_)
        # A new node brings its own devices, where those of the node that it is like are taken.
        may_help = TAINTS | {DEVICES} | (LABELS if self._alike.tells_apart else frozenset())
        if devices := self._devices_of_no_node(pod, blockers):
            may_help |= {_FIT}
        for plugin in blockers.plugins:
            if plugin not in may_help:
                is_hopeless |= blockers.rejected_by(plugin) & blockers.unresolvable_by(plugin)
        # A node of a type that is not there yet may have labels and devices that no other has.
        hopeful_nodes = (node for node in self._shapes if not is_hopeless[self._snapshot.row_of[node.name]])
        additions = chain(
            (self._with_one_like(node, devices) for node in hopeful_nodes),
            (self._with_one(edit.name, partial(_itself, edit)) for edit in self._new_nodes),
        )
        for addition in additions:
            if addition is None:
                return
            edit, world = addition
            self._limit.check()
            for rows, victims in self._victims_for(pod, world, edit.name, eviction_count):
                evictions = [*map(eviction, victims)]
                for concession_edits in self._smallest.sets(concessions, rows, world.engine, evictions):
                    yield (*concession_edits, edit, *evictions)

    def _victims_for(
        self, pod: Pod, world: Cluster, node_name: str, count: int
    ) -> Iterator[tuple[list[int], tuple[Pod, ...]]]:
        """Yield the feasible rows in the world of a new node, with sets of `count` pods to evict for that."""
        blockers = blockers_of(world.engine, world.framework_for(pod), pod)
        if not count:
            if rows := blockers.feasible().tolist():
                yield rows, ()
            return
        row = blockers.snapshot.row_of[node_name]
        plugins = [plugin for plugin in blockers.plugins if blockers.rejected_by(plugin)[row]]
        if plugins and not any(blockers.unresolvable_by(plugin)[row] for plugin in plugins):
            evictions = Evictions(blockers.snapshot, pod, self._namespaces, self._budgets)
            for victims in islice(evictions.sets(row, plugins, count), _PER_NODE_MAX):
                if len(victims) == count:
                    yield [row], victims

    def _devices_of_no_node(self, pod: Pod, blockers: Blockers) -> dict[str, int]:
        """Return the huge pages and devices of which no node has as many as the pod requests, even if it were empty."""
        if _FIT not in blockers.plugins:
            return {}
        snapshot = self._snapshot
        return {
            resource: amount
            for resource, amount in filter_requests(pod.spec).items()
            if is_indispensable(resource)
            and amount > snapshot.allocatable(resource).take(snapshot.order).max(initial=0)
        }

    def _with_one_like(self, node: Node, devices: Mapping[str, int]) -> tuple[Edit, Cluster] | None:
        """Return the addition of a node like this one, as `_with_one`.

        Args:
            devices: amounts that the new node has instead.
        """
        key = (node.name, *sorted(devices.items()))
        return self._with_one(key, lambda: node_like(self._cluster, node, self._snapshot.row_of.keys(), devices))

    def _with_one(self, key: object, make_edit: Callable[[], Edit]) -> tuple[Edit, Cluster] | None:
        """Return the addition of a node, and a world with it; None if there are too many worlds already.

        Args:
            key: identifies the node.
        """
        if key not in self._world_keys:
            if len(self._world_keys) == self._worlds_max:
                self._is_complete = False
                return None
            self._world_keys.add(key)
        return self._basis.with_node(key, make_edit)

    # ------------------------------------------------------------ trials

    def _try_in_time(self, candidates: Iterable[EditSet], fixes_max: int) -> list[tuple[EditSet, str]]:
        """Return the sets that are enough, in order, each with the node on which the pod is then placed."""
        fixes: list[tuple[EditSet, str]] = []
        try:
            self._try_all(candidates, fixes_max, fixes)
        except (TimeIsUpError, ScheduleError):
            # Whatever interrupts the code of a plugin counts as its failure.
            if not self._limit.is_over():
                raise
            self.is_over = self._limit.is_noticed = True
            self._is_complete = False
        return fixes

    def _try_all(self, candidates: Iterable[EditSet], fixes_max: int, fixes: list[tuple[EditSet, str]]) -> None:
        """Try the candidates in order, and append those that are enough."""
        counts: Counter[tuple[EditKind, ...]] = Counter()
        for candidate in candidates:
            self._limit.check()
            kinds = tuple(sorted((edit.kind for edit in candidate), key=INTRUSIVENESS.__getitem__))
            if counts[kinds] == _ALIKE_SHOWN:
                continue
            if self._trials_left <= 0:
                self._is_complete = False
                break
            self._trials_left -= 1
            edits, node = self._try(candidate)
            if node is not None:
                fixes.append((edits, node))
                counts[kinds] += 1
                if len(fixes) == fixes_max:
                    break

    def _try(self, candidate: EditSet) -> tuple[EditSet, str | None]:
        """Return the edits in an order in which they apply, and the node on which the pod is then placed, or None."""
        pod = self._pod
        edits: list[Edit] = []
        for edit in in_order(candidate):
            if edit.is_of_pod:
                edit = append_toleration(pod, edit)
                pod = apply_pod_edits(pod, [edit])
            edits.append(edit)
        if not any(edit.object_kind == "Node" or edit.kind is EditKind.EVICT for edit in edits):
            return tuple(edits), best_node(self._engine, self._framework, pod)
        try:
            with self._basis.world_after(edits) as world:
                return tuple(edits), best_node(world.engine_to_ask, world.framework_for(pod), pod)
        except EditsDoNotApplyError:
            return candidate, None


def _rank(edits: EditSet) -> tuple[object, ...]:
    """Return the sort key: few edits come first, then the least intrusive, then the smallest."""
    kinds = sorted((INTRUSIVENESS[edit.kind] for edit in edits), reverse=True)
    return len(edits), kinds, sum(edit.size for edit in edits), [edit.text for edit in edits]


def _itself(edit: Edit) -> Edit:
    return edit
