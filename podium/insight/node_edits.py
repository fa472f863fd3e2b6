"""The edits of nodes and of other pods that may help a pod onto a node."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

from podium.cluster.matching.node_selectors import required_terms
from podium.cluster.matching.taints import CORDONED
from podium.insight.edits import Edit, EditKind, into_map, node_manifest, of_node
from podium.insight.json_patch import Operation, operation, pointer
from podium.insight.pod_edits import untolerated
from podium.objects.amounts import amount_text
from podium.objects.core import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod
from podium.objects.tolerations import taint_text

HOSTNAME: Final = "kubernetes.io/hostname"
_KEPT_MAX: Final = 20
_EXCLUDED_MAX: Final = 100

NOTHING: Final[Mapping[str, int]] = MappingProxyType({})

LabelChanges: TypeAlias = Mapping[str, str | None]
"""Changes of labels; None removes one."""


def without_taints(pod: Pod, node: Node) -> list[Edit]:
    """One edit for each key of taints that the pod does not tolerate; uncordoning the node for a cordon."""
    return [_without(node, key) for key in untolerated(pod, node)]


def _without(node: Node, key: str) -> Edit:
    found = [(index, each) for index, each in enumerate(node.spec.taints) if each.key == key]
    patch = [operation("remove", pointer("spec", "taints", index)) for index, _ in reversed(found)]
    if key == CORDONED.key and node.spec.unschedulable:
        patch.insert(0, operation("add", pointer("spec", "unschedulable"), False))
        return of_node(EditKind.UNCORDON, node, patch, f"uncordon {node.name}")
    shown = ", ".join(taint_text(each) for _, each in found)
    return of_node(EditKind.REMOVE_TAINT, node, patch, f"remove the taint {shown} from {node.name}")


def with_labels(pod: Pod, node: Node, others: Sequence[NodeSelector] = ()) -> Sequence[Edit] | None:
    """The fewest labels to set or remove so that the pod selects the node; None if labels cannot do that.

    Args:
        others: what else the node has to match.
    """
    changes = label_changes(pod, node, others)
    return None if changes is None else labelled(node, changes)


def label_changes(pod: Pod, node: Node, others: Sequence[NodeSelector] = ()) -> LabelChanges | None:
    """As `with_labels`, as changes of labels: the same for all nodes with the same values of `label_keys`."""
    labels, selector = node.metadata.labels, pod.spec.node_selector
    demands = [NodeSelectorRequirement(key=key, operator="In", values=(value,)) for key, value in selector.items()]
    found = [(demands, _changes(demands, labels) or {})]
    for each in _selectors(pod, others):
        terms = [term for term in each.node_selector_terms if _may_match(term, node)]
        joined = ([*demands, *term.match_expressions] for demands, _ in found for term in terms)
        further = [(demands, changes) for demands in joined if (changes := _changes(demands, labels)) is not None]
        found = sorted(further, key=lambda each: len(each[1]))[:_KEPT_MAX]
    return found[0][1] if found else None


def label_keys(pod: Pod, others: Sequence[NodeSelector] = ()) -> tuple[Sequence[str], bool]:
    """The labels that `label_changes` depends on, and whether it also depends on the node's name."""
    terms = [term for selector in _selectors(pod, others) for term in selector.node_selector_terms]
    keys = [each.key for term in terms for each in term.match_expressions]
    return sorted({*pod.spec.node_selector, *keys}), any(term.match_fields for term in terms)


def _selectors(pod: Pod, others: Sequence[NodeSelector]) -> Sequence[NodeSelector]:
    required = required_terms(pod.spec)
    return (*others, *([] if required is None else [required]))


def _may_match(term: NodeSelectorTerm, node: Node) -> bool:
    """Whether the term matches the node if it has the right labels."""
    if not term.match_expressions and not term.match_fields:
        return False
    return all((each.operator == "In") == (node.name in each.values) for each in term.match_fields)


