"""The smallest sets of edits after which a pod fits: first all sets of one edit, then of two, then of three.

What the pod wishes for is given up first (`pod_edits.Wish`): every filter then says on all nodes at once what is still
in the way. For filters that look at one node only, what is left of a node is what has to be edited there; sets that
touch spreading, pod affinity or volumes are tried on a fork. Every set that is handed out has been tried.

Cost: for each set of wishes one call of every filter over all nodes; a fork for each set that changes nodes or pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice
from operator import itemgetter
from typing import Any, Final

import numpy as np

from podium.engine.cluster import Cluster
from podium.engine.placing import Engine
from podium.framework.contract.status import ScheduleError
from podium.framework.preemption.candidates import Budgets
from podium.insight.absent_claims import missing_claims
from podium.insight.alike_nodes import LABELS, TAINTS, AlikeGroup, AlikeNodes
from podium.insight.applied_edits import EditsDoNotApplyError, apply_edits
from podium.insight.asked_pod import best_node
from podium.insight.blockers import Blockers, blockers_of
from podium.insight.edits import INTRUSIVENESS, Edit, EditKind, in_order
from podium.insight.evictions import EXACT, Evictions
from podium.insight.new_nodes import one_of_each_shape, without_daemons
from podium.insight.node_edits import (
    LabelChanges,
    added_node,
    eviction,
    label_changes,
    label_edits,
    taint_edits,
)
from podium.insight.pod_edits import (
    Wish,
    append_toleration,
    apply_pod_edits,
    contradict,
    lower_request,
    raise_max_skew,
    wishes,
    wishes_in_order,
)
from podium.insight.requests import is_indispensable, least_request
from podium.insight.volume_demands import volume_demands
from podium.lib.time_limit import UNLIMITED, TimeIsUpError, TimeLimit
from podium.objects.core import Node, Pod
from podium.objects.requests import filter_requests
from podium.objects.resource_types import NAMESPACES, NODES, POD_DISRUPTION_BUDGETS, PODS
from podium.plugins.node_affinity import NodeAffinity

EDITS_MAX: Final = 3
"""The largest sets of edits that are looked for."""
_FIT: Final = "NodeResourcesFit"
_CANDIDATES_MAX: Final = 20_000
_TRIALS_MAX: Final = 300
_PER_NODE_MAX: Final = 50
_ALIKE_MAX: Final = 100
_ALIKE_SHOWN: Final = 3
"""How many sets of edits of the same kinds are handed out: on large clusters there may be one for each node."""
_VARIANTS_MAX: Final = 5
_WORLDS_MIN: Final = 20
_NODES_COPIED_MAX: Final = 100_000
"""How many nodes are copied for the worlds with a new node: 20 worlds at 5,000 nodes, one for each node at 300."""

EditSet = tuple[Edit, ...]


@dataclass(frozen=True)
class _NodeEdits:
    """What it takes on nodes that are alike.

    Attributes:
        kinds: of the edits of the node, and one eviction if other filters reject the pod.
        changes: the labels to set or remove.
        others: the filters that only an eviction may help against.
        has_taints: whether taints are to be removed.
    """

    kinds: tuple[EditKind, ...]
    changes: LabelChanges
    others: frozenset[str]
    has_taints: bool

    def of(self, pod: Pod, node: Node) -> EditSet:
        """The edits of one of the nodes."""
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
        """The fix as JSON values; with `explain` each edit also in words."""
        edits = [each.as_dict() | ({"text": each.text} if explain else {}) for each in self.edits]
        return {"edits": edits, "node": self.node, "minimum": self.is_minimum}


class FixSearch:
    """The search for one pod in one cluster.

    Args:
        pod: pending. It may be among the cluster's pods.

    Attributes:
        is_over: whether the time was up before the search had ended.
    """

    def __init__(self, cluster: Cluster, pod: Pod, limit: TimeLimit = UNLIMITED) -> None:
        self.is_over = False
        self._limit = limit
        self._cluster = cluster.fork()
        self._pod = pod
        self._engine = self._cluster.engine_to_ask
        self._framework = self._cluster.framework_for(pod)
        self._snapshot = self._engine.cache.snapshot()
        self._known: dict[frozenset[str], Blockers] = {}
        self._worlds: dict[tuple[object, ...], tuple[Edit, Cluster]] = {}
        self._shapes = one_of_each_shape(self._cluster.nodes, pod)
        self._worlds_max = max(_WORLDS_MIN, _NODES_COPIED_MAX // max(len(self._snapshot), 1))
        self._is_complete = True
        self._has_skipped = False
        self._trials_left = _TRIALS_MAX
        rejecting = set(self.blockers().plugins)
        if rejecting & TAINTS:
            rejecting |= TAINTS
        store = self._cluster.store
        asked_for = (*missing_claims(store, pod), *wishes(pod, self._snapshot))
        self._wishes = [each for each in asked_for if each.plugin in rejecting]
        self._budgets = Budgets(store.objects(POD_DISRUPTION_BUDGETS).values())
        affinity = self._framework.plugins.get(NodeAffinity.__name__)
        added = affinity.added_terms if isinstance(affinity, NodeAffinity) else None
        self._demands = [*volume_demands(store, pod), *([] if added is None else [added])]
        self._alike = AlikeNodes(self._snapshot, pod, self._demands)
        self._namespaces = {each.key: each.metadata.labels for each in store.objects(NAMESPACES).values()}

    @cached_property
    def evictions(self) -> Evictions:
        """The pods to evict for the pod as it is."""
        return Evictions(self._snapshot, self._pod, self._namespaces, self._budgets)

    def blockers(self, given_up: Collection[Wish] = ()) -> Blockers:
        """What is in the way of the pod without these wishes."""
        key = frozenset(each.name for each in given_up)
        found = self._known.get(key)
        if found is None:
            self._limit.check()
            pod = apply_pod_edits(self._pod, [wish.relaxed for wish in wishes_in_order(given_up)])
            found = self._known[key] = blockers_of(self._engine, self._framework, pod)
        return found

    def fixes(self, most: int) -> list[Fix]:
        """The best of the smallest sets of edits; empty if no set of up to three edits is enough.

        Raises:
            ScheduleError: a plugin failed.
        """
        for size in range(1, EDITS_MAX + 1):
            # Whether a set is the smallest depends on the smaller ones alone.
            is_minimum = self._is_complete
            found = self._tried(self._at_level(size), most)
            if found or self.is_over:
                return [Fix(edits, node, is_minimum) for edits, node in found]
            if self._has_skipped:
                self._is_complete = False
        return []

    def rows_one_edit_away(self) -> set[int]:
        """The rows of nodes onto which a single edit would let the pod, other than adding a node. Nothing is tried."""
        rows: set[int] = set()
        for wish in self._wishes:
            rows.update(self.blockers([wish]).feasible().tolist())
        for nodes in self._alike.rejected_groups(self.blockers(), 1):
            edits = self._edits_of(self._pod, nodes)
            if edits is None or len(edits.kinds) != 1:
                continue
            found = self._snapshot.order[nodes.at].tolist()
            if edits.others:
                found = [row for row in found if any(self.evictions.sets(row, edits.others, 1))]
            rows.update(found)
        return rows

    # ------------------------------------------------------------ candidates

    def _at_level(self, size: int) -> list[EditSet]:
        found: dict[tuple[object, ...], EditSet] = {}
        candidates = islice(self._candidates(size), _CANDIDATES_MAX + 1)
        for number, edits in enumerate(candidates):
            if number == _CANDIDATES_MAX:
                self._is_complete = False
            found.setdefault(tuple(sorted(each.identity for each in edits)), edits)
        return sorted((edits for edits in found.values() if len(edits) == size), key=_rank)

    def _candidates(self, size: int) -> Iterator[EditSet]:
        for count in range(size + 1):
            for given_up in combinations(self._wishes, count):
                if contradict(given_up):
                    continue
                if count == size:
                    rows = self.blockers(given_up).feasible()
                    if len(rows):
                        yield from self._smallest(given_up, rows.tolist())
                    continue
                for row, edits in self._beside(given_up, size - count, _ALIKE_MAX):
                    for own in self._smallest(given_up, [row], gone=edits):
                        yield (*own, *edits)
                yield from self._with_new_node(given_up, size - count - 1)

    def _beside(
        self, given_up: Sequence[Wish], count: int, most_alike: int | None = None
    ) -> Iterator[tuple[int, EditSet]]:
        """Rows, and so many edits of the node and of other pods that may be enough there.

        Args:
            most_alike: how many sets of the same kinds are wanted; None for all.
        """
        pod = apply_pod_edits(self._pod, [wish.relaxed for wish in wishes_in_order(given_up)])
        evictions = Evictions(self._snapshot, pod, self._namespaces, self._budgets)
        found: list[tuple[int, _NodeEdits]] = []
        for nodes in self._alike.rejected_groups(self.blockers(given_up), count):
            edits = self._edits_of(pod, nodes)
            if edits is None or len(edits.kinds) > count or (not nodes.others and len(edits.kinds) != count):
                continue
            at = nodes.at
            if most_alike is not None and not nodes.others and len(at) > most_alike:
                at, self._has_skipped = at[:most_alike], True
            found += [(place, edits) for place in at.tolist()]
        found.sort(key=itemgetter(0))
        alike: Counter[tuple[EditKind, ...]] = Counter()
        for place, edits in found:
            row = int(self._snapshot.order[place])
            if most_alike is not None and alike[edits.kinds] >= most_alike and edits.others <= EXACT:
                self._has_skipped = True
                continue  # so many sets of these kinds are known to be enough that the others would not be shown
            own = edits.of(pod, self._node(row))
            if not edits.others:
                alike[edits.kinds] += 1
                yield row, own
                continue
            for victims in islice(evictions.sets(row, edits.others, count - len(own)), _PER_NODE_MAX):
                if len(own) + len(victims) == count:
                    alike[edits.kinds] += 1
                    yield row, (*own, *map(eviction, victims))

    def _edits_of(self, pod: Pod, nodes: AlikeGroup) -> _NodeEdits | None:
        """The edits of each of these nodes that the filters ask for; None if no labels are enough."""
        first = self._node(int(self._snapshot.order[nodes.at[0]]))
        changes: LabelChanges = {}
        if nodes.plugins & LABELS:
            found = label_changes(pod, first, self._demands)
            if not found:
                return None
            changes = found
        has_taints = bool(nodes.plugins & TAINTS)
        kinds = [each.kind for each in taint_edits(pod, first)] if has_taints else []
        kinds += [EditKind.LABEL_NODE] * len(changes) + [EditKind.EVICT] * bool(nodes.others)
        return _NodeEdits(tuple(kinds), changes, nodes.others, has_taints=has_taints)

    def _node(self, row: int) -> Node:
        node = self._snapshot.nodes[row]
        assert node is not None
        return node

    def _with_new_node(self, given_up: Sequence[Wish], evicted: int) -> Iterator[EditSet]:
        """The wishes, a new node on which the pod fits, and so many pods elsewhere to evict for that."""
        pod = apply_pod_edits(self._pod, [wish.relaxed for wish in wishes_in_order(given_up)])
        blockers = self.blockers(given_up)
        is_hopeless = np.zeros(len(self._snapshot.nodes), np.bool_)
        may_help = TAINTS | (LABELS if self._alike.tells_apart else frozenset())
        if devices := self._devices_of_no_node(pod, blockers):
            may_help |= {_FIT}
        for plugin in blockers.plugins:
            if plugin not in may_help:
                is_hopeless |= blockers.rejected_by(plugin) & blockers.unresolvable_by(plugin)
        for node in self._shapes:
            if is_hopeless[self._snapshot.row_of[node.name]]:
                continue
            if (known := self._with_one_like(node, devices)) is None:
                return
            edit, world = known
            self._limit.check()
            found = blockers_of(world.engine, world.framework_for(pod), pod)
            new_row = found.snapshot.row_of[edit.name]
            if not evicted:
                rows = found.feasible().tolist()
                sets: Iterable[tuple[Pod, ...]] = [()] if rows else []
            else:
                rows, plugins = [new_row], [each for each in found.plugins if found.rejected_by(each)[new_row]]
                if not plugins or any(found.unresolvable_by(each)[new_row] for each in plugins):
                    continue
                evictions = Evictions(found.snapshot, pod, self._namespaces, self._budgets)
                sets = islice(evictions.sets(new_row, plugins, evicted), _PER_NODE_MAX)
            for victims in sets:
                if len(victims) == evicted:
                    more = [*map(eviction, victims)]
                    for own in self._smallest(given_up, rows, world.engine, more):
                        yield (*own, edit, *more)

    def _devices_of_no_node(self, pod: Pod, blockers: Blockers) -> dict[str, int]:
        """Huge pages and devices of which no node has as many as the pod requests, even if it were empty."""
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
        """The addition of a node like this one, and a world with it; None if there are too many worlds already.

        Args:
            devices: what it has beside, or more of.
        """
        key = (node.name, *sorted(devices.items()))
        known = self._worlds.get(key)
        if known is None:
            if len(self._worlds) == self._worlds_max:
                self._is_complete = False
                return None
            new, edit = added_node(node, self._snapshot.row_of.keys(), devices)
            world = self._cluster.fork()
            world.put(NODES, without_daemons(world, new, node))
            known = self._worlds[key] = edit, world
        return known

    # ------------------------------------------------------------ the smallest edits that are enough

    def _smallest(
        self, given_up: Sequence[Wish], rows: Sequence[int], engine: Engine | None = None, gone: Sequence[Edit] = ()
    ) -> Iterator[EditSet]:
        """The edits for these wishes that give up as little as possible, so that one of the rows is enough.

        Args:
            gone: what is done beside; pods that are evicted leave their requests to the pod.
        """
        engine = engine or self._engine
        plain = [each.relaxed for each in given_up if each.skew is None and not each.resource and not each.edits_for]
        lowered = self._lowered([each.resource for each in given_up if each.resource], rows, engine, gone)
        if lowered is None:
            return
        chosen = [wish for wish in given_up if wish.edits_for is not None]
        skews = [each for each in given_up if each.skew is not None]
        for variant in self._variants(chosen, rows, engine):
            edits = [*plain, *lowered, *variant]
            if skews:
                raised = self._raised(edits, skews, engine)
                if raised is None:
                    continue
                edits += raised
            yield tuple(edits)

    def _lowered(
        self, resources: Sequence[str], rows: Sequence[int], engine: Engine, gone: Sequence[Edit]
    ) -> list[Edit] | None:
        """Requests that are as large as possible on one of the rows."""
        if not resources:
            return []
        snapshot = engine.cache.snapshot()
        now = filter_requests(self._pod.spec)
        left = {name: snapshot.allocatable(name) - snapshot.requested(name) for name in resources}
        for pod in self._evicted(gone):
            row = snapshot.row_of[pod.node_name]
            for name in resources:
                left[name][row] += snapshot.pod_usages(row)[pod.uid].requests.get(name, 0)
        row = max(rows, key=lambda row: (min(left[name][row] / now[name] for name in resources), -row))
        edits = []
        for name in resources:
            most = max(int(left[name][row]), least_request(self._pod, name))
            edit = lower_request(self._pod, name, min(most, now[name]))
            if edit is None or not edit.patch:
                return None
            edits.append(edit)
        return edits

    def _evicted(self, edits: Sequence[Edit]) -> Iterator[Pod]:
        for edit in edits:
            if edit.kind is EditKind.EVICT:
                pod = self._cluster.store.get(PODS, f"{edit.namespace}/{edit.name}")
                if pod is not None and pod.node_name in self._snapshot.row_of:
                    yield pod

    def _variants(self, chosen: Sequence[Wish], rows: Sequence[int], engine: Engine) -> Iterable[Sequence[Edit]]:
        """For each wish an edit that is enough on one of the rows, the least intrusive first."""
        if not chosen:
            return [()]
        (wish,) = chosen
        assert wish.edits_for is not None
        snapshot = engine.cache.snapshot()
        found: dict[tuple[object, ...], Edit] = {}
        for row in rows[: _VARIANTS_MAX * 10]:
            node = snapshot.nodes[row]
            assert node is not None
            for edit in wish.edits_for(node):
                found.setdefault(edit.identity, edit)
        ranked = sorted(found.values(), key=lambda edit: INTRUSIVENESS[edit.kind])
        return [(edit,) for edit in (*ranked[:_VARIANTS_MAX], *ranked[-1:])]

    def _raised(self, edits: Sequence[Edit], skews: Sequence[Wish], engine: Engine) -> list[Edit] | None:
        """Raise each maxSkew as little as possible."""
        pods = len(self._cluster.store.objects(PODS))

        def fits(more: Sequence[Edit]) -> bool:
            self._limit.check()
            pod = apply_pod_edits(self._pod, in_order([*edits, *more]))
            return bool(len(blockers_of(engine, self._framework, pod).feasible()))

        raised = {wish.name: wish.relaxed for wish in skews}
        for wish in skews:
            assert wish.skew is not None
            low = self._pod.spec.topology_spread_constraints[wish.skew].max_skew + 1
            high = max(low, pods + 1)
            while low < high:
                middle = (low + high) // 2
                if fits([*{**raised, wish.name: raise_max_skew(self._pod, wish.skew, middle)}.values()]):
                    high = middle
                else:
                    low = middle + 1
            raised[wish.name] = raise_max_skew(self._pod, wish.skew, low)
        return list(raised.values())

    # ------------------------------------------------------------ trials

    def _tried(self, candidates: Iterable[EditSet], most: int) -> list[tuple[EditSet, str]]:
        """The sets that are enough, in order, each with the node on which the pod is then placed."""
        found: list[tuple[EditSet, str]] = []
        try:
            self._try_all(candidates, most, found)
        except (TimeIsUpError, ScheduleError):
            # Whatever interrupts the code of a plugin counts as its failure.
            if not self._limit.is_over():
                raise
            self.is_over = self._limit.is_noticed = True
            self._is_complete = False
        return found

    def _try_all(self, candidates: Iterable[EditSet], most: int, found: list[tuple[EditSet, str]]) -> None:
        """Append the sets that are enough, as they are found."""
        shown: Counter[tuple[EditKind, ...]] = Counter()
        for edits in candidates:
            self._limit.check()
            kinds = tuple(sorted((each.kind for each in edits), key=INTRUSIVENESS.__getitem__))
            if shown[kinds] == _ALIKE_SHOWN:
                continue
            if self._trials_left <= 0:
                self._is_complete = False
                break
            self._trials_left -= 1
            ordered, node = self._try(edits)
            if node is not None:
                found.append((ordered, node))
                shown[kinds] += 1
                if len(found) == most:
                    break

    def _try(self, edits: EditSet) -> tuple[EditSet, str | None]:
        """The edits as they apply one after the other, and the node on which the pod is then placed; None if none."""
        pod = self._pod
        applied: list[Edit] = []
        for edit in in_order(edits):
            if edit.is_of_pod:
                edit = append_toleration(pod, edit)
                pod = apply_pod_edits(pod, [edit])
            applied.append(edit)
        if not any(edit.object_kind == "Node" or edit.kind is EditKind.EVICT for edit in applied):
            return tuple(applied), best_node(self._engine, self._framework, pod)
        world = self._cluster.fork()
        try:
            apply_edits(world, applied)
        except EditsDoNotApplyError:
            return edits, None
        return tuple(applied), best_node(world.engine, world.framework_for(pod), pod)


def _rank(edits: EditSet) -> tuple[object, ...]:
    """Few edits first, then the least intrusive, then the smallest."""
    kinds = sorted((INTRUSIVENESS[each.kind] for each in edits), reverse=True)
    return len(edits), kinds, sum(each.size for each in edits), [each.text for each in edits]
