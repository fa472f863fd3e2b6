"""CapacityScheduling: namespaces have quotas, lend each other what they do not use, and take it back by preemption.

Runs at: PreFilter, PostFilter, Reserve.
Verdict: PreFilter: Unschedulable if the pod's quota would exceed its `max`, or all quotas together the sum of their
`min`; UnschedulableAndUnresolvable if the quota cannot be parsed, or if its definition is missing and the args say so.
PostFilter: Success with a node and victims; Unschedulable if preemption does not help or the pod must not preempt.
Requeue: a pod is deleted, or a quota changes.
Cost: PreFilter one sum over the quotas; PostFilter one dry run for each node with potential victims.
Source: sigs.k8s.io/scheduler-plugins pkg/capacityscheduling (2026-08, for Kubernetes 1.35).
Differs: evictions are requested after the attempt, as by DefaultPreemption, and the pod does not preempt again
meanwhile; pods that the handle protects are never victims, and preemption loops are held back. See also
`podium.plugins.contrib.capacity_scheduling.quotas`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

import msgspec

from podium.cluster import NodeInfo, Rows, Snapshot
from podium.config import Extender
from podium.framework import contract as fwk
from podium.framework.contract.steps import PAUSE
from podium.framework.preemption.candidates import Budgets, Candidate, Candidates, Importance, errors_of
from podium.objects.core import Pod
from podium.objects.resource_types import POD_DISRUPTION_BUDGETS
from podium.plugins.contrib.capacity_scheduling.objects import ELASTIC_QUOTAS
from podium.plugins.contrib.capacity_scheduling.quotas import Quotas, QuotaState
from podium.plugins.contrib.capacity_scheduling.shortages import shortages
from podium.plugins.contrib.capacity_scheduling.trees import TreeQuotas
from podium.plugins.contrib.capacity_scheduling.victims import select_victims
from podium.plugins.contrib.plugin_args import first_sentences
from podium.plugins.shared.preemption_outcomes import best_of, no_help
from podium.plugins.shared.preemption_rows import rows_to_try

_NEVER: Final = fwk.unschedulable("not eligible due to preemptionPolicy=Never.")
_VICTIMS_LEAVING: Final = fwk.unschedulable("not eligible due to a terminating pod on the nominated node.")
_NO_STATE: Final = fwk.unschedulable("not eligible due to failed to read from cycleState")
_MISSING: Final = fwk.unresolvable(
    f"the definition of {ELASTIC_QUOTAS.plural}.{ELASTIC_QUOTAS.group} is not installed, and whenMissing is Reject"
)


class CapacitySchedulingArgs(msgspec.Struct, frozen=True, rename="camel"):
    """The plugin's args, which are podium's own: upstream has none.

    Attributes:
        quota_trees: whether quotas may cover several namespaces, by `spec.namespaceSelector`, and lie in trees, by
            `spec.parent`.
        when_missing: whether pods pass or are rejected while the API server does not serve ElasticQuotas.
    """

    quota_trees: bool = False
    when_missing: Literal["Pass", "Reject"] = "Pass"


class CapacityScheduling(fwk.PreFilterPlugin, fwk.AskingPostFilterPlugin, fwk.ReservePlugin):
    """Admits pods by the quotas of namespaces, and preempts pods that hold what was only borrowed."""

    Args = CapacitySchedulingArgs
    args: CapacitySchedulingArgs

    def __init__(self, args: CapacitySchedulingArgs, handle: fwk.Handle) -> None:
        super().__init__(args, handle)
        self.quotas = handle.shared(TreeQuotas) if args.quota_trees else handle.shared(Quotas)
        self._budgets = handle.lister(POD_DISRUPTION_BUDGETS)

    def events_to_register(self) -> tuple[fwk.EventRegistration, ...]:
        """Register deleted pods and every change of quotas."""
        return (
            fwk.on(fwk.EventResource.POD, fwk.ActionType.DELETE),
            fwk.on("elasticquotas.v1alpha1.scheduling.x-k8s.io", fwk.ActionType.ALL),
        )

    # ------------------------------------------------------------ before filtering

    def pre_filter(
        self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[fwk.PreFilterResult | None, fwk.Status | None]:
        """Return Unschedulable if the pod would exceed its quota's maximum, or all guarantees together."""
        if self.args.when_missing == "Reject" and self.handle.is_missing(ELASTIC_QUOTAS):
            return None, _MISSING
        quotas = self.quotas.state_for(pod, self._nominated_pods(snapshot))
        state.write(quotas)
        owner = quotas.owner_of(pod)
        if owner is None:
            return None, None
        if problem := quotas.quotas.quotas[owner].problem:
            return None, fwk.unresolvable(problem)
        if quotas.exceeds_max(owner, quotas.ahead):
            excess = f"ElasticQuota {owner} is more than Max"
        elif quotas.exceeds_total(quotas.ahead_of_all):
            excess = "total ElasticQuota used is more than min"
        else:
            return None, None
        name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        return None, fwk.unschedulable(f"Pod {name} is rejected in PreFilter because {excess}")

    def rejection_details(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> Mapping[str, int]:
        """Return which quota is full, by how much, and who borrows."""
        quotas = self.quotas.state_for(pod, self._nominated_pods(snapshot))
        text = "; ".join(shortages(quotas, pod))
        return {text: len(rows)} if text else {}

    def notes(self) -> Sequence[str]:
        """Return what is suspicious about the quotas, the first few."""
        return first_sentences(self.quotas.oddities())

    def _nominated_pods(self, snapshot: Snapshot) -> Iterator[Pod]:
        nominator = self.handle.nominator
        for name in nominator.node_names():
            if name in snapshot.row_of:
                yield from nominator.pods(name)

    def pre_filter_extensions(self) -> fwk.PreFilterExtensions:
        """Return the extensions that keep the usage of the quotas up to date in dry runs."""
        return _EXTENSIONS

    # ------------------------------------------------------------ preemption

    def post_filter_asking(
        self,
        state: fwk.CycleState,
        pod: Pod,
        snapshot: Snapshot,
        filtered_nodes: fwk.FilteredNodes,
        extenders: Sequence[Extender],
    ) -> fwk.Steps[tuple[fwk.PostFilterResult | None, fwk.Status | None]]:
        """Return success with a node and victims, Unschedulable, or Error."""
        preemptions = self.handle.preemptions
        preemptions.attempted()
        if (refusal := self._refusal(state, pod, snapshot, filtered_nodes)) is not None:
            return None, refusal
        rows, _ = rows_to_try(filtered_nodes, snapshot, preemptions.held_back_from(pod))
        budgets = Budgets(self._budgets.list(), self.handle.release.preemption)
        importance = Importance(self.handle.clock.now())
        candidates: list[Candidate] = []
        rejections: dict[int, fwk.Status] = {}

        def may_be_victim(victim: Pod) -> bool:
            return not (preemptions.is_protected(victim) or budgets.forbid(victim))

        for row in rows.tolist():
            with filtered_nodes.dry_run(row) as dry_run:
                answer = select_victims(dry_run, pod, budgets, importance, may_be_victim)
            if isinstance(answer, Candidate):
                candidates.append(answer)
            else:
                rejections[row] = answer
            yield PAUSE
        if candidates:
            candidates.sort(key=lambda candidate: candidate.violations > 0)
            return (yield from best_of(Candidates(candidates), pod, snapshot, extenders, importance))
        if errors := errors_of(rejections.values()):
            return None, fwk.error_status(errors)
        return no_help(snapshot, rejections)

    def _refusal(
        self, state: fwk.CycleState, pod: Pod, snapshot: Snapshot, filtered_nodes: fwk.FilteredNodes
    ) -> fwk.Status | None:
        """Return why the pod may not preempt now; None if it may."""
        if pod.spec.preemption_policy == "Never":
            return _NEVER
        if self.handle.preemptions.is_preempting(pod.uid):
            return _VICTIMS_LEAVING
        row = snapshot.row_of.get(pod.status.nominated_node_name)
        quotas = state.find(QuotaState)
        if quotas is None:
            return _NO_STATE
        if row is None or filtered_nodes.status(row).code is fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return None
        leaving_pods = (existing for existing in snapshot.node(row).pods if existing.is_terminating)
        return _VICTIMS_LEAVING if any(_makes_room(quotas, pod, leaving) for leaving in leaving_pods) else None

    # ------------------------------------------------------------ on a node

    def reserve(self, state: fwk.CycleState, pod: Pod, node_name: str) -> fwk.Status | None:
        """Count the pod in the usage of its namespace."""
        self.quotas.reserve(pod)
        return None

    def unreserve(self, state: fwk.CycleState, pod: Pod, node_name: str) -> None:
        """Stop counting the pod."""
        self.quotas.unreserve(pod)


class _UsageExtensions(fwk.PreFilterExtensions):
    """Keeps the usage of the quotas up to date in dry runs."""

    def add_pod(self, state: fwk.CycleState, pod: Pod, added_pod: Pod, node: NodeInfo) -> fwk.Status | None:
        """Count the pod that was added."""
        state.read(QuotaState).add(added_pod)
        return None

    def remove_pod(self, state: fwk.CycleState, pod: Pod, removed_pod: Pod, node: NodeInfo) -> fwk.Status | None:
        """Stop counting the pod that was removed."""
        state.read(QuotaState).remove(removed_pod)
        return None


_EXTENSIONS: Final = _UsageExtensions()


def _makes_room(quotas: QuotaState, pod: Pod, leaving: Pod) -> bool:
    """Return whether the terminating pod counts as a victim of the pod."""
    owner, leaving_owner = quotas.owner_of(pod), quotas.owner_of(leaving)
    if owner is None or leaving_owner is None or leaving_owner == owner:
        return owner == leaving_owner and leaving.priority < pod.priority
    return not quotas.exceeds_min(owner, quotas.ahead) and quotas.is_borrowing(leaving_owner)