def _changes(demands: Iterable[NodeSelectorRequirement], labels: Mapping[str, str]) -> LabelChanges | None:
    """The changes after which all demands hold; None if there are none."""
    by_key: dict[str, list[NodeSelectorRequirement]] = {}
    for demand in demands:
        by_key.setdefault(demand.key, []).append(demand)
    changes: dict[str, str | None] = {}
    for key, of_key in by_key.items():
        for value in (labels.get(key), *_candidates(of_key)):
            if all(_holds(demand, value) for demand in of_key):
                break
        else:
            return None
        if value != labels.get(key):
            changes[key] = value
    return changes


def _holds(requirement: NodeSelectorRequirement, value: str | None) -> bool:
    operator, values = requirement.operator, requirement.values
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if operator in ("Exists", "DoesNotExist"):
        return (value is not None) == (operator == "Exists")
    try:
        number, bound = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return number > bound if operator == "Gt" else number < bound


def _candidates(demands: Sequence[NodeSelectorRequirement]) -> Iterator[str | None]:
    """Values of a label, None for no label, with one of which all these demands hold if they can hold together.

    Of what a demand leaves open there are as many values as others may exclude.
    """
    count = 1 + min(sum(len(each.values) for each in demands), _EXCLUDED_MAX)
    for operator, values in ((each.operator, each.values) for each in demands):
        if operator == "In":
            yield from values
        elif operator in ("NotIn", "DoesNotExist"):
            yield None
        elif operator == "Exists":
            yield "true"
            yield from (f"true-{number}" for number in range(1, count))
        else:
            with suppress(ValueError, IndexError):
                bound, step = int(values[0]), 1 if operator == "Gt" else -1
                yield from (str(bound + step * number) for number in range(1, count + 1))


def labelled(node: Node, changes: LabelChanges) -> list[Edit]:
    """One edit of the node for each label."""
    edits = []
    known = node.metadata.labels
    for key, value in changes.items():
        patch: list[Operation]
        if value is None:
            patch = [operation("remove", pointer("metadata", "labels", key))]
            text = f"remove the label {key} from {node.name}"
        else:
            patch = into_map(known, ("metadata", "labels"), {key: value})
            known = {**known, key: value}
            text = f"label {node.name} with {key}={value}"
        edits.append(of_node(EditKind.LABEL_NODE, node, patch, text))
    return edits


def eviction(pod: Pod) -> Edit:
    """Evict the pod."""
    meta = pod.metadata
    size = 1 - 1 / (2 + max(pod.priority, 0))
    return Edit(EditKind.EVICT, "Pod", meta.namespace, meta.name, (), f"evict {pod.key} from {pod.node_name}", size)


def added_node(like: Node, taken: Collection[str], more: Mapping[str, int] = NOTHING) -> tuple[Node, Edit]:
    """A new, empty node of the same labels, taints and resources, ready for pods.

    Args:
        more: of which resources it has another amount.
    """
    name = next(each for number in range(1, len(taken) + 2) if (each := f"{like.name}-like-{number}") not in taken)
    labels = {key: name if key == HOSTNAME else value for key, value in like.metadata.labels.items()}
    amounts = {resource: amount_text(resource, amount) for resource, amount in more.items()}
    allocatable = {**like.status.allocatable, **amounts}
    node = Node(
        metadata=type(like.metadata)(name=name, uid=f"Node/{name}", labels=labels),
        spec=type(like.spec)(taints=tuple(each for each in like.spec.taints if each.key != CORDONED.key)),
        status=msgspec.structs.replace(like.status, images=(), allocatable=allocatable),
    )
    manifest = node_manifest(node)
    manifest["status"] = {**manifest.get("status", {}), "capacity": dict(node.status.allocatable)}
    has = " and ".join(f"{amount} {resource}" for resource, amount in amounts.items())
    text = f"add a node like {like.name}" + (f" with {has}" if has else "")
    return node, Edit(EditKind.ADD_NODE, "Node", "", name, (), text, manifest=manifest)
