"""The filters: which clusters may take the workload at all, and why the others may not.

Source: karmada pkg/scheduler/framework/plugins, v1.18.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, TypeAlias

from podium.cluster.matching.taints import is_repelled
from podium.estimator.cluster_objects import Cluster
from podium.estimator.division.bindings import BindingSpec, ResourceBinding
from podium.estimator.division.cluster_selectors import compile_affinity
from podium.objects.tolerations import taint_text

_Filter: TypeAlias = Callable[[Cluster], str | None]

API_MISSING: Final = "cluster(s) did not have the API resource"
AFFINITY_MISMATCH: Final = "cluster(s) did not match the placement cluster affinity constraint"
EVICTING: Final = "cluster(s) is in the process of eviction"
UNTOLERATED: Final = "cluster(s) had untolerated taint"
_NOT_WITH_GROUP: Final = "ResourceBinding with the same affinity group does not target this cluster"
_NEXT_TO_GROUP: Final = "cluster already has workload with the same anti-affinity group"


@dataclass(frozen=True, slots=True)
class FilteredClusters:
    """The result of the filters.

    Attributes:
        feasible: the clusters that pass all filters.
        reasons: for each other cluster the reason of every filter that rejects it, sorted.
        count: the number of all clusters, also of those that are being deleted and have no reasons.
    """

    feasible: tuple[Cluster, ...]
    reasons: Mapping[str, Sequence[str]]
    count: int

    @property
    def is_reason_random(self) -> bool:
        """True if upstream's text depends on the order of a map: it gives only the first filter's reason."""
        return any(len(texts) > 1 for texts in self.reasons.values())

    def text(self, random: Random | None = None) -> str:
        """Return upstream's text of the error that no cluster is feasible.

        Args:
            random: draws the reason that is given for a cluster with several. None takes the first.
        """
        if not self.reasons:
            return f"0/{self.count} clusters are available: no cluster exists."
        counts = Counter(texts[0] if random is None else random.choice(texts) for texts in self.reasons.values())
        # Upstream sorts the texts with their counts, so that 10 comes before 2.
        parts = sorted(f"{count} {text}" for text, count in counts.items())
        return f"0/{self.count} clusters are available: {', '.join(parts)}."


def filter_clusters(
    clusters: Sequence[Cluster], spec: BindingSpec, group: str, neighbours: Iterable[ResourceBinding] | None = None
) -> FilteredClusters:
    """Return the clusters that may take the workload.

    Args:
        group: the name of the observed affinity group, or "".
        neighbours: the other bindings, with the feature gate WorkloadAffinity; None without the gate.
    """
    present = [cluster for cluster in clusters if cluster.metadata.deletion_timestamp is None]
    filters = _filters(spec, group, neighbours)
    rejections = {
        cluster.key: sorted({text for check in filters if (text := check(cluster)) is not None}) for cluster in present
    }
    reasons = {name: texts for name, texts in rejections.items() if texts}
    feasible = tuple(cluster for cluster in present if cluster.key not in reasons)
    return FilteredClusters(feasible, reasons, len(clusters))


def _filters(spec: BindingSpec, group: str, neighbours: Iterable[ResourceBinding] | None) -> list[_Filter]:
    filters = [
        _except_for_targets(spec, _api_filter(spec)),
        _except_for_targets(spec, _taint_filter(spec)),
        _affinity_filter(spec, group),
        _property_filter(spec),
        _eviction_filter(spec),
    ]
    if neighbours is not None:
        filters += [_except_for_targets(spec, check) for check in _group_filters(spec, neighbours)]
    return filters


def _except_for_targets(spec: BindingSpec, check: _Filter) -> _Filter:
    """Return the filter without effect on clusters of the previous result, even those with 0 replicas."""
    targets = {target.name for target in spec.clusters}
    return lambda cluster: None if cluster.key in targets else check(cluster)


def _api_filter(spec: BindingSpec) -> _Filter:
    version, kind = spec.resource.api_version, spec.resource.kind
    return lambda cluster: (
        None
        if any(
            enablement.group_version == version and any(resource.kind == kind for resource in enablement.resources)
            for enablement in cluster.status.api_enablements
        )
        else API_MISSING
    )


def _taint_filter(spec: BindingSpec) -> _Filter:
    tolerations = spec.rules.cluster_tolerations

    def check(cluster: Cluster) -> str | None:
        for taint in cluster.spec.taints:
            if is_repelled(tolerations, (taint,)):
                return f"{UNTOLERATED} {{{taint_text(taint)}}}"
        return None

    return check


def _affinity_filter(spec: BindingSpec, group: str) -> _Filter:
    term = spec.rules.term_named(group)
    if spec.rules.cluster_affinity is not None:
        matchers = [compile_affinity(spec.rules.cluster_affinity)]
    elif term is not None:
        # Only replicas can overflow: what runs no pods goes to the group alone.
        overflow = (term.overflow_affinities or ()) if spec.is_workload else ()
        matchers = [compile_affinity(affinity) for affinity in (term, *overflow)]
    else:
        return lambda _: None
    return lambda cluster: None if any(matches(cluster) for matches in matchers) else AFFINITY_MISMATCH


def _property_filter(spec: BindingSpec) -> _Filter:
    fields = [constraint.spread_by_field for constraint in spec.rules.spread_constraints]

    def check(cluster: Cluster) -> str | None:
        values = {"provider": cluster.spec.provider, "region": cluster.spec.region, "zone": cluster.spec.zones}
        field = next((field for field in fields if field in values and not values[field]), None)
        return None if field is None else f"cluster(s) did not have {'zones' if field == 'zone' else field} property"

    return check


def _eviction_filter(spec: BindingSpec) -> _Filter:
    evicted_from = {task.from_cluster for task in spec.graceful_eviction_tasks}
    return lambda cluster: EVICTING if cluster.key in evicted_from else None


def _group_filters(spec: BindingSpec, neighbours: Iterable[ResourceBinding]) -> list[_Filter]:
    """Return the filters of the alpha gate WorkloadAffinity."""
    groups = spec.workload_affinity_groups
    if groups is None:
        return []
    # Karmada names the binding of a workload like this.
    own_name = f"{spec.resource.name.replace(':', '.')}-{spec.resource.kind}".lower()
    neighbour_targets = [
        (binding.spec.workload_affinity_groups, {target.name for target in binding.spec.clusters})
        for binding in neighbours
        if binding.metadata.namespace == spec.resource.namespace
        and binding.metadata.name != own_name
        and binding.spec.workload_affinity_groups is not None
    ]
    filters: list[_Filter] = []
    if groups.affinity_group:
        # A workload that has no clusters yet attracts nothing.
        target_sets = [
            names
            for neighbour, names in neighbour_targets
            if names and neighbour.affinity_group == groups.affinity_group
        ]
        filters.append(lambda cluster: _reason(_NOT_WITH_GROUP, not all(cluster.key in names for names in target_sets)))
    if groups.anti_affinity_group:
        taken_names = {
            name
            for neighbour, names in neighbour_targets
            if neighbour.anti_affinity_group == groups.anti_affinity_group
            for name in names
        }
        filters.append(lambda cluster: _reason(_NEXT_TO_GROUP, cluster.key in taken_names))
    return filters


def _reason(text: str, is_rejected: bool) -> str | None:
    return text if is_rejected else None
