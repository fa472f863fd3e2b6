"""Makes the edits of the pod itself that may help, first without amounts, then as patches for a node.

A `Wish` is something that the pod asks for. Giving it up altogether (`relaxed`) shows on which nodes nothing else
rejects the pod; the edit for such a node is the smallest change that is enough there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from podium.cluster import Snapshot
from podium.cluster.host_ports import ANY_ADDRESS
from podium.cluster.matching.node_selectors import required_terms
from podium.cluster.matching.taints import CORDONED, is_repelled
from podium.cluster.pod_usage import HostPort
from podium.insight.edits import Edit, EditKind, in_order, patch_pod, pod_edit
from podium.insight.json_patch import Operation, operation, pointer
from podium.insight.requests import least_request, resize
from podium.objects.affinity import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from podium.objects.amounts import amount_text
from podium.objects.core import Container, Node, Pod, Taint
from podium.objects.requests import filter_requests
from podium.objects.selectors import compile_node_selector
from podium.objects.tolerations import is_tolerated, taint_text

_SKEW_MAX = 2**31 - 1
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NODE_AFFINITY = ("spec", "affinity", "nodeAffinity", _REQUIRED)
_FIRST_PORT, _LAST_PORT = 1024, 65535


@dataclass(frozen=True)
class Wish:
    """One thing that the pod asks for, and the edits that ask for less.

    Attributes:
        plugin: the filter that enforces it.
        relaxed: the edit that gives it up altogether.
        edits_for: returns the edits that are enough on a node, the least intrusive first; None if only `relaxed` helps.
        skew: the index of the constraint whose maxSkew is to be raised as little as possible.
        resource: the resource of which less is to be requested.
    """

    name: str
    plugin: str
    relaxed: Edit
    edits_for: Callable[[Node], Sequence[Edit]] | None = None
    skew: int | None = None
    resource: str = ""


def wishes(pod: Pod, snapshot: Snapshot) -> list[Wish]:
    """Return everything that the pod asks for and for which a filter may reject it."""
    return [
        *_spreads(pod),
        *_taints(pod, snapshot),
        *_ports(pod, snapshot),
        *_requests(pod),
        *_node_selectors(pod),
        *_pod_affinities(pod),
        *_node_name(pod),
    ]


def raise_max_skew(pod: Pod, index: int, skew: int) -> Edit:
    """Raise the maxSkew of the constraint at this index."""
    constraint = pod.spec.topology_spread_constraints[index]
    path = pointer("spec", "topologySpreadConstraints", index, "maxSkew")
    text = f"raise maxSkew from {constraint.max_skew} to {skew} over {constraint.topology_key}"
    return pod_edit(EditKind.RAISE_MAX_SKEW, pod, [operation("add", path, skew)], text, 1 - 1 / max(skew, 1))


def lower_request(pod: Pod, resource: str, total: int) -> Edit | None:
    """Lower the total request for the resource; return None if a container cannot, or would be left with nothing."""
    if total < least_request(pod, resource):
        return None
    request = filter_requests(pod.spec)[resource]
    patch = resize(pod, resource, total)
    if patch is None:
        return None
    text = f"lower the request for {resource} from {amount_text(resource, request)} to {amount_text(resource, total)}"
    return pod_edit(EditKind.LOWER_REQUEST, pod, patch, text, 1 - total / request)


def untolerated_taints(pod: Pod, node: Node) -> dict[str, list[Taint]]:
    """Return the node's untolerated taints by key; a cordon counts as the taint that it adds."""
    taints = [*node.spec.taints, *([CORDONED] if node.spec.unschedulable else [])]
    taints_by_key: dict[str, list[Taint]] = {}
    # A node can have one taint twice, with and without the cordon's.
    for taint in dict.fromkeys(taints):
        if (taint is CORDONED and not is_tolerated(pod.spec.tolerations, taint)) or is_repelled(
            pod.spec.tolerations, (taint,)
        ):
            taints_by_key.setdefault(taint.key, []).append(taint)
    return taints_by_key


# ---------------------------------------------------------------- taints, spreading, ports, requests


