"""TopologyLevels: the pods of a group share the lowest possible level of a topology: a rack, or else a block.

Runs at: PreFilter and Filter if a level is required; PreScore, Score.
Verdict: UnschedulableAndUnresolvable on nodes outside the domain where the group runs; for its first pod, in domains
without room for the whole group.
Requeue: any event, if a level is required.
Cost: a few passes over the nodes for each pod of a group, and one step for each pod on a node whose pods have changed.
Source: none; it is podium's own. Kueue's Topology Aware Scheduling has the same aim.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from podium.cluster import IntArray, NodeInfo, Rows, Snapshot
from podium.cluster.changed_rows import ChangedRows
from podium.framework import contract as fwk
from podium.objects.core import Pod
from podium.objects.coscheduling import GROUP_LABEL, gang_of, spec_of_gang
from podium.objects.errors import FieldError
from podium.objects.pod_groups import group_of
from podium.objects.requests import filter_requests
from podium.objects.resource_types import COSCHEDULING_POD_GROUPS, POD_GROUPS, PODS
from podium.objects.selectors import is_qualified_name
from podium.plugins.contrib.calculations import min_max
from podium.plugins.contrib.plugin_args import PluginArgs, invalid
from podium.plugins.contrib.topology_levels.domains import Domains, domains_of
from podium.plugins.shared.pods_by_key import PodsByKey
from podium.plugins.shared.unchanged_state import UnchangedState

_NO_LABEL: Final = 1
_ELSEWHERE: Final = 2
_NO_ROOM: Final = 3


class TopologyLevelsArgs(PluginArgs, frozen=True, kw_only=True):
    """The plugin's args.

    Attributes:
        levels: node labels, the narrowest first, such as a rack's and a block's.
        required_level: one of the levels: all pods of a group must share a domain of it.
        single_pods: whether pods without a group are placed so that whole domains stay free, as groups of one.
    """

    levels: tuple[str, ...] = ()
    required_level: str = ""
    single_pods: Literal["ignore", "pack"] = "ignore"

    def problems(self) -> Iterable[str]:
        """Return missing, repeated and malformed labels, and a required level that is not among the levels."""
        if not self.levels:
            yield "levels: Required value: name the node labels of the levels, the narrowest first"
        for index, label in enumerate(self.levels):
            if not is_qualified_name(label):
                yield invalid(f"levels[{index}]", label, "not a label key")
            if label in self.levels[:index]:
                yield f'levels[{index}]: Duplicate value: "{label}"'
        if self.required_level and self.required_level not in self.levels:
            yield invalid("requiredLevel", self.required_level, "must be one of the levels")


@dataclass(frozen=True, slots=True, eq=False)
class _Verdicts:
    """The verdict of each row, and how many pods of the group need room together."""

    by_row: IntArray
    missing_count: int


@dataclass(frozen=True, slots=True, eq=False)
class _Order:
    """The raw score of each row."""

    by_row: IntArray


class TopologyLevels(
    fwk.PreFilterPlugin,
    fwk.TableFilterPlugin,
    fwk.FilterPlugin,
    fwk.PreScorePlugin,
    fwk.TableScorePlugin,
    fwk.ScorePlugin,
):
    """Keeps groups together, and whole domains free for groups to come."""

    Args = TopologyLevelsArgs
    args: TopologyLevelsArgs

    def __init__(self, args: TopologyLevelsArgs, handle: fwk.Handle) -> None:
        super().__init__(args, handle)
        self._gangs = handle.lister(COSCHEDULING_POD_GROUPS)
        self._groups = None if handle.pod_groups is None else handle.lister(POD_GROUPS)
        self._pods = handle.shared(pods_by_group)
        self._placed = _PlacedPods()

    # ------------------------------------------------------------ a required level

    def pre_filter(
        self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[fwk.PreFilterResult | None, fwk.Status | None]:
        """Look for a domain of the required level, or return Skip."""
        key = group_key(pod)
        if not self.args.required_level or not key:
            return None, fwk.SKIP
        try:
            domains = self._domains(pod, key, snapshot)
        except FieldError as error:
            return None, fwk.unresolvable(str(error))
        state.write(domains)
        level = domains.levels[self.args.levels.index(self.args.required_level)]
        # A group that is in several domains already goes on where most of it is.
        members_max = level.members.max(initial=0)
        is_wrong, verdict = (level.members < members_max, _ELSEWHERE) if members_max else (~level.takes_all, _NO_ROOM)
        by_row = np.zeros(len(snapshot.nodes), np.int64)
        by_row[snapshot.order] = np.where(level.has_domain, np.where(is_wrong, verdict, 0), _NO_LABEL)
        state.write(_Verdicts(by_row, domains.missing_count))
        return None, None

    def pre_filter_extensions(self) -> fwk.PreFilterExtensions:
        """Return extensions that change nothing: a domain is chosen by what all of its nodes have free."""
        return UnchangedState()

    def filter_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray | None:
        """Return the verdicts of PreFilter."""
        verdicts = state.find(_Verdicts)
        return None if verdicts is None else verdicts.by_row.take(rows)

    def explain(self, state: fwk.CycleState, pod: Pod, verdict: int) -> fwk.Status:
        """Return UnschedulableAndUnresolvable, with the label of the level."""
        label = self.args.required_level
        if verdict == _NO_LABEL:
            return fwk.unresolvable(f"node(s) had no label {label}")
        if verdict == _ELSEWHERE:
            return fwk.unresolvable(f"node(s) were not in the {label} where the pod's group is")
        count = state.read(_Verdicts).missing_count
        return fwk.unresolvable(f"node(s) were in a {label} without room for the {count} pods of the group")

    def filter(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> fwk.Status | None:
        """Return success or UnschedulableAndUnresolvable."""
        verdicts = state.find(_Verdicts)
        verdict = 0 if verdicts is None else int(verdicts.by_row[node.row])
        return self.explain(state, pod, verdict) if verdict else None

    def rejection_details(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> Mapping[str, int]:
        """Return how much room each rejected domain has for the group, and how many of its nodes are rejected."""
        try:
            domains = self._domains(pod, group_key(pod), snapshot)
        except FieldError:
            return {}
        label = self.args.required_level
        level, column = domains.levels[self.args.levels.index(label)], snapshot.label_column(label)
        position_of = {row: position for position, row in enumerate(snapshot.order.tolist())}
        counts: Counter[str] = Counter()
        for row in rows.tolist():
            value = column.values[column.ids[row]]
            if value is not None:
                room = int(level.room[position_of[row]])
                counts[f"{label} {value} has room for {room} of {domains.missing_count} pods of the group"] += 1
        return counts

    # ------------------------------------------------------------ scoring

    def pre_score(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> fwk.Status | None:
        """Order the nodes, or return Skip for a pod that is not in a group."""
        key = group_key(pod)
        if not key and self.args.single_pods == "ignore":
            return fwk.SKIP
        try:
            domains = state.find(Domains) or self._domains(pod, key, snapshot)
        except FieldError as error:
            return fwk.error_status(error)
        by_row = np.zeros(len(snapshot.nodes), np.int64)
        by_row[snapshot.order] = domains.order()
        state.write(_Order(by_row))
        return None

    def score_rows(self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> IntArray:
        """Score with the place in the order, higher is better."""
        return state.read(_Order).by_row.take(rows)

    def score(self, state: fwk.CycleState, pod: Pod, node: NodeInfo) -> int:
        """Score as `score_rows`, for one node."""
        return int(state.read(_Order).by_row[node.row])

    def normalize_scores(self, state: fwk.CycleState, pod: Pod, scores: IntArray) -> IntArray:
        """Scale to 0..MAX_NODE_SCORE."""
        return min_max(scores)

    def events_to_register(self) -> Sequence[fwk.EventRegistration]:
        """Register all events if a level is required; otherwise the plugin rejects no node."""
        return super().events_to_register() if self.args.required_level else ()

    # ------------------------------------------------------------ the group

    def _domains(self, pod: Pod, key: str, snapshot: Snapshot) -> Domains:
        """Return the domains for the pod. Raises: FieldError, if its requests cannot be parsed."""
        filter_requests(pod.spec)
        if not key:
            return domains_of(snapshot, self.args.levels, [pod], {})
        members_by_row = self._placed.of(snapshot, key)
        placed_uids = {uid for row in members_by_row for uid in snapshot.pods[row]}
        # A pod whose requests cannot be parsed will never be placed.
        missing_pods = [
            pod,
            *(
                member
                for member in self._pods.of(key)
                if member.uid != pod.uid and member.uid not in placed_uids and _is_readable(member)
            ),
        ]
        # Those that do not exist yet are taken to be like this one.
        unknown_count = self._declared_size(pod) - sum(members_by_row.values()) - len(missing_pods)
        return domains_of(snapshot, self.args.levels, missing_pods + [pod] * unknown_count, members_by_row)

    def _declared_size(self, pod: Pod) -> int:
        """Return how many pods the group needs, as its PodGroup or the pod says; 0 if neither does."""
        if (gang := gang_of(pod)) is not None:
            spec = spec_of_gang(self._gangs.get(gang), pod)
            return 0 if spec is None else spec.min_member
        group = None if self._groups is None else self._groups.get(group_of(pod) or "")
        return (None if group is None else group.min_count) or 0


def _is_readable(pod: Pod) -> bool:
    try:
        filter_requests(pod.spec)
    except FieldError:
        return False
    return True


def group_key(pod: Pod) -> str:
    """Return what names the pod's group, of Coscheduling or else of `spec.schedulingGroup`; "" if it has none."""
    gang = gang_of(pod)
    if gang is not None:
        return f"{GROUP_LABEL}:{gang}"
    return group_of(pod) or ""


def pods_by_group(handle: fwk.Handle) -> PodsByKey:
    """Return the pods of every group. Plugins share them by `handle.shared(pods_by_group)`."""
    return PodsByKey(handle.lister(PODS), group_key)


class _PlacedPods:
    """How many pods of each group are on each row of a snapshot, assumed ones included."""

    def __init__(self) -> None:
        self._rows = ChangedRows()
        self._groups_of_row: dict[int, Counter[str]] = {}
        self._rows_of_group: dict[str, dict[int, int]] = {}

    def of(self, snapshot: Snapshot, key: str) -> Mapping[int, int]:
        """Return the number of the group's pods by row."""
        for row in self._rows.take(snapshot):
            for group in self._groups_of_row.pop(row, ()):
                del self._rows_of_group[group][row]
                if not self._rows_of_group[group]:
                    del self._rows_of_group[group]
            groups = Counter(group for pod in snapshot.pods[row].values() if (group := group_key(pod)))
            if groups:
                self._groups_of_row[row] = groups
                for group, count in groups.items():
                    self._rows_of_group.setdefault(group, {})[row] = count
        return self._rows_of_group.get(key, {})
