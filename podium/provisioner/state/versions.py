"""Karpenter's objects of other versions than v1: those of v1beta1 are converted, all others refused.

Owns what became of each field. An object of another version has fields of the same names that mean something else, so
it must never be read as if it were of v1.

Source: karpenter pkg/apis/v1beta1 of v0.37.8, and the conversions in pkg/apis/v1 of v1.0.8.
Differs: `kubelet` became part of the node class, and is left out: planning reads neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from podium.objects.errors import FieldError
from podium.provisioner.apis.objects import WHEN_UNDERUTILIZED

GROUP: Final = "karpenter.sh"
CURRENT: Final = "v1"
FORMER: Final = "v1beta1"
_FORMER_POLICIES: Final = {"WhenUnderutilized": WHEN_UNDERUTILIZED}
_AWS_NODE_CLASS: Final = "EC2NodeClass"
_AWS_GROUP: Final = "karpenter.k8s.aws"

Document = Mapping[Any, Any]


def current_form(document: Document) -> Document:
    """Return a NodePool or a NodeClaim in the form of v1; any other object as it is.

    Raises:
        FieldError: its version is neither v1 nor v1beta1.
    """
    kind, version = document.get("kind"), str(document.get("apiVersion", ""))
    if kind not in ("NodePool", "NodeClaim") or version in ("", f"{GROUP}/{CURRENT}"):
        return document
    if version != f"{GROUP}/{FORMER}":
        raise FieldError(
            "apiVersion", f"{kind} of {version} is not read, only of {GROUP}/{CURRENT} and {GROUP}/{FORMER}"
        )
    convert = _node_pool_spec if kind == "NodePool" else _node_spec
    changes: dict[Any, Any] = {"apiVersion": f"{GROUP}/{CURRENT}"}
    if isinstance(document.get("spec"), Mapping):
        changes["spec"] = convert(document["spec"])
    if kind == "NodePool" and _is_ready(document):
        # v1 has conditions that v1beta1 had not, and a NodePool without them would not count as ready.
        changes["status"] = {}
    return {**document, **changes}


def _node_pool_spec(spec: Document) -> Document:
    disruption = spec.get("disruption")
    template = spec.get("template")
    changes: dict[Any, Any] = {}
    expiry: dict[Any, Any] = {}
    if isinstance(disruption, Mapping):
        policy = disruption.get("consolidationPolicy")
        disruption_fields = {name: value for name, value in disruption.items() if name != "expireAfter"}
        changes["disruption"] = (
            {**disruption_fields, "consolidationPolicy": _FORMER_POLICIES.get(policy, policy)}
            if policy
            else disruption_fields
        )
        if "expireAfter" in disruption:
            expiry = {"expireAfter": disruption["expireAfter"]}
    if isinstance(template, Mapping) and isinstance(template.get("spec"), Mapping):
        changes["template"] = {**template, "spec": {**_node_spec(template["spec"]), **expiry}}
    return {**spec, **changes}


def _node_spec(spec: Document) -> Document:
    reference = spec.get("nodeClassRef")
    node_fields = {name: value for name, value in spec.items() if name not in ("kubelet", "nodeClassRef")}
    if not isinstance(reference, Mapping):
        return {**node_fields, **({"nodeClassRef": reference} if reference is not None else {})}
    group = str(reference.get("apiVersion", "")).rpartition("/")[0]
    kind = reference.get("kind") or _AWS_NODE_CLASS
    # Only AWS' provider took a reference of which the name alone was given.
    return {
        **node_fields,
        "nodeClassRef": {"group": group or _AWS_GROUP, "kind": kind, "name": reference.get("name", "")},
    }


def _is_ready(document: Document) -> bool:
    status = document.get("status")
    conditions = status.get("conditions") if isinstance(status, Mapping) else None
    return isinstance(conditions, list) and not any(
        isinstance(condition, Mapping) and condition.get("type") == "Ready" and condition.get("status") == "False"
        for condition in conditions
    )