def _taints(pod: Pod, snapshot: Snapshot) -> Iterator[Wish]:
    """Yield a toleration for each key with untolerated taints; it covers all taints of the key on a node."""
    groups: dict[tuple[Taint, ...], None] = {}
    for number in set(snapshot.taint_set.take(snapshot.order).tolist()):
        node = Node()
        taints = snapshot.taint_sets[number]
        for taints_of_key in untolerated_taints(pod, _with_taints(node, taints)).values():
            groups[tuple(taints_of_key)] = None
    if snapshot.unschedulable.take(snapshot.order).any() and not is_tolerated(pod.spec.tolerations, CORDONED):
        groups[(CORDONED,)] = None
    for group in sorted(groups, key=repr):
        # A set of taints has no order; answers must have one.
        first = group[0]
        if len(group) == 1:
            toleration = {"key": first.key, "operator": "Equal", "value": first.value, "effect": first.effect}
            if not first.value:
                toleration = {"key": first.key, "operator": "Exists", "effect": first.effect}
        else:
            # Several taints of one key: a toleration without value and effect covers them all.
            toleration = {"key": first.key, "operator": "Exists"}
        pointer_path = pointer("spec", "tolerations")
        patch = (
            operation("add", f"{pointer_path}/-", toleration)
            if pod.spec.tolerations
            else operation("add", pointer_path, [toleration])
        )
        text = f"tolerate the taint {taint_text(first) if len(group) == 1 else first.key}"
        edit = pod_edit(EditKind.TOLERATE_TAINT, pod, [patch], text, 0.0 if len(group) == 1 else 0.5)
        yield Wish(f"taint {toleration}", "TaintToleration", edit)


def _with_taints(node: Node, taints: tuple[Taint, ...]) -> Node:
    return Node(metadata=node.metadata, spec=type(node.spec)(taints=taints))


def _spreads(pod: Pod) -> Iterator[Wish]:
    for index, constraint in enumerate(pod.spec.topology_spread_constraints):
        if constraint.when_unsatisfiable == "ScheduleAnyway":
            continue
        yield Wish(f"skew {index}", "PodTopologySpread", raise_max_skew(pod, index, _SKEW_MAX), skew=index)
        path = pointer("spec", "topologySpreadConstraints", index)
        text = f"drop the spread constraint over {constraint.topology_key}"
        yield Wish(
            f"spread {index}",
            "PodTopologySpread",
            pod_edit(EditKind.DROP_SPREAD_CONSTRAINT, pod, [operation("remove", path)], text),
        )


def _ports(pod: Pod, snapshot: Snapshot) -> Iterator[Wish]:
    # Ports that the pod itself uses or was given by an earlier edit are not free either.
    ports: set[int] = {int(port.host_port) for _, container in _all_containers(pod) for port in container.ports}
    for path, container in _all_containers(pod):
        for index, port in enumerate(container.ports):
            if not port.host_port:
                continue
            free = _free_port(snapshot, port.host_port, port.protocol or "TCP", ports)
            if free is None:
                continue
            ports.add(free)
            port_path = (*path, "ports", index)
            patch = [operation("add", pointer(*port_path, "hostPort"), free)]
            # With hostNetwork the API server demands that both are equal.
            if pod.spec.host_network:
                patch.append(operation("add", pointer(*port_path, "containerPort"), free))
            text = f"change the host port {port.host_port} of container {container.name} to {free}"
            edit = pod_edit(EditKind.CHANGE_HOST_PORT, pod, patch, text)
            yield Wish(f"port {port_path}", "NodePorts", edit)


def _free_port(snapshot: Snapshot, start_port: int, protocol: str, ports: set[int]) -> int | None:
    """Return a port that no pod has on any node, the next higher one if possible."""
    for port in chain(range(max(start_port + 1, _FIRST_PORT), _LAST_PORT + 1), range(_FIRST_PORT, start_port)):
        if port not in ports and not snapshot.host_ports.conflicting_rows(HostPort(ANY_ADDRESS, protocol, port)):
            return port
    return None


def _all_containers(pod: Pod) -> list[tuple[tuple[str | int, ...], Container]]:
    spec = pod.spec
    return [
        *((("spec", "containers", index), container) for index, container in enumerate(spec.containers)),
        *((("spec", "initContainers", index), container) for index, container in enumerate(spec.init_containers)),
    ]


def _requests(pod: Pod) -> Iterator[Wish]:
    for resource, amount in filter_requests(pod.spec).items():
        least = least_request(pod, resource)
        if amount > least and (edit := lower_request(pod, resource, least)) is not None:
            yield Wish(f"request {resource}", "NodeResourcesFit", edit, resource=resource)


# ---------------------------------------------------------------- node selector and affinity, pod affinity


def _node_selectors(pod: Pod) -> Iterator[Wish]:
    for key, value in pod.spec.node_selector.items():
        text = f"drop {key}={value} from the node selector"
        patch = [operation("remove", pointer("spec", "nodeSelector", key))]
        yield Wish(f"selector {key}", "NodeAffinity", pod_edit(EditKind.DROP_NODE_SELECTOR, pod, patch, text))
    selector = required_terms(pod.spec)
    if selector is not None:
        text = "drop the required node affinity"
        patch = [operation("remove", pointer(*_NODE_AFFINITY))]
        removal = pod_edit(EditKind.DROP_NODE_AFFINITY, pod, patch, text)

        def widen(node: Node) -> Sequence[Edit]:
            return [*_widen(pod, selector, node), removal]

        yield Wish("node affinity", "NodeAffinity", removal, edits_for=widen)


