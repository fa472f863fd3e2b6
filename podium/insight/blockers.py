"""Everything that keeps a pod off each node: the verdict of every filter on every node.

An attempt stops at the first filter that rejects a node; these answers do not. A filter whose PreFilter rejected the
pod outright rejects all nodes.

Cost: one call of each filter over all nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from podium.cluster import Rows, Snapshot
from podium.cluster.snapshot import BoolArray
from podium.engine.placing import Engine
from podium.framework.contract.filter import PreFilterPlugin
from podium.framework.contract.status import Code, ScheduleError, Status, demand_status
from podium.framework.cycle.closed_nodes import among_closed
from podium.framework.cycle.cycle import Cycle
from podium.framework.cycle.filter_chain import FilterChain
from podium.framework.cycle.pre_filter import names_of
from podium.framework.profile.forms import active
from podium.framework.profile.rejection import Rejection, rejection_of
from podium.framework.profile.runtime import Framework
from podium.objects.core import Pod
from podium.objects.pod_limits import excess_of

_LIMITS = "PodLimits"
"""The name under which a pod with too many parts is rejected: no plugin is asked then."""
_REJECTS_PODS = (Code.SKIP, Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)


@dataclass(frozen=True)
class Blockers:
    """The blockers of one pod on each node.

    Attributes:
        outright: the statuses of PreFilter plugins that reject the pod on every node, by plugin.
        node_names: the nodes to which a PreFilter plugin restricts the search, by plugin.
        rejections: the nodes that each filter rejects, by plugin.
        beside_nominated: the statuses, by row, of nodes that would be feasible without the pods nominated to them.
    """

    snapshot: Snapshot
    outright: Mapping[str, Status]
    node_names: Mapping[str, frozenset[str]]
    rejections: Mapping[str, Rejection]
    beside_nominated: Mapping[int, Status]

    @property
    def plugins(self) -> Sequence[str]:
        """The plugins that reject anything."""
        plugins = (status.plugin for status in self.beside_nominated.values())
        return tuple(dict.fromkeys((*self.outright, *self.node_names, *self.rejections, *plugins)))

    def rejected_by(self, plugin: str) -> BoolArray:
        """Return which nodes the plugin rejects. Shape: one entry per row of the snapshot."""
        mask = np.zeros(len(self.snapshot.nodes), np.bool_)
        if plugin in self.outright:
            mask[self.snapshot.order] = True
            return mask
        if plugin in self.rejections:
            mask[self.rejections[plugin].rows] = True
        if plugin in self.node_names:
            names = self.node_names[plugin]
            mask[[row for name, row in self.snapshot.row_of.items() if name not in names]] = True
        for row, status in self.beside_nominated.items():
            if status.plugin == plugin:
                mask[row] = True
        return mask

    def unresolvable_by(self, plugin: str) -> BoolArray:
        """Return on which of the nodes that the plugin rejects no eviction could change its verdict.

        Shape: one entry per row of the snapshot.
        """
        rejection = self.rejections.get(plugin)
        mask = np.full(len(self.snapshot.nodes), plugin in self.outright or rejection is None)
        if rejection is not None and plugin not in self.outright:
            # Only plain Unschedulable may change by preemption; both other codes say that it cannot.
            mask[rejection.rows] = rejection.codes() != Code.UNSCHEDULABLE
        return mask

    def rejected_by_any(self) -> BoolArray:
        """Return which nodes any plugin rejects. Shape: one entry per row of the snapshot."""
        mask = np.zeros(len(self.snapshot.nodes), np.bool_)
        for plugin in self.plugins:
            mask |= self.rejected_by(plugin)
        return mask

    def feasible(self) -> Rows:
        """Return the rows that nothing rejects, in node order."""
        return self.snapshot.order[~self.rejected_by_any()[self.snapshot.order]]

    def by_row(self) -> Mapping[int, Sequence[Status]]:
        """Return every status of each node that has any. Cost: one entry per node and blocker."""
        statuses: dict[int, list[Status]] = {}
        for row, status in self._all():
            of_row = statuses.setdefault(row, [])
            # A plugin that rejects in PreFilter and in Filter says the same twice.
            if all(entry.plugin != status.plugin for entry in of_row):
                of_row.append(status)
        return statuses

    def _all(self) -> Iterator[tuple[int, Status]]:
        rows = self.snapshot.order.tolist()
        for status in self.outright.values():
            yield from ((row, status) for row in rows)
        for rejection in self.rejections.values():
            yield from rejection.by_row()
        for plugin, names in self.node_names.items():
            # PreFilter names nodes without a reason, so upstream's generic one stands in.
            reason = f"node(s) didn't satisfy plugin {plugin}"
            status = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,), plugin)
            yield from ((row, status) for row in rows if self.snapshot.name(row) not in names)
        yield from self.beside_nominated.items()


def blockers_of(engine: Engine, framework: Framework, pod: Pod) -> Blockers:
    """Ask every filter about every node.

    Raises:
        ScheduleError: a plugin failed.
    """
    cycle = engine.cycle(framework, pod)
    snapshot, rows = cycle.snapshot, cycle.snapshot.order
    outright, node_names = _pre_filter(cycle)
    rejections: dict[str, Rejection] = {}
    # Closed nodes come first, as in an attempt: no plugin is asked about a node whose pods cannot be read.
    if (split := among_closed(snapshot, rows)) is not None:
        rejection = split[1]
        rejections[rejection.status_counts()[0][0].plugin] = rejection
    # An attempt with too large a spec calls no plugin, and a plugin could take very long here.
    if _LIMITS not in outright:
        for plugin in active(framework.filters, cycle.state):
            if plugin.name in outright:
                continue
            try:
                split = rejection_of(rows, plugin.filter(cycle.state, pod, snapshot, rows))
            except BaseException as error:
                # A plugin may raise anything, also what is no Exception; the attempt that fails is this one only.
                action = f'running "{plugin.name}" filter plugin'
                raise framework.plugin_failure(plugin.name, "Filter", pod, action, error) from error
            if split is not None:
                rejections[plugin.name] = split[1]
    blockers = Blockers(snapshot, outright, node_names, rejections, {})
    # A pod passes only where it fits with the nominated pods of its priority as well as without them.
    if outright or not cycle.nominated_ahead:
        return blockers
    filters, is_rejected = FilterChain.of(cycle), blockers.rejected_by_any()
    statuses = {row: filters.alone(row) for row in cycle.nominated_ahead.rows.by_row if not is_rejected[row]}
    statuses_beside = {row: status for row, status in statuses.items() if status is not None}
    return Blockers(snapshot, outright, node_names, rejections, statuses_beside)


def _pre_filter(cycle: Cycle) -> tuple[dict[str, Status], dict[str, frozenset[str]]]:
    """Run every PreFilter plugin, also after one that rejects the pod."""
    framework, state, pod = cycle.framework, cycle.state, cycle.pod
    if too_much := excess_of(pod):
        return {_LIMITS: Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (too_much,), _LIMITS)}, {}
    outright: dict[str, Status] = {}
    node_names: dict[str, frozenset[str]] = {}
    skips = set()
    for plugin in framework.pre_filter:
        status, names = _ask(plugin, cycle)
        if status is None:
            if names is not None:
                node_names[plugin.name] = names
        elif status.code is Code.SKIP:
            skips.add(plugin.name)
        elif status.code is Code.ERROR:
            raise ScheduleError(f'running PreFilter plugin "{plugin.name}": {status.message}')
        else:
            outright[plugin.name] = status.by(plugin.name)
    # The chain below skips filters by this set, as an attempt does.
    state.skipped_filters = frozenset(skips)
    return outright, node_names


def _ask(plugin: PreFilterPlugin, cycle: Cycle) -> tuple[Status | None, frozenset[str] | None]:
    try:
        answer, status = plugin.pre_filter(cycle.state, cycle.pod, cycle.snapshot)
        return demand_status(status, _REJECTS_PODS), names_of(answer) if answer is not None else None
    except BaseException as error:
        action = f'running PreFilter plugin "{plugin.name}"'
        raise cycle.framework.plugin_failure(plugin.name, "PreFilter", cycle.pod, action, error) from error
