"""The edits of the pod itself that may help, first without amounts, then as patches for a node.

A `Wish` is something that the pod asks for. Giving it up altogether (`relaxed`) shows on which nodes nothing else is in
the way; what it takes there is then the smallest change that is enough.
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
from podium.insight.edits import Edit, EditKind, edited_pod, in_order, of_pod
from podium.insight.json_patch import Operation, operation, pointer
from podium.insight.requests import least_request, resized
from podium.objects.amounts import amount_text
from podium.objects.core import Container, Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, Taint
from podium.objects.requests import filter_requests
from podium.objects.selectors import compile_node_selector
from podium.objects.tolerations import is_tolerated

_SKEW_MAX = 2**31 - 1
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NODE_AFFINITY = ("spec", "affinity", "nodeAffinity", _REQUIRED)
_FIRST_PORT, _LAST_PORT = 1024, 65535


@dataclass(frozen=True)
class Wish:
    """One thing that the pod asks for, and what it would take to ask for less.

    Attributes:
        plugin: the filter that enforces it.
        relaxed: the edit that gives it up altogether.
        edits_for: the edits that are enough on a node, the least intrusive first; `relaxed` if there is no such choice.
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
    """What the pod asks for that may be in the way somewhere."""
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
    """Let the spread of that constraint be this uneven."""
    constraint = pod.spec.topology_spread_constraints[index]
    path = pointer("spec", "topologySpreadConstraints", index, "maxSkew")
    text = f"raise maxSkew from {constraint.max_skew} to {skew} over {constraint.topology_key}"
    return of_pod(EditKind.RAISE_MAX_SKEW, pod, [operation("add", path, skew)], text, 1 - 1 / max(skew, 1))


def lower_request(pod: Pod, resource: str, total: int) -> Edit | None:
    """Request this total of the resource; None if its containers cannot, or one of them would be left with nothing."""
    if total < least_request(pod, resource):
        return None
    now = filter_requests(pod.spec)[resource]
    patch = resized(pod, resource, total)
    if patch is None:
        return None
    text = f"lower the request for {resource} from {amount_text(resource, now)} to {amount_text(resource, total)}"
    return of_pod(EditKind.LOWER_REQUEST, pod, patch, text, 1 - total / now)


def untolerated(pod: Pod, node: Node) -> dict[str, list[Taint]]:
    """The taints of the node that the pod does not tolerate, by key; a cordon counts as the taint that it adds."""
    taints = [*node.spec.taints, *([CORDONED] if node.spec.unschedulable else [])]
    found: dict[str, list[Taint]] = {}
    for taint in dict.fromkeys(taints):
        if (taint is CORDONED and not is_tolerated(pod.spec.tolerations, taint)) or is_repelled(
            pod.spec.tolerations, (taint,)
        ):
            found.setdefault(taint.key, []).append(taint)
    return found


# ---------------------------------------------------------------- taints, spreading, ports, requests


def _taints(pod: Pod, snapshot: Snapshot) -> Iterator[Wish]:
    """A toleration for each key with an untolerated taint; for all its taints on a node if there are several."""
    seen: dict[tuple[Taint, ...], None] = {}
    for number in set(snapshot.taint_set.take(snapshot.order).tolist()):
        node = Node()
        taints = snapshot.taint_sets[number]
        for found in untolerated(pod, _with_taints(node, taints)).values():
            seen[tuple(found)] = None
    if snapshot.unschedulable.take(snapshot.order).any() and not is_tolerated(pod.spec.tolerations, CORDONED):
        seen[(CORDONED,)] = None
    for group in sorted(seen, key=repr):
        first = group[0]
        if len(group) == 1:
            toleration = {"key": first.key, "operator": "Equal", "value": first.value, "effect": first.effect}
            if not first.value:
                toleration = {"key": first.key, "operator": "Exists", "effect": first.effect}
        else:
            toleration = {"key": first.key, "operator": "Exists"}
        where = pointer("spec", "tolerations")
        patch = (
            operation("add", f"{where}/-", toleration)
            if pod.spec.tolerations
            else operation("add", where, [toleration])
        )
        shown = f"{first.key}={first.value}:{first.effect}" if first.value else f"{first.key}:{first.effect}"
        text = f"tolerate the taint {shown if len(group) == 1 else first.key}"
        edit = of_pod(EditKind.TOLERATE_TAINT, pod, [patch], text, 0.0 if len(group) == 1 else 0.5)
        yield Wish(f"taint {toleration}", "TaintToleration", edit)


def _with_taints(node: Node, taints: tuple[Taint, ...]) -> Node:
    return Node(metadata=node.metadata, spec=type(node.spec)(taints=taints))


def _spreads(pod: Pod) -> Iterator[Wish]:
    for index, each in enumerate(pod.spec.topology_spread_constraints):
        if each.when_unsatisfiable == "ScheduleAnyway":
            continue
        yield Wish(f"skew {index}", "PodTopologySpread", raise_max_skew(pod, index, _SKEW_MAX), skew=index)
        path = pointer("spec", "topologySpreadConstraints", index)
        text = f"drop the spread constraint over {each.topology_key}"
        yield Wish(
            f"spread {index}",
            "PodTopologySpread",
            of_pod(EditKind.DROP_SPREAD_CONSTRAINT, pod, [operation("remove", path)], text),
        )


