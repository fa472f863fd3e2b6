"""Recorded questions to a member cluster, one JSON object each, and their answers.

A question holds the member's objects, Karmada's Cluster object for it, and one of: requirements, components, or a
workload with a threshold; none of these asks for replicas without requirements.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from podium.estimator.cluster_objects import Cluster
from podium.estimator.errors import EstimateError
from podium.estimator.general import general_replicas, general_sets
from podium.estimator.member import MemberCluster
from podium.estimator.requirements import Component, ObjectReference, ReplicaRequirements
from podium.objects.errors import FieldError

DEFAULT_NAMESPACE = "default"


class EstimateCase(Struct):
    """One question. `objects` are left to the reader of manifests."""

    id: str = ""
    objects: list[Any] = []
    cluster: Cluster = Cluster()
    requirements: ReplicaRequirements | None = None
    components: list[Component | None] | None = None
    workload: ObjectReference | None = None
    threshold_s: float = 0


def read_case(line: bytes) -> EstimateCase:
    """The question.

    Raises:
        EstimateError: it cannot be read.
    """
    try:
        return msgspec.json.decode(line, type=EstimateCase)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise EstimateError(f"not a case: {error}") from error


def answer_case(case: EstimateCase, member: MemberCluster, now_s: float) -> dict[str, Any]:
    """The answers of both estimators; `error` where there is none.

    Args:
        member: the cluster of the case's objects.
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
