"""Recorded questions to Karmada's scheduler, each one JSON object, and their answers.

A question is a binding's spec with the clusters and what the estimators answer, or a member's nodes and pods, of which
the summaries are asked, or the Service of a member's estimator, of which the addresses are asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from podium.estimator.cases import decode_case
from podium.estimator.cluster_objects import Cluster, ResourceModel
from podium.estimator.division.answers import answer_of, summary_answer
from podium.estimator.division.attempts import Options, Outcome, Question, divide
from podium.estimator.division.availability import (
    GENERAL,
    SCHEDULER_ESTIMATOR,
    Estimator,
    GeneralEstimator,
    GivenAnswers,
)
from podium.estimator.division.bindings import BindingSpec, BindingStatus, ResourceBinding
from podium.estimator.division.estimator_service import EstimatorService, addresses_of
from podium.estimator.division.questions import GATES, demand_readable, demand_unique
from podium.estimator.errors import EstimateError
from podium.estimator.requirements import AssumedWorkload
from podium.estimator.summaries import summarise
from podium.objects.core import Node, Pod
from podium.objects.errors import FieldError
from podium.objects.meta import Int32


class ErrorAnswer(Struct):
    """An estimator server's answer that is an error."""

    error: str


class DivisionCase(Struct):
    """One question; `spec`, `nodes` or `service` says of which kind."""

    id: str = ""
    spec: BindingSpec | None = None
    status: BindingStatus = BindingStatus()
    clusters: list[Cluster] = []
    estimates: dict[str, Int32 | ErrorAnswer] | None = None
    general: bool = True
    bindings: list[ResourceBinding] = []
    assumed_workloads: dict[str, list[AssumedWorkload]] = msgspec.field(default_factory=dict, name="assumed")
    empty: bool = False
    gates: dict[str, bool] = {}
    nodes: list[Node] | None = None
    pods: list[Pod] = []
    models: list[ResourceModel] = []
    service: EstimatorService | msgspec.UnsetType | None = msgspec.UNSET
    name: str = ""
    namespace: str = ""
    prefix: str = ""
    port: int = 0


def read_case(line: bytes) -> DivisionCase:
    """Parse a line as a question about clusters. Raises: EstimateError."""
    return decode_case(line, DivisionCase)


def answer_case(case: DivisionCase) -> dict[str, Any]:
    """Return the answer as Karmada 1.18 gives it, with its faults.

    Raises:
        EstimateError: it is no question, or a field cannot be read.
    """
    if [case.spec is not None, case.nodes is not None, case.service is not msgspec.UNSET].count(True) != 1:
        raise EstimateError("not a case: expected one of spec, nodes and service")
    try:
        if case.spec is not None:
            question = _question(case, case.spec)
            return _recorded_answer(divide(question), question)
        # The recordings have the fault of that release.
        if case.nodes is not None:
            return summary_answer(summarise(case.nodes, case.pods, case.models, skips_after_full_node=True))
    except FieldError as error:
        raise EstimateError(str(error)) from error
    assert case.service is not msgspec.UNSET
    try:
        return {"addresses": addresses_of(case.service, case.prefix, case.name, case.namespace, case.port)}
    except EstimateError as error:
        return {"error": str(error)}


def _question(case: DivisionCase, spec: BindingSpec) -> Question:
    demand_unique([cluster.key for cluster in case.clusters])
    demand_readable(spec, case.status)
    assumed_workloads: Mapping[str, Sequence[AssumedWorkload]] = (
        case.assumed_workloads if case.gates.get("SchedulingOvercommitProtection") else {}
    )
    estimators: dict[str, Estimator] = {}
    if case.general:
        estimators[GENERAL] = GeneralEstimator(assumed_workloads=assumed_workloads)
    if case.estimates is not None:
        estimators[SCHEDULER_ESTIMATOR] = GivenAnswers(
            {
                name: answer.error if isinstance(answer, ErrorAnswer) else answer
                for name, answer in case.estimates.items()
            }
        )
    gates = {field: case.gates.get(name, False) for name, field in GATES.items()}
    options = Options(propagate_empty=case.empty, **gates)
    return Question(case.clusters, spec, case.status, estimators, case.bindings, options)


def _recorded_answer(outcome: Outcome, question: Question) -> dict[str, Any]:
    """Return the answer with what the recordings show of estimators: replicas, without the assumed workloads."""
    answer = answer_of(outcome)
    if "estimated" in answer:
        estimators = {**question.estimators}
        if GENERAL in estimators:
            estimators[GENERAL] = GeneralEstimator()
        feasible = outcome.attempts[-1].filter_result.feasible
        answer["estimated"] = {
            name: estimator.estimate(feasible, question.spec, in_sets=False).as_dict()
            for name, estimator in estimators.items()
        }
    return answer
