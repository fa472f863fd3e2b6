"""The edits of nodes and of other pods that may help a pod onto a node."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from podium.insight.edits import Edit, EditKind, into_map, node_manifest, of_node
from podium.insight.json_patch import Operation, operation, pointer
from podium.insight.pod_edits import untolerated
from podium.objects.core import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod
from podium.objects.tolerations import taint_text
from podium.plugins.node_unschedulable import CORDONED
from podium.plugins.shared.node_matching import required_terms

HOSTNAME: Final = "kubernetes.io/hostname"
_IMPOSSIBLE: Final[Any] = object()
_KEPT_MAX: Final = 20

_Labels: TypeAlias = dict[str, str | None]
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
    labels = node.metadata.labels
    found: list[_Labels] = [{key: value for key, value in pod.spec.node_selector.items() if labels.get(key) != value}]
    for selector in _selectors(pod, others):
        further = (_for_term(term, node, base) for base in found for term in selector.node_selector_terms)
        found = sorted((each for each in further if each is not None), key=len)[:_KEPT_MAX]
    return found[0] if found else None


def label_keys(pod: Pod, others: Sequence[NodeSelector] = ()) -> tuple[Sequence[str], bool]:
    """The labels that `label_changes` depends on, and whether it also depends on the node's name."""
    terms = [term for selector in _selectors(pod, others) for term in selector.node_selector_terms]
    keys = [each.key for term in terms for each in term.match_expressions]
    return sorted({*pod.spec.node_selector, *keys}), any(term.match_fields for term in terms)


def _selectors(pod: Pod, others: Sequence[NodeSelector]) -> Sequence[NodeSelector]:
    required = required_terms(pod.spec)
    return (*others, *([] if required is None else [required]))


def _for_term(term: NodeSelectorTerm, node: Node, base: _Labels) -> _Labels | None:
    """The changes after which the term matches, those of `base` among them; None if there are none."""
    if not term.match_expressions and not term.match_fields:
        return None
    for each in term.match_fields:
        if (each.operator == "In") != (node.name in each.values):
            return None
    found: _Labels = dict(base)
    for each in term.match_expressions:
        value = found.get(each.key, node.metadata.labels.get(each.key))
        if _holds(each, value):
            continue
        wanted = _value_for(each)
        if each.key in base or wanted is _IMPOSSIBLE:
            return None
        found[each.key] = wanted
    if all(_holds(each, found.get(each.key, node.metadata.labels.get(each.key))) for each in term.match_expressions):
        return found
    return None


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


def _value_for(requirement: NodeSelectorRequirement) -> Any:
    """A value of the label with which the requirement holds."""
    operator, values = requirement.operator, requirement.values
    if operator == "In":
        return values[0] if values else _IMPOSSIBLE
    if operator in ("NotIn", "DoesNotExist"):
        return None
    if operator == "Exists":
        return "true"
    try:
        return str(int(values[0]) + (1 if operator == "Gt" else -1))
    except (ValueError, IndexError):
        return _IMPOSSIBLE


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


def added_node(like: Node, taken: Collection[str]) -> tuple[Node, Edit]:
    """A new, empty node of the same labels, taints and resources, ready for pods."""
    name = next(each for number in range(1, len(taken) + 2) if (each := f"{like.name}-like-{number}") not in taken)
    labels = {key: name if key == HOSTNAME else value for key, value in like.metadata.labels.items()}
    node = Node(
        metadata=type(like.metadata)(name=name, uid=f"Node/{name}", labels=labels),
        spec=type(like.spec)(taints=tuple(each for each in like.spec.taints if each.key != CORDONED.key)),
        status=msgspec.structs.replace(like.status, images=()),
    )
    manifest = node_manifest(node)
    manifest["status"] = {**manifest.get("status", {}), "capacity": dict(node.status.allocatable)}
    text = f"add a node like {like.name}"
    return node, Edit(EditKind.ADD_NODE, "Node", "", name, (), text, manifest=manifest)
