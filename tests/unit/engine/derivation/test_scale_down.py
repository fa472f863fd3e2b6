import pytest

from podium.engine.derivation.scale_down import is_ready, replica_set_victims, youngest_victims
from podium.objects.times import parse_time
from tests.builders import pod
from tests.workload_manifests import ready

NOW = "2026-02-01T00:00:00Z"


def _no_restarts(pod):
    return 0, 0


def _pod(name, node="n1", since="2026-01-01T00:00:00Z", *, is_ready=True, cost=None, phase="Running"):
    annotations = {} if cost is None else {"controller.kubernetes.io/pod-deletion-cost": cost}
    return pod(
        name,
        node=node,
        metadata={"annotations": annotations, "creationTimestamp": since},
        status={**ready(since, is_ready=is_ready), "phase": phase},
    )


def _victims(pods, count=1, siblings=(), restarts=_no_restarts):
    victims = replica_set_victims(pods, siblings, count, parse_time(NOW), restarts)
    return [victim.metadata.name for victim in victims]


@pytest.mark.parametrize(
    ("valuable", "victim"),
    [
        (_pod("a"), _pod("b", node="")),
        (_pod("a"), _pod("b", phase="Pending")),
        (_pod("a", phase="Unknown"), _pod("b", phase="Pending")),
        (_pod("a"), _pod("b", is_ready=False)),
        (_pod("a", cost="5"), _pod("b", cost="-5")),
        (_pod("a", cost="5"), _pod("b", cost="five")),
        (_pod("a", is_ready=True, cost="-9"), _pod("b", is_ready=False, cost="9")),
        (_pod("a", since="2026-01-01T00:00:00Z"), _pod("b", since="2026-01-31T23:00:00Z")),
    ],
)
def test_the_least_valuable_pod_is_deleted_first(valuable, victim):
    assert _victims([valuable, victim]) == _victims([victim, valuable]) == ["b"]


def test_of_a_deployment_doubled_up_nodes_are_given_up_before_young_pods():
    pods = [_pod("old-1"), _pod("old-2"), _pod("young", "n2", "2026-01-31T23:00:00Z")]
    assert _victims(pods, siblings=pods)[0].startswith("old-")
    assert _victims(pods) == ["young"]


def test_pods_of_other_replica_sets_double_up_a_node_too_but_not_those_that_end():
    own = [_pod("own-1"), _pod("own-2", "n2")]
    ending = [pod(f"ended-{number}", node="n1", terminating=True) for number in range(3)]
    assert _victims(own, siblings=[*own, _pod("old", "n2")]) == ["own-2"]
    assert _victims(own, siblings=[*own, _pod("old", "n2"), *ending]) == ["own-2"]


def test_ages_of_the_same_magnitude_do_not_count():
    older, younger = _pod("a", since="2026-01-01T00:00:00Z"), _pod("b", since="2026-01-03T00:00:00Z")
    assert _victims([older, younger]) == ["a"]  # by uid
    younger = _pod("b", since="2026-01-31T00:00:00Z")
    assert _victims([older, younger]) == ["b"]


def test_a_pod_that_is_ready_for_a_shorter_time_goes_before_one_that_restarted():
    pods = [_pod("a"), _pod("b", since="2026-01-31T23:00:00Z")]
    assert _victims(pods, restarts=lambda candidate: (9, 0) if candidate.metadata.name == "a" else (0, 0)) == ["b"]


def test_of_unready_pods_the_one_with_more_restarts_goes_first():
    pods = [_pod("a", is_ready=False), _pod("b", is_ready=False, since="2026-01-31T23:00:00Z")]
    assert _victims(pods, restarts=lambda candidate: (9, 0) if candidate.metadata.name == "a" else (0, 0)) == ["a"]


def test_a_job_compares_ages_exactly_and_looks_at_no_costs():
    older, younger = _pod("a", cost="-9"), _pod("b", since="2026-01-01T00:00:01Z")
    (victim,) = youngest_victims([older, younger], 1, _no_restarts)
    assert victim is younger


def test_equal_pods_are_deleted_from_the_last_name_on():
    pods = [pod(name, node="n1") for name in ("a", "c", "b")]
    assert _victims(pods, 2) == ["c", "b"]


@pytest.mark.parametrize(
    ("item", "is_so"),
    [
        (pod(node="n1"), True),
        (pod(), False),
        (pod(node="n1", status=ready()), True),
        (pod(node="n1", status=ready(is_ready=False)), False),
        (pod(node="n1", terminating=True), False),
        (pod(node="n1", status={"phase": "Succeeded"}), False),
    ],
)
def test_a_pod_on_a_node_is_ready_unless_its_condition_says_otherwise(item, is_so):
    assert is_ready(item) is is_so