def _ports(pod: Pod, snapshot: Snapshot) -> Iterator[Wish]:
    taken: set[int] = {int(port.host_port) for _, container in _all_containers(pod) for port in container.ports}
    for path, container in _all_containers(pod):
        for index, port in enumerate(container.ports):
            if not port.host_port:
                continue
            free = _free_port(snapshot, port.host_port, port.protocol or "TCP", taken)
            if free is None:
                continue
            taken.add(free)
            where = (*path, "ports", index)
            patch = [operation("add", pointer(*where, "hostPort"), free)]
            if pod.spec.host_network:
                patch.append(operation("add", pointer(*where, "containerPort"), free))
            text = f"change the host port {port.host_port} of container {container.name} to {free}"
            edit = of_pod(EditKind.CHANGE_HOST_PORT, pod, patch, text)
            yield Wish(f"port {where}", "NodePorts", edit)


def _free_port(snapshot: Snapshot, near: int, protocol: str, taken: set[int]) -> int | None:
    """A port that no pod has on any node, the next one if possible."""
    for port in chain(range(max(near + 1, _FIRST_PORT), _LAST_PORT + 1), range(_FIRST_PORT, near)):
        if port not in taken and not snapshot.host_ports.conflicting_rows(HostPort(ANY_ADDRESS, protocol, port)):
            return port
    return None


def _all_containers(pod: Pod) -> list[tuple[tuple[str | int, ...], Container]]:
    spec = pod.spec
    return [
        *((("spec", "containers", index), each) for index, each in enumerate(spec.containers)),
        *((("spec", "initContainers", index), each) for index, each in enumerate(spec.init_containers)),
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
        yield Wish(f"selector {key}", "NodeAffinity", of_pod(EditKind.DROP_NODE_SELECTOR, pod, patch, text))
    required = required_terms(pod.spec)
    if required is not None:
        text = "drop the required node affinity"
        patch = [operation("remove", pointer(*_NODE_AFFINITY))]
        dropped = of_pod(EditKind.DROP_NODE_AFFINITY, pod, patch, text)

        def widened(node: Node) -> Sequence[Edit]:
            return [*_widened(pod, required, node), dropped]

        yield Wish("node affinity", "NodeAffinity", dropped, edits_for=widened)


def _widened(pod: Pod, required: NodeSelector, node: Node) -> Iterator[Edit]:
    """Change the one requirement of a term that the node does not meet."""
    for at, term in enumerate(required.node_selector_terms):
        failing = [
            (part, index, each)
            for part, parts in (("matchExpressions", term.match_expressions), ("matchFields", term.match_fields))
            for index, each in enumerate(parts)
            if not _meets(node, part, each)
        ]
        if len(failing) != 1:
            continue
        ((part, index, each),) = failing
        path = (*_NODE_AFFINITY, "nodeSelectorTerms", at, part, index)
        value = node.name if part == "matchFields" else node.metadata.labels.get(each.key)
        patch: list[Operation] = []
        if each.operator == "In" and value:
            patch = [operation("add", pointer(*path, "values", "-"), value)]
            text = f"add {value} to the values of {each.key} in the node affinity"
        elif each.operator == "NotIn" and value is not None and len(each.values) > 1:
            patch = [operation("remove", pointer(*path, "values", each.values.index(value)))]
            text = f"remove {value} from the excluded values of {each.key} in the node affinity"
        elif len(term.match_expressions) + len(term.match_fields) > 1:
            patch = [operation("remove", pointer(*path))]
            text = f"drop the requirement on {each.key} from the node affinity"
        else:
            continue
        yield of_pod(EditKind.WIDEN_NODE_AFFINITY, pod, patch, text)


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
        for index, each in enumerate(rules.required if rules is not None else ()):
            path = pointer("spec", "affinity", field, _REQUIRED, index)
            text = f"drop the pod {name} term over {each.topology_key}"
            yield Wish(f"{name} {index}", "InterPodAffinity", of_pod(kind, pod, [operation("remove", path)], text))


def _node_name(pod: Pod) -> Iterator[Wish]:
    if pod.node_name:
        patch = [operation("remove", pointer("spec", "nodeName"))]
        yield Wish("node name", "NodeName", of_pod(EditKind.CLEAR_NODE_NAME, pod, patch, "clear spec.nodeName"))


def granted(pod: Pod, edits: Sequence[Edit]) -> Pod:
    """The pod after these edits of it, in an order in which they apply."""
    for edit in edits:
        pod = edited_pod(pod, appended(pod, edit).patch)
    return pod


def appended(pod: Pod, edit: Edit) -> Edit:
    """The edit as it applies to the pod after others: a second toleration is appended to the first one."""
    if edit.kind is not EditKind.TOLERATE_TAINT or not pod.spec.tolerations:
        return edit
    (change,) = edit.patch
    value = change["value"]
    toleration = value[0] if isinstance(value, list) else value
    patch = (operation("add", pointer("spec", "tolerations", "-"), toleration),)
    return Edit(edit.kind, edit.object_kind, edit.namespace, edit.name, patch, edit.text, edit.size)


def wishes_in_order(given_up: Iterable[Wish]) -> Sequence[Wish]:
    """The wishes in an order in which their patches apply."""
    by_edit = {id(each.relaxed): each for each in given_up}
    return [by_edit[id(edit)] for edit in in_order(each.relaxed for each in by_edit.values())]


def contradict(given_up: Sequence[Wish]) -> bool:
    """Whether they give up the same thing twice: a spread constraint that is dropped need not be raised."""
    if len(given_up) < 2:
        return False
    skews = {f"spread {each.skew}" for each in given_up if each.skew is not None}
    return any(each.name in skews for each in given_up)
