"""Recorded questions about a member cluster, each one JSON object, and their answers.

A question contains the member's objects, its Karmada Cluster object, and one of: requirements, components, or a
workload with a threshold. Without these it asks for replicas that have no requirements.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from podium.estimator.cluster_objects import Cluster
from podium.estimator.errors import EstimateError
from podium.estimator.general import general_replicas, general_sets
from podium.estimator.member import MemberCluster
from podium.estimator.requirements import Component, ObjectReference, ReplicaRequirements
from podium.objects.errors import FieldError

DEFAULT_NAMESPACE = "default"

CaseT = TypeVar("CaseT", bound=Struct)


class EstimateCase(Struct):
    """One question. The reader of manifests parses its `objects`."""

    id: str = ""
    objects: list[Any] = []
    cluster: Cluster = Cluster()
    requirements: ReplicaRequirements | None = None
    components: list[Component | None] | None = None
    workload: ObjectReference | None = None
    threshold_s: float = 0


def decode_case(line: bytes, case_type: type[CaseT]) -> CaseT:
    """Parse a line as a question of a type.

    Raises:
        EstimateError: it cannot be read.
    """
    try:
        return msgspec.json.decode(line, type=case_type)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise EstimateError(f"not a case: {error}") from error
    except RecursionError:
        raise EstimateError("not a case: nested too deep") from None


def read_case(line: bytes) -> EstimateCase:
    """Parse a line as a question about a member. Raises: EstimateError."""
    return decode_case(line, EstimateCase)


def answer_case(case: EstimateCase, member: MemberCluster, now_s: float) -> dict[str, Any]:
    """Return the answers of both estimators, or an `error`.

    Args:
        member: the cluster built from the case's objects.
    """
    try:
        if case.workload is not None:
            return {"unschedulable": member.unschedulable_replicas(case.workload, case.threshold_s, now_s)}
        if case.components is not None:
            sets = member.max_available_component_sets(case.components, DEFAULT_NAMESPACE)
            return {"sets": sets, "general_sets": general_sets(case.cluster, case.components)}
        replicas = member.max_available_replicas(case.requirements)
        return {"replicas": replicas, "general_replicas": general_replicas(case.cluster, case.requirements)}
    except (EstimateError, FieldError) as error:
        return {"error": str(error)}
