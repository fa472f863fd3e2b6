"""Makes the edits of nodes and of other pods that may let a pod onto a node."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec

from podium.cluster.matching.node_selectors import required_terms
from podium.cluster.matching.taints import CORDONED
from podium.insight.edits import Edit, EditKind, into_map, node_edit, node_manifest
from podium.insight.json_patch import Operation, operation, pointer
from podium.insight.pod_edits import untolerated_taints
from podium.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from podium.objects.amounts import amount_text
from podium.objects.core import Node, Pod
from podium.objects.tolerations import taint_text

HOSTNAME: Final = "kubernetes.io/hostname"
_KEPT_MAX: Final = 20
_EXCLUDED_MAX: Final = 100

NOTHING: Final[Mapping[str, int]] = MappingProxyType({})

LabelChanges: TypeAlias = Mapping[str, str | None]
"""Changes of labels; None removes one."""


def taint_edits(pod: Pod, node: Node) -> list[Edit]:
    """Return one edit for each key of the node's untolerated taints; a cordon is removed by uncordoning."""
    return [_taint_edit(node, key) for key in untolerated_taints(pod, node)]


def _taint_edit(node: Node, key: str) -> Edit:
    taints = [(index, taint) for index, taint in enumerate(node.spec.taints) if taint.key == key]
    # From the last index on, so that the earlier indexes stay valid.
    patch = [operation("remove", pointer("spec", "taints", index)) for index, _ in reversed(taints)]
    if key == CORDONED.key and node.spec.unschedulable:
        patch.insert(0, operation("add", pointer("spec", "unschedulable"), False))
        return node_edit(EditKind.UNCORDON, node, patch, f"uncordon {node.name}")
    names = ", ".join(taint_text(taint) for _, taint in taints)
    return node_edit(EditKind.REMOVE_TAINT, node, patch, f"remove the taint {names} from {node.name}")


def label_changes(pod: Pod, node: Node, node_selectors: Sequence[NodeSelector] = ()) -> LabelChanges | None:
    """Return the fewest changes of labels after which the pod selects the node; None if labels cannot do that.

    They are the same for all nodes that meet the same of the `node_requirements`.

    Args:
        node_selectors: further selectors that the node has to match.
    """
    labels, demands = node.metadata.labels, _equalities(pod)
    # Pairs of demands and changes; each selector multiplies them by its terms, of which the cheapest few are kept.
    options = [(demands, _changes(demands, labels) or {})]
    for node_selector in _selectors(pod, node_selectors):
        terms = [term for term in node_selector.node_selector_terms if _may_match(term, node)]
        candidates = ([*demands, *term.match_expressions] for demands, _ in options for term in terms)
        further = [(demands, changes) for demands in candidates if (changes := _changes(demands, labels)) is not None]
        options = sorted(further, key=lambda option: len(option[1]))[:_KEPT_MAX]
    return options[0][1] if options else None


def node_requirements(
    pod: Pod, node_selectors: Sequence[NodeSelector] = ()
) -> tuple[Sequence[NodeSelectorRequirement], Sequence[NodeSelectorRequirement]]:
    """Return what `label_changes` depends on: requirements of labels, and of the node's name, each once."""
    terms = [term for selector in _selectors(pod, node_selectors) for term in selector.node_selector_terms]
    labels = [*_equalities(pod), *(requirement for term in terms for requirement in term.match_expressions)]
    return list(dict.fromkeys(labels)), list(dict.fromkeys(item for term in terms for item in term.match_fields))


def _equalities(pod: Pod) -> list[NodeSelectorRequirement]:
    """Return the pod's `nodeSelector` as requirements."""
    selector = pod.spec.node_selector
    return [NodeSelectorRequirement(key=key, operator="In", values=(value,)) for key, value in selector.items()]


def _selectors(pod: Pod, node_selectors: Sequence[NodeSelector]) -> Sequence[NodeSelector]:
    selector = required_terms(pod.spec)
    return (*node_selectors, *([] if selector is None else [selector]))


def _may_match(term: NodeSelectorTerm, node: Node) -> bool:
    """Return whether the right labels could make the term match the node."""
    # An empty term matches nothing, as the API defines it.
    if not term.match_expressions and not term.match_fields:
        return False
    return all((requirement.operator == "In") == (node.name in requirement.values) for requirement in term.match_fields)