def _widen(pod: Pod, selector: NodeSelector, node: Node) -> Iterator[Edit]:
    """Yield an edit for each term of which the node fails exactly one requirement."""
    for term_index, term in enumerate(selector.node_selector_terms):
        failing = [
            (part, index, requirement)
            for part, parts in (("matchExpressions", term.match_expressions), ("matchFields", term.match_fields))
            for index, requirement in enumerate(parts)
            if not _meets(node, part, requirement)
        ]
        # With two failing requirements, widening one is not enough, and dropping the affinity is the smaller edit.
        if len(failing) != 1:
            continue
        ((part, index, requirement),) = failing
        path = (*_NODE_AFFINITY, "nodeSelectorTerms", term_index, part, index)
        value = node.name if part == "matchFields" else node.metadata.labels.get(requirement.key)
        patch: list[Operation] = []
        if requirement.operator == "In" and value:
            patch = [operation("add", pointer(*path, "values", "-"), value)]
            text = f"add {value} to the values of {requirement.key} in the node affinity"
        elif requirement.operator == "NotIn" and value is not None and len(requirement.values) > 1:
            patch = [operation("remove", pointer(*path, "values", requirement.values.index(value)))]
            text = f"remove {value} from the excluded values of {requirement.key} in the node affinity"
        elif len(term.match_expressions) + len(term.match_fields) > 1:
            patch = [operation("remove", pointer(*path))]
            text = f"drop the requirement on {requirement.key} from the node affinity"
        else:
            continue
        yield pod_edit(EditKind.WIDEN_NODE_AFFINITY, pod, patch, text)


def _meets(node: Node, part: str, requirement: NodeSelectorRequirement) -> bool:
    term = NodeSelectorTerm(match_expressions=(requirement,))
    if part == "matchFields":
        term = NodeSelectorTerm(match_fields=(requirement,))
    matcher = compile_node_selector(NodeSelector(node_selector_terms=(term,)))
    return matcher.matches(node.metadata.labels, node.name)


def _pod_affinities(pod: Pod) -> Iterator[Wish]:
    affinity = pod.spec.affinity
    if affinity is None:
        return
    for field, rules, kind, name in (
        ("podAffinity", affinity.pod_affinity, EditKind.DROP_POD_AFFINITY, "affinity"),
        ("podAntiAffinity", affinity.pod_anti_affinity, EditKind.DROP_POD_ANTI_AFFINITY, "anti-affinity"),
    ):
        for index, term in enumerate(rules.required if rules is not None else ()):
            path = pointer("spec", "affinity", field, _REQUIRED, index)
            text = f"drop the pod {name} term over {term.topology_key}"
            yield Wish(f"{name} {index}", "InterPodAffinity", pod_edit(kind, pod, [operation("remove", path)], text))


def _node_name(pod: Pod) -> Iterator[Wish]:
    if pod.node_name:
        patch = [operation("remove", pointer("spec", "nodeName"))]
        yield Wish("node name", "NodeName", pod_edit(EditKind.CLEAR_NODE_NAME, pod, patch, "clear spec.nodeName"))


def apply_pod_edits(pod: Pod, edits: Sequence[Edit]) -> Pod:
    """Return the pod after these edits, which are applied in the order given."""
    for edit in edits:
        pod = patch_pod(pod, append_toleration(pod, edit).patch)
    return pod


def append_toleration(pod: Pod, edit: Edit) -> Edit:
    """Return the edit as it applies to an edited pod: its toleration is appended to those that exist."""
    if edit.kind is not EditKind.TOLERATE_TAINT or not pod.spec.tolerations:
        return edit
    (change,) = edit.patch
    value = change["value"]
    toleration = value[0] if isinstance(value, list) else value
    patch = (operation("add", pointer("spec", "tolerations", "-"), toleration),)
    return Edit(edit.kind, edit.object_kind, edit.namespace, edit.name, patch, edit.text, edit.size)


def give_up(pod: Pod, concessions: Iterable[Wish]) -> Pod:
    """Return the pod without these wishes."""
    return apply_pod_edits(pod, in_order(wish.relaxed for wish in concessions))


def contradict(concessions: Sequence[Wish]) -> bool:
    """Return whether they give up the same thing twice: a spread constraint that is dropped need not be raised."""
    if len(concessions) < 2:
        return False
    skews = {f"spread {wish.skew}" for wish in concessions if wish.skew is not None}
    return any(wish.name in skews for wish in concessions)
