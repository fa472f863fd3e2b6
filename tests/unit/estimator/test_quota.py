"""Vectors of Karmada's ResourceQuota plugin."""

import pytest
from msgspec import convert

from podium.estimator.quota import ResourceQuota, replicas_within, sets_within
from podium.estimator.requirements import MAX_INT32
from tests.builders import node
from tests.unit.estimator.members import asking, assumptions, member, part

GPU = "example.com/gpu"
FOO = {"scopeName": "PriorityClass", "operator": "In", "values": ["foo"]}


def _quota(hard=None, usage=None, *, scopes=(), expressions=(FOO,), namespace="default", name="q"):
    hard = hard or {"cpu": "1", "memory": "4Mi", GPU: "5"}
    usage = {"cpu": "200m", "memory": "1Mi", GPU: "2"} if usage is None else usage
    spec = {"scopes": scopes, "scopeSelector": {"matchExpressions": expressions}}
    content = {
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
        "status": {"hard": hard, "used": usage},
    }
    return convert(content, ResourceQuota)


def _within(quota, *, on_the_way=(), priority_class="foo", namespace="default", **request):
    return replicas_within([quota], asking(**request, namespace=namespace, priority_class=priority_class), on_the_way)


@pytest.mark.parametrize(
    ("request_", "replicas"),
    [
        ({"cpu": "200m"}, 4),
        ({"memory": "2Mi"}, 1),
        ({"gpu": "1"}, 3),
        ({"ephemeral-storage": "1Gi"}, MAX_INT32),
        ({"cpu": "2"}, 0),
        ({"cpu": "200m", "memory": "2Mi", "gpu": "1"}, 1),
    ],
)
def test_replicas_are_what_is_left_divided(request_, replicas):
    assert _within(_quota(), **request_) == replicas


@pytest.mark.parametrize(
    ("on_the_way", "replicas"),
    [
        (assumptions(part(2, "200m", priority_class="foo")), 2),
        (assumptions(part(4, "200m", priority_class="foo")), 0),
        (assumptions(part(5, "200m", priority_class="foo")), 0),
        (assumptions(part(2, "200m", priority_class="foo"), namespace="other"), 4),
        (assumptions(part(2, "200m", priority_class="bar")), 4),
    ],
)
def test_assumed_workloads_of_the_same_namespace_and_class_are_deducted(on_the_way, replicas):
    assert _within(_quota(), cpu="200m", on_the_way=[on_the_way]) == replicas


@pytest.mark.parametrize(
    ("components", "sets"),
    [
        ([part(1, "100m", "500Ki", priority_class="foo")], 6),
        ([part(3, "50m", "200Ki", priority_class="foo"), part(2, "100m", "500Ki", priority_class="foo")], 1),
        ([part(1, "100m", priority_class="bar")], MAX_INT32),
    ],
)
def test_sets_are_what_is_left_divided_by_what_all_parts_request(components, sets):
    assert sets_within([_quota()], "default", components) == sets


def test_quota_without_scopes_counts_everyone():
    assert sets_within([_quota(expressions=())], "default", [part(1, "100m")]) == 8
    assert _within(_quota(expressions=()), cpu="200m", priority_class="") == 4


def test_tightest_quota_rules():
    quotas = [
        _quota({"cpu": "1"}, {"cpu": "0"}, expressions=()),
        _quota({"memory": "2Mi"}, {"memory": "0"}, expressions=()),
    ]
    assert sets_within(quotas, "default", [part(1, "100m", "1Mi")]) == 2
    assert sets_within(quotas, "default", [part(1, "600m"), part(1, "500m")]) == 0


@pytest.mark.parametrize(
    ("scopes", "expressions", "counts"),
    [
        (["PriorityClass"], (), True),
        (["Terminating"], (), False),
        (["NotBestEffort"], (FOO,), True),
        ((), ({**FOO, "operator": "NotIn"},), False),
        ((), ({**FOO, "operator": "DoesNotExist", "values": []},), False),
        ((), ({**FOO, "operator": "Near"},), False),
    ],
)
def test_any_scope_that_matches_makes_a_quota_count_and_only_priority_classes_can(scopes, expressions, counts):
    assert (_within(_quota(scopes=scopes, expressions=expressions), cpu="200m") == 4) is counts


def test_requests_stand_for_the_plain_name_and_go_before_it_while_limits_do_not_count():
    both_quotas = _quota(
        {"cpu": "9", "requests.cpu": "1", "limits.cpu": "0"}, {"cpu": "0", "requests.cpu": "0", "limits.cpu": "0"}
    )
    assert _within(both_quotas, cpu="250m") == 4


def test_bound_whose_use_is_unknown_does_not_count():
    assert _within(_quota({"cpu": "1"}, {}), cpu="250m") == MAX_INT32


def test_replica_of_no_namespace_is_held_against_every_quota_but_a_set_against_none():
    elsewhere = _quota(namespace="other", expressions=())
    assert _within(elsewhere, cpu="200m") == MAX_INT32
    assert _within(elsewhere, cpu="200m", namespace="") == 4
    assert sets_within([elsewhere], "", [part(1, "100m")]) == MAX_INT32


def test_quota_bounds_estimates_only_with_its_gate():
    objects = node("n1", cpu="64"), _quota(expressions=())
    requirements = asking("200m", namespace="default")
    assert member(*objects).max_available_replicas(requirements) == 110
    assert member(*objects, resource_quota_estimate=True).max_available_replicas(requirements) == 4
    assert (
        member(*objects, resource_quota_estimate=True).max_available_component_sets([part(1, "100m")], "default") == 8
    )