def _changes(demands: Iterable[NodeSelectorRequirement], labels: Mapping[str, str]) -> LabelChanges | None:
    """Return the changes after which the labels meet all demands; None if no changes do that."""
    by_key: dict[str, list[NodeSelectorRequirement]] = {}
    for demand in demands:
        by_key.setdefault(demand.key, []).append(demand)
    changes: dict[str, str | None] = {}
    for key, of_key in by_key.items():
        # The present value first: a label that suits already needs no change.
        for value in (labels.get(key), *_candidates(of_key)):
            if all(value_meets(demand, value) for demand in of_key):
                break
        else:
            return None
        if value != labels.get(key):
            changes[key] = value
    return changes


def value_meets(requirement: NodeSelectorRequirement, value: str | None) -> bool:
    """Return whether a label of this value meets the requirement; None stands for no label."""
    operator, values = requirement.operator, requirement.values
    if operator == "In":
        return value in values
    if operator == "NotIn":
        return value not in values
    if operator in ("Exists", "DoesNotExist"):
        return (value is not None) == (operator == "Exists")
    try:
        number, limit = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return number > limit if operator == "Gt" else number < limit


def _candidates(demands: Sequence[NodeSelectorRequirement]) -> Iterator[str | None]:
    """Yield values of a label, None for no label. If any value meets all these demands, one of them does.

    For a demand that many values meet, as many are yielded as the other demands may exclude, and one more.
    """
    # One more value than can be excluded, so that one of them is allowed.
    count = 1 + min(sum(len(demand.values) for demand in demands), _EXCLUDED_MAX)
    for operator, values in ((demand.operator, demand.values) for demand in demands):
        if operator == "In":
            yield from values
        elif operator in ("NotIn", "DoesNotExist"):
            yield None
        elif operator == "Exists":
            yield "true"
            yield from (f"true-{number}" for number in range(1, count))
        else:
            with suppress(ValueError, IndexError):
                limit, step = int(values[0]), 1 if operator == "Gt" else -1
                yield from (str(limit + step * number) for number in range(1, count + 1))


def label_edits(node: Node, changes: LabelChanges) -> list[Edit]:
    """Return one edit of the node for each label."""
    edits = []
    labels = node.metadata.labels
    for key, value in changes.items():
        patch: list[Operation]
        if value is None:
            patch = [operation("remove", pointer("metadata", "labels", key))]
            text = f"remove the label {key} from {node.name}"
        else:
            patch = into_map(labels, ("metadata", "labels"), {key: value})
            labels = {**labels, key: value}
            text = f"label {node.name} with {key}={value}"
        edits.append(node_edit(EditKind.LABEL_NODE, node, patch, text))
    return edits


def eviction(pod: Pod) -> Edit:
    """Make the eviction of the pod."""
    meta = pod.metadata
    # Below 1 and growing with the priority: among evictions the less important pod ranks first.
    size = 1 - 1 / (2 + max(pod.priority, 0))
    return Edit(EditKind.EVICT, "Pod", meta.namespace, meta.name, (), f"evict {pod.key} from {pod.node_name}", size)


def added_node(like: Node, names: Collection[str], overrides: Mapping[str, int] = NOTHING) -> tuple[Node, Edit]:
    """Make a new, empty node with the same labels, taints and resources, ready for pods.

    Args:
        names: those of the nodes that exist.
        overrides: amounts of resources that differ.
    """
    name = next(
        candidate for number in range(1, len(names) + 2) if (candidate := f"{like.name}-like-{number}") not in names
    )
    labels = {key: name if key == HOSTNAME else value for key, value in like.metadata.labels.items()}
    amounts = {resource: amount_text(resource, amount) for resource, amount in overrides.items()}
    allocatable = {**like.status.allocatable, **amounts}
    node = Node(
        metadata=type(like.metadata)(name=name, uid=f"Node/{name}", labels=labels),
        # A new node is not cordoned, and has pulled no images yet.
        spec=type(like.spec)(taints=tuple(taint for taint in like.spec.taints if taint.key != CORDONED.key)),
        status=msgspec.structs.replace(like.status, images=(), allocatable=allocatable),
    )
    manifest = node_manifest(node)
    manifest["status"] = {**manifest.get("status", {}), "capacity": dict(node.status.allocatable)}
    has = " and ".join(f"{amount} {resource}" for resource, amount in amounts.items())
    text = f"add a node like {like.name}" + (f" with {has}" if has else "")
    return node, Edit(EditKind.ADD_NODE, "Node", "", name, (), text, manifest=manifest)
