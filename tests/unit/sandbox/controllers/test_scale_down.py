from datetime import UTC, datetime

import pytest

from podium.sandbox.controllers.scale_down import job_victims, replica_set_victims
from podium.sandbox.journal import Record

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
COST = "controller.kubernetes.io/pod-deletion-cost"


def pod(name, *, node="n1", phase="Running", ready="True", since="11:00:00", cost=None, restarts=0, uid=None):
    creation_time = f"2026-01-01T{since}Z"
    metadata = {
        "name": name,
        "uid": uid or name,
        "creationTimestamp": creation_time,
        "annotations": {} if cost is None else {COST: cost},
    }
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": creation_time}
    status = {"phase": phase, "conditions": [condition], "containerStatuses": [{"restartCount": restarts}]}
    obj = {"metadata": metadata, "spec": {"nodeName": node} if node else {}, "status": status}
    return Record(("default", name), obj, 1)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pod("a", node="", phase="Pending", ready="False"), pod("b", phase="Pending", ready="False")),
        (pod("a", phase="Pending", ready="False"), pod("b", ready="False", cost="-5")),
        (pod("a", ready="False", cost="9"), pod("b", cost="1")),
        (pod("a", cost="-1"), pod("b")),
        (pod("a", cost="1"), pod("b", cost="2", since="11:59:59")),
        # By the logarithm of their ages, these two are not equally old.
        (pod("b", since="11:59:00"), pod("a", since="11:00:00")),
        # These are, so that the uid decides.
        (pod("x", since="11:00:00", uid="1"), pod("y", since="11:00:01", uid="2")),
        (pod("a", restarts=3), pod("b", restarts=2)),
        (pod("a", cost="none"), pod("b", cost="1")),
    ],
)
def test_a_replica_set_misses_the_first_least(first, second):
    assert replica_set_victims([second, first], (), 1, NOW) == [first]
    assert replica_set_victims([first, second], (), 1, NOW) == [first]


def test_doubled_up_nodes_count_only_among_related_pods():
    alone, together = pod("a", node="n1", since="11:59:59"), pod("b", node="n2")
    siblings = [alone, together, pod("c", node="n2")]
    assert replica_set_victims([alone, together], siblings, 1, NOW) == [together]
    assert replica_set_victims([alone, together], (), 1, NOW) == [alone]


def test_a_job_ignores_costs_and_compares_ages_exactly():
    young, old = pod("x", since="11:00:01", uid="2", cost="9"), pod("y", since="11:00:00", uid="1", cost="-9")
    assert job_victims([old, young], 1) == [young]
