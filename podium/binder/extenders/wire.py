"""Encodes requests to extenders as JSON and decodes their responses.

Owns upstream's shapes: Go's field names, matched case-insensitively as in Go; a missing field has its zero value. Never
decides whether an answer makes sense: the question's own code does.

Source: staging kube-scheduler/extender/v1/types.go and pkg/scheduler/extender.go, v1.36.2.
Differs: of nodes that are sent back only the names are decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from podium.config import Extender
from podium.framework.contract.questions import (
    AskFilter,
    AskPreempt,
    AskPrioritize,
    ExtenderFailed,
    Filtered,
    Preemptable,
    Victims,
)
from podium.objects.core import Node, Pod
from podium.objects.objects_with_json import json_of

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode
_INT64_MAX = (1 << 63) - 1


class WireError(ValueError):
    """The response does not have the expected shape."""


class _Meta(Struct, frozen=True):
    name: str = ""


class _NamedNode(Struct, frozen=True):
    metadata: _Meta = _Meta()


class _NodeList(Struct):
    items: list[_NamedNode] | None = None


# ---------------------------------------------------------------- requests


def filter_args(extender: Extender, pod: Pod, nodes: Sequence[Node]) -> bytes:
    """Encode `ExtenderArgs`, for filtering and scoring."""
    knows_nodes = extender.node_cache_capable
    return _encode(
        {
            "Pod": json_of(pod),
            "Nodes": None if knows_nodes else {"metadata": {}, "items": [json_of(node) for node in nodes]},
            "NodeNames": [node.name for node in nodes] if knows_nodes else None,
        }
    )


def preemption_args(question: AskPreempt) -> bytes:
    """Encode `ExtenderPreemptionArgs`."""
    knows_pods = question.extender.node_cache_capable
    victims = {
        name: _victims(node_victims, knows_pods=knows_pods) for name, node_victims in question.candidates.items()
    }
    return _encode(
        {
            "Pod": json_of(question.pod),
            "NodeNameToVictims": None if knows_pods else victims,
            "NodeNameToMetaVictims": victims if knows_pods else None,
        }
    )


def _victims(victims: Victims, *, knows_pods: bool) -> dict[str, Any]:
    pods = [{"UID": pod.uid} if knows_pods else json_of(pod) for pod in victims.pods]
    return {"Pods": pods, "NumPDBViolations": victims.violations}


def binding_args(pod: Pod, node_name: str) -> bytes:
    """Encode `ExtenderBindingArgs`."""
    metadata = pod.metadata
    return _encode(
        {"PodName": metadata.name, "PodNamespace": metadata.namespace, "PodUID": metadata.uid, "Node": node_name}
    )


# ---------------------------------------------------------------- responses


def read_filtered(question: AskFilter, body: bytes) -> Filtered | ExtenderFailed:
    """Decode an `ExtenderFilterResult`.

    Raises: `WireError` if the body has another form.
    """
    fields = _fields(body)
    if error := _read(fields, "error", str) or "":
        return ExtenderFailed(question.extender, error)
    names: Iterable[str] = ()
    if question.extender.node_cache_capable and (node_names := _read(fields, "nodenames", list[str])) is not None:
        names = node_names
    elif (nodes := _read(fields, "nodes", _NodeList)) is not None:
        names = [node.metadata.name for node in nodes.items or ()]
    reasons = _read(fields, "failednodes", dict[str, str]) or {}
    return question.accept(names, reasons, _read(fields, "failedandunresolvablenodes", dict[str, str]) or {})


def read_scores(extender: Extender, body: bytes) -> Sequence[tuple[str, int]] | ExtenderFailed:
    """Decode a `HostPriorityList`.

    Raises: `WireError` if the body has another form.
    """
    entries = _decode(body, list[dict[str, Any]] | None) or []
    return AskPrioritize.accept(extender, [_score(entry) for entry in entries])


def read_preemptable(question: AskPreempt, body: bytes) -> Preemptable | ExtenderFailed:
    """Decode an `ExtenderPreemptionResult`.

    Raises: `WireError` if the body has another form.
    """
    by_node = _read(_fields(body), "nodenametometavictims", dict[str, dict[str, Raw] | None]) or {}
    return question.accept({name: _meta_victims(_lower_keys(victims or {})) for name, victims in by_node.items()})


def read_bound(extender: Extender, body: bytes) -> ExtenderFailed | None:
    """Decode an `ExtenderBindingResult`; None if it reports no error.

    Raises: `WireError` if the body has another form.
    """
    error = _read(_fields(body), "error", str)
    return ExtenderFailed(extender, error) if error else None


def _score(entry: Mapping[str, Any]) -> tuple[str, int]:
    fields = _lower_keys(entry)
    name, score = fields.get("host") or "", fields.get("score") or 0
    if not isinstance(name, str) or type(score) is not int or abs(score) > _INT64_MAX:
        raise WireError(f"not a node and a whole number: {entry!r:.200}")
    return name, score


def _meta_victims(fields: Mapping[str, Raw]) -> tuple[list[str], int]:
    pods = _read(fields, "pods", list[dict[str, Raw] | None]) or []
    uids = [_read(_lower_keys(pod or {}), "uid", str) or "" for pod in pods]
    return uids, _read(fields, "numpdbviolations", int) or 0


def _fields(body: bytes) -> dict[str, Raw]:
    return _lower_keys(_decode(body, dict[str, Raw] | None) or {})


def _lower_keys(fields: Mapping[str, T]) -> dict[str, T]:
    return {name.lower(): value for name, value in fields.items()}


def _read(fields: Mapping[str, Raw], name: str, kind: type[T]) -> T | None:
    """Decode the field with that lower-case name; None if it is missing or null."""
    content = fields.get(name)
    value: T | None = None if content is None else _decode(content, kind | None)
    return value


def _decode(content: bytes | Raw, kind: Any) -> Any:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise WireError(str(error)) from error
