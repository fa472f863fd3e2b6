"""How long a Job waits after failures, and which of them count."""

from __future__ import annotations

import pytest

from podium.engine.derivation.job_failures import backoff_limit, backoff_s, policy_action, replaces_failed_only
from podium.objects.core import Pod, PodCondition, PodStatus
from tests.manifests import Json

PREEMPTED = Pod(status=PodStatus(conditions=(PodCondition(type="DisruptionTarget", status="True"),)))


def job(**spec: Json | str | int) -> Json:
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "report"}, "spec": spec}


def test_the_backoff_doubles_up_to_ten_minutes() -> None:
    assert [backoff_s(count) for count in (1, 2, 3, 6, 7, 8, 1000)] == [10, 20, 40, 320, 600, 600, 600]


def test_six_failures_are_allowed_unless_the_job_says_otherwise() -> None:
    assert (backoff_limit(job()), backoff_limit(job(backoffLimit=0))) == (6, 0)


def test_a_failure_policy_makes_a_job_wait_for_the_end_of_its_pods() -> None:
    rules: Json = {"rules": [{"action": "Count", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
    assert not replaces_failed_only(job())
    assert replaces_failed_only(job(podReplacementPolicy="Failed"))
    assert replaces_failed_only(job(podFailurePolicy=rules))


@pytest.mark.parametrize(
    ("pattern", "action"),
    [
        ({"type": "DisruptionTarget"}, "Ignore"),
        ({"type": "DisruptionTarget", "status": "True"}, "Ignore"),
        ({"type": "DisruptionTarget", "status": "False"}, "FailJob"),
        ({"type": "ConfigIssue"}, "FailJob"),
    ],
)
def test_the_first_rule_that_matches_decides(pattern: Json, action: str) -> None:
    rules = [
        {"action": "Count", "onExitCodes": {"operator": "In", "values": [1]}},
        {"action": "Ignore", "onPodConditions": [pattern]},
        {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]},
    ]
    assert policy_action(job(podFailurePolicy={"rules": rules}), PREEMPTED) == action
    assert policy_action(job(podFailurePolicy={"rules": rules}), Pod()) == ""
