"""The answers of a division, and of the summaries, as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from podium.estimator.cluster_objects import ResourceSummary
from podium.estimator.division.attempts import Attempt, Outcome, Question, divide
from podium.estimator.division.bindings import TargetCluster
from podium.estimator.division.explanation import explain_shares
from podium.estimator.errors import EstimateError
from podium.estimator.summaries import MemberSummary
from podium.objects.errors import FieldError


def division_answer(question: Question, *, explain: bool) -> dict[str, Any]:
    """Divide, and return the result; with `explain`, also the share of each cluster with its reasons.

    Raises:
        EstimateError: an amount cannot be read.
    """
    try:
        outcome = divide(question)
        answer = answer_of(outcome)
        if explain:
            answer["explanation"] = [asdict(share) for share in explain_shares(question, outcome)]
    except FieldError as error:
        raise EstimateError(str(error)) from error
    return answer


def answer_of(outcome: Outcome) -> dict[str, Any]:
    """Return the result of a division as a JSON value. What depends on a map's order upstream is marked."""
    answer: dict[str, Any] = {"reason": outcome.reason}
    if outcome.is_message_random:
        answer["random_reason"] = True
    answer["message"] = outcome.message
    if outcome.affinity:
        answer["affinity"] = outcome.affinity
    if outcome.is_retried:
        answer["retry"] = True
    answer |= _attempt_answer(outcome.attempts[-1])
    answer["clusters"] = replicas_by_cluster(outcome.clusters)
    answer["order"] = list(answer["clusters"])
    if outcome.is_order_random:
        answer["random_order"] = True
    return answer


def replicas_by_cluster(targets: Sequence[TargetCluster]) -> dict[str, int]:
    """Return the replicas of each cluster."""
    return {target.name: target.replicas for target in targets}


def _attempt_answer(attempt: Attempt) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    if attempt.filter_result.reasons:
        answer["unfit"] = {name: " | ".join(texts) for name, texts in attempt.filter_result.reasons.items()}
    if attempt.availability is not None:
        estimated = attempt.availability.estimated
        if estimated:
            answer["estimated"] = {name: answers.as_dict() for name, answers in estimated.items()}
        answer["available"] = dict(attempt.availability.replicas)
    if attempt.selection is not None:
        answer["selected"] = [candidate.name for candidate in attempt.selection]
    return answer


def summary_answer(summary: MemberSummary) -> dict[str, Any]:
    """Return the summaries in the fields of a Cluster's status, without those that are empty or 0."""
    return {
        "nodeSummary": msgspec.to_builtins(summary.nodes),
        "resourceSummary": _resources(summary.resources),
    }


def _resources(resources: ResourceSummary) -> dict[str, Any]:
    # A grade without nodes is shown with its count of 0.
    modelings = [{"grade": modeling.grade, "count": modeling.count} for modeling in resources.allocatable_modelings]
    lists: dict[str, Any] = msgspec.to_builtins(resources)
    return lists | ({"allocatableModelings": modelings} if modelings else {})
