"""Objects that planning cannot use in full, in the form in which they still count.

Owns what is left of such an object. A running pod keeps its requests, so that its node never counts as free, and its
node cannot be judged. A budget that cannot be read protects all pods of its namespace. What is left out is reported by
the caller, who gets the fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

import msgspec

from podium.objects.affinity import Affinity, NodeAffinity, PodAffinity
from podium.objects.core import NodeStatus, Pod, PodSpec, PodStatus
from podium.objects.errors import FieldError, field_and_detail
from podium.objects.meta import LabelSelector, ObjectMeta
from podium.objects.requests import pod_requests_with_status
from podium.objects.times import parse_time
from podium.objects.unreadable import UnreadablePod, unread_field
from podium.objects.wire import BrokenObject
from podium.provisioner.apis.budgets import DisruptionBudgets
from podium.provisioner.apis.labels import INITIALIZED, REGISTERED
from podium.provisioner.apis.objects import (
    Budget,
    BudgetStatus,
    DaemonSet,
    NodeClaim,
    NodePool,
    ProvidedNode,
    ProvidedNodeSpec,
)
from podium.provisioner.state.reading import check_expressions, check_object, check_selector

_replace = msgspec.structs.replace
_AFFINITY: Final = "spec.affinity"
_REQUESTS: Final = "spec.containers"
_LONG_AGO: Final = "1970-01-01T00:00:00Z"
TermT = TypeVar("TermT")


class UnusableNode(ProvidedNode, frozen=True, tag="Node"):
    """A node with a value that has no meaning. It takes no pods, and is never removed."""

    field: str = ""
    detail: str = ""


def undecoded_node(broken_node: BrokenObject, claims: Iterable[NodeClaim]) -> UnusableNode:
    """Return what counts of a node that cannot be decoded: its name, and what its NodeClaim says of it."""
    field, detail = field_and_detail(broken_node.detail)
    metadata = ObjectMeta(name=broken_node.name, uid=broken_node.uid)
    claim = next((claim for claim in claims if claim.status.node_name == broken_node.name), None)
    if claim is None:
        return UnusableNode(metadata=metadata, field=field, detail=detail)
    # It has joined, else the NodeClaim would not name it: so pods must not wait for it.
    labels = {**claim.metadata.labels, REGISTERED: "true", INITIALIZED: "true"}
    return UnusableNode(
        metadata=_replace(metadata, labels=labels),
        spec=ProvidedNodeSpec(provider_id=claim.status.provider_id),
        status=NodeStatus(capacity=claim.status.capacity),
        field=field,
        detail=detail,
    )


def undecoded_claim(broken_claim: BrokenObject) -> NodeClaim:
    """Return what counts of a NodeClaim that cannot be decoded: that its name is taken."""
    return NodeClaim(metadata=ObjectMeta(name=broken_claim.name, uid=broken_claim.uid))


def usable_form(item: Any) -> tuple[Any | None, FieldError | None]:
    """Return the object as planning counts it, None if it cannot count, and its fault, None if it has none."""
    try:
        check_object(item)
    except FieldError as error:
        return _part_of(item, error), error
    # Such budgets let no node go, as upstream: whoever wrote them has to be told.
    if isinstance(item, NodePool) and (errors := DisruptionBudgets.parse(item.spec.disruption.budgets).errors):
        return item, errors[0]
    return item, None


def node_fault(node: ProvidedNode, pods: Sequence[Pod]) -> str | None:
    """Return the first object because of which the node cannot be judged, with its fault; None if it can."""
    if isinstance(node, UnusableNode):
        return f"Node {node.name} ({node.field}: {node.detail})"
    faults = ((pod, unread_field(pod)) for pod in pods if not pod.has_ended)
    return next((f"Pod {pod.key} ({fault})" for pod, fault in faults if fault is not None), None)


def has_unknown_room(node: ProvidedNode | None, pods: Sequence[Pod]) -> bool:
    """Return True if it cannot be said what pods can still use on the node."""
    # Where a pod may be says nothing about what it takes.
    return isinstance(node, UnusableNode) or any(
        fault is not None and not fault.path.startswith(_AFFINITY) for fault in map(unread_field, pods)
    )


def _part_of(item: Any, fault: FieldError) -> Any | None:
    if isinstance(item, Pod):
        part = _replace(item, spec=_without_bad_preferences(item.spec))
        # A preference that has no meaning is one that is not met; relaxation would drop it, too.
        return part if _passes(check_object, part) else _running_part(item, fault)
    if isinstance(item, DaemonSet):
        template = item.spec.template
        template = _replace(template, spec=_without_bad_preferences(template.spec))
        daemon_set = _replace(item, spec=_replace(item.spec, template=template))
        return daemon_set if _passes(check_object, daemon_set) else None
    if isinstance(item, Budget):
        # It may have been meant to protect any pod, and the API server goes on refusing evictions for it.
        spec = _replace(item.spec, selector=LabelSelector())
        return Budget(metadata=_with_times(item.metadata), spec=spec, status=BudgetStatus())
    if isinstance(item, ProvidedNode):
        status = _replace(item.status, capacity={}, allocatable={})
        metadata = _with_times(item.metadata)
        return UnusableNode(metadata=metadata, spec=item.spec, status=status, field=fault.path, detail=fault.detail)
    return None


def _running_part(pod: Pod, fault: FieldError) -> Pod | None:
    """Return what counts of a pod on a node: its requests, its labels, and by whom it must not be joined."""
    if not pod.node_name:
        return None
    affinity = pod.spec.affinity
    apart = None if affinity is None or affinity.pod_anti_affinity is None else affinity.pod_anti_affinity.required
    terms = tuple(term for term in apart or () if _passes(check_selector, term.namespace_selector))
    rules = Affinity(pod_anti_affinity=PodAffinity(required=terms)) if terms else None
    spec, status = _replace(pod.spec, affinity=rules), _replace(pod.status, start_time=None)
    if not _passes(pod_requests_with_status, pod):
        # Not even a part of the requests counts: then the node takes no pods at all.
        spec = PodSpec(tolerations=spec.tolerations, priority=spec.priority, affinity=rules)
        status = PodStatus(phase=status.phase, conditions=status.conditions)
        fault = FieldError(_REQUESTS, fault.detail)
    return UnreadablePod(
        metadata=_with_times(pod.metadata),
        spec=spec,
        status=status,
        node_name=pod.node_name,
        field=fault.path,
        detail=fault.detail,
    )


def _without_bad_preferences(spec: PodSpec) -> PodSpec:
    affinity = spec.affinity
    if affinity is None:
        return spec
    nodes = affinity.node_affinity
    if nodes is not None:
        nodes = NodeAffinity(
            required=nodes.required,
            preferred=tuple(
                term for term in nodes.preferred if _passes(check_expressions, term.preference.match_expressions)
            ),
        )
    together, apart = map(_without_bad_pod_preferences, (affinity.pod_affinity, affinity.pod_anti_affinity))
    return _replace(spec, affinity=Affinity(node_affinity=nodes, pod_affinity=together, pod_anti_affinity=apart))


def _without_bad_pod_preferences(rules: PodAffinity | None) -> PodAffinity | None:
    if rules is None:
        return None
    preferences = tuple(
        term for term in rules.preferred if _passes(check_selector, term.pod_affinity_term.namespace_selector)
    )
    return PodAffinity(required=rules.required, preferred=preferences)


def _passes(check: Callable[[TermT], object], value: TermT) -> bool:
    try:
        check(value)
    except FieldError:
        return False
    return True


def _with_times(metadata: Any) -> Any:
    """Return the metadata with a time in the place of one that cannot be read: when it was set is not known."""
    return _replace(
        metadata,
        creation_timestamp=_readable_time(metadata.creation_timestamp),
        deletion_timestamp=_readable_time(metadata.deletion_timestamp),
    )


def _readable_time(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        parse_time(text)
    except ValueError:
        return _LONG_AGO
    return text
